"""Prices of models: a dated table, and how tokens and searches become an estimate in US dollars.

The table is meant to be OpenAI's own, https://developers.openai.com/api/docs/pricing, but was not read there: it has
what other parties that keep such tables and name that page had on the day `AS_OF` (LiteLLM, pydantic's genai-prices,
llm-prices, CodexBar, codexometer, gateways). Not looked up again then, and so from memory, are gpt-5-nano, gpt-4.1 and
gpt-4.1-mini. What nobody told is not there: such a model, or a tier of one, has no price. `gpt-5.6` and `gpt-5.6-sol`
have the reduced price of 2026-08-21, which was promised until 2026-11-21 at least. A cost is an estimate, not a bill:
taxes, surcharges for regions, discounts and credits are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from responses_mcp.settings.model import ModelPrice

AS_OF: Final = "2026-11-22"
WEB_SEARCH: Final = 0.01  # US dollars a search
FILE_SEARCH: Final = 0.0025
LONG: Final = 272_000  # tokens of input above which the whole request costs more, with models that know it
_LONG_INPUT: Final = 2.0
_LONG_OUTPUT: Final = 1.5
_MILLION: Final = 1_000_000
_VENDOR = "openai/"
_SNAPSHOT = re.compile(r"-(?:20[0-9]{2}-[0-9]{2}-[0-9]{2}|chat-latest|latest)\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens. `fast` is what the tiers priority and fast multiply it by, None if not known.

    `writes` is what tokens written to the cache cost in terms of input; `long` tells that long requests cost more.
    """

    input: float
    cached: float
    output: float
    fast: float | None = 2.0
    writes: float = 1.0
    long: bool = False


def _sixth(input_price: float, cached: float, output: float) -> Price:
    return Price(input_price, cached, output, writes=1.25, long=True)


TABLE: Final[Mapping[str, Price]] = MappingProxyType(
    {
        "gpt-6.2-astra": _sixth(8, 0.4, 40),
        "gpt-6.2-sol": _sixth(2, 0.1, 10),
        "gpt-6.1-sol": _sixth(2, 0.1, 10),
        "gpt-6.1-terra": _sixth(1, 0.05, 5),
        "gpt-6-astra": _sixth(10, 1, 50),
        "gpt-6-sol": _sixth(2, 0.2, 10),
        "gpt-6-luna": _sixth(0.1, 0.01, 0.5),
        "gpt-5.6": _sixth(4, 0.4, 20),
        "gpt-5.6-sol": _sixth(4, 0.4, 20),
        "gpt-5.6-terra": _sixth(2, 0.2, 12),
        "gpt-5.6-luna": _sixth(0.2, 0.02, 1.2),
        "gpt-5.5": Price(5, 0.5, 30, fast=2.5, long=True),
        "gpt-5.5-pro": Price(30, 30, 180, fast=None, long=True),
        "gpt-5.4": Price(2.5, 0.25, 15, long=True),
        "gpt-5.4-mini": Price(0.75, 0.075, 4.5),
        "gpt-5.4-nano": Price(0.2, 0.02, 1.25, fast=None),
        "gpt-5.4-pro": Price(30, 30, 180, fast=None, long=True),
        "gpt-5.3-codex": Price(1.75, 0.175, 14),
        "gpt-5.2": Price(1.75, 0.175, 14),
        "gpt-5.2-codex": Price(1.75, 0.175, 14),
        "gpt-5.2-pro": Price(21, 21, 168, fast=None),
        "gpt-5.1": Price(1.25, 0.125, 10),
        "gpt-5.1-codex": Price(1.25, 0.125, 10),
        "gpt-5.1-codex-max": Price(1.25, 0.125, 10),
        "gpt-5.1-codex-mini": Price(0.25, 0.025, 2, fast=None),
        "gpt-5": Price(1.25, 0.125, 10),
        "gpt-5-mini": Price(0.25, 0.025, 2, fast=None),
        "gpt-5-nano": Price(0.05, 0.005, 0.4, fast=None),
        "gpt-5-codex": Price(1.25, 0.125, 10),
        "gpt-5-pro": Price(15, 15, 120, fast=None),
        "o3": Price(2, 0.5, 8, fast=None),
        "o3-pro": Price(20, 20, 80, fast=None),
        "o3-deep-research": Price(10, 2.5, 40, fast=None),
        "gpt-4.1": Price(2, 0.5, 8, fast=None),
        "gpt-4.1-mini": Price(0.4, 0.1, 1.6, fast=None),
        "gpt-4o": Price(2.5, 1.25, 10, fast=None),
    }
)


class PriceList:
    """The table, with prices of one's own above it."""

    def __init__(self, own: Mapping[str, ModelPrice]) -> None:
        self._own = own

    def knows(self, model: str, service_tier: str | None = None) -> bool:
        """Tell whether the cost of a call of `model` can be estimated."""
        return self.cost(model, service_tier=service_tier) is not None

    def as_of(self, model: str) -> str | None:
        """Return the day of the price of a model; None for one of one's own, whose day nobody knows."""
        return None if model in self._own else AS_OF

    def cost(
        self,
        model: str,
        *,
        input_tokens: int = 0,
        cached_tokens: int = 0,
        cache_write_tokens: int = 0,
        output_tokens: int = 0,
        web_searches: int = 0,
        file_searches: int = 0,
        service_tier: str | None = None,
    ) -> float | None:
        """Return what that costs in US dollars; None where the model's price, or that of the tier, is not known."""
        own = self._own.get(model)
        search = WEB_SEARCH if own is None or own.web_search is None else own.web_search
        if own is not None:
            cached = own.input if own.cached_input is None else own.cached_input
            price = Price(own.input, cached, own.output)
            factor: float | None = 1.0  # they are the user's own, tiers included
        else:
            found = TABLE.get(_named(model))
            if found is None:
                return None
            price, factor = found, _tier(found, service_tier)
        if factor is None:
            return None
        is_long = price.long and input_tokens > LONG
        written = min(cache_write_tokens, input_tokens - cached_tokens)
        fresh = input_tokens - cached_tokens - written
        read = (fresh + written * price.writes) * price.input + cached_tokens * price.cached
        wrote = output_tokens * price.output
        tokens = read * (_LONG_INPUT if is_long else 1) + wrote * (_LONG_OUTPUT if is_long else 1)
        return tokens * factor / _MILLION + web_searches * search + file_searches * FILE_SEARCH


@lru_cache(maxsize=64)
def _named(model: str) -> str:
    """Return the id under which the table has a model: without OpenAI as its vendor, and without a date behind it."""
    return _SNAPSHOT.sub("", model.lower().removeprefix(_VENDOR))


def _tier(price: Price, tier: str | None) -> float | None:
    if tier == "flex":
        return 0.5
    if tier in ("priority", "fast"):
        return price.fast
    return 1.0 if tier in (None, "auto", "default", "scale") else None
