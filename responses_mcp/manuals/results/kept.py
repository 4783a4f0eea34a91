"""What is kept of finds: traces for `manual_hits` (M5), and answers for the same question (M4.37 to M4.45)."""

from __future__ import annotations

import uuid
from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.words import normalise

if TYPE_CHECKING:
    from responses_mcp.json_types import JsonObject
    from responses_mcp.manuals.embeddings.vectors import Vector
    from responses_mcp.manuals.requests import FindRequest
    from responses_mcp.settings.model import CacheSettings

_MOST_TRACES, _MOST_ANSWERS = 100, 500

Mode = Literal["bypass", "miss", "exact", "semantic", "guard_revalidate"]
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class _Kept(OrderedDict[_Key, _Value]):
    """So many values; the one that was put first makes room. For use from one thread."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: _Key, value: _Value) -> None:
        self[key] = value
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Traces:
    """The payloads of the newest finds under the ids that their answers name."""

    def __init__(self) -> None:
        self._kept = _Kept[str, "JsonObject"](_MOST_TRACES)

    def put(self, payload: JsonObject) -> str:
        """Keep `payload` and return its trace id of 32 hexadecimal digits."""
        trace_id = uuid.uuid4().hex
        self._kept.put(trace_id, payload)
        return trace_id

    def get(self, trace_id: str) -> JsonObject:
        """Return the payload, which is shared and not to be changed; raise `ManualsError` if it is not kept."""
        if (payload := self._kept.get(trace_id)) is None:
            message = "trace_id is unknown or has expired; run manual_find again and use the trace_id that it returns."
            raise ManualsError("not_found", message)
        return payload


class Lookup(NamedTuple):
    """What the cache had: `payload` is set only when it can be answered as it is; `score` is the likeness, up to 1."""

    mode: Mode
    score: float | None = None
    latency_saved_ms: int | None = None
    payload: JsonObject | None = None

    def applied(self) -> JsonObject:
        """Return the `sem_cache_*` diagnostics."""
        return {
            "sem_cache_used": self.mode != "bypass",
            "sem_cache_hit": self.mode in ("exact", "semantic"),
            "sem_cache_mode": self.mode,
            "sem_cache_score": self.score,
            "sem_cache_latency_saved_ms": self.latency_saved_ms,
        }


class _Answer(NamedTuple):
    payload: JsonObject
    generation: int
    elapsed_ms: float
    vector: Vector | None


class FindCache:
    """Payloads of the newest finds.

    `generation` stands for the state of the manual's index: those of another one are never answered.
    """

    def __init__(self, settings: CacheSettings) -> None:
        self._settings = settings
        self._kept = _Kept[tuple[tuple[object, ...], str], _Answer](_MOST_ANSWERS)

    def bypassed(self, request: FindRequest) -> bool:
        """Tell whether `request` is neither answered from the cache nor stored."""
        wanted = self._settings.enabled if request.use_cache is None else request.use_cache
        return not wanted or request.include_claim_graph or request.only_unscanned_from_trace_id is not None

    def lookup(
        self, request: FindRequest, generation: int, *, elapsed_ms: float, vector: Vector | None = None
    ) -> Lookup:
        """Return what there is for `request`; `elapsed_ms` is the time that it has taken so far.

        The same question comes first, then the most alike one of at least `sim_threshold`. One whose summary is over
        the limit for gaps is not answered: mode `guard_revalidate`, and a new search is due.
        """
        if self.bypassed(request):
            return Lookup("bypass")
        key = _key(request)
        good = {each: kept for each, kept in self._kept.items() if kept.generation == generation}
        mode: Mode = "exact"
        score = 1.0
        if key not in good:
            mode, alike = "semantic", [(0.0, key)]
            for other, kept in good.items():
                if other[0] == key[0] and vector and kept.vector and len(kept.vector.numbers) == len(vector.numbers):
                    alike.append((kept.vector.cosine(vector), other))
            score, key = max(alike, key=itemgetter(0))
            if score < self._settings.sim_threshold or key not in good:
                return Lookup("miss")
            score = round(min(score, 1.0), 4)
        answer = good[key]
        if answer.payload["summary"]["gap_count"] > self._settings.max_summary_gap >= 0:
            return Lookup("guard_revalidate", score)
        saved = max(0, round(answer.elapsed_ms - elapsed_ms))
        applied = {
            **answer.payload["applied"],
            "requested_expand_scope": request.expand_scope,
            "requested_required_terms": list(request.required_terms),
            **Lookup(mode, score, saved).applied(),
        }
        return Lookup(mode, score, saved, {**answer.payload, "query": request.query, "applied": applied})

    def store(
        self,
        request: FindRequest,
        generation: int,
        payload: JsonObject,
        *,
        elapsed_ms: float,
        vector: Vector | None = None,
    ) -> None:
        """Keep `payload`, found in `elapsed_ms`, unless the cache is bypassed."""
        if not self.bypassed(request):
            self._kept.put(_key(request), _Answer(payload, generation, elapsed_ms, vector))


def _key(request: FindRequest) -> tuple[tuple[object, ...], str]:
    """Return all of a request that changes its answer, and the question."""
    terms = frozenset(request.required_terms)
    return (request.manual_id, request.max_candidates, request.time_ms, terms), normalise(request.query)
