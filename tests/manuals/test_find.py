"""A find from its request to what a trace keeps."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from responses_mcp.manuals import find as finding
from responses_mcp.manuals.checks import OutOfTime
from responses_mcp.manuals.gates import Ranking, Search, rank
from responses_mcp.settings.model import FindSettings
from tests.manuals.searched import found, manual, paths

MANY = manual(
    {f"{n:03}.md": f"# Part {n}\nlamp {'red ' * (n % 7)}{'glass ' * (n % 11) * (n % 3 == 0)}\n" for n in range(90)}
)
MIXED = manual(
    {
        "c.md": "# Plus\nmodern c++ and catalog: a::b\n",
        "ja.md": "---\ntitle: 税の本\n---\n前書き\n# 納税\n納税の話。取り扱う品。\n# 比較\nハ\u3099ックアッフ\u309aと復元\n",
        "log.md": "# Log\nthe log of everything\n",
    }
)
PLAIN = FindSettings(exploration_enabled=False)


def signals(payload: dict[str, Any], signal: str) -> list[int]:
    return [at for at, row in enumerate(payload["candidates"]) if signal in row["ref"]["signals"]]


def test_hits_are_at_most_50_and_at_most_what_was_asked_for() -> None:
    assert len(paths(found(MANY, "red lamp", "glass"))) == 50
    for most in (1, 2, 7, 8, 9, 20):
        assert len(paths(found(MANY, "red lamp", "glass", max_candidates=most))) == most


def test_scores_never_rise_and_are_between_0_and_1() -> None:
    for most in (1, 2, 3, 20, 200):
        rows = found(MANY, "red lamp 12", "glass", "part", max_candidates=most)["candidates"]
        scores = [row["score"] for row in rows]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


def test_a_fixed_share_at_the_end_explores_and_never_takes_the_first_8_places() -> None:
    usual, plain = found(MANY, "red lamp", "glass"), found(MANY, "red lamp", "glass", find_settings=PLAIN)
    assert signals(usual, "exploration") == list(range(40, 50))
    assert signals(plain, "exploration") == []
    assert paths(usual)[:40] == paths(plain)[:40]
    assert len(set(paths(usual))) == 50
    for most, explored in ((1, 0), (8, 0), (9, 1), (10, 2), (20, 4)):
        payload = found(MANY, "red lamp", "glass", max_candidates=most)
        assert len(signals(payload, "exploration")) == explored
        assert paths(payload)[:8] == paths(plain)[: min(most, 8)]


def test_the_settings_of_exploration_are_its_share_its_least_and_its_scale() -> None:
    def explored(**find: Any) -> list[dict[str, Any]]:
        rows = found(MANY, "red lamp", "glass", find_settings=FindSettings(**find))["candidates"]
        return [row for row in rows if "exploration" in row["ref"]["signals"]]

    assert len(explored(exploration_ratio=0.5)) == 25
    assert len(explored(exploration_ratio=1.0)) == 42
    assert len(explored(exploration_ratio=0.0, exploration_min_candidates=3)) == 3
    assert explored(exploration_ratio=0.0, exploration_min_candidates=0) == []
    low, high = explored(exploration_score_scale=0.1)[0], explored(exploration_score_scale=0.5)[0]
    assert low["score"] < high["score"]


def test_rows_to_explore_are_those_that_the_index_likes() -> None:
    by_words: list[str] = []

    def remembered(query: str, search: Search) -> Ranking:
        ranking = rank(query, search)
        by_words.extend(path for path, _ in ranking.by_words)
        return ranking

    with patch.object(finding, "rank", remembered):
        payload = found(MANY, "red lamp", "glass")
    shown = paths(payload)
    left_out = [path for path in by_words if path not in shown[:40]]
    assert set(shown[40:]) == set(left_out[:10])


@pytest.mark.parametrize("most", [2, 9, 50])
def test_the_best_row_of_each_gate_has_a_place(most: int) -> None:
    def unfused(query: str, search: Search) -> Ranking:
        ranking = rank(query, search)
        ranking.gates = [("g0", ranking.order[-1:], 1.0), ("g_req", ranking.order[-2:-1], 1.0)]
        return ranking

    with patch.object(finding, "rank", unfused):
        payload = found(MANY, "red lamp", "glass", max_candidates=most)
    debug = payload["fusion_debug"]
    tops = [row["rank"] for row in debug if row["guaranteed_top"]]
    assert len(tops) == min(most - 1, 2)
    assert tops == [row["rank"] for row in debug if row["guaranteed_injected"]]
    explored = len(signals(payload, "exploration"))
    assert tops[-1] == most - explored
    assert len(debug) == most


def test_one_place_is_for_the_best_of_all() -> None:
    assert paths(found(MANY, "red lamp", "glass", max_candidates=1)) == paths(found(MANY, "red lamp", "glass"))[:1]


def test_a_term_in_nearly_all_sections_is_dropped_and_g0_runs_alone() -> None:
    applied = found(MANY, "red", "lamp")["applied"]
    assert applied["required_terms"] == []
    assert applied["required_terms_df_filtered"][0]["reason"] == "too_common"
    assert (applied["selected_gate"], applied["required_terms_relaxed"]) == ("g0", False)
    assert applied["required_effect_status"] == "term_dropped_or_weakened"
    assert applied["required_strict_candidates"] > 0 == applied["required_filtered_candidates"]


def test_what_the_dropped_term_would_have_found_is_the_strict_count() -> None:
    applied = found(MANY, "red", "lamp", "glass")["applied"]
    assert applied["required_terms"] == ["glass"]
    assert 0 < applied["required_filtered_candidates"] < applied["required_strict_candidates"]
    assert applied["required_effect_status"] == "term_dropped_or_weakened"


def test_a_term_that_is_nowhere_is_missing_and_g0_answers() -> None:
    payload = found(MIXED, "modern", "zebra")
    applied = payload["applied"]
    assert applied["required_terms_missing"] == ["zebra"]
    assert applied["required_terms_relax_reason"] == "zero_candidates_with_required_terms"
    assert paths(payload) == ["c.md"]


@pytest.mark.parametrize(
    ("query", "term", "path"),
    [
        ("modern", "c++", "c.md"),
        ("modern", "C++", "c.md"),
        ("話", "税", "ja.md"),
        ("?", "::", "c.md"),
        ("復元", "ﾊﾞｯｸｱｯﾌﾟ", "ja.md"),
        ("納税", "取り扱い", "ja.md"),
        ("modern", "alog", "c.md"),
        ("🚀", "前書き", "ja.md"),
        ("税の本", "税の本", "ja.md"),
    ],
)
def test_a_term_that_a_text_holds_is_found_and_not_missing(query: str, term: str, path: str) -> None:
    payload = found(MIXED, query, term)
    assert payload["applied"]["required_terms_missing"] == []
    assert payload["applied"]["selected_gate"] == "g_req"
    assert payload["applied"]["required_effect_status"] == "required_effective"
    assert paths(payload)[0] == path


def test_parts_of_a_question_speak_in_its_ranking() -> None:
    reader = manual(
        {
            "a.md": "# リスト\nリストの説明です。",
            "b.md": "# タプル\nタプルの説明です。",
            "c.md": "# 両方\nリストとタプルの違いの話。",
            "d.md": "# 違い\n違いの話。",
        }
    )
    query = "リストとタプルの違い"
    payload = found(reader, query, "説明")
    with_signal = {payload["candidates"][at]["path"] for at in signals(payload, "query_decomp_rrf")}
    assert {"a.md", "b.md", "c.md"} <= with_signal
    assert "d.md" not in with_signal
    off = found(reader, query, "説明", find_settings=FindSettings(query_decomp_enabled=False))
    assert signals(off, "query_decomp_rrf") == []
    one = found(reader, query, "説明", find_settings=FindSettings(query_decomp_max_sub_queries=1))
    assert paths(one) == paths(off)
    base = found(reader, query, "説明", find_settings=FindSettings(query_decomp_base_weight=1.0))
    assert base["candidates"][0]["path"] == off["candidates"][0]["path"]


def test_a_part_without_time_leaves_the_whole_and_is_told() -> None:
    def slow(query: str, search: Search) -> Ranking:
        if query != "npm vs yarn":
            raise OutOfTime
        return rank(query, search)

    reader = manual({"a.md": "# npm\nnpm and yarn"})
    with patch.object(finding, "rank", slow):
        payload = found(reader, "npm vs yarn", "npm")
    assert paths(payload) == ["a.md"]
    assert [run["cutoff_reason"] for run in payload["gate_runs"]] == ["time_budget"] * 2


def test_a_list_that_nothing_ended_says_so() -> None:
    assert found(MIXED, "modern", "c++")["gate_runs"][0]["cutoff_reason"] is None
    assert found(MANY, "red lamp", "glass")["gate_runs"][0]["cutoff_reason"] == "candidate_cap"


def test_a_gate_run_is_counted_from_its_rows() -> None:
    reader = manual({"a.md": "# Red\nred lamp\n# Except\nred unless blue\n", "b.md": "# Other\nred\n"})
    plain, required = found(reader, "red", "lamp")["gate_runs"]
    assert plain == {
        "gate": "g0",
        "required_terms": [],
        "candidates_count": 3,
        "file_bias_ratio": 0.6667,
        "exception_hits": 1,
        "top_score": plain["top_score"],
        "scoring_mode": "lexical",
        "cutoff_reason": None,
        "weight": 1.0,
        "weight_reason": None,
        "selected": False,
    }
    assert (required["required_terms"], required["candidates_count"], required["selected"]) == (["lamp"], 1, True)
    assert 0 < required["top_score"] <= plain["top_score"]


def test_rows_are_counted_and_explained() -> None:
    row = found(MIXED, "modern catalog", "c++")["candidates"][0]
    assert row["token_hits"] == {"catalog": 1, "modern": 1}
    assert row["matched_tokens"] == ["catalog", "modern"]
    assert row["match_coverage"] == 1.0
    assert any(each.startswith("coverage +") for each in row["rank_explain"])


def test_the_same_find_has_the_same_answer() -> None:
    assert found(MANY, "red lamp と glass の違い", "glass", "red") == found(
        MANY, "red lamp と glass の違い", "glass", "red"
    )


NASTY = [
    "the of and", "これはどう", "?!…", "税", "🚀", "a" * 10_000, "税金の話" * 2500, "lorem ipsum " * 800,
    '"', '"* ( ) NEAR(a b) AND OR NOT : ^ -x {y}:', "a\x00b", "\ud800", "+", "C++", "_", "・", "ー", "\u200b", "--", "a AND",
]  # fmt: skip


@pytest.mark.parametrize("query", NASTY)
@pytest.mark.parametrize("term", ["log", "税", "+", "ー", '"', "a\x00b", "🚀", "near(", "c" * 1000])
def test_any_question_and_any_term_have_an_answer(query: str, term: str) -> None:
    json.dumps(found(MIXED, query, term), allow_nan=False)


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=2), st.integers(1, 60))
@hypothesis_settings(max_examples=60)
def test_an_answer_is_consistent_whatever_is_asked(query: str, terms: list[str], most: int) -> None:
    payload = found(MIXED, query, *terms, max_candidates=most)
    applied, rows = payload["applied"], payload["candidates"]
    assert len({(row["path"], row["start_line"]) for row in rows}) == len(rows) <= most
    assert applied["required_top_hits"] <= applied["required_top_k"] == min(5, len(rows))
    if applied["required_effect_status"] == "required_effective":
        assert applied["required_top_hits"]
    assert all(row["ref"]["path"] in {"c.md", "ja.md", "log.md"} for row in rows)
