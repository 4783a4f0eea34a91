"""Choose the rows to show from a ranking: diversity (M4.52), cut-off (M4.51), exploration (M4.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final, NamedTuple

from responses_mcp.manuals.search.ranking import Key, Ranking
from responses_mcp.settings.model import FindSettings

MOST_RESULTS: Final = 50
_LEAST_KEPT: Final = 8  # rows that the cut-off leaves alone, and that exploration never takes the place of
_LOW_SHARE: Final = 0.25  # of the top score
_LOW_COVERAGE: Final = 0.50
_CROWDED: Final = 0.05  # of the top score, for each row that the file has already


class Selection(NamedTuple):
    """The rows to show with their scores, which never rise, and what ended the list, if anything did.

    `injected` have a place only as the best row of a gate, or of a file that holds a required term as it is written.
    """

    rows: list[tuple[Key, float]]
    cutoff: str | None
    injected: list[Key]


def select(ranking: Ranking, max_candidates: int, find: FindSettings) -> Selection:
    """Choose at most `max_candidates` rows.

    Each gate's best row has a place, whatever the fusion thinks of it, and so has a row of each file that holds a
    required term as it is written, if there are places for all of them. After that come rows to explore, in a fixed
    share of the places: they keep a wrong ranking from hiding what the index likes.
    """
    most = min(max_candidates, MOST_RESULTS)
    diverse = spread(ranking.order, ranking.fused, most)
    kept = cut_off(diverse, {key: scored.coverage for key, scored in ranking.scored.items()})
    cutoff = "candidate_cap" if len(ranking.order) > most else None
    if kept < len(diverse):
        cutoff = "dynamic_cutoff"
    explored = _explored(diverse[:kept], ranking, find, most)
    places = most - len(explored)
    shown = diverse[: min(kept, places)]
    there = {key for key, _ in shown}
    injected = [key for key in ranking.best_of_gates if key not in there]
    taken = {path for path, _ in (*there, *injected, *explored)}
    if len(ranking.holding) <= most:
        injected += [key for key in ranking.holding if key[0] not in taken]
    if injected:
        sole = _first_of_files(shown, {path for path, _ in ranking.holding})
        by_merit = min(len(shown), max(1, places // 2, places - len(injected)))
        shown = _without_last(shown, len(shown) - by_merit, sole)
        if len(injected) > places - by_merit:
            injected, cutoff = injected[: places - by_merit], "candidate_cap"
    shown += [(key, ranking.fused[key]) for key in injected]
    for key in explored:
        ranking.scored[key].signals.append("exploration")
        shown.append((key, ranking.fused[key] * find.exploration_score_scale))
    keys, scores = [key for key, _ in shown], accumulate((max(score, 0.0) for _, score in shown), min)
    return Selection(list(zip(keys, scores, strict=True)), cutoff, injected)


def _explored(shown: Sequence[tuple[Key, float]], ranking: Ranking, find: FindSettings, most: int) -> list[Key]:
    """Return the rows to explore: what the index likes best of the rest."""
    if not find.exploration_enabled or not shown:
        return []
    quota = max(find.exploration_min_candidates, math.ceil(find.exploration_ratio * len(shown)))
    room = min(quota, max(most - _LEAST_KEPT, 0))
    there = {key for key, _ in shown[: most - room]}.union(ranking.best_of_gates)
    left_out = [key for key in dict.fromkeys([*ranking.by_words, *ranking.order]) if key not in there]
    return sorted(left_out[:room], key=lambda key: -ranking.fused[key])


def _first_of_files(rows: Sequence[tuple[Key, float]], paths: AbstractSet[str]) -> set[Key]:
    first = dict[str, Key]()
    for key, _ in rows:
        if key[0] in paths:
            first.setdefault(key[0], key)
    return set(first.values())


def _without_last(rows: Sequence[tuple[Key, float]], many: int, sole: AbstractSet[Key]) -> list[tuple[Key, float]]:
    """Return rows without the last `many`. The first row stays, and the `sole` rows of files if others can go."""
    going: set[Key] = set()
    for key, _ in [*(each for each in rows[:_LEAST_KEPT:-1] if each[0] not in sole), *rows[:0:-1]]:
        if len(going) >= many:
            break
        going.add(key)
    return [each for each in rows if each[0] not in going]


def spread(ranking: Sequence[Key], scores: Mapping[Key, float], most: int) -> list[tuple[Key, float]]:
    """Return the first `most` keys with scores, such that no file crowds out others: each row dampens its file's next.

    The scores that are returned never rise, and are from 0 to 1.
    """
    step = _CROWDED * max((scores[key] for key in ranking), default=0.0)
    taken: Counter[str] = Counter()
    queue = list(ranking)
    chosen: list[tuple[Key, float]] = []
    while queue and len(chosen) < most:
        # The queue is sorted and a row only sinks, so the best is never far from the front.
        best_at, best = 0, -math.inf
        for at, key in enumerate(queue):
            if scores[key] <= best:
                break
            score = scores[key] - step * taken[key[0]]
            if score > best:
                best_at, best = at, score
        key = queue.pop(best_at)
        taken[key[0]] += 1
        chosen.append((key, min(max(best, 0.0), 1.0)))  # weights that were set high go beyond
    return chosen


def cut_off(ranking: Sequence[tuple[Key, float]], coverage: Mapping[Key, float]) -> int:
    """Return how many rows are worth showing: those before the first that is weak in score and in coverage."""
    for at, (key, score) in enumerate(ranking):
        if at >= _LEAST_KEPT and score < _LOW_SHARE * ranking[0][1] and coverage[key] < _LOW_COVERAGE:
            return at
    return len(ranking)
