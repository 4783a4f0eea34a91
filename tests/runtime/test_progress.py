"""Progress in virtual time: spacing, heartbeat, and silence at the right moments."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.protocol.revisions import ToolSuccess
from responses_mcp.runtime.progress import ProgressReporter
from responses_mcp.settings.model import Settings
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.base import CallContext
from tests.both_ways import way
from tests.one_tool import OneTool
from tests.protocol import a_tool

pytestmark = pytest.mark.clock("virtual")

__all__ = ["way"]


class Talker(OneTool):
    """A tool that says each (seconds, message) of its script at its time, and ends at the last."""

    def __init__(self, *script: tuple[float, str]) -> None:
        super().__init__(self.talk, "talk")
        self.script = script
        self.wanted: list[bool] = []

    async def talk(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        self.wanted.append(context.report is not None)
        began = trio.current_time()
        for at, message in self.script:
            await trio.sleep_until(began + at)
            if context.report is not None:
                context.report(message)
        return ToolSuccess("done")


def talk(token: object = "p") -> dict[str, Any]:
    return {"name": "talk", "_meta": {"progressToken": token}}


def progress_of(client: McpClient) -> list[tuple[float, str]]:
    return [
        (m["params"]["progress"], m["params"]["message"])
        for m in client.heard
        if m.get("method") == "notifications/progress"
    ]


@pytest.mark.rule("spec 2.2")
async def test_phases_arrive_in_order_with_rising_values_and_then_the_answer() -> None:
    talker = Talker((0, "searching"), (1, "reading example.com"), (2, "writing"), (3, ""))
    async with connected_client(Settings(), toolsets=[talker]) as client:
        call = await client.request("tools/call", talk())
        await client.response(call)
        assert progress_of(client) == [(1, "searching"), (2, "reading example.com"), (3, "writing")]
        assert client.heard[-1]["id"] == call


async def test_without_a_token_nothing_is_said_and_the_tool_knows() -> None:
    talker = Talker((0, "a"), (100, "b"))
    async with connected_client(Settings(), toolsets=[talker]) as client:
        await client.call("talk")
        assert progress_of(client) == []
        assert talker.wanted == [False]


async def test_a_call_that_thinks_for_70_seconds_keeps_a_client_with_a_20_second_idle_limit() -> None:
    async with connected_client(Settings(), toolsets=[Talker((0, "thinking"), (70, ""))]) as client:
        call = await client.request("tools/call", talk())
        silence = 0.0
        while not any(m.get("id") == call for m in client.heard):
            before = trio.current_time()
            with trio.fail_after(20):
                await client.news()
            silence = max(silence, trio.current_time() - before)
        assert trio.current_time() == 70
        assert silence <= 15
        messages = [message for _, message in progress_of(client)]
        assert messages == ["thinking"] + [f"thinking ({seconds} s)" for seconds in (12, 24, 36, 48, 60)]


async def test_a_flood_is_thinned_to_four_a_second_and_the_newest_wins() -> None:
    script = [(number / 100, f"message {number}") for number in range(101)]
    async with connected_client(Settings(), toolsets=[Talker(*script, (2, ""))]) as client:
        await client.response(await client.request("tools/call", talk()))
        said = progress_of(client)
        assert 4 <= len(said) <= 6
        assert said[0][1] == "message 0"
        assert said[-1][1] == "message 100"
        values = [value for value, _ in said]
        assert values == sorted(set(values))


async def test_a_message_held_back_is_dropped_when_the_call_ends_first() -> None:
    async with connected_client(Settings(), toolsets=[Talker((0, "a"), (0.1, "b"))]) as client:
        call = await client.request("tools/call", talk())
        await client.response(call)
        await trio.sleep(20)
        assert progress_of(client) == [(1, "a")]


async def test_a_reporter_that_is_stopped_in_the_step_of_its_deadline_stays_silent() -> None:
    said: list[str] = []
    reporter = ProgressReporter(lambda value, message: said.append(message))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(reporter.beat)
        await trio.sleep(11.9999)
        reporter.stop()
        reporter.report("late")
        await trio.sleep(20)
    assert said == []


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("searched: cut \ud83d", "searched: cut \ufffd"),
        ("searched: a\n b " + "x" * 500, ("searched: a b " + "x" * 500)[:200]),
    ],
)
async def test_a_message_is_made_one_short_line_without_lone_surrogates(said: str, told: str) -> None:
    async with connected_client(Settings(), toolsets=[Talker((0, said), (1, ""))]) as client:
        await client.response(await client.request("tools/call", talk()))
        assert progress_of(client) == [(1, told)]


def test_a_client_that_does_not_read_is_sent_only_the_newest_progress() -> None:
    from responses_mcp.protocol.session import Session

    session = Session({"talk": a_tool("talk")}, version="1", line_mode=True)
    session.receive_data(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')
    session.take_output()
    session.output_written()
    line = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"talk","_meta":{"progressToken":0}}}\n'
    call: Any = session.receive_data(line)[0].call
    for value in range(1, 1000):
        session.report(call, value, f"message {value}")
    assert session.unsent_bytes < 600
    assert b"message 999" in session.take_output()
