"""Work on the manuals in worker threads: each piece with a time limit, cancelled with its caller.

Threads come from limiters of their own, so that a long search never keeps a file from being read for the answer tools,
and building many manuals keeps nobody from reading.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import trio

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.under_trio import require_trio

if TYPE_CHECKING:
    from responses_mcp.manuals.library import Library
    from responses_mcp.settings.model import ManualsSettings

T = TypeVar("T")
Work = Callable[["Library", CancellationCheck], T]

THREADS: Final = 4
INDEXING: Final = 2  # more, for what writes to the index
_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Times:
    """How long things take at most, or are good for, in seconds."""

    fresh: float = 2.0  # for which a look at the files is good, or so many times as long as it took
    looks_apart: float = 20.0
    between_reports: float = 0.2  # of indexing
    # What each step has when the time of a find is over, so that finds with the smallest budget get on, too.
    least_look: float = 1.0
    least_indexing: float = 0.1
    least_search: float = 0.25
    grace: float = 1.0  # after which nobody waits any longer for a thread that hangs in the file system
    closing: float = 0.2
    patience: float = 1.0  # of a search with who makes vectors


class Stuck(OutOfTime):
    """A thread did not stop when its time was over; it may still be at work."""


class Threads:
    """The library of the manuals of `settings.root`, for use from tasks. Opens nothing before the first work."""

    def __init__(self, settings: ManualsSettings, times: Times) -> None:
        self._settings = settings
        self._times = times
        self._library: Library | None = None
        self._opening = threading.Lock()
        self._limiter = trio.CapacityLimiter(THREADS)
        self._indexing = trio.CapacityLimiter(INDEXING)
        self._closed = False

    @property
    def in_memory(self) -> str | None:
        """Return why the index is kept in memory although a file was wanted, None if it is not."""
        return self._library.unused if self._library is not None else None

    def require_open(self) -> None:
        """Raise `NotUnderTrio` outside of Trio, and `ManualsError` when this is closed."""
        require_trio()
        if self._closed:
            raise _closed()

    async def run(self, work: Work[T], deadline: float = float("inf"), *, indexing: bool = False) -> T:
        """Run `work` in a thread; its check raises when the caller is cancelled, and OutOfTime at the deadline.

        The caller need not wait for a thread that hangs in the file system; the thread keeps its place in the limiter.
        Raises Stuck when one did not stop, ManualsError when this is closed, and what `work` does.
        """
        require_trio()
        if self._closed:
            raise await self._end()
        until = time.monotonic() + (deadline - trio.current_time())

        def check() -> None:
            trio.from_thread.check_cancelled()
            if self._closed:
                raise _closed()
            if time.monotonic() >= until:
                raise OutOfTime

        def run() -> T:
            library = self._opened()
            check()  # it may have been closed meanwhile, and must not open an index after that
            return work(library, check)

        limiter = self._indexing if indexing else self._limiter
        try:
            with trio.move_on_at(deadline + self._times.grace):
                return await trio.to_thread.run_sync(run, abandon_on_cancel=True, limiter=limiter)
        except ManualsError as error:
            raise await self._end(error) from error.__cause__
        raise Stuck

    async def rebuilding(self, work: Callable[[], Awaitable[T]], forget: Callable[[], None]) -> T:
        """Do `work`; when it finds the index broken, or gone, `forget` what is known of it and begin with a new one."""
        for _ in range(_TRIES):
            age = self._library.age if self._library is not None else 0
            try:
                return await work()
            except ManualsError:
                raise
            except Exception as error:  # noqa: BLE001  # the library knows what a new index cures
                failure = error
            if not await self.run(lambda library, check: library.rebuild(failure, age, check)):  # noqa: B023
                raise failure
            forget()
        message = "The index of the manuals breaks again and again; set manuals.index_dir to a folder on another disk."
        raise ManualsError("conflict", message)

    async def aclose(self) -> None:
        """End all work and close the index. Waits `times.closing` at most for threads that hang in the file system."""
        require_trio()
        if self._closed:
            await trio.lowlevel.checkpoint()
            return
        self._closed = True
        with trio.move_on_after(self._times.closing, shield=True):
            for limiter in (self._limiter, self._indexing):
                for _ in range(int(limiter.total_tokens)):  # all of them: no thread is at work any more
                    await limiter.acquire_on_behalf_of(object())
            if self._library is not None:
                # Not under the default limiter: look-ups that were left behind may fill it.
                limiter = trio.CapacityLimiter(1)
                await trio.to_thread.run_sync(self._library.close, abandon_on_cancel=True, limiter=limiter)

    async def _end(self, error: ManualsError | None = None) -> ManualsError:
        """Return the error that ends a request, unless the caller is cancelled: that may be what has closed us."""
        if self._closed:
            await trio.lowlevel.checkpoint_if_cancelled()
        return error or _closed()

    def _opened(self) -> Library:
        """Return the library, in a thread."""
        with self._opening:
            if self._library is None:
                from responses_mcp.manuals.library import Library  # noqa: PLC0415  # SQLite need not delay the start

                self._library = Library(self._settings)
            return self._library


def _closed() -> ManualsError:
    return ManualsError("conflict", "The manuals are closed; open them again, or ask when the server has restarted.")
