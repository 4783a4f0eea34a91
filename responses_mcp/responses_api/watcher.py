"""What a caller is told of a call while it runs, and what the call asks of its caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from responses_mcp.json_types import JsonObject

if TYPE_CHECKING:
    from responses_mcp.room import Room
    from responses_mcp.usage.bill import Bill


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who watches a call. None of its functions may wait.

    `on_phase` is told what is going on ("searching", "writing", a retry), in words for a person. `on_text` is told the
    text while it is written, in pieces: after "" for its beginning, which comes again where an answer broke off. The
    pieces may end before the text does, and the text in other sources. With `room` the API is asked only while the
    client has read enough of its earlier answers. `client` is what the client calls itself, for the ledger. With
    `takes_tasks` the client can ask later for an answer that takes long.

    The others are for what makes a call on a caller's behalf. `on_event` is told each event of the stream. `on_send` is
    awaited right before each request, after all other waits, that for a connection too; what it raises ends the call,
    and nothing is sent. `bill` gets what each attempt used.
    """

    on_phase: Callable[[str], None] | None = None
    on_text: Callable[[str], None] | None = None
    room: Room | None = None
    client: str | None = None
    takes_tasks: bool = False
    on_event: Callable[[JsonObject], None] | None = None
    on_send: Callable[[], Awaitable[None]] | None = None
    bill: Bill | None = None

    async def wait_for_room(self) -> None:
        """Return once the client has read enough of its earlier answers."""
        if self.room is not None:
            await self.room.wait()

    async def before_sending(self) -> None:
        """Do what comes right before a request."""
        if self.on_send is not None:
            await self.on_send()
        if self.bill is not None:
            self.bill.sending()


NOBODY = Watcher()
