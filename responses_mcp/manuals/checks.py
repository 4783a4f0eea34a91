"""How work in a thread learns that it should stop.

Long work calls a `Check` every few milliseconds. It raises whatever is to end the work: the cancellation of the call,
or `OutOfTime`. Code that is being stopped in this way lets the exception through.
"""

from __future__ import annotations

from collections.abc import Callable

Check = Callable[[], None]


class OutOfTime(Exception):  # no error: the caller asked for it
    """The time budget of a request is used up."""


def unchecked() -> None:
    """Let the work go on for as long as it takes."""
