"""Ranking by words mixed with meaning: the candidates of a search compared with its question."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Final

from responses_mcp.errors import program
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.vectors import unpacked
from responses_mcp.manuals.index.pieces import pieces_of

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.embeddings.vectors import Vector, Vectors
    from responses_mcp.manuals.search.ranking import Key, Ranking

MOST_COMPARED: Final = 400  # candidates
_MEANING: Final = 0.45  # of the score; the rest is that by words
_CERTAIN: Final = 0.85  # of that is left to the words where they surely name what is sought
_ENOUGH: Final = 0.5  # of the candidates; with fewer vectors the ranking is that by words


class Meaning:
    """Compares the candidates of one search with its question.

    `used` tells whether meaning had a part in the order, and `failure` why none or not all candidates were compared.
    """

    def __init__(self, question: Vector, vectors: Vectors, check: CancellationCheck) -> None:
        self._question = question
        self._vectors = vectors
        self._check = check
        self._texts: Callable[[Iterable[int]], dict[int, list[str]]] = lambda _: {}
        self._lacking = 0
        self.used = False
        self.failure: str | None = None

    def look_into(self, connection: sqlite3.Connection, manual: int) -> None:
        """Compare rows of a manual from now on; `connection` shows the state of the index that is searched."""
        self._texts = partial(pieces_of, connection, manual)

    def rerank(self, ranking: Ranking) -> None:
        """Mix likeness into the order and the fused scores of a ranking, if enough candidates have a vector."""
        keys = {ranking.scored[key].row.id: key for key in ranking.order[:MOST_COMPARED]}
        texts = self._texts(keys)
        every = (text for some in texts.values() for text in some)
        try:
            found = self._vectors.of(every, self._check, len(self._question.numbers))
        except EmbeddingFailed as error:
            self.failure = str(error)
            return
        cosines: dict[Key, float] = {}
        for number, some in texts.items():
            self._check()
            if all(text in found for text in some):
                cosines[keys[number]] = max(self._question.cosine(unpacked(found[text])) for text in some)
        self._lacking += len(keys) - len(cosines)
        if self._lacking:
            have = "candidate has" if self._lacking == 1 else "candidates have"
            self.failure = f"{self._lacking:,} {have} no vector yet; run '{program()} manuals index --embed'."
        self.used = mix(ranking, cosines) or self.used


def mix(ranking: Ranking, cosines: dict[Key, float]) -> bool:
    """Mix cosines into a ranking, and tell whether that was done: too few may have one, or all be alike.

    They count by where they lie between the least and the greatest, because some models have all of them near 1, and in
    parts of the best score by words, so that a question of which no section has much still scores low. A candidate
    without one counts as the median. The more certain the words are, the less meaning weighs. What was not compared
    follows what was. Scores stay between 0 and 1.
    """
    compared, rest = ranking.order[:MOST_COMPARED], ranking.order[MOST_COMPARED:]
    least, greatest = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    if len(cosines) < _ENOUGH * len(compared) or least == greatest:
        return False
    usual = median(cosines.values())
    top = max(ranking.fused[key] for key in compared)
    meaning = _MEANING * (1 - _CERTAIN * ranking.certainty)
    for key in compared:
        alike = (cosines.get(key, usual) - least) / (greatest - least)
        ranking.fused[key] = (1 - meaning) * ranking.fused[key] + meaning * top * alike
    compared.sort(key=lambda key: -ranking.fused[key])
    for key in rest:
        ranking.fused[key] = min(ranking.fused[key], ranking.fused[compared[-1]])
    ranking.order = [*compared, *rest]
    return True
