"""The Trio shell over in-memory streams: concurrency, cancellation, back-pressure and the end."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.daemon import serve
from responses_mcp.protocol.outcome import ToolFailure, ToolSuccess
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.base import CallContext, Tool, ToolError
from tests.both_ways import way

__all__ = ["way"]


class Bench:
    """A toolset of one tool, `work`, that does what its arguments say, and remembers."""

    def __init__(self) -> None:
        self.started: list[object] = []
        self.cancelled: list[object] = []
        self.closed = 0
        self.gate = trio.Event()

    @property
    def tools(self) -> list[Tool]:
        return [Tool(name="work", title="Work", description="", input_schema={"type": "object"}, handler=self.work)]

    async def work(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        self.started.append(context.request_id)
        try:
            if "sleep" in arguments:
                await trio.sleep(arguments["sleep"])
            if arguments.get("hang"):
                await self.gate.wait()
        except trio.Cancelled:
            self.cancelled.append(context.request_id)
            raise
        if "crash" in arguments:
            raise ZeroDivisionError("sk-canary")
        if "group" in arguments:
            raise ExceptionGroup("several", [ValueError("x")])
        if "wrong" in arguments:
            return arguments["wrong"]  # a mistake that its caller must survive
        if "no_json" in arguments:
            return ToolSuccess(
                "x", {"x": {"nan": float("nan"), "object": object(), "deep": nested(100_000)}[arguments["no_json"]]}
            )
        if "fail" in arguments:
            raise ToolError(ToolFailure("it failed"))
        return ToolSuccess(str(arguments.get("say", "done")) * arguments.get("times", 1))

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


def options(**server: Any) -> Settings:
    return Settings(server=ServerSettings(**server))


def said(message: dict[str, Any]) -> str:
    return message["result"]["content"][0]["text"]


async def test_calls_run_at_once_and_answer_as_they_finish(autojump_clock: trio.testing.MockClock) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        slow = await client.start_call("work", {"sleep": 10, "say": "slow"})
        fast = await client.start_call("work", {"sleep": 1, "say": "fast"})
        assert said(await client.response(fast)) == "fast"
        assert trio.current_time() == 1
        assert said(await client.response(slow)) == "slow"
        assert trio.current_time() == 10


async def test_pings_are_answered_while_calls_run(autojump_clock: trio.testing.MockClock) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        for _ in range(20):
            await client.start_call("work", {"hang": True})
        assert (await client.ask("ping"))["result"] == {}
        assert client.server.in_flight == 20


async def test_a_cancel_reaches_the_tool_and_nothing_is_said_about_it(autojump_clock: trio.testing.MockClock) -> None:
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


async def test_a_cancel_in_the_same_write_as_its_call_finds_it(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        await client.send(
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "tools/call",
                "params": {"name": "work", "arguments": {"hang": True}},
            },
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
        )
        await client.ask("ping")
        await trio.testing.wait_all_tasks_blocked()
        assert bench.cancelled in ([], [7])
        assert not [m for m in client.heard if m.get("id") == 7]


async def test_a_crash_is_contained_and_other_calls_go_on(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        other = await client.start_call("work", {"sleep": 5})
        for kind in ("crash", "group"):
            answer = await client.call("work", {kind: 1})
            assert answer["error"] == {"code": -32603, "message": "Internal error"}
        assert said(await client.response(other)) == "done"
    warnings = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert len(warnings) == 2
    assert "ZeroDivisionError" in warnings[0]
    assert "canary" not in "".join(warnings)


@pytest.mark.parametrize("kind", ["nan", "object", "deep"])
async def test_a_tool_that_returns_what_is_no_json_hurts_only_its_own_call(kind: str) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        answer = await client.call("work", {"no_json": kind})
        assert answer["error"] == {"code": -32603, "message": "Internal error"}
        assert said(await client.call("work")) == "done"


@pytest.mark.parametrize("wrong", [None, "done", {"text": "done"}], ids=["nothing", "text", "a dict"])
async def test_a_tool_that_returns_nothing_or_no_result_is_answered_all_the_same(wrong: object) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        answer = await client.call("work", {"wrong": wrong})
        assert answer["error"] == {"code": -32603, "message": "Internal error"}
        await client.ask("ping")
        assert client.server.in_flight == 0


async def test_a_tool_s_failure_reaches_the_client() -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        assert (await client.call("work", {"fail": 1}))["result"]["isError"] is True


@pytest.mark.parametrize(("mib", "code"), [(15, None), (17, -32600)])
async def test_by_default_a_message_of_more_than_16_mib_is_refused_and_skipped(mib: int, code: int | None) -> None:
    async with connected_client(Settings(), toolsets=[Bench()]) as client:
        with trio.fail_after(30):
            await client.request("ping", {"x": "y" * (mib << 20)}, id="long")
            assert (await client.ask("ping"))["result"] == {}
            [other] = [m for m in client.heard if m.get("id") in ("long", None) and "method" not in m]
            assert other.get("error", {}).get("code") == code


# The end of input


async def test_open_subscriptions_are_ended_with_a_result_and_hold_nothing_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        envelope = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        listening = await client.request("subscriptions/listen", {"notifications": {}, "_meta": envelope})
        await client.end_input()
        assert (await client.response(listening))["result"]["resultType"] == "complete"
        await client.wait_end()
        assert trio.current_time() == 0


async def test_the_end_of_input_with_nothing_in_flight_ends_at_once(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        await client.end_input()
        await client.wait_end()
        assert trio.current_time() < 0.1
        await trio.testing.wait_all_tasks_blocked()
        assert bench.closed == 1


async def test_calls_in_flight_may_finish_after_the_end_of_input(autojump_clock: trio.testing.MockClock) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        call = await client.start_call("work", {"sleep": 9})
        await client.end_input()
        assert said(await client.response(call)) == "done"
        await client.wait_end()
        assert trio.current_time() < 9.1


async def test_calls_that_outlast_the_drain_are_cancelled(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    async with connected_client(options(drain_timeout_ms=2500), toolsets=[bench]) as client:
        call = await client.start_call("work", {"hang": True})
        await client.end_input()
        await client.wait_end()
        assert 2.5 <= trio.current_time() < 2.6
        assert bench.cancelled == [call]
        assert bench.closed == 1


async def test_requests_written_and_closed_at_once_are_all_answered() -> None:
    async with connected_client(options(), toolsets=[Bench()], initialize=False) as client:
        lines = (
            b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n'
            b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
            b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"work"}}'
        )
        await client.send_bytes(lines)
        await client.end_input()
        with trio.fail_after(5):
            for id_ in (1, 2, 3):
                await client.response(id_)


async def test_a_server_that_is_stopped_reads_no_more_but_answers(autojump_clock: trio.testing.MockClock) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        call = await client.start_call("work", {"sleep": 3})
        await trio.testing.wait_all_tasks_blocked()
        client.server.stop(grace=5)
        assert said(await client.response(call)) == "done"
        await client.wait_end()
        assert trio.current_time() < 3.1


async def test_stopping_without_grace_cancels_what_runs(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        call = await client.start_call("work", {"hang": True})
        await trio.testing.wait_all_tasks_blocked()
        client.server.stop(grace=0)
        await client.wait_end()
        assert bench.cancelled == [call]


async def test_a_host_that_cancels_gets_everything_back_at_once(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    async with connected_client(options(), toolsets=[bench]) as client:
        await client.start_call("work", {"hang": True})
        await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() == 0
    assert len(bench.cancelled) == 1
    assert bench.closed == 1


async def test_stopping_during_the_drain_shortens_it(autojump_clock: trio.testing.MockClock) -> None:
    async with connected_client(options(), toolsets=[Bench()]) as client:
        await client.start_call("work", {"hang": True})
        await client.end_input()
        await trio.sleep(2)
        client.server.stop(grace=1)
        await client.wait_end()
        assert trio.current_time() == 3


async def test_the_shorter_of_two_graces_counts_whichever_was_asked_for_first(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for graces in ((1, 5), (5, 1)):
        began = trio.current_time()
        async with connected_client(options(), toolsets=[Bench()]) as client:
            await client.start_call("work", {"hang": True})
            await trio.testing.wait_all_tasks_blocked()
            for grace in graces:
                client.server.stop(grace)
            await client.wait_end()
            assert trio.current_time() == began + 1


async def test_a_toolset_that_cannot_be_closed_keeps_nothing_else_open(caplog: pytest.LogCaptureFixture) -> None:
    class Stubborn(Bench):
        @property
        def tools(self) -> list[Tool]:
            return []

        async def aclose(self) -> None:
            raise OSError("stuck")

    bench = Bench()
    with trio.fail_after(5):
        async with connected_client(options(), toolsets=[Stubborn(), bench]) as client:
            await client.end_input()
            await client.wait_end()
            await trio.testing.wait_all_tasks_blocked()
            assert bench.closed == 1
    assert "OSError" in caplog.text


# A peer that does not read


class StuckPeer:
    """Streams whose output nobody takes until `read` is called."""

    def __init__(self) -> None:
        self.to_server, self.server_in = trio.testing.memory_stream_one_way_pair()
        self.server_out, self.from_server = trio.testing.lockstep_stream_one_way_pair()


async def test_a_cancel_is_honoured_while_nobody_reads_the_output() -> None:
    bench, peer = Bench(), StuckPeer()
    client = McpClient(peer.from_server, peer.to_server)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_server, peer, bench, options())
        await client.request("initialize")
        for _ in range(100):
            await client.request("ping")
        call = await client.start_call("work", {"hang": True})
        await trio.testing.wait_all_tasks_blocked()
        await client.cancel(call)
        await trio.testing.wait_all_tasks_blocked()
        assert bench.cancelled == [call]
        await nursery.start(client.listen)
        await client.end_input()
        await client.wait_end()
        assert len(client.heard) == 101
        assert not [m for m in client.heard if m["id"] == call]


async def test_a_call_does_not_begin_while_too_much_is_unsent_and_nothing_is_lost() -> None:
    bench, peer = Bench(), StuckPeer()
    client = McpClient(peer.from_server, peer.to_server)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run_server, peer, bench, options(max_unsent_bytes=10_000))
        await client.request("initialize")
        big = await client.start_call("work", {"say": "x", "times": 20_000})
        await trio.testing.wait_all_tasks_blocked()
        late = await client.start_call("work", {"say": "late"})
        await trio.testing.wait_all_tasks_blocked()
        assert bench.started == [big]
        await nursery.start(client.listen)
        assert said(await client.response(late)) == "late"
        assert said(await client.response(big)) == "x" * 20_000
        await client.end_input()


async def test_a_peer_that_goes_away_ends_everything_quietly(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    to_server, server_in = trio.testing.memory_stream_one_way_pair()
    server_out, from_server = trio.testing.memory_stream_one_way_pair()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: serve(server_in, server_out, settings=options(), toolsets=[bench]))
            client = McpClient(from_server, to_server)
            await client.request("initialize")
            hanging = await client.start_call("work", {"hang": True})
            await trio.testing.wait_all_tasks_blocked()
            await from_server.aclose()
            await client.request("ping")
    assert bench.cancelled == [hanging]
    assert bench.closed == 1


async def run_server(peer: StuckPeer, bench: Bench, settings: Settings) -> None:
    await serve(peer.server_in, peer.server_out, settings=settings, toolsets=[bench])


@pytest.mark.parametrize("wanted", [False, True])
async def test_instructions_reach_the_client_s_model_only_if_they_are_wanted(wanted: bool) -> None:
    async with connected_client(options(instructions=wanted), toolsets=[Bench()], initialize=False) as client:
        hello = await client.initialize()
        text = hello["result"].get("instructions", "")
    assert bool(text) is wanted
    assert len(text) <= 600
