"""One question ranked: its gates, passes and parts, and what happens when time runs out."""

import random
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime, unchecked
from responses_mcp.manuals.search.candidates import Reader, Row
from responses_mcp.manuals.search.query import query as taken_apart
from responses_mcp.manuals.search.query import required_term
from responses_mcp.manuals.search.ranking import (
    TIME_BUDGET,
    Ranking,
    Search,
    blended,
    rank,
    reciprocal_ranks,
    required_gate_weight,
)
from responses_mcp.settings.model import LexicalSettings
from tests.manuals.indexed import after
from tests.manuals.searched import in_memory, manual

READER = manual(
    {
        "both.md": "# Lamp\nA red lamp with a button of brass.",
        "first.md": "# Lamp\nA red lamp with a button.",
        "second.md": "# Lamp\nA red lamp of brass.",
        "none.md": "# Of a red lamp\nA red lamp, and a red lamp again.",
        "other.md": "# Nothing\nOf all that.",
    }
)


def ranked(
    query: str,
    *required: str,
    parts: tuple[str, ...] = (),
    reader: Reader = READER,
    most: int = 1000,
    check: CancellationCheck = unchecked,
) -> Ranking:
    terms = [required_term(each) for each in required]
    asked = [taken_apart(part) for part in parts]
    return rank(taken_apart(query), asked, Search(reader, terms, LexicalSettings(), most, check))


def files(keys: Iterable[tuple[str, int]]) -> list[str]:
    return [path.removesuffix(".md") for path, _ in keys]


def test_g0_knows_nothing_of_required_terms() -> None:
    plain = ranked("red lamp").g0.keys
    assert files(plain)[0] == "none"
    assert ranked("red lamp", "button").g0.keys == plain


LONG = "other words here and there " * 550
APART = manual(
    {
        "lamp.md": "# Lamp\nA red lamp.",
        "zoo.md": "# Zoo\nA zebra that sleeps.",
        "long.md": f"# Long\nred lamp red lamp {LONG} zebra zebra",
        **{f"{number}.md": "# Zoo\nA zebra that eats." for number in range(40)},
    }
)


@pytest.mark.rule("M4.14")
def test_g0_has_candidates_and_scores_of_its_own() -> None:
    plain, beside = ranked("red lamp", reader=APART), ranked("red lamp", "zebra", reader=APART)
    assert beside.g0 == plain.g0
    assert set(files(beside.g0.keys)) == {"lamp", "long"}
    assert "zoo" in files(beside.g_req.keys)
    assert len(beside.g_req.keys) > len(beside.g0.keys)
    for key in beside.g_req.keys:
        assert beside.g_req.scores[key] > plain.g0.scores.get(key, 0.0)


@pytest.mark.parametrize("required", ["a", "of", "with"])
def test_a_required_word_of_grammar_that_the_question_has_changes_no_order(required: str) -> None:
    question = "a lamp with a button of brass"
    assert ranked(question, required).order == ranked(question).order


COMMON = manual(
    {
        "stripes.md": "# Zebra\nIts stripes.",
        "feeding.md": "# Feeding\nA zebra eats; a function of the season.",
        "rare.md": "# Rare\nA zebra that limps.",
        **{f"{number}.md": f"# Part {number}\nA function of the zoo." for number in range(60)},
    }
)


@pytest.mark.parametrize("required", ["function", "the", "of"])
def test_a_required_word_that_most_sections_have_and_the_question_lacks_asks_for_nothing(required: str) -> None:
    plain, asked = ranked("zebra", reader=COMMON), ranked("zebra", required, reader=COMMON)
    assert asked.g_req.weight < 0.05
    assert [key for key in asked.order if key in plain.order] == plain.order
    rare = ("rare.md", 1)
    assert ranked("zebra", "limps", reader=COMMON).fused[rare] > plain.fused[rare] >= asked.fused[rare]


@pytest.mark.parametrize(("asked", "written"), [("E104", "E-104"), ("E-104", "E104")])
def test_a_code_is_found_in_its_other_spelling_before_other_words_of_a_sentence(asked: str, written: str) -> None:
    texts = {
        "code.md": f"# {written}\nThe lamp of the press is out.",
        "errors.md": "# Errors\nAn error is an error of the machine: see other errors.",
        "machine.md": "# Machine\nOn the machine there are errors.",
    }
    reader = manual(texts)
    assert files(ranked(f"error {asked} on the machine", reader=reader).order)[0] == "code"


def test_an_empty_section_has_a_length_whatever_the_settings_make_of_lengths() -> None:
    reader = manual({"lamp.md": "# Lamp\n", "other.md": "# Other\nText about a lamp."})
    search = Search(reader, [], LexicalSettings(length_penalty_weight=1.0), 1000, unchecked)
    assert files(rank(taken_apart("how is a lamp of the house to be lit?"), (), search).order)[0] == "lamp"


def test_a_question_without_a_word_in_the_manual_is_answered_by_its_required_term_alone() -> None:
    ranking = ranked("unheardof", "zebra", reader=APART)
    assert ranking.g0.keys == []
    assert ranking.order == ranking.g_req.keys != []


def test_g_req_has_the_rows_with_the_term_and_fusion_has_all() -> None:
    ranking = ranked("red lamp", "button")
    assert set(files(ranking.g_req.keys)) == {"both", "first"}
    assert set(files(ranking.order)) == {"both", "first", "second", "none"}
    assert "required_term" in ranking.scored["first.md", 1].signals
    assert "required_term" not in ranking.scored["none.md", 1].signals


def test_two_terms_are_any_of_them_and_both_come_first() -> None:
    ranking = ranked("red lamp", "button", "brass")
    assert set(files(ranking.g_req.keys)) == {"both", "first", "second"}
    assert files(ranking.g_req.keys)[0] == files(ranking.order)[0] == "both"


WORDS = "red lamp glass handle stand"
LINE = "of all kinds and more words to fill the line until it is long enough."
SIDED = manual(
    {
        "one.md": f"# Y\n{WORDS} with brass {LINE}",
        "both.md": f"# X\nred lamp glass handle brass and a button {LINE}",
        **{f"{number}.md": "# Z\nother things entirely are told here, and none of those.\n" for number in range(12)},
    }
)


@pytest.mark.rule("M4.31")
def test_the_passes_are_fused_and_a_row_of_all_three_passes_a_better_one_of_a_single_pass() -> None:
    g_req = ranked(WORDS, "brass", "button", reader=SIDED).g_req
    first, second = g_req.keys
    assert (files([first]), files([second])) == (["both"], ["one"])
    # So little lets neither its own score nor the bonus for both terms alone make it the first.
    assert g_req.scores[first] + 0.1 * g_req.scores[second] < g_req.scores[second]


def test_without_a_row_with_the_term_there_is_g0_alone() -> None:
    ranking = ranked("red lamp", "zebra")
    assert ranking.order == ranking.g0.keys
    assert (ranking.g_req.keys, ranking.g_req.weight, ranking.g_req.reason) == ([], 0.0, "empty")


def test_a_file_has_at_most_8_candidates() -> None:
    reader = manual({"many.md": "# A\nred lamp\n" * 20, "one.md": "# B\nred lamp"})
    assert files(ranked("red lamp", reader=reader).order).count("many") == 8


def test_few_places_are_shared_between_the_ways_of_asking() -> None:
    reader = manual({**{f"{n}.md": "# A\nred lamp" for n in range(90)}, "rare.md": "# R\nred zebra"})
    ranking = ranked("red lamp", "zebra", reader=reader, most=50)
    assert files(ranking.g_req.keys) == ["rare"]
    assert len(ranking.scored) == 50
    assert ranking.cutoff == "candidate_cap"
    assert ranked("zebra", reader=reader, most=1).cutoff is None


def test_what_is_alike_is_ordered_by_path_and_line_whatever_order_rows_come_in() -> None:
    class Shuffled(Reader):
        seed = 0

        def rows(self, ids: Sequence[int]) -> list[Row]:
            found = super().rows(ids)
            random.Random(self.seed).shuffle(found)
            return found

    reader = manual({f"{name}.md": "# A\nred lamp\n# A\nred lamp" for name in "dacb"}, kind=Shuffled)
    for Shuffled.seed in range(5):
        order = ranked("red lamp", "lamp", reader=reader).order
        assert order == [(f"{name}.md", line) for line in (1, 3) for name in "abcd"]  # two in a file lift the first


def test_a_long_section_is_one_hit_by_its_best_part() -> None:
    connection = in_memory()
    reader = manual({"a.md": "# A\nred lamp", "b.md": "# B\nred"}, connection)
    connection.execute("UPDATE words_1 SET file = 1, line = 1")  # two parts of one section
    ranking = ranked("red lamp", reader=reader)
    assert ranking.order == [("a.md", 1)]
    assert ranking.scored["a.md", 1].coverage == 1.0


# Time, and errors of the index


class Broken(Reader):
    """Fails as told when it is asked for the best rows by one of `matches`; by any, if that is empty."""

    error: Exception = sqlite3.OperationalError("no")
    matches: tuple[str, ...] = ()

    def best(self, match: str, most: int) -> list[int]:
        if not self.matches or any(each in match for each in self.matches):
            raise self.error
        return super().best(match, most)


def test_when_time_is_over_what_was_scored_is_ranked() -> None:
    ranking = ranked("red lamp", check=after(2))
    assert len(ranking.scored) == 2
    assert ranking.cutoff == TIME_BUDGET


@pytest.mark.parametrize(
    ("kind", "error", "looks", "raised"),
    [
        (Reader, "", 0, OutOfTime),
        (Broken, "interrupted", 0, OutOfTime),
        (Broken, "disk I/O error", 1000, sqlite3.OperationalError),
    ],
)
def test_without_any_row_it_is_told_whether_time_or_the_index_failed(
    kind: type[Reader], error: str, looks: int, raised: type[Exception]
) -> None:
    reader: Any = manual({"a.md": "# A\nred lamp"}, kind=kind)
    reader.error = sqlite3.OperationalError(error)
    with pytest.raises(raised):
        ranked("red lamp", reader=reader, check=after(looks))


@pytest.mark.rule("M4.35")
@pytest.mark.parametrize("error", [sqlite3.OperationalError("no"), OutOfTime()])
def test_a_part_of_a_question_that_fails_leaves_the_others(error: Exception) -> None:
    texts = {"npm.md": "# npm\nnpm again", "yarn.md": "# yarn\nyarn again", "both.md": "# Both\nnpm and yarn"}
    reader: Any = manual(texts, kind=Broken)
    reader.error = error

    def asked(*broken: str) -> Ranking:
        reader.matches = ("none", *(f'title_tokens : (("{each}" OR "={each}"))' for each in broken))
        return ranked("npm vs yarn", parts=("npm", "yarn"), reader=reader)

    def of_parts(ranking: Ranking) -> set[str]:
        return {path for (path, _), each in ranking.scored.items() if "query_decomp_rrf" in each.signals}

    whole, some, none = asked(), asked("npm"), asked("npm", "yarn")
    plain = ranked("npm vs yarn", reader=reader)
    assert (whole.cutoff, some.cutoff, none.cutoff) == (None, TIME_BUDGET, TIME_BUDGET)
    assert of_parts(whole) == set(texts)
    assert of_parts(some) == {"yarn.md", "both.md"}
    assert (none.order, none.fused) == (plain.order, plain.fused)
    assert whole.fused != plain.fused


# Arithmetic

A, B = ("a", 1), ("b", 1)
KEYS = st.tuples(st.just("a"), st.integers(0, 40))
RANKINGS = st.lists(st.tuples(st.lists(KEYS, unique=True), st.floats(0.01, 2)), max_size=4)


def test_a_rank_is_worth_its_reciprocal_in_each_ranking() -> None:
    assert reciprocal_ranks([([A, B], 1.0), ([B], 0.5)]) == {A: 1 / 61, B: 1 / 62 + 0.5 / 61}


@given(st.dictionaries(KEYS, st.floats(0, 1000)), RANKINGS, st.floats(0, 1))
def test_a_blend_is_between_0_and_the_best_score(
    base: dict[tuple[str, int], float], rankings: list[tuple[list[tuple[str, int]], float]], share: float
) -> None:
    ranks = reciprocal_ranks(rankings)
    mixed = blended(base, ranks, share)
    assert mixed.keys() == ranks.keys()
    best = max(base.values(), default=0.0)
    assert all(0 <= value <= best * (1 + 1e-9) for value in mixed.values())


def test_a_blend_of_the_best_in_both_keeps_its_score() -> None:
    assert blended({A: 0.7, B: 0.1}, {A: 0.1, B: 0.05}, 0.5) == pytest.approx({A: 0.7, B: 0.05 + 0.175})
    assert blended({}, {}, 0.3) == {}
    assert blended({A: -1.0}, {A: 0.5}, 0.3) == {A: 0.0}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (range(0), (0.0, "empty")),
        (range(90, 100), (0.85, "few_candidates+new_top")),
        (range(30), (0.80, "same_top")),
        (range(90), (0.95, "many_candidates+same_top")),
        ([*range(7), *range(20, 43)], (1.0, "default")),
    ],
)
def test_the_gate_with_required_terms_weighs_by_what_it_has_found(
    lines: Iterable[int], expected: tuple[float, str]
) -> None:
    plain = [("a", line) for line in range(100)]
    weight, reason = required_gate_weight(plain, [("a", line) for line in lines])
    assert (round(weight, 4), reason) == expected
