"""What a call used: read from Responses of any shape, and added up over its attempts."""

from typing import Any

import pytest

from responses_mcp.settings.model import ModelPrice
from responses_mcp.testing import bodies
from responses_mcp.usage.bill import MOST, Bill, usage_from
from responses_mcp.usage.models import AS_OF, PriceList, Usage

COUNTS = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 400},
    "output_tokens": 200,
    "output_tokens_details": {"reasoning_tokens": 150},
    "total_tokens": 1200,
}


def bill(model: str = "gpt-5.2", **own: ModelPrice) -> Bill:
    return Bill(model, PriceList(own))


def used(response: dict[str, Any], model: str = "gpt-5.2") -> Usage:
    one = bill(model)
    one.sending()
    one.take(response)
    return one.usage


def test_tokens_searches_tier_attempts_and_cost_are_read() -> None:
    searched = bodies.searched()
    found = used({**searched, "usage": COUNTS}).as_json()
    searches = searched["tool_usage"]["web_search"]["num_requests"]
    assert searches > 0
    assert found == {
        "input_tokens": 1000,
        "cached_tokens": 400,
        "output_tokens": 200,
        "reasoning_tokens": 150,
        "total_tokens": 1200,
        "web_searches": searches,
        "service_tier": "default",
        "attempts": 1,
        "cost_usd": round((600 * 1.75 + 400 * 0.175 + 200 * 14) / 1e6 + searches * 0.01, 6),
        "prices_as_of": AS_OF,
    }


def test_without_a_bill_of_the_server_the_searches_that_ran_are_counted() -> None:
    calls = [
        bodies.web_search_call(["a"]),
        bodies.web_search_call(["b"], status="failed"),
        {"type": "web_search_call", "status": "completed", "action": {"type": "open_page"}},
    ]
    assert used(bodies.response(calls, usage=COUNTS, tool_usage=None)).web_searches == 2


def test_of_a_model_without_a_price_the_tokens_are_told_and_no_cost() -> None:
    found = used(bodies.response([], usage=COUNTS), "llama-9").as_json()
    assert found["total_tokens"] == 1200
    assert not {"cost_usd", "prices_as_of"} & found.keys()


def test_a_cost_that_is_not_known_is_none_also_when_it_is_read_again() -> None:
    unpriced, uncounted = used(bodies.response([], usage=COUNTS), "llama-9"), used(bodies.response([], usage=None))
    for found in (unpriced, uncounted, usage_from(unpriced.as_json()), usage_from(uncounted.as_json())):
        assert found.cost_usd is None
    one = bill()
    one.sending()
    one.usage = unpriced
    one.take(bodies.response([], usage=COUNTS))
    assert (one.usage.total_tokens, one.usage.cost_usd, one.usage.prices_as_of) == (2400, None, None)


def test_attempts_are_added_up() -> None:
    one = bill()
    one.sending()
    one.not_billed()
    one.sending()
    one.take(bodies.response([], status="failed", usage=COUNTS))
    one.sending()
    one.take(bodies.response([], usage=COUNTS))
    assert (one.usage.attempts, one.usage.total_tokens, one.usage.uncounted) == (3, 2400, 0)


def test_what_was_sent_and_never_counted_is_said() -> None:
    one = bill()
    one.sending()
    one.sending()
    one.take(bodies.response([], usage=COUNTS))
    assert one.usage.as_json()["uncounted_attempts"] == 1
    one.sending()
    one.take(bodies.response([], usage=None))
    assert one.usage.uncounted == 2
    one.sending()
    one.take(bodies.response([], status="failed", usage=None))
    assert one.usage.uncounted == 2


WRONG: list[Any] = [None, True, -1, 1.5, "9", [], {}, float("nan"), -(10**30), 1e30]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:20])
def test_a_count_that_is_none_counts_nothing(value: Any) -> None:
    assert used(bodies.response([], usage={**COUNTS, "total_tokens": value})).total_tokens == 1200
    assert used(bodies.response([], usage={**COUNTS, "input_tokens": value})).total_tokens == 200
    for details in ({"cached_tokens": value}, value):
        assert used(bodies.response([], usage={**COUNTS, "input_tokens_details": details})).cached_tokens == 0
    for tool_usage in ({"web_search": {"num_requests": value}}, {"web_search": value}, value):
        assert used(bodies.response([], usage=COUNTS, tool_usage=tool_usage)).web_searches == 0
    assert used(bodies.response([], usage=COUNTS, service_tier=value)).as_json().keys() >= {"attempts", "total_tokens"}
    assert used({"usage": value, "output": value, "status": value}).attempts == 1


def test_no_count_makes_a_sum_endless() -> None:
    for value in (MOST + 1, 10**400):
        found = used(
            bodies.response(
                [], usage={**COUNTS, "output_tokens": value}, tool_usage={"web_search": {"num_requests": value}}
            )
        )
        assert (found.output_tokens, found.web_searches) == (MOST, MOST)


def test_more_cached_tokens_than_tokens_make_no_call_cheaper_than_free() -> None:
    details = {"cached_tokens": 5000, "cache_write_tokens": 5000}
    found = used(bodies.response([], usage={**COUNTS, "input_tokens_details": details}, tool_usage=None))
    assert found.cached_tokens == 1000
    assert found.cost_usd == pytest.approx((1000 * 0.175 + 200 * 14) / 1e6)


@pytest.mark.parametrize("tier", ["", " ", "Default", "priority "])
def test_a_tier_is_known_however_it_is_written_and_an_empty_one_says_nothing(tier: str) -> None:
    assert used(bodies.response([], usage=COUNTS, service_tier=tier)).cost_usd is not None


def test_a_tier_that_is_not_known_is_not_repeated() -> None:
    assert used(bodies.response([], usage=COUNTS, service_tier="sk-canary-0123456789")).service_tier is None
