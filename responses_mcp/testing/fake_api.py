"""A fake of the Responses API on a real TCP socket of this machine, under Trio.

    async with open_fake_api(Error(429, retry_after="1"), Json(bodies.searched())) as api:
        await ask_something(base_url=api.base_url)
    assert len(api.requests) == 2

It serves ``POST {base_url}/responses``, ``POST {base_url}/embeddings`` and ``GET {base_url}/models``, records every
request, and notices when the peer hangs up before it got its reply. The responses that it makes itself are kept, and
served under ``{base_url}/responses/ID``. h11 reads the requests; replies are bytes, written as they are, however wrong.
"""

from __future__ import annotations

import inspect
import json
import re
import socket
import struct
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import h11
import trio

from . import bodies
from .embeddings import Embed, answer_with_embeddings, count_words
from .replies import Ending, Error, Json, Pause, Reply
from .stored_responses import StoredResponses

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
REFUSAL_GRACE = 1.0  # seconds that a peer that broke HTTP gets to read why, before its connection is closed
MAX_PIPELINED_BYTES = 1024 * 1024  # sent ahead of replies; a hang-up behind more of it is noticed late
# How a target begins if the peer takes the server for a proxy, as every server has to understand.
ABSOLUTE_FORM = re.compile(r"\Ahttps?://[^/?#]*", re.IGNORECASE)


@dataclass(eq=False)
class RecordedRequest:
    """A request as it arrived, and what became of it. All times are `trio.current_time()`.

    At most one of `hung_up` and `answered` is ever set; neither is while the reply is under way.
    """

    index: int
    """Its place in `FakeApi.requests`."""

    method: str
    target: str
    """The path and query as sent."""

    headers: dict[str, str] = field(repr=False)
    """Names in lower case; a header sent twice is joined with a comma."""

    body: bytes = field(repr=False)

    json: Any
    """The parsed body, or None if it is not JSON."""

    arrived: float
    """When the whole request, body included, had been read."""

    hung_up: float | None = None
    """When the peer closed, half-closed or reset the connection although its reply was not fully written."""

    answered: float | None = None
    """When the system took the last byte of the reply; one that is cut short on purpose counts as written."""

    gone: trio.Event = field(default_factory=trio.Event, repr=False)
    """Set together with `hung_up`."""

    stored: StoredResponses = field(default_factory=StoredResponses, repr=False)
    """`FakeApi.stored`, by which `answer_by_echo` makes the response."""

    @property
    def request_id(self) -> str:
        """The ``x-request-id`` that the reply carries."""
        return f"req_{self.index:032x}"

    async def wait_hung_up(self) -> None:
        """Return once the peer has hung up; never, if the reply came first. The caller sets the deadline."""
        await self.gone.wait()


Handler: TypeAlias = Callable[[RecordedRequest], Reply | Awaitable[Reply]]
"""Decides what to reply; it may be async, and is cancelled if the peer hangs up meanwhile."""

EventName: TypeAlias = Literal["request", "hung_up", "answered"]
Observer: TypeAlias = Callable[[EventName, RecordedRequest], None]
"""Is told, synchronously, what happens to each request. It must not block."""


def answer_by_echo(request: RecordedRequest) -> Reply:
    """Reply as the API would, repeating the query: with a response that `FakeApi.stored` makes, and keeps."""
    given: Any = request.json
    if not isinstance(given, dict):
        return Error(400, "The body of the request is not a JSON object.")
    return request.stored.create(cast("dict[str, Any]", given))


class FakeApi:
    """The fake API as a test sees it. `open_fake_api` makes one and serves it."""

    base_url: str
    """Where it listens, for example ``http://127.0.0.1:41234/v1``."""

    default: Reply | Handler
    """Replies to ``POST /responses`` when the script is used up; at first `answer_by_echo`."""

    embed: Embed
    """Makes the vectors for ``POST /embeddings``; at first `count_words`. It blocks whoever else is served."""

    stored: StoredResponses
    """The responses of `answer_by_echo`, and of background mode, in which `default` has no say."""

    requests: list[RecordedRequest]
    """Every request that was read whole, whatever its path, in order of arrival."""

    connections: int
    """How many TCP connections were ever accepted."""

    open_connections: int
    """How many of them are open now."""

    def __init__(self, base_url: str, observer: Observer | None = None) -> None:
        self.base_url = base_url
        self.default = answer_by_echo
        self.embed = count_words
        self.stored = StoredResponses()
        self.requests = []
        self.connections = 0
        self.open_connections = 0
        self._path = urlsplit(base_url).path
        self._observer = observer
        self._script: deque[Reply | Handler] = deque()
        self._waiting = trio.lowlevel.ParkingLot()

    def script(self, *replies: Reply | Handler) -> None:
        """Queue replies for the next requests to a path that the API has, one each, in order."""
        self._script.extend(replies)

    async def wait_requests(self, count: int) -> None:
        """Return once at least `count` requests have been recorded. The caller sets the deadline."""
        await trio.lowlevel.checkpoint()
        while len(self.requests) < count:
            await self._waiting.park()

    async def wait_hang_ups(self, count: int) -> None:
        """Return once the peers of at least `count` requests have hung up. The caller sets the deadline."""
        await trio.lowlevel.checkpoint()
        while sum(request.hung_up is not None for request in self.requests) < count:
            await self._waiting.park()

    async def serve_connection(self, stream: trio.SocketStream) -> None:
        """Serve one connection to its end. The caller closes the stream; what a peer does raises nothing."""
        self.connections += 1
        self.open_connections += 1
        try:
            if await self._converse(stream) is Ending.RESET:
                _reset_on_close(stream)
        finally:
            self.open_connections -= 1

    async def _converse(self, stream: trio.SocketStream) -> Ending:
        ahead = b""
        while True:
            # One for each request: h11 would want to know what we reply before it reads the next.
            connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
            if ahead:
                connection.receive_data(ahead)
            try:
                request = await self._receive(stream, connection)
            except h11.RemoteProtocolError as exc:
                await _refuse(stream, exc, tls=connection.trailing_data[0].startswith(b"\x16"))
                return Ending.CLOSE
            if request is None:
                return Ending.CLOSE
            ending = await self._exchange(stream, connection, request)
            if ending is not Ending.KEEP_ALIVE or connection.their_state is h11.MUST_CLOSE:
                return ending
            ahead = connection.trailing_data[0]

    async def _receive(self, stream: trio.SocketStream, connection: h11.Connection) -> RecordedRequest | None:
        """Record the next whole request, or return None if the peer leaves before. Raises h11.RemoteProtocolError."""
        head = await _next_event(stream, connection)
        if not isinstance(head, h11.Request):
            return None
        _check(head)
        body = bytearray()
        while isinstance(event := await _next_event(stream, connection), h11.Data):
            body += event.data
            if len(body) > MAX_BODY_BYTES:
                message = f"the body is longer than {MAX_BODY_BYTES} bytes"
                raise h11.RemoteProtocolError(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        if event is None:
            return None
        headers: dict[str, str] = {}
        for name, value in head.headers:
            key, text = name.decode("ascii"), value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        recorded = RecordedRequest(
            index=len(self.requests),
            method=head.method.decode("ascii"),
            target=head.target.decode("ascii"),
            headers=headers,
            body=bytes(body),
            json=_parse_json(body),
            arrived=trio.current_time(),
            stored=self.stored,
        )
        self.requests.append(recorded)
        self._tell("request", recorded)
        return recorded

    async def _exchange(
        self, stream: trio.SocketStream, connection: h11.Connection, request: RecordedRequest
    ) -> Ending:
        ending = Ending.CLOSE
        async with trio.open_nursery() as nursery:
            # Who only writes learns of a hang-up with the next write, and a hanging server never writes.
            nursery.start_soon(self._watch, stream, connection, request, nursery.cancel_scope)
            ending = await self._reply(stream, request)
            nursery.cancel_scope.cancel(reason="the reply is done")
        return ending

    async def _watch(
        self,
        stream: trio.SocketStream,
        connection: h11.Connection,
        request: RecordedRequest,
        exchange: trio.CancelScope,
    ) -> None:
        while len(connection.trailing_data[0]) < MAX_PIPELINED_BYTES:
            try:
                data = await stream.receive_some()
            except trio.BrokenResourceError:
                data = b""
            if not data:
                self._hang_up(request)
                exchange.cancel(reason="the peer hung up")
                return
            connection.receive_data(data)

    async def _reply(self, stream: trio.SocketStream, request: RecordedRequest) -> Ending:
        chosen = self._choose(request)
        if not isinstance(chosen, Reply):
            result = chosen(request)
            chosen = await result if inspect.isawaitable(result) else result
        if chosen.latency:
            await trio.sleep(chosen.latency)
        ending = Ending.KEEP_ALIVE
        try:
            for step in chosen.steps(request.request_id):
                if isinstance(step, bytes):
                    await _send(stream, step)
                elif isinstance(step, Pause):
                    await trio.sleep(step.seconds)
                elif step is Ending.HANG:
                    await trio.sleep_forever()
                else:
                    ending = step
        except trio.BrokenResourceError:
            self._hang_up(request)
            return Ending.CLOSE
        if request.hung_up is None:
            # Nothing ran since the last byte was sent, so whoever has read it finds the request answered.
            request.answered = trio.current_time()
            self._tell("answered", request)
        return ending

    def _choose(self, request: RecordedRequest) -> Reply | Handler:
        target = ABSOLUTE_FORM.sub("", request.target)
        path = target.partition("?")[0]
        one = f"{self._path}/responses/"
        if path.startswith(one) and path != one:
            if self._script:
                return self._script.popleft()
            return self.stored.answer(request.method, target.removeprefix(one))
        known: dict[tuple[str, str], Reply | Handler] = {
            ("POST", f"{self._path}/responses"): self._create,
            ("POST", f"{self._path}/embeddings"): lambda asked: answer_with_embeddings(asked.json, self.embed),
            ("GET", f"{self._path}/models"): Json(bodies.models()),
        }
        route = request.method, path
        if route not in known:
            # The script is not touched: a client with a wrong path must not pass for one with the right path.
            return Error(404, f"Invalid URL ({request.method} {request.target})", code="unknown_url")
        return self._script.popleft() if self._script else known[route]

    def _create(self, request: RecordedRequest) -> Reply | Awaitable[Reply]:
        wanted: Any = request.json
        if isinstance(wanted, dict) and cast("dict[str, Any]", wanted).get("background") is True:
            return answer_by_echo(request)
        return self.default if isinstance(self.default, Reply) else self.default(request)

    def _hang_up(self, request: RecordedRequest) -> None:
        # The reply and the watch can both notice in one turn of the loop; the first of them decides.
        if request.hung_up is None and request.answered is None:
            request.hung_up = trio.current_time()
            request.gone.set()
            self._tell("hung_up", request)

    def _tell(self, event: EventName, request: RecordedRequest) -> None:
        self._waiting.unpark_all()
        if self._observer is not None:
            self._observer(event, request)


@asynccontextmanager
async def open_fake_api(
    *replies: Reply | Handler,
    port: int = 0,
    path: str = "/v1",
    observer: Observer | None = None,
    embed: Embed = count_words,
) -> AsyncGenerator[FakeApi, None]:
    """Serve a fake API for as long as the ``async with`` block runs.

    Replies are the script for the first requests, as with `FakeApi.script`; one function alone handles all requests, as
    `FakeApi.default`. With port 0 the system picks a free one. `path` is that of the base URL. `observer` is called,
    synchronously, when a request has arrived, was answered, or its peer hung up. `embed` makes the vectors for
    ``POST /embeddings``.

    Leaving the block closes the port and all connections at once. An exception of the block comes out as it is, not in
    a group. Raises RuntimeError without Trio, OSError if the port is taken, and an exception group if a handler or an
    observer raises.
    """
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        raise RuntimeError("open_fake_api works under Trio: run it with trio.run.") from None
    listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
    bound = listeners[0].socket.getsockname()[1]
    api = FakeApi(f"http://127.0.0.1:{bound}{path}", observer)
    api.embed = embed
    if len(replies) == 1 and not isinstance(replies[0], Reply):
        api.default = replies[0]
    else:
        api.script(*replies)
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, api.serve_connection, listeners)
        try:
            yield api
        except trio.Cancelled:
            raise
        except BaseException as exc:  # noqa: BLE001
            failure = exc  # raised outside the nursery, so that a test fails with its own exception and no group
        nursery.cancel_scope.cancel(reason="the fake API is closed")
    try:
        if failure is not None:
            raise failure
    finally:
        del failure  # its traceback holds this frame


async def _next_event(stream: trio.SocketStream, connection: h11.Connection) -> h11.Event | None:
    """Return the next part of a request, None if the peer leaves."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        try:
            if connection.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[], reason="Continue")
                await stream.send_all(connection.send(go_on) or b"")
            data = await stream.receive_some()
        except trio.BrokenResourceError:
            return None
        if not data:
            return None
        connection.receive_data(data)
    return event if isinstance(event, h11.Event) else None


def _check(head: h11.Request) -> None:
    """Refuse what h11 lets through and no client of the API has a reason to send."""
    if head.http_version != b"1.1":
        message = f"HTTP/{head.http_version.decode('ascii')} is not served"
        raise h11.RemoteProtocolError(message, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    if {b"content-length", b"transfer-encoding"} <= dict(head.headers).keys():
        # Two answers to where the body ends are how requests get smuggled.
        raise h11.RemoteProtocolError("both Transfer-Encoding and Content-Length were sent")


async def _send(stream: trio.SocketStream, data: bytes) -> None:
    """Send everything, as `trio.SocketStream.send_all` does, but without a checkpoint after the last byte.

    With one there, a peer that reads its reply and closes could be noticed to close before we know that the reply
    was sent, and would be recorded as having hung up.
    """
    plain = socket.socket(fileno=stream.socket.fileno())
    try:
        rest = memoryview(data)
        while rest:
            await trio.lowlevel.wait_writable(plain)
            with suppress(BlockingIOError):
                rest = rest[plain.send(rest) :]
    except OSError as exc:
        raise trio.BrokenResourceError from exc
    finally:
        plain.detach()


async def _refuse(stream: trio.SocketStream, refusal: h11.RemoteProtocolError, *, tls: bool) -> None:
    """Tell a peer what it broke. Closing with its bytes unread would reset the connection and lose that."""
    message = f"{refusal} (is it a TLS handshake?)" if tls else str(refusal)
    reply = Error(refusal.error_status_hint, message, headers={"connection": "close"})
    with trio.move_on_after(REFUSAL_GRACE):
        try:
            for step in reply.steps("req_refused"):
                if isinstance(step, bytes):
                    await stream.send_all(step)
            await stream.send_eof()
            while await stream.receive_some():
                pass
        except trio.BrokenResourceError:
            return


def _reset_on_close(stream: trio.SocketStream) -> None:
    """Make the coming close throw the connection away (RST) instead of ending it (FIN)."""
    # struct linger has two shorts on Windows and two ints elsewhere.
    layout = "hh" if sys.platform == "win32" else "ii"
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(layout, 1, 0))


def _parse_json(body: bytearray) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
