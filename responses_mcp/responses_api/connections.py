"""What `ResponsesApi` wants of HTTP, and no more: this is where another client, or a test's stub, can be put in."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response, read whole. Header names are lower-case.

    The body is in the pieces in which it came: to put many megabytes together would hold up everything else.
    """

    status: int
    headers: Mapping[str, str]
    pieces: list[bytes]

    @property
    def body(self) -> bytes:
        """Return the pieces as one."""
        return b"".join(self.pieces)


class Listener(Protocol):
    """Hears a reply's body piece by piece, instead of having it kept."""

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        """Look at the head of the reply and tell whether to hear its body; else it is read whole."""
        ...

    async def hear(self, chunk: bytes) -> bool:
        """Take a piece of the body and tell whether that was enough; the rest is then left unread."""
        ...


class Connections(Protocol):
    """Connections to one server."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, listener: Listener | None = None) -> Reply:
        """Send one request and read the whole reply, whatever its status; cancelling closes the socket.

        The body of a reply that `listener` heard is empty. Raises `UpstreamError`, retryable only if the request
        cannot have reached the server.
        """
        ...

    async def aclose(self) -> None:
        """Close everything that is open."""
        ...


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
