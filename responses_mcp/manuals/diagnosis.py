"""What a find says about itself: how its required terms fared, and what is missing.

Rules without a source are choices where the contract is silent; their thresholds are fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from responses_mcp.manuals.requests import FindRequest

Row = Mapping[str, Any]

_RARE: Final = 0.02  # share of documents below which a term is called too rare
_COMMON: Final = 0.85  # … and above which it says nothing, if there are enough documents to tell
_ENOUGH_DOCUMENTS: Final = 20
_TOP: Final = 5  # rows that a reader looks at
_FEW: Final = 3  # rows below which something seems to be missing
_ONE_SIDED: Final = 0.8  # share of rows in one file from which on other files seem to be missing
_READY: Final = 4  # rows that are enough to answer from, if nothing seems to be missing


@dataclass(frozen=True, slots=True)
class Guarded:
    """A required term in so few or so many of a manual's `documents` that it selects badly."""

    term: str
    doc_freq: int
    documents: int
    reason: Literal["too_rare", "too_common"]

    @property
    def dropped(self) -> bool:
        """Tell whether the search goes on without the term."""
        return self.reason == "too_common"

    def as_json(self) -> dict[str, Any]:
        """Return an item of `applied.required_terms_df_filtered`."""
        return {
            "term": self.term,
            "doc_freq": self.doc_freq,
            "doc_freq_ratio": _share(self.doc_freq, self.documents),
            "reason": self.reason,
            "dropped": self.dropped,
        }


def guard(term: str, doc_freq: int, documents: int) -> Guarded | None:
    """Judge a required term found in `doc_freq` of the manual's `documents`; None if it is as good as not found."""
    if 0 < doc_freq < _RARE * documents:
        return Guarded(term, doc_freq, documents, "too_rare")
    if documents >= _ENOUGH_DOCUMENTS and doc_freq > _COMMON * documents:
        return Guarded(term, doc_freq, documents, "too_common")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Required:
    """What became of the required terms.

    `doc_freqs` has the number of documents that hold a term, for each one requested, out of the manual's `documents`.
    `strict` counts the candidates of g_req with all requested terms, `filtered` those with the terms that the guard
    left; without a dropped term the two are the same.
    """

    requested: tuple[str, ...]
    guarded: tuple[Guarded, ...]
    doc_freqs: Mapping[str, int]
    documents: int
    strict: int
    filtered: int

    @property
    def dropped(self) -> tuple[str, ...]:
        """Return the terms without which the search went on."""
        return tuple(each.term for each in self.guarded if each.dropped)

    @property
    def applied(self) -> tuple[str, ...]:
        """Return the terms that were searched for."""
        return tuple(term for term in self.requested if term not in self.dropped)

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the terms that the manual does not hold."""
        return tuple(term for term in self.requested if not self.doc_freqs.get(term))


def applied(request: FindRequest, required: Required, in_top: Sequence[bool]) -> dict[str, Any]:
    """Return `applied` as the contract lists it, except for the cache's part.

    `in_top` says of each row, in the final order, whether its text holds an applied required term: a signal that a
    fusion step has lost must not pass for a term that is not there.
    """
    top = in_top[:_TOP]
    status, failure = _effect(required, top)
    # All terms dropped by the guard is no gate that came back empty: nothing was asked of it.
    relaxed = bool(required.applied) and not required.filtered
    reason = "required_gate_empty_fallback_to_g0" if relaxed else "required_terms_dropped_by_df_guard"
    gated = bool(required.filtered and required.applied)
    return {
        "manual_id": request.manual_id,
        "requested_expand_scope": request.expand_scope,
        "expand_scope": False,
        "required_terms_source": "user",
        "required_terms_decision_reason": "provided_by_caller",
        "requested_required_terms": list(required.requested),
        "required_terms": list(required.applied),
        "required_terms_df_filtered": [each.as_json() for each in required.guarded],
        "required_terms_relaxed": relaxed,
        "required_terms_relax_reason": "zero_candidates_with_required_terms" if relaxed else None,
        "required_effect_status": status,
        "required_failure_reason": failure,
        "required_strict_candidates": required.strict,
        "required_filtered_candidates": required.filtered,
        "required_terms_match_stats": [
            {
                "term": term,
                "matched_docs": required.doc_freqs.get(term, 0),
                "matched_doc_ratio": _share(required.doc_freqs.get(term, 0), required.documents),
            }
            for term in required.requested
        ],
        "required_terms_missing": list(required.missing),
        "required_top_k": len(top),
        "required_top_hits": sum(top),
        "selected_gate": "g_req" if gated else "g0",
        "gate_selection_reason": "rrf_fusion_with_required_gate" if gated else reason,
    }


def _effect(required: Required, top: Sequence[bool]) -> tuple[str, str | None]:
    """Return `required_effect_status` and `required_failure_reason`."""
    missing = ",".join(required.missing)
    if len(required.missing) == len(required.requested):
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


def gap_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows of `manual_hits` kind gaps: one if the candidates are none, few, or nearly all of one file."""
    if not rows:
        hint = "Nothing was found; use other words, or other required_terms."
    elif len(rows) < _FEW:
        hint = f"Fewer than {_FEW} sections were found; use more general words, or other required_terms."
    elif len(rows) >= _TOP and bias([row["path"] for row in rows]) >= _ONE_SIDED:
        hint = "Nearly all hits are in one file; name the other subject, or look for other files with manual_toc."
    else:
        return []
    nothing: dict[str, Any] = dict.fromkeys(("ref", "path", "start_line", "score"))
    return [{**nothing, "reason": "gap", "signals": [], "conflict_with": [], "gap_hint": hint}]


def summary(rows: Sequence[Row], gaps: Sequence[Row], *, scanned_files: int, scanned_nodes: int) -> dict[str, Any]:
    """Return `summary`; its counts are those of the rows that `manual_hits` shows."""
    if not rows:
        status = "blocked"
    elif not gaps and len(rows) >= _READY:
        status = "ready"
    else:
        status = "needs_followup"
    return {
        "scanned_files": scanned_files,
        "scanned_nodes": scanned_nodes,
        "candidates": len(rows),
        "file_bias_ratio": bias([row["path"] for row in rows]),
        "conflict_count": 0,
        "gap_count": len(gaps),
        "integration_status": status,
    }


def bias(paths: Sequence[str]) -> float:
    """Return the share of rows, given by their files, that are of the one file with the most."""
    return _share(max(Counter(paths).values(), default=0), len(paths))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
