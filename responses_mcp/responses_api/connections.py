"""What `ResponsesApi` wants of HTTP, and no more: this is where another client, or a test's stub, can be put in."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol, TypeAlias


class Request(NamedTuple):
    """An HTTP request, whole. Header names are lower-case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class Reader(Protocol):
    """Takes a reply as it comes."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status, and the headers under lower-case names."""
        ...

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body and tell whether they are enough. Raises `UpstreamError` to end it."""
        ...


MakeRoom: TypeAlias = Callable[[], Awaitable[None]]
"""Called before a request is sent, and between two pieces of its reply, which wait as long as it takes."""


class Connections(Protocol):
    """Connections to one server."""

    async def send(self, request: Request, reader: Reader, make_room: MakeRoom) -> None:
        """Send a request and give its reply, whatever its status, to `reader`; cancelling closes the socket.

        Raises `UpstreamError`, retryable only if the request cannot have
        reached the server, and what `reader` raises.
        """
        ...

    async def aclose(self) -> None:
        """Close everything that is open."""
        ...


async def no_need() -> None:
    """Make room where there is enough of it."""


Connect: TypeAlias = Callable[[str, int], Awaitable[Connections]]
"""Prepares for requests to a URL, with a limit of connections at once. May raise `UpstreamError`."""


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
