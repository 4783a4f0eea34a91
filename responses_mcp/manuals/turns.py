"""A lock for threads that may have to stop while they wait for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from responses_mcp.manuals.checks import Check

PATIENCE: Final = 0.01  # seconds of waiting between two looks at whether to stop


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
