"""The research tools as clients see them: the loop of calls, what each answers, and that runs outlive calls."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.configured import configured_toolsets
from responses_mcp.settings.model import (
    OpenAISettings,
    RequestSettings,
    ResearchSettings,
    ServerSettings,
    Settings,
)
from responses_mcp.testing import as_stream, bodies, open_fake_api
from responses_mcp.testing.client import ServedClient, connected_client
from responses_mcp.toolsets.base import CallContext, ToolError
from responses_mcp.toolsets.research import ResearchToolset
from responses_mcp.toolsets.research_definitions import definitions
from responses_mcp.usage.models import AS_OF
from tests.processes import WAIT
from tests.research.upstream import Upstream, researching, settings_for, slow

pytestmark = pytest.mark.clock("virtual")

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
SCHEMAS = {shown.name: shown.output_schema for shown in definitions()}


@asynccontextmanager
async def client_of(upstream: Upstream, folder: Path, **research: Any) -> AsyncGenerator[ServedClient]:
    toolset = ResearchToolset(lambda: researching(upstream, folder, **research))
    async with connected_client(Settings(), toolsets=[toolset]) as client:
        yield client


async def called(client: ServedClient, name: str, **arguments: Any) -> Any:
    """Call a tool and return its structured content, which fits its schema and is what the text says."""
    message = await client.call(name, arguments)
    result = message["result"]
    assert result["isError"] is False, result
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    Draft202012Validator(SCHEMAS[name]).validate(result["structuredContent"])
    return result["structuredContent"]


async def refused(client: ServedClient, name: str, **arguments: Any) -> str:
    result = (await client.call(name, arguments))["result"]
    assert (result["isError"], "structuredContent" in result) == (True, False)
    return str(result["content"][0]["text"])


async def test_a_quick_run_is_answered_by_the_call_that_begins_it(tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        found = await called(client, "research", query="why?")
        assert found.pop("sources_read")
        assert {**found, "run_id": "", "answer": "", "citations": []} == {
            "status": "completed",
            "run_id": "",
            "answer": "",
            "used_search": True,
            "citations": [],
            "model": "gpt-5.2",
            "usage": {
                "input_tokens": 8512,
                "cached_tokens": 0,
                "output_tokens": 733,
                "reasoning_tokens": 512,
                "total_tokens": 9245,
                "web_searches": 1,
                "service_tier": "default",
                "attempts": 1,
            },
            "cost": {"usd": 0.035158, "prices_as_of": AS_OF},
            "seconds": 17.0,
        }


async def test_a_long_run_is_answered_by_the_loop_that_the_results_teach(tmp_path: Path) -> None:
    upstream = slow(10.0)
    async with client_of(upstream, tmp_path) as client:
        found = await called(client, "research", query="why?")
        assert (found["status"], found["seconds"]) == ("running", 50.0)
        assert found["run_id"] in found["next"]
        assert found["phase"]
        rounds = 0
        while found["status"] == "running":
            found = await called(client, "research_result", run_id=found["run_id"], wait_seconds="50")
            rounds += 1
        assert (found["status"], rounds) == ("completed", 3)
    assert upstream.kinds == ["ask"]


@pytest.mark.parametrize("tool", ["research", "research_result"])
async def test_a_call_that_waits_when_the_input_ends_tells_how_far_the_run_is(tool: str, tmp_path: Path) -> None:
    async with client_of(slow(30.0), tmp_path) as client:
        wait = 0 if tool == "research_result" else 280
        arguments: dict[str, Any] = {"query": "why?", "wait_seconds": wait}
        if tool == "research_result":
            run = await called(client, "research", **arguments)
            arguments = {"run_id": run["run_id"], "wait_seconds": 280}
        call = await client.start_call(tool, arguments)
        await trio.sleep(3)
        await client.end_input()
        found = (await client.response(call))["result"]["structuredContent"]
        assert (found["status"], found["run_id"][:4], found["phase"] != "") == ("running", "run_", True)


async def test_a_call_that_the_client_cancels_ends_at_once_and_its_run_goes_on(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        call = await client.start_call("research", {"query": "why?"})
        await trio.sleep(3)
        await client.cancel(call)
        (run,) = (await called(client, "research_list"))["runs"]
        assert run["status"] == "running"
        found = await called(client, "research_result", run_id=run["run_id"])
        assert found["status"] == "completed"
        assert [message for message in client.heard if message.get("id") == call] == []
    assert upstream.kinds == ["ask"]


async def test_a_run_can_be_cancelled_and_the_result_says_whether_the_api_confirmed(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        found = await called(client, "research", query="why?", wait_seconds=3)
        gone = await called(client, "research_cancel", run_id=found["run_id"])
        assert (gone["status"], gone["confirmed"], gone["maybe_paid"]) == ("cancelled", True, True)
        assert await called(client, "research_result", run_id=found["run_id"]) == gone
    assert upstream.kinds == ["ask", "cancel"]


async def test_a_run_that_fails_is_a_result_that_says_why(tmp_path: Path) -> None:
    async with client_of(slow(id_never_sent=True), tmp_path) as client:
        found = await called(client, "research", query="why?")
        assert (found["status"], found["maybe_paid"]) == ("failed", True)
        assert "may have been paid for" in found["error"]


async def test_the_next_server_on_the_folder_has_the_result(tmp_path: Path) -> None:
    upstream = slow(5.0)
    async with client_of(upstream, tmp_path) as client:
        found = await called(client, "research", query="why?", wait_seconds=10)
    async with client_of(upstream, tmp_path) as client:
        assert (await called(client, "research_result", run_id=found["run_id"], wait_seconds=280))["status"] == (
            "completed"
        )
    assert upstream.kinds.count("ask") == 1


async def test_progress_tells_the_phases(tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        params = {"name": "research", "arguments": {"query": "why?"}, "_meta": {"progressToken": 0}}
        await client.ask("tools/call", params)
        told = [message["params"]["message"] for message in client.heard if "method" in message]
        assert "searched: why?" in told
        assert "writing" in told


async def test_arguments_are_read_leniently_and_sent_as_they_are_meant(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        found = await called(
            client,
            "research",
            query="why?",
            effort=None,
            domains='["a.example"]',
            blocked_domains="b.example, c.example",
            recency_days="7",
            location='{"country": "JP"}',
            output_schema='{"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}',
            continue_from=None,
            wait_seconds=None,
            fresh="true",
        )
        assert found["data"] == {"why": "why?"}
    (tool,) = upstream.asked[0].json["tools"]
    assert tool["filters"] == {"allowed_domains": ["a.example"], "blocked_domains": ["b.example", "c.example"]}
    assert tool["user_location"] == {"type": "approximate", "country": "JP"}


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("research", {}, "query"),
        ("research", {"query": "q", "effort": "much"}, "effort"),
        ("research", {"query": "q", "effort": 3}, "effort"),
        ("research", {"query": "q", "location": "Tokyo"}, "location"),
        ("research", {"query": "q", "location": {"city": 3}}, "location"),
        ("research", {"query": "q", "output_schema": [1]}, "output_schema"),
        ("research", {"query": "q", "blocked_domains": 3}, "blocked_domains"),
        ("research", {"query": "q", "wait_seconds": "soon"}, "wait_seconds"),
        ("research", {"query": "q", "continue_from": ""}, "continue_from is not the run_id"),
        ("research", {"query": "q", "max_cost_usd": "much"}, "max_cost_usd must be"),
        ("research_result", {}, "run_id"),
        ("research_result", {"run_id": "run_0", "part": "last"}, "part"),
        ("research_result", {"run_id": "run_0"}, "no run with that id"),
        ("research_result", {"run_id": "x" * 100_000}, "no run with that id"),
        ("research_cancel", {"run_id": "run_0"}, "no run with that id"),
        ("research_list", {"limit": "all"}, "limit"),
    ],
)
async def test_what_cannot_be_done_is_a_result_that_names_the_argument_and_nothing_is_asked(
    name: str, arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        assert said in await refused(client, name, **arguments)
    assert upstream.asked == []


async def test_both_revisions_get_the_same_answers_and_errors_as_results(tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        params = {"name": "research", "arguments": {"query": "why?"}, "_meta": ENVELOPE}
        found = (await client.ask("tools/call", params))["result"]
        assert found["structuredContent"]["status"] == "completed"
        params = {"name": "research_result", "arguments": {"run_id": "run_0"}, "_meta": ENVELOPE}
        assert (await client.ask("tools/call", params))["result"]["isError"] is True


async def test_the_end_of_the_input_does_not_wait_for_runs(tmp_path: Path) -> None:
    upstream = slow(1000.0)
    async with client_of(upstream, tmp_path) as client:
        await called(client, "research", query="why?", wait_seconds=1)
        before = trio.current_time()
        await client.end_input()
        await client.wait_end()
        assert trio.current_time() - before <= 1.0
    assert upstream.open == 0


@pytest.mark.clock("real")
async def test_the_tools_are_offered_by_name_only_and_say_what_they_are(tmp_path: Path) -> None:
    def names(*toolsets: str) -> list[str]:
        settings = Settings(server=ServerSettings(toolsets=toolsets or None))
        return [tool.name for toolset in configured_toolsets(settings) for tool in toolset.tools]

    assert names() == ["answer", "answer_detailed", "answer_quick"]
    assert names("answer", "research")[3:] == ["research", "research_result", "research_cancel", "research_list"]
    read_only = {shown.name: shown.annotations["readOnlyHint"] for shown in definitions()}
    assert [name for name, is_ in read_only.items() if not is_] == ["research_cancel"]
    assert sum(len(json.dumps(shown._asdict())) for shown in definitions()) < 8500


@pytest.mark.clock("real")
async def test_without_a_server_the_tools_say_what_to_use_instead(tmp_path: Path) -> None:
    toolset = ResearchToolset(lambda: researching(slow(), tmp_path))
    with pytest.raises(ToolError, match="open_research"):
        await toolset.tools[0].handler(CallContext(1), {"query": "why?"})


@pytest.mark.clock("real")
async def test_a_server_as_configured_asks_over_real_sockets_with_a_real_file(tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            settings = Settings(
                openai=OpenAISettings(base_url=api.base_url),
                request=RequestSettings(trust_env=False),
                research=ResearchSettings(state_dir=str(tmp_path / "state")),
                server=ServerSettings(toolsets=("answer", "research")),
            )
            async with connected_client(settings) as client:
                assert not (tmp_path / "state").exists()
                found = await called(client, "research", query="why?")
                assert found["status"] == "completed"
            async with connected_client(settings) as client:
                assert (await called(client, "research_result", run_id=found["run_id"]))["answer"] == found["answer"]
            assert [request.method for request in api.requests] == ["POST", "GET"]


async def test_data_above_the_limit_of_a_result_is_left_out_which_the_result_says(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [as_stream(bodies.answer(json.dumps({"a": "y" * 1500})))] * 2
    toolset = ResearchToolset(lambda: researching(upstream, tmp_path), most_characters=1000)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    async with connected_client(Settings(), toolsets=[toolset]) as client:
        found = await called(client, "research", query="why?", output_schema=schema)
    assert (found["status"], "data" in found, len(found["answer"]) <= 1000) == ("completed", False, True)
    assert "server.max_result_chars" in found["error"]


async def test_a_result_tells_what_the_run_used_beside_it_as_the_results_of_other_tools_do(tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        begun = (await client.call("research", {"query": "why?", "wait_seconds": 1}))["result"]
        run_id = begun["structuredContent"]["run_id"]
        ended = (await client.call("research_result", {"run_id": run_id}))["result"]
        (listed,) = (await called(client, "research_list"))["runs"]
    assert "_meta" not in begun
    used = ended["_meta"]["io.github.uchimanajet7/usage"]
    assert (used["total_tokens"], used["attempts"], used["cost_usd"]) == (9245, 1, 0.035158)
    assert (listed["cost"], listed["usage"]) == tuple(ended["structuredContent"][name] for name in ("cost", "usage"))


async def test_a_long_report_is_read_to_its_end_in_parts_and_paid_for_once(tmp_path: Path) -> None:
    upstream = slow(0.01)
    report = " ".join(f"Sentence {number} of the report." for number in range(200))
    upstream.stored.compose = lambda _: bodies.answer(report)
    toolset = ResearchToolset(lambda: researching(upstream, tmp_path), most_characters=1000)
    async with connected_client(Settings(), toolsets=[toolset]) as client:
        found = await called(client, "research", query="why?")
        assert found["status"] == "completed", found
        parts = [found["answer"]]
        while "next" in found:
            assert (found["part"], len(found["answer"]) <= 1000) == (f"{len(parts)} of 6", True)
            found = await called(client, "research_result", run_id=found["run_id"], part=len(parts) + 1)
            parts.append(found["answer"])
    assert "".join(parts).startswith(report)
    assert upstream.kinds == ["ask"]


async def test_runs_can_be_told_apart_by_their_labels(tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        found = await called(client, "research", query="why?", label="taxes", effort="quick", wait_seconds=0)
        assert found["label"] == "taxes"
        listed = await called(client, "research_list")
        assert [(run["label"], run["effort"]) for run in listed["runs"]] == [("taxes", "quick")]
        assert listed["running"] == 1


@pytest.mark.clock("real")
async def test_stores_are_a_choice_of_the_configured_names_and_no_argument_without_any(tmp_path: Path) -> None:
    def argument(*stores: str) -> Any:
        chosen = replace(settings_for(tmp_path, stores=stores), server=ServerSettings(toolsets=("research",)))
        tools = [tool for toolset in configured_toolsets(chosen) for tool in toolset.tools]
        return next(tool for tool in tools if tool.name == "research").input_schema["properties"].get("stores")

    assert argument() is None
    assert argument("docs=vs_1", "law=vs_2")["items"]["enum"] == ["docs", "law"]
