"""What the upstream is told to do, and how a call may end then."""

import random

import pytest

from tests.soak.plays import (
    ANSWER,
    BROKEN,
    DEADLINE,
    FAULTS,
    HANGING,
    KINDS,
    LAST_WORDS,
    REPEATED,
    Step,
    choose_play,
    ends,
    fault_of,
    find_play,
    repeats,
    spell,
)

OK = Step("ok")


def possible(*play: Step, search: bool = False, seconds: float = 0.1) -> set[str]:
    return set(ends(play, search=search, seconds=seconds, collision=False))


def test_a_play_comes_back_out_of_a_request_as_it_was_spelled():
    rng = random.Random(1)
    for number in range(200):
        play = choose_play(rng)
        body = f'{{"model": "gpt-5.2", "input": "{spell(number, play)} Which one?\\n\\n[Hints]"}}'
        assert find_play(body.encode()) == (number, play)


def test_a_request_without_a_play_has_none():
    assert find_play(b'{"input": "#1 what?"}') is None


def test_every_kind_that_is_chosen_is_one():
    assert {*REPEATED, *LAST_WORDS, *HANGING} <= set(KINDS)
    assert {kind.ends for kind in KINDS.values()} <= {ANSWER, *FAULTS}


def test_the_first_request_decides_where_nothing_is_repeated():
    assert possible(OK) == {ANSWER}
    assert possible(Step("refused"), OK) == {"refused"}
    assert possible(Step("reset"), OK) == {BROKEN}


def test_what_passes_is_asked_again_until_the_requests_are_used_up():
    assert possible(Step("failed"), OK) == {ANSWER}
    assert possible(Step("failed"), Step("limited"), OK) == {ANSWER}
    assert possible(Step("failed")) == {"failed"}
    assert possible(Step("failed"), Step("busy"), Step("limited"), OK) == {"limited"}


def test_a_search_repeats_other_things_than_an_answer():
    assert possible(Step("reset"), OK, search=True) == {ANSWER}
    assert possible(Step("failed"), OK, search=True) == {"failed"}
    assert possible(Step("limited"), OK, search=True) == {ANSWER}


def test_a_deadline_is_an_end_for_calls_that_took_that_long():
    assert possible(Step("hang")) == {DEADLINE}
    assert possible(OK, seconds=2.5) == {ANSWER}
    assert possible(OK, seconds=3.1) == {ANSWER, DEADLINE}


def test_a_wait_longer_than_the_time_left_ends_a_call_with_its_own_fault():
    assert possible(Step("limited", 1900), OK, seconds=1.5) == {"limited", ANSWER}
    assert possible(Step("limited", 1900), OK, seconds=0.5) == {ANSWER}


def test_any_call_may_meet_a_connection_that_is_just_being_closed():
    assert ends((OK,), search=False, seconds=0.1) == {ANSWER, BROKEN}


def test_answers_are_asked_for_once_and_slow_searches_again():
    assert not repeats("ok", search=False)
    assert not repeats("reset", search=False)
    assert repeats("failed", search=False)
    assert repeats("ok", search=True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The API failed (500): This is for #3. Try again later.", "failed"),
        ("Search Error: The API's stream ended before the answer was complete; ask again.", BROKEN),
        ("No answer within 3 s; raise request.timeout_ms", DEADLINE),
        ("Something else", None),
    ],
)
def test_a_fault_is_known_by_its_words(text, fault):
    assert fault_of(text) == fault
