"""What one call of the API used: counted from each Response that came back, whatever is in it.

Where a count of tokens is no count, or too large for any call, none of its Response is believed: a server can make a
call neither cheaper by such a number nor a sum of ours endless.
"""

from __future__ import annotations

from itertools import repeat
from typing import Any, Final, NamedTuple

from responses_mcp.json_types import JsonObject, as_object, objects
from responses_mcp.settings.model import SERVICE_TIERS
from responses_mcp.usage.models import PriceList

MOST_TOKENS: Final = 100_000_000  # of one Response; the longest context has a hundredth of it
_MOST_SEARCHES: Final = 10_000
_MOST_ITEMS: Final = 10_000
_COUNTS: Final = {
    "input_tokens": "prompt_tokens",
    "output_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
}
_OTHER_TIER: Final = "other"  # no word of the API's own is repeated: it may be the key; its price is not known


class Usage(NamedTuple):
    """What a call used, all its attempts together.

    `cached_tokens` are among the input tokens, `reasoning_tokens` among the output tokens. `counted` tells that a
    server counted anything, `uncounted` how many attempts may be billed without anybody having told for what.
    `cost_usd` is an estimate from prices of the day `prices_as_of`; None where the price is not known.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    total_tokens: int = 0
    web_searches: int = 0
    file_searches: int = 0
    service_tier: str | None = None
    attempts: int = 0
    counted: bool = False
    uncounted: int = 0
    cost_usd: float | None = None
    prices_as_of: str | None = None

    def as_json(self) -> JsonObject:
        """Return what is known, under the names of the API; members that nobody told are left out."""
        shown: JsonObject = {}
        if self.counted:
            shown = {
                "input_tokens": self.input_tokens,
                "cached_tokens": self.cached_tokens,
                "output_tokens": self.output_tokens,
                "reasoning_tokens": self.reasoning_tokens,
                "total_tokens": self.total_tokens,
                "web_searches": self.web_searches,
            }
            if self.file_searches:
                shown["file_searches"] = self.file_searches
        if self.service_tier is not None:
            shown["service_tier"] = self.service_tier
        shown["attempts"] = self.attempts
        if self.uncounted:
            shown["uncounted_attempts"] = self.uncounted
        if self.cost_usd is not None:
            shown["cost_usd"] = round(self.cost_usd, 6)
            if self.prices_as_of is not None:
                shown["prices_as_of"] = self.prices_as_of
        return shown

    def plus(self, other: Usage) -> Usage:
        """Return what both used; a sum with an unknown cost is unknown."""
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return other._replace(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            total_tokens=self.total_tokens + other.total_tokens,
            web_searches=self.web_searches + other.web_searches,
            file_searches=self.file_searches + other.file_searches,
            cost_usd=cost,
            prices_as_of=None if cost is None else other.prices_as_of,
        )


def usage_from(told: JsonObject) -> Usage:
    """Return what `Usage.as_json` has told."""
    named: dict[str, Any] = {name: told[name] for name in Usage._fields if name in told}
    named |= {"counted": "input_tokens" in told, "uncounted": told.get("uncounted_attempts", 0)}
    return Usage(**named)


class Bill:
    """The bill of one call, which whoever makes its requests writes.

    `sending()` before each request goes out, then `take(response)` for what came back or `not_billed()`; neither means
    that it may have been billed. `attempts` are the requests, of which `uncounted` may be billed without a word.
    """

    def __init__(self, model: str, prices: PriceList, *, service_tier: str | None = None) -> None:
        self.attempts = 0
        self.uncounted = 0
        self._used = Usage()
        self._model = model
        self._prices = prices
        self._asked_tier = service_tier
        self._pending = False

    @property
    def usage(self) -> Usage:
        """Return what is known so far."""
        return self._used._replace(attempts=self.attempts, uncounted=self.uncounted)

    def sending(self) -> None:
        """Count an attempt, which from now on may be billed."""
        self.attempts += 1
        self.uncounted += 1
        self._pending = True

    def not_billed(self) -> None:
        """Say that the last request was refused, or did not arrive."""
        if self._pending:
            self.uncounted -= 1
            self._pending = False

    def maybe_billed(self) -> None:
        """Say that the last request may be worked on all the same, behind who refused it."""
        if not self._pending and self.attempts:
            self.uncounted += 1
            self._pending = True

    def take(self, response: JsonObject) -> None:
        """Add what a Response that has ended says that it used; without a word, only one that failed cost nothing.

        One that was cancelled was worked on, one that failed with output may be billed whatever it says, and an error
        in the stream, which has no id, tells nothing of it.
        """
        usage = as_object(response.get("usage"))
        told = _understood(usage)
        failed = response.get("status") == "failed"
        if not told or (failed and response.get("output") and not any(_count(told, name) for name in _COUNTS)):
            if failed and "id" in response and not usage and not response.get("output"):
                self.not_billed()
            return
        self.not_billed()
        self._add(response, told)

    def _add(self, response: JsonObject, told: JsonObject) -> None:
        inputs, outputs = _count(told, "input_tokens"), _count(told, "output_tokens")
        of_input, of_output = as_object(told.get("input_tokens_details")), as_object(told.get("output_tokens_details"))
        cached = min(_count(of_input, "cached_tokens"), inputs)
        written = min(_count(of_input, "cache_write_tokens"), inputs)
        web_searches, file_searches = _web_searches(response), _ran(response, "file_search_call")
        tier = response.get("service_tier")
        tier = tier.strip().lower() if isinstance(tier, str) else ""
        if not tier:
            tier = self._asked_tier
        elif tier not in SERVICE_TIERS:
            tier = _OTHER_TIER
        cost = self._prices.cost(
            self._model,
            input_tokens=inputs,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=outputs,
            web_searches=web_searches,
            file_searches=file_searches,
            service_tier=tier,
        )
        one = Usage(
            input_tokens=inputs,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=outputs,
            reasoning_tokens=min(_count(of_output, "reasoning_tokens"), outputs),
            total_tokens=inputs + outputs or _count(told, "total_tokens"),
            web_searches=web_searches,
            file_searches=file_searches,
            service_tier=tier,
            counted=True,
            cost_usd=cost,
            prices_as_of=None if cost is None else self._prices.as_of(self._model),
        )
        self._used = self._used.plus(one) if self._used.counted else one


def _understood(told: JsonObject) -> JsonObject:
    """Return what was used, with its counts under the names of the Responses API; nothing where none, or no count, is.

    Some servers use the names of chat completions, or floats. What nobody understands was not free.
    """
    counts: JsonObject = {}
    for name, other in _COUNTS.items():
        value = told.get(name, told.get(other))
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value <= MOST_TOKENS:
            counts[name] = value
        elif value is not None and name != "total_tokens":  # which is told as the sum of the others
            return {}
    return {**told, **counts} if counts else {}


def _count(mapping: JsonObject, key: str) -> int:
    value = mapping.get(key)
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else 0


def _web_searches(response: JsonObject) -> int:
    """Return the searches that are billed, where the server tells, or else those that ran."""
    billed = as_object(as_object(response.get("tool_usage")).get("web_search")).get("num_requests")
    if type(billed) is int and 0 <= billed <= _MOST_SEARCHES:
        return billed
    return _ran(response, "web_search_call")


def _ran(response: JsonObject, kind: str) -> int:
    items = objects(response.get("output"), repeat(None, _MOST_ITEMS))
    return sum(item.get("type") == kind and item.get("status") != "failed" for item in items)
