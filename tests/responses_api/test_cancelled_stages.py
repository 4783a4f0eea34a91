"""A cancel, or the deadline, closes the socket wherever it finds a request: no descriptor waits for the collector.

`CANCELS=500 pytest tests/responses_api/test_cancelled_stages.py` does it 500 times at each stage.
"""

import gc
import os
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio
import trustme
from trio.testing import wait_all_tasks_blocked

from responses_mcp.errors import UnusableReply
from responses_mcp.responses_api.client import connection, open_connections
from responses_mcp.responses_api.pool import ConnectionPool
from tests.processes import WAIT
from tests.responses_api.network import Stream, bare_environment, listening, post, server_context, trust

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")

CANCELS = int(os.environ.get("CANCELS", "10"))
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
DESCRIPTORS = next((path for path in map(Path, ("/proc/self/fd", "/dev/fd")) if path.exists()), None)


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


# What stands behind a reply

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
TRAILERS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\n\n\r\n0\r\nX: y\r\n\r\n"
SMUGGLED = b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"wrong"'


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> trustme.CA:
    ca = trustme.CA()
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    return ca


@asynccontextmanager
async def answering(
    *answers: tuple[bytes, ...], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[tuple[int, list[int]]]:
    """Answer the requests of each connection with `answers`, each a series of writes; give port and connections."""
    connected: list[int] = []

    async def serve(stream: Stream) -> None:
        connected.append(1)
        for answer in answers:
            data = b""
            while not data.endswith(b"{}"):
                if not (piece := await stream.receive_some()):
                    return
                data += piece
            for write in answer:
                await stream.send_all(write)
        await stream.receive_some()

    async with listening(serve, tls) as port:
        yield port, connected


@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.parametrize("first", [OK, CHUNKED, TRAILERS], ids=["a length", "chunks", "trailers"])
@pytest.mark.parametrize(
    "behind", [b"", SMUGGLED, b"x", b"\r\n", SMUGGLED[:10], OK * 3], ids=lambda value: repr(value)[:9]
)
@pytest.mark.parametrize("together", [True, False])
async def test_what_comes_behind_a_reply_is_never_taken_for_the_next(
    first: bytes,
    behind: bytes,
    together: bool,
    over_tls: bool,
    trusted: trustme.CA,
) -> None:
    writes = (first + behind,) if together else (first, behind) if behind else (first,)
    second = b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"right"'
    with trio.fail_after(WAIT):
        async with answering(writes, (second,), tls=server_context(trusted, "localhost") if over_tls else None) as (
            port,
            connected,
        ):
            url = f"{'https' if over_tls else 'http'}://localhost:{port}/v1"
            over = await open_connections(url, limit=1)
            assert (await post(over, url)).status == 200
            # What was written together may still come in two pieces.
            await wait_all_tasks_blocked(0.01)
            body = (await post(over, url)).body
            await over.aclose()
    if behind:
        assert body != b'"wrong"'
        assert len(connected) == 2
    else:
        assert (body, len(connected)) == (b'"right"', 1)


@pytest.mark.parametrize("status", [204, 304])
async def test_a_body_where_there_can_be_none_fails_no_later_call(status: int) -> None:
    with trio.fail_after(WAIT):
        async with answering((b"HTTP/1.1 %d X\r\nContent-Length: 5\r\n\r\nwrong" % status,), (OK,)) as (
            port,
            connected,
        ):
            url = f"http://127.0.0.1:{port}/v1"
            over = await open_connections(url, limit=1)
            assert (await post(over, url)).status == status
            assert (await post(over, url)).status == status
            assert len(connected) == 2
            await over.aclose()


@pytest.mark.parametrize(("interim", "answered"), [(0, True), (1, True), (16, True), (17, False), (5_000, False)])
async def test_sixteen_interim_replies_are_borne_and_no_more(interim: int, answered: bool) -> None:
    with trio.fail_after(WAIT):
        async with answering((b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * interim + OK,)) as (port, _):
            url = f"http://127.0.0.1:{port}/v1"
            over = await open_connections(url, limit=1)
            if answered:
                assert (await post(over, url)).body == b"{}"
            else:
                with pytest.raises(UnusableReply, match="more than 16 replies of the status 1xx"):
                    await post(over, url)
            await over.aclose()


async def test_an_event_stream_of_many_empty_lines_is_no_series_of_interim_replies() -> None:
    events = b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in [b"data: x\n\n"] * 100)
    reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + events + b"0\r\n\r\n"
    with trio.fail_after(WAIT):
        async with answering((reply,), (OK,)) as (port, connected):
            url = f"http://127.0.0.1:{port}/v1"
            over = await open_connections(url, limit=1)
            assert (await post(over, url)).body == b"data: x\n\n" * 100
            assert (await post(over, url)).body == b"{}"
            assert len(connected) == 1
            await over.aclose()


async def test_connections_are_kept_alive_by_the_system() -> None:
    with trio.fail_after(WAIT):
        async with answering((OK,)) as (port, _):
            made = connection(ssl.create_default_context(), None)
            url = f"http://127.0.0.1:{port}/v1"
            over = ConnectionPool(lambda: made, limit=1)
            await post(over, url)
            assert made._network._socket is not None
            assert made._network._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            await over.aclose()
