"""What `tools/list` publishes of every tool is in the one form that all clients and their models' APIs take."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.settings.model import ManualsSettings, ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from tests.processes import WAIT

TYPES = {"string", "integer", "number", "boolean", "object", "array", "null"}
KEYWORDS = {
    *("type", "description", "enum", "default", "minimum", "maximum", "minItems", "items", "properties", "required")
}
NAMES = {
    "answer", "answer_detailed", "answer_quick", "chatgpt_o3_search", "research", "research_result", "research_cancel",
    "research_list", "manual_ls", "manual_toc", "manual_find", "manual_hits", "manual_read", "manual_scan",
    "manual_search",
}  # fmt: skip

# Arguments that the contract of the manuals lets be null, and one call that has all others.
NULLS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "manual_ls": ({}, ("id",)),
    "manual_toc": (
        {"manual_id": "m"},
        ("path_prefix", "max_files", "cursor", "depth", "max_headings_per_file"),
    ),
    "manual_find": (
        {"query": "q", "manual_id": "m", "required_terms": ["t"], "inline_hits": {"limit": None}, "budget": {"max_candidates": None, "time_ms": None}},
        ("expand_scope", "only_unscanned_from_trace_id", "include_claim_graph", "use_cache", "inline_hits", "budget"),
    ),
    "manual_hits": ({"trace_id": "t"}, ("kind", "offset", "limit")),
    "manual_read": ({"ref": {"manual_id": "m", "path": "p", "start_line": None}}, ("max_chars",)),
    "manual_scan": (
        {"manual_id": "m", "path": "p", "cursor": {"start_line": None, "char_offset": None}},
        ("start_line", "cursor", "max_chars"),
    ),
}  # fmt: skip


async def listed(folder: Path) -> dict[str, dict[str, Any]]:
    """Return all tools that a server can list, by name."""
    server = ServerSettings(toolsets=("answer", "manuals", "search", "research"))
    async with connected_client(Settings(server=server, manuals=ManualsSettings(root=str(folder)))) as client:
        with trio.fail_after(WAIT):
            found = await client.ask("tools/list")
    return {tool["name"]: tool for tool in found["result"]["tools"]}


def faults(schema: Any, where: str, *, given: bool, inside: bool = False) -> Iterator[str]:
    """Yield what a strict client would refuse; `given` is the schema of arguments, `inside` an `anyOf`."""
    if not isinstance(schema, dict):
        yield f"{where} is no schema"
        return
    if "anyOf" in schema:
        if schema.keys() != {"anyOf"} or inside or len(schema["anyOf"]) < 2:
            yield f"{where} has more beside anyOf, or one within another"
        for number, each in enumerate(schema["anyOf"]):
            yield from faults(each, f"{where}|{number}", given=given, inside=True)
        return
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in TYPES or (kind == "null" and not inside):
        yield f"{where} has the type {kind!r}"
    if unknown := schema.keys() - KEYWORDS:
        yield f"{where} has {unknown}"
    if ("items" in schema) is not (kind == "array"):
        yield f"{where} has no items, or is no array"
    if bool(schema.get("properties")) is not (kind == "object") and (given or kind != "object"):
        yield f"{where} has no properties, or is no object"
    if "enum" in schema and (kind != "string" or not all(isinstance(word, str) and word for word in schema["enum"])):
        yield f"{where} has words that are no text"
    members = schema.get("properties", {})
    if unknown := set(schema.get("required", ())) - members.keys():
        yield f"{where} requires {unknown}"
    for name, each in members.items():
        yield from faults(each, f"{where}.{name}", given=given)
    if "items" in schema:
        yield from faults(schema["items"], f"{where}[]", given=given)


async def test_every_listed_property_is_one_that_strict_clients_take(tmp_path: Path) -> None:
    tools = await listed(tmp_path)
    assert tools.keys() == NAMES
    found: list[str] = []
    for name, tool in tools.items():
        for part in ("inputSchema", "outputSchema"):
            Draft202012Validator.check_schema(tool[part])
            assert tool[part]["type"] == "object"
            found += faults(tool[part], f"{name} {part}", given=part == "inputSchema")
    assert found == []


@pytest.mark.rule("M2.8", "M3.8", "M4.55", "M5.12", "M7.6")
async def test_the_schemas_of_the_manuals_take_null_where_the_contract_does(tmp_path: Path) -> None:
    tools = await listed(tmp_path)
    for name, (least, nulls) in NULLS.items():
        check = Draft202012Validator(tools[name]["inputSchema"]).validate
        check(least)
        check({**least, **dict.fromkeys(nulls)})


@pytest.mark.rule("M3.8", "M7.6")
async def test_the_schemas_take_every_form_of_a_cursor(tmp_path: Path) -> None:
    tools = await listed(tmp_path)
    for cursor in (40, "40", '{"offset": 40}', {"offset": 40}, {"char_offset": 40}, {"start_line": 2}):
        for name in ("manual_toc", "manual_scan"):
            check = Draft202012Validator(tools[name]["inputSchema"]).validate
            check({"manual_id": "m", "path": "p", "cursor": cursor})
