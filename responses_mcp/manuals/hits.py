"""Pages of what a find found: the views of `manual_hits` (contract, manual_hits)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import HitsRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEASURES: Final = (
    "score",
    "score_lexical",
    "score_fused",
    "matched_tokens",
    "token_hits",
    "match_coverage",
    "rank_explain",
)


def page(payload: dict[str, Any], request: HitsRequest, *, compact: bool) -> dict[str, Any]:
    """Return one page of the rows of a kind; past the last row it is empty.

    `compact` is the public form, in which candidates and integrated_top say no more than where, how good and why.
    Raises `ManualsError` for a kind that does not exist.
    """
    rows = _rows(payload, request.kind)
    shown = rows[request.offset : request.offset + request.limit]
    shared: dict[str, Any] = {}
    if request.kind == "candidates":
        if rows:
            shared["manual_id"] = payload["manual_id"]  # a find stays in its manual
        shown = [_candidate(row, compact=compact) for row in shown]
    elif request.kind == "integrated_top" and compact:
        shown = [_integrated(row) for row in shown]
    return {
        "trace_id": request.trace_id,
        **shared,
        "kind": request.kind,
        "offset": request.offset,
        "limit": request.limit,
        "total": len(rows),
        "items": list(shown),
    }


def _rows(payload: dict[str, Any], kind: str) -> Sequence[Any]:
    if kind not in KINDS:
        raise ManualsError("invalid_parameter", f"kind must be one of {', '.join(KINDS)}.", field="kind")
    if kind == "integrated_top":
        kind = "candidates"  # the same rows, shown in full
    source = (payload.get("claim_graph") or {}) if kind in ("claims", "evidences", "edges") else payload
    rows: Sequence[Any] = source.get(kind, ())  # a find knows of no conflicts
    return rows


def _candidate(row: dict[str, Any], *, compact: bool) -> dict[str, Any]:
    ref = {key: row["ref"][key] for key in ("path", "start_line")}
    if compact:
        return {"ref": ref, "score": row["score"], "matched_tokens": row["matched_tokens"]}
    return {"ref": {**ref, "signals": row["ref"]["signals"]}, **{key: row[key] for key in _MEASURES}}


def _integrated(row: dict[str, Any]) -> dict[str, Any]:
    ref = {key: row["ref"][key] for key in ("manual_id", "path", "start_line")}
    return {"ref": ref, "title": row["title"], "score": row["score"], "matched_tokens": row["matched_tokens"]}
