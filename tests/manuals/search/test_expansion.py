"""Words that a long question of prose may mean: which they are, and for which questions they count."""

import pytest

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.search.expansion import related
from responses_mcp.manuals.search.query import terms
from responses_mcp.manuals.search.ranking import Ranking, Search, rank
from responses_mcp.settings.model import LexicalSettings
from tests.manuals.searched import manual

LONG = (
    "heat transfer measured along slender bodies during turbulent supersonic flight through thin cold upper atmosphere"
)
SHARED = "ablation ablation shields"
READER = manual(
    {
        "first.md": f"# A\nheat transfer measured along slender bodies {SHARED} during flight",
        "second.md": f"# B\nturbulent supersonic flight through thin cold atmosphere {SHARED}",
        "third.md": "# C\nheat and the ablation of shields and more",
        "fourth.md": "# D\nheat and the painting of fences and more",
        "fifth.md": "# E\nfences painted alone",
    }
)


def ranked(query: str) -> Ranking:
    return rank(query, (), Search(READER, (), LexicalSettings(), 1000, unchecked))


def points(ranking: Ranking, path: str) -> float:
    return sum(each for name, each in ranking.scored[path, 1].parts if name == "related")


def test_words_that_several_sections_share_are_related_and_no_others() -> None:
    texts = [("pump valve seal what and pumping", 1.0), ("valve seals rust what and", 1.0), ("rusting alone", 0.5)]
    found = related(texts, {"pump", "pumping"}, lambda _: 1.0)
    assert {term.text for term, _ in found} == {"valve", "seal", "rust"}
    assert sum(share for _, share in found) == pytest.approx(1)


def test_of_words_that_are_shared_alike_the_rarer_one_counts_for_more() -> None:
    shares = {term.text: share for term, share in related([("valve seal", 1.0)] * 2, set(), lambda word: len(word) - 3)}
    assert shares["valve"] == pytest.approx(2 * shares["seal"])


@pytest.mark.parametrize("texts", [[], [("", 1.0)] * 5, [("pump", 1.0)], [("the what and", 1.0)] * 5])
def test_where_nothing_is_shared_nothing_is_related(texts: list[tuple[str, float]]) -> None:
    assert related(texts, set(), lambda _: 1.0) == []


def test_a_long_question_finds_what_its_best_sections_speak_of_before_what_they_do_not() -> None:
    found = ranked(LONG)
    assert points(found, "third.md") > points(found, "fourth.md")
    assert found.fused["third.md", 1] > found.fused["fourth.md", 1]


@pytest.mark.parametrize(
    "query",
    [
        "heat",
        "heat transfer of slender bodies",
        "細い物体に沿った熱の移動を測る方法と薄い大気の中の超音速飛行について知りたい",
    ],
)
def test_a_short_question_and_one_in_japanese_mean_what_they_say(query: str) -> None:
    found = ranked(query)
    assert all(name != "related" for each in found.scored.values() for name, _ in each.parts)


def test_a_question_that_a_section_answers_word_by_word_means_what_it_says() -> None:
    whole = manual({"a.md": f"# A\n{LONG}", "b.md": "# B\nheat of flight with fences", "c.md": "# C\nheat with fences"})
    found = rank(LONG, (), Search(whole, (), LexicalSettings(), 1000, unchecked))
    assert found.certainty == pytest.approx(1)
    assert all(name != "related" for each in found.scored.values() for name, _ in each.parts)


def test_scores_stay_between_0_and_1_and_are_the_sum_of_their_parts() -> None:
    found = ranked(LONG)
    for each in found.scored.values():
        assert each.score == pytest.approx(sum(points for _, points in each.parts))
        assert 0 <= each.score <= 1


def test_forms_of_a_word_of_the_question_are_no_further_words() -> None:
    said = frozenset[str]().union(*(each.forms for each in terms("bodies measured")))
    assert related([("body measure measuring", 1.0)] * 3, said, lambda _: 1.0) == []
