"""When to ask again and how long to wait first: pure functions of what came back (spec 7).

Retried are errors that may pass (429, 5xx, 408, 409) and connections that never carried the request. Not retried are an
exhausted quota and any other 4xx, which cannot get better, and a deadline or a connection lost after the request was
sent, which may have been billed. A `RetryPolicy` can say otherwise.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from operator import attrgetter

from responses_mcp.errors import UpstreamError

LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets no retry, and the caller is told
_FIRST_WAIT = 0.5
_LONGEST_BACKOFF = 8.0
# float() would also take nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_DIGITS = re.compile(r"[0-9]{1,15}")
LONGEST_DURATION = 86_400.0  # seconds
_MOMENTS = 1e9  # seconds since 1970: no limit is back only in 30 years
_LIMITS = (  # kinds, and where a reply tells what is left and when all of it is back
    ("requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    *(("requests", f"{name}-remaining", f"{name}-reset") for name in ("x-ratelimit", "ratelimit", "x-rate-limit")),
)
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "millisecond": 0.001}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(millisecond|ms|d|h|m|s)[a-z]{0,9}(?:, | and )?", re.ASCII)
_AGAIN = re.compile(r"\b(?:(?:again|retry|resets?) (?:in|after)|wait(?: for)?) (?=[0-9])")


def backoff(retries_done: int, random: float) -> float:
    """Return the seconds to wait before the next request: doubling from 0.5 to 8, up to a quarter taken off.

    `random` is in [0, 1); spreading the waits keeps many clients from coming back in one instant.
    """
    # The exponent is bounded before it is used: 2.0 ** 1100 would overflow.
    return min(_FIRST_WAIT * 2.0 ** min(retries_done, 10), _LONGEST_BACKOFF) * (1 - 0.25 * random)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Which failures of a call are worth another request, and how long to wait first.

    At most `max_retries` requests follow the first. `wait(retries done, random number in [0, 1))` gives the seconds
    where the API asks for none. One try takes at most `try_seconds`; `slow` says what to do about one that took longer.
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


def asked_wait(headers: Mapping[str, str], said: str = "", now: datetime | None = None) -> float | None:
    """Return the seconds that a response asks to wait, None when it does not say.

    Reads `retry-after-ms`, `retry-after` as seconds or as an HTTP date, the reset of a limit that is used up, and the
    words of the error ("try again in 6s"); the first of them that says something counts. Zero, a date that has passed
    and what cannot be read say nothing: obeying them would repeat requests without a pause. `headers` has lower-case
    names.
    """
    after = headers.get("retry-after", "").strip()
    for wait in (_number(headers.get("retry-after-ms", "").strip()) / 1000, _number(after)):
        if wait > 0:
            return wait
    try:
        date = parsedate_to_datetime(after)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        seconds = max((reset for _, left, reset in limits_in(headers, "0") if not left), default=0.0)
    if seconds <= 0 and (words := _AGAIN.search(lower := said.lower())):
        seconds, _ = _sum_of_parts(lower, words.end())
    return seconds if seconds > 0 else None


def limits_in(headers: Mapping[str, str], unsaid: str = "") -> Iterator[tuple[str, float, float]]:
    """Yield each rate limit that a reply tells: its kind, how much is left, and in how many seconds all of it is back.

    A limit that is told without the time at which it is back says nothing. `unsaid` is left of one that does not say.
    """
    for kind, remaining, back in _LIMITS:
        if (told := headers.get(back)) is None:
            continue
        left = headers.get(remaining, unsaid).strip()
        if _DIGITS.fullmatch(left) and (reset := seconds_until(told)) is not None:
            yield kind, float(left), reset


def seconds_until(text: str) -> float | None:
    """Return the seconds of a duration such as `6m0s`, `20ms` or `12`, or until a moment in (milli)seconds since 1970.

    They are at most a day, and 0 for what has passed; None for another text.
    """
    text = text.strip()
    seconds, end = _sum_of_parts(text, 0)
    if text and end == len(text):
        return seconds
    if not _NUMBER.fullmatch(text):
        return None
    seconds = float(text)
    if seconds >= _MOMENTS:
        seconds = max(0.0, seconds / (1000 if seconds >= 1000 * _MOMENTS else 1) - time.time())
    return min(seconds, LONGEST_DURATION)


def _sum_of_parts(text: str, start: int) -> tuple[float, int]:
    """Return the seconds of the parts of a duration that begin at `start`, at most a day, and where they end."""
    seconds = 0.0
    while found := _PART.match(text, start):
        seconds += float(found[1]) * _UNITS[found[2]]
        start = found.end()
    return min(seconds, LONGEST_DURATION), start


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else 0.0
