"""A find from its request to what a trace keeps."""

import json
import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.cancellation import OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import HitsRequest
from responses_mcp.manuals.search import contract, ranking, reader
from responses_mcp.manuals.search.contract import packed, page, sub_queries
from responses_mcp.manuals.search.query import Query
from responses_mcp.manuals.search.ranking import Ranking, Search
from tests.manuals.searched import MANY, find_in, found, manual, paths

MIXED = manual(
    {
        "c.md": "# Plus\nmodern c++ and catalog: a::b\n",
        "ja.md": "---\ntitle: 税の本\n---\n前書き\n# 納税\n納税の話。取り扱う品。\n# 比較\nハ\u3099ックアッフ\u309aと復元\n",
        "log.md": "# Log\nthe log of everything\n",
    }
)


def test_scores_never_rise_and_are_between_0_and_1() -> None:
    for most in (1, 2, 3, 20, 200):
        rows = found(MANY, "red lamp 12", "glass", "part", max_candidates=most)["candidates"]
        scores = [row["score"] for row in rows]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)


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


def test_a_list_that_nothing_ended_says_so() -> None:
    assert found(MIXED, "modern", "c++")["gate_runs"][0]["cutoff_reason"] is None
    assert found(MANY, "red lamp", "glass")["gate_runs"][0]["cutoff_reason"] == "candidate_cap"


@pytest.mark.rule("M4.51")
def test_what_is_weak_in_score_and_in_coverage_is_cut_off_and_the_gates_say_so() -> None:
    asked = "red lamp glass handle stand brass bell door hall gate"
    good = {f"good{n}.md": f"# Good\n{asked} {'and more ' * 20}" for n in range(20)}
    weak = {f"weak{n:02}.md": f"# Weak\nred {'thing ' * 100}" for n in range(40)}
    payload = found(manual(good | weak), asked, "brass")
    shown = paths(payload)
    assert set(shown[:20]) == set(good)
    assert len(shown) == 20 + 4  # four explore
    assert [run["cutoff_reason"] for run in payload["gate_runs"]] == ["dynamic_cutoff"] * 2
    assert len(paths(found(manual(good | weak), "red", "bell"))) > 24


def test_a_gate_run_is_counted_from_its_rows() -> None:
    reader = manual({"a.md": "# Red\nred lamp\n# Except\nred unless blue\n", "b.md": "# Other\nred\n"})
    plain, required = found(reader, "red", "lamp")["gate_runs"]
    assert plain == {
        "gate": "g0",
        "required_terms": [],
        "candidates_count": 3,
        "cutoff_reason": None,
        "selected": False,
    }
    assert (required["required_terms"], required["candidates_count"], required["selected"]) == (["lamp"], 1, True)


@pytest.mark.rule("M4.54")
@pytest.mark.parametrize(
    ("query", "text", "words"),
    [
        ("configure Commits", "# X\nConfiguration is configured, configured twice; I COMMITTED it.", {
            "configured": 2, "committed": 1, "configuration": 1,
        }),
        ("コレクター", "# X\nコレクタとコレクターとｺﾚｸﾀｰ", {"コレクター": 2, "コレクタ": 1}),
        ("データベース設定方法", "# X\nデータの方法、ベースの設定", {"データ": 1, "ベース": 1, "方法": 1, "設定": 1}),
        ("設定方法", "# 方法\n設定は設定する。", {"設定": 2, "方法": 1}),
        ("設定方法", "# X\n設定方法と設定", {"設定": 1, "設定方法": 1}),
    ],
)  # fmt: skip
def test_matched_tokens_are_words_as_they_stand_in_the_text(query: str, text: str, words: dict[str, int]) -> None:
    (row,) = found(manual({"a.md": text}), query, "unheardof")["candidates"]
    assert row["token_hits"] == words
    assert row["matched_tokens"] == list(words)


@pytest.mark.rule("M4.47", "M4.48")
def test_a_payload_has_its_diagnostics_in_applied_alone() -> None:
    payload = found(MIXED, "modern catalog", "c++")
    assert list(payload) == [
        "query", "manual_id", "applied", "summary", "candidates", "texts", "gaps", "gate_runs", "fusion_debug",
    ]  # fmt: skip
    assert payload["applied"]["selected_gate"] == "g_req"


@pytest.mark.rule("M4.25")
@pytest.mark.parametrize(
    ("soon_read", "status", "reason"),
    [
        (0, "required_fallback", "incomplete:parts_of_words_not_searched;not_found_so_far:zqx"),
        (10**6, "required_none_matched", "required_terms_not_found_in_manual_scope:zqx"),
    ],
)
def test_a_term_is_said_to_be_nowhere_only_where_it_was_looked_for_as_it_is_written(
    monkeypatch: pytest.MonkeyPatch, soon_read: int, status: str, reason: str
) -> None:
    monkeypatch.setattr(reader, "_SOON_READ", soon_read)
    applied = found(manual({"a.md": "# A\nA lamp.", "b.md": "# B\nA lamp."}), "lamp", "zqx")["applied"]
    assert (applied["required_effect_status"], applied["required_failure_reason"]) == (status, reason)


TOOLS = manual(
    {"npm.md": "# npm\nnpm again", "yarn.md": "# yarn\nyarn again", "both.md": "# Both\nnpm and yarn", "o.md": "# O\no"}
)


@pytest.mark.rule("M4.35")
@pytest.mark.parametrize("failing", [(), ("npm",), ("npm", "yarn")])
@pytest.mark.parametrize("error", [sqlite3.OperationalError("no"), OutOfTime()])
def test_a_part_of_a_question_that_fails_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...], error: Exception
) -> None:

    def rank(asked: Query, search: Search) -> Ranking:
        if asked.text in failing:
            raise error
        return ranking.rank(asked, search)

    monkeypatch.setattr(contract, "rank", rank)
    payload = found(TOOLS, "npm vs yarn", "zzqq")
    parts = {row["path"] for row in payload["candidates"] if "query_decomp_rrf" in row["ref"]["signals"]}
    assert set(paths(payload)) == {"npm.md", "yarn.md", "both.md"}
    assert parts == {f"{each}.md" for each in {"npm", "yarn"}.difference(failing)} | (
        {"both.md"} if len(failing) < 2 else set()
    )
    assert payload["gate_runs"][0]["cutoff_reason"] == ("time_budget" if failing else None)


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("npm vs. yarn?", ["npm", "yarn"]),
        ("What is the difference between the index and a vault", ["index", "vault"]),
        ("サーバーとルーターの違い", ["サーバー", "ルーター"]),
        ("納税とはどういうことか", []),
        ("read and write a file", []),
        ("AとB " * 100, []),
    ],
)
def test_a_comparison_is_of_two_things(question: str, parts: list[str]) -> None:
    assert sub_queries(question) == parts


@pytest.mark.rule("M4.22")
@pytest.mark.parametrize(
    ("having", "sections", "reason"),
    [(0, 100, None), (1, 100, "too_rare"), (1, 50, None), (2, 100, None), (85, 100, None), (86, 100, "too_common"),
     (20, 20, "too_common"), (19, 19, None)],
)  # fmt: skip
def test_the_guard_knows_rare_and_common_terms(having: int, sections: int, reason: str | None) -> None:
    texts = {f"{n}.md": f"# Page {n}\nlamp {'brass' * (n < having)}" for n in range(sections)}
    guarded = found(manual(texts), "lamp", "brass")["applied"]["required_terms_df_filtered"]
    assert [each["reason"] for each in guarded] == ([reason] if reason else [])


CLUB = manual(
    {
        "who.md": "# Requirements to join\nWhoever is of age may join the club.",
        "not.md": "# Who may not join\nNobody may join the club unless they are of age.",
        "fee.md": "# Fees\nThe club costs little.",
    }
)


@pytest.mark.rule("M4.56")
def test_a_graph_holds_together() -> None:
    payload = found(CLUB, "allowed to join the club", "club", include_claim_graph=True)
    graph = payload["claim_graph"]
    assert [each["facet"] for each in graph["facets"]] == [
        "definition", "procedure", "eligibility", "exceptions", "compare", "unknown",
    ]  # fmt: skip
    assert [each["evidence_id"] for each in graph["evidences"]] == [f"ev:{n}" for n in range(1, 4)]
    first = graph["evidences"][0]
    assert first["ref"].keys() == {"target", "manual_id", "path", "start_line"}
    assert re.fullmatch("[0-9a-f]{16}", first["snippet_digest"])
    claims = {each["claim_id"]: each for each in graph["claims"]}
    assert {each["facet"] for each in claims.values()} == {"eligibility"}
    for edge in graph["edges"]:
        assert edge["from_claim_id"] in claims
        assert edge["relation"] in ("supports", "contradicts", "requires_followup")
        assert 0 < edge["confidence"] < 1
    [conflict] = [each for each in claims.values() if each["facet"] == "eligibility"]
    assert (conflict["text"], conflict["status"]) == ("allowed to join the club", "conflicted")
    of_facet = next(each for each in graph["facets"] if each["facet"] == "eligibility")
    assert of_facet == {
        "facet": "eligibility", "claim_count": 1, "supported_count": 0, "conflicted_count": 1, "unresolved_count": 0,
        "coverage_status": "partial",
    }  # fmt: skip


@pytest.mark.rule("M5.9", "M5.13")
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("kind", [each for each in KINDS if each != "conflicts"])
def test_pages_join_to_all_rows_and_end_empty(kind: str, compact: bool) -> None:
    payload = find_in(CLUB, "allowed to join the club", "club", include_claim_graph=True)
    kept = packed(payload, [(f"{n}.md", "too_large") for n in range(5)])
    whole = page(kept, HitsRequest("t", kind, 0, 100), compact=compact)
    pages = [page(kept, HitsRequest("t", kind, at, 2), compact=compact) for at in range(0, whole["total"] + 2, 2)]
    assert whole["items"] == [each for part in pages for each in part["items"]]
    assert {each["total"] for each in pages} == {len(whole["items"])}
    assert whole["items"] or kind == "gaps"
    with pytest.raises(ManualsError, match="integrated_top"):
        page(kept, HitsRequest("t", kind.upper()), compact=compact)


NASTY = [
    "the of and", "これはどう", "?!…", "税", "🚀", "a" * 10_000, "税金の話" * 2500, "lorem ipsum " * 800,
    '"', '"* ( ) NEAR(a b) AND OR NOT : ^ -x {y}:', "a\x00b", "\ud800", "+", "C++", "_", "・", "ー", "\u200b", "--", "a AND",
]  # fmt: skip


@pytest.mark.parametrize("query", NASTY)
@pytest.mark.parametrize("term", ["log", "税", "+", "ー", '"', "a\x00b", "🚀", "near(", "c" * 1000])
def test_any_question_and_any_term_have_an_answer(query: str, term: str) -> None:
    json.dumps(found(MIXED, query, term), allow_nan=False)


@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=2), st.integers(1, 60))
def test_an_answer_is_consistent_whatever_is_asked(query: str, terms: list[str], most: int) -> None:
    payload = found(MIXED, query, *terms, max_candidates=most)
    applied, rows = payload["applied"], payload["candidates"]
    assert len({(row["path"], row["start_line"]) for row in rows}) == len(rows) <= most
    assert applied["required_top_hits"] <= applied["required_top_k"] == min(5, len(rows))
    if applied["required_effect_status"] == "required_effective":
        assert applied["required_top_hits"]
    assert all(row["ref"]["path"] in {"c.md", "ja.md", "log.md"} for row in rows)
