"""Models of OpenAI: one dated table of what they cost and when they end, and an estimate of what a call uses.

The table is meant to be OpenAI's own pages of prices and deprecations, and was read from copies of those pages and from
tables that name them (genai-prices, LiteLLM). What nobody states is missing: such a model, or a tier of one, has no
price. A successor is the model that OpenAI names; where it named one of gpt-5.6, the model that took its place on that
page. `nox -s lab -- models` compares the table with genai-prices and with the names in the official `openai` package.
A cost is an estimate, not a bill: taxes, regional surcharges, discounts and credits are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.settings.model import ModelPrice, Profile

AS_OF: Final = "2026-11-28"
WEB_SEARCH: Final = 0.01  # US dollars a search
FILE_SEARCH: Final = 0.0025
LONG: Final = 272_000  # tokens of input above which the whole request costs more, for models that have `long`
_FAST: Final = ("priority", "fast")
_FACTORS: Final = {None: 1.0, "auto": 1.0, "default": 1.0, "scale": 1.0, "flex": 0.5}  # tiers, but for the fast ones
_SNAPSHOT = re.compile(r"-20[0-9]{2}-[0-9]{2}-[0-9]{2}\Z")
_LATEST = re.compile(r"(?:-chat)?-latest\Z")


@dataclass(frozen=True, slots=True)
class Model:
    """A family: US dollars per million tokens, and what OpenAI announced about its end.

    `fast` is the factor of the tiers priority and fast, None if not known. `writes` is the price of tokens written to
    the cache, relative to input. `long` marks families whose long requests cost more. `end` is the last day
    (YYYY-MM-DD), "" if none is announced; `successor` is the model that OpenAI names instead, "" for none. `calls` is
    how many usual calls one call of the family is worth, for an estimate.
    """

    input: float
    cached: float
    output: float
    fast: float | None = 2.0
    writes: float = 1.0
    long: bool = False
    end: str = ""
    successor: str = ""
    calls: int = 1


TABLE: Final[Mapping[str, Model]] = {
    "gpt-6.2-astra": Model(8, 0.4, 40, writes=1.25, long=True),
    "gpt-6.2-sol": Model(2, 0.1, 10, writes=1.25, long=True),
    "gpt-6.1-sol": Model(2, 0.1, 10, writes=1.25, long=True),
    "gpt-6.1-terra": Model(1, 0.05, 5, writes=1.25, long=True),
    "gpt-6-astra": Model(10, 1, 50, writes=1.25, long=True),
    "gpt-6-rosalind": Model(15, 1.5, 75, fast=None, writes=1.25, long=True),
    "gpt-6-sol": Model(2, 0.2, 10, writes=1.25, long=True),
    "gpt-6-luna": Model(0.1, 0.01, 0.5, writes=1.25, long=True),
    "gpt-5.6": Model(4, 0.4, 20, writes=1.25, long=True),
    "gpt-5.6-sol": Model(4, 0.4, 20, writes=1.25, long=True),
    "gpt-5.6-terra": Model(2, 0.2, 12, writes=1.25, long=True),
    "gpt-5.6-luna": Model(0.2, 0.02, 1.2, writes=1.25, long=True),
    "gpt-5.5": Model(5, 0.5, 30, fast=2.5, long=True),
    "gpt-5.5-pro": Model(30, 30, 180, fast=None, long=True),
    "gpt-5.4": Model(2.5, 0.25, 15, long=True),
    "gpt-5.4-mini": Model(0.75, 0.075, 4.5),
    "gpt-5.4-nano": Model(0.2, 0.02, 1.25, fast=None, end="2027-04-01", successor="gpt-6-luna"),
    "gpt-5.4-pro": Model(30, 30, 180, fast=None, long=True),
    "gpt-5.3-chat-latest": Model(1.75, 0.175, 14, fast=None, end="2026-08-10", successor="gpt-5.5"),
    "gpt-5.3-codex": Model(1.75, 0.175, 14, end="2027-04-01"),
    "gpt-5.2": Model(1.75, 0.175, 14),
    "gpt-5.2-chat-latest": Model(1.75, 0.175, 14, fast=None, end="2026-08-10", successor="gpt-5.5"),
    "gpt-5.2-codex": Model(1.75, 0.175, 14, end="2026-07-23", successor="gpt-5.4"),
    "gpt-5.2-pro": Model(21, 21, 168, fast=None),
    "gpt-5.1": Model(1.25, 0.125, 10, end="2027-04-01"),
    "gpt-5.1-chat-latest": Model(1.25, 0.125, 10, end="2026-07-23", successor="gpt-5.5"),
    "gpt-5.1-codex": Model(1.25, 0.125, 10, end="2026-07-23", successor="gpt-5.4"),
    "gpt-5.1-codex-max": Model(1.25, 0.125, 10, end="2026-07-23", successor="gpt-5.4"),
    "gpt-5.1-codex-mini": Model(0.25, 0.025, 2, fast=None, end="2026-07-23", successor="gpt-5.4-mini"),
    "gpt-5": Model(1.25, 0.125, 10, end="2026-12-11", successor="gpt-6.1-sol"),
    "gpt-5-chat-latest": Model(1.25, 0.125, 10, end="2026-07-23", successor="gpt-5.5"),
    "gpt-5-codex": Model(1.25, 0.125, 10, end="2026-07-23", successor="gpt-5.4"),
    "gpt-5-mini": Model(0.25, 0.025, 2, fast=1.8, end="2026-12-11", successor="gpt-6.1-terra"),
    "gpt-5-nano": Model(0.05, 0.005, 0.4, fast=None, end="2026-12-11", successor="gpt-6-luna"),
    "gpt-5-pro": Model(15, 15, 120, fast=None, end="2026-12-11", successor="gpt-6.1-sol with reasoning.mode: pro"),
    "o4-mini": Model(1.1, 0.275, 4.4, fast=None, end="2026-10-23", successor="gpt-6.1-terra"),
    "o4-mini-deep-research": Model(2, 0.5, 8, fast=None, end="2026-07-23", successor="gpt-6-astra", calls=4),
    "o3": Model(2, 0.5, 8, fast=1.75, end="2026-12-11", successor="gpt-6.1-sol"),
    "o3-mini": Model(1.1, 0.55, 4.4, fast=None, end="2026-10-23", successor="gpt-6.1-sol"),
    "o3-pro": Model(20, 20, 80, fast=None, end="2026-12-11", successor="gpt-6.1-sol with reasoning.mode: pro"),
    "o3-deep-research": Model(10, 2.5, 40, fast=None, end="2026-07-23", successor="gpt-6-astra", calls=4),
    "o1": Model(15, 7.5, 60, fast=None, end="2026-10-23", successor="gpt-6.1-sol"),
    "o1-pro": Model(150, 150, 600, fast=None, end="2026-10-23", successor="gpt-6.1-sol with reasoning.mode: pro"),
    "gpt-4.1": Model(2, 0.5, 8, fast=1.75, end="2027-01-14", successor="gpt-6-luna"),
    "gpt-4.1-mini": Model(0.4, 0.1, 1.6, fast=1.75, end="2027-01-14", successor="gpt-6-luna"),
    "gpt-4.1-nano": Model(0.1, 0.025, 0.4, fast=None, end="2026-10-23", successor="gpt-6-luna"),
    "gpt-4o": Model(2.5, 1.25, 10, fast=1.7, end="2027-01-14", successor="gpt-6-luna"),
    "gpt-4o-mini": Model(0.15, 0.075, 0.6, fast=None, end="2027-01-14", successor="gpt-6-luna"),
}


class Usage(NamedTuple):
    """What a call used, all its attempts together, or an estimate of it.

    Cached and written tokens are among the input tokens, `reasoning_tokens` among the output tokens. `counted` is true
    if a server counted anything. `uncounted` is how many attempts may be billed although no server counted them.
    `cost_usd` is an estimate from prices of the day `prices_as_of`; None if the price is not known.
    """

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    total_tokens: int = 0
    web_searches: int = 0
    file_searches: int = 0
    cache_write_tokens: int = 0
    attempts: int = 0
    uncounted: int = 0
    counted: bool = False
    service_tier: str | None = None
    cost_usd: float | None = None
    prices_as_of: str | None = None

    def as_json(self) -> JsonObject:
        """Return what is known, under the names of the API. Members without a value are left out."""
        counts = {name: getattr(self, name) for name in self._fields[:6]} if self.counted else {}
        others = {
            "file_searches": self.file_searches or None,
            "service_tier": self.service_tier,
            "attempts": self.attempts,
            "uncounted_attempts": self.uncounted or None,
            "cost_usd": None if self.cost_usd is None else round(self.cost_usd, 6),
            "prices_as_of": self.prices_as_of,
        }
        return counts | {name: value for name, value in others.items() if value is not None}

    @property
    def unknown(self) -> int:
        """How many attempts cost something that is not known: nobody counted them, or their price is not known."""
        return self.uncounted + (self.counted and self.cost_usd is None)

    def plus(self, other: Usage) -> Usage:
        """Return what both used; the cost of a sum is unknown if that of a part is."""
        changed: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in self._fields[:10]}
        if self.cost_usd is not None and other.cost_usd is not None:
            changed["cost_usd"] = self.cost_usd + other.cost_usd
        elif self.counted:
            changed |= {"cost_usd": None, "prices_as_of": None}
        return other._replace(**changed)


_BY_EFFORT: Final = {  # tokens in and out, and searches
    "none": (20_000, 3_000, 3),
    "minimal": (20_000, 3_000, 3),
    "low": (30_000, 5_000, 4),
    "medium": (50_000, 10_000, 5),
    "high": (80_000, 20_000, 8),
    "xhigh": (120_000, 40_000, 12),
    "max": (200_000, 60_000, 20),
}


def guess(profile: Profile, *, background: bool) -> Usage:
    """Return an estimate of what a call uses, on the high side: a question with searches, and the pages they bring.

    A call in background mode is expected to be long, and counts as two.
    """
    family = family_of(profile.model)
    times = (1 if family is None else family.calls) * (2 if background else 1)
    effort = as_object(profile.request.get("reasoning")).get("effort", profile.reasoning_effort)
    read, wrote, searched = (each * times for each in _BY_EFFORT.get(str(effort), _BY_EFFORT["max"]))
    wrote, searched = profile.most("max_output_tokens", wrote), profile.most("max_tool_calls", searched)
    return Usage(
        input_tokens=read,
        output_tokens=wrote,
        total_tokens=read + wrote,
        web_searches=searched,
        service_tier=profile.service_tier,
    )


def family_of(model: str) -> Model | None:
    """Return the row of a model id, which may have OpenAI as its vendor and a date behind it; None for no row."""
    return next((TABLE[name] for name in _names(model.lower()) if name in TABLE), None)


def note_on_end(model: str, today: str) -> str:
    """Return a sentence about a model whose end is past, with its successor; "" for others. `today` is YYYY-MM-DD."""
    family = family_of(model)
    if family is None or not family.end or today <= family.end:
        return ""
    instead = f"; OpenAI names {family.successor} instead" if family.successor else ""
    return f" OpenAI announced {family.end} as its end{instead}."


def _names(model: str) -> Iterator[str]:
    """Yield the names under which a model may have a row, the most exact first."""
    bare = model.removeprefix("openai/")
    for pattern in (None, _SNAPSHOT, _LATEST):
        for name in dict.fromkeys((model, bare)):
            yield name if pattern is None else pattern.sub("", name)


class PriceList:
    """The table, with the user's own prices above it."""

    def __init__(self, own: Mapping[str, ModelPrice]) -> None:
        self._own = {name.lower().removeprefix("openai/"): price for name, price in own.items()} | {**own}

    def as_of(self, model: str) -> str | None:
        """Return the day of the price of a model; None for the user's own, whose day is not known."""
        return AS_OF if self._own_price(model) is None else None

    def cost(self, model: str, use: Usage) -> float | None:
        """Return what `use` costs in US dollars; None if the price of the model or of the tier is not known."""
        own, price, search = self._own_price(model), family_of(model), WEB_SEARCH
        factor = price.fast if price is not None and use.service_tier in _FAST else _FACTORS.get(use.service_tier)
        if own is not None:  # for every tier
            cached = own.input if own.cached_input is None else own.cached_input
            price, factor = Model(own.input, cached, own.output), 1.0
            search = WEB_SEARCH if own.web_search is None else own.web_search
        if price is None or factor is None:
            return None
        written = min(use.cache_write_tokens, use.input_tokens - use.cached_tokens)
        fresh = use.input_tokens - use.cached_tokens - written
        read = (fresh + written * price.writes) * price.input + use.cached_tokens * price.cached
        wrote = use.output_tokens * price.output
        if price.long and use.input_tokens > LONG:
            read, wrote = read * 2, wrote * 1.5
        return (read + wrote) * factor / 1_000_000 + use.web_searches * search + use.file_searches * FILE_SEARCH

    def _own_price(self, model: str) -> ModelPrice | None:
        names = (*_names(model), *_names(model.lower())) if self._own else ()
        return next((self._own[name] for name in names if name in self._own), None)
