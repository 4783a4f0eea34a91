"""The manual tools over a small folder, asked as clients of both eras ask."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.manuals.checks import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.listing import list_children, table_of_contents
from responses_mcp.manuals.reading import ReadEnd, read, scan
from responses_mcp.manuals.requests import FindRequest, HitsRequest, LsRequest, ReadRequest, ScanRequest, TocRequest
from responses_mcp.manuals.traces import page
from responses_mcp.settings.model import ManualsSettings, Settings
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.manuals import ManualsToolset

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS = ("legacy", "modern")

TOOLS = ("manual_ls", "manual_toc", "manual_find", "manual_hits", "manual_read", "manual_scan")
SCHEMAS = {tool.name: tool.definition["outputSchema"] for tool in ManualsToolset(Settings()).tools}


class Shelf:
    """Stands for `Manuals`: the same folder without threads and index. A find finds what its script says."""

    def __init__(self, root: Path) -> None:
        self.folder = Folder(root)
        self.finds: list[FindRequest] = []
        self.reads: list[tuple[ReadRequest, int | None]] = []
        self.payload = payload()
        self.closed = 0
        self.bug: Exception | None = None

    async def ls(self, request: LsRequest) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if self.bug is not None:
            raise self.bug
        return list_children(self.folder, request)

    async def toc(self, request: TocRequest) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return table_of_contents(self.folder, request, unchecked)

    async def find(self, request: FindRequest, *, on_phase: Callable[[str], None] | None = None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        self.finds.append(request)
        if on_phase is not None:
            on_phase("searching")
        return {**self.payload, "trace_id": "t1"}

    def hits(self, request: HitsRequest, *, compact: bool = False) -> dict[str, Any]:
        if request.trace_id != "t1":
            raise ManualsError("not_found", "trace_id is unknown; run manual_find again.")
        return page(self.payload, request, compact=compact)

    async def read(self, request: ReadRequest, *, after: int | None = None) -> tuple[dict[str, Any], ReadEnd]:
        await trio.lowlevel.checkpoint()
        self.reads.append((request, after))
        return read(self.folder, request, unchecked, after=after)

    async def scan(self, request: ScanRequest) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        return scan(self.folder, request, unchecked)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.closed += 1


def row(path: str, line: int, title: str, score: float) -> dict[str, Any]:
    ref = {
        "target": "manual", "manual_id": "guide", "path": path, "start_line": line, "json_path": None, "title": title,
        "signals": ["exact"],
    }  # fmt: skip
    return {
        "ref": ref, "path": path, "start_line": line, "title": title,
        "score": score, "score_lexical": score, "score_fused": score, "matched_tokens": ["token"],
        "token_hits": {"token": 2}, "match_coverage": 1.0, "rank_explain": [], "reason": None, "conflict_with": [],
        "gap_hint": None,
    }  # fmt: skip


def payload() -> dict[str, Any]:
    """Return what a find of two rows keeps."""
    return {
        "query": "q",
        "manual_id": "guide",
        "applied": {"required_effect_status": "required_effective", "required_failure_reason": None, "manual_id": "guide"},
        "summary": {"candidates": 7, "gap_count": 0},
        "claim_graph": {"claims": [], "evidences": [], "edges": [], "facets": []},
        "candidates": [row(f"a{number}.md", number, f"Title {number}", 1 / number) for number in range(1, 8)],
        "unscanned": [], "gaps": [], "gate_runs": [], "fusion_debug": [],
    }  # fmt: skip


def fill(root: Path) -> Path:
    """Write two small manuals into `root` and return it."""
    files = {
        "guide/intro.md": "# Intro\nhello\n\n## Setup\nfirst\n\n## Use\nsecond\n",
        "guide/api/auth.md": "# Auth\ntoken 二要素\n",
        "guide/data.json": '{"limit": 5}\n',
        "other/x.md": "plain\n",
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


class Desk:
    """A client of one era at the tools."""

    def __init__(self, client: McpClient, era: str) -> None:
        self.client = client
        self.era = era

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the whole answer to a call."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        with trio.fail_after(WAIT):
            return await self.client.ask(
                "tools/call", params if self.era == "legacy" else {**params, "_meta": ENVELOPE}
            )

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return what a call gives, after a look at what is the same in all good results."""
        result = (await self.ask(tool, **arguments))["result"]
        assert result["isError"] is False, result["content"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        Draft202012Validator(SCHEMAS[tool]).validate(result["structuredContent"])
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    async def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the error of a call, after a look at what is the same in all of them (design 3.3)."""
        result = (await self.ask(tool, **arguments))["result"]
        assert result["isError"] is True, result["content"]
        assert "structuredContent" not in result
        assert [content["type"] for content in result["content"]] == ["text"]
        error: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert error.keys() - {"details"} == {"code", "message"}
        assert error["message"].endswith(".")
        return error


def settings_for(root: Path, **more: Any) -> Settings:
    return Settings(manuals=ManualsSettings(root=str(root), in_memory=True), **more)


@asynccontextmanager
async def desk(
    settings: Settings, era: str = "legacy", *, toolset: ManualsToolset | None = None
) -> AsyncGenerator[Desk]:
    """Serve `toolset`, by default what `settings` turn on, to a client of `era`."""
    toolsets = None if toolset is None else [toolset]
    async with connected_client(settings, toolsets=toolsets, initialize=era == "legacy") as client:
        yield Desk(client, era)
