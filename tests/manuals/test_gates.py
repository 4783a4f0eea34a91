"""One question through its gates."""

import random
import sqlite3
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import pytest

from responses_mcp.manuals.candidates import Reader
from responses_mcp.manuals.checks import Check, OutOfTime, unchecked
from responses_mcp.manuals.gates import TIME_BUDGET, Ranking, Search, rank
from responses_mcp.manuals.query import required_term
from responses_mcp.manuals.scoring import Row
from responses_mcp.settings.model import FindSettings
from tests.manuals.searched import in_memory, manual, settings

FILES = {
    "both.md": "# Lamp\nA red lamp with a button of brass.",
    "first.md": "# Lamp\nA red lamp with a button.",
    "second.md": "# Lamp\nA red lamp of brass.",
    "none.md": "# Red lamp\nA red lamp, and a red lamp again.",
    "other.md": "# Nothing\nOf all that.",
}
READER = manual(FILES)


def ranked(
    query: str, *required: str, reader: Reader = READER, most: int = 1000, check: Check = unchecked, **find: Any
) -> Ranking:
    terms = [required_term(each) for each in required]
    return rank(query, Search(reader, terms, settings(find=FindSettings(**find)), most, check))


def files(keys: Iterable[tuple[str, int]]) -> list[str]:
    return [path.removesuffix(".md") for path, _ in keys]


def test_g0_knows_nothing_of_required_terms() -> None:
    plain = ranked("red lamp").gates[0][1]
    assert files(plain)[0] == "none"
    assert ranked("red lamp", "button").gates[0][1] == plain


def test_g_req_has_the_rows_with_the_term_and_fusion_has_all() -> None:
    ranking = ranked("red lamp", "button")
    assert set(files(ranking.required)) == {"both", "first"}
    assert set(files(ranking.order)) == {"both", "first", "second", "none"}
    assert "required_term" in ranking.scored["first.md", 1].signals
    assert "required_term" not in ranking.scored["none.md", 1].signals
    assert [run["gate"] for run in ranking.runs] == ["g0", "g_req"]
    assert [run["selected"] for run in ranking.runs] == [False, True]


def test_two_terms_are_any_of_them_and_both_come_first() -> None:
    ranking = ranked("red lamp", "button", "brass")
    assert set(files(ranking.required)) == {"both", "first", "second"}
    assert files(ranking.required)[0] == files(ranking.order)[0] == "both"
    assert "required_term_and" in ranking.scored["both.md", 1].signals
    assert "required_term_and" not in ranking.scored["first.md", 1].signals
    assert "required_terms_rrf" in ranking.scored["first.md", 1].signals


def test_without_a_row_with_the_term_there_is_g0_alone() -> None:
    ranking = ranked("red lamp", "zebra")
    assert [gate for gate, _, _ in ranking.gates] == ["g0"]
    assert ranking.order == ranking.gates[0][1]
    assert [run["selected"] for run in ranking.runs] == [True, False]


def test_a_file_has_at_most_its_share_of_candidates() -> None:
    reader = manual({"many.md": "# A\nred lamp\n" * 20, "one.md": "# B\nred lamp"})
    assert files(ranked("red lamp", reader=reader).order).count("many") == 8
    assert files(ranked("red lamp", reader=reader, per_file_candidate_cap=3).order).count("many") == 3


def test_few_places_are_shared_between_the_ways_of_asking() -> None:
    reader = manual({**{f"{n}.md": "# A\nred lamp" for n in range(90)}, "rare.md": "# R\nred zebra"})
    ranking = ranked("red lamp", "zebra", reader=reader, most=50)
    assert files(ranking.required) == ["rare"]
    assert len(ranking.scored) == 50
    assert ranking.cutoff == "candidate_cap"
    assert ranked("zebra", reader=reader, most=1).cutoff is None


def test_what_is_alike_is_ordered_by_path_and_line_whatever_order_rows_come_in() -> None:
    reader = manual({f"{name}.md": "# A\nred lamp\n# A\nred lamp" for name in "dacb"})
    usual = Reader.rows
    orders: set[tuple[tuple[str, int], ...]] = set()
    for seed in range(5):

        def shuffled(self: Reader, ids: Iterable[int], seed: int = seed) -> list[Row]:
            rows = usual(self, ids)
            random.Random(seed).shuffle(rows)
            return rows

        with patch.object(Reader, "rows", shuffled):
            orders.add(tuple(ranked("red lamp", "lamp", reader=reader).order))
    (order,) = orders
    assert list(order) == [(f"{name}.md", line) for name in "abcd" for line in (1, 3)]


class Clock:
    """A check that lets so many looks pass."""

    def __init__(self, looks: int) -> None:
        self.left = looks

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OutOfTime


def test_when_time_is_over_what_was_scored_is_ranked() -> None:
    ranking = ranked("red lamp", check=Clock(2))
    assert len(ranking.scored) == 2
    assert ranking.cutoff == TIME_BUDGET


def test_when_time_is_over_before_anything_was_scored_there_is_no_ranking() -> None:
    with pytest.raises(OutOfTime):
        ranked("red lamp", check=Clock(0))


def test_an_interrupted_question_to_the_index_is_time_that_is_over() -> None:
    with patch.object(Reader, "rows", side_effect=sqlite3.OperationalError("interrupted")), pytest.raises(OutOfTime):
        ranked("red lamp", check=Clock(0))


def test_an_error_of_the_index_is_no_time_that_is_over() -> None:
    with (
        patch.object(Reader, "rows", side_effect=sqlite3.OperationalError("disk I/O error")),
        pytest.raises(sqlite3.OperationalError, match="disk"),
    ):
        ranked("red lamp")


def test_a_long_section_is_one_hit_by_its_best_part() -> None:
    connection = in_memory()
    reader = manual({"a.md": "# A\nred lamp", "b.md": "# B\nred"}, connection)
    connection.execute("UPDATE section SET file = 1, line = 1")  # two parts of one section
    ranking = ranked("red lamp", reader=reader)
    assert ranking.order == [("a.md", 1)]
    assert ranking.scored["a.md", 1].coverage == 1.0
