"""What tokens cost: the table, prices of one's own, tiers, long requests."""

import pytest

from responses_mcp.settings import ModelPrice
from responses_mcp.usage.prices import LONG, TABLE, PriceList

OWN = {"mine": ModelPrice(input=1, output=2), "gpt-5.5": ModelPrice(input=1, output=2, cached_input=0, web_search=0)}


def cost(model: str, *, own: bool = False, tier: str | None = None, **counts: int) -> float | None:
    return PriceList(OWN if own else {}).cost(model, service_tier=tier, **counts)


@pytest.mark.parametrize("model", ["gpt-5.4", "openai/gpt-5.4", "GPT-5.4", "gpt-5.4-2026-03-05", "gpt-5.4-chat-latest"])
def test_a_model_is_known_under_each_of_its_names(model: str) -> None:
    assert cost(model, input_tokens=1_000_000, output_tokens=1_000_000) == cost(
        "gpt-5.4", input_tokens=1_000_000, output_tokens=1_000_000
    )
    assert cost(model, output_tokens=1_000_000) == 15


@pytest.mark.parametrize("model", ["", "gpt-5.4-mega", "ft:gpt-5.4:acme", "acme/gpt-5.4", "llama", "gpt-5.4:free"])
def test_what_is_not_in_the_table_has_no_price(model: str) -> None:
    assert cost(model, input_tokens=1) is None
    assert not PriceList({}).knows(model)


def test_the_models_of_the_example_and_the_default_are_in_the_table() -> None:
    assert {"gpt-5.2", "gpt-5.4", "gpt-5.5", "gpt-5.4-mini"} <= TABLE.keys()
    assert all(0 < price.input <= price.output and 0 < price.cached <= price.input for price in TABLE.values())


def test_cached_tokens_and_tokens_written_to_the_cache_have_prices_of_their_own() -> None:
    assert cost("gpt-5.5", input_tokens=1000, cached_tokens=600) == pytest.approx((400 * 5 + 600 * 0.5) / 1e6)
    written = cost("gpt-6-sol", input_tokens=1000, cached_tokens=600, cache_write_tokens=400)
    assert written == pytest.approx((400 * 2 * 1.25 + 600 * 0.2) / 1e6)


def test_a_long_request_costs_more_as_a_whole() -> None:
    assert cost("gpt-5.5", input_tokens=LONG, output_tokens=1000) == pytest.approx((LONG * 5 + 1000 * 30) / 1e6)
    longer = cost("gpt-5.5", input_tokens=LONG + 1, output_tokens=1000)
    assert longer == pytest.approx(((LONG + 1) * 10 + 1000 * 45) / 1e6)
    assert cost("gpt-5.2", input_tokens=LONG + 1) == pytest.approx((LONG + 1) * 1.75 / 1e6)


def test_searches_cost_by_the_piece() -> None:
    assert cost("gpt-5.2", web_searches=3, file_searches=2) == pytest.approx(0.035)


@pytest.mark.parametrize(
    ("tier", "factor"), [(None, 1), ("default", 1), ("auto", 1), ("flex", 0.5), ("priority", 2.5), ("fast", 2.5)]
)
def test_a_tier_makes_tokens_cheaper_or_dearer_and_searches_not(tier: str | None, factor: float) -> None:
    found = cost("gpt-5.5", tier=tier, input_tokens=1000, web_searches=1)
    assert found == pytest.approx(factor * 0.005 + 0.01)


def test_a_tier_whose_price_nobody_knows_has_none() -> None:
    assert cost("gpt-5.5", tier="ultrafast") is None
    assert cost("o3-pro", tier="priority") is None


def test_ones_own_prices_win_and_stand_for_every_tier() -> None:
    assert cost("mine", own=True, input_tokens=100, cached_tokens=50, tier="flex") == pytest.approx(100 / 1e6)
    assert cost("gpt-5.5", own=True, input_tokens=100, cached_tokens=50, web_searches=9) == pytest.approx(50 / 1e6)
    assert cost("mine", own=True, web_searches=1) == pytest.approx(0.01)
