"""The API's rate limits, as its replies tell them: a request waits in order before it would be refused.

OpenAI counts requests and tokens of a model, and each reply says how much is left and when all of it is back
(`x-ratelimit-remaining-requests`, `x-ratelimit-reset-requests`, the same for tokens; developers.openai.com, "Rate
limits"). Its own limits come back little by little (60 a minute, one taken, all back in 1 s), those of gateways at
once. Which of both it is, two replies show. Where that is not known and nothing is left, a request is sent on a guess,
and the next one when its reply has told more. Replies tell of some moment while other requests were on their way, so
what is left is kept as the least that it can be. The API's own word counts: no wait goes beyond a call's deadline.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import trio

_FIRST: Final = 8  # guesses at once while no reply has told anything; one, afterwards
_NEXT_GUESS: Final = 2.0  # seconds after which there are as many again, whatever has come
_SHORTEST: Final = 0.05  # seconds of a wait
_ROUNDED: Final = 1.01  # how far off a reset may be told
_DUST: Final = 1e-9  # of rounding
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
    """A request on its way: when it was sent, what it costs of each limit, and what had been told of until then."""

    at: float
    costs: tuple[float, ...]
    told: tuple[float, ...]


class _Alike(NamedTuple):
    """The last replies that one rate fits: within what it must lie, and the least and the most that was taken then."""

    slowest: float
    fastest: float
    least: float
    most: float


@dataclass(slots=True)
class _Allowance:
    """One limit. `left` is the least that there can be at `as_of`, None while nothing is known."""

    name: str
    left: float | None = None
    as_of: float = 0.0
    whole: float = math.inf
    back_at: float = 0.0
    rate: float = 0.0  # what comes back in a second, 0 unless it is known to come back little by little
    sent: float = 0.0
    told: float = 0.0  # of what was sent, what a reply has come for
    _alike: _Alike | None = None

    def lacks(self, cost: float, now: float) -> float:
        if self.left is None:
            return 0.0
        self._refill(now)
        return cost - self.left if cost > self.left + _DUST else 0.0

    def wait(self, cost: float, now: float) -> float:
        lacking = self.lacks(cost, now)
        if lacking and self.rate:
            return max(lacking / self.rate, _SHORTEST)
        return max(self.back_at - now, 0.0) if lacking else 0.0

    def take(self, cost: float, now: float) -> None:
        self.sent += cost
        if self.left is not None:
            self._refill(now)
            self.left -= cost

    def read(self, headers: Mapping[str, str], cost: float, told: float, since: float, now: float) -> None:
        """Take the headers of the reply to a request that was sent at `since`, when `told` had been told of."""
        remaining = _number(headers.get(f"x-ratelimit-remaining-{self.name}"))
        reset = duration(headers.get(f"x-ratelimit-reset-{self.name}", ""))
        if remaining is None or reset is None:
            return
        self.whole = _number(headers.get(f"x-ratelimit-limit-{self.name}")) or self.whole
        self._refill(now)
        self._learn_rate(self.whole - remaining, reset)
        # Whatever was sent after this request, or on its way beside it, may not be counted in what is told.
        least = remaining - (self.sent - told - cost)
        if self.left is not None and (self.rate or now < self.back_at):
            least = max(self.left, least)
        # Others may take from it too, so it is never more than what is told and what may have come back since.
        self.left = min(least, remaining + self.rate * (now - since))
        self.back_at = now + reset + _SHORTEST  # it is told in rounded figures

    def _refill(self, now: float) -> None:
        if self.left is not None and self.rate:
            # What is on its way may be counted late, and until then a full limit gets nothing back.
            most = max(self.left, self.whole - (self.sent - self.told))
            self.left = min(self.left + self.rate * (now - self.as_of), most)
        self.as_of = now

    def _learn_rate(self, taken: float, reset: float) -> None:
        if not 0 < taken < math.inf or reset <= 0:
            return
        # What is left is told in whole numbers, cut off.
        slowest, fastest = (taken - 1) / reset, taken / reset
        least = most = taken
        if self._alike is not None:
            series = self._alike
            if max(slowest, series.slowest) <= min(fastest, series.fastest) * _ROUNDED:
                slowest, fastest = max(slowest, series.slowest), min(fastest, series.fastest)
                least, most = min(least, series.least), max(most, series.most)
        self._alike = _Alike(slowest, fastest, least, most)
        # Where all comes back at once, the same rate fits replies only while about as much is taken.
        self.rate = min(slowest, fastest) if most > 2 * least else 0.0


class RateLimit:
    """The limits of one model. `now` is on any clock of seconds, always the same."""

    def __init__(self) -> None:
        self._allowances = (_Allowance("requests"), _Allowance("tokens"))
        self._heard = False
        self._guesses = _FIRST
        self._guessed_at = 0.0

    def costs(self, tokens: int) -> tuple[float, ...]:
        """Return what a request of so many tokens costs of each limit. More than there ever is counts as nothing.

        Only the API can judge such a request, and no waiting helps it.
        """
        return tuple(
            cost if cost <= each.whole else 0.0
            for each, cost in zip(self._allowances, (1.0, float(tokens)), strict=True)
        )

    def wait(self, costs: tuple[float, ...], now: float) -> float:
        """Return the seconds until so much may be sent, in one request or several."""
        if self._fits(costs, now):
            return 0.0
        return max(each.wait(cost, now) for each, cost in zip(self._allowances, costs, strict=True)) or self.guess(now)

    def guess(self, now: float) -> float:
        """Return the seconds until a request may be sent that is not known to fit; fewer, if a reply comes."""
        return 0.0 if self._guesses else max(self._guessed_at + _NEXT_GUESS - now, 0.0)

    def send(self, costs: tuple[float, ...], now: float) -> Sent:
        """Count a request that is sent now."""
        if not self._fits(costs, now):
            self._guesses = (self._guesses or (1 if self._heard else _FIRST)) - 1
            self._guessed_at = now
        request = Sent(now, costs, tuple(each.told for each in self._allowances))
        for each, cost in zip(self._allowances, costs, strict=True):
            each.take(cost, now)
        return request

    def read(self, request: Sent, headers: Mapping[str, str] | None, now: float) -> None:
        """Take the head of the reply to a request, its names in lower case; None if no reply will come."""
        if headers is not None and not self._heard:
            self._heard, self._guesses = True, 1
        elif request.at >= self._guessed_at:
            self._guesses = max(self._guesses, 1)
        for each, cost, told in zip(self._allowances, request.costs, request.told, strict=True):
            each.told += cost
            each.read(headers or {}, cost, told, request.at, now)

    def _fits(self, costs: tuple[float, ...], now: float) -> bool:
        lacking = any(each.lacks(cost, now) for each, cost in zip(self._allowances, costs, strict=True))
        return self._heard and not lacking


@dataclass(slots=True)
class Turns:
    """Lets the requests for one model through, in order."""

    limit: RateLimit = field(default_factory=RateLimit)
    _line: list[float] = field(default_factory=lambda: [0.0, 0.0])  # what those cost who wait in it
    _first: trio.Lock = field(default_factory=trio.Lock)
    _told: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def wait(self, tokens: int, deadline: float, tell: Callable[[str], None]) -> Sent:
        """Return when a request may be sent, having counted it.

        One whose turn would come after `deadline` goes out of line: it is sent on a guess, for the API to judge. `tell`
        hears of a wait, in words for a person. To be followed by `answered`.
        """
        costs = self.limit.costs(tokens)
        now = trio.current_time()
        wait = self.limit.wait(tuple(map(sum, zip(self._line, costs, strict=True))), now)
        if wait:
            tell(_waiting(wait))
        if now + wait >= deadline:
            return await self._turn(costs, -math.inf, tell, told=True)
        self._line = [ahead + cost for ahead, cost in zip(self._line, costs, strict=True)]
        try:
            async with self._first:
                return await self._turn(costs, deadline, tell, told=wait > 0)
        finally:
            self._line = [ahead - cost for ahead, cost in zip(self._line, costs, strict=True)]

    async def _turn(
        self, costs: tuple[float, ...], deadline: float, tell: Callable[[str], None], *, told: bool
    ) -> Sent:
        while True:
            now = trio.current_time()
            wait = self.limit.wait(costs, now)
            if now + wait >= deadline:
                wait = self.limit.guess(now)
            if not wait:
                return self.limit.send(costs, now)
            if not told:
                tell(_waiting(wait))
                told = True
            with trio.move_on_after(wait):
                await self._told.park()

    def answered(self, request: Sent, headers: Mapping[str, str] | None) -> None:
        """Take the head of the reply to a request, once; None if it ended without."""
        self.limit.read(request, headers, trio.current_time())
        self._told.unpark_all()


def _waiting(seconds: float) -> str:
    return "waiting for the API's rate limit" + (f", {seconds:.0f} s or more" if seconds >= 1 else "")


def _number(text: str | None) -> float | None:
    return min(float(text), _MOST) if text is not None and _NUMBER.fullmatch(text.strip()) else None
