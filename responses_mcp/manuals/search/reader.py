"""What a search reads of one manual, and which of its rows are worth scoring."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise, zip_longest
from typing import Final, NamedTuple

from responses_mcp.manuals.index.pieces import pieces_of
from responses_mcp.manuals.index.rows import Entry
from responses_mcp.manuals.index.store import broken
from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.index.update import Manual
from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.search.query import Query, RequiredTerm, Term, pad
from responses_mcp.manuals.words import prepared

_POSTINGS: Final = 3_000  # entries of the index that the tokens of one question may go through, if any of them will do
_ALL_POSTINGS: Final = 10_000  # and if all of them have to be there; or that the rarest has, beside all others
_MOST_COUNTED: Final = 50_000
_ANY_WORD, _ANY_WORD_COMPARED = 120, 300  # rows taken of this way of asking; the latter where meaning will choose
_OTHERS: Final = 30  # and of each other way; more of them find nothing that these do not
_REQUIRED: Final = 80  # rows that have a required term
_OF_TITLE: Final = 4  # of the rarest tokens, by which a title with all of them is found
_RARE_KANA, _FEW_KANA = 0.02, 5  # sections that have a word of hiragana; what more have is grammar
_SOON_READ: Final = 5_000_000  # characters, in which a part of a word is found in some milliseconds
_MOST_REMEMBERED: Final = 50_000  # counts, of all manuals
_EVERY: Final = 2**62  # a count without a limit
_LITERAL: Final = 0  # in its place, a count of what holds a text as it is written
Counts = OrderedDict[tuple[Manual, str, int], int]
"""How many sections the index finds, remembered for states of manuals."""

_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM {0} WHERE {0} MATCH ? LIMIT ?)"
# Weights of title, above and path, text. Rows that fit alike come in the order of the index: the same each time.
_WEIGHTS: Final = {"title_tokens": 4.0, "above_tokens": 1.5, "text_tokens": 1.0}
_ORDER: Final = f"bm25({{0}}, 0, {', '.join(str(_WEIGHTS.get(each, 0)) for each in Entry._fields)}), {{0}}.rowid"
_BEST: Final = f"SELECT rowid FROM {{0}} WHERE {{0}} MATCH ? {{1}} ORDER BY {_ORDER} LIMIT ?"  # noqa: S608  # constants
# The file of a row is the one whose rows begin last before it.
_IS_BELOW: Final = (
    "AND is_below((SELECT path FROM file WHERE first <= {0}.rowid AND sections ORDER BY first DESC LIMIT 1))"
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
_FIRST: Final = "SELECT first FROM file WHERE manual = ? AND sections {} ORDER BY first LIMIT ?"


class Row(NamedTuple):
    """A part of a section as the index has it, without its text: `title` as written, the tokens `pad`ded."""

    manual: str
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
    """What a search reads of one manual. `connection` must show one state of the index for as long as this is used.

    With a `prefix` it finds what is at or below that path; words are as rare as in the whole manual. The words of
    `name` count as those of every path, where several manuals are searched.
    """

    def __init__(
        self, connection: sqlite3.Connection, manual: Manual, counts: Counts, prefix: str = "", name: str = ""
    ) -> None:
        self._connection = connection
        self.name = name
        self.name_tokens = pad(tokens(prepared(name)))
        self._is_below = _IS_BELOW if prefix else ""
        if prefix:
            connection.create_function("is_below", 1, partial(lies_below, prefix=prefix))
        self._table = f"words_{manual.number}"
        self._counts = counts
        self._held: dict[str, list[int]] = {}
        self.manual = manual

    def having(self, match: str, most: int = _MOST_COUNTED) -> int:
        """Return how many sections `match` finds; counting stops at `most`."""
        if not match:
            return 0
        key = (self.manual, match, most)
        count = self._counts.get(key)
        if count is None:
            count = int(self._connection.execute(_COUNT.format(self._table), (match, most)).fetchone()[0])
            while len(self._counts) >= _MOST_REMEMBERED:
                self._counts.popitem(last=False)
            self._counts[key] = count
        return count

    def having_required(self, terms: Sequence[RequiredTerm]) -> int:
        """Return how many sections have any of some required terms."""
        match = " OR ".join(each.match for each in terms if each.match)
        return self.having(match, _EVERY) or len(set(chain.from_iterable(map(self.holding, terms))))

    def holding(self, term: RequiredTerm) -> list[int]:
        """Return the ids of the first rows that hold a required term as it is written, where the index finds none.

        That looks at all rows, so in a large manual it is done only for what is not all tokens.
        """
        key = self.manual, term.text, _LITERAL
        if term.text not in self._held and self._counts.get(key) != 0:
            if self.having(term.match) or not self.looks_within_words(term):
                return []
            given = (term.text, _REQUIRED)
            found = self._connection.execute(_HOLDING.format(self._table), given).fetchall()
            self._held[term.text] = [each for (each,) in found]
            self._counts[key] = len(found)
        return self._held.get(term.text, [])

    def looks_within_words(self, term: RequiredTerm) -> bool:
        """Tell whether a required term is looked for as it is written where no row has its tokens."""
        return not term.match or self.manual.characters <= _SOON_READ

    def in_titles(self, kana: Iterable[str]) -> list[str]:
        """Return the runs of hiragana that stand in titles and in few sections, of each the longest."""
        found: list[str] = []
        few = max(_RARE_KANA * self.manual.sections, _FEW_KANA)
        for run in sorted(kana, key=len, reverse=True):
            phrase = f'"{" ".join(map("".join, pairwise(run)))}"'
            if not any(run in each for each in found) and self.having(f"title_tokens : {phrase}", 1):
                found += [run] if self.having(phrase) <= few else []
        return found

    def best(self, match: str, most: int) -> list[int]:
        """Return the ids of the rows that fit best."""
        below = self._is_below.format(self._table)
        return [each for (each,) in self._connection.execute(_BEST.format(self._table, below), (match, most))]

    def first(self, most: int) -> list[int]:
        """Return the ids of the first rows of the first files."""
        below = "AND is_below(path)" if self._is_below else ""
        return [each for (each,) in self._connection.execute(_FIRST.format(below), (self.manual.number, most))]

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Return rows by their ids, in no order. Raises the error of a broken index if some are missing."""
        found = self._connection.execute(_ROWS.format(self._table, ",".join(map(str, ids)))).fetchall()
        if len(found) < len(ids):
            raise broken("rows are missing")
        return [
            Row._make((self.name, *row, pad(title), pad(above) + self.name_tokens, pad(text)))
            for *row, title, above, text in found
        ]

    def pieces(self, ids: Iterable[int]) -> dict[int, list[str]]:
        """Return the texts of rows that have vectors, by their ids."""
        return pieces_of(self._connection, self.manual.number, ids)

    def texts(self, ids: Iterable[int]) -> dict[int, Text]:
        """Return the texts of rows by their ids; a blank one has those of the sections below it."""
        found: dict[int, Text] = {}
        marks = ",".join(map(str, ids))
        for number, *given in self._connection.execute(_TEXTS.format(self._table, marks)).fetchall():
            text = Text(*given)
            if not text.text.strip():
                below = self._connection.execute(_BELOW.format(self._table), {"id": number}).fetchall()
                text = text._replace(text="\n".join(chain.from_iterable(below)))
            found[number] = text
        return found


class Frequencies(NamedTuple):
    """How many of so many `sections` have a term, by its token: in all manuals that one question is asked of.

    `average` is the average length of those sections, in characters.
    """

    sections: int
    having: Mapping[str, int]
    average: float


def frequencies(readers: Sequence[Reader], terms: Iterable[Term]) -> Frequencies:
    """Count the terms in manuals that are searched together; all sections of a manual have the words of its name."""
    having: dict[str, int] = {}
    for term in terms:
        named = (reader.manual.sections for reader in readers if term.stands_in(reader.name_tokens))
        having[term.token] = sum(reader.having(term.match) for reader in readers) or sum(named)
    sections = sum(reader.manual.sections for reader in readers)
    average = sum(reader.manual.characters for reader in readers) / max(sections, 1)
    return Frequencies(sections, having, average)


def candidates(reader: Reader, asked: Query, *, compared: bool = False) -> list[int]:
    """Return the ids of the rows to score for a question, best first in the index's ranking.

    The index is asked for a title with the rarest tokens, for rows with all of the rarer ones, and for rows with any of
    the rarest, each as many tokens as a budget of postings allows. Meaning, where rows are `compared` by it, chooses
    among more of the last. The answers are interleaved, so that the first few ids have some of each.
    """
    there = _there(reader, [each for each in asked.terms if each.is_telling]) or _there(reader, asked.terms)
    if not there:
        is_named = any(each.stands_in(reader.name_tokens) for each in asked.terms)
        return reader.first(_OTHERS) if is_named else []
    answers: list[list[int]] = []
    if there[0][0] <= _ALL_POSTINGS:
        of_title = " AND ".join(match for _, match in there[:_OF_TITLE])
        answers.append(reader.best(f"title_tokens : ({of_title})", _OTHERS))
    if len(there) < _OF_TITLE and asked.title:  # or very many have them
        answers.append(reader.best(f'title_tokens : "{asked.title}"', _OTHERS))
    answers.append(reader.best(" AND ".join(_rarest(there, _ALL_POSTINGS)), _OTHERS))
    rare = _rarest(there, _POSTINGS)
    # The counts are of the whole manual: below a path there may be none of the words that are rarest in all of it.
    for match in [" OR ".join(rare), *(match for _, match in there[len(rare) :])]:
        if any_word := reader.best(match, _ANY_WORD_COMPARED if compared else _ANY_WORD):
            answers.append(any_word)
            break
    return in_turn(answers)


def candidates_with(reader: Reader, required: Sequence[RequiredTerm]) -> list[int]:
    """Return the ids of rows that have required terms, those with all of them before those with one."""
    matches = [each.match for each in required if reader.having(each.match)]
    answers = [reader.best(match, _REQUIRED) for match in matches]
    if len(matches) > 1:
        answers.insert(0, reader.best(" AND ".join(f"({match})" for match in matches), _REQUIRED))
    return in_turn([*answers, *map(reader.holding, required)])


def in_turn(answers: Iterable[Sequence[int]]) -> list[int]:
    """Return the first of each answer, then the second of each, and so on."""
    return list(dict.fromkeys(each for row in zip_longest(*answers) for each in row if each is not None))


def _there(reader: Reader, terms: Iterable[Term]) -> list[tuple[int, str]]:
    """Return how many sections have each of some terms, and what asks for it, the rarest first."""
    counted = sorted((reader.having(term.match), term.match) for term in terms)
    return [(count, match) for count, match in counted if count]


def _rarest(words: Sequence[tuple[int, str]], most: int) -> list[str]:
    """Return the first words, one at least, that have `most` postings together; words are sorted by theirs."""
    totals = accumulate(postings for postings, _ in words)
    return [word for total, (_, word) in zip(totals, words, strict=True) if total <= most or word == words[0][1]]
