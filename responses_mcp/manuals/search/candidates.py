"""What a search reads of one manual, and which of its rows are worth scoring."""

from __future__ import annotations

import sqlite3
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, pairwise, zip_longest
from typing import Final, NamedTuple

from responses_mcp.manuals.index.rows import Entry
from responses_mcp.manuals.index.store import broken
from responses_mcp.manuals.index.update import Manual
from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.search.query import Query, RequiredTerm, Term, pad

_POSTINGS: Final = 3_000  # entries of the index that the tokens of one question may go through, if any of them will do
_ALL_POSTINGS: Final = 10_000  # and if all of them have to be there; or that the rarest has, beside all others
_MOST_COUNTED: Final = 50_000
ANY_WORD, ANY_WORD_COMPARED = 120, 300  # rows taken of this way of asking; the latter where meaning will choose
_OTHERS: Final = 30  # and of each other way; more of them find nothing that these do not
_OF_TITLE: Final = 4  # of the rarest tokens, by which a title with all of them is found
_OF_FILES: Final = 80  # rows, one a file, that have a required term
_LOOKED_AT: Final = 2_000  # rows, for that
_RARE_KANA, _FEW_KANA = 0.02, 5  # sections that have a word of hiragana; what more have is grammar
_SOON_READ: Final = 5_000_000  # characters, in which a part of a word is found in some milliseconds
_AT_ONCE: Final = 100  # of them, because each may be a page of the disk
_MOST_REMEMBERED: Final = 50_000  # counts, of all manuals
EVERY: Final = 2**62
"""A count without a limit."""
Counts = OrderedDict[tuple[Manual, str, int], int]
"""How many sections the index finds, remembered for states of manuals."""

_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM {0} WHERE {0} MATCH ? LIMIT ?)"
# Weights of title, above and path, text. Rows that fit alike come in the order of the index: the same each time.
_WEIGHTS: Final = {"title_tokens": 4.0, "above_tokens": 1.5, "text_tokens": 1.0}
_ORDER: Final = f"bm25({{0}}, 0, {', '.join(str(_WEIGHTS.get(each, 0)) for each in Entry._fields)}), {{0}}.rowid"
_BEST: Final = f"SELECT rowid FROM {{0}} WHERE {{0}} MATCH ? ORDER BY {_ORDER} LIMIT ?"  # noqa: S608  # constants
# SQLite's full-text search takes bounds of ids, but no set of them.
_BEST_BELOW: Final = (
    "SELECT {0}.rowid FROM {0} CROSS JOIN below ON below.id = {0}.rowid "  # noqa: S608  # constants
    f"WHERE {{0}} MATCH ? AND {{0}}.rowid BETWEEN ? AND ? ORDER BY {_ORDER} LIMIT ?"
)
_HOLDING: Final = "SELECT rowid FROM {0} WHERE instr(lower(text), ?1) OR instr(lower(title), ?1) ORDER BY rowid LIMIT ?"
_ROWS: Final = (
    "SELECT words.rowid, path, line, length, title, title_tokens, above_tokens, text_tokens "
    "FROM {} AS words JOIN file ON file.id = words.file WHERE words.rowid IN ({})"
)
_TEXTS: Final = (
    "SELECT rowid, text_line, begin, crumbs, text, EXISTS (SELECT 1 FROM {0} AS before "
    "WHERE before.rowid = {0}.rowid - 1 AND before.file = {0}.file AND before.line = {0}.line) "
    "FROM {0} WHERE rowid IN ({1})"
)
_BELOW: Final = (
    "SELECT below.title, below.text FROM {0} AS above JOIN {0} AS below ON below.file = above.file "
    "WHERE above.rowid = :id AND below.rowid IN (:id + 1, :id + 2, :id + 3) AND instr(below.crumbs, above.title) "
    "ORDER BY below.rowid"
)
_FIRST: Final = "SELECT rowid FROM {} ORDER BY rowid LIMIT ?"
_FILES: Final = "SELECT rowid, file FROM {} WHERE rowid IN ({})"
_RANGES: Final = "SELECT path, first, sections FROM file WHERE manual = ? AND sections"
_RANGES_BELOW: Final = f"{_RANGES} AND (path = ? OR (path >= ? AND path < ?))"


class Row(NamedTuple):
    """A part of a section as the index has it, without its text: `title` as written, the tokens `pad`ded."""

    id: int
    path: str
    line: int
    length: int  # of the text, in characters
    title: str
    title_tokens: str
    above_tokens: str
    text_tokens: str


class Text(NamedTuple):
    """The text of a row as written, which begins at character `begin` of its file, on `line`; `above` are headings.

    `goes_on` tells that the row before it has the beginning of the section.
    """

    line: int
    begin: int
    above: str
    text: str
    goes_on: int = 0


class Reader:
    """What a find reads of one manual. `connection` must show one state of the index for as long as this is used."""

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts) -> None:
        self._connection = connection
        self._table = f"words_{manual.number}"
        self._counts = counts
        self.manual = manual

    def having(self, match: str, most: int = _MOST_COUNTED) -> int:
        """Return how many sections `match` finds; counting stops at `most`."""
        if not match:
            return 0
        key = (self.manual, match, most)
        count = self._counts.get(key)
        if count is None:
            count = int(self._connection.execute(_COUNT.format(self._table), (match, most)).fetchone()[0])
            self._remember(key, count)
        return count

    def _remember(self, key: tuple[Manual, str, int], count: int) -> None:
        while len(self._counts) >= _MOST_REMEMBERED:
            self._counts.popitem(last=False)
        self._counts[key] = count

    def in_titles(self, runs: Iterable[str]) -> list[str]:
        """Return the runs of hiragana that stand in titles, of each the longest, the longest first."""
        found: list[str] = []
        for run in sorted(runs, key=len, reverse=True):
            phrase = " ".join(map("".join, pairwise(run)))
            if any(run in each for each in found) or not self.having(f'title_tokens : "{phrase}"', 1):
                continue
            if self.having(f'"{phrase}"') <= max(_RARE_KANA * self.manual.sections, _FEW_KANA):
                found.append(run)
        return found

    def holding(self, literal: str) -> list[int]:
        """Return the ids of the first rows that hold a text as it is written, but for capitals. Looks at all rows."""
        key = (self.manual, f"'{literal}", 0)
        if not literal or self._counts.get(key) == 0:
            return []
        given = (literal, _LOOKED_AT)
        found = [each for (each,) in self._connection.execute(_HOLDING.format(self._table), given)]
        self._remember(key, len(found))
        return found

    def best(self, match: str, most: int) -> list[int]:
        """Return the ids of the rows that fit best."""
        return [each for (each,) in self._connection.execute(_BEST.format(self._table), (match, most))]

    def first(self, most: int) -> list[int]:
        """Return the ids of the first rows."""
        return [each for (each,) in self._connection.execute(_FIRST.format(self._table), (most,))]

    def best_of_files(self, found: list[int], most: int) -> tuple[list[int], bool]:
        """Return the first of some rows in each file, all rows if they are few, and whether these are all files."""
        if len(found) <= most:
            return found, True
        first = dict[int, int]()
        for begin in range(0, len(found), _AT_ONCE):
            some = found[begin : begin + _AT_ONCE]
            files = dict(self._connection.execute(_FILES.format(self._table, ",".join(map(str, some)))).fetchall())
            for each in some:
                first.setdefault(files[each], each)
            if len(first) > most:
                break
        return list(first.values())[:most], len(first) <= most

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Return rows by their ids, in no order. Raises the error of a broken index if some are missing."""
        found = self._connection.execute(_ROWS.format(self._table, ",".join(map(str, ids)))).fetchall()
        if len(found) < len(ids):
            raise broken("rows are missing")
        return [Row(*given[:5], *map(pad, given[5:])) for given in found]

    def texts(self, ids: Iterable[int]) -> dict[int, Text]:
        """Return the texts of rows by their ids."""
        return rows_as_written(self._connection, self.manual, ids)


def rows_as_written(connection: sqlite3.Connection, manual: Manual, ids: Iterable[int]) -> dict[int, Text]:
    """Return the texts of the rows that are there, by their ids; a blank one has those of the sections below it."""
    found: dict[int, Text] = {}
    table = f"words_{manual.number}"
    for number, *given in connection.execute(_TEXTS.format(table, ",".join(map(str, ids)))).fetchall():
        text = Text(*given)
        if not text.text.strip():
            below = connection.execute(_BELOW.format(table), {"id": number}).fetchall()
            text = text._replace(text="\n".join(chain.from_iterable(below)))
        found[number] = text
    return found


class Below(Reader):
    """What a search reads of the files at or below a path of a manual. Words are as rare as in the whole manual.

    For one search: until its transaction ends, the connection has a table of the sections below the path.
    """

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts, prefix: str) -> None:
        super().__init__(connection, manual, counts)
        connection.execute("CREATE TEMP TABLE below (id INTEGER PRIMARY KEY)")
        files: set[tuple[str, int, int]] = set()
        for spelled in {prefix, unicodedata.normalize("NFC", prefix), unicodedata.normalize("NFD", prefix)}:
            # What comes between `a/` and `a0` in order begins with `a/`.
            files.update(connection.execute(_RANGES_BELOW, (manual.number, spelled, f"{spelled}/", f"{spelled}0")))
        if not files and not prefix.isascii():  # a part of it may be spelled in one way, a part in the other
            every = connection.execute(_RANGES, (manual.number,))
            files.update(each for each in every if lies_below(each[0], prefix))
        ids = ((id_,) for _, first, many in files for id_ in range(first, first + many))
        connection.executemany("INSERT INTO below VALUES (?)", ids)
        self._least, self._greatest = connection.execute("SELECT min(id), max(id) FROM below").fetchone()

    @property
    def is_empty(self) -> bool:
        """Tell whether the manual has nothing at or below the path."""
        return self._least is None

    def first(self, most: int) -> list[int]:
        """Return the ids of the first rows below the path."""
        return [each for (each,) in self._connection.execute("SELECT id FROM below ORDER BY id LIMIT ?", (most,))]

    def best(self, match: str, most: int) -> list[int]:
        """Return the ids of the rows below the path that fit best."""
        given = (match, self._least, self._greatest, most)
        return [each for (each,) in self._connection.execute(_BEST_BELOW.format(self._table), given)]


class Frequencies(NamedTuple):
    """How many of so many `sections` have a term, by its token: in all manuals that one question is asked of.

    `average` is the average length of those sections, in characters.
    """

    sections: int
    having: Mapping[str, int]
    average: float
    manuals: int


def frequencies(readers: Sequence[Reader], terms: Iterable[Term]) -> Frequencies:
    """Count the terms in manuals that are searched together."""
    having = {term.token: sum(reader.having(term.match) for reader in readers) for term in terms}
    sections = sum(reader.manual.sections for reader in readers)
    average = sum(reader.manual.characters for reader in readers) / max(sections, 1)
    return Frequencies(sections, having, average, len(readers))


def frequency(reader: Reader, term: RequiredTerm) -> int:
    """Return how many sections have a required term."""
    return reader.having(term.match, EVERY) or len(_holding(reader, term))


def _holding(reader: Reader, term: RequiredTerm) -> list[int]:
    """Return the rows that hold a required term as it is written; in a large manual only if it is not all tokens."""
    may_be_a_part = reader.manual.characters <= _SOON_READ
    return reader.holding(term.literal) if may_be_a_part or not term.match else []


class Candidates(NamedTuple):
    """Ids of the rows to score, best first in the index's ranking: for the words of the question, for required terms.

    `by_any_word` are those of the first kind that have any of the rarest words, `exact` those of the second kind, one a
    file at least; `whole` says that there are no further files of that kind. `holding` are those that hold a
    required term which the index does not know, by its text.
    """

    of_words: list[int]
    required: list[int]
    by_any_word: list[int]
    exact: list[int]
    whole: bool
    holding: Mapping[str, frozenset[int]]


def candidates(reader: Reader, asked: Query, required: Sequence[RequiredTerm], most: int = ANY_WORD) -> Candidates:
    """Return the rows to score.

    For the words of the question the index is asked for a title with the rarest of them, for all of them if one is
    rare enough, for all of the rarer ones, and for `most` rows with any of the rarest, each of these as many
    tokens as a budget of postings allows. For required terms it is asked for all of them, and for each, alone and with
    any of the rarest tokens. The answers to each kind are interleaved, so that the first few ids have some of each.
    """
    there = _there(reader, asked.telling) or _there(reader, asked.terms)
    rare = _rarest(there, _POSTINGS)
    any_word = " OR ".join(rare)
    of_words: list[list[int]] = []
    if there and there[0][0] <= _ALL_POSTINGS:
        of_title = " AND ".join(match for _, match in there[:_OF_TITLE])
        of_words.append(reader.best(f"title_tokens : ({of_title})", _OTHERS))
    if len(there) > 1:
        rarest = _rarest(there, _ALL_POSTINGS)
        if len(rarest) < len(there) and there[0][0] <= _ALL_POSTINGS:  # the index looks up the others beside the rarest
            of_words.append(reader.best(" AND ".join(match for _, match in there), _OTHERS))
        of_words.append(reader.best(" AND ".join(rarest), _OTHERS))
    by_any_word = reader.best(any_word, most) if any_word else []
    # The counts are of the whole manual: below a path there may be none of the words that are rarest in all of it.
    for _, match in there[len(rare) :]:
        by_any_word = by_any_word or reader.best(match, most)
    of_words.append(by_any_word)
    answers: list[list[int]] = []
    matches = [each.match for each in required if each.match and reader.having(each.match)]
    if len(matches) > 1:
        answers.append(reader.best(" AND ".join(f"({match})" for match in matches), _OTHERS))
    exact: list[int] = []
    whole = True
    holding: dict[str, frozenset[int]] = {}
    for term in required:
        if not reader.having(term.match):
            rows = _holding(reader, term)
            holding[term.text] = frozenset(rows)
        elif reader.having(term.match, _LOOKED_AT + 1) <= _LOOKED_AT:
            rows = reader.best(term.match, _LOOKED_AT)
        else:
            rows, whole = [], False  # a common word, which needs no care and would take long
            answers.append(reader.best(term.match, _OTHERS))
        if any_word and term.text not in holding:
            answers.append(reader.best(f"({term.match}) AND ({any_word})", _OTHERS))
        of_files, all_files = reader.best_of_files(rows, _OF_FILES)
        exact += of_files
        whole = whole and all_files
        answers.append(of_files)
    return Candidates(_in_turn(of_words), _in_turn(answers), by_any_word, exact, whole, holding)


def _there(reader: Reader, terms: Iterable[Term]) -> list[tuple[int, str]]:
    """Return how many sections have each of some terms, and what asks for it, the rarest first."""
    counted = sorted((reader.having(term.match), term.match) for term in terms)
    return [(count, match) for count, match in counted if count]


def _rarest(words: Sequence[tuple[int, str]], most: int) -> list[str]:
    """Return the first words, one at least, that have `most` postings together; words are sorted by theirs."""
    totals = accumulate(postings for postings, _ in words)
    return [word for total, (_, word) in zip(totals, words, strict=True) if total <= most or word == words[0][1]]


def _in_turn(answers: Sequence[Sequence[int]]) -> list[int]:
    return list(dict.fromkeys(each for row in zip_longest(*answers) for each in row if each is not None))
