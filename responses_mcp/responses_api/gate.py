"""The gate of one model's rate limit: behind a limit, requests go in the order in which their calls came.

A reply tells how many more requests fit. When these have been sent, or one was refused with 429, nobody sends before
the time that the API names. Then one request goes, and its reply decides about the others. Nobody overtakes: a call
keeps its place in the line over its retries, and one that is cancelled leaves its turn to the next.
"""

from __future__ import annotations

import math
from bisect import bisect, insort
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import trio

from responses_mcp.errors import RateLimited
from responses_mcp.responses_api.retry import LONGEST_WAIT, limits_in

_NEWS: Final = 2.0  # seconds in which an API refuses a request that is too many
_ROUNDED: Final = 0.05  # seconds; times are told in rounded figures


class Gate:
    """Lets the requests of one model through.

    Each request is an `enter`, perhaps a `read`, perhaps a `close`, and a `leave`.
    """

    def __init__(self) -> None:
        self._opens_at = -math.inf
        self._left = math.inf  # requests that may go before a reply is awaited
        self._scout: int | None = None  # the call whose reply is awaited
        self._unheard = set[int]()  # calls without a reply; what other replies tell may not count them
        self._calls = 0
        self._line: list[tuple[int, trio.lowlevel.ParkingLot]] = []  # by ticket

    def ticket(self) -> int:
        """Return the place of a call in the line."""
        self._calls += 1
        return self._calls

    async def enter(self, ticket: int, deadline: float, tell: Callable[[str], None] | None) -> None:
        """Wait until the call may send a request.

        `tell` hears of a wait, in words for a person, unless it is None. Raises `RateLimited` where the gate opens
        after `deadline`.
        """
        if self._line or self._opens_at > trio.current_time():
            lot = trio.lowlevel.ParkingLot()
            insort(self._line, (ticket, lot))
            try:
                while self._line[0][0] != ticket or self._opens_at > trio.current_time():
                    seconds = self._opens_at - trio.current_time()
                    if self._scout is None and self._opens_at >= deadline:
                        raise RateLimited(
                            f"The API's rate limit is used up, and is back in {seconds:.0f} s: longer than this call "
                            "may take. Ask again then, or raise request.timeout_ms (OPENAI_API_TIMEOUT).",
                            retry_after=seconds,
                        )
                    if tell is not None:
                        tell(f"waiting for the API's rate limit, {max(0.0, seconds):.0f} s or more")
                        tell = None
                    with trio.move_on_after(seconds if self._line[0][0] == ticket else math.inf):
                        await lot.park()
            finally:
                del self._line[bisect(self._line, (ticket,))]
                self._wake()
        self._unheard.add(ticket)
        self._left -= 1
        if self._left <= 0:
            self._left, self._scout, self._opens_at = 1, ticket, trio.current_time() + _NEWS

    def read(self, ticket: int, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the reply to a request; names of headers are lower-case. A 429 is left to `leave`."""
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return
        self._unheard.discard(ticket)
        left, wait = math.inf, 0.0  # of the limit that has the least left
        for remaining, reset in limits_in(headers):
            # A limit that is back later than a call waits is the API's to judge.
            if remaining is not None and reset <= LONGEST_WAIT and (remaining, -reset) < (left, -wait):
                left, wait = remaining, reset
        if ticket == self._scout:
            self._left, self._scout, self._opens_at = math.inf, None, trio.current_time()
        self._left = min(self._left, left - len(self._unheard))  # replies overtake each other
        if self._left <= 0:
            self._close(wait + _ROUNDED)
        self._wake()

    def leave(self, ticket: int) -> None:
        """End a request, also one that was not sent."""
        self._unheard.discard(ticket)
        if ticket == self._scout:
            self._scout, self._opens_at = None, trio.current_time()
        self._wake()

    def close(self, ticket: int, seconds: float) -> None:
        """End a request that the limit refused: for some seconds none goes, and then one whose reply is awaited."""
        self.leave(ticket)
        self._close(seconds)

    def _close(self, seconds: float) -> None:
        self._left, self._scout, self._opens_at = 1, None, max(self._opens_at, trio.current_time() + seconds)

    def _wake(self) -> None:
        if self._line:
            self._line[0][1].unpark()
