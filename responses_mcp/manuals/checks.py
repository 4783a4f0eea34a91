"""How work in a thread learns that it should stop, also while it waits for its turn.

Long work calls a `Check` every few milliseconds. It raises whatever is to end the work: the cancellation of the call,
or `OutOfTime`. Code that is being stopped in this way lets the exception through.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

Check = Callable[[], None]
PATIENCE: Final = 0.01  # seconds of waiting between two looks at whether to stop


class OutOfTime(Exception):  # no error: the caller asked for it
    """The time budget of a request is used up."""


def unchecked() -> None:
    """Let the work go on for as long as it takes."""


class Turns:
    """A lock given to those who wait in their order: a writer that keeps coming back must not keep readers out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self, check: Check) -> Generator[None]:
        """Hold the lock; waiting for it ends with what `check` raises."""
        self._take(check)
        try:
            yield
        finally:
            self._give()

    def _take(self, check: Check) -> None:
        turn = threading.Event()
        with self._lock:
            if not self._taken:
                self._taken = True
                return
            self._waiting.append(turn)
        try:
            while not turn.wait(PATIENCE):
                check()
        except BaseException:
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    raise
            self._give()  # it came all the same
            raise

    def _give(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
