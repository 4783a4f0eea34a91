"""Putting rankings together, and making a result of them: fusion, diversity, exploration, cut-off (contract 4).

A key stands for what is ranked; a ranking is a sequence of keys, best first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)

RRF_K: Final = 60
_GATE_WEIGHT_BOUNDS: Final = (0.35, 1.35)
_LEAST_KEPT: Final = 8  # rows that the cut-off leaves alone
_LOW_SHARE: Final = 0.25  # of the top score
_LOW_COVERAGE: Final = 0.50
_CROWDED: Final = 0.05  # of the top score, for each row that the file has already


def reciprocal_ranks(rankings: Sequence[tuple[Sequence[K], float]], k: int = RRF_K) -> dict[K, float]:
    """Return for each key the sum of weight / (k + rank) over the rankings that have it."""
    sums: dict[K, float] = {}
    for ranking, weight in rankings:
        for rank, key in enumerate(ranking, 1):
            sums[key] = sums.get(key, 0.0) + weight / (k + rank)
    return sums


def blended(base: Mapping[K, float], ranks: Mapping[K, float], base_weight: float) -> dict[K, float]:
    """Mix scores with fused ranks, each in parts of its greatest, so that the result is between 0 and 1."""
    most = max(base.values(), default=0.0) or 1.0
    top = max(ranks.values(), default=0.0) or 1.0
    return {
        key: base_weight * max(base.get(key, 0.0), 0.0) / most + (1 - base_weight) * rank / top
        for key, rank in ranks.items()
    }


def required_gate_weight(plain: Sequence[K], required: Sequence[K]) -> tuple[float, str]:
    """Return the weight of the ranking with required terms beside the one without, and the reason."""
    if not plain:
        return 1.10, "g0_empty"
    weight = 1.0
    reasons: list[str] = []
    ratio = len(required) / len(plain)
    if ratio < 0.20:
        weight -= 0.25
        reasons.append("few_candidates")
    elif ratio >= 0.75:
        weight += 0.15
        reasons.append("many_candidates")
    top, other = set(plain[:10]), set(required[:10])
    overlap = len(top & other) / len(other) if other else 0.75
    if overlap >= 0.9:
        weight -= 0.20
        reasons.append("same_top")
    elif overlap <= 0.5:
        weight += 0.10
        reasons.append("new_top")
    low, high = _GATE_WEIGHT_BOUNDS
    return min(max(weight, low), high), "+".join(reasons) or "default"


def spread(
    ranking: Sequence[K], scores: Mapping[K, float], path_of: Mapping[K, str], most: int | None = None
) -> list[tuple[K, float]]:
    """Return the first `most` keys with scores, such that no file crowds out others: each row dampens its file's next.

    The scores that are returned never rise.
    """
    step = _CROWDED * max((scores[key] for key in ranking), default=0.0)
    taken: Counter[str] = Counter()
    queue = list(ranking)
    chosen: list[tuple[K, float]] = []
    while queue and (most is None or len(chosen) < most):
        # The queue is sorted and a row only sinks, so the best is never far from the front.
        best_at, best = 0, -math.inf
        for at, key in enumerate(queue):
            if scores[key] <= best:
                break
            score = scores[key] - step * taken[path_of[key]]
            if score > best:
                best_at, best = at, score
        key = queue.pop(best_at)
        taken[path_of[key]] += 1
        chosen.append((key, best))
    return chosen


def cut_off(ranking: Sequence[tuple[K, float]], coverage: Mapping[K, float]) -> int:
    """Return how many rows are worth showing: those before the first that is weak in score and in coverage."""
    for at, (key, score) in enumerate(ranking):
        if at >= _LEAST_KEPT and score < _LOW_SHARE * ranking[0][1] and coverage[key] < _LOW_COVERAGE:
            return at
    return len(ranking)
