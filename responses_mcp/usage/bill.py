"""What one call of the API used: counted from each Response that came back, whatever is in it."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Final, NamedTuple

from responses_mcp.json_types import JsonObject, as_object, objects
from responses_mcp.settings.model import SERVICE_TIERS
from responses_mcp.usage.models import PriceList, Usage

MOST: Final = 100_000_000  # of what one Response counts; the longest context has a hundredth of it
_MOST_ITEMS: Final = 10_000

UNSENT: Final = Usage()
"""What a call used that made no request."""

MAYBE_PAID: Final = Usage(attempts=1, uncounted=1)
"""What a call used that may have been paid, although nobody counted it."""


def usage_from(shown: JsonObject) -> Usage:
    """Return the usage that `Usage.as_json` has written."""
    known: dict[str, Any] = {name: shown[name] for name in Usage._fields if name in shown}
    known |= {"counted": "input_tokens" in shown, "uncounted": shown.get("uncounted_attempts", 0)}
    return Usage(**known)


class Call(NamedTuple):
    """What names a call in the ledger: its id, when it began in seconds since 1970, for whom, and its model.

    From then on it `may_take` so many seconds; by default a week, the most that any setting allows. Calls of one `kind`
    are expected to cost the same.
    """

    id: str
    at: float
    tool: str
    model: str
    client: str | None = None
    may_take: float = 604_800.0
    kind: str = ""


class Bill:
    """The bill of one call, written by the code that makes its requests.

    That code calls `sending()` before each request, then `take(response)` for what came back, or `not_billed()`. A
    request with neither may be billed. `usage` is what is known so far.
    """

    def __init__(self, model: str, prices: PriceList, *, service_tier: str | None = None) -> None:
        self.usage = UNSENT
        self._model = model
        self._prices = prices
        self._wanted_tier = service_tier
        self._pending = False

    def sending(self) -> None:
        """Count an attempt, which from now on may be billed."""
        self.usage = self.usage._replace(attempts=self.usage.attempts + 1)
        self._expect_bill(1)

    def not_billed(self) -> None:
        """Record that the last request was refused, or did not arrive."""
        if self._pending:
            self._expect_bill(-1)

    def maybe_billed(self) -> None:
        """Record that the API may work on the last request although a gateway refused it."""
        if not self._pending and self.usage.attempts:
            self._expect_bill(1)

    def _expect_bill(self, more: int) -> None:
        self.usage = self.usage._replace(uncounted=self.usage.uncounted + more)
        self._pending = more > 0

    def take(self, response: JsonObject) -> None:
        """Add what a Response that has ended says that it used.

        Without a count, only a Response that failed before it wrote anything cost nothing: a cancelled one was worked
        on, and an error in the stream, which has no id, says nothing about the response. A failed Response with output
        may be billed even if it counts zero tokens.
        """
        usage = as_object(response.get("usage"))
        is_counted = any(type(usage.get(name)) is int for name in ("input_tokens", "output_tokens", "total_tokens"))
        used = self._priced(response, usage)
        failed, output = response.get("status") == "failed", response.get("output")
        if not is_counted or (failed and output and not used.total_tokens):
            if failed and "id" in response and not response.get("usage") and not output:
                self.not_billed()
            return
        self.not_billed()
        self.usage = self.usage.plus(used)

    def _priced(self, response: JsonObject, usage: JsonObject) -> Usage:
        details = as_object(usage.get("input_tokens_details"))
        billed = as_object(as_object(response.get("tool_usage")).get("web_search")).get("num_requests")
        read, wrote = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
        tier = response.get("service_tier")
        tier = tier.strip().lower() if isinstance(tier, str) else ""
        used = Usage(
            input_tokens=read,
            cached_tokens=min(_count(details.get("cached_tokens")), read),
            output_tokens=wrote,
            reasoning_tokens=_count(as_object(usage.get("output_tokens_details")).get("reasoning_tokens")),
            total_tokens=read + wrote or _count(usage.get("total_tokens")),
            web_searches=_ran(response, "web_search_call") if billed is None else _count(billed),
            file_searches=_ran(response, "file_search_call"),
            service_tier=tier if tier in SERVICE_TIERS else self._wanted_tier,
            counted=True,
            cache_write_tokens=min(_count(details.get("cache_write_tokens")), read),
        )
        cost = self._prices.cost(self._model, used)
        return used._replace(cost_usd=cost, prices_as_of=None if cost is None else self._prices.as_of(self._model))


def _count(value: Any) -> int:
    """Return a count of the API, 0 for what is none."""
    return min(max(0, value), MOST) if type(value) is int else 0


def _ran(response: JsonObject, kind: str) -> int:
    items = objects(response.get("output"), repeat(None, _MOST_ITEMS))
    return sum(item.get("type") == kind and item.get("status") != "failed" for item in items)
