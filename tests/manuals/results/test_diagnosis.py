"""What a find says about itself: required terms, summary, gaps."""

from dataclasses import replace

import pytest

from responses_mcp.manuals.requests import FindRequest
from responses_mcp.manuals.results.diagnosis import (
    Required,
    applied,
    gap_rows,
    guard,
    summary,
    unseen,
)

ASKED = FindRequest(query="how to pay", manual_id="shop", required_terms=("pay", "card"))


def required(
    *, pay: int = 30, card: int = 10, documents: int = 100, strict: int = 9, filtered: int | None = None
) -> Required:
    freqs = {"pay": pay, "card": card}
    guarded = [guard(term, freq, documents) for term, freq in freqs.items()]
    return Required(
        guarded=[each for each in guarded if each],
        doc_freqs=freqs,
        documents=documents,
        strict=strict,
        filtered=strict if filtered is None else filtered,
    )


def status(became: Required, in_top: tuple[bool, ...] = (True,)) -> tuple[str, str | None]:
    found = applied(ASKED, became, in_top)
    return found["required_effect_status"], found["required_failure_reason"]


@pytest.mark.rule("M4.22")
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
    assert (found and found["reason"]) == reason


@pytest.mark.rule("M4.25")
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


@pytest.mark.rule("M4.25")
@pytest.mark.parametrize(
    ("became", "in_top", "expected", "missing"),
    [
        (required(pay=0, card=0, strict=0), (), "required_fallback", ";not_found_so_far:pay,card"),
        (required(strict=0), (False,), "required_fallback", ""),
        (required(card=0), (True,), "term_dropped_or_weakened", ";not_found_so_far:card"),
        (required(strict=0, filtered=3), (True,), "term_dropped_or_weakened", ""),
        (required(), (True,), "required_effective", ""),
        (required(), (False,), "required_fallback", ""),
    ],
)
def test_a_search_that_did_not_see_everything_never_says_that_a_term_is_nowhere(
    became: Required, in_top: tuple[bool, ...], expected: str, missing: str
) -> None:
    partly = replace(became, unseen="7_files_not_searched")
    assert status(partly, in_top) == (expected, f"incomplete:7_files_not_searched{missing}")


@pytest.mark.parametrize(
    ("files", "unlisted", "unranked", "said"),
    [
        (0, False, False, None),
        (7, False, False, "7_files_not_searched"),
        (7, True, True, "7_or_more_files_not_searched"),
        (0, True, False, "0_or_more_files_not_searched"),
        (0, False, True, "found_sections_not_ranked"),
    ],
)
def test_what_was_not_looked_at_has_a_number(files: int, unlisted: bool, unranked: bool, said: str | None) -> None:
    assert unseen(files, unlisted=unlisted, unranked=unranked) == said
    gaps = gap_rows(("a", "b", "c", "d"), said)
    assert [said in gap["gap_hint"] for gap in gaps if said] == ([True] if said else [])
    ready = summary(("a", "b", "c", "d"), len(gaps), scanned_files=1, scanned_nodes=2)["integration_status"]
    assert ready == ("needs_followup" if said else "ready")


def test_a_manual_without_text_has_no_shares_to_tell() -> None:
    found = applied(ASKED, required(pay=0, card=0, documents=0, strict=0), ())
    assert [each["matched_doc_ratio"] for each in found["required_terms_match_stats"]] == [0, 0]


@pytest.mark.rule("M4.29")
def test_the_top_is_counted_from_texts_over_five_rows() -> None:
    found = applied(ASKED, required(), (True, False, True, False, True, True, True))
    assert (found["required_top_k"], found["required_top_hits"]) == (5, 3)


@pytest.mark.rule("M4.20", "M4.21")
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
    gaps = gap_rows(paths)
    assert [hint in gap["gap_hint"] for gap in gaps] == ([True] if hint else [])


@pytest.mark.rule("M4.1")
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
    assert summary(paths, len(gap_rows(paths)), scanned_files=1, scanned_nodes=2)["integration_status"] == expected
