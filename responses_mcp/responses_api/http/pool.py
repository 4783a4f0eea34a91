"""The connections to one server: how many there are, which of them is used next, and when an idle one is closed.

`Request`, `Reader` and `Connections` are all that `ResponsesApi` wants of HTTP: another client, or a test's stub, can
be put in here. httpx's own pool looks at every connection it has at each request and each release, so its cost grows
with the square of the calls at once. Here free connections are kept on a stack, and a limiter lets calls through in the
order in which they came.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import trio

KEPT_IDLE: Final = 16  # connections kept open for the next call; more are left over only by a burst
IDLE_SECONDS: Final = 90.0  # that they are kept for: servers and routers forget them after 60 to 350


async def _no_need() -> None:
    pass


@dataclass(slots=True)
class Request:
    """An HTTP request, whole. Header names are lower-case.

    `make_room` is awaited when it is its turn, as long as it takes. `on_send` is awaited when its connection is there,
    right before the request goes out. If it raises, nothing is sent.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # the key is in them, and a report of an error has what was local
    body: bytes = field(default=b"", repr=False)
    make_room: Callable[[], Awaitable[None]] = _no_need
    on_send: Callable[[], Awaitable[None]] = _no_need


class Reader(Protocol):
    """Takes a reply as it comes."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status, and the headers under lower-case names."""
        ...

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body and tell whether they are enough. Raises `UpstreamError` to end it."""
        ...


class Connections(Protocol):
    """Connections to one server."""

    async def send(self, request: Request, reader: Reader) -> None:
        """Send a request and give its reply, whatever its status, to `reader`; cancelling closes the socket.

        Raises `UpstreamError`, retryable only if the request cannot have reached the server, and what `reader` raises.
        """
        ...

    async def aclose(self) -> None:
        """Close everything that is open."""
        ...


Connect: TypeAlias = Callable[[str, int], Awaitable[Connections]]
"""Prepares for requests to a URL, with a limit of connections at once. May raise `UpstreamError`."""


class Connection(Protocol):
    """One connection, which is opened by its first request."""

    async def exchange(self, request: Request, reader: Reader) -> bool:
        """Send a request and give its reply to `reader`; tell whether another may follow on the same connection."""
        ...

    async def is_quiet(self) -> bool:
        """Tell whether it is open, and nothing has come since its last reply, not even its end."""
        ...

    def close(self) -> None:
        """Close its socket, at once. Nothing happens if there is none."""
        ...


class ConnectionPool:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there."""

    def __init__(self, new_connection: Callable[[], Connection], *, limit: int) -> None:
        self._new_connection = new_connection
        self._slots = trio.CapacityLimiter(limit)
        self._idle: deque[tuple[Connection, float]] = deque()  # with the time since when, the longest idle first
        self._closed = False

    async def send(self, request: Request, reader: Reader) -> None:
        """Send one request and give its reply to `reader`, see `Connections`."""
        try:
            self._slots.acquire_nowait()  # which is no step, and lets nobody overtake
        except trio.WouldBlock:
            await self._slots.acquire()
        try:
            await request.make_room()
            # A cancel may have come since this place, or the room, was given: it must not cost a connection.
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._exchange(request, reader)
        finally:
            self._slots.release()

    async def _exchange(self, request: Request, reader: Reader) -> None:
        """Send a request over the connection that was used last, if that is quiet, or over a new one."""
        while self._idle and self._idle[0][1] + IDLE_SECONDS <= trio.current_time():
            self._idle.popleft()[0].close()
        is_done = False
        while not is_done:
            is_new = not self._idle
            connection = self._new_connection() if is_new else self._idle.pop()[0]
            keep = False
            try:
                if is_done := is_new or await connection.is_quiet():
                    keep = await connection.exchange(request, reader)
            finally:
                if keep and not self._closed and self._has_use_for_more():
                    self._idle.append((connection, trio.current_time()))
                else:
                    connection.close()

    def _has_use_for_more(self) -> bool:
        """Tell whether another idle connection is wanted: one for each request that waits, and a few."""
        return len(self._idle) < KEPT_IDLE or self._slots.statistics().tasks_waiting > 0

    async def aclose(self) -> None:
        """Close the idle connections; those in use are closed when their requests end, by a cancel at the latest."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()
        await trio.lowlevel.checkpoint()


def connection_limit(wanted: int) -> int:
    """Keep a quarter of the file descriptors, and 64, for everything else: `ulimit -n` is 256 on some systems."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1):
        return wanted
    return max(1, min(wanted, math.floor((soft - 64) * 0.75)))
