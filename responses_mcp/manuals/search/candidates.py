"""Which sections are worth scoring. The index is asked such that common words cost no more than rare ones."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate, zip_longest
from typing import Final, NamedTuple

from responses_mcp.manuals.index.update import Manual
from responses_mcp.manuals.search.families import relatives
from responses_mcp.manuals.search.query import RequiredTerm, Term, phrase, spellings
from responses_mcp.manuals.search.scoring import Row
from responses_mcp.manuals.words import LONG_VOWEL, asked, foldable, forms

_POSTINGS: Final = 3_000  # entries of the index that the words of one query may go through, if any of them will do
_ALL_POSTINGS: Final = 10_000  # and if all of them have to be there; or that the rarest has, beside all others
_MOST_COUNTED: Final = 50_000
ANY_WORD, ANY_WORD_COMPARED = 120, 300  # rows taken of this way of asking; the latter where meaning will choose
_OTHERS: Final = 30  # and of each other way; more of them find nothing that these do not
_OF_FILES: Final = 80  # rows, one a file, that hold a required term as it is written
_LOOKED_AT: Final = 2_000  # rows, for that
_AT_ONCE: Final = 100  # of them, because each may be a page of the disk
_MOST_REMEMBERED: Final = 50_000  # counts, of all manuals: a search asks twice for those of each
_MOST_PHRASES: Final = 1_024  # words of which the phrases are kept: each manual is asked for the same
_FORMS: Final = -1  # in place of the most that is counted, for the forms of a word
_RELATIVES: Final = -2  # and for the others of its family
EVERY: Final = 2**62
"""A count without a limit."""
Counts = OrderedDict[tuple[Manual, str, int, str], int]
"""How many sections have a word, and which of its forms, or its family, there are, remembered for states of manuals."""
_COUNT: Final = "SELECT count(*) FROM (SELECT 1 FROM {0}{1} WHERE {0} MATCH :match LIMIT :most)"
_HAS: Final = "SELECT {1} WHERE EXISTS (SELECT 1 FROM {0} WHERE {0} MATCH ?)"
# Rows that fit alike come in the order in which they were indexed: the same each time.
BEST_FIRST: Final = "bm25({0}, 4.0, 1.5, 1.0, 0.5), {0}.rowid"
"""The order of rows of the full-text table {0}: weights of title, headings and path, text, and parts of names."""
_BEST: Final = f"SELECT {{0}}.rowid FROM {{0}}{{1}} WHERE {{0}} MATCH :match ORDER BY {BEST_FIRST} LIMIT :most"  # noqa: S608  # constants
_HOLDS: Final = "(instr(section.body, :literal) OR instr(lower(section.title), :literal))"
_HOLDS_FOLDED: Final = (
    f"(instr(replace(section.body, '{LONG_VOWEL}', ''), :literal)"
    f" OR instr(replace(lower(section.title), '{LONG_VOWEL}', ''), :literal))"
)
_JOINED: Final = " CROSS JOIN section ON section.id = {0}.rowid AND "
_HOLDING: Final = (
    "SELECT section.id FROM section JOIN file ON file.id = section.file WHERE file.manual = :manual AND {} "
    "ORDER BY section.id LIMIT :most"
)
_ROWS: Final = (
    "SELECT section.id, file.path, section.line, section.title, section.crumbs, section.body, section.names "
    "FROM section JOIN file ON file.id = section.file WHERE section.id IN ({})"
)
_FIRST: Final = "SELECT id FROM section WHERE file IN (SELECT id FROM file WHERE manual = ?) ORDER BY id LIMIT ?"
_FILES: Final = "SELECT id, file FROM section WHERE id IN ({})"


class Reader:
    """What a find reads of one manual. `connection` must show one state of the index for as long as this is used."""

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts) -> None:
        self._connection = connection
        self._table = f"words_{manual.number}"
        self._counts = counts
        self.manual = manual

    def having(self, match: str, most: int = _MOST_COUNTED, *, literal: str = "") -> int:
        """Return how many sections `match` finds, of those that hold `literal`; counting stops at `most`.

        Without a `match` all sections are looked at, which takes a while.
        """
        if not (match or literal):
            return 0
        key = (self.manual, match, most, literal)
        count = self._counts.get(key)
        if count is None:
            count = int(self._asked(_COUNT, match, most, literal)[0][0]) if match else len(self._holding(most, literal))
            self._remember(key, count)
        return count

    def match(self, term: Term, *, related: bool = False) -> str:
        """Return what asks the index for a term as its `match` does, of forms those that the manual has.

        With `related` it is asked for the words of its family.
        """
        if term.compound is not None:
            return self._there(term.text, [phrase(asked(each)) for each in spellings(term.text)])
        return self.any_form(term.text, related=related) if term.tokens == (term.text,) else term.match

    def any_form(self, word: str, *, related: bool = False) -> str:
        """Return what asks the index for a word, or with `related` for its family, in forms that the manual has.

        A word has up to thirty, and the index ranks by all that it is asked for, whether it has them or not.
        """
        phrases = _phrases(word, related=related)
        if related:
            return self._there(word, phrases, _RELATIVES) if phrases else phrase([word])
        return phrases[0] if len(phrases) == 1 else self._there(word, phrases)

    def _there(self, word: str, phrases: Sequence[str], kind: int = _FORMS) -> str:
        """Return what asks the index for a word by those of some phrases that the manual has."""
        key = (self.manual, word, kind, "")
        there = self._counts.get(key)  # a bit for each
        if there is None:
            some = kind == _FORMS or self._which([" OR ".join(phrases)])  # of a hundred relatives mostly none
            there = self._which(phrases) if some else 0
            self._remember(key, there)
        found = [each for at, each in enumerate(phrases) if there >> at & 1] or [phrase([word])]
        return found[0] if len(found) == 1 else f"({' OR '.join(found)})"

    def _which(self, phrases: Sequence[str]) -> int:
        """Return a bit for each of some phrases, set if the manual has it."""
        sql = " UNION ALL ".join(_HAS.format(self._table, at) for at in range(len(phrases)))
        return sum(1 << at for (at,) in self._connection.execute(sql, phrases))

    def _remember(self, key: tuple[Manual, str, int, str], number: int) -> None:
        while len(self._counts) >= _MOST_REMEMBERED:
            self._counts.popitem(last=False)
        self._counts[key] = number

    def best(self, match: str, most: int, *, literal: str = "") -> list[int]:
        """Return the ids of the rows that fit best; without a `match` the first that hold `literal`."""
        found = self._asked(_BEST, match, most, literal) if match else self._holding(most, literal)
        return [row[0] for row in found]

    def first(self, most: int) -> list[int]:
        """Return the ids of the first rows."""
        given = (self.manual.number, most)
        return [each for (each,) in self._connection.execute(_FIRST, given)]

    def best_of_files(self, match: str, most: int, *, literal: str = "") -> tuple[list[int], bool]:
        """Return the ids of the row that fits best in each file, and whether these are all files.

        All rows are returned if no more than `most` fit, none if more fit than are looked at.
        """
        if self.having(match, _LOOKED_AT + 1, literal=literal) > _LOOKED_AT:
            return [], False  # a common word, which needs no care and would take long
        found = self.best(match, _LOOKED_AT, literal=literal)
        if len(found) <= most:
            return found, True
        first = dict[int, int]()
        for begin in range(0, len(found), _AT_ONCE):
            some = found[begin : begin + _AT_ONCE]
            files = dict(self._connection.execute(_FILES.format(",".join(map(str, some)))).fetchall())
            for each in some:
                first.setdefault(files[each], each)
            if len(first) > most:
                break
        return list(first.values())[:most], len(first) <= most

    def _asked(self, sql: str, match: str, most: int, literal: str) -> list[tuple[int]]:
        joined = _JOINED.format(self._table) + _holds(literal) if literal else ""
        given = {"match": match, "most": most, "literal": literal}
        return self._connection.execute(sql.format(self._table, joined), given).fetchall()

    def _holding(self, most: int, literal: str) -> list[tuple[int]]:
        given = {"manual": self.manual.number, "most": most, "literal": literal}
        return self._connection.execute(_HOLDING.format(_holds(literal)), given).fetchall()

    def rows(self, ids: Iterable[int]) -> list[Row]:
        """Return rows by their ids, in no order."""
        marks = ",".join(str(int(each)) for each in ids)
        found = self._connection.execute(_ROWS.format(marks))
        return [
            Row(number, path, line, title, above, foldable(text), text, names)
            for number, path, line, title, above, text, names in found
        ]


@lru_cache(_MOST_PHRASES)
def _phrases(word: str, *, related: bool = False) -> tuple[str, ...]:
    """Return what asks the index for each form of a word, or for each of its relatives."""
    return tuple(phrase([each]) for each in sorted(relatives(word) if related else forms(word)))


def _holds(literal: str) -> str:
    return _HOLDS if literal.isascii() else _HOLDS_FOLDED


class Frequencies(NamedTuple):
    """How many of so many `sections` have a term, by its `match`: in all manuals that one question is asked of.

    Of terms that are `related`, by their texts, none has it, and some have another word of its family. `average` is the
    average length of those sections, in characters; `manuals` is the number of manuals.
    """

    sections: int
    having: dict[str, int]
    average: float
    manuals: int
    related: frozenset[str]


def frequencies(readers: Sequence[Reader], terms: Iterable[Term]) -> Frequencies:
    """Count the terms in manuals that are searched together."""
    having: dict[str, int] = {}
    related: set[str] = set()
    for term in terms:
        count = sum(reader.having(reader.match(term)) for reader in readers)
        if not count and term.relatives:
            count = sum(reader.having(reader.match(term, related=True)) for reader in readers)
            related |= {term.text} if count else set()
        having[term.match] = count
    sections = sum(reader.manual.sections for reader in readers)
    average = sum(reader.manual.characters for reader in readers) / max(sections, 1)
    return Frequencies(sections, having, average, len(readers), frozenset(related))


def frequency(reader: Reader, term: RequiredTerm) -> int:
    """Return how many sections have a required term."""
    return reader.having(_match(reader, term), EVERY, literal=term.literal)


def _match(reader: Reader, required: RequiredTerm) -> str:
    return " OR ".join(map(reader.match, required.spellings)) if required.match else ""


class Candidates(NamedTuple):
    """Ids of the rows to score, best first in the index's ranking: for the words of the question, for required terms.

    `by_any_word` are those of the first kind that have any of the rarest words, `exact` those of the second that hold a
    term as it is written, one a file at least; `whole` says that there are no further files of that kind.
    """

    of_words: list[int]
    required: list[int]
    by_any_word: list[int]
    exact: list[int]
    whole: bool


def candidates(
    reader: Reader,
    terms: Sequence[Term],
    required: Sequence[RequiredTerm],
    most: int = ANY_WORD,
    related: AbstractSet[str] = frozenset(),
) -> Candidates:
    """Return the rows to score; for terms that are `related`, by their texts, those with words of their families.

    For the words of the question the index is asked for all of them if one is rare enough, for all of the rarer ones,
    and for `most` rows with any of the rarest, each of these as many words as a budget of postings allows. For required
    terms it is asked for all of them, and for each with any of the rarest words, alone if these are few, and as it is
    written: a rare word may have a form that is everywhere. The answers to each kind are interleaved, so that the first
    few ids have some of each.
    """
    words = {token: reader.any_form(token, related=token in related) for term in terms for token in term.tokens}
    words |= {term.text: reader.match(term) for term in terms if term.compound is not None}
    counted = sorted((reader.having(word), word) for word in words.values())
    there = [(count, word) for count, word in counted if count]
    rare = _rarest(there, _POSTINGS)
    any_word = " OR ".join(rare)
    asked = [(term, _match(reader, term)) for term in required if frequency(reader, term)]
    of_words: list[list[int]] = []
    answers: list[list[int]] = []
    if len(there) > 1:
        rarest = _rarest(there, _ALL_POSTINGS)
        if len(rarest) < len(there) and there[0][0] <= _ALL_POSTINGS:  # the index looks up the others beside the rarest
            of_words.append(reader.best(" AND ".join(word for _, word in there), _OTHERS))
        of_words.append(reader.best(" AND ".join(rarest), _OTHERS))
    if len(asked) > 1 and all(match for _, match in asked):
        together = " AND ".join(f"({match})" for _, match in asked)
        answers.append(reader.best(together, _OTHERS, literal=asked[0][0].literal or asked[1][0].literal))
    exact: list[int] = []
    whole = True
    for term, match in asked:
        of_files, all_files = reader.best_of_files(term.exact, _OF_FILES, literal=term.literal)
        exact += of_files
        whole = whole and all_files
        answers.append(of_files)
        beside: list[int] = []
        if any_word and match:
            beside = reader.best(f"({match}) AND ({any_word})", _OTHERS, literal=term.literal)
        if len(beside) < _OTHERS:
            answers.append(reader.best(match, _OTHERS, literal=term.literal))
        answers.append(beside)
    by_any_word = reader.best(any_word, most) if any_word else []
    # The counts are of the whole manual: below a path there may be none of the words that are rarest in all of it.
    for _, word in there[len(rare) :]:
        by_any_word = by_any_word or reader.best(word, most)
    of_words.append(by_any_word)
    return Candidates(_in_turn(of_words), _in_turn(answers), by_any_word, exact, whole)


def _rarest(words: Sequence[tuple[int, str]], most: int) -> list[str]:
    """Return the first words, one at least, that have `most` postings together; words are sorted by theirs."""
    totals = accumulate(postings for postings, _ in words)
    return [word for total, (_, word) in zip(totals, words, strict=True) if total <= most or word == words[0][1]]


def _in_turn(answers: Sequence[Sequence[int]]) -> list[int]:
    return list(dict.fromkeys(each for row in zip_longest(*answers) for each in row if each is not None))
