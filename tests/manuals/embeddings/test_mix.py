"""The mix of words and meaning is an order and scores between 0 and 1, and words alone where vectors are few."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.embeddings.mix import MEANING, MOST_COMPARED, agreed, mixed

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(lambda scores: sorted(scores, reverse=True))


def test_what_is_more_alike_rises_and_words_still_weigh_most() -> None:
    found = mixed(["a", "b", "c"], {"a": 0.9, "b": 0.8, "c": 0.1}, {"a": 0.2, "b": 0.8, "c": 0.8})
    assert found is not None
    order, scores = found
    assert order == ["b", "a", "c"]
    assert scores["b"] == pytest.approx((1 - MEANING) * 0.8 + MEANING * 0.9)


def test_the_more_certain_the_words_are_the_less_meaning_weighs() -> None:
    order, fused, alike = ["a", "b", "c"], {"a": 0.9, "b": 0.7, "c": 0.1}, {"a": 0.2, "b": 0.8, "c": 0.8}
    unsure, sure = (mixed(order, fused, alike, certainty) for certainty in (0.0, 1.0))
    assert unsure is not None
    assert sure is not None
    assert (unsure[0], sure[0]) == (["b", "a", "c"], order)


@pytest.mark.parametrize("lift", [0.0, 0.75])
def test_a_model_whose_cosines_are_all_near_1_is_heard_as_well(lift: float) -> None:
    alike = {"a": lift + 0.0, "b": lift + 0.2, "c": lift + 0.15}
    found = mixed(["a", "b", "c"], {"a": 0.5, "b": 0.4, "c": 0.4}, alike)
    assert found is not None
    assert found[0] == ["b", "c", "a"]


def test_a_candidate_without_a_vector_neither_wins_nor_loses_by_that() -> None:
    found = mixed(["a", "b", "c", "d"], dict.fromkeys("abcd", 0.5), {"a": 0.1, "b": 0.9, "d": 0.5})
    assert found is not None
    assert found[0] == ["b", "c", "d", "a"]


@pytest.mark.parametrize("alike", [{}, {"a": 0.5}, {"a": 0.5, "b": 0.5, "c": 0.5}])
def test_with_few_vectors_or_none_that_differ_the_ranking_is_that_by_words(alike: dict[str, float]) -> None:
    assert mixed(["a", "b", "c"], {"a": 0.9, "b": 0.8, "c": 0.1}, alike) is None


def test_nothing_found_is_nothing_to_mix() -> None:
    assert mixed([], {}, {}) is None


def test_candidates_beyond_the_most_that_are_compared_stay_behind_in_their_order() -> None:
    order = list(range(MOST_COMPARED + 50))
    found = mixed(order, dict.fromkeys(order, 0.5), {number: number / 1000 for number in order})
    assert found is not None
    assert found[0][MOST_COMPARED:] == order[MOST_COMPARED:]
    assert found[1][order[-1]] <= min(found[1][each] for each in order[:MOST_COMPARED])


@given(scores=SCORES, cosines=st.data())
def test_scores_stay_within_those_by_words_fall_along_the_order_and_lose_nobody(scores, cosines) -> None:
    order = list(range(len(scores)))
    fused = dict(enumerate(scores))
    alike = cosines.draw(st.dictionaries(st.sampled_from(order), st.floats(-1.01, 1.01)))
    found = mixed(order, fused, alike)
    if found is not None:
        after = [found[1][key] for key in found[0]]
        assert sorted(found[0]) == order
        assert after == sorted(after, reverse=True)
        assert 0 <= after[-1] <= after[0] <= max(scores) + 1e-9


def test_a_row_among_good_ones_rises_above_one_that_is_like_nothing_else_found() -> None:
    scores = {"a": 0.9, "stray": 0.8, "b": 0.78, "c": 0.1}
    pairs = {frozenset("ab"): 0.9, frozenset({"stray", "c"}): 0.9}
    found, after = agreed([*scores], scores, scores, lambda one, other: pairs.get(frozenset({one, other}), 0.0))
    assert found == ["a", "b", "stray", "c"]
    assert after["b"] > scores["b"]
    assert after["stray"] < scores["stray"]


def test_where_the_words_are_certain_and_where_no_row_is_like_another_the_order_stays() -> None:
    scores = {"a": 0.9, "b": 0.8, "c": 0.79}
    assert agreed("abc", scores, scores, lambda *_: 0.5, 1.0) == ([*"abc"], scores)
    assert agreed("abc", scores, scores, lambda *_: -0.5) == ([*"abc"], scores)
    assert agreed("abc", scores, {"a"}, lambda *_: 0.5) == ([*"abc"], scores)
    assert agreed("", {}, {}, lambda *_: 0.5) == ([], {})


@given(scores=SCORES.map(lambda scores: scores * 3), drawn=st.data())
def test_rows_that_agree_keep_scores_that_fall_along_the_order_and_lose_nobody(scores, drawn) -> None:
    scores = dict(enumerate(sorted(scores, reverse=True)))
    known = drawn.draw(st.sets(st.sampled_from([*scores])))
    seed = drawn.draw(st.integers(0, 9))
    found, after = agreed([*scores], scores, known, lambda one, other: (one * other + seed) % 21 / 10 - 1)
    along = [after[key] for key in found]
    assert sorted(found) == [*scores]
    assert all(one >= other - 1e-9 for one, other in pairwise(along))
    assert scores[len(scores) - 1] - 1e-9 <= min(along) <= max(along) <= scores[0] + 1e-9
