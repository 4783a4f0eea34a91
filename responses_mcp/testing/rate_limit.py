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
    """So many requests in so many seconds, from the first one on; further ones get 429.

    As `FakeApi.default` it repeats the query in JSON, streamed or not. `refused` counts the replies with 429.
    """

    most: int
    seconds: float = 60.0
    refused: int = 0
    _begun: float = field(default=float("-inf"))
    _taken: int = 0

    def take(self, now: float) -> tuple[bool, dict[str, str]]:
        """Count a request, and return whether it is let through, and what the headers of its reply say."""
        if now >= self._begun + self.seconds:
            self._begun, self._taken = now, 0
        fits = self._taken < self.most
        self._taken += fits
        self.refused += not fits
        headers = {
            "x-ratelimit-limit-requests": str(self.most),
            "x-ratelimit-remaining-requests": str(self.most - self._taken),
            "x-ratelimit-reset-requests": f"{(self._begun + self.seconds - now) * 1000:.0f}ms",
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
