"""A limit of requests in a time, as the API keeps one and tells it in the headers of each reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import trio

from responses_mcp.testing import bodies
from responses_mcp.testing.replies import Error, Json

if TYPE_CHECKING:
    from responses_mcp.testing.fake_api import RecordedRequest
    from responses_mcp.testing.replies import Reply


@dataclass(slots=True)
class RequestLimit:
    """So many requests in so many seconds; further ones get 429.

    What was taken comes back little by little, as OpenAI's own headers tell it (limit 60, one taken, all back in 1 s),
    or, with `at_once`, all of it that many seconds after the first request.
    As `FakeApi.default` it repeats the query in JSON, streamed or not. `refused` counts the replies with 429.
    """

    most: int
    seconds: float = 60.0
    at_once: bool = False
    refused: int = 0
    _taken: float = 0.0
    _since: float = field(default=float("-inf"))

    def take(self, now: float) -> tuple[bool, dict[str, str]]:
        """Count a request, and return whether it is let through, and what the headers of its reply say."""
        if not self.at_once:
            self._taken = max(0.0, self._taken - (now - self._since) * self.most / self.seconds)
            self._since = now
        elif now >= self._since + self.seconds:
            self._taken, self._since = 0.0, now
        fits = self._taken + 1 <= self.most + 1e-9
        self._taken += fits
        self.refused += not fits
        back = self._since + self.seconds - now if self.at_once else self._taken * self.seconds / self.most
        headers = {
            "x-ratelimit-limit-requests": str(self.most),
            "x-ratelimit-remaining-requests": str(int(self.most - self._taken + 1e-9)),
            "x-ratelimit-reset-requests": f"{back * 1000:.0f}ms",
        }
        return fits, headers

    def __call__(self, request: RecordedRequest) -> Reply:
        """Reply to a request."""
        fits, headers = self.take(trio.current_time())
        if not fits:
            told = {**headers, "retry-after": "1"}
            return Error(429, "Rate limit reached for requests.", code="rate_limit_exceeded", headers=told)
        wanted: Any = request.json
        if not isinstance(wanted, dict):
            return Error(400, "The body of the request is not a JSON object.", headers=headers)
        return Json(bodies.echo(cast("dict[str, Any]", wanted)), headers=headers)
