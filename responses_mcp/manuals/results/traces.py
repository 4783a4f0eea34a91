"""The payloads of finds under the ids that their answers name, and the pages of `manual_hits` (M5)."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals import KINDS
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.requests import HitsRequest
from responses_mcp.manuals.results.search_results import place, reader

if TYPE_CHECKING:
    from responses_mcp.manuals.results.find_payload import Passage

_MOST_KEPT: Final = 100  # payloads
_KEPT_FOR: Final = 1800.0  # seconds
_MEASURES: Final = (
    "score",
    "score_lexical",
    "score_fused",
    "matched_tokens",
    "token_hits",
    "match_coverage",
    "rank_explain",
)


class Traces:
    """The newest payloads, each for a fixed time after it was put.

    The clock `now` is in seconds. Reading a payload does not prolong its life. For use from one thread.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: OrderedDict[str, tuple[float, JsonObject]] = OrderedDict()  # the oldest first

    def put(self, payload: JsonObject) -> str:
        """Keep `payload` and return its trace id of 32 hexadecimal digits."""
        self._forget()
        trace_id = uuid.uuid4().hex
        self._kept[trace_id] = (self._now(), payload)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return trace_id

    def get(self, trace_id: str) -> JsonObject:
        """Return the payload, which is shared and not to be changed; raise `ManualsError` if it is not kept."""
        self._forget()
        try:
            return self._kept[trace_id][1]
        except KeyError:
            message = "trace_id is unknown or has expired; run manual_find again and use the trace_id that it returns."
            raise ManualsError("not_found", message) from None

    def _forget(self) -> None:
        oldest_living = self._now() - _KEPT_FOR
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_living:
            self._kept.popitem(last=False)


def page(
    payload: JsonObject, request: HitsRequest, *, compact: bool, candidates: Sequence[JsonObject] = ()
) -> JsonObject:
    """Return one page of the rows of a kind; past the last row it is empty. `candidates` are those of the page.

    `compact` is the public form, in which candidates and integrated_top say no more than where, how good and why.
    Raises `ManualsError` for a kind that does not exist.
    """
    rows = _rows(payload, request.kind)
    shown = candidates or rows[request.offset : request.offset + request.limit]
    shared: JsonObject = {}
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


def _rows(payload: JsonObject, kind: str) -> Sequence[Any]:
    if kind not in KINDS:
        raise ManualsError("invalid_parameter", f"kind must be one of {', '.join(KINDS)}.", field="kind")
    if kind == "integrated_top":
        kind = "candidates"  # the same rows, shown in full
    source = payload.get("claim_graph", {}) if kind in ("claims", "evidences", "edges") else payload
    rows: Sequence[Any] = source.get(kind, ())  # there are never rows of kind conflicts
    return rows


def _candidate(row: JsonObject, *, compact: bool) -> JsonObject:
    ref = {key: row["ref"][key] for key in ("path", "start_line")}
    if compact:
        return {"ref": ref, "score": row["score"], "matched_tokens": row["matched_tokens"]}
    return {"ref": {**ref, "signals": row["ref"]["signals"]}, **{key: row[key] for key in _MEASURES}}


def _integrated(row: JsonObject) -> JsonObject:
    ref = {key: row["ref"][key] for key in ("manual_id", "path", "start_line")}
    return {
        "ref": ref,
        "title": shown_title(row["title"]),
        "score": row["score"],
        "matched_tokens": row["matched_tokens"],
    }


def placed(shown: JsonObject, found: Sequence[Passage]) -> JsonObject:
    """Return a compact page with the places of the matches; the fields of its rows are fixed, so they go into `ref`.

    Rows of integrated_top have the text around the match, too.
    """
    items: list[JsonObject] = []
    for row, (above, snippet, match_line, char_offset) in zip(shown["items"], found, strict=True):
        ref: JsonObject = {**reader(row["ref"]["path"]), **row["ref"]}
        if shown["kind"] == "integrated_top":
            ref.update(above=above, snippet=snippet[0])
        ref.update(place(match_line, char_offset))
        items.append({**row, "ref": ref})
    return {**shown, "items": items}
