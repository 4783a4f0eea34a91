"""What a find keeps: its rows field by field, and the form in which they take little memory.

Field names are those of the contract's `manual_hits`; the tests of M4.54 and M5.5 to M5.13 hold them.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NotRequired, TypedDict

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.cancellation import CancellationCheck

_SMALL: Final = ("query", "manual_id", "applied", "summary", "unscanned")
_QUICK: Final = 1  # level of compression
_BLOCK: Final = 1000  # paths


class Ref(TypedDict):
    """Where a hit is. `start_line` counts from 1; `signals` name what was found in it, such as `required_term`."""

    target: str
    manual_id: str
    path: str
    start_line: int
    json_path: None
    title: str
    signals: list[str]


class Hit(TypedDict):
    """A row of kinds `candidates` and `integrated_top`.

    `score`, from 0 to 1, decides the order; `score_lexical` is the sum that `rank_explain` lists, plus the bonus for
    required terms; `score_fused` is the score before diversity and exploration. `match_coverage` is from 0 to 1.
    """

    ref: Ref
    path: str
    start_line: int
    title: str
    score: float
    score_lexical: float
    score_fused: float
    matched_tokens: list[str]
    token_hits: dict[str, int]
    match_coverage: float
    rank_explain: list[str]
    reason: None
    conflict_with: list[str]
    gap_hint: None


class GateRun(TypedDict):
    """A row of kind `gate_runs`: one gate before the fusion, and its weight in it.

    `file_bias_ratio`, from 0 to 1, is the share of the file with the most rows.
    """

    gate: str
    required_terms: list[str]
    candidates_count: int
    file_bias_ratio: float
    exception_hits: int
    top_score: float | None
    scoring_mode: str
    cutoff_reason: str | None
    weight: float
    weight_reason: str | None
    selected: bool


class FusionRow(TypedDict):
    """A row of kind `fusion_debug`: how the hit of this rank, from 1 on, came to its score."""

    candidate_key: str
    rank: int
    score: float
    ref: Ref
    contributions: list[JsonObject]
    guaranteed_top: bool
    guaranteed_injected: bool


class Guarded(TypedDict):
    """A required term in so few or so many documents, which are sections, that it selects badly (M4.22).

    A dropped term is left out of the search. The ratio is from 0 to 1.
    """

    term: str
    doc_freq: int
    doc_freq_ratio: float
    reason: str
    dropped: bool


class Applied(TypedDict):
    """What became of the required terms (M4.16 to M4.34); the cache adds its `sem_cache_*` (M4.45)."""

    manual_id: str
    requested_expand_scope: bool | None
    expand_scope: bool
    required_terms_source: str
    required_terms_decision_reason: str
    requested_required_terms: list[str]
    required_terms: list[str]
    required_terms_df_filtered: Sequence[Guarded]
    required_terms_relaxed: bool
    required_terms_relax_reason: str | None
    required_effect_status: str
    required_failure_reason: str | None
    required_strict_candidates: int
    required_filtered_candidates: int
    required_terms_match_stats: list[JsonObject]
    required_terms_missing: list[str]
    required_top_k: int
    required_top_hits: int
    selected_gate: str
    gate_selection_reason: str


class Summary(TypedDict):
    """How far a find carries: `integration_status` is ready, needs_followup or blocked.

    `scanned_nodes` are sections; `file_bias_ratio`, from 0 to 1, is the share of the file with the most rows.
    """

    scanned_files: int
    scanned_nodes: int
    candidates: int
    file_bias_ratio: float
    conflict_count: int
    gap_count: int
    integration_status: str


Passage = tuple[str, tuple[str, int, int], int | None, int | None]
"""Headings above, a snippet with the beginning and the end of the match in it, its line and its place in the file."""


class Payload(TypedDict):
    """All that a find keeps. Words and passages of candidates are made of their `texts` when they are asked for.

    Of each these are what the index has of the row, but for its tokens, and its text with the place of it.
    """

    query: str
    manual_id: str
    applied: Applied
    summary: Summary
    candidates: list[Hit]
    texts: list[tuple[tuple[Any, ...], tuple[Any, ...]]]
    gaps: list[JsonObject]
    gate_runs: list[GateRun]
    fusion_debug: list[FusionRow]
    claim_graph: NotRequired[JsonObject]
    unscanned: NotRequired[Unscanned]


def packed(payload: Mapping[str, Any]) -> JsonObject:
    """Return a payload with its rows as bytes; to be done in a thread."""
    small = {key: payload[key] for key in _SMALL}
    large = {key: value for key, value in payload.items() if key not in small}
    # It never leaves the process, and takes a quarter of the time that JSON does.
    return {**small, "packed": zlib.compress(marshal.dumps(large), _QUICK)}


def unpacked(payload: Mapping[str, Any]) -> JsonObject:
    """Return a payload as it was before `packed`."""
    small = {key: value for key, value in payload.items() if key != "packed"}
    return {**small, **marshal.loads(zlib.decompress(payload["packed"]))}  # noqa: S302  # written above


def empty_row(reason: str, *, gap_hint: str | None = None, **fields: Any) -> JsonObject:
    """Return a row that is no hit, of kind `gaps` or `unscanned`. `fields` come first."""
    return {
        **fields,
        "start_line": None,
        "score": None,
        "reason": reason,
        "signals": [],
        "conflict_with": [],
        "gap_hint": gap_hint,
    }


class Unscanned:
    """The rows of kind `unscanned`, which may be 100,000, in slices. `reasons` are pairs of a path and a reason."""

    def __init__(self, manual_id: str, reasons: Iterable[tuple[str, str]], check: CancellationCheck) -> None:
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

    def __getitem__(self, part: slice) -> list[JsonObject]:
        begin, end, _ = part.indices(self._length)
        first = begin // _BLOCK
        pairs = self._pairs(first, -(-end // _BLOCK))
        within = islice(pairs, begin - first * _BLOCK, max(end, begin) - first * _BLOCK)
        return [empty_row(reason, manual_id=self.manual_id, path=path) for path, reason in within]

    def paths(self) -> Iterator[str]:
        """Yield the paths alone."""
        return (path for path, _ in self._pairs(0, len(self._blocks)))

    def _pairs(self, first: int, end: int) -> Iterator[tuple[str, str]]:
        for block in self._blocks[first:end]:
            texts = zlib.decompress(block).decode("utf-8", "surrogatepass").split("\0")
            yield from zip(texts[::2], texts[1::2], strict=True)
