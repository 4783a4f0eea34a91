"""What `ResponsesApi` wants of HTTP. Another client, or a test's stub, can be put in here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias


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
    headers: Mapping[bytes, bytes] = field(
        repr=False
    )  # the key is in them, and a report of an error has what was local
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


def encoded(headers: Mapping[str, str]) -> Mapping[bytes, bytes]:
    """Return headers as requests have them."""
    return {name.encode("ascii"): value.encode("ascii") for name, value in headers.items()}


def connection_limit(wanted: int) -> int:
    """Keep a quarter of the file descriptors, and 64, for everything else: `ulimit -n` is 256 on some systems."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft in (resource.RLIM_INFINITY, -1) else max(1, min(wanted, (soft - 64) * 3 // 4))
