"""The API's rate limits, as its replies tell them: a request waits in order before it would be refused.

OpenAI counts requests and tokens of a model, and each reply says how much is left and when all of it is back
(`x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, the same for tokens; developers.openai.com, "Rate
limits"). Replies tell it as of some moment while others were on their way, so what is left is kept as the least that it
can be. The API's own word counts: a wait that would go past a call's deadline is not made, and the request is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import trio

_FIRST: Final = 8  # requests at once while no reply has told anything
_UNTOLD: Final = 2.0  # seconds after which that holds nobody up any more
_MOST: Final = 10**12
_LONGEST_RESET: Final = 86_400.0  # seconds
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_SECONDS: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")
_DURATION: Final = re.compile(
    r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m(?!s))?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)s)?"
    r"(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)ms)?"
)
_UNITS: Final = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)


def duration(text: str) -> float | None:
    """Return the seconds of a duration such as `6m0s`, `1s`, `20ms` or `12`, at most a day; None for another text."""
    text = text.strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _LONGEST_RESET)
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    parts = zip(found.groups(), _UNITS, strict=True)
    return min(sum(float(number) * unit for number, unit in parts if number), _LONGEST_RESET)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way: what it costs of each limit, and what had been told of when it was sent."""

    costs: tuple[float, ...]
    told: tuple[float, ...]


@dataclass(slots=True)
class _Allowance:
    """One limit. `left` is the least that there can be after all that was sent, None while nothing is known."""

    name: str
    left: float | None = None
    whole: float | None = None
    back_at: float = 0.0
    sent: float = 0.0
    told: float = 0.0  # of what was sent, what a reply has come for

    def wait(self, cost: float, now: float, *, busy: bool) -> float:
        if self.left is not None and cost > self.left and now >= self.back_at:
            self.left = max(self.left, (self.whole or cost) - (self.sent - self.told))
        if self.left is None or cost <= self.left:
            return 0.0
        if now < self.back_at:
            return self.back_at - now
        return math.inf if busy else 0.0  # more than there ever is: alone, for the API to judge

    def take(self, cost: float) -> None:
        self.sent += cost
        if self.left is not None:
            self.left -= cost

    def read(self, cost: float, told: float, headers: Mapping[str, str], now: float) -> None:
        remaining = _number(headers.get(f"x-ratelimit-remaining-{self.name}"))
        reset = duration(headers.get(f"x-ratelimit-reset-{self.name}", ""))
        if remaining is None or reset is None:
            return
        # Whatever was sent after this request, or on its way beside it, may not be counted in what is told.
        least = remaining - (self.sent - told - cost)
        if self.left is not None and now < self.back_at:
            least = max(self.left, least)
        self.left = min(least, remaining)
        self.whole = _number(headers.get(f"x-ratelimit-limit-{self.name}")) or self.whole
        self.back_at = now + reset


class RateLimit:
    """The limits of one model. `now` is on any clock of seconds, always the same."""

    def __init__(self) -> None:
        self._allowances = (_Allowance("requests"), _Allowance("tokens"))
        self._in_flight = 0
        self._heard = False
        self._untold_until = math.inf

    def wait(self, tokens: int, now: float) -> float:
        """Return for how many seconds a request of so many tokens must wait: infinity for until a reply comes."""
        if not self._heard and self._in_flight >= _FIRST and now < self._untold_until:
            return self._untold_until - now
        busy = self._in_flight > 0
        costs = (1.0, float(tokens))
        return max(each.wait(cost, now, busy=busy) for each, cost in zip(self._allowances, costs, strict=True))

    def send(self, tokens: int, now: float) -> Sent:
        """Count a request that is sent now."""
        if self._untold_until == math.inf:
            self._untold_until = now + _UNTOLD
        self._in_flight += 1
        request = Sent((1.0, float(tokens)), tuple(each.told for each in self._allowances))
        for each, cost in zip(self._allowances, request.costs, strict=True):
            each.take(cost)
        return request

    def read(self, request: Sent, headers: Mapping[str, str], now: float) -> None:
        """Take what the head of its reply tells, in lower-case names."""
        self._heard = True
        for each, cost, told in zip(self._allowances, request.costs, request.told, strict=True):
            each.told += cost
            each.read(cost, told, headers, now)

    def unanswered(self, request: Sent) -> None:
        """Take it that no reply will come for a request."""
        for each, cost in zip(self._allowances, request.costs, strict=True):
            each.told += cost

    def end(self) -> None:
        """Count one request less on its way."""
        self._in_flight -= 1


@dataclass(slots=True)
class Turns:
    """Lets the requests for one model through, in order."""

    limit: RateLimit = field(default_factory=RateLimit)
    _queue: trio.Lock = field(default_factory=trio.Lock)
    _told: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def wait(self, tokens: int, deadline: float, tell: Callable[[str], None]) -> Sent:
        """Return when a request may be sent, having counted it; before `deadline`, whatever the API has told.

        `tell` hears of a wait, in words for a person. To be followed by `answered`, if a reply begins, and `over`.
        """
        told = self._tell(self.limit.wait(tokens, trio.current_time()), tell)
        async with self._queue:
            while True:
                now = trio.current_time()
                wait = self.limit.wait(tokens, now)
                if wait <= 0 or (wait < math.inf and now + wait >= deadline):
                    return self.limit.send(tokens, now)
                told = told or self._tell(wait, tell)
                with trio.move_on_after(wait):
                    await self._told.park()

    @staticmethod
    def _tell(wait: float, tell: Callable[[str], None]) -> bool:
        if wait > 0:
            tell("waiting for the API's rate limit" + (f", {wait:.0f} s or more" if 1 <= wait < math.inf else ""))
        return wait > 0

    def answered(self, request: Sent, headers: Mapping[str, str]) -> None:
        """Take the head of a reply."""
        self.limit.read(request, headers, trio.current_time())
        self._told.unpark_all()

    def over(self, request: Sent, *, answered: bool) -> None:
        """Take it that a request is not on its way any more; `answered` if a reply had begun."""
        if not answered:
            self.limit.unanswered(request)
        self.limit.end()
        self._told.unpark_all()


def _number(text: str | None) -> float | None:
    return min(float(text), _MOST) if text is not None and _NUMBER.fullmatch(text.strip()) else None
