"""Caps: what may be reserved, what has to wait, what is refused, and that nothing stays reserved."""

import random

import pytest

from responses_mcp.errors import LimitReached
from responses_mcp.settings import LimitSettings
from responses_mcp.usage.caps import Amount, Caps, Reservation, dollars

GUESS = Amount(60_000, 0.3)


def reserve(caps: Caps, kind: str = "answer", guess: Amount = GUESS) -> Reservation | None:
    return caps.reserve(caps.expected(kind, guess))


def spend(caps: Caps, usd: float, kind: str = "answer", tokens: int = 1000) -> None:
    held = reserve(caps, kind)
    assert held is not None
    caps.settle(held, kind, Amount(tokens, usd), known=True)


def test_without_limits_everything_is_let_through_and_counted() -> None:
    caps = Caps(LimitSettings())
    held = [reserve(caps) for _ in range(50)]
    assert None not in held
    assert (caps.calls, caps.reserved.tokens) == (50, 50 * 60_000)


def test_the_first_call_of_a_kind_goes_alone_where_its_guess_is_more_than_what_is_left() -> None:
    caps = Caps(LimitSettings(session_cost_usd=0.1))
    held = reserve(caps)
    assert held is not None
    assert reserve(caps) is None, "it waits"
    caps.settle(held, "answer", Amount(1000, 0.02), known=True)
    together = [reserve(caps) for _ in range(5)]
    assert [each is not None for each in together] == [True, True, True, True, False]


def test_a_call_reserves_the_most_that_one_of_its_kind_has_cost() -> None:
    caps = Caps(LimitSettings(session_cost_usd=10.0))
    for usd in (0.1, 0.4, 0.2):
        spend(caps, usd)
    held = reserve(caps)
    assert held is not None
    assert held.amount == Amount(1000, 0.4)


def test_the_first_call_of_another_kind_is_taken_for_a_guess_or_for_the_most_so_far_and_has_to_fit() -> None:
    caps = Caps(LimitSettings(session_cost_usd=1.0, session_tokens=100_000))
    spend(caps, 0.4, tokens=1_000)
    other = reserve(caps, "research")
    assert other is not None
    assert other.amount == Amount(1_000, 0.3)
    caps.settle(other, "research", Amount(90_000, 0.35), known=True)
    with pytest.raises(LimitReached, match="may need 60,000 tokens"):
        reserve(caps, "answer_quick")


def test_a_call_that_cannot_fit_is_refused_and_the_error_names_cap_spent_and_setting() -> None:
    caps = Caps(LimitSettings(session_cost_usd=1.0))
    spend(caps, 0.7)
    with pytest.raises(LimitReached) as caught:
        reserve(caps)
    assert str(caught.value) == (
        "The limit of $1.00 (limits.session_cost_usd) is reached: $0.70 were spent in this session, and a call like this "
        "one may need $0.70. No request was made; raise limits.session_cost_usd (LIMITS_SESSION_COST_USD), or begin "
        "a new session."
    )


def test_calls_and_tokens_have_limits_of_their_own() -> None:
    caps = Caps(LimitSettings(session_calls=2))
    spend(caps, 5.0)
    spend(caps, 5.0)
    with pytest.raises(LimitReached, match=r"limit of 2 calls \(limits\.session_calls\) is reached: 2 calls were made"):
        reserve(caps)
    caps = Caps(LimitSettings(session_tokens=1500))
    spend(caps, 0.0)
    with pytest.raises(
        LimitReached, match=r"limit of 1,500 tokens .* 1,000 tokens were spent .* may need 1,000 tokens"
    ):
        reserve(caps)


def test_a_limit_of_nothing_lets_nothing_through() -> None:
    for limits in (LimitSettings(session_calls=0), LimitSettings(session_tokens=0), LimitSettings(session_cost_usd=0)):
        with pytest.raises(LimitReached):
            reserve(Caps(limits))


def test_a_call_that_made_no_request_gives_all_back() -> None:
    caps = Caps(LimitSettings(session_calls=1, session_cost_usd=1.0))
    for _ in range(3):
        held = reserve(caps)
        assert held is not None
        caps.settle(held, "answer", None, known=False)
    assert (caps.calls, caps.reserved, caps.spent) == (0, Amount(), Amount())


def test_what_nobody_counted_teaches_nothing() -> None:
    caps = Caps(LimitSettings(session_cost_usd=1.0))
    held = reserve(caps)
    assert held is not None
    caps.settle(held, "answer", Amount(60_000, 0.3), known=False)
    assert caps.expected("answer", GUESS).guessed
    assert caps.spent == Amount(60_000, 0.3)


@pytest.mark.parametrize("seed", range(20))
def test_in_no_order_of_events_do_calls_of_a_known_cost_pass_a_limit(seed: int) -> None:
    rng = random.Random(seed)
    limits = LimitSettings(session_cost_usd=2.0, session_tokens=20_000, session_calls=60)
    caps, running = Caps(limits), list[Reservation]()
    spend(caps, 0.05)
    for _ in range(300):
        if rng.random() < 0.5 and running:
            held = running.pop(rng.randrange(len(running)))
            ran = rng.random() < 0.9
            caps.settle(held, "answer", Amount(rng.randrange(1000), rng.random() * 0.05) if ran else None, known=True)
        else:
            try:
                found = reserve(caps)
            except LimitReached:
                continue
            if found is not None:
                running.append(found)
        assert caps.spent.usd + caps.reserved.usd <= 2.0 + 1e-6
        assert caps.spent.tokens + caps.reserved.tokens <= 20_000
        assert caps.calls <= 60
    assert len(running) < 60


@pytest.mark.parametrize(("usd", "text"), [(0, "$0.00"), (0.0042, "$0.0042"), (0.01, "$0.01"), (12.345, "$12.35")])
def test_dollars_are_shown_such_that_little_is_not_nothing(usd: float, text: str) -> None:
    assert dollars(usd) == text
