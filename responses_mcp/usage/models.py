"""Models of OpenAI: one dated table of what they cost and when they end, and an estimate of what a call uses.

The table is meant to be OpenAI's own pages of prices and deprecations, and was read from copies of those pages and from
tables that name them (genai-prices, LiteLLM). What nobody states is missing: such a model, or a tier of one, has no
price. A successor is the model that OpenAI names; where it named one of gpt-5.6, the model that took its place on that
page. `nox -s lab -- models` compares the table with genai-prices and with the names in the official `openai` package.
A cost is an estimate, not a bill: taxes, regional surcharges, discounts and credits are not in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, NamedTuple

from responses_mcp.settings.model import ModelPrice

AS_OF: Final = "2026-11-28"
WEB_SEARCH: Final = 0.01  # US dollars a search
FILE_SEARCH: Final = 0.0025
LONG: Final = 272_000  # tokens of input above which the whole request costs more, for models that have `long`
_LONG_INPUT: Final = 2.0
_LONG_OUTPUT: Final = 1.5
_MILLION: Final = 1_000_000
_VENDOR: Final = "openai/"
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


def _fifth(end: str = "", successor: str = "") -> Model:
    return Model(1.25, 0.125, 10, end=end, successor=successor)


def _sixth(input_price: float, cached: float, output: float) -> Model:
    return Model(input_price, cached, output, writes=1.25, long=True)


_SECOND: Final = Model(1.75, 0.175, 14)
_JANUARY: Final = "2027-01-14"
_JULY: Final = "2026-07-23"
_AUGUST: Final = "2026-08-10"
_OCTOBER: Final = "2026-10-23"
_DECEMBER: Final = "2026-12-11"
_APRIL: Final = "2027-04-01"
_SOL: Final = "gpt-6.1-sol"
_PRO: Final = "gpt-6.1-sol with reasoning.mode: pro"
_TERRA: Final = "gpt-6.1-terra"

TABLE: Final[Mapping[str, Model]] = MappingProxyType(
    {
        "gpt-6.2-astra": _sixth(8, 0.4, 40),
        "gpt-6.2-sol": _sixth(2, 0.1, 10),
        "gpt-6.1-sol": _sixth(2, 0.1, 10),
        "gpt-6.1-terra": _sixth(1, 0.05, 5),
        "gpt-6-astra": _sixth(10, 1, 50),
        "gpt-6-rosalind": replace(_sixth(15, 1.5, 75), fast=None),
        "gpt-6-sol": _sixth(2, 0.2, 10),
        "gpt-6-luna": _sixth(0.1, 0.01, 0.5),
        "gpt-5.6": _sixth(4, 0.4, 20),
        "gpt-5.6-sol": _sixth(4, 0.4, 20),
        "gpt-5.6-terra": _sixth(2, 0.2, 12),
        "gpt-5.6-luna": _sixth(0.2, 0.02, 1.2),
        "gpt-5.5": Model(5, 0.5, 30, fast=2.5, long=True),
        "gpt-5.5-pro": Model(30, 30, 180, fast=None, long=True),
        "gpt-5.4": Model(2.5, 0.25, 15, long=True),
        "gpt-5.4-mini": Model(0.75, 0.075, 4.5),
        "gpt-5.4-nano": Model(0.2, 0.02, 1.25, fast=None, end=_APRIL, successor="gpt-6-luna"),
        "gpt-5.4-pro": Model(30, 30, 180, fast=None, long=True),
        "gpt-5.3-chat-latest": replace(_SECOND, fast=None, end=_AUGUST, successor="gpt-5.5"),
        "gpt-5.3-codex": replace(_SECOND, end=_APRIL),
        "gpt-5.2": _SECOND,
        "gpt-5.2-chat-latest": replace(_SECOND, fast=None, end=_AUGUST, successor="gpt-5.5"),
        "gpt-5.2-codex": replace(_SECOND, end=_JULY, successor="gpt-5.4"),
        "gpt-5.2-pro": Model(21, 21, 168, fast=None),
        "gpt-5.1": _fifth(_APRIL),
        "gpt-5.1-chat-latest": _fifth(_JULY, "gpt-5.5"),
        "gpt-5.1-codex": _fifth(_JULY, "gpt-5.4"),
        "gpt-5.1-codex-max": _fifth(_JULY, "gpt-5.4"),
        "gpt-5.1-codex-mini": Model(0.25, 0.025, 2, fast=None, end=_JULY, successor="gpt-5.4-mini"),
        "gpt-5": _fifth(_DECEMBER, _SOL),
        "gpt-5-chat-latest": _fifth(_JULY, "gpt-5.5"),
        "gpt-5-codex": _fifth(_JULY, "gpt-5.4"),
        "gpt-5-mini": Model(0.25, 0.025, 2, fast=1.8, end=_DECEMBER, successor=_TERRA),
        "gpt-5-nano": Model(0.05, 0.005, 0.4, fast=None, end=_DECEMBER, successor="gpt-6-luna"),
        "gpt-5-pro": Model(15, 15, 120, fast=None, end=_DECEMBER, successor=_PRO),
        "o4-mini": Model(1.1, 0.275, 4.4, fast=None, end=_OCTOBER, successor=_TERRA),
        "o4-mini-deep-research": Model(2, 0.5, 8, fast=None, end=_JULY, successor="gpt-6-astra", calls=4),
        "o3": Model(2, 0.5, 8, fast=1.75, end=_DECEMBER, successor=_SOL),
        "o3-mini": Model(1.1, 0.55, 4.4, fast=None, end=_OCTOBER, successor=_SOL),
        "o3-pro": Model(20, 20, 80, fast=None, end=_DECEMBER, successor=_PRO),
        "o3-deep-research": Model(10, 2.5, 40, fast=None, end=_JULY, successor="gpt-6-astra", calls=4),
        "o1": Model(15, 7.5, 60, fast=None, end=_OCTOBER, successor=_SOL),
        "o1-pro": Model(150, 150, 600, fast=None, end=_OCTOBER, successor=_PRO),
        "gpt-4.1": Model(2, 0.5, 8, fast=1.75, end=_JANUARY, successor="gpt-6-luna"),
        "gpt-4.1-mini": Model(0.4, 0.1, 1.6, fast=1.75, end=_JANUARY, successor="gpt-6-luna"),
        "gpt-4.1-nano": Model(0.1, 0.025, 0.4, fast=None, end=_OCTOBER, successor="gpt-6-luna"),
        "gpt-4o": Model(2.5, 1.25, 10, fast=1.7, end=_JANUARY, successor="gpt-6-luna"),
        "gpt-4o-mini": Model(0.15, 0.075, 0.6, fast=None, end=_JANUARY, successor="gpt-6-luna"),
    }
)


class Use(NamedTuple):
    """What a call uses, or an estimate of it: tokens, and searches. Cached and written tokens are input tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    web_searches: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    file_searches: int = 0


_BY_EFFORT: Final = {
    "none": Use(20_000, 3_000, 3),
    "minimal": Use(20_000, 3_000, 3),
    "low": Use(30_000, 5_000, 4),
    "medium": Use(50_000, 10_000, 5),
    "high": Use(80_000, 20_000, 8),
    "xhigh": Use(120_000, 40_000, 12),
    "max": Use(200_000, 60_000, 20),
}
_NOTHING: Final = Use()


def guess(model: str, effort: str, *, background: bool, max_output_tokens: int | None = None) -> Use:
    """Return an estimate of what a call uses, on the high side: a question with searches, and the pages they bring.

    A call in background mode is expected to be long, and counts as two.
    """
    family = family_of(model)
    times = (1 if family is None else family.calls) * (2 if background else 1)
    read, wrote, searches, *_ = _BY_EFFORT.get(effort, _BY_EFFORT["max"])
    most = math.inf if max_output_tokens is None else max_output_tokens
    return Use(read * times, int(min(wrote * times, most)), searches * times)


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
    bare = model.removeprefix(_VENDOR)
    for pattern in (None, _SNAPSHOT, _LATEST):
        for name in dict.fromkeys((model, bare)):
            yield name if pattern is None else pattern.sub("", name)


class PriceList:
    """The table, with the user's own prices above it."""

    def __init__(self, own: Mapping[str, ModelPrice]) -> None:
        self._own = own

    def as_of(self, model: str) -> str | None:
        """Return the day of the price of a model; None for the user's own, whose day is not known."""
        return AS_OF if self._own_price(model) is None else None

    def cost(self, model: str, use: Use = _NOTHING, service_tier: str | None = None) -> float | None:
        """Return what `use` costs in US dollars; None if the price of the model or of the tier is not known."""
        own = self._own_price(model)
        search = WEB_SEARCH if own is None or own.web_search is None else own.web_search
        price, factor = family_of(model), _factor(family_of(model), service_tier)
        if own is not None:  # for every tier
            cached = own.input if own.cached_input is None else own.cached_input
            price, factor = Model(own.input, cached, own.output), 1.0
        if price is None or factor is None:
            return None
        written = min(use.cache_write_tokens, use.input_tokens - use.cached_tokens)
        fresh = use.input_tokens - use.cached_tokens - written
        read = (fresh + written * price.writes) * price.input + use.cached_tokens * price.cached
        wrote = use.output_tokens * price.output
        if price.long and use.input_tokens > LONG:
            read, wrote = read * _LONG_INPUT, wrote * _LONG_OUTPUT
        return (read + wrote) * factor / _MILLION + use.web_searches * search + use.file_searches * FILE_SEARCH

    def _own_price(self, model: str) -> ModelPrice | None:
        names = (*_names(model), *_names(model.lower())) if self._own else ()
        return next((self._own[name] for name in names if name in self._own), None)


def _factor(model: Model | None, tier: str | None) -> float | None:
    if tier in ("priority", "fast"):
        return None if model is None else model.fast
    return {None: 1.0, "auto": 1.0, "default": 1.0, "scale": 1.0, "flex": 0.5}.get(tier)
