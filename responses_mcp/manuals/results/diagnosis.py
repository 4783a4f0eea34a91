"""What a find says about itself: how its required terms fared, and what is missing.

Rules without a number are choices where the contract is silent; their thresholds are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.results.find_payload import Applied, Guarded, Summary, empty_row

if TYPE_CHECKING:
    from responses_mcp.manuals.requests import FindRequest

_RARE: Final = 0.02  # share of documents below which a term is called too rare
_COMMON: Final = 0.85  # … and above which it says nothing, if there are enough documents to tell
_ENOUGH_DOCUMENTS: Final = 20
_TOP: Final = 5  # rows that a reader looks at
_FEW: Final = 3  # rows below which something seems to be missing
_ONE_SIDED: Final = 0.8  # share of rows in one file from which on other files seem to be missing
_READY: Final = 4  # rows that are enough to answer from, if nothing seems to be missing


def guard(term: str, doc_freq: int, documents: int) -> Guarded | None:
    """Judge a required term found in `doc_freq` of the manual's `documents`; None if it is as good as not found."""
    rare = 0 < doc_freq < _RARE * documents
    common = documents >= _ENOUGH_DOCUMENTS and doc_freq > _COMMON * documents
    if not rare and not common:
        return None
    return {
        "term": term,
        "doc_freq": doc_freq,
        "doc_freq_ratio": _share(doc_freq, documents),
        "reason": "too_rare" if rare else "too_common",
        "dropped": not rare,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Required:
    """What became of the required terms.

    `doc_freqs` has the number of documents that hold a term, for each one requested, out of the manual's `documents`.
    `strict` counts the candidates of g_req with all requested terms, `filtered` those with the terms that the guard
    left; without a dropped term the two are the same. `unseen` says what was not looked at, None if all was.
    """

    doc_freqs: Mapping[str, int]
    guarded: Sequence[Guarded]
    documents: int
    strict: int
    filtered: int
    unseen: str | None = None

    @property
    def dropped(self) -> list[str]:
        """Return the terms without which the search went on."""
        return [each["term"] for each in self.guarded if each["dropped"]]

    @property
    def missing(self) -> list[str]:
        """Return the terms that nothing of what was looked at holds."""
        return [term for term, count in self.doc_freqs.items() if not count]


def applied(request: FindRequest, required: Required, in_top: Sequence[bool]) -> Applied:
    """Return `applied` as M4.16 to M4.34 list it, except for the cache's part.

    `in_top` says of each row, in the final order, whether its text holds an applied required term: a signal that a
    fusion step has lost must not pass for a term that is not there.
    """
    top = in_top[:_TOP]
    status, failure = _effect(required, top)
    used = [term for term in required.doc_freqs if term not in required.dropped]
    # All terms dropped by the guard is no gate that came back empty: nothing was asked of it.
    relaxed = bool(used) and not required.filtered
    gate, reason = "g0", "required_terms_dropped_by_df_guard"
    if relaxed:
        reason = "required_gate_empty_fallback_to_g0"
    elif used:
        gate, reason = "g_req", "rrf_fusion_with_required_gate"
    return {
        "manual_id": request.manual_id,
        "requested_expand_scope": request.expand_scope,
        "expand_scope": False,
        "required_terms_source": "user",
        "required_terms_decision_reason": "provided_by_caller",
        "requested_required_terms": list(required.doc_freqs),
        "required_terms": used,
        "required_terms_df_filtered": required.guarded,
        "required_terms_relaxed": relaxed,
        "required_terms_relax_reason": "zero_candidates_with_required_terms" if relaxed else None,
        "required_effect_status": status,
        "required_failure_reason": failure,
        "required_strict_candidates": required.strict,
        "required_filtered_candidates": required.filtered,
        "required_terms_match_stats": [
            {"term": term, "matched_docs": count, "matched_doc_ratio": _share(count, required.documents)}
            for term, count in required.doc_freqs.items()
        ],
        "required_terms_missing": required.missing,
        "required_top_k": len(top),
        "required_top_hits": sum(top),
        "selected_gate": gate,
        "gate_selection_reason": reason,
    }


def _effect(required: Required, top: Sequence[bool]) -> tuple[str, str | None]:
    """Return `required_effect_status` and `required_failure_reason`."""
    missing = ",".join(required.missing)
    if required.unseen:
        # Only who has looked everywhere can tell that a term is nowhere.
        reason = f"incomplete:{required.unseen}" + (f";not_found_so_far:{missing}" if missing else "")
        if not required.filtered:
            return "required_fallback", reason
        if missing or not required.strict:
            return "term_dropped_or_weakened", reason
        return ("required_effective" if any(top) else "required_fallback"), reason
    if len(required.missing) == len(required.doc_freqs):
        return "required_none_matched", f"required_terms_not_found_in_manual_scope:{missing}"
    if missing:
        return "term_dropped_or_weakened", f"some_required_terms_not_found_in_manual_scope:{missing}"
    if not required.strict and required.filtered:
        return "term_dropped_or_weakened", "no_candidates_with_all_requested_terms"
    if not required.strict:
        return "required_none_matched", "no_candidates_with_required_terms"
    if required.dropped and required.filtered < required.strict:
        return "term_dropped_or_weakened", f"required_terms_dropped_by_df_guard:{','.join(required.dropped)}"
    if not any(top):
        return "required_fallback", "required_terms_not_in_top_k"
    return "required_effective", None


def unseen(files: int, *, unlisted: bool, unranked: bool) -> str | None:
    """Say what a search did not look at: so many files, more that it does not know, or sections that it had found."""
    if files or unlisted:
        return f"{files}_{'or_more_' if unlisted else ''}files_not_searched"
    return "found_sections_not_ranked" if unranked else None


def gap_rows(paths: Sequence[str], unseen: str | None = None) -> list[JsonObject]:
    """Return the rows of kind `gaps`: one if not all was looked at, and one for what the candidates lack.

    They lack something if, given by their files, they are none, few or of one file.
    """
    hints: list[str] = []
    if unseen:
        hints.append(f"The search is incomplete ({unseen}); manual_hits kind unscanned lists files, search again.")
    if not paths:
        hints.append("Nothing was found; use other words, or other required_terms.")
    elif len(paths) < _FEW:
        hints.append(f"Fewer than {_FEW} sections were found; use more general words, or other required_terms.")
    elif len(paths) >= _TOP and bias(paths) >= _ONE_SIDED:
        hints.append("Nearly all hits are in one file; name the other subject, or find other files with manual_toc.")
    return [empty_row("gap", ref=None, path=None, gap_hint=hint) for hint in hints]


def summary(paths: Sequence[str], gap_count: int, *, scanned_files: int, scanned_nodes: int) -> Summary:
    """Return `summary` of candidates, given by their files. No find has conflicts."""
    status = "needs_followup"
    if not paths:
        status = "blocked"
    elif not gap_count and len(paths) >= _READY:
        status = "ready"
    return {
        "scanned_files": scanned_files,
        "scanned_nodes": scanned_nodes,
        "candidates": len(paths),
        "file_bias_ratio": bias(paths),
        "conflict_count": 0,
        "gap_count": gap_count,
        "integration_status": status,
    }


def bias(paths: Sequence[str]) -> float:
    """Return the share of rows, given by their files, that are of the one file with the most."""
    return _share(max(Counter(paths).values(), default=0), len(paths))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
