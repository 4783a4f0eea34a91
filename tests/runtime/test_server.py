"""The Trio shell over in-memory streams: concurrency, cancellation, back-pressure and the end."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.protocol.revisions import ToolFailure, ToolSuccess
from responses_mcp.serving import serve
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.base import CallContext, ToolError
from tests.both_ways import way
from tests.hostile.corpus import ENVELOPE
from tests.one_tool import OneTool

pytestmark = pytest.mark.clock("virtual")

__all__ = ["way"]


class Bench(OneTool):
    """A toolset of one tool, `work`, that does what its arguments say, and remembers."""

    def __init__(self, description: str = "") -> None:
        super().__init__(self.work, description=description)
        self.started: list[object] = []
        self.cancelled: list[object] = []

    async def work(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        self.started.append(context.request_id)
        try:
            if "sleep" in arguments:
                await trio.sleep(arguments["sleep"])
            if arguments.get("hang"):
                await trio.sleep_forever()
        except trio.Cancelled:
            self.cancelled.append(context.request_id)
            raise
        return ToolSuccess(arguments.get("say", "done"))


def options(**server: Any) -> Settings:
    return Settings(server=ServerSettings(**server))


def said(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]


async def test_calls_run_at_once_and_answer_as_they_finish() -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        slow = await client.start_call("work", {"sleep": 10, "say": "slow"})
        fast = await client.start_call("work", {"sleep": 1, "say": "fast"})
        assert said(await client.response(fast)) == "fast"
        assert trio.current_time() == 1
        assert said(await client.response(slow)) == "slow"
        assert trio.current_time() == 10


async def test_a_cancel_reaches_the_tool_and_nothing_is_said_about_it() -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        hanging = await client.start_call("work", {"hang": True})
        other = await client.start_call("work", {"sleep": 5})
        await trio.testing.wait_all_tasks_blocked()
        await client.cancel(hanging, "user")
        assert said(await client.response(other)) == "done"
        await trio.sleep(15)
        assert bench.cancelled == [hanging]
        assert not [m for m in client.heard if m.get("id") == hanging]
        assert client.server.in_flight == 0


@pytest.mark.clock("real")
@pytest.mark.parametrize("fails", [True, False])
async def test_lone_surrogates_of_a_tool_are_replaced_and_an_id_comes_back_as_it_came(*, fails: bool) -> None:
    async def half(_context: CallContext, _arguments: Mapping[str, Any]) -> ToolSuccess:  # noqa: ASYNC124  # a handler is one
        if fails:
            raise ToolError(ToolFailure("half \udc80"))
        return ToolSuccess("half \udc80", {"日本\ud83d": ["\ud83d\ude00", "\udc80"]})

    async with connected_client(Settings(), toolsets=[OneTool(half)]) as client:
        with trio.fail_after(30):
            answer = await client.response(await client.request("tools/call", {"name": "work"}, id="\ud800"))
    assert answer["id"] == "\ud800"
    shown = json.dumps({key: value for key, value in answer.items() if key != "id"}, ensure_ascii=False)
    assert shown.encode()
    assert "half \ufffd" in shown
    if not fails:
        assert answer["result"]["structuredContent"] == {"日本\ufffd": ["😀", "\ufffd"]}


# The end of input


async def test_open_subscriptions_are_ended_with_a_result_and_hold_nothing_up() -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        listening = await client.request("subscriptions/listen", {"notifications": {}, "_meta": ENVELOPE})
        await client.end_input()
        assert (await client.response(listening))["result"]["resultType"] == "complete"
        await client.wait_end()
        assert trio.current_time() == 0


async def test_the_end_of_input_with_nothing_in_flight_ends_at_once() -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        await client.end_input()
        await client.wait_end()
        assert trio.current_time() < 0.1
        await trio.testing.wait_all_tasks_blocked()
        assert bench.closed == 1


EVER = 1e9
END = EVER  # of the input; another number is the grace of a stop


@pytest.mark.rule("P8", "spec 6.1")
@pytest.mark.parametrize(
    ("asked", "work", "ends"),
    [
        ([(0, END)], 9, 9),
        ([(0, END)], EVER, 10),  # drain_timeout_ms
        ([(0, 5)], 3, 3),
        ([(0, 0)], EVER, 0),
        ([(0, END), (2, 1)], EVER, 3),
        ([(0, 1), (0, 5)], EVER, 1),
        ([(0, 5), (0, 1)], EVER, 1),
    ],
)
async def test_a_call_may_finish_within_the_least_of_the_times_that_are_left_to_it(
    asked: list[tuple[float, float]], work: float, ends: float
) -> None:
    bench = Bench()
    async with connected_client(options(drain_timeout_ms=10_000), toolsets=[bench]) as client:
        call = await client.start_call("work", {"sleep": work})
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        for at, grace in asked:
            await trio.sleep_until(began + at)
            if grace == END:
                await client.end_input()
            else:
                client.server.stop(grace)
        await client.wait_end()
        assert ends <= trio.current_time() - began < ends + 0.1
        await trio.testing.wait_all_tasks_blocked()
        assert bench.cancelled == ([call] if work == EVER else [])
        (answer,) = [message for message in client.heard if message.get("id") == call]
        assert answer["result"]["isError"] is (work == EVER)
        assert bench.closed == 1


@pytest.mark.rule("P8", "spec 6.1")
async def test_the_end_of_input_cuts_off_no_call_that_somebody_waits_for() -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        call = await client.start_call("work", {"sleep": 3_000})
        await client.end_input()
        assert said(await client.response(call)) == "done"
        await client.wait_end()
    assert 3_000 <= trio.current_time() < 3_001


@pytest.mark.clock("real")
@pytest.mark.parametrize("grace", [float("nan"), -5, "5", None])
async def test_a_grace_that_is_no_time_is_refused_and_stops_nothing(grace: Any) -> None:
    async with connected_client(Settings(), toolsets=[Bench()]) as client:
        with pytest.raises(ValueError, match="grace is not a number of seconds"):
            client.server.stop(grace)
        assert said(await client.call("work")) == "done"


@pytest.mark.rule("spec 6.1")
@pytest.mark.parametrize("framed", [False, True], ids=["in lines", "framed"])
@pytest.mark.parametrize(("stopped", "words"), [(False, "MCP_DRAIN_TIMEOUT_MS"), (True, "asked to stop")])
async def test_calls_cut_off_at_the_end_are_told_to_the_client_and_in_one_line_of_the_log(
    stopped: bool, words: str, framed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    settings = options(drain_timeout_ms=3_000)
    async with connected_client(settings, toolsets=[Bench()], framed=framed) as client:
        answered = await client.start_call("work", {"sleep": 1})
        cut = [await client.start_call("work", {"hang": True}) for _ in range(2)]
        cancelled = await client.start_call("work", {"hang": True})
        await client.cancel(cancelled)
        await trio.testing.wait_all_tasks_blocked()
        if stopped:
            client.server.stop(3)
        else:
            await client.end_input()
        await client.wait_end()
        assert trio.current_time() < 3.1
        assert said(await client.response(answered)) == "done"
        for call in cut:
            result = (await client.response(call))["result"]
            assert result["isError"]
            assert words in result["content"][0]["text"]
        assert not [message for message in client.heard if message.get("id") == cancelled]
        assert client.server.in_flight == 2
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith("server: 2 calls were cut off")


async def test_a_client_that_does_not_read_holds_up_the_end_by_a_second_at_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    to_server, from_client = trio.testing.lockstep_stream_one_way_pair()
    to_client, _never_read = trio.testing.lockstep_stream_one_way_pair()
    async with trio.open_nursery() as nursery:
        settings = options(drain_timeout_ms=3_000)
        serving = partial(serve, settings=settings, toolsets=[Bench()])
        server = await nursery.start(serving, from_client, to_client)
        await to_server.send_all(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"work","arguments":{"hang":true}}}\n'
        )
        await to_server.aclose()
    assert 3 <= trio.current_time() <= 4.1
    assert server.in_flight == 1
    assert "server: 1 call was cut off" in caplog.text


@pytest.mark.clock("real")
async def test_a_toolset_that_cannot_be_closed_keeps_nothing_else_open(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Bench):
        async def aclose(self) -> None:
            raise OSError("stuck")

    bench = Bench()
    with trio.fail_after(30):
        async with connected_client(options(), toolsets=[Stubborn(), bench]) as client:
            await client.end_input()
            await client.wait_end()
            await trio.testing.wait_all_tasks_blocked()
            assert bench.closed == 1
    assert "OSError" in caplog.text


@pytest.mark.clock("real")
@pytest.mark.parametrize("wanted", [False, True])
async def test_instructions_reach_the_client_s_model_only_if_they_are_wanted(wanted: bool) -> None:
    async with connected_client(options(instructions=wanted), toolsets=[Bench()], initialize=False) as client:
        hello = await client.initialize()
        text = hello["result"].get("instructions", "")
    assert bool(text) is wanted
    assert len(text) <= 600


@pytest.mark.clock("real")
@pytest.mark.parametrize("framed", [False, True], ids=["in lines", "framed"])
async def test_the_debug_log_tells_of_every_stage_also_of_the_first_messages(
    framed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "responses_mcp")
    with trio.fail_after(30):
        async with connected_client(options(), toolsets=[Bench()], framed=framed, initialize=False) as client:
            await client.ask("ping")
    stages = [record.getMessage().partition("=")[0] for record in caplog.records][: 6 if framed else 5]
    header = ["headerEnd"] if framed else []
    sent = f"send {'framed' if framed else 'line'} bytes"
    assert stages == ["stdin chunk", *header, "recv method", "recv json", sent, "send json"]
    if framed:
        body = next(message for message in caplog.messages if message.startswith("recv json=")).removeprefix(
            "recv json="
        )
        assert f"headerEnd={len(f'Content-Length: {len(body)}') + 4}" in caplog.messages
