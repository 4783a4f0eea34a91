"""Keeping the index as the files are: the request that needs it looks at them and indexes what has changed.

There is no task for it. Requests that need the same manual meanwhile wait for the one that is at it, and one of them
goes on when its time is over or its caller gives up. What is left is done by the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import trio

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.threads import Stuck, Threads, Times, Work

if TYPE_CHECKING:
    from responses_mcp.manuals.index.update import Changes
    from responses_mcp.manuals.library import Library

Report = Callable[[int, int], None]
"""Told how many files are done, and of how many."""


@dataclass(eq=False)
class _State:
    """What is known of one manual: how long a look at its files is good, and what of it is still to be done."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    good_until: float = float("-inf")
    changes: Changes | None = None


class Updating:
    """The updates of all manuals of one library."""

    def __init__(self, threads: Threads, times: Times) -> None:
        self._threads = threads
        self._times = times
        self._states: dict[str, _State] = {}

    def forget(self) -> None:
        """Forget all that is known of the index, which is another one now."""
        self._states.clear()

    def require_look(self, name: str) -> None:
        """Have the next update of a manual look at its files, however fresh the last look is."""
        self._states.setdefault(name, _State()).good_until = float("-inf")

    async def updated(
        self, name: str, deadline: float, report: Report, query: str = "", first: Collection[str] = ()
    ) -> Changes | None:
        """Look at the files of a manual, unless another request just did, and index what has changed.

        Files in `first` come first, then those whose path has a word of `query`. Returns what is left to do at the
        deadline; None when that is not known by then.
        """
        state = self._states.setdefault(name, _State())
        try:
            state.lock.acquire_nowait()
        except trio.WouldBlock:
            with trio.move_on_at(deadline) as waiting:
                await state.lock.acquire()
            if waiting.cancelled_caught:
                return state.changes
        try:
            now = trio.current_time()
            if state.changes is None or now >= state.good_until:
                state.changes = None
                until = max(deadline, now + self._times.least_look)
                compare: Work[Changes] = lambda library, check: library.compare(name, check)  # noqa: E731
                state.changes = await self._threads.run(compare, until, indexing=True)
                took = trio.current_time() - now
                good = max(self._times.fresh, self._times.looks_apart * took)
                state.good_until = now + good if state.changes.whole else float("-inf")
            await self._update(state.changes, deadline, report, query, first)
        except Stuck:
            state.changes = None
        except OutOfTime:
            pass
        except BaseException:
            state.changes = None  # a thread may still be at it for a moment; the next find looks what it did
            raise
        finally:
            state.lock.release()
        return state.changes

    async def _update(
        self, changes: Changes, deadline: float, report: Report, query: str, first: Collection[str]
    ) -> None:
        total = len(changes.changed)
        steps: Iterator[None] | None = None

        def work(library: Library, check: CancellationCheck) -> None:
            nonlocal steps
            if steps is None:
                steps = library.update(changes, check, query=query, first=first)
            slice_over = time.monotonic() + self._times.between_reports
            for _ in steps:
                if time.monotonic() >= slice_over:
                    return

        until = max(deadline, trio.current_time() + self._times.least_indexing)
        while changes.changed or changes.gone:
            if total:
                report(total - len(changes.changed), total)
            await self._threads.run(work, until, indexing=True)
        if total:
            report(total, total)
