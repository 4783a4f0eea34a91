"""Ranking by words mixed with meaning, for one search over one state of the index."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from responses_mcp.manuals.embeddings.likeness import Question, likeness
from responses_mcp.manuals.embeddings.mix import MOST_COMPARED, mixed
from responses_mcp.manuals.index.vectors import vectors

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.search.ranking import Ranking


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
        question = self._question
        keys = {ranking.scored[key].row.id: key for key in ranking.order[:MOST_COMPARED]}
        alike: dict[int, float] = {}
        for number, data in vectors(self._connection, question.name, question.dimensions, keys):
            self._check()
            cosine = likeness(question, data)
            if cosine is not None:
                alike[number] = cosine
        self.candidates += len(keys)
        self.lacking += [number for number in keys if number not in alike]
        by_meaning = {keys[number]: cosine for number, cosine in alike.items()}
        found = mixed(ranking.order, ranking.fused, by_meaning, ranking.certainty)
        if found is not None:
            ranking.order, ranking.fused = found
            self.used = True
