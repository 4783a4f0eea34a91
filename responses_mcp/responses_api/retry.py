"""When to ask again, how long to wait first, and when the next request of a model may go (spec 7).

An error says whether it may pass without being paid for twice, and a `RetryPolicy` may say otherwise.

Behind a limit of the rate, the requests of a model go in the order in which their calls came. A reply tells how many
more fit. When these have been sent, or one was refused with 429, nobody sends before the time that the API names. Then
one request goes, and its reply decides about the others. A call keeps its place in the line over its retries.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from operator import attrgetter

import trio

from responses_mcp.errors import RateLimited, UpstreamError

LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets no retry, and the caller is told
LONGEST_DURATION = 86_400.0  # seconds
_NEWS = 2.0  # seconds in which an API refuses a request that is too many
_ROUNDED = 0.05  # seconds; times are told in rounded figures
_FIRST_WAIT = 0.5
_LONGEST_BACKOFF = 8.0
_MOMENTS = 1e9  # seconds since 1970: no limit is back only in 30 years
# float() would also take nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_UNITS = {"d": 86_400.0, "h": 3_600.0, "时": 3_600.0, "時": 3_600.0, "m": 60.0, "分": 60.0, "s": 1.0, "秒": 1.0}
_PART = re.compile(
    r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?小?(ms|milli|[dhms秒分时時])"
    r"(?:ays?|[eo]?u?r[ae]?s?|in(?:ut[a-z]{0,2})?s?|s?e[ckg][a-z]{0,6}|[钟鐘間])?(?![a-z])(?:,? (?:and )?(?=[0-9]))?"
)
_DURATION = re.compile(f"(?:{_PART.pattern}){{1,9}}")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[t ][0-9:.]{5,15}(?:[+-][0-9]{2}:?[0-9]{2})?)?"
_ONE = re.compile(r"\ban? (?=(?:second|minute|hour|day)\b)")
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s)|[。！;]")
_AGAIN = re.compile(  # what a time in words is for
    r"again|retr[yi]|wait|reset|available|accepted|replenish|refill|cool ?down|back ?off"
    r"|erneut|warte|réessa|patient|intent|espere|riprova|attend|повтор|[后後待再重]"
)
_TIME = re.compile(
    rf"(?<!per )(?<!/)(?<![\w.-])(?:{_DURATION.pattern}(?! ?(?:tokens|requests))|{_DATE}"
    r"|(?:(?<=after: )|(?<=after=))[0-9]{1,9}(?:\.[0-9]{1,9})?(?![\w:]|\.[0-9]))"
)


def backoff(retries_done: int, random: float) -> float:
    """Return the seconds to wait before the next request: doubling from 0.5 to 8, up to a quarter taken off.

    `random` is in [0, 1).
    """
    # The exponent is bounded before it is used: 2.0 ** 1100 would overflow.
    return min(_FIRST_WAIT * 2.0 ** min(retries_done, 10), _LONGEST_BACKOFF) * (1 - 0.25 * random)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Which failures of a call are worth another request, and how long to wait first.

    `wait(retries done, random number in [0, 1))` gives the seconds where the API asks for none. One try takes at most
    `try_seconds`; `slow` says what to do about one that took longer.
    """

    max_retries: int
    wait: Callable[[int, float], float]
    repeats: Callable[[UpstreamError], bool] = attrgetter("retryable")
    try_seconds: float = math.inf
    slow: str = ""

    def wait_before_retry(self, error: UpstreamError, retries_done: int, random: Callable[[], float]) -> float | None:
        """Return the seconds after which the same request is worth it once more; None when it is not."""
        if not self.repeats(error):
            return None
        return self.wait(retries_done, random()) if error.retry_after is None else error.retry_after


def is_searched_again(error: UpstreamError) -> bool:
    """Tell whether a search is repeated, which may be paid for twice unless it had begun to answer."""
    may_repeat = (error.retryable or error.maybe_paid) and error.progress != "begun"
    return may_repeat and error.kind in ("rate_limit", "connection", "timeout")


def asked_wait(headers: Mapping[str, str], said: str = "") -> float | None:
    """Return the seconds that a response asks to wait, at most a day; None when it does not say.

    The first of the headers, whose names are lower-case, and the words ("try again in 6s") that says something counts.
    Zero, a date that has passed and what cannot be read say nothing: requests would be repeated without a pause.
    """
    waits = (
        seconds_until(headers.get("retry-after-ms", "") + "ms"),
        seconds_until(headers.get("retry-after", "")),
        max((reset for left, reset in limits_in(headers) if not left), default=None),
        _wait_in(said.lower()),
    )
    return next(filter(None, waits), None)


def _wait_in(said: str) -> float | None:
    """Return the seconds from a sentence about asking again: the first time behind the word for that, else before."""
    for sentence in _SENTENCE_ENDS.split(_ONE.sub("1 ", said)):
        if again := _AGAIN.search(sentence):
            times = *_TIME.finditer(sentence, again.end()), *_TIME.finditer(sentence, 0, again.start())
            if wait := next(filter(None, (seconds_until(time[0]) for time in times)), None):
                return wait
    return None


def limits_in(headers: Mapping[str, str]) -> Iterator[tuple[float | None, float]]:
    """Yield how much each rate limit with a time has left, None if untold, and in how many seconds all of it is back.

    Servers name limits alike, as in `x-ratelimit-reset-tokens` and `x-ratelimit-remaining-tokens`.
    """
    for name, back in headers.items():
        if "limit" in name and "reset" in name and (reset := seconds_until(back)) is not None:
            left = headers.get(name.replace("reset", "remaining"), "").strip()
            yield float(left) if _NUMBER.fullmatch(left) else None, reset


def seconds_until(text: str) -> float | None:
    """Return the seconds of a number or of a duration such as `6m0s`, or until a moment; None for another text.

    A moment is a date of HTTP or ISO, or (milli)seconds since 1970. What has passed is 0, and the most is a day.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        if seconds >= _MOMENTS:
            seconds = seconds / (1000 if seconds >= 1000 * _MOMENTS else 1) - time.time()
    elif _DURATION.fullmatch(text):
        seconds = sum(float(number) * _UNITS.get(unit, 0.001) for number, unit in _PART.findall(text))
    else:
        try:
            date = datetime.fromisoformat(text) if text[4:5] == "-" else parsedate_to_datetime(text)
            seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_DURATION)


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
                            f"The API's rate limit is used up for {seconds:.0f} s, which is longer than this call "
                            "may take. Ask again after that, or raise request.timeout_ms (OPENAI_API_TIMEOUT).",
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
