"""Calls of answer tools that become runs of research when they take too long (`request.handoff_ms`).

- A call that is quick enough is answered as ever, with what it used; it was asked for once.
- One that takes longer is answered by the contract's object, whose text names the run; that run goes on to its end.
- A cancelled call cancels its run, at the API too. A run that fails is a failed call.
- Without the setting, without storage, or without a folder for runs, nothing is handed off.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.asking import Asker
from responses_mcp.research.runs import open_research
from responses_mcp.settings.model import (
    Profile,
    RequestSettings,
    ResearchSettings,
    ServerSettings,
    Settings,
    UsageSettings,
)
from responses_mcp.testing import Error, open_fake_api
from responses_mcp.testing.client import ServedClient, connected_client
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.research import ResearchToolset
from responses_mcp.toolsets.tasks import RunsToolset
from tests.processes import WAIT
from tests.research.upstream import OPENAI, Upstream, researching, settings_for, slow
from tests.usage.test_ledger import rows

pytestmark = pytest.mark.clock("virtual")

SECONDS = 5.0


@asynccontextmanager
async def client_of(
    upstream: Upstream, folder: Path, *, seconds: float = SECONDS, **profile: Any
) -> AsyncGenerator[ServedClient]:
    """Serve the answer tools, which hand off after some seconds, and the research tools, over one upstream."""
    settings = replace(settings_for(folder), model_profiles=MappingProxyType({"answer": Profile(**profile)}))
    research = ResearchToolset(lambda: researching(upstream, folder, settings=settings))
    hand_off = partial(research.answer, seconds=seconds)
    answers = AnswerToolset(lambda: Asker(settings, api=upstream.api(), hand_off=hand_off))
    async with connected_client(Settings(), toolsets=[answers, research]) as client:
        yield client


async def called(client: ServedClient, name: str, **arguments: Any) -> Any:
    result = (await client.call(name, arguments))["result"]
    assert not result.get("isError")
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    return result["structuredContent"]


async def listed(client: ServedClient) -> Any:
    return (await called(client, "research_list"))["runs"]


async def test_a_call_that_is_quick_enough_is_answered_as_ever(tmp_path: Path) -> None:
    upstream = slow(0.1)
    async with client_of(upstream, tmp_path) as client:
        result = (await client.call("answer", {"query": "why?", "domains": ["a.jp"]}))["result"]
    found = result["structuredContent"]
    assert list(found) == ["answer", "used_search", "citations", "model"]
    assert found["answer"].startswith("The answer to: why?")
    assert result["_meta"]["io.github.uchimanajet7/usage"]["total_tokens"] == 9245
    (asked,) = upstream.asked
    assert asked.json["input"].endswith("recency_days=60, max_results=5, domains=a.jp")
    assert (asked.json["background"], asked.json["store"]) == (True, True)


async def test_a_call_that_takes_longer_is_answered_by_the_run_that_goes_on(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        before = trio.current_time()
        found = await called(client, "answer_quick", query="why?")
        assert trio.current_time() - before == pytest.approx(SECONDS)
        assert list(found) == ["answer", "used_search", "citations", "model"]
        assert (found["used_search"], found["citations"]) == (False, [])
        (run,) = await listed(client)
        assert run["status"] == "running"
        assert f"Call research_result with run_id {run['run_id']}" in found["answer"]
        ended = await called(client, "research_result", run_id=run["run_id"])
        assert (ended["status"], ended["answer"][:19]) == ("completed", "The answer to: why?")
    assert upstream.kinds == ["ask"]


async def test_the_same_question_asked_twice_is_two_calls(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        texts = {(await called(client, "answer", query="why?"))["answer"] for _ in range(2)}
        assert len(texts) == len(await listed(client)) == 2
    assert upstream.kinds == ["ask", "ask"]


async def test_a_cancelled_call_cancels_its_run_at_the_api(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        call = await client.start_call("answer", {"query": "why?"})
        await trio.sleep(3)
        await client.cancel(call)
        (run,) = await listed(client)
        assert (await called(client, "research_result", run_id=run["run_id"]))["status"] == "cancelled"
        assert [message for message in client.heard if message.get("id") == call] == []
    assert upstream.kinds == ["ask", "cancel"]


async def test_a_call_that_is_cancelled_after_it_was_handed_off_leaves_the_run_alone(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        call = await client.start_call("answer", {"query": "why?"})
        await trio.sleep(SECONDS + 1)
        await client.cancel(call)
        (run,) = await listed(client)
        assert (await called(client, "research_result", run_id=run["run_id"]))["status"] == "completed"
    assert upstream.kinds == ["ask"]


@pytest.mark.parametrize("name", ["answer", "answer_detailed"])
async def test_a_run_that_fails_is_a_failed_call_that_says_why(name: str, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(401)]
    async with client_of(upstream, tmp_path) as client:
        error = (await client.call(name, {"query": "why?"}))["error"]
    assert (error["code"], error["message"]) == (-32001, "answer failed")
    assert "401" in error["data"]["message"]


async def test_calls_are_answered_however_many_runs_go_on(tmp_path: Path) -> None:
    upstream = slow(0.1)
    async with client_of(upstream, tmp_path) as client:
        upstream.stored.interval = 1000.0
        for number in range(8):
            await called(client, "research", query=f"{number}?", wait_seconds=0)
        refused = await client.call("research", {"query": "one more?"})
        assert "research.max_running" in refused["result"]["content"][0]["text"]
        upstream.stored.interval = 0.1
        assert (await called(client, "answer", query="why?"))["answer"].startswith("The answer")


async def test_an_answer_that_is_not_to_be_kept_is_not_handed_off(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(401)]
    async with client_of(upstream, tmp_path, request={"store": False}) as client:
        await client.call("answer", {"query": "why?"})
        assert await listed(client) == []
    assert "background" not in upstream.asked[0].json


async def test_where_no_run_can_be_kept_the_call_is_answered_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", "utf-8")
    upstream = slow()
    upstream.script = [Error(401)]
    async with client_of(upstream, tmp_path / "file") as client:
        await client.call("answer", {"query": "why?"})
    assert "background" not in upstream.asked[0].json


@pytest.mark.clock("real")
@pytest.mark.parametrize(
    ("toolsets", "handoff_ms", "handed"),
    [(("answer", "research"), 60_000, True), (("answer", "research"), 0, False), (("answer",), 60_000, False)],
)
async def test_a_server_as_configured_hands_off_with_the_setting_and_the_toolset(
    tmp_path: Path, toolsets: tuple[str, ...], handoff_ms: int, *, handed: bool
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            settings = replace(
                settings_for(tmp_path),
                openai=replace(OPENAI, base_url=api.base_url),
                request=RequestSettings(trust_env=False, handoff_ms=handoff_ms),
                server=ServerSettings(toolsets=toolsets),
            )
            async with connected_client(settings) as client:
                found = await called(client, "answer", query="why?")
            assert found["answer"].startswith("The answer to: why?")
            assert [request.json.get("background") for request in api.requests] == [True if handed else None]


@pytest.mark.clock("real")
async def test_a_run_that_another_server_finishes_is_in_the_ledger_under_the_tool_that_asked(tmp_path: Path) -> None:
    upstream = slow(0.05)
    with trio.fail_after(WAIT):
        async with client_of(upstream, tmp_path, seconds=0.1) as client:  # which writes no ledger
            await called(client, "answer", query="why?")
            [run] = await listed(client)
        settings = replace(settings_for(tmp_path), usage=UsageSettings(ledger=True))
        async with researching(upstream, tmp_path, settings=settings) as research:
            assert (await research.result(run["run_id"], wait_seconds=WAIT)).status == "completed"
        now = 1e9 + trio.current_time()
    names = [rows(tmp_path, by, 2, now)[0].name for by in ("tool", "client")]
    assert names == ["answer", "responses_mcp.testing"]


async def test_without_a_folder_for_runs_the_call_is_answered_all_the_same() -> None:
    upstream = slow()
    settings = replace(settings_for(Path()), research=ResearchSettings())
    runs = RunsToolset(lambda: open_research(settings, api=upstream.api()))
    hand_off = partial(runs.answer, seconds=60.0)
    asker = Asker(settings, api=upstream.api(), hand_off=hand_off)
    async with connected_client(Settings(), toolsets=[AnswerToolset(lambda: asker), runs]) as client:
        result = (await client.call("answer", {"query": "why?"}))["result"]
    assert result["structuredContent"]["answer"].startswith("The answer to: why?")
    assert "background" not in upstream.asked[0].json


async def test_a_refused_key_has_the_same_cure_for_a_client_as_without_a_run(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(401)]
    async with client_of(upstream, tmp_path) as client:
        failed = await client.call("answer", {"query": "why?"})
    assert "restart the client" in failed["error"]["data"]["message"]
