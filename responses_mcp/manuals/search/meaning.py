"""Ranking by words mixed with meaning, for one search over one state of the index."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from responses_mcp.manuals.embeddings.likeness import Likeness, Question, between, likeness
from responses_mcp.manuals.embeddings.mix import MOST_COMPARED, agreed, mixed
from responses_mcp.manuals.index.vectors import vectors

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.search.ranking import Key, Ranking


class Meaning:
    """Compares the candidates of a search with the question. `lacking` are those rows that have no vector.

    `connection` must show the state of the index that was searched.
    """

    def __init__(self, connection: sqlite3.Connection, question: Question, check: CancellationCheck) -> None:
        self._connection = connection
        self._question = question
        self._check = check
        self.candidates = 0
        self.lacking: list[int] = []
        self.used = False

    def rerank(self, ranking: Ranking) -> None:
        """Mix likeness into the order and the fused scores of a ranking, if enough candidates have a vector."""
        asked = self._question
        keys = {ranking.scored[key].row.id: key for key in ranking.order[:MOST_COMPARED]}
        alike: dict[Key, Likeness] = {}
        for number, data in vectors(self._connection, asked.name, asked.dimensions, keys):
            self._check()
            found = likeness(asked, data)
            if found is not None:
                alike[keys[number]] = found
        self.candidates += len(keys)
        self.lacking += [number for number, key in keys.items() if key not in alike]
        cosines = {key: each.cosine for key, each in alike.items()}
        mix = mixed(ranking.order, ranking.fused, cosines, ranking.certainty)
        if mix is None:
            return
        self._check()
        ranking.order, ranking.fused = agreed(
            *mix, alike, lambda one, other: between(alike[one], alike[other]), ranking.certainty
        )
        self.used = True
