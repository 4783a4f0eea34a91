"""The sockets below httpx: what comes behind a reply is never taken for the next one."""

import itertools
import socket
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import h11
import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request
from responses_mcp.responses_api.http.network import ConnectionPool, HttpConnection, Route
from tests.processes import WAIT
from tests.responses_api.http.network import Stream, bare_environment, listening, post, server_context, trust
from tests.responses_api.stub import Reply

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")

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
    first: bytes, behind: bytes, together: bool, over_tls: bool, trusted: trustme.CA
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


class Corked(trio.abc.Stream):
    """Sends all that was written when it is read."""

    def __init__(self, below: Stream) -> None:
        self._below = below
        self._written = b""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._written += bytes(data)
        await trio.lowlevel.checkpoint()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data, self._written = self._written, b""
        await self._below.send_all(data)
        return await self._below.receive_some(max_bytes)

    async def wait_send_all_might_not_block(self) -> None:
        await self._below.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._below.aclose()


async def test_a_record_of_tls_that_came_with_a_reply_is_not_taken_for_the_next(trusted: trustme.CA) -> None:
    connected: list[int] = []

    async def serve(stream: Stream) -> None:
        connected.append(1)
        over = trio.SSLStream(Corked(stream), server_context(trusted, "localhost"), server_side=True)
        await over.receive_some()
        for write in (OK, SMUGGLED) if len(connected) == 1 else (OK,):
            await over.send_all(write)
        await over.receive_some()

    with trio.fail_after(WAIT):
        async with listening(serve) as port:
            url = f"https://localhost:{port}/v1"
            over = await open_connections(url, limit=1)
            assert [(await post(over, url)).body for _ in range(2)] == [b"{}"] * 2
            assert len(connected) == 2
            await over.aclose()


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


async def test_an_event_stream_of_many_chunks_that_come_together_is_read() -> None:
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
            made = HttpConnection(Route(), trio.CapacityLimiter(1))
            url = f"http://127.0.0.1:{port}/v1"
            over = ConnectionPool(lambda: made, limit=1)
            await post(over, url)
            assert made._socket is not None
            assert made._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            await over.aclose()


# Chunks


def read_by_h11(pieces: list[bytes]) -> tuple[bytes, bool, bytes]:
    """Return the body that h11 reads out of the bytes behind a head, whether it ended, and what comes behind it."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    body = b""
    for piece in [b"", *pieces]:
        if piece:
            connection.receive_data(piece)
        try:
            while (event := connection.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                body += bytes(event.data) if isinstance(event, h11.Data) else b""
        except h11.RemoteProtocolError:
            return body, False, b"wrong"
    return body, connection.their_state is h11.DONE, connection.trailing_data[0]


@given(
    st.lists(
        st.sampled_from(
            [b"1\r\nx\r\n", b"0A\r\n0123456789\r\n", b"0\r\n", b"\r\n", b"2;x=y\r\nab\r\n", b"3", b"zz", b"\n"]
        )
        | st.binary(max_size=12),
        max_size=12,
    ),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_joined_chunks_are_read_as_the_same_body_however_they_come(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    ends = sorted({*cuts, 0, len(data)})
    pieces = [data[start:end] for start, end in itertools.pairwise(ends)]
    below = HttpConnection(Route(), trio.CapacityLimiter(1))
    below._hand_on = below._joined
    assert read_by_h11([below._hand_on(piece) for piece in pieces]) == read_by_h11([data])


async def test_a_connection_is_kept_unless_a_byte_is_behind_the_reply() -> None:
    for behind, kept in ((b"", True), (b"x", False)):
        with trio.fail_after(WAIT):
            async with answering((OK + behind,), (OK,)) as (port, _):
                made = HttpConnection(Route(), trio.CapacityLimiter(1))
                request = Request("POST", f"http://127.0.0.1:{port}/v1", {}, b"{}")
                assert await made.exchange(request, Reply()) is kept
                made.close()
