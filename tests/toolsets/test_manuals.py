"""The manual tools on the wire: how they are listed, what they answer, how they fail, and what they remember."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
import trio

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.serving import configured_toolsets
from responses_mcp.settings.model import ManualsSettings, ServerSettings, Settings
from responses_mcp.toolsets.base import CallContext, ToolError
from responses_mcp.toolsets.manuals import ManualsToolset
from tests.file_names import possible
from tests.toolsets.manuals_harness import REVISIONS, TOOLS, WAIT, Desk, desk, fill, settings_for

FIND = {"query": "token", "manual_id": "guide", "required_terms": ["token"]}
INTRO = {"manual_id": "guide", "path": "intro.md"}
# The least that each tool can be asked, but for manual_ls and manual_hits, which need no manual_ls before.
AFTER_LS: dict[str, dict[str, Any]] = {
    "manual_toc": {"manual_id": "guide"},
    "manual_find": FIND,
    "manual_read": {"ref": INTRO},
    "manual_scan": INTRO,
}

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@pytest.fixture
def toolset(tmp_path: Path) -> ManualsToolset:
    return ManualsToolset(settings_for(fill(tmp_path)))


# How they are listed


def test_the_tools_are_listed_in_the_order_of_the_contract() -> None:
    listed = [tool.definition for tool in ManualsToolset(Settings()).tools]
    assert tuple(tool["name"] for tool in listed) == TOOLS
    for tool in listed:
        assert tool["annotations"] == {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        assert tool["title"]


async def test_the_arguments_in_the_schemas_are_those_that_are_taken(toolset: ManualsToolset) -> None:
    for tool in toolset.tools:
        with pytest.raises(ToolError) as caught:
            await tool.handler(CallContext(1), {"no such": 1})
        message = json.loads(caught.value.failure.text)["message"]
        known = set(message.rpartition("It takes ")[2].rstrip(".").split(", "))
        assert known - {"scope"} == set(tool.input_schema["properties"])


async def test_answer_and_manual_tools_together_list_in_under_12_kb(tmp_path: Path) -> None:
    async with desk(settings_for(tmp_path)) as here:
        with trio.fail_after(WAIT):
            listed = await here.client.ask("tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["answer", "answer_detailed", "answer_quick", *TOOLS]
    assert len(json.dumps(listed, separators=(",", ":")).encode()) < 12_000


# When they are offered


@pytest.mark.parametrize(
    ("root", "chosen", "offered"),
    [
        (None, None, False),
        ("r", None, True),
        ("r", ("answer",), False),
        ("r", ("answer", "manuals"), True),
        (None, ("answer", "manuals"), False),
    ],
)
def test_they_are_offered_when_settings_say_so(
    root: str | None, chosen: tuple[str, ...] | None, *, offered: bool
) -> None:
    settings = Settings(manuals=ManualsSettings(root=root), server=ServerSettings(toolsets=chosen))
    names = [tool.name for toolset in configured_toolsets(settings) for tool in toolset.tools]
    assert ("manual_ls" in names) is offered
    assert names[:3] == ["answer", "answer_detailed", "answer_quick"]


# What they answer


async def test_objects_and_lists_may_come_as_json_text(toolset: ManualsToolset) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        words = {"required_terms": '["token"]', "inline_hits": '{"limit": 1}', "budget": '{"time_ms": "9000"}'}
        found = await here.call("manual_find", **{**FIND, **words})
        assert len(found["inline_hits"]["items"]) == 1
        section = await here.call("manual_read", ref=json.dumps({**INTRO, "start_line": 4}))
        assert section["text"].startswith("##")
        assert (await here.call("manual_toc", manual_id="guide", cursor='{"offset": 1}'))["applied"]["offset"] == 1
        page = await here.call("manual_scan", **INTRO, cursor='{"start_line": 7}')
        assert page["applied_range"]["start_line"] == 7


async def test_a_client_that_asks_for_progress_hears_how_the_search_goes(toolset: ManualsToolset) -> None:
    phases: list[str] = []
    async with aclosing(toolset):
        await toolset.tools[2].handler(CallContext(1, phases.append), FIND)
    assert phases == ["indexing guide: 0 of 3 files", "indexing guide: 3 of 3 files"]


async def test_japanese_stays_readable_and_what_cannot_be_written_is_replaced() -> None:
    stand_in: Any = Mock(
        aclose=AsyncMock(), hits_with_passages=AsyncMock(return_value={"items": ["日本語🐍", "\ud800"]})
    )
    async with desk(Settings(), "modern", toolset=ManualsToolset(Settings(), manuals=stand_in)) as here:
        answer = await here.ask("manual_hits", trace_id="t1")
    assert answer["result"]["content"][0]["text"] == '{"items":["日本語🐍","\ufffd"]}'
    assert answer["result"]["structuredContent"] == {"items": ["日本語🐍", "\ufffd"]}


# manual_ls comes first


@pytest.mark.rule("M2.4")
@pytest.mark.parametrize("tool", AFTER_LS)
async def test_a_tool_needs_an_earlier_listing(toolset: ManualsToolset, tool: str) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        error = await here.fail(tool, **AFTER_LS[tool])
        assert error == {
            "code": "invalid_parameter",
            "message": f"{tool} needs a successful manual_ls earlier in the same session; call manual_ls first.",
            "details": {"required_first_call": "manual_ls"},
        }
        await here.call("manual_ls")
        await here.call(tool, **AFTER_LS[tool])


@pytest.mark.rule("M2.4")
async def test_a_listing_that_failed_does_not_count_and_one_of_a_manual_does(toolset: ManualsToolset) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.fail("manual_ls", id="nowhere")
        await here.fail("manual_ls", id=5)
        assert (await here.fail("manual_toc", manual_id="guide"))["details"] == {"required_first_call": "manual_ls"}
        await here.call("manual_ls", id="guide")
        await here.call("manual_toc", manual_id="guide")


@pytest.mark.rule("M2.4")
async def test_each_stream_has_a_memory_of_its_own_and_modern_requests_have_none(toolset: ManualsToolset) -> None:
    await toolset.tools[1].handler(CallContext(1), AFTER_LS["manual_toc"])  # without a server
    async with desk(Settings(), toolset=toolset) as one, desk(Settings(), toolset=toolset) as other:
        modern = Desk(one.client, "modern")
        for tool, arguments in AFTER_LS.items():
            await modern.call(tool, **arguments)
        await one.call("manual_hits", trace_id=(await modern.call("manual_find", **FIND))["trace_id"])
        await modern.call("manual_ls")
        await one.fail("manual_toc", manual_id="guide")
        await one.call("manual_ls")
        await one.call("manual_toc", manual_id="guide")
        await other.fail("manual_toc", manual_id="guide")
        await other.call("manual_ls")
        assert (await one.call("manual_read", ref=INTRO))["applied"]["mode"] == "read"
        assert (await other.call("manual_read", ref=INTRO))["applied"]["mode"] == "read"


@pytest.mark.rule("M3.6", "M4.11", "M6.2", "M7.3")
@pytest.mark.parametrize("tool", AFTER_LS)
async def test_who_takes_the_root_for_a_manual_is_told_which_there_are(toolset: ManualsToolset, tool: str) -> None:
    wrong = {"ref": {**INTRO, "manual_id": "manuals"}, "manual_id": "manuals"}
    wrong = {name: wrong.get(name, value) for name, value in AFTER_LS[tool].items()}
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        await here.call("manual_ls", id="guide")
        for client in (here, Desk(here.client, "modern")):
            error = await client.fail(tool, **wrong)
            assert (error["code"], error["details"]["candidate_ids"]) == ("invalid_parameter", ["guide", "other"])


@pytest.mark.parametrize("name", ["co\xadop.md", "\ufeffa.md", "a\u200e.md", "a\u200bb.md", "exe\u202edm.md"])
async def test_a_file_whose_name_shows_otherwise_than_it_is_is_told_and_not_offered(
    toolset: ManualsToolset, tmp_path: Path, name: str
) -> None:
    (tmp_path / "guide" / name).write_text("# Zebra\n\nA zebra.\n", encoding="utf-8")
    async with desk(Settings(), toolset=toolset) as here:
        found = await here.call("manual_search", query="zebra")
        listed = await here.call("manual_ls", id="guide")
    assert found["results"] == []
    assert "guide: 1 file not searched (name_not_served)" in found["reason"]
    assert not {name, name.encode("ascii", "ignore").decode()} & {row["name"] for row in listed["items"]}


async def test_what_a_search_cannot_serve_is_unscanned_with_the_reason(toolset: ManualsToolset, tmp_path: Path) -> None:
    odd = possible("back\\slash.md")
    for name in odd:
        (tmp_path / "guide" / name).write_text("token", encoding="utf-8")
    (tmp_path / "guide/picture.md").write_bytes(b"\x89PNG\0")
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        found = await here.call("manual_find", **FIND)
        rows = (await here.call("manual_hits", trace_id=found["trace_id"], kind="unscanned"))["items"]
    assert {row["path"]: row["reason"] for row in rows} == {
        **dict.fromkeys(odd, "name_not_served"),
        "picture.md": "not_text",
    }


# Reading on


async def modes(here: Desk, *lines: int | None, **more: Any) -> list[tuple[str, str]]:
    """Read sections of the intro by their lines; return mode and text of each answer."""
    answers = [await here.call("manual_read", ref={**INTRO, "start_line": line}, **more) for line in lines]
    return [(answer["applied"]["mode"], answer["text"].strip()) for answer in answers]


@pytest.mark.rule("M6.7")
async def test_another_section_in_between_makes_it_an_ordinary_read(toolset: ManualsToolset) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        assert [mode for mode, _ in await modes(here, 4, 7, 4)] == ["read", "read", "read"]


@pytest.mark.rule("M6.7")
async def test_a_section_that_was_cut_goes_on_at_the_beginning_of_a_line(
    toolset: ManualsToolset, tmp_path: Path
) -> None:
    lines = ["# Long", *(f"{number} " + "x" * 40 for number in range(20))]
    (tmp_path / "guide/intro.md").write_text("\n".join(lines), encoding="utf-8")
    for cut in range(256, 300):  # also just before and just behind the end of a line
        async with desk(Settings(), toolset=ManualsToolset(settings_for(tmp_path))) as here:
            await here.call("manual_ls")
            first = await here.call("manual_read", ref=INTRO, max_chars=cut)
            then = await here.call("manual_read", ref=INTRO, max_chars=1000)
        whole = [line for line in first["text"].split("\n") if line in lines]
        assert then["text"] == "\n".join(lines[len(whole) :])
        assert then["applied_range"]["start_line"] == len(whole) + 1


async def test_a_line_longer_than_a_page_goes_on_within_itself(toolset: ManualsToolset, tmp_path: Path) -> None:
    text = "# " + "x" * 600
    (tmp_path / "guide/intro.md").write_text(text, encoding="utf-8")
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        pages = [await here.call("manual_read", ref={**INTRO, "start_line": 1}, max_chars=300) for _ in range(3)]
    assert "".join(page["text"] for page in pages) == text


@pytest.mark.rule("M6.7")
async def test_a_section_whose_file_has_changed_is_read_anew_and_says_so(
    toolset: ManualsToolset, tmp_path: Path
) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        assert "note" not in await here.call("manual_read", ref={**INTRO, "start_line": 4})
        (tmp_path / "guide/intro.md").write_text(
            "# Intro\nhello\n\n## Setup\nnew\n\n## Use\nsecond\n", encoding="utf-8"
        )
        again = await here.call("manual_read", ref={**INTRO, "start_line": 4})
        assert (again["applied"]["mode"], again["text"]) == ("read", "## Setup\nnew\n")
        assert "changed" in again["note"]
        then = await here.call("manual_read", ref={**INTRO, "start_line": 4})
        assert (then["applied"]["mode"], then["text"]) == ("scan_fallback", "## Use\nsecond\n")


@pytest.mark.rule("M6.7")
async def test_agents_on_one_connection_are_told_how_to_see_a_section_that_another_has_read(
    toolset: ManualsToolset,
) -> None:
    """A connection is all that a client of this revision names itself by: a call says nothing of its agent."""
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        answers = [await here.call("manual_read", ref={**INTRO, "start_line": 4}) for _agent in range(3)]
        assert [answer["applied"]["mode"] for answer in answers] == ["read", "scan_fallback", "read"]
        for answer in answers:
            assert ("start_line 4" in answer.get("note", "")) is (answer["applied"]["mode"] == "scan_fallback")
        page = await here.call("manual_scan", **INTRO, start_line=4)
        assert page["text"].startswith("## Setup\nfirst\n")


async def test_other_files_in_between_change_nothing_and_without_memory_a_section_is_read_again(
    toolset: ManualsToolset,
) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
        await modes(here, 4)
        await here.call("manual_read", ref={**INTRO, "path": "api/auth.md"})
        await here.call("manual_scan", **INTRO)
        assert await modes(here, 4) == [("scan_fallback", "## Use\nsecond")]
        assert [mode for mode, _ in await modes(Desk(here.client, "modern"), 4, 4)] == ["read", "read"]


async def test_of_very_many_files_the_ones_read_last_are_remembered(toolset: ManualsToolset, tmp_path: Path) -> None:
    text = "# A\na\n# B\n" + "b" * 600
    for number in range(300):
        (tmp_path / f"other/{number}.md").write_text(text, encoding="utf-8")

    async with desk(Settings(), toolset=toolset) as here:

        async def mode(number: int) -> str:
            ref = {"manual_id": "other", "path": f"{number}.md"}
            answer = await here.call("manual_read", ref=ref, max_chars=256)
            return str(answer["applied"]["mode"])

        await here.call("manual_ls")
        assert {await mode(number) for number in range(200)} == {"read"}
        assert await mode(0) == "scan_fallback"
        assert {await mode(number) for number in range(200, 300)} == {"read"}
        assert [await mode(0), await mode(299), await mode(1)] == ["scan_fallback", "scan_fallback", "read"]


# How they fail


def failing(error: Exception) -> ManualsToolset:
    """Return the tools over manuals that cannot be listed."""
    stand_in: Any = Mock(aclose=AsyncMock(), ls=AsyncMock(side_effect=error))
    return ManualsToolset(Settings(), manuals=stand_in)


async def test_tool_errors_have_one_form_whatever_settings_say_of_the_other_tools(toolset: ManualsToolset) -> None:
    for way in ("error", "result"):
        settings = Settings(server=ServerSettings(tool_errors=way))
        async with desk(settings, toolset=toolset) as here:
            assert (await here.fail("manual_ls", id=5))["code"] == "invalid_parameter"


@every_revision
async def test_problems_of_the_configuration_fail_every_call(tmp_path: Path, revision: str) -> None:
    problem = "request.max_retries: expected an integer, got x; correct it."
    async with desk(settings_for(fill(tmp_path), problems=(problem,)), revision) as here:
        for tool in TOOLS:
            error = await here.fail(tool, **AFTER_LS.get(tool, {}))
            assert error["code"] == "conflict"
            assert problem in error["message"]


async def test_without_a_folder_each_call_says_what_to_set() -> None:
    async with desk(Settings(), toolset=ManualsToolset(Settings())) as here:
        error = await here.fail("manual_ls")
        assert error["code"] == "conflict"
        assert "MANUALS_ROOT" in error["message"]


@every_revision
async def test_a_bug_is_not_taken_for_a_failure_of_the_tool(revision: str) -> None:
    async with desk(Settings(), revision, toolset=failing(ZeroDivisionError("secret"))) as here:
        answer = await here.ask("manual_ls")
    assert answer["error"] == {"code": -32603, "message": "Internal error"}


def test_a_failure_that_is_not_the_tools_own_is_worded_the_same_way() -> None:
    for tool in ManualsToolset(Settings()).tools:
        failure = tool.failure("The server is full.")
        assert json.loads(failure.text) == {"code": "conflict", "message": "The server is full."}
        assert failure.error is None


async def test_a_failure_can_be_written_whatever_characters_are_in_it() -> None:
    toolset = failing(ManualsError("conflict", "broken \ud800.", path="\ud800"))
    async with desk(Settings(), toolset=toolset) as here:
        error = await here.fail("manual_ls", **{"\ud800日本": 1})
        assert '"\ufffd日本" is no argument' in error["message"]
        assert (await here.fail("manual_ls"))["details"] == {"path": "\ufffd"}


async def test_closing_the_toolset_closes_the_manuals_if_there_are_any(toolset: ManualsToolset) -> None:
    async with desk(Settings(), toolset=toolset) as here:
        await here.call("manual_ls")
    with pytest.raises(ToolError, match="manuals are closed"):
        await toolset.tools[0].handler(CallContext(1), {})
    await ManualsToolset(Settings()).aclose()
