"""Runs as tasks of MCP, as a client that declares the extension sees them.

- A call of `research` is answered at once with a task; `tasks/get` has its phase, and in the end what `research_result`
  would have given. Clients that declare nothing, or declared it in another request, get what they always got.
- A call of an answer tool in the background becomes a task after `request.task_after_ms`, and is paid for once.
- A cancel before the task is made cancels the call, and the run of an answer tool; one after it does nothing.
- `tasks/cancel` reaches the API, is answered at once, and works from another server on the folder, as `tasks/get` does.
"""

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
from responses_mcp.configured import configured_toolsets
from responses_mcp.settings.model import Profile, ResearchSettings, ServerSettings, Settings
from responses_mcp.testing import Error
from responses_mcp.testing.client import TAKES_TASKS, ServedClient, connected_client
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.research import ResearchToolset
from responses_mcp.toolsets.tasks import RunsToolset
from tests.research.upstream import Upstream, researching, settings_for, slow

pytestmark = pytest.mark.clock("virtual")

TASK_AFTER = 10.0
PLAIN = {**TAKES_TASKS, "io.modelcontextprotocol/clientCapabilities": {}}
BACKGROUND = Profile(background=True)


@asynccontextmanager
async def client_of(
    upstream: Upstream, folder: Path, *, profile: Profile = BACKGROUND, tools: bool = True, **research: Any
) -> AsyncGenerator[ServedClient]:
    """Serve the answer tools and, with `tools`, those of research, as the settings would put them together."""
    settings = replace(settings_for(folder, **research), model_profiles=MappingProxyType({"answer": profile}))
    kind = ResearchToolset if tools else RunsToolset
    runs = kind(lambda: researching(upstream, folder, settings=settings))
    hand_off = partial(runs.answer, task_seconds=TASK_AFTER)
    answers = AnswerToolset(lambda: Asker(settings, api=upstream.api(), hand_off=hand_off), task_of=runs.answer_of)
    async with connected_client(Settings(), toolsets=[answers, runs], initialize=False) as client:
        yield client


async def begin(client: ServedClient, name: str = "research", **arguments: Any) -> Any:
    """Call a tool, and return the task that it became."""
    message = await client.ask_with_tasks("tools/call", {"name": name, "arguments": {"query": "why?", **arguments}})
    task = message["result"]
    assert task["resultType"] == "task", task
    return task


async def get(client: ServedClient, task_id: str) -> Any:
    message = await client.ask_with_tasks("tasks/get", {"taskId": task_id})
    return message["result"]


async def ended(client: ServedClient, task_id: str) -> Any:
    while (task := await get(client, task_id))["status"] == "working":  # noqa: ASYNC110  # it is polled
        await trio.sleep(task["pollIntervalMs"] / 1000)
    return task


# What becomes a task, and for whom


async def test_research_is_answered_at_once_with_a_task_that_ends_as_research_result_would(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        task = await begin(client)
        assert trio.current_time() < 1
        assert task["taskId"].startswith("run_")
        assert task["ttlMs"] == 7 * 86_400_000
        assert task["createdAt"] == "2001-09-09T01:46:40.000Z"
        done = await ended(client, task["taskId"])
        assert (done["status"], done["createdAt"]) == ("completed", task["createdAt"])
        call = {"name": "research_result", "arguments": {"run_id": task["taskId"]}}
        same = (await client.ask("tools/call", {**call, "_meta": PLAIN}))["result"]
        assert done["result"] == same
        assert same["structuredContent"]["status"] == "completed"
    assert upstream.kinds == ["ask"]


async def test_a_task_tells_its_phase_and_is_asked_for_more_rarely_as_it_lasts(tmp_path: Path) -> None:
    async with client_of(slow(60.0), tmp_path) as client:
        task = await begin(client)
        assert task["pollIntervalMs"] == 1000
        seen = []
        for _ in range(3):
            await trio.sleep(50)
            seen.append(await get(client, task["taskId"]))
        assert [each["pollIntervalMs"] for each in seen] == [2500, 5000, 5000]
        assert all(each["statusMessage"] for each in seen)
        assert seen[0]["lastUpdatedAt"] < seen[1]["lastUpdatedAt"]


@pytest.mark.parametrize("meta", [None, PLAIN], ids=["legacy", "modern"])
async def test_a_client_that_declares_nothing_gets_no_task(meta: Any, tmp_path: Path) -> None:
    async with client_of(slow(), tmp_path) as client:
        await client.initialize()
        await begin(client)  # what one request declares holds for no other
        for name in ("research", "answer"):
            call: dict[str, Any] = {"name": name, "arguments": {"query": "what?"}}
            result = (await client.ask("tools/call", call if meta is None else {**call, "_meta": meta}))["result"]
            assert result["structuredContent"]["answer"].startswith("The answer to: what?")


async def test_a_run_that_fails_at_once_is_the_result_of_the_call(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        message = await client.ask_with_tasks("tools/call", {"name": "research", "arguments": {"query": ""}})
        assert (message["result"]["resultType"], message["result"]["isError"]) == ("complete", True)


async def test_an_answer_in_the_background_becomes_a_task_when_it_takes_long(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path, tools=False) as client:
        task = await begin(client, "answer")
        assert trio.current_time() == pytest.approx(TASK_AFTER, abs=0.5)
        done = await ended(client, task["taskId"])
        found = done["result"]["structuredContent"]
        assert list(found) == ["answer", "used_search", "citations", "model"]
        assert found["answer"].startswith("The answer to: why?")
        assert done["result"]["_meta"]["io.github.uchimanajet7/usage"]["total_tokens"] == 9245
    assert upstream.kinds == ["ask"]


async def test_a_quick_answer_in_the_background_is_no_task(tmp_path: Path) -> None:
    upstream = slow(0.1)
    async with client_of(upstream, tmp_path, tools=False) as client:
        message = await client.call_with_tasks("answer", {"query": "why?"})
        assert message["result"]["structuredContent"]["answer"].startswith("The answer to: why?")
        assert not [each for each in client.heard if "taskId" in each.get("result", {})]
    assert upstream.kinds == ["ask"]


@pytest.mark.parametrize(
    "profile", [Profile(), Profile(background=True, request={"store": False})], ids=["foreground", "unstored"]
)
async def test_an_answer_that_is_not_kept_in_the_background_is_no_task(profile: Profile, tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path, profile=profile) as client:
        message = await client.ask_with_tasks("tools/call", {"name": "answer", "arguments": {"query": "why?"}})
        assert message["result"]["structuredContent"]["answer"].startswith("The answer to: why?")
    assert upstream.kinds == ["ask"]


async def test_without_a_folder_that_can_be_written_an_answer_is_a_plain_call(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    upstream = slow()
    async with client_of(upstream, tmp_path / "file", tools=False) as client:
        message = await client.ask_with_tasks("tools/call", {"name": "answer", "arguments": {"query": "why?"}})
        assert message["result"]["structuredContent"]["answer"].startswith("The answer to: why?")
    assert upstream.kinds == ["ask"]


async def test_an_answer_that_fails_is_a_completed_task_whose_result_is_an_error(tmp_path: Path) -> None:
    async with client_of(slow(5.0), tmp_path, tools=False, timeout_ms=20_000) as client:
        task = await begin(client, "answer")
        done = await ended(client, task["taskId"])
        assert (done["status"], done["result"]["isError"]) == ("completed", True)
        assert done["result"]["content"][0]["text"]
        assert "structuredContent" not in done["result"]


# Cancels


async def test_a_cancel_before_the_task_is_made_cancels_the_run_of_an_answer(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        params = {"name": "answer", "arguments": {"query": "why?"}, "_meta": TAKES_TASKS}
        call = await client.request("tools/call", params)
        await trio.sleep(TASK_AFTER / 2)
        await client.cancel(call)
        await trio.sleep(5)
        assert [message for message in client.heard if message.get("id") == call] == []
    assert upstream.kinds == ["ask", "cancel"]


async def test_a_cancel_after_the_task_is_made_does_nothing(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        params = {"name": "answer", "arguments": {"query": "why?"}, "_meta": TAKES_TASKS}
        call = await client.request("tools/call", params)
        task = (await client.response(call))["result"]
        await client.cancel(call)
        assert (await ended(client, task["taskId"]))["status"] == "completed"
    assert upstream.kinds == ["ask"]


async def test_a_cancel_that_meets_the_request_sends_nothing(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        params = {"name": "research", "arguments": {"query": "why?"}, "_meta": TAKES_TASKS}
        call = {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params}
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "c"}}
        await client.send(call, cancel)
        await trio.sleep(30)
        assert client.heard == []
    assert upstream.kinds == []


@pytest.mark.parametrize("name", ["research", "answer"])
async def test_tasks_cancel_reaches_the_api_and_is_answered_at_once(name: str, tmp_path: Path) -> None:
    upstream = slow(2.0)
    upstream.latency = 0.5
    async with client_of(upstream, tmp_path) as client:
        task = await begin(client, name)
        await trio.sleep(3)
        before = trio.current_time()
        done = await client.ask_with_tasks("tasks/cancel", {"taskId": task["taskId"]})
        assert trio.current_time() - before < 0.4
        assert done["result"].keys() == {"resultType", "_meta"}
        assert (await ended(client, task["taskId"]))["status"] == "cancelled"
        again = await client.ask_with_tasks("tasks/cancel", {"taskId": task["taskId"]})
        assert "result" in again
    assert upstream.kinds == ["ask", "cancel"]


async def test_a_cancel_behind_which_the_server_ends_still_reaches_the_api(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as client:
        task = await begin(client)
        await trio.sleep(3)
        await client.request("tasks/cancel", {"taskId": task["taskId"], "_meta": TAKES_TASKS})
        await client.end_input()
        await client.wait_end()
    assert upstream.kinds == ["ask", "cancel"]


# Other servers


async def test_another_server_on_the_folder_tells_of_a_task_and_cancels_it(tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path) as one, client_of(upstream, tmp_path, tools=False) as other:
        task = await begin(one)
        await trio.sleep(3)
        seen = await get(other, task["taskId"])
        assert (seen["status"], seen["createdAt"]) == ("working", task["createdAt"])
        await other.ask_with_tasks("tasks/cancel", {"taskId": task["taskId"]})
        assert (await ended(other, task["taskId"]))["status"] == "cancelled"
        assert (await ended(one, task["taskId"]))["status"] == "cancelled"
    assert upstream.kinds.count("ask") == 1


@pytest.mark.parametrize("name", ["research", "answer"])
async def test_a_task_ends_though_its_server_does_and_the_next_one_has_the_result(name: str, tmp_path: Path) -> None:
    upstream = slow(2.0)
    async with client_of(upstream, tmp_path, tools=name == "research") as client:
        task = await begin(client, name)
        await client.end_input()
        await client.wait_end()
    await trio.sleep(100)
    async with client_of(upstream, tmp_path, tools=False) as client:
        done = await ended(client, task["taskId"])
        assert done["status"] == "completed"
        found = done["result"]["structuredContent"]
        assert found["answer"].startswith("The answer to: why?")
        assert ("run_id" in found) is (name == "research")
    assert upstream.kinds.count("ask") == 1


async def test_a_result_that_cannot_be_had_for_the_moment_is_waited_for(tmp_path: Path) -> None:
    upstream = slow(0.1)
    async with client_of(upstream, tmp_path) as client:
        task = await begin(client)
        await ended(client, task["taskId"])
    upstream.script = [Error(503)] * 20
    async with client_of(upstream, tmp_path) as client:
        seen = await get(client, task["taskId"])
        assert (seen["status"], seen["createdAt"]) == ("working", task["createdAt"])
        assert task["createdAt"] < seen["lastUpdatedAt"] < "2001-09-09T01:47"
        assert "503" in seen["statusMessage"]
        upstream.script.clear()
        assert (await ended(client, task["taskId"]))["status"] == "completed"


async def test_a_task_whose_answer_the_api_has_lost_says_so(tmp_path: Path) -> None:
    upstream = slow(0.1)
    async with client_of(upstream, tmp_path) as client:
        task = await begin(client)
        await ended(client, task["taskId"])
    upstream.stored.responses.clear()
    async with client_of(upstream, tmp_path) as client:
        done = await get(client, task["taskId"])
        assert (done["status"], done["createdAt"]) == ("completed", task["createdAt"])
        assert "no longer" in done["result"]["structuredContent"]["error"]


# Subscriptions


async def test_a_subscription_hears_of_its_tasks_until_they_have_ended(tmp_path: Path) -> None:
    upstream = slow()
    async with client_of(upstream, tmp_path) as client:
        ids = [(await begin(client, query=query))["taskId"] for query in ("why?", "what?")]
        wanted = {"taskIds": [*ids, "run_unknown", ids[0]]}
        listening = await client.request("subscriptions/listen", {"notifications": wanted, "_meta": TAKES_TASKS})
        await trio.sleep(60)
        told = [message["params"] for message in client.heard if message.get("method") == "notifications/tasks"]
        ack = next(each for each in client.heard if each.get("method") == "notifications/subscriptions/acknowledged")
        assert ack["params"]["notifications"] == {"taskIds": ids}
        for task_id in ids:
            states = [each["status"] for each in told if each["taskId"] == task_id]
            assert states[0] == "working"
            assert states.count("completed") == 1
            assert states[-1] == "completed"
            last = [each for each in told if each["taskId"] == task_id][-1]
            assert last["_meta"]["io.modelcontextprotocol/subscriptionId"] == listening
            assert last["result"] == (await get(client, task_id))["result"]


# What is offered


def offered(settings: Settings) -> bool:
    return any(getattr(each, "tasks", None) is not None for each in configured_toolsets(settings))


def test_tasks_are_offered_with_research_and_with_answers_in_the_background() -> None:
    kept = ResearchSettings(state_dir="/state")
    in_background = MappingProxyType({"answer": Profile(), "answer_detailed": BACKGROUND})
    assert not offered(Settings())
    assert not offered(Settings(research=kept))
    assert offered(Settings(research=kept, model_profiles=in_background))
    assert not offered(Settings(model_profiles=in_background))
    assert not offered(Settings(research=kept, model_profiles=MappingProxyType({"search": BACKGROUND})))
    assert offered(Settings(server=ServerSettings(toolsets=("answer", "research"))))
