"""When a request is repeated, and how long that takes at most."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.retry import asked_wait, backoff, is_quota, retryable_status

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("retries_done", "longest"), [(0, 0.5), (1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (10, 8), (2000, 8)]
)
def test_backoff_doubles_from_half_a_second_up_to_eight(retries_done: int, longest: float) -> None:
    assert backoff(retries_done, 0.0) == longest
    assert backoff(retries_done, 0.999_999) == pytest.approx(longest * 0.75, rel=1e-5)


@given(st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_within_its_bounds(retries_done: int, random: float) -> None:
    assert 0.375 <= backoff(retries_done, random) <= 8


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": " 7 "}, 7),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": ".5"}, 0.5),
        ({"retry-after": "3600"}, 3600),
        ({"retry-after": "9" * 400}, float("inf")),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "0.5"}, 0.0005),
        ({"retry-after-ms": "200", "retry-after": "9"}, 0.2),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after-ms": "0", "retry-after": "9"}, 9),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30),
        ({"retry-after": "Sunday, 22-Nov-26 12:00:30 GMT"}, 30),
        ({"retry-after": "Sun, 22 Nov 2026 21:00:30 +0900"}, 30),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 -0000"}, 30),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, (datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - NOW).total_seconds()),
    ],
)  # fmt: skip
def test_a_wait_that_the_api_asks_for_is_read_in_every_form(headers: dict[str, str], seconds: float) -> None:
    assert asked_wait(headers, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["", "soon", "nan", "inf", "-inf", "-5", "0", "0.0", "1_000", "0x10", "1e3", "5 s", "５", "--1",
     "Sun, 22 Nov 2026 11:59:00 GMT", "Sun, 99 Nov 2026 12:00:30 GMT", "22 Nov", ",,,,", "Mon, 1 Jan 0000 00:00:00 GMT",
     "Sun, 22 Nov 2026 12:00:30 +9999"],
)  # fmt: skip
def test_a_wait_that_makes_no_sense_or_lies_in_the_past_is_none_and_backoff_decides(value: str) -> None:
    assert asked_wait({"retry-after": value}, NOW) is None
    assert asked_wait({"retry-after-ms": value}, NOW) is None


def test_without_a_header_no_wait_is_asked_for() -> None:
    assert asked_wait({}) is None


def test_a_date_is_compared_with_the_clock_when_no_time_is_given() -> None:
    assert (asked_wait({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}) or 0) > 10**9
    assert asked_wait({"retry-after": "Sat, 01 Jan 2000 00:00:00 GMT"}) is None


@given(st.text(), st.text())
def test_no_header_value_raises_or_gives_a_wait_that_is_no_wait(seconds: str, milliseconds: str) -> None:
    wait = asked_wait({"retry-after": seconds, "retry-after-ms": milliseconds}, NOW)
    assert wait is None or wait > 0


@given(
    st.from_regex(r"(Mon, )?[0-9]{1,3} (Jan|Feb|Foo) [0-9]{1,5} [0-9]{1,3}:[0-9]{1,3}(:[0-9]{1,3})? [A-Z+-]?[0-9]{0,6}")
)
def test_no_date_raises(value: str) -> None:
    wait = asked_wait({"retry-after": value}, NOW)
    assert wait is None or wait > 0


def test_only_statuses_that_may_pass_are_worth_another_request() -> None:
    assert [status for status in range(200, 600) if retryable_status(status)] == [408, 409, 429, *range(500, 600)]


@pytest.mark.parametrize("word", ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"])
def test_an_exhausted_quota_is_known_by_type_or_code(word: str) -> None:
    assert is_quota(word, None)
    assert is_quota(None, word)


def test_a_rate_limit_is_no_exhausted_quota() -> None:
    assert not is_quota("requests", "rate_limit_exceeded")
    assert not is_quota(None, None)
