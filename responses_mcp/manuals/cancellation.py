"""How work in a thread learns that it should stop, also while it waits for a lock.

Long work calls a `CancellationCheck` every few milliseconds. It raises what is to end the work: the cancellation of the
call, or `OutOfTime`. Code that is being stopped in this way lets the exception through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

CancellationCheck = Callable[[], None]
POLL_SECONDS: Final = 0.01  # of waiting between two checks


class OutOfTime(Exception):  # no error: the caller asked for it
    """The time budget of a request is used up."""


def unchecked() -> None:
    """Let the work go on for as long as it takes."""


@contextmanager
def holding(lock: threading.Lock, check: CancellationCheck) -> Generator[None]:
    """Hold a lock; waiting for it ends with what `check` raises."""
    while not lock.acquire(timeout=POLL_SECONDS):
        check()
    try:
        yield
    finally:
        lock.release()
