"""Answers of earlier finds, given again while the manual is the same (M4.37 to M4.45)."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter, mul
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from responses_mcp.manuals.words import normalise

if TYPE_CHECKING:
    from responses_mcp.json_types import JsonObject
    from responses_mcp.manuals.requests import FindRequest
    from responses_mcp.settings.model import CacheSettings

log = logging.getLogger(__name__)

_MOST_KEPT: Final = 500  # answers
_KEPT_FOR: Final = 1800.0  # seconds

Mode = Literal["bypass", "miss", "exact", "semantic", "guard_revalidate"]
Vector = tuple[float, ...]


class Embedding(Protocol):
    """Turns texts into vectors, so that a question asked in other words can be answered from the cache.

    None is built in; a host brings its own.
    """

    def embed(self, text: str, /) -> Sequence[float]:
        """Return the vector of `text`. Called in a worker thread; an exception means no vector."""
        ...


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


@dataclass(frozen=True, slots=True)
class _Entry:
    payload: JsonObject
    generation: int
    created: float
    elapsed_ms: float
    vector: Vector | None


_Key = tuple[tuple[object, ...], str]  # all of a request that changes its answer, and the question


class FindCache:
    """Payloads of finds, the most recently used ones, each for a fixed time after it was stored.

    The clock `now` is in seconds. `generation` stands for the state of the manual's index: entries of another one are
    never answered. For use from one thread, except `vector`.
    """

    def __init__(self, settings: CacheSettings, now: Callable[[], float], embedding: Embedding | None = None) -> None:
        self._settings = settings
        self._now = now
        self._embedding = embedding
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()  # the least recently used first

    def bypassed(self, request: FindRequest) -> bool:
        """Tell whether `request` is neither answered from the cache nor stored."""
        wanted = self._settings.enabled if request.use_cache is None else request.use_cache
        return not wanted or request.include_claim_graph or request.only_unscanned_from_trace_id is not None

    def vector(self, request: FindRequest) -> Vector | None:
        """Return the question as a vector of length 1, or None if there is no embedding or it fails. May be slow."""
        if self._embedding is None or self.bypassed(request):
            return None
        try:
            numbers = [float(each) for each in self._embedding.embed(normalise(request.query))]
            length = math.hypot(*numbers)
        except Exception:
            log.warning("manuals: the embedding of the cache failed; searching instead", exc_info=True)
            return None
        return tuple(each / length for each in numbers) if length and math.isfinite(length) else None

    def may_answer(self, request: FindRequest) -> bool:
        """Tell whether `lookup` may find something, in some state of the manual; if not, the state does not matter."""
        return self._embedding is not None or _key(request) in self._entries

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
        good = {each: entry for each, entry in self._entries.items() if self._is_good(entry, generation)}
        mode: Mode = "exact"
        score = 1.0
        if key not in good:
            mode, alike = "semantic", [(0.0, key)]
            for other, entry in good.items():
                if other[0] == key[0] and vector and entry.vector and len(entry.vector) == len(vector):
                    alike.append((sum(map(mul, entry.vector, vector)), other))
            score, key = max(alike, key=itemgetter(0))
            if score < self._settings.sim_threshold or key not in good:
                return Lookup("miss")
        entry = self._entries[key]
        if entry.payload["summary"]["gap_count"] > self._settings.max_summary_gap >= 0:
            return Lookup("guard_revalidate", round(min(score, 1.0), 4))
        self._entries.move_to_end(key)
        saved, score = max(0, round(entry.elapsed_ms - elapsed_ms)), round(min(score, 1.0), 4)
        applied = {
            **entry.payload["applied"],
            "requested_expand_scope": request.expand_scope,
            "requested_required_terms": list(request.required_terms),
            **Lookup(mode, score, saved).applied(),
        }
        return Lookup(mode, score, saved, {**entry.payload, "query": request.query, "applied": applied})

    def store(
        self,
        request: FindRequest,
        generation: int,
        payload: JsonObject,
        *,
        elapsed_ms: float,
        complete: bool,
        vector: Vector | None = None,
    ) -> None:
        """Keep `payload`, found in `elapsed_ms`, unless the search was not `complete` or the cache is bypassed."""
        if self.bypassed(request) or not complete:
            return
        # Use reorders the entries, so what is of no use any more may be anywhere. There are few hundred.
        for key, entry in list(self._entries.items()):
            if not self._is_good(entry, generation if key[0][0] == request.manual_id else entry.generation):
                del self._entries[key]
        self._entries[_key(request)] = _Entry(payload, generation, self._now(), elapsed_ms, vector)
        self._entries.move_to_end(_key(request))
        if len(self._entries) > _MOST_KEPT:
            self._entries.popitem(last=False)

    def _is_good(self, entry: _Entry, generation: int) -> bool:
        return entry.generation == generation and self._now() < entry.created + _KEPT_FOR


def _key(request: FindRequest) -> _Key:
    terms = frozenset(request.required_terms)
    return (request.manual_id, request.max_candidates, request.time_ms, terms), normalise(request.query)
