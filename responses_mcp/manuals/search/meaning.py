"""Ranking by words mixed with meaning: the candidates of a search compared with its question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from responses_mcp.errors import program
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.vectors import unpacked

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.embeddings.vectors import Vector, Vectors
    from responses_mcp.manuals.search.ranking import Key, Ranking
    from responses_mcp.manuals.search.reader import Reader

MOST_COMPARED: Final = 400  # candidates
_MEANING: Final = 0.45  # of the score; the rest is that by words
_CERTAIN: Final = 0.85  # of that is left to the words where they surely name what is sought


class Meaning:
    """Compares the candidates of one search with its question.

    `used` tells whether meaning had a part in the order, and `failure` why none or not all candidates were compared.
    """

    def __init__(self, question: Vector, vectors: Vectors, check: CancellationCheck) -> None:
        self._question = question
        self._vectors = vectors
        self._check = check
        self.used = False
        self.failure: str | None = None

    def rerank(self, ranking: Ranking, readers: Sequence[Reader]) -> bool:
        """Mix likeness into the order and the fused scores of a ranking; return whether that was done."""
        keys = {ranking.scored[key].row.id: key for key in ranking.order[:MOST_COMPARED]}
        texts: dict[int, list[str]] = {}
        for reader in readers:
            texts |= reader.pieces(number for number, key in keys.items() if key[0] == reader.name)
        every = (text for some in texts.values() for text in some)
        try:
            found = self._vectors.of(every, self._check, len(self._question.numbers))
        except EmbeddingFailed as error:
            self.failure = str(error)
            return False
        cosines: dict[Key, float] = {}
        for number, some in texts.items():
            self._check()
            if all(text in found for text in some):
                cosines[keys[number]] = max(self._question.cosine(unpacked(found[text])) for text in some)
        if len(cosines) < len(keys):
            self.failure = f"Some candidates have no vector yet; run '{program()} manuals index --embed'."
        self.used = mix(ranking, cosines)
        return self.used


def mix(ranking: Ranking, cosines: Mapping[Key, float]) -> bool:
    """Mix cosines into a ranking, and tell whether that was done: they may be all alike.

    They count by where they lie between the least and the greatest, because some models have all of them near 1, and in
    parts of the best score by words, so that a question of which no section has much still scores low. The more certain
    the words are, the less meaning weighs. A candidate without one keeps its score; what was not compared follows what
    was. Scores stay between 0 and 1.
    """
    compared, rest = ranking.order[:MOST_COMPARED], ranking.order[MOST_COMPARED:]
    least, greatest = min(cosines.values(), default=0.0), max(cosines.values(), default=0.0)
    if least == greatest:
        return False
    top = max(ranking.fused[key] for key in compared)
    meaning = _MEANING * (1 - _CERTAIN * ranking.certainty)
    for key, cosine in cosines.items():
        alike = (cosine - least) / (greatest - least)
        ranking.fused[key] = (1 - meaning) * ranking.fused[key] + meaning * top * alike
    compared.sort(key=lambda key: -ranking.fused[key])
    for key in rest:
        ranking.fused[key] = min(ranking.fused[key], ranking.fused[compared[-1]])
    ranking.order = [*compared, *rest]
    return True
