"""Tasks of any toolset, served: what a source says reaches the client, and nothing that it does harms the server."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.serving import serve
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.testing.client import TAKES_TASKS, ServedClient, connected_client
from responses_mcp.toolsets.base import CallContext, Task, Tool, ToolError, ToolFailure, Toolset, ToolSuccess

pytestmark = pytest.mark.clock("virtual")

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def task(task_id: str = "t", **more: Any) -> Task:
    moment = "2026-11-29T06:00:00Z"
    usual = Task(id=task_id, status="working", message="a", created=moment, updated=moment, ttl_ms=9000, poll_ms=1000)
    return usual._replace(**more)


@dataclass
class Works(Toolset):
    """A toolset whose tool answers with a task; what is in `states`, by id, is what its tasks are."""

    states: dict[str, Task | Exception] = field(default_factory=dict[str, "Task | Exception"])
    cancelled: list[str] = field(default_factory=list[str])
    looks: int = 0

    @property
    def tasks(self) -> "Works":
        return self

    @property
    def tools(self) -> list[Tool]:
        schema = {"type": "object"}
        return [Tool(name="work", title="Work", description="Works.", input_schema=schema, handler=self.work)]

    async def work(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess | Task:
        await trio.lowlevel.checkpoint()
        return task() if context.takes_tasks or arguments else ToolSuccess("done")

    async def look(self, task_id: str) -> Task | None:
        self.looks += 1
        await trio.sleep(0.01)
        if isinstance(state := self.states.get(task_id), Exception):
            raise state
        return state

    async def cancel(self, task_id: str) -> bool:
        if await self.look(task_id) is None:
            return False
        self.cancelled.append(task_id)
        return True

    async def aclose(self) -> None: ...


@asynccontextmanager
async def client_of(*toolsets: Any, **server: Any) -> AsyncGenerator[ServedClient]:
    settings = Settings(server=ServerSettings(**server))
    async with connected_client(settings, toolsets=toolsets, initialize=False) as client:
        yield client


@asynccontextmanager
async def unread_client_of(*toolsets: Any, **server: Any) -> AsyncGenerator[ServedClient]:
    """Serve a client that reads nothing: a message that was taken to be written stays unwritten."""
    theirs, ours = trio.testing.memory_stream_pair()
    unread, _ = trio.testing.lockstep_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        serving = partial(serve, settings=Settings(server=ServerSettings(**server)), toolsets=toolsets)
        yield ServedClient(ours, await nursery.start(serving, theirs, unread))
        nursery.cancel_scope.cancel()


async def listen(client: ServedClient, *task_ids: str) -> str | int:
    params = {"notifications": {"taskIds": list(task_ids)}, "_meta": TAKES_TASKS}
    return await client.request("subscriptions/listen", params)


def told(client: ServedClient) -> list[tuple[str, str]]:
    """Return the tasks that the client was told of, and how far each was."""
    news = [each["params"] for each in client.heard if each.get("method") == "notifications/tasks"]
    return [(each["taskId"], each.get("statusMessage", each["status"])) for each in news]


async def test_the_source_that_knows_a_task_answers_for_it() -> None:
    one, other = Works({"a": task("a")}), Works({"b": task("b", status="cancelled")})
    async with client_of(one, other) as client:
        for task_id, status in (("a", "working"), ("b", "cancelled")):
            assert (await client.ask_with_tasks("tasks/get", {"taskId": task_id}))["result"]["status"] == status
            for method in ("tasks/cancel", "tasks/update"):
                params = {"taskId": task_id, "inputResponses": {"x": 1}}
                assert (await client.ask_with_tasks(method, params))["result"]["resultType"] == "complete"
    assert (one.cancelled, other.cancelled) == (["a"], ["b"])


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_an_id_that_is_unknown_or_none_is_invalid(method: str) -> None:
    async with client_of(Works({"t": task()})) as client:
        for params in ({}, {"taskId": 5}, {"taskId": "u"}, {"taskId": "u" * 10**6}):
            error = (await client.ask_with_tasks(method, params))["error"]
            assert error["code"] == -32602
            assert len(error["message"]) < 200


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
@pytest.mark.parametrize(("failure", "said"), [(ToolError("the disk is full"), "disk"), (ValueError("x"), "Internal")])
async def test_a_source_that_fails_is_an_error_of_that_request_alone(
    method: str, failure: Exception, said: str
) -> None:
    works = Works({"t": failure})
    async with client_of(works) as client:
        error = (await client.ask_with_tasks(method, {"taskId": "t"}))["error"]
        assert error["code"] == -32603
        assert said in error["message"]
        works.states["t"] = task()
        assert "result" in await client.ask_with_tasks(method, {"taskId": "t"})


async def test_a_tool_that_gives_a_task_to_a_client_that_takes_none_has_crashed() -> None:
    async with client_of(Works()) as client:
        await client.initialize()
        assert (await client.call("work"))["result"]["isError"] is False
        assert (await client.call("work", {"force": True}))["error"]["code"] == -32603


async def test_a_subscription_hears_each_change_once_and_then_nothing() -> None:
    works = Works({"a": task("a"), "b": task("b")})
    async with client_of(works) as client:
        await listen(client, "a", "unknown", "b", "unknown")
        await trio.sleep(5)
        works.states["a"] = task("a", message="searching")
        await trio.sleep(5)
        works.states |= {"a": task("a", status="completed", message="", outcome=ToolSuccess("x")), "b": task("b")}
        await trio.sleep(5)
        del works.states["b"]  # forgotten
        await trio.sleep(5)
        looks = works.looks
        await trio.sleep(50)
        assert works.looks == looks
        assert client.heard[0]["params"]["notifications"] == {"taskIds": ["a", "b"]}
        assert told(client) == [("a", "a"), ("b", "a"), ("a", "searching"), ("a", "completed")]
        assert client.server.in_flight == 1


async def test_a_task_that_cannot_be_told_for_a_while_is_looked_at_again() -> None:
    works = Works({"t": ToolError("the disk is full")})
    async with client_of(works) as client:
        await listen(client, "t")
        await trio.sleep(20)
        assert client.heard[0]["params"]["notifications"] == {"taskIds": ["t"]}
        works.states["t"] = task(status="completed", message="", outcome=ToolFailure("no"))
        await trio.sleep(20)
        assert told(client) == [("t", "completed")]


async def test_a_bug_in_a_source_ends_its_subscription_s_news_and_nothing_else() -> None:
    works = Works({"t": task()})
    async with client_of(works) as client:
        await listen(client, "t")
        await trio.sleep(1)
        works.states["t"] = ValueError("x")
        await trio.sleep(5)
        works.states["t"] = task(message="b")
        await trio.sleep(5)
        assert told(client) == [("t", "a")]
        assert "result" in await client.ask_with_tasks("tasks/get", {"taskId": "t"})


async def test_the_end_of_the_input_ends_subscriptions_and_the_looks_at_their_tasks() -> None:
    works = Works({"t": task()})
    async with client_of(works) as client:
        listening = await listen(client, "t")
        await trio.sleep(3)
        await client.end_input()
        before = trio.current_time()
        await client.wait_end()
        assert trio.current_time() - before < 1
        assert client.heard[-1]["id"] == listening
        assert client.heard[-1]["result"]["_meta"][SUBSCRIPTION] == listening


async def test_news_waits_for_a_client_that_does_not_read() -> None:
    works = Works({str(number): task(str(number), message="x" * 1000) for number in range(100)})
    async with unread_client_of(works, max_unsent_bytes=5000) as client:
        await listen(client, *works.states)
        await trio.sleep(2)
        assert client.server.session.unsent_bytes < 10_000
        await trio.sleep(60)
        assert client.server.session.unsent_bytes < 10_000
