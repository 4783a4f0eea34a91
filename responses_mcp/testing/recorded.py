"""What the fake API records of a request, and the functions that a test may give it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import trio

from .replies import Reply


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
