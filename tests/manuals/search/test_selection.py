"""The rows to show, chosen from a ranking."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.search.query import query, required_term
from responses_mcp.manuals.search.ranking import Gate, Ranking, Search, rank
from responses_mcp.manuals.search.selection import Selection, cut_off, select, spread
from responses_mcp.settings.model import FindSettings, LexicalSettings
from tests.manuals.searched import MANY

PLAIN = FindSettings(exploration_enabled=False)


def ranked() -> Ranking:
    ranking = rank(query("red lamp"), (), Search(MANY, [required_term("glass")], LexicalSettings(), 4000, unchecked))
    ranking.holding = []
    ranking.g0 = replace(ranking.g0, keys=ranking.order)  # so that its best is the best of all
    ranking.g_req = replace(ranking.g_req, keys=ranking.order)
    return ranking


def explored(ranking: Ranking, selection: Selection) -> list[int]:
    """Return the places of rows to explore."""
    return [at for at, (key, _) in enumerate(selection.rows) if "exploration" in ranking.scored[key].signals]


@pytest.mark.parametrize(("most", "places"), [(1, 0), (8, 0), (9, 1), (10, 2), (20, 4), (50, 10), (200, 10)])
def test_a_fixed_share_at_the_end_explores_and_never_takes_the_first_8_places(most: int, places: int) -> None:
    ranking = ranked()
    plain, usual = select(ranking, most, PLAIN).rows, select(ranking, most, FindSettings())
    shown = min(most, 50)
    assert len(plain) == len({key for key, _ in usual.rows}) == shown
    assert explored(ranking, usual) == list(range(shown - places, shown))
    assert usual.rows[: shown - places] == plain[: shown - places]
    left_out = [key for key in ranking.by_words if key not in dict(plain[: shown - places])]
    assert {key for key, _ in usual.rows[shown - places :]} == set(left_out[:places])
    assert all(first[1] >= second[1] for first, second in pairwise(usual.rows))


@pytest.mark.parametrize(
    ("changed", "places"),
    [
        ({"exploration_ratio": 0.5}, 25),
        ({"exploration_ratio": 1.0}, 42),
        ({"exploration_ratio": 0.0, "exploration_min_candidates": 3}, 3),
        ({"exploration_ratio": 0.0, "exploration_min_candidates": 0}, 0),
    ],
)
def test_the_share_and_the_least_of_exploration_are_settings(changed: dict[str, Any], places: int) -> None:
    ranking = ranked()
    assert len(explored(ranking, select(ranking, 50, FindSettings(**changed)))) == places


def test_the_scale_of_exploration_is_a_setting() -> None:
    low, high = (select(ranked(), 50, FindSettings(exploration_score_scale=scale)).rows for scale in (0.1, 0.5))
    assert low[-1][1] < high[-1][1]


@pytest.mark.parametrize("most", [1, 2, 9, 50])
def test_the_best_row_of_each_gate_has_a_place_after_the_best_of_all(most: int) -> None:
    ranking = ranked()
    ranking.g0 = replace(ranking.g0, keys=ranking.order[-1:])
    ranking.g_req = Gate("g_req", ranking.g_req.required, ranking.order[-2:-1])
    selection = select(ranking, most, FindSettings())
    keys = [key for key, _ in selection.rows]
    assert keys[0] == ranking.order[0]
    assert len(keys) == most
    assert selection.injected == ranking.best_of_gates[: most - 1]
    end = most - len(explored(ranking, selection))
    assert keys[end - len(selection.injected) : end] == selection.injected


@pytest.mark.rule("M4.51")
@pytest.mark.parametrize(
    ("most", "files", "missing"),
    [(50, 12, 0), (50, 20, 0), (50, 21, 1), (50, 39, 19), (50, 50, 20), (50, 51, 51), (9, 2, 0)],
)
def test_files_with_a_required_term_as_it_is_written_have_at_most_half_of_the_places(
    most: int, files: int, missing: int
) -> None:
    ranking = ranked()
    ranking.holding = ranking.order[-files:]
    selection = select(ranking, most, FindSettings())
    shown = {path for (path, _), _ in selection.rows}
    assert len(selection.rows) == len({key for key, _ in selection.rows}) == most
    assert selection.rows[0][0] == ranking.order[0]
    left = len({path for path, _ in ranking.holding} - shown)
    assert left <= missing
    assert selection.cutoff == "candidate_cap"


def test_scores_never_rise_where_a_guaranteed_row_is_worse_than_those_to_explore() -> None:
    ranking = ranked()
    worst = ranking.order[-1]
    ranking.holding = [worst]
    ranking.fused[worst] = 0.0001
    selection = select(ranking, 50, FindSettings())
    assert selection.injected == [worst]
    assert explored(ranking, selection)
    assert all(first[1] >= second[1] for first, second in pairwise(selection.rows))


def test_the_only_row_of_a_file_with_a_required_term_stays_while_rows_of_others_can_go() -> None:
    ranking = ranked()
    rows = [key for key, _ in select(ranking, 20, PLAIN).rows]
    missing = [key for key in ranking.order if key not in rows][-2:]
    ranking.holding = [rows[17], rows[19], *missing]
    assert len({path for path, _ in [*rows, *missing]}) == 22
    shown = [key for key, _ in select(ranking, 20, PLAIN).rows]
    assert shown == [*rows[:16], rows[17], rows[19], *missing]


@pytest.mark.rule("M4.51")
@pytest.mark.parametrize(("coverage", "shown", "cutoff"), [(0.4, 20, "dynamic_cutoff"), (0.5, 50, "candidate_cap")])
def test_rows_that_are_low_in_score_and_in_coverage_are_not_shown(coverage: float, shown: int, cutoff: str) -> None:
    ranking = ranked()
    for place, key in enumerate(ranking.order):
        ranking.fused[key] = 1.0 if place < 20 else 0.2
        ranking.scored[key].coverage = coverage
    selection = select(ranking, 50, PLAIN)
    assert (len(selection.rows), selection.cutoff) == (shown, cutoff)


SCORES = st.dictionaries(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), st.floats(0, 1000), max_size=25)


@given(SCORES)
def test_spreading_keeps_every_row_and_scores_never_rise(scores: dict[tuple[str, int], float]) -> None:
    ranking = sorted(scores, key=lambda key: (-scores[key], key))
    chosen = spread(ranking, scores, 50)
    assert sorted(key for key, _ in chosen) == sorted(ranking)
    assert all(first[1] >= second[1] for first, second in pairwise(chosen))
    assert all(score <= scores[key] for key, score in chosen)
    assert spread(ranking, scores, 5) == chosen[:5]


@pytest.mark.rule("M4.52")
@pytest.mark.parametrize(
    ("other", "order"),
    [
        (0.97, ["a1", "b1", "a2", "a3"]),
        (0.90, ["a1", "a2", "b1", "a3"]),
        (0.5, ["a1", "a2", "a3", "b1"]),
    ],
)
def test_a_file_with_many_good_sections_leaves_room_for_others(other: float, order: list[str]) -> None:
    scores = {("a", 1): 1.0, ("a", 2): 0.99, ("a", 3): 0.98, ("b", 1): other}
    ranking = sorted(scores, key=lambda key: -scores[key])
    assert [f"{path}{line}" for (path, line), _ in spread(ranking, scores, 50)] == order


def test_of_rows_that_are_as_good_the_better_ranked_comes_first() -> None:
    scores = {("a", 1): 1.0, ("b", 1): 1.0, ("a", 2): 0.99, ("b", 2): 0.99}
    assert [key for key, _ in spread(list(scores), scores, 50)] == list(scores)


@pytest.mark.rule("M4.51")
@pytest.mark.parametrize(
    ("scores", "coverage", "kept"),
    [
        ([1.0] * 8 + [0.3, 0.24, 0.9], {}, 9),
        ([1.0] * 8 + [0.3, 0.24, 0.9], {9: 0.5}, 11),
        ([1.0] * 8 + [0.25, 0.24], {}, 9),
        ([1.0] * 8, {}, 8),
        ([1.0] + [0.0] * 29, {}, 8),
        ([], {}, 0),
    ],
)
def test_the_cut_off_ends_where_score_and_coverage_are_both_low(
    scores: list[float], coverage: dict[int, float], kept: int
) -> None:
    ranking = [(("a", line), score) for line, score in enumerate(scores)]
    assert cut_off(ranking, {("a", line): coverage.get(line, 0.4) for line in range(30)}) == kept
