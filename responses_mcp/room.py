"""Room for output that the peer has not read: who may add to it, and when.

Calls wait here before they ask the API, so that answers to a peer that does not read stay bounded. They go on in the
order in which they came: otherwise small answers could keep a large one waiting for ever.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import trio


class Room:
    """Bytes that may wait to be read: `limit`, less the `unsent()` ones, less those held for answers that will come.

    `changed` must be called when `unsent()` has become less.
    """

    def __init__(self, limit: int, unsent: Callable[[], int]) -> None:
        self._limit = limit
        self._unsent = unsent
        self._held = 0
        self._line = trio.StrictFIFOLock()  # whoever has it is the first in line, and waits for a change
        self._change = trio.Event()

    async def wait(self) -> None:
        """Return once there is any room. Where there is, and nobody waits for it, this is no checkpoint."""
        if self._line.locked() or not self._fits(1):
            await self._take(1, hold=0)

    @asynccontextmanager
    async def reserve(self, size: int) -> AsyncGenerator[None]:
        """Hold `size` bytes while the block runs, once they fit. More than half of the limit count as half of it.

        What the block was for should be queued in the step that leaves it: who waits looks again in the next.
        """
        size = min(size, self._limit // 2)
        await self._take(size, hold=size)
        try:
            yield
        finally:
            self._held -= size
            self.changed()

    def changed(self) -> None:
        """Let the first in line look again."""
        self._change.set()

    def _fits(self, size: int) -> bool:
        return self._unsent() + self._held + size <= self._limit

    async def _take(self, size: int, *, hold: int) -> None:
        async with self._line:
            while not self._fits(size):
                self._change = trio.Event()
                await self._change.wait()
            self._held += hold
