"""Rankings put together, and made into a result."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.fusion import blended, cut_off, reciprocal_ranks, required_gate_weight, spread

SCORES = st.dictionaries(st.integers(0, 40), st.floats(0, 1000, allow_nan=False), max_size=25)
RANKINGS = st.lists(st.tuples(st.lists(st.integers(0, 40), unique=True), st.floats(0.01, 2)), max_size=4)


def test_a_rank_is_worth_its_reciprocal_in_each_ranking() -> None:
    ranks = reciprocal_ranks([(["a", "b"], 1.0), (["b"], 0.5)], 60)
    assert ranks == {"a": 1 / 61, "b": 1 / 62 + 0.5 / 61}


@given(RANKINGS, st.integers(1, 100))
def test_whoever_is_before_another_in_all_rankings_is_worth_more(
    rankings: list[tuple[list[int], float]], k: int
) -> None:
    ranks = reciprocal_ranks(rankings, k)
    assert ranks.keys() == {key for ranking, _ in rankings for key in ranking}
    together = [(ranking, weight) for ranking, weight in rankings if ranking]
    if together:
        first = together[0][0][0]
        behind = [
            key
            for key in ranks
            if all(key not in r or (first in r and r.index(first) <= r.index(key)) for r, _ in together)
        ]
        assert all(ranks[first] >= ranks[key] for key in behind)


@given(SCORES, RANKINGS, st.floats(0, 1))
def test_a_blend_is_between_0_and_1(
    base: dict[int, float], rankings: list[tuple[list[int], float]], share: float
) -> None:
    ranks = reciprocal_ranks(rankings)
    mixed = blended(base, ranks, share)
    assert mixed.keys() == ranks.keys()
    assert all(0 <= value <= 1 + 1e-9 for value in mixed.values())


def test_a_blend_of_the_best_in_both_is_1() -> None:
    assert blended({"a": 7.0, "b": 1.0}, {"a": 0.1, "b": 0.05}, 0.5)["a"] == 1.0
    assert blended({}, {}, 0.3) == {}
    assert blended({"a": -1.0}, {"a": 0.5}, 0.3) == {"a": 0.7}


def test_the_gate_with_required_terms_weighs_by_what_it_has_found() -> None:
    plain = list(range(100))
    assert required_gate_weight([], [1]) == (1.10, "g0_empty")
    assert required_gate_weight(plain, list(range(100, 110))) == (0.85, "few_candidates+new_top")
    assert required_gate_weight(plain, plain[:30]) == (0.80, "same_top")
    assert required_gate_weight(plain, plain[:90]) == (0.95, "many_candidates+same_top")
    assert required_gate_weight(plain, [*plain[:7], *range(200, 223)]) == (1.0, "default")


@given(st.lists(st.integers(0, 60), unique=True), st.lists(st.integers(0, 60), unique=True))
def test_the_weight_of_the_gate_has_bounds(plain: list[int], required: list[int]) -> None:
    assert 0.35 <= required_gate_weight(plain, required)[0] <= 1.35


@given(SCORES, st.integers(1, 4))
def test_spreading_keeps_every_row_and_scores_never_rise(scores: dict[int, float], files: int) -> None:
    ranking = sorted(scores, key=lambda key: (-scores[key], key))
    path_of = {key: str(key % files) for key in ranking}
    chosen = spread(ranking, scores, path_of)
    assert sorted(key for key, _ in chosen) == sorted(ranking)
    assert all(first[1] >= second[1] for first, second in pairwise(chosen))
    assert all(score <= scores[key] for key, score in chosen)
    assert spread(ranking, scores, path_of, 5) == chosen[:5]


def test_each_row_of_a_file_dampens_the_next_one() -> None:
    scores = {"a1": 1.0, "a2": 0.99, "b1": 0.97, "a3": 0.95}
    path_of = {key: key[0] for key in scores}
    assert [key for key, _ in spread(list(scores), scores, path_of)] == ["a1", "b1", "a2", "a3"]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=40))
def test_the_cut_off_leaves_8_rows_and_ends_before_the_first_weak_one(rows: list[tuple[float, float]]) -> None:
    ranking = list(enumerate(sorted((score for score, _ in rows), reverse=True)))
    coverage = {key: rows[key][1] for key, _ in ranking}
    kept = cut_off(ranking, coverage)
    assert min(len(rows), 8) <= kept <= len(rows)
    if kept < len(rows):
        assert ranking[kept][1] < 0.25 * ranking[0][1]
        assert coverage[kept] < 0.5
    for key, score in ranking[8:kept]:
        assert score >= 0.25 * ranking[0][1] or coverage[key] >= 0.5
