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
from datetime import UTC
from email.utils import parsedate_to_datetime
from operator import attrgetter

from responses_mcp.errors import UpstreamError

LONGEST_WAIT = 60.0  # seconds; a server that asks for more gets no retry, and the caller is told
LONGEST_DURATION = 86_400.0  # seconds
_FIRST_WAIT = 0.5
_LONGEST_BACKOFF = 8.0
_MOMENTS = 1e9  # seconds since 1970: no limit is back only in 30 years
# What is left of a limit, and when all of it is back (developers.openai.com, "Rate limits", and what gateways send).
_LIMITS = tuple(
    (f"{name}-remaining{of}", f"{name}-reset{of}")
    for name, of in (("x-ratelimit", "-requests"), ("x-ratelimit", "-tokens"), ("x-ratelimit", ""), ("ratelimit", ""))
)
# float() would also take nan, 1_000 and the digits of other scripts.
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(ms|milli|[dhms])[a-z]{0,9}(?:, | and )?")
_DURATION = re.compile(f"(?:{_PART.pattern}){{1,9}}")
_AGAIN = re.compile(rf"\b(?:(?:again|retry|resets?) (?:in|after)|wait(?: for)?) (?P<seconds>{_DURATION.pattern})")


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


def asked_wait(headers: Mapping[str, str], said: str = "") -> float | None:
    """Return the seconds that a response asks to wait, at most a day; None when it does not say.

    Reads `retry-after-ms`, `retry-after`, the reset of a limit that is used up, and the words of the error ("try again
    in 6s"); the first of them that says something counts. Zero, a date that has passed and what cannot be read say
    nothing: obeying them would repeat requests without a pause. `headers` has lower-case names.
    """
    again = _AGAIN.search(said.lower())
    waits = (
        seconds_until(headers.get("retry-after-ms", "") + "ms"),
        seconds_until(headers.get("retry-after", "")),
        max((reset for left, reset in limits_in(headers) if not left), default=None),
        again and seconds_until(again["seconds"]),
    )
    return next(filter(None, waits), None)


def limits_in(headers: Mapping[str, str]) -> Iterator[tuple[float | None, float]]:
    """Yield for each rate limit that a reply tells how much is left, and in how many seconds all of it is back.

    A limit without the time at which it is back is ignored. What is left is None where the reply does not say.
    """
    for remaining, back in _LIMITS:
        if back in headers and (reset := seconds_until(headers[back])) is not None:
            left = headers.get(remaining, "").strip()
            yield float(left) if _NUMBER.fullmatch(left) else None, reset


def seconds_until(text: str) -> float | None:
    """Return the seconds of a number or of a duration such as `6m0s`, or until a moment; None for another text.

    A moment is a date of HTTP, or (milli)seconds since 1970. The seconds are at most a day, and 0 for what has passed.
    """
    text = text.strip()
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        if seconds >= _MOMENTS:
            seconds = seconds / (1000 if seconds >= 1000 * _MOMENTS else 1) - time.time()
    elif _DURATION.fullmatch(text):
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    else:
        try:
            date = parsedate_to_datetime(text)
            seconds = date.replace(tzinfo=date.tzinfo or UTC).timestamp() - time.time()
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_DURATION)
