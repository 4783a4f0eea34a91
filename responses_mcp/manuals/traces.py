"""What finds found: kept small, for a while, under the ids that their answers name, and shown page by page.

Rows are kept as bytes, which become rows again when somebody asks for them. Pages are the views of `manual_hits`
(contract, manual_hits).
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.checks import Check
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import HitsRequest

_SMALL: Final = ("query", "manual_id", "applied", "summary", "unscanned")
_QUICK: Final = 1  # level of compression
_BLOCK: Final = 1000  # paths
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

    At most `max_keep` are kept, for `ttl_sec` seconds of the clock `now`; reading one does not prolong its life.
    For use from one thread.
    """

    def __init__(self, max_keep: int, ttl_sec: float, now: Callable[[], float]) -> None:
        self._max_keep = max_keep
        self._ttl = ttl_sec
        self._now = now
        self._kept: OrderedDict[str, tuple[float, dict[str, Any]]] = OrderedDict()  # the oldest first

    def put(self, payload: dict[str, Any]) -> str:
        """Keep `payload` and return its trace id of 32 hexadecimal digits."""
        self._forget()
        trace_id = uuid.uuid4().hex
        self._kept[trace_id] = (self._now(), payload)
        while len(self._kept) > self._max_keep:
            self._kept.popitem(last=False)
        return trace_id

    def get(self, trace_id: str) -> dict[str, Any]:
        """Return the payload, which is shared and not to be changed; raise `ManualsError` if it is not kept."""
        self._forget()
        try:
            return self._kept[trace_id][1]
        except KeyError:
            message = "trace_id is unknown or has expired; run manual_find again and use the trace_id that it returns."
            raise ManualsError("not_found", message) from None

    def _forget(self) -> None:
        oldest_living = self._now() - self._ttl
        while self._kept and next(iter(self._kept.values()))[0] <= oldest_living:
            self._kept.popitem(last=False)


def packed(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload with its rows as bytes; to be done in a thread."""
    small = {key: payload[key] for key in _SMALL}
    large = {key: value for key, value in payload.items() if key not in small}
    text = json.dumps(large, ensure_ascii=False, separators=(",", ":"))
    return {**small, "packed": zlib.compress(text.encode("utf-8", "surrogatepass"), _QUICK)}


def unpacked(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return a payload as it was before `packed`."""
    small = {key: value for key, value in payload.items() if key != "packed"}
    return {**small, **json.loads(zlib.decompress(payload["packed"]).decode("utf-8", "surrogatepass"))}


class Unscanned:
    """The rows of `manual_hits` kind unscanned, which may be 100,000, in slices; `reasons` maps paths to reasons."""

    def __init__(self, manual_id: str, reasons: Iterable[tuple[str, str]], check: Check) -> None:
        self.manual_id = manual_id
        self._length = 0
        self._blocks: list[bytes] = []
        rest = iter(reasons)
        while block := list(islice(rest, _BLOCK)):
            check()
            text = "\0".join(chain.from_iterable(block))  # which no path holds
            self._blocks.append(zlib.compress(text.encode("utf-8", "surrogatepass"), _QUICK))
            self._length += len(block)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> list[dict[str, Any]]:
        return list(self._rows(range(*part.indices(self._length))))

    def paths(self) -> Iterator[str]:
        """Yield the paths alone."""
        for block in self._blocks:
            yield from _texts(block)[::2]

    def _rows(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        loaded, texts = -1, list[str]()
        for place in places:
            number, within = divmod(place, _BLOCK)
            if number != loaded:
                loaded, texts = number, _texts(self._blocks[number])
            path, reason = texts[2 * within : 2 * within + 2]
            yield {
                "manual_id": self.manual_id,
                "path": path,
                "start_line": None,
                "score": None,
                "reason": reason,
                "signals": [],
                "conflict_with": [],
                "gap_hint": None,
            }


def _texts(block: bytes) -> list[str]:
    return zlib.decompress(block).decode("utf-8", "surrogatepass").split("\0")


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
