"""What a cancel does: it closes the socket wherever it finds a call, and nothing more is sent or said for the call.

- At every stage of a request (look-up, connection, TLS, proxy, request, head, body) a cancel, or a deadline, closes the
  socket in one step: no descriptor waits for the collector. `CANCELS=500 pytest tests/test_cancellation.py` does it 500
  times at each stage.
- A request that waits for its place is never sent, and one that fails or is cancelled gives its place to the next.
- A cancel costs no further request, whether it comes during a wait between retries, at its very end, or while a failure
  is under way. It is not taken for the deadline, nor for the end of a try.
- Other calls and their connections are left alone.
- The client hears no more of a call that it cancelled.
"""

import gc
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from responses_mcp.asking import Asker
from responses_mcp.errors import ConnectionFailed, DeadlineExceeded
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request
from responses_mcp.responses_api.http.network import ConnectionPool
from responses_mcp.settings.model import OpenAISettings, SearchSettings, ServerSettings, Settings
from responses_mcp.testing import (
    Drip,
    Error,
    Hang,
    Json,
    Raw,
    RecordedRequest,
    Reset,
    Truncated,
    as_stream,
    bodies,
    open_fake_api,
)
from responses_mcp.testing.client import connected_client
from tests.processes import WAIT
from tests.responses_api.http.network import (
    Stream,
    ask,
    bare_environment,
    cancel_when_asked,
    connections,
    gone,
    jump_when_asked,
    listening,
    post,
    real_api,
)
from tests.responses_api.stub import KEY, Reply, refused, stub_api

__all__ = ["bare_environment"]
pytestmark = [pytest.mark.usefixtures("bare_environment"), pytest.mark.rule("P2", "P7", "spec 6.1")]

CANCELS = int(os.environ.get("CANCELS", "10"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
DESCRIPTORS = next(
    (path for path in map(Path, ("/proc/self/fd", "/dev/fd")) if os.name != "nt" and path.exists()), None
)


def open_descriptors() -> int:
    if DESCRIPTORS is None:
        pytest.skip("descriptors cannot be counted here")
    return len(list(DESCRIPTORS.iterdir()))


class Stall:
    """A server that does what it must to get a request to its stage, and nothing more."""

    def __init__(self, *answers: bytes, reads: bool = True) -> None:
        self._answers = answers
        self._reads = reads
        self.reached = trio.Event()
        self.gone = trio.Event()

    def again(self) -> None:
        self.gone.set()
        self.reached, self.gone = trio.Event(), trio.Event()

    async def serve(self, stream: Stream) -> None:
        reached, gone = self.reached, self.gone
        for answer in self._answers:
            await stream.receive_some()
            await stream.send_all(answer)
        if not self._reads:
            reached.set()
            await gone.wait()
            return
        if not self._answers:
            await stream.receive_some()
        reached.set()
        try:
            while await stream.receive_some():
                pass
        finally:
            gone.set()


@contextmanager
def hanging_look_ups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    release = threading.Event()

    def hang(*asked: int) -> None:
        if not asked[-1] & socket.AI_NUMERICHOST:  # what Trio asks first, without a thread
            release.wait(2 * WAIT)
        raise socket.gaierror(socket.EAI_NONAME, "released")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        yield
    finally:
        release.set()


@contextmanager
def full_backlog() -> Iterator[int]:
    """Give a port whose queue of connections is full, so that connecting to it takes for ever."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
            fillers.append(filler)
        try:
            yield server.getsockname()[1]
        finally:
            for filler in fillers:
                filler.close()


async def stalled(port: int, monkeypatch: pytest.MonkeyPatch, stage: str) -> tuple[ConnectionPool, str, bytes]:
    """Return connections on which a request gets to its stage and no further, its URL and its body."""
    url = f"http://127.0.0.1:{port}/v1"
    if stage.startswith("TLS"):
        url = f"https://localhost:{port}/v1"
    if "proxy" in stage:
        scheme = "https" if stage == "TLS to the proxy" else "http"
        monkeypatch.setenv("HTTPS_PROXY", f"{scheme}://127.0.0.1:{port}")
        url = "https://api.example/v1"
    if stage == "look-up":
        url = "http://name.example/v1"
    return await open_connections(url, limit=4), url, b"x" * (50_000_000 if stage == "request" else 10)


async def cancelled_again_and_again(
    over: ConnectionPool, url: str, body: bytes, reached: Callable[[], Awaitable[None]], by: str
) -> None:
    gc.collect()
    gc.disable()
    try:
        before = open_descriptors()
        for _ in range(CANCELS):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(post, over, url, body)
                    await reached()
                    if by == "cancel":
                        scope.cancel()
                    else:
                        scope.deadline = trio.current_time()
            assert scope.cancelled_caught
        await wait_all_tasks_blocked(0.02)
        # The servers' own ends are closed when ours are; a look-up that was left behind has none.
        assert open_descriptors() <= before + 2
    finally:
        gc.enable()


ANSWERS: dict[str, Stall] = {
    "the proxy's CONNECT": Stall(),
    "TLS": Stall(),
    "TLS to the proxy": Stall(),
    "TLS through the proxy": Stall(b"HTTP/1.1 200 Connection established\r\n\r\n"),
    "request": Stall(reads=False),
    "head": Stall(),
    "body": Stall(HEAD + b"{"),
}


@pytest.mark.parametrize("by", ["cancel", "deadline"])
@pytest.mark.parametrize("stage", ANSWERS)
async def test_the_socket_is_closed_wherever_a_cancel_comes(
    stage: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ANSWERS[stage]

    async def reached() -> None:
        server.again()
        await server.reached.wait()
        await wait_all_tasks_blocked(0.0 if server._reads else 0.01)

    with trio.fail_after(WAIT + CANCELS / 10):
        async with listening(server.serve) as port:
            over, url, body = await stalled(port, monkeypatch, stage)
            await cancelled_again_and_again(over, url, body, reached, by)
            if server._reads:
                await server.gone.wait()
            server.gone.set()


@pytest.mark.parametrize("by", ["cancel", "deadline"])
async def test_nothing_is_left_of_a_look_up_that_is_cancelled(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with trio.fail_after(WAIT + CANCELS / 10), hanging_look_ups(monkeypatch):
        over, url, body = await stalled(0, monkeypatch, "look-up")
        await cancelled_again_and_again(over, url, body, lambda: wait_all_tasks_blocked(0.001), by)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a full backlog refuses on Windows")
@pytest.mark.parametrize("by", ["cancel", "deadline"])
async def test_nothing_is_left_of_a_connection_that_is_cancelled_before_it_stands(
    by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(WAIT + CANCELS / 10), full_backlog() as port:
        over, url, body = await stalled(port, monkeypatch, "connect")
        await cancelled_again_and_again(over, url, body, lambda: wait_all_tasks_blocked(0.005), by)


# Amid a reply

STREAM = as_stream(bodies.searched())


@pytest.mark.rule("P3")
@pytest.mark.parametrize("by", ["cancel", "deadline"])
@pytest.mark.parametrize("reply", [
    Hang(), Hang("half_body"), Drip(interval=100), replace(STREAM, events=STREAM.events[:3], ending="hang"),
], ids=lambda value: repr(value)[:20])  # fmt: skip
async def test_a_call_that_is_cancelled_or_out_of_time_hangs_up(mock_clock: MockClock, reply: Any, by: str) -> None:
    mock_clock.rate = 1
    with trio.fail_after(60 + WAIT):
        async with open_fake_api(reply) as fake, real_api(fake.base_url, timeout_ms=60_000, max_retries=3) as api:
            async with trio.open_nursery() as nursery:
                if by == "cancel":
                    nursery.start_soon(cancel_when_asked, nursery.cancel_scope, fake)
                    await api.create({}, dict)
                else:
                    nursery.start_soon(jump_when_asked, mock_clock, fake)
                    with pytest.raises(DeadlineExceeded, match=r"No answer within 60 s"):
                        await api.create({}, dict)
            await fake.wait_hang_ups(1)
            await gone(fake)
            assert len(fake.requests) == 1


async def test_a_cancel_in_the_step_that_reads_a_part_of_a_reply_closes_the_connection() -> None:
    class Cancelling(Reply):
        def feed(self, data: bytes) -> bool:
            scope.cancel()
            return super().feed(data)

    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(b"x" * 300_000)) as fake, connections(fake) as over:
            with trio.CancelScope() as scope:
                await over.send(Request("POST", f"{fake.base_url}/responses", {}, b"{}"), Cancelling())
            await gone(fake)


# Beside other calls


async def test_a_waiting_request_can_be_cancelled_and_never_reaches_the_server() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Hang()) as fake, connections(fake, limit=1) as over, trio.open_nursery() as nursery:
            nursery.start_soon(ask, over, fake, "first")
            await fake.wait_requests(1)
            waiting = [trio.CancelScope() for _ in range(3)]

            async def ask_in(scope: trio.CancelScope, query: str) -> None:
                with scope:
                    await ask(over, fake, query)

            for number, scope in enumerate(waiting):
                nursery.start_soon(ask_in, scope, str(number))
                await wait_all_tasks_blocked()
            waiting[0].cancel()
            waiting[1].cancel()
            await wait_all_tasks_blocked()
            assert [scope.cancelled_caught for scope in waiting] == [True, True, False]
            assert len(fake.requests) == 1
            nursery.cancel_scope.cancel()
        assert [request.json["input"] for request in fake.requests] == ["first"]


async def test_a_request_that_fails_or_is_cancelled_gives_its_place_to_the_next() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Reset(), Hang(), Truncated()) as fake, connections(fake, limit=1) as over:
            with pytest.raises(ConnectionFailed):
                await ask(over, fake)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, over, fake)
                await cancel_when_asked(nursery.cancel_scope, fake, 2)
            with pytest.raises(ConnectionFailed):
                await ask(over, fake)
            assert (await ask(over, fake)).status == 200


async def test_cancelling_one_request_leaves_the_others_alone() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            release = trio.Event()

            async def held(request: RecordedRequest) -> Json:
                await release.wait()
                return Json(bodies.echo(request.json))

            fake.default = held
            replies: list[Reply] = []

            async def keep(query: str) -> None:
                replies.append(await ask(over, fake, query))

            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(keep, f"kept {number}")
                await fake.wait_requests(5)
                async with trio.open_nursery() as doomed:
                    doomed.start_soon(ask, over, fake, "cancelled")
                    await cancel_when_asked(doomed.cancel_scope, fake, 6)
                await fake.wait_hang_ups(1)
                release.set()
            assert len(replies) == 5
            assert [request.json["input"] for request in fake.requests if request.hung_up] == ["cancelled"]


# Between requests


def searching(*script: Any, timeout_ms: int = 30_000) -> tuple[Callable[[], Awaitable[object]], list[Any]]:
    api, stub = stub_api(*script)
    search = Asker(Settings(search=SearchSettings(timeout_ms=timeout_ms)), api=api)
    return lambda: search.search("q"), stub.sent


def asking(*script: Any, timeout_ms: int = 300_000) -> tuple[Callable[[], Awaitable[object]], list[Any]]:
    api, stub = stub_api(*script, timeout_ms=timeout_ms)
    return lambda: api.create({}, dict), stub.sent


@pytest.mark.clock("virtual")
@pytest.mark.parametrize(("front", "after", "requests"), [
    *((asking, after, requests) for after, requests in ((0.2, 1), (0.5, 1), (0.7, 2), (1.5, 2), (1.6, 3), (3.5, 3))),
    *((searching, after, requests) for after, requests in ((0.5, 1), (1.0, 1), (1.5, 2), (3.0, 2))),
])  # fmt: skip
async def test_a_cancel_during_or_right_at_the_end_of_a_wait_costs_no_further_request(
    front: Callable[..., Any], after: float, requests: int
) -> None:
    call, sent = front(refused(429))
    with trio.move_on_after(after) as scope:
        await call()
    assert scope.cancelled_caught
    assert len(sent) == requests


async def test_a_call_in_a_cancelled_scope_sends_nothing() -> None:
    call, sent = asking()
    await call()  # so that there is nothing to wait for any more
    with trio.CancelScope() as scope:
        scope.cancel()
        await call()
    assert scope.cancelled_caught
    assert len(sent) == 1


@pytest.mark.clock("virtual")
async def test_a_cancel_while_a_retryable_failure_is_under_way_costs_no_further_request() -> None:
    with trio.CancelScope() as scope:

        async def failing_as_the_cancel_comes() -> Reply:
            await trio.lowlevel.checkpoint()
            scope.cancel()
            return refused(503)

        call, sent = asking(failing_as_the_cancel_comes)
        await call()
    assert scope.cancelled_caught
    assert len(sent) == 1


@pytest.mark.clock("virtual")
@pytest.mark.parametrize("front", [asking, searching])
async def test_a_cancel_at_the_moment_of_a_time_out_is_a_cancel(front: Callable[..., Any]) -> None:
    call, sent = front(trio.sleep_forever, timeout_ms=1_000)
    with trio.move_on_after(1) as scope:
        await call()
    assert (scope.cancelled_caught, len(sent)) == (True, 1)


# By the client

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("revision", ["legacy", "modern"])
@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
@pytest.mark.parametrize("reply", [
    Hang(), replace(STREAM, events=STREAM.events[:6], ending="hang"), Error(429, retry_after="30"),
], ids=["no reply", "amid a stream", "between tries"])  # fmt: skip
async def test_a_cancel_by_the_client_hangs_up_and_nothing_is_said_of_the_call_any_more(
    revision: str, tool: str, reply: Any
) -> None:
    meta = {"_meta": ENVELOPE} if revision == "modern" else {}
    with trio.fail_after(WAIT):
        async with open_fake_api(reply) as fake:
            settings = Settings(
                openai=OpenAISettings(base_url=fake.base_url, api_key=KEY),
                server=ServerSettings(toolsets=("answer", "search")),
            )
            async with connected_client(settings, initialize=revision == "legacy") as client:
                call = await client.request("tools/call", {"name": tool, "arguments": {"query": "q"}, **meta})
                await fake.wait_requests(1)
                await wait_all_tasks_blocked(0.02)
                await client.cancel(call)
                if not isinstance(reply, Error):
                    await gone(fake)
                await client.ask("tools/list", meta)
                assert len(fake.requests) == 1
                assert call not in [message.get("id") for message in client.heard]
