"""What a find says about itself: required terms, summary, gaps."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.diagnosis import (
    Required,
    applied,
    gap_rows,
    guard,
    summary,
)
from responses_mcp.manuals.requests import FindRequest
from tests.manuals.found import row

ASKED = FindRequest(query="how to pay", manual_id="shop", required_terms=("pay", "card"))


def required(
    *, pay: int = 30, card: int = 10, documents: int = 100, strict: int = 9, filtered: int | None = None
) -> Required:
    freqs = {"pay": pay, "card": card}
    guarded = [guard(term, freq, documents) for term, freq in freqs.items()]
    return Required(
        requested=("pay", "card"),
        guarded=tuple(each for each in guarded if each),
        doc_freqs=freqs,
        documents=documents,
        strict=strict,
        filtered=strict if filtered is None else filtered,
    )


def status(became: Required, in_top: tuple[bool, ...] = (True,)) -> tuple[str, str | None]:
    found = applied(ASKED, became, in_top)
    return found["required_effect_status"], found["required_failure_reason"]


def test_applied_says_all_that_the_contract_lists_but_the_cache() -> None:
    assert applied(ASKED, required(), (False, True, True)) == {
        "manual_id": "shop",
        "requested_expand_scope": None,
        "expand_scope": False,
        "required_terms_source": "user",
        "required_terms_decision_reason": "provided_by_caller",
        "requested_required_terms": ["pay", "card"],
        "required_terms": ["pay", "card"],
        "required_terms_df_filtered": [],
        "required_terms_relaxed": False,
        "required_terms_relax_reason": None,
        "required_effect_status": "required_effective",
        "required_failure_reason": None,
        "required_strict_candidates": 9,
        "required_filtered_candidates": 9,
        "required_terms_match_stats": [
            {"term": "pay", "matched_docs": 30, "matched_doc_ratio": 0.3},
            {"term": "card", "matched_docs": 10, "matched_doc_ratio": 0.1},
        ],
        "required_terms_missing": [],
        "required_top_k": 3,
        "required_top_hits": 2,
        "selected_gate": "g_req",
        "gate_selection_reason": "rrf_fusion_with_required_gate",
    }


@pytest.mark.parametrize("asked", [True, False, None])
def test_the_scope_is_never_expanded_whatever_was_asked(asked: bool | None) -> None:
    request = FindRequest(query="q", manual_id="shop", required_terms=("pay",), expand_scope=asked)
    found = applied(request, required(), ())
    assert (found["requested_expand_scope"], found["expand_scope"]) == (asked, False)


@pytest.mark.parametrize(
    ("doc_freq", "documents", "reason"),
    [
        (0, 100, None),  # not rare: not there
        (1, 100, "too_rare"),
        (1, 50, None),
        (2, 100, None),
        (85, 100, None),
        (86, 100, "too_common"),
        (20, 20, "too_common"),
        (19, 19, None),  # too few documents to tell
        (0, 0, None),
    ],
)
def test_the_guard_knows_rare_and_common_terms(doc_freq: int, documents: int, reason: str | None) -> None:
    found = guard("pay", doc_freq, documents)
    assert (found and found.reason) == reason


def test_a_common_term_is_dropped_and_a_rare_one_kept() -> None:
    found = applied(ASKED, required(pay=90, card=1, strict=9, filtered=9), (True,))
    assert found["required_terms"] == ["card"]
    assert found["requested_required_terms"] == ["pay", "card"]
    assert found["required_terms_df_filtered"] == [
        {"term": "pay", "doc_freq": 90, "doc_freq_ratio": 0.9, "reason": "too_common", "dropped": True},
        {"term": "card", "doc_freq": 1, "doc_freq_ratio": 0.01, "reason": "too_rare", "dropped": False},
    ]


@pytest.mark.parametrize(
    ("became", "in_top", "expected", "reason"),
    [
        (required(pay=0, card=0, strict=0), (), "required_none_matched", "required_terms_not_found_in_manual_scope:pay,card"),
        (required(card=0), (True,), "term_dropped_or_weakened", "some_required_terms_not_found_in_manual_scope:card"),
        (required(strict=0, filtered=3), (True,), "term_dropped_or_weakened", "no_candidates_with_all_requested_terms"),
        (required(strict=0), (False,), "required_none_matched", "no_candidates_with_required_terms"),
        (required(pay=90, strict=9, filtered=4), (True,), "term_dropped_or_weakened", "required_terms_dropped_by_df_guard:pay"),
        (required(pay=90, card=90, filtered=0), (False,), "term_dropped_or_weakened", "required_terms_dropped_by_df_guard:pay,card"),
        (required(pay=90, strict=9, filtered=9), (True,), "required_effective", None),
        (required(), (False, False, False, False, True), "required_effective", None),
        (required(), (False, False, False, False, False, True), "required_fallback", "required_terms_not_in_top_k"),
        (required(pay=90, strict=9, filtered=9), (False,), "required_fallback", "required_terms_not_in_top_k"),
        (required(card=0), (False,), "term_dropped_or_weakened", "some_required_terms_not_found_in_manual_scope:card"),
    ],
)  # fmt: skip
def test_the_status_tells_how_the_required_terms_fared(
    became: Required, in_top: tuple[bool, ...], expected: str, reason: str | None
) -> None:
    assert status(became, in_top) == (expected, reason)


def test_a_manual_without_text_has_no_shares_to_tell() -> None:
    found = applied(ASKED, required(pay=0, card=0, documents=0, strict=0), ())
    assert [each["matched_doc_ratio"] for each in found["required_terms_match_stats"]] == [0, 0]


def test_the_top_is_counted_from_texts_over_five_rows() -> None:
    found = applied(ASKED, required(), (True, False, True, False, True, True, True))
    assert (found["required_top_k"], found["required_top_hits"]) == (5, 3)


@pytest.mark.parametrize(
    ("became", "gate", "reason", "relaxed"),
    [
        (required(), "g_req", "rrf_fusion_with_required_gate", False),
        (required(strict=0), "g0", "required_gate_empty_fallback_to_g0", True),
        (required(pay=0, card=0, strict=0), "g0", "required_gate_empty_fallback_to_g0", True),
        (required(pay=90, card=90, filtered=0), "g0", "required_terms_dropped_by_df_guard", False),
    ],
)
def test_the_gate_is_the_one_that_was_used(became: Required, gate: str, reason: str, relaxed: bool) -> None:
    found = applied(ASKED, became, ())
    assert (found["selected_gate"], found["gate_selection_reason"]) == (gate, reason)
    assert found["required_terms_relaxed"] is relaxed
    assert found["required_terms_relax_reason"] == ("zero_candidates_with_required_terms" if relaxed else None)


def rows_of(*paths: str) -> list[dict[str, Any]]:
    return [row(path) for path in paths]


@pytest.mark.parametrize(
    ("paths", "hint"),
    [
        ((), "Nothing was found"),
        (("a", "b"), "Fewer than 3"),
        (("a", "b", "c"), None),
        (("a", "a", "a", "a", "b"), "one file"),
        (("a", "a", "a", "b", "b"), None),
        (("a", "a", "a", "a"), None),  # too few to tell
    ],
)
def test_a_gap_is_nothing_little_or_one_file(paths: tuple[str, ...], hint: str | None) -> None:
    gaps = gap_rows(rows_of(*paths))
    assert [hint in gap["gap_hint"] for gap in gaps] == ([True] if hint else [])


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ((), "blocked"),
        (("a", "b"), "needs_followup"),
        (("a", "b", "c"), "needs_followup"),
        (("a", "b", "c", "d"), "ready"),
        (("a", "a", "a", "a", "b"), "needs_followup"),
        (("a", "a", "b", "b", "c"), "ready"),
    ],
)
def test_the_summary_says_how_far_the_find_carries(paths: tuple[str, ...], expected: str) -> None:
    rows = rows_of(*paths)
    assert summary(rows, gap_rows(rows), scanned_files=1, scanned_nodes=2)["integration_status"] == expected


def test_the_summary_has_the_fields_of_the_contract() -> None:
    rows = rows_of("a", "a", "b")
    assert summary(rows, gap_rows(rows), scanned_files=10, scanned_nodes=200) == {
        "scanned_files": 10,
        "scanned_nodes": 200,
        "candidates": 3,
        "file_bias_ratio": 0.6667,
        "conflict_count": 0,
        "gap_count": 0,
        "integration_status": "needs_followup",
    }


@given(paths=st.lists(st.sampled_from("abc"), max_size=12))
def test_the_summary_counts_the_rows_that_hits_will_show(paths: list[str]) -> None:
    rows = rows_of(*paths)
    gaps = gap_rows(rows)
    told = summary(rows, gaps, scanned_files=0, scanned_nodes=0)
    assert (told["candidates"], told["gap_count"], told["conflict_count"]) == (len(rows), len(gaps), 0)
    most = max((paths.count(path) for path in paths), default=0)
    assert told["file_bias_ratio"] == (round(most / len(paths), 4) if paths else 0)
    assert (told["integration_status"] == "blocked") is (not rows)
