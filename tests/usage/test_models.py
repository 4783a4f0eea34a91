"""What models cost and when they end: the table, the user's own prices, tiers, long requests, estimates."""

from pathlib import Path
from typing import Any

import pytest

from responses_mcp.settings.load import load_settings
from responses_mcp.settings.model import ModelPrice, Profile
from responses_mcp.usage.models import AS_OF, LONG, PriceList, Usage, family_of, guess, note_on_end

OWN = {"mine": ModelPrice(input=1, output=2), "gpt-5.5": ModelPrice(input=1, output=2, cached_input=0, web_search=0)}


def cost(model: str, *, own: bool = False, tier: str | None = None, **counts: Any) -> float | None:
    return PriceList(OWN if own else {}).cost(model, Usage(service_tier=tier, **counts))


@pytest.mark.parametrize("model", ["gpt-5.4", "openai/gpt-5.4", "GPT-5.4", "gpt-5.4-2026-03-05", "gpt-5.4-chat-latest"])
def test_a_model_is_known_under_each_of_its_names(model: str) -> None:
    assert cost(model, input_tokens=1_000_000, output_tokens=1_000_000) == cost(
        "gpt-5.4", input_tokens=1_000_000, output_tokens=1_000_000
    )
    assert cost(model, output_tokens=1_000_000) == 15


@pytest.mark.parametrize("model", ["", "gpt-5.4-mega", "ft:gpt-5.4:acme", "acme/gpt-5.4", "llama", "gpt-5.4:free"])
def test_what_is_not_in_the_table_has_no_price(model: str) -> None:
    assert cost(model, input_tokens=1) is None
    assert PriceList({}).cost(model, Usage()) is None


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


def test_the_users_own_prices_win_and_stand_for_every_tier() -> None:
    assert cost("mine", own=True, input_tokens=100, cached_tokens=50, tier="flex") == pytest.approx(100 / 1e6)
    assert cost("gpt-5.5", own=True, input_tokens=100, cached_tokens=50, web_searches=9) == pytest.approx(50 / 1e6)
    assert cost("mine", own=True, web_searches=1) == pytest.approx(0.01)


@pytest.mark.parametrize("model", ["gpt-5.5-2026-04-23", "openai/gpt-5.5", "openai/gpt-5.5-2026-04-23", "GPT-5.5"])
def test_the_users_own_price_of_a_family_holds_for_its_dated_and_vendor_names(model: str) -> None:
    assert cost(model, own=True, input_tokens=100) == pytest.approx(100 / 1e6)
    assert PriceList(OWN).as_of(model) is None
    assert PriceList({}).as_of(model) == AS_OF


@pytest.mark.parametrize("named", ["openai/llama-9", "Llama-9", "LLAMA-9"])
def test_the_users_own_price_holds_however_its_model_is_written(named: str) -> None:
    assert PriceList({named: ModelPrice(input=1, output=2)}).cost("llama-9", Usage(input_tokens=100)) == 100 / 1e6


def test_the_users_own_price_of_a_snapshot_wins_over_that_of_its_family() -> None:
    prices = PriceList({**OWN, "gpt-5.5-2026-04-23": ModelPrice(input=9, output=9)})
    assert prices.cost("openai/gpt-5.5-2026-04-23", Usage(input_tokens=100)) == pytest.approx(900 / 1e6)
    assert prices.cost("gpt-5.5", Usage(input_tokens=100)) == pytest.approx(100 / 1e6)


def test_a_deep_research_model_has_a_price_and_a_larger_estimate() -> None:
    assert cost("o4-mini-deep-research-2025-06-26", input_tokens=1_000_000) == pytest.approx(2)
    deep, usual = (guess(Profile(model=name), background=True) for name in ("o4-mini-deep-research", "o4-mini"))
    assert deep.input_tokens > usual.input_tokens


@pytest.mark.parametrize(
    ("model", "end", "successor"),
    [
        ("gpt-4.1-nano", "2026-10-23", "gpt-6-luna"),
        ("gpt-5.3-chat-latest", "2026-08-10", "gpt-5.5"),
        ("o3-pro-2025-06-10", "2026-12-11", "gpt-6.1-sol"),
        ("openai/gpt-5-pro", "2026-12-11", "gpt-6.1-sol"),
        ("gpt-4o-mini", "2027-01-14", "gpt-6-luna"),
        ("gpt-5.3-codex", "2027-04-01", ""),
    ],
)
def test_an_announced_end_is_known_with_the_successor(model: str, end: str, successor: str) -> None:
    family = family_of(model)
    assert family is not None
    assert family.end == end
    assert family.successor.startswith(successor)
    assert note_on_end(model, end) == ""
    assert end in note_on_end(model, "2027-05-01")
    assert successor in note_on_end(model, "2027-05-01")


def test_the_default_model_and_those_of_the_example_have_a_price_and_no_announced_end() -> None:
    example = Path(__file__).parents[2] / "config/config.yaml.example"
    profiles = load_settings({}, config_path=example).settings.model_profiles
    for model in {Profile().model, *(profile.model for profile in profiles.values())}:
        family = family_of(model)
        assert family is not None
        assert family.end == ""


def test_an_estimate_grows_with_the_effort_and_in_the_background_and_ends_at_what_the_profile_allows() -> None:
    def of(effort: str, *, background: bool = False, **request: int) -> Usage:
        return guess(Profile(reasoning_effort=effort, request=request), background=background)

    efforts = [of(effort) for effort in ("none", "low", "medium", "high", "xhigh", "max")]
    assert efforts == sorted(efforts)
    assert len(set(efforts)) == len(efforts)
    assert of("low", background=True) > of("low")
    capped = of("high", max_output_tokens=500, max_tool_calls=2)
    assert (capped.output_tokens, capped.web_searches) == (500, 2)
    assert of("another") == efforts[-1]
    own = Profile(reasoning_effort="low", request={"reasoning": {"effort": "max"}})
    assert guess(own, background=False) == efforts[-1]
