"""The score of a row: what it is made of, and what the settings scale."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.search.query import required_term, terms, words
from responses_mcp.manuals.search.scoring import Row, Scored, Scorer, idf
from responses_mcp.manuals.words import foldable, normalise, parts_of_names
from responses_mcp.settings.model import LexicalSettings

DEFAULT = LexicalSettings()


def scored(
    query: str,
    body: str,
    *required: str,
    title: str = "",
    above: str = "",
    path: str = "a.md",
    lexical: LexicalSettings = DEFAULT,
) -> Scored:
    """Score a row beside one that has all the words."""
    counted = [(each, 2.0 * each.weight, True) for each in terms(query)]
    demanded = [(required_term(each), 2.0, 1.0) for each in required]
    scorer = Scorer(query, words(query), counted, demanded, lexical, average=600)
    found = scorer.look(Row(1, path, 1, title, above, foldable(normalise(body)), names=" ".join(parts_of_names(body))))
    scorer.score([found], [found, scorer.look(Row(2, "b.md", 1, "", "", foldable(normalise(query))))])
    scorer.refine(found)
    return found


def part(found: Scored, name: str) -> float:
    return sum(points for each, points in found.parts if each == name)


def test_the_score_is_the_sum_of_its_parts() -> None:
    found = scored("red button 217", "press the red button of form 217", title="Button")
    assert found.score == pytest.approx(sum(points for _, points in found.parts))


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("phrase_weight", "phrase"),
        ("number_context_bonus", "number in context"),
    ],
)
def test_a_setting_scales_what_it_names_and_0_leaves_it_out(setting: str, name: str) -> None:
    body = "red button 217 " + "and more of it " * 300
    usual, double, none = (
        scored("red button 217", body, lexical=replace(DEFAULT, **{setting: getattr(DEFAULT, setting) * factor}))
        for factor in (1, 2, 0)
    )
    assert part(usual, name) != 0
    assert part(double, name) == pytest.approx(2 * part(usual, name))
    assert part(none, name) == 0
    assert double.score - usual.score == pytest.approx(part(usual, name))


def test_a_longer_text_says_less_with_the_same_words_unless_the_setting_is_0() -> None:
    bodies = [f"red button {'more ' * number}" for number in (1, 200, 1000)]
    for weight, signs in ((0.2, [1, -1, -1]), (0.0, [0, 0, 0])):
        lexical = replace(DEFAULT, length_penalty_weight=weight)
        lengths = [part(scored("red button", body, lexical=lexical), "length") for body in bodies]
        assert [(each > 0) - (each < 0) for each in lengths] == signs
        assert lengths == sorted(lengths, reverse=True)


def test_a_part_of_a_name_is_found_and_weighs_less_than_the_whole() -> None:
    whole, parts, one = (
        scored("getElementById", body).score
        for body in ("call getElementById", "get an element by its id", "an element")
    )
    assert whole > parts > one > 0
    assert scored("element", "call getElementById").score > 0
    assert scored("async client", "an AsyncClient").coverage == 1.0
    assert scored("80070005", "it failed with 0x80070005").score > 0
    assert scored("0x80070005", "it failed with 80070005").score > 0


def test_in_japanese_the_words_count_and_what_joins_them_hardly() -> None:
    words_only = scored("免除の申請をしたい", "申請と免除").score
    joints_only = scored("免除の申請をしたい", "地図の申し分をした").score
    assert words_only > 3 * joints_only


def test_the_weight_of_coverage_scales_the_part_of_it_that_is_not_fixed() -> None:
    fixed, usual, more = (
        part(scored("red button", "red", lexical=replace(DEFAULT, coverage_weight=weight)), "coverage")
        for weight in (0, 0.5, 1.35)
    )
    assert more == pytest.approx(2 * usual)
    assert fixed == pytest.approx(0.35 / 0.85 * usual)


def test_closeness_has_a_bonus_for_near_and_one_for_far() -> None:
    near, far = "a red button", f"a red {'x' * 60} button"
    only_near = replace(DEFAULT, proximity_bonus_far=0)
    only_far = replace(DEFAULT, proximity_bonus_near=0)
    assert part(scored("red button", near), "proximity") > part(scored("red button", far), "proximity") > 0
    assert part(scored("red button", near, lexical=only_near), "proximity") > 0
    assert part(scored("red button", far, lexical=only_near), "proximity") == 0
    assert part(scored("red button", far, lexical=only_far), "proximity") > 0


def test_signals_name_what_speaks_for_a_row() -> None:
    assert {"exact", "phrase", "proximity"} <= set(scored("red button", "a red button").signals)
    assert "anchor" in scored("red button", "text", title="Red").signals
    assert "number_context" in scored("form 217", "use form no. 217").signals
    assert "number_context" not in scored("form 217", f"a form {'x' * 30} 217").signals
    assert "code_exact" in scored("error e42", "error: e42").signals
    assert "code_exact" not in scored("error 42", "error: 42").signals
    assert "definition_title" in scored("what is a proxy", "text", title="Proxy").signals
    assert "definition_title" not in scored("use a proxy", "text", title="Proxy").signals
    assert "exceptions" in scored("返品", "返品できます。ただし、食品は除きます。").signals
    assert set(scored("red button", "nothing of it").signals) == set()


def test_a_question_without_words_is_matched_exactly_by_nothing() -> None:
    found = scored("?!", "text")
    assert (found.signals, found.coverage, found.score) == ([], 0.0, 0.0)


def test_a_file_that_lists_others_loses_a_little_and_stays() -> None:
    usual = scored("red", "red text", path="guide/page.md")
    for path in ("guide/index.md", "toc.md", "目次.md", "a/my_index.md"):
        listed = scored("red", "red text", path=path)
        assert 0 < listed.score < usual.score
    for path in ("protocol.md", "stock.md", "indexing.md"):
        assert part(scored("red", "red text", path=path), "list of contents") == 0


def test_more_of_the_words_is_better_than_more_of_one() -> None:
    assert scored("red button", "a red button here").score > scored("red button", "red red red red red here").score


def test_title_headings_above_and_path_count() -> None:
    plain = scored("red button", "x" * 300).score
    assert scored("red button", "x" * 300, title="Ｒed").score > plain
    assert scored("red button", "x" * 300, above="Red > Other").score > plain
    assert scored("red button", "x" * 300, path="red/a.md").score > plain


def test_a_part_of_a_compound_counts_for_less_than_the_whole() -> None:
    whole, half, none = (scored("設定方法", body).coverage for body in ("設定方法", "方法と設定", "別の話"))
    assert whole == 1.0
    assert whole > half > none == 0.0


def test_required_terms_are_counted_in_text_title_and_around_and_do_not_change_the_score() -> None:
    found = scored("red", "red button button", "button", "lamp", title="Button", path="lamp/a.md")
    assert found.required == (3, 1)
    assert found.score == scored("red", "red button button", title="Button", path="lamp/a.md").score
    assert scored("red", "red button", "button").bonus > scored("red", "red", "button", above="Button").bonus > 0


TEXT = st.text(st.sampled_from("red button設定方法12 税。"), max_size=60)


@given(TEXT, TEXT, TEXT)
def test_coverage_is_a_share_and_no_row_has_less_than_nothing(query: str, body: str, title: str) -> None:
    found = scored(query, body, title=title)
    assert 0 <= found.coverage <= 1 + 1e-9
    assert found.score >= 0
    assert found.score <= 1


def test_a_rarer_word_weighs_more_and_an_unknown_one_half_of_the_rarest() -> None:
    weights = [idf(1000, having) for having in (1, 10, 500, 1000)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    assert idf(1000, 0) < weights[0]
    assert idf(0, 0) > 0
