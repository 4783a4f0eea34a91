"""Which sections are worth scoring: asked of the index such that common words cost no more than rare ones."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Final

from responses_mcp.manuals.index import Manual
from responses_mcp.manuals.query import RequiredTerm, Term, phrase
from responses_mcp.manuals.scoring import Row

POSTINGS: Final = 6_000  # entries of the index that the words of one query may go through together
_MOST_COUNTED: Final = 50_000
_ANY_WORD, _ALL_WORDS, _WITH_REQUIRED, _ALL_REQUIRED = 120, 80, 80, 40  # rows taken of each way of asking
_MOST_REMEMBERED: Final = 20_000  # counts
EVERY: Final = 2**62
"""A count without a limit."""
Counts = OrderedDict[tuple[str, int, str], int]
"""How many sections have a word, remembered for one state of a manual."""
_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM {0}{1} WHERE {0} MATCH :match LIMIT :most)"
# Rows that fit alike come in the order in which they were indexed: the same each time.
_BEST: Final = (
    "SELECT {0}.rowid FROM {0}{1} WHERE {0} MATCH :match ORDER BY bm25({0}, 4.0, 1.5, 1.0), {0}.rowid LIMIT :most"
)
_HOLDS: Final = "(instr(section.body, :literal) OR instr(lower(section.title), :literal))"
_JOINED: Final = " CROSS JOIN section ON section.id = {0}.rowid AND " + _HOLDS
_HOLDING: Final = (
    f"SELECT section.id FROM section JOIN file ON file.id = section.file WHERE file.manual = :manual AND {_HOLDS} "  # noqa: S608
    "ORDER BY section.id LIMIT :most"
)
_ROWS: Final = (
    "SELECT section.id, file.path, section.line, section.title, section.crumbs, section.body "
    "FROM section JOIN file ON file.id = section.file WHERE section.id IN ({})"
)


class Reader:
    """What a find reads of one manual. `connection` shows one state of the index for as long as it is used."""

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts) -> None:
        self._connection = connection
        self._table = f"words_{manual.number}"
        self._counts = counts
        self.manual = manual

    @property
    def average(self) -> float:
        """Return the average length of a section's text, in characters."""
        return self.manual.characters / max(self.manual.sections, 1)

    def having(self, match: str, most: int = _MOST_COUNTED, *, literal: str = "") -> int:
        """Return how many sections `match` finds, of those that hold `literal`; counting stops at `most`.

        Without a `match` all sections are looked at, which takes a while.
        """
        if not (match or literal):
            return 0
        key = (match, most, literal)
        count = self._counts.get(key)
        if count is None:
            count = int(self._asked(_COUNT, match, most, literal)[0][0]) if match else len(self._holding(most, literal))
            while len(self._counts) >= _MOST_REMEMBERED:
                self._counts.popitem(last=False)
            self._counts[key] = count
        return count

    def best(self, match: str, most: int, *, literal: str = "") -> list[int]:
        """Return the ids of the rows that fit best; without a `match` the first that hold `literal`."""
        found = self._asked(_BEST, match, most, literal) if match else self._holding(most, literal)
        return [row[0] for row in found]

    def _asked(self, sql: str, match: str, most: int, literal: str) -> list[tuple[int]]:
        joined = _JOINED.format(self._table) if literal else ""
        given = {"match": match, "most": most, "literal": literal}
        return self._connection.execute(sql.format(self._table, joined), given).fetchall()

    def _holding(self, most: int, literal: str) -> list[tuple[int]]:
        given = {"manual": self.manual.number, "most": most, "literal": literal}
        return self._connection.execute(_HOLDING, given).fetchall()

    def rows(self, ids: Iterable[int]) -> list[Row]:
        """Return rows by their ids, in no order."""
        marks = ",".join(str(int(each)) for each in ids)
        return [Row(*row) for row in self._connection.execute(_ROWS.format(marks))]


def frequency(reader: Reader, term: RequiredTerm) -> int:
    """Return how many sections have a required term."""
    return reader.having(term.match, EVERY, literal=term.literal)


def candidates(reader: Reader, terms: Sequence[Term], required: Sequence[RequiredTerm]) -> tuple[list[int], list[int]]:
    """Return the ids of the rows to score, best first by what the index thinks of them; and those of any word alone.

    Asked are: any of the rarest words, as many as the budget of postings allows; all words at once; each required term
    together with any of those words; all required terms together. Each has its say in turn, so that whoever takes only
    the first few has some of each.
    """
    words = {token: phrase([token]) for term in terms for token in term.tokens}
    counted = sorted((reader.having(word), word) for word in words.values())
    there = [(count, word) for count, word in counted if count]
    rare: list[str] = []
    spent = 0
    for count, word in there:
        spent += count
        if rare and spent > POSTINGS:
            break
        rare.append(word)
    any_word = " OR ".join(rare)
    asked = [term for term in required if frequency(reader, term)]
    answers: list[list[int]] = []
    if len(there) > 1:
        answers.append(reader.best(" AND ".join(word for _, word in there), _ALL_WORDS))
    if len(asked) > 1 and all(term.match for term in asked):
        together = " AND ".join(f"({term.match})" for term in asked)
        answers.append(reader.best(together, _ALL_REQUIRED, literal=asked[0].literal or asked[1].literal))
    for term in asked:
        found: list[int] = []
        if any_word and term.match:
            found = reader.best(f"({term.match}) AND ({any_word})", _WITH_REQUIRED, literal=term.literal)
        answers.append(found or reader.best(term.match, _WITH_REQUIRED, literal=term.literal))
    by_any_word = reader.best(any_word, _ANY_WORD) if any_word else []
    answers.append(by_any_word)
    in_turn = (each for row in zip_longest(*answers) for each in row if each is not None)
    return list(dict.fromkeys(in_turn)), by_any_word
