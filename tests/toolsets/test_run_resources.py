"""Reports of runs as resources: `run://ID` in both revisions, alone and beside the manuals.

- A server with the toolset has a template; without it nothing is offered, and nothing changes.
- The report comes whole, whatever its length, and costs nothing; data comes beside it.
- A run that is not known, goes on, or has no answer is an error that says so.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.settings.model import Settings
from responses_mcp.testing import Error, bodies
from responses_mcp.testing.client import TAKES_TASKS, ServedClient, connected_client
from responses_mcp.toolsets.base import Toolset
from responses_mcp.toolsets.manuals import ManualsToolset
from responses_mcp.toolsets.research import ResearchToolset
from responses_mcp.toolsets.tasks import RunsToolset
from tests.research.upstream import Upstream, researching, settings_for, slow
from tests.toolsets import manuals_harness

pytestmark = pytest.mark.clock("virtual")
every_revision = pytest.mark.parametrize("meta", [None, TAKES_TASKS], ids=["legacy", "modern"])


@asynccontextmanager
async def client_of(upstream: Upstream, folder: Path, *beside: Toolset) -> AsyncGenerator[ServedClient]:
    toolset = ResearchToolset(lambda: researching(upstream, folder), most_characters=100)
    async with connected_client(Settings(), toolsets=[*beside, toolset]) as client:
        yield client


async def ask(client: ServedClient, meta: Any, method: str, **params: Any) -> dict[str, Any]:
    return await client.ask(method, params if meta is None else {**params, "_meta": meta})


async def begun(client: ServedClient, *, wait: float = 280, **arguments: Any) -> str:
    call = {"query": "why?", "wait_seconds": wait, **arguments}
    return str((await client.call("research", call))["result"]["structuredContent"]["run_id"])


@every_revision
async def test_a_report_of_any_length_is_read_whole_and_paid_for_once(meta: Any, tmp_path: Path) -> None:
    report = "A sentence of the report. " * 5_000
    upstream = slow(0.01)
    upstream.stored.compose = lambda _: bodies.answer(report)
    async with client_of(upstream, tmp_path) as client:
        run_id = await begun(client)
        listed = (await ask(client, meta, "resources/templates/list"))["result"]["resourceTemplates"]
        assert [each["uriTemplate"] for each in listed] == ["run://{run_id}"]
        assert (await ask(client, meta, "resources/list"))["result"]["resources"] == []
        (content,) = (await ask(client, meta, "resources/read", uri=f"run://{run_id}"))["result"]["contents"]
    async with client_of(upstream, tmp_path) as another:
        assert (await ask(another, meta, "resources/read", uri=f"run://{run_id}"))["result"]["contents"] == [content]
    assert (content["uri"], content["mimeType"]) == (f"run://{run_id}", "text/markdown")
    assert content["text"].startswith(report.strip())
    assert len(upstream.of("ask")) == 1


async def test_data_is_read_beside_the_report(tmp_path: Path) -> None:
    upstream = slow(0.01)
    upstream.stored.compose = lambda _: bodies.answer('{"tax": 10}')
    async with client_of(upstream, tmp_path) as client:
        run_id = await begun(client, output_schema={"type": "object"})
        report, data = (await ask(client, None, "resources/read", uri=f"run://{run_id}"))["result"]["contents"]
    assert report["mimeType"] == "text/markdown"
    assert (data["mimeType"], data["text"]) == ("application/json", '{"tax": 10}')


@every_revision
async def test_a_run_without_a_report_is_an_error_that_says_why(meta: Any, tmp_path: Path) -> None:
    upstream = slow(60.0)

    async def refused(client: ServedClient, uri: Any) -> dict[str, Any]:
        return (await ask(client, meta, "resources/read", uri=uri))["error"]

    async with client_of(upstream, tmp_path) as client:
        goes_on = await begun(client, wait=0)
        error = await refused(client, f"run://{goes_on}")
        assert error["code"] == -32603
        assert "research_result" in error["message"]
        upstream.script = [Error(401)]
        error = await refused(client, f"run://{await begun(client, query='what?')}")
        assert (error["code"], "401" in error["message"]) == (-32603, True)
        for unknown in ("run://run_0", "run://", "file:///etc/passwd", "manual://a/b"):
            error = await refused(client, unknown)
            assert error["code"] == (-32002 if meta is None else -32602)
            assert meta is not None or error["data"] == {"uri": unknown}
        assert (await refused(client, 5))["code"] == -32602


@pytest.mark.clock("real")
async def test_runs_and_manuals_are_resources_of_one_server(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "intro.md").write_text("# Intro\n\nHello.\n", encoding="utf-8")
    upstream, state = slow(0.01), tmp_path / "state"
    manuals = ManualsToolset(manuals_harness.settings_for(tmp_path, research=settings_for(state).research))
    async with client_of(upstream, state, manuals) as client:
        listed = (await ask(client, None, "resources/templates/list"))["result"]["resourceTemplates"]
        assert [each["uriTemplate"] for each in listed] == ["manual://{manual_id}/{+path}", "run://{run_id}"]
        answer = await ask(client, None, "resources/read", uri=f"run://{await begun(client)}")
        assert answer["result"]["contents"][0]["text"].startswith("The answer to: why?")
        with trio.fail_after(60):
            assert (await ask(client, None, "resources/list"))["result"]["resources"]
            answer = await ask(client, None, "resources/read", uri="manual://guide/intro.md")
        assert "Hello." in answer["result"]["contents"][0]["text"]
        assert "manual" in (await ask(client, None, "resources/read", uri="file:///x"))["error"]["message"]


@pytest.mark.parametrize("kind", [ResearchToolset, RunsToolset])
async def test_only_a_server_with_the_toolset_offers_them(kind: type[RunsToolset], tmp_path: Path) -> None:
    toolset = kind(lambda: researching(slow(), tmp_path))
    async with connected_client(Settings(), toolsets=[toolset], initialize=False) as client:
        answer = await client.ask("initialize", {"protocolVersion": "2025-06-18"})
    assert ("resources" in answer["result"]["capabilities"]) == (kind is ResearchToolset)
