"""How work in a thread learns that it should stop, also while it waits for a lock.

Long work calls a `CancellationCheck` every few milliseconds. It raises what is to end the work: the cancellation of the
call, or `OutOfTime`. Code that is being stopped in this way lets the exception through.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

CancellationCheck = Callable[[], None]
POLL_SECONDS: Final = 0.01  # of waiting between two checks


class OutOfTime(Exception):  # no error: the caller asked for it
    """The time budget of a request is used up."""


def unchecked() -> None:
    """Let the work go on for as long as it takes."""


class FairLock:
    """A lock for threads, given in the order of asking: a writer that keeps coming back must not keep readers out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queue: deque[threading.Event] = deque()  # the first one holds the lock

    @contextmanager
    def hold(self, check: CancellationCheck) -> Generator[None]:
        """Hold the lock; waiting for it ends with what `check` raises."""
        place = threading.Event()
        with self._lock:
            self._queue.append(place)
            self._queue[0].set()
        try:
            while not place.wait(POLL_SECONDS):
                check()
            yield
        finally:
            with self._lock:
                self._queue.remove(place)
                if self._queue:
                    self._queue[0].set()
