"""Room for output that the peer has not read.

Calls wait here before they ask the API, so that answers to a peer that does not read stay bounded.
"""

from __future__ import annotations

from collections.abc import Callable

import trio


class Room:
    """Room while fewer than `limit` bytes are `unsent()`; `changed` must be called when they have become fewer."""

    def __init__(self, limit: int, unsent: Callable[[], int]) -> None:
        self._limit = limit
        self._unsent = unsent
        self._waiting = trio.lowlevel.ParkingLot()

    async def wait(self) -> None:
        """Return once there is room. Where there is, this is no checkpoint."""
        if not self._is_full():
            return
        while self._is_full():
            await self._waiting.park()
        self._waiting.unpark()  # the next one looks in the next step, when this one may have filled the room
        await trio.lowlevel.checkpoint_if_cancelled()  # a cancel in the step that made room must not cost a request

    def changed(self) -> None:
        """Let the next one that waits look again."""
        if not self._is_full():
            self._waiting.unpark()

    def _is_full(self) -> bool:
        return self._unsent() >= self._limit
