"""Replies read without sockets, in chunks of any size."""

from collections.abc import Callable, Mapping
from typing import Any

from responses_mcp.responses_api.response.reply import ReplyBudget, ReplyReader
from responses_mcp.responses_api.watcher import Watcher

MOST = 8 * 1024 * 1024


def reader(
    *,
    most_bytes: int = MOST,
    budget: ReplyBudget | None = None,
    redact: Callable[[str], str] = str,
    on_phase: Callable[[str], None] | None = None,
) -> ReplyReader:
    return ReplyReader(most_bytes=most_bytes, budget=budget or ReplyBudget(), redact=redact, watcher=Watcher(on_phase))


def fed(
    data: bytes, chunk: int = 0, *, status: int = 200, headers: Mapping[str, str] | None = None, **options: Any
) -> ReplyReader:
    """Return a reader that got `data`, or as much of it as was enough, `chunk` bytes at a time (0: at once)."""
    made = reader(**options)
    made.begin(status, headers or {})
    step = chunk or len(data) or 1
    for at in range(0, len(data), step):
        if made.feed(data[at : at + step]):
            break
    return made
