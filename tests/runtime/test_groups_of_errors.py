"""What a host's tool raises out of a nursery of its own: groups, in any depth and beside cancels."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.protocol.revisions import ToolFailure, ToolSuccess
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.base import CallContext, ToolError
from tests.both_ways import way
from tests.one_tool import OneTool

pytestmark = pytest.mark.clock("virtual")

__all__ = ["way"]

Act = Callable[[], Awaitable[None]]


def acting(act: Act) -> OneTool:
    """Return a toolset whose tool does `act`."""

    async def work(context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        await act()
        return ToolSuccess("done")

    return OneTool(work)


def failed(text: str) -> ToolError:
    return ToolError(ToolFailure(text))


def raising(error: BaseException) -> Act:
    async def act() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    return act


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


ONLY_FAILURES: dict[str, Act] = {
    "alone": raising(failed("first")),
    "in a group": raising(ExceptionGroup("", [failed("first")])),
    "several": raising(ExceptionGroup("", [failed("first"), failed("second")])),
    "in a group in a group": raising(ExceptionGroup("", [ExceptionGroup("", [failed("first")]), failed("second")])),
    "out of a nursery": fail_in_a_nursery,
    "out of a nursery in a nursery": fail_in_nested_nurseries,
}
CRASHES: dict[str, Act] = {
    "a failure and a bug": raising(ExceptionGroup("", [failed("first"), ValueError("sk-canary")])),
    "a bug in a group in a group": raising(
        ExceptionGroup("", [ExceptionGroup("", [ValueError("sk-canary")]), failed("second")])
    ),
    "a bug alone": raising(ValueError("sk-canary")),
}


@pytest.mark.parametrize("act", ONLY_FAILURES.values(), ids=ONLY_FAILURES)
async def test_a_group_of_failures_alone_is_the_first_of_them(act: Act, caplog: pytest.LogCaptureFixture) -> None:
    async with connected_client(Settings(), toolsets=[acting(act)]) as client:
        answer = await client.call("work")
        assert answer["result"] == {"content": [{"type": "text", "text": "first"}], "isError": True}
        await client.ask("ping")
    assert not [record for record in caplog.records if record.levelname != "DEBUG"]


@pytest.mark.parametrize("act", CRASHES.values(), ids=CRASHES)
async def test_a_group_with_anything_else_in_it_is_a_crash_named_by_the_bug(
    act: Act, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected_client(Settings(), toolsets=[acting(act)]) as client:
        assert (await client.call("work"))["error"] == {"code": -32603, "message": "Internal error"}
        await client.ask("ping")
    [warning] = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert "crashed with ValueError; this is a bug in the tool, whose traceback is logged at DEBUG (--debug)" in warning
    assert "canary" not in warning


async def test_a_failure_beside_a_cancel_of_the_client_is_not_told() -> None:
    async with connected_client(
        Settings(), toolsets=[acting(failing_when_cancelled(failed("while cleaning up")))]
    ) as client:
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
