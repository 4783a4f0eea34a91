"""What a tool returns or raises reaches its client as a result, a failure or an internal error, and nobody else."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.base import CallContext, ToolError, ToolFailure, ToolSuccess
from tests.both_ways import way
from tests.one_tool import OneTool

pytestmark = pytest.mark.clock("virtual")

__all__ = ["way"]

Act = Callable[[], Awaitable[Any]]


def acting(act: Act) -> OneTool:
    """Return a toolset whose tool does `act`."""

    async def work(context: CallContext, arguments: Mapping[str, Any]) -> Any:
        return await act()

    return OneTool(work)


def returning(outcome: Any) -> Act:
    async def act() -> Any:
        await trio.lowlevel.checkpoint()
        return outcome

    return act


def raising(*errors: Exception) -> Act:
    """Raise an error, or several as a group."""

    async def act() -> None:
        await trio.lowlevel.checkpoint()
        raise errors[0] if len(errors) == 1 else ExceptionGroup("", errors)

    return act


def failed(text: str) -> ToolError:
    return ToolError(ToolFailure(text))


def grouped(*errors: Exception) -> ExceptionGroup[Exception]:
    return ExceptionGroup("", errors)


async def fail_in_a_nursery() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        raise failed("first")


async def fail_in_nested_nurseries() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(fail_in_a_nursery)


def failing_when_cancelled(error: Exception) -> Act:
    """Hold two tasks, one of which answers a cancel with an error of its own."""

    async def clean_up() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise error

    async def act() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(clean_up)

    return act


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


FAILURES: dict[str, Act] = {
    "alone": raising(failed("first")),
    "a text": raising(ToolError("first")),
    "in a group": raising(grouped(failed("first"))),
    "several": raising(failed("first"), failed("second")),
    "in a group in a group": raising(grouped(failed("first")), failed("second")),
    "out of a nursery": fail_in_a_nursery,
    "out of a nursery in a nursery": fail_in_nested_nurseries,
}
BUG = ValueError("sk-canary")
CRASHES: dict[str, Act] = {
    "a failure and a bug": raising(failed("first"), BUG),
    "a bug in a group in a group": raising(grouped(BUG), failed("second")),
    "a bug alone": raising(BUG),
}
UNSENDABLE: dict[str, Act] = {
    "nothing": returning(None),
    "a text": returning("done"),
    "a dict": returning({"text": "done"}),
    "no number of JSON": returning(ToolSuccess("x", {"x": float("nan")})),
    "an object": returning(ToolSuccess("x", {"x": object()})),
    "what is nested too deeply": returning(ToolSuccess("x", {"x": nested(100_000)})),
}


@pytest.mark.parametrize("act", FAILURES.values(), ids=FAILURES)
async def test_failures_alone_are_the_first_of_them(act: Act, caplog: pytest.LogCaptureFixture) -> None:
    async with connected_client(Settings(), toolsets=[acting(act)]) as client:
        answer = await client.call("work")
        assert answer["result"] == {"content": [{"type": "text", "text": "first"}], "isError": True}
        await client.ask("ping")
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


@pytest.mark.parametrize(
    ("act", "told"),
    [
        *((act, "crashed with ValueError; this is a bug in the tool, whose traceback is") for act in CRASHES.values()),
        *((act, "returned what cannot be sent; this is a bug in the tool") for act in UNSENDABLE.values()),
    ],
    ids=[*CRASHES, *UNSENDABLE],
)
async def test_a_bug_hurts_only_its_own_call_and_is_told_in_one_line(
    act: Act, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected_client(Settings(), toolsets=[acting(act), OneTool(answer_late, "other")]) as client:
        other = await client.start_call("other")
        assert (await client.call("work"))["error"] == {"code": -32603, "message": "Internal error"}
        assert "result" in await client.response(other)
        assert client.server.in_flight == 0
    [warning] = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert f"work {told}" in warning
    assert "canary" not in warning


async def answer_late(_: CallContext, __: Mapping[str, Any]) -> ToolSuccess:
    await trio.sleep(5)
    return ToolSuccess("done")


async def test_a_failure_beside_a_cancel_of_the_client_is_not_told() -> None:
    toolset = acting(failing_when_cancelled(failed("while cleaning up")))
    async with connected_client(Settings(), toolsets=[toolset]) as client:
        call = await client.start_call("work")
        await trio.testing.wait_all_tasks_blocked()
        await client.cancel(call)
        await client.ask("ping")
        await trio.sleep(5)
        assert not [message for message in client.heard if message.get("id") == call]
        assert client.server.in_flight == 0


@pytest.mark.parametrize("error", [failed("x"), ValueError("x")], ids=["failure", "bug"])
async def test_a_failure_beside_a_cancel_of_the_server_does_not_come_out_of_it(error: Exception) -> None:
    settings = Settings(server=ServerSettings(drain_timeout_ms=1000))
    async with connected_client(settings, toolsets=[acting(failing_when_cancelled(error))]) as client:
        await client.start_call("work")
        await client.end_input()
        await client.wait_end()
        assert trio.current_time() < 2
