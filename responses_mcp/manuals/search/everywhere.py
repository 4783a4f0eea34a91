"""A search without required terms over one manual after the other, and one ranking of what they have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.results.decomposition import sub_queries
from responses_mcp.manuals.results.search_results import LOWEST_SCORE
from responses_mcp.manuals.search.candidates import Counts, Reader
from responses_mcp.manuals.search.query import words
from responses_mcp.manuals.search.ranking import TIME_BUDGET, Key, Search, rank
from responses_mcp.manuals.search.scoring import words_of
from responses_mcp.manuals.search.selection import spread

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.index.update import Manual
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.scoring import Row, Scored
    from responses_mcp.settings.model import LexicalSettings

_MOST_SCORED: Final = 200  # rows of a manual
_MOST_OF_A_MANUAL: Final = 60  # rows that take part in the ranking of all; more are never shown
_ALL_ROWS: Final = 50_000  # looked at to find those below a path
_FILES: Final = "SELECT id, path FROM file WHERE manual = ?"
_SECTIONS: Final = "SELECT id FROM section WHERE file IN ({})"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A section in the ranking of all manuals. `words` are those of the question as it has them, with their number."""

    manual_id: str
    path: str
    line: int
    title: str
    words: Mapping[str, int]
    score: float


class Below(Reader):
    """What a search reads of the files at or below a path of a manual. Words are as rare as in the whole manual."""

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts, prefix: str) -> None:
        super().__init__(connection, manual, counts)
        files = connection.execute(_FILES, (manual.number,))
        marks = ",".join(str(number) for number, path in files if lies_below(path, prefix))
        self._below = {number for (number,) in connection.execute(_SECTIONS.format(marks))}

    def best(self, match: str, most: int, *, literal: str = "") -> list[int]:
        """Return the ids of the rows below the path that fit best."""
        found = super().best(match, _ALL_ROWS, literal=literal)
        return [each for each in found if each in self._below][:most]

    def rows(self, ids: Iterable[int]) -> list[Row]:
        """Return those of the rows that lie below the path."""
        return super().rows([each for each in ids if each in self._below])


class Everywhere:
    """The rankings of manuals, added one by one, and the one of all of them."""

    def __init__(self, query: str, lexical: LexicalSettings, check: CancellationCheck) -> None:
        self._query = query
        self._words = words(query)
        self._parts = sub_queries(query)
        self._lexical = lexical
        self._check = check
        self._found: dict[Key, tuple[str, Scored, float]] = {}

    def add(self, manual_id: str, reader: Reader, meaning: Meaning | None = None) -> bool:
        """Rank what a manual has; return whether there was time for all of it. Raises OutOfTime if for nothing."""
        ranking = rank(self._query, self._parts, Search(reader, (), self._lexical, _MOST_SCORED, self._check))
        if meaning is not None and ranking.order:
            meaning.rerank(ranking)
        # Here and not over all manuals, so that no manual changes the scores of another.
        for key, score in spread(ranking.order[:_MOST_OF_A_MANUAL], ranking.fused, _MOST_OF_A_MANUAL):
            if score >= LOWEST_SCORE:
                # A manual's id has no slash, so no two manuals have the same path.
                self._found[f"{manual_id}/{key[0]}", key[1]] = (manual_id, ranking.scored[key], score)
        return ranking.cutoff != TIME_BUDGET

    def best(self, most: int) -> list[Ranked]:
        """Return the sections that fit best of all; further ones of a file sink a little, as in a find."""
        order = sorted(self._found, key=lambda key: (-self._found[key][2], key))
        return [self._ranked(key) for key in order[:most]]

    def _ranked(self, key: Key) -> Ranked:
        manual_id, scored, score = self._found[key]
        path = key[0][len(manual_id) + 1 :]
        title = scored.row.title or path.rpartition("/")[2]
        return Ranked(manual_id, path, key[1], title, words_of(scored, self._words), score)
