"""A request, and what takes its reply: what `ResponsesApi` and HTTP share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from responses_mcp.responses_api.watcher import NOBODY, Watcher


@dataclass(slots=True)
class Request:
    """An HTTP request, whole. Header names are lower-case.

    It waits for the room of its `watcher` when it is its turn, and asks it right before it goes out on a connection. If
    that raises, nothing is sent.
    """

    method: str
    url: str
    headers: Mapping[bytes, bytes] = field(repr=False)  # which have the key: a report of an error has what was local
    body: bytes = field(default=b"", repr=False)
    watcher: Watcher = NOBODY


class Reader(Protocol):
    """Takes a reply as it comes."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status, and the headers under lower-case names."""
        ...

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body and tell whether they are enough. Raises `UpstreamError` to end it."""
        ...


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
