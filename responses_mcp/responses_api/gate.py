"""The gate of one model's rate limit: behind a limit, requests go in the order in which their calls came.

A gate is open until a reply says that nothing is left, or until a request is refused with 429. Then nobody sends before
the time that the reply names. At that time one request goes, and its reply decides about the others. Nobody overtakes:
a call keeps its place in the line over its retries, and one that is cancelled leaves the place to the next.

Headers count only with the time at which the limit is back (`x-ratelimit-remaining-requests` with
`x-ratelimit-reset-requests`, the same for tokens; developers.openai.com, "Rate limits").
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
    """Lets the requests of one model through. Each request is an `enter`, perhaps a `read`, and a `leave`."""

    def __init__(self) -> None:
        self._opens_at = -math.inf
        self._left = math.inf  # requests that may go before another reply has come
        self._back_at = -math.inf  # when the limit is back
        self._sent = 0
        self._unheard = set[int]()  # requests without a reply; what replies tell may not count them
        self._scout: int | None = None  # the request that holds the others up until its reply is known
        self._calls = 0
        self._line: list[tuple[int, trio.lowlevel.ParkingLot]] = []  # by ticket

    def ticket(self) -> int:
        """Return the place of a call in the line."""
        self._calls += 1
        return self._calls

    async def enter(self, ticket: int, deadline: float, tell: Callable[[str], None] | None) -> int:
        """Wait until the call may send a request, and return the number of the request.

        `tell` hears of a wait, in words for a person, unless it is None. Raises `RateLimited` where the gate opens
        after `deadline`.
        """
        if not self._line and self._opens_at <= trio.current_time():
            return self._send()
        lot = trio.lowlevel.ParkingLot()
        insort(self._line, (ticket, lot))
        try:
            while self._line[0][0] != ticket or self._opens_at > trio.current_time():
                seconds = self._opens_at - trio.current_time()
                if trio.current_time() + seconds >= deadline and self._scout is None:
                    raise RateLimited(
                        f"The API's rate limit is used up, and is back in {seconds:.0f} s: longer than this call may "
                        "take. Ask again then, or raise request.timeout_ms (OPENAI_API_TIMEOUT).",
                        retry_after=seconds,
                    )
                if tell is not None:
                    tell("waiting for the API's rate limit" + (f", {seconds:.0f} s or more" if seconds >= 1 else ""))
                    tell = None
                with trio.move_on_after(seconds if self._line[0][0] == ticket else math.inf):
                    await lot.park()
            return self._send()
        finally:
            del self._line[bisect(self._line, (ticket,))]
            self._wake()

    def read(self, number: int, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the reply to a request; names of headers are lower-case. A 429 is left to `leave`."""
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            return
        self._unheard.discard(number)
        if self._scout not in (None, number):  # an older reply
            return
        now = trio.current_time()
        remaining, reset = _allowance(headers)
        left = remaining - len(self._unheard)
        if number == self._scout or now >= self._back_at:
            self._scout = None
            self._left, self._opens_at, self._back_at = left, now, now + reset
        else:  # replies overtake each other, so until the limit is back the least that was told counts
            self._left, self._back_at = min(self._left, left), max(self._back_at, now + reset)
        if self._left <= 0:
            self._left, self._opens_at = 1, max(self._opens_at, self._back_at)
        self._wake()

    def leave(self, number: int, wait: float | None = None) -> None:
        """End a request. `wait` is given for one that the rate limit refused: the seconds until it is sent again."""
        self._unheard.discard(number)
        now = trio.current_time()
        if wait is not None:
            closed_until = now if self._scout is not None else self._opens_at
            self._opens_at = self._back_at = max(closed_until, now + wait)
            self._left, self._scout = 1, None
        elif number == self._scout:
            self._opens_at, self._scout = now, None
        self._wake()

    def _send(self) -> int:
        self._sent += 1
        self._unheard.add(self._sent)
        self._left -= 1
        if self._left <= 0:
            now = trio.current_time()
            self._left, self._opens_at = 1, self._back_at
            if self._back_at <= now:
                self._opens_at, self._scout = now + _NEWS, self._sent
        return self._sent

    def _wake(self) -> None:
        if self._line:
            self._line[0][1].unpark()


def _allowance(headers: Mapping[str, str]) -> tuple[float, float]:
    """Return how many requests are left, and in how many seconds the limit is back; no limit where nothing is told."""
    left, back = math.inf, 0.0
    for kind, remaining, reset in limits_in(headers):
        # A limit that is back later than a call waits is the API's to judge; of tokens, a request needs any number.
        if reset <= LONGEST_WAIT and (kind == "requests" or not remaining):
            left, back = min(left, remaining), max(back, reset + _ROUNDED)
    return left, back
