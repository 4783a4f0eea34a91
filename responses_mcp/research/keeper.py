"""The file of runs as tasks use it: each use in a thread, one at a time, and bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import trio

from responses_mcp.research.runs_file import LEASE_SECONDS, RunsFile, RunsFileUnusable

T = TypeVar("T")

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""

_PATIENCE: Final[float] = LEASE_SECONDS / 4  # seconds that a use of the file may take


@dataclass(slots=True)
class Keeper:
    """What one owner keeps its runs with. `in_thread` runs a function elsewhere; `clock` gives seconds since 1970."""

    file: RunsFile
    owner: str
    in_thread: InThread
    clock: Callable[[], float]
    _turn: trio.Lock = field(default_factory=trio.Lock)
    _waiting: set[trio.CancelScope] = field(default_factory=set[trio.CancelScope])

    async def use(self, work: Callable[[RunsFile], T]) -> T:
        """Do something with the file; cancelling this leaves what has begun. Raises `RunsFileUnusable`.

        That is also where it does not get its turn, while no use comes to an end: the disk hangs.
        """
        if await self._has_turn():
            try:
                with trio.move_on_after(_PATIENCE):
                    try:
                        done: T = await self.in_thread(lambda: work(self.file))
                    except RunsFileUnusable:
                        self._ended()
                        raise
                    self._ended()
                    return done
            except RuntimeError as error:  # "can't start new thread"
                raise RunsFileUnusable(f"The file of runs cannot be used for now: {error}.") from error
            finally:
                self._turn.release()
        raise RunsFileUnusable("The file of runs did not answer in time; check the disk that research.state_dir is on.")

    def _ended(self) -> None:
        """Have those who wait keep their places in the line: a use has come to its end."""
        for waiting in self._waiting:
            waiting.deadline = trio.current_time() + _PATIENCE

    async def _has_turn(self) -> bool:
        """Wait for the turn of a use, for as long as others come to their end; tell whether it has come."""
        with trio.move_on_after(_PATIENCE) as waiting:
            self._waiting.add(waiting)
            try:
                await self._turn.acquire()
            finally:
                self._waiting.discard(waiting)
            return True
        return False
