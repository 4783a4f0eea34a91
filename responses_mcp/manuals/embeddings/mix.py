"""The mix of words and meaning: how the ranking by words and the likeness of vectors become one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from heapq import nlargest
from itertools import combinations
from operator import itemgetter
from statistics import median
from typing import Final, TypeVar

Key = TypeVar("Key", bound=Hashable)

MOST_COMPARED: Final = 400  # candidates
MEANING: Final = 0.45  # of the score; the rest is that by words
_CERTAIN: Final = 0.85  # of that is left to the words where they surely name what is sought
_AGREEING: Final = 30  # rows, the best, that agree with each other
_NEIGHBOURS: Final = 5  # of each
_AGREEMENT: Final = 0.4  # of a score, if the words are not certain
_ENOUGH: Final = 0.5  # of the candidates; with fewer vectors the ranking is that by words


def mixed(
    order: Sequence[Key], fused: Mapping[Key, float], likenesses: Mapping[Key, float], certainty: float = 0.0
) -> tuple[list[Key], dict[Key, float]] | None:
    """Return the order and scores, which stay between 0 and 1, of a ranking mixed with cosines.

    The first `MOST_COMPARED` of `order` are mixed, and the others follow them. Cosines count by where they lie between
    the least and the greatest, because some models have all of them near 1. A candidate without one counts as the
    median. The more certain the words are, from 0 to 1, the less meaning weighs. None if too few have one, or all are
    alike.
    """
    compared = order[:MOST_COMPARED]
    known = [likenesses[key] for key in compared if key in likenesses]
    least, greatest = min(known, default=0.0), max(known, default=0.0)
    if len(known) < _ENOUGH * len(compared) or least == greatest:
        return None
    usual = median(known)
    # In parts of the best by words, so that a question of which no section has much still scores low.
    top = max(fused[key] for key in compared)
    meaning = MEANING * (1 - _CERTAIN * certainty)
    scores = dict(fused)
    for key in compared:
        alike = (likenesses.get(key, usual) - least) / (greatest - least)
        scores[key] = (1 - meaning) * fused[key] + meaning * top * alike
    first = sorted(compared, key=lambda key: -scores[key])
    last = scores[first[-1]]
    rest = order[MOST_COMPARED:]
    for key in rest:
        scores[key] = min(scores[key], last)
    return [*first, *rest], scores


def agreed(
    order: Sequence[Key],
    scores: Mapping[Key, float],
    known: Collection[Key],
    likeness: Callable[[Key, Key], float],
    certainty: float = 0.0,
) -> tuple[list[Key], dict[Key, float]]:
    """Return the order and scores in which the best rows agree with those that are most like them.

    What is about the same thing is right or wrong together: a row among good ones gains, and one that has the words by
    chance loses (score regularization, after Diaz). `likeness` compares two of the `known` rows; others keep their
    scores. The more certain the words are, from 0 to 1, the less of that there is.
    """
    first, rest = order[:_AGREEING], order[_AGREEING:]
    near: dict[Key, list[tuple[float, Key]]] = {key: [] for key in first if key in known}
    for one, other in combinations(near, 2):
        alike = likeness(one, other)
        near[one].append((alike, other))
        near[other].append((alike, one))
    share = _AGREEMENT * (1 - certainty)
    found = dict(scores)
    for key, others in near.items():
        nearest = [(alike, other) for alike, other in nlargest(_NEIGHBOURS, others, key=itemgetter(0)) if alike > 0]
        if total := sum(alike for alike, _ in nearest):
            usual = sum(alike * scores[other] for alike, other in nearest) / total
            found[key] += share * (usual - scores[key])
    return [*sorted(first, key=lambda key: -found[key]), *rest], found
