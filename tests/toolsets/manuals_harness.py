"""The manual tools over a small folder, asked as clients of both revisions ask."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.settings.model import ManualsSettings, Settings
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.manuals import ManualsToolset
from tests.hostile.corpus import ENVELOPE

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
REVISIONS = ("legacy", "modern")

TOOLS = ("manual_ls", "manual_toc", "manual_find", "manual_hits", "manual_read", "manual_scan", "manual_search")
SCHEMAS = {tool.name: tool.definition["outputSchema"] for tool in ManualsToolset(Settings()).tools}


def book(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into `root`, by their paths, and return it."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def fill(root: Path) -> Path:
    """Write two small manuals into `root` and return it; `other` has seven sections about a token."""
    files = {
        "guide/intro.md": "# Intro\nhello\n\n## Setup\nfirst\n\n## Use\nsecond\n",
        "guide/api/auth.md": "# Auth\ntoken 二要素\n",
        "guide/data.json": '{"limit": 5}\n',
        "other/x.md": "".join(f"# Title {number}\ntoken\n" for number in range(7)),
    }
    return book(root, files)


async def ask(client: McpClient, revision: str, method: str, /, **params: Any) -> dict[str, Any]:
    """Return the whole answer to a request of one revision."""
    with trio.fail_after(WAIT):
        return await client.ask(method, params if revision == "legacy" else {**params, "_meta": ENVELOPE})


class Desk:
    """A client of one revision at the tools."""

    def __init__(self, client: McpClient, revision: str) -> None:
        self.client = client
        self.revision = revision

    async def ask(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the whole answer to a call."""
        return await ask(self.client, self.revision, "tools/call", name=tool, arguments=arguments)

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Return what a call gives, after a look at what is the same in all good results."""
        result = (await self.ask(tool, **arguments))["result"]
        assert result["isError"] is False, result["content"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        Draft202012Validator(SCHEMAS[tool]).validate(result["structuredContent"])
        structured: dict[str, Any] = result["structuredContent"]
        return structured

    async def fail(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
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
    return Settings(manuals=ManualsSettings(root=str(root)), **more)


@asynccontextmanager
async def desk(
    settings: Settings, revision: str = "legacy", *, toolset: ManualsToolset | None = None
) -> AsyncGenerator[Desk]:
    """Serve `toolset`, by default what `settings` turn on, to a client of `revision`."""
    toolsets = None if toolset is None else [toolset]
    async with connected_client(settings, toolsets=toolsets, initialize=revision == "legacy") as client:
        yield Desk(client, revision)
