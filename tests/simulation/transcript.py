"""What happened in one run, in order: the simulation writes it, and the invariants are checked on it alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from responses_mcp.runtime.server import Server


class Kind(Enum):
    """What an event is; its details stand behind the name."""

    READ = "the server read"  # bytes of input so far, requests in flight before they count
    INPUT_ENDED = "the server read the end of input"  # requests in flight
    GIVE = "the server writes"  # the bytes, requests in flight from now on
    WRITTEN = "the server has written"
    BROKE = "the server found its reader gone"
    PHASE = "a call is now"  # marker, phase
    REQUEST = "a request goes upstream"  # marker, its number among the call's, connection
    FAULT = "upstream does"  # marker, kind of play
    OPEN = "a connection was made"  # connection
    CLOSE = "a connection was closed"  # connection
    BUSY = "an exchange begins"  # connection, marker
    IDLE = "an exchange was complete"  # connection
    END = "a tool has ended"  # marker
    REPORT = "a tool reports progress late"
    STALL = "the client stops reading"
    RESUME = "the client reads on"
    HELD = "input waits because output does"
    STOP = "the host asks to stop"  # grace
    HOST = "the host cancels"
    GONE = "the client goes away"
    HUNG = "nothing more would have happened"
    RETURNED = "serve returned"  # requests in flight, unsent bytes, connections in use
    OVER = "all is over"  # tasks too many
    RAISED = "serve raised"  # the exception


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, at a virtual time."""

    at: float
    kind: Kind
    details: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.at:8.3f}  {self.kind.value} {' '.join(map(repr, self.details))}"


@dataclass
class Transcript:
    """Events in order. `watch` is told of each phase of a call, and may act on it."""

    now: Callable[[], float]
    events: list[Event] = field(default_factory=list[Event])
    watch: Callable[[str, str], None] | None = None
    server: Server | None = None

    def note(self, kind: Kind, *details: Any) -> None:
        self.events.append(Event(self.now(), kind, details))

    def phase(self, marker: str, phase: str) -> None:
        self.note(Kind.PHASE, marker, phase)
        if self.watch is not None:
            self.watch(marker, phase)

    @property
    def in_flight(self) -> int:
        return 0 if self.server is None else self.server.session.in_flight

    @property
    def unsent_bytes(self) -> int:
        return 0 if self.server is None else self.server.session.unsent_bytes
