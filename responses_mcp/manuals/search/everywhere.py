"""A search without required terms over one manual after the other, and one ranking of what they have."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, Final

from responses_mcp.manuals.embeddings.mix import MOST_COMPARED
from responses_mcp.manuals.requests.paths import lies_below
from responses_mcp.manuals.results.decomposition import sub_queries
from responses_mcp.manuals.results.search_results import LOWEST_SCORE
from responses_mcp.manuals.search.candidates import BEST_FIRST, Counts, Frequencies, Reader, frequencies
from responses_mcp.manuals.search.query import RELATED, Term, counted, is_whole, other_spellings, phrase, terms, words
from responses_mcp.manuals.search.ranking import TIME_BUDGET, Key, Search, rank
from responses_mcp.manuals.search.scoring import idf, in_name, sought_in, words_of
from responses_mcp.manuals.search.selection import spread
from responses_mcp.manuals.words import KATAKANA_WORD, asked, normalise, runs

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.index.update import Manual
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.scoring import Scored
    from responses_mcp.settings.model import LexicalSettings

_MOST_SCORED: Final = MOST_COMPARED  # rows of a manual; a search by words alone has fewer
_MOST_OF_A_MANUAL: Final = 60  # rows that take part in the ranking of all; more are never shown
_LOWEST_SHARE: Final = 0.25  # of the best score; what has so much is shown, however little that is
# What is written together, such as 1,000, v3.11, an address or a path.
_WRITTEN: Final = re.compile(r"[0-9a-z_]+(?:[!-/:-@\[-^`{-~]+[0-9a-z_]+)*")
_ONE: Final = re.compile(r"[a-z]?[0-9]+(?:[.,:][0-9]+)*|\S*(?:://|@)\S*")
_FILE_NAME: Final = re.compile(r"\w\.(md|json)(?!\w)")
# Such as 第12条 and 第12条の3, which are one word to those who ask for them; but in 第12条の3つ it is 第12条.
_NUMBERED: Final = re.compile("第[0-9]+[\u3400-\u9fff](?:の[0-9]+(?![0-9つかカヵケヶ]|(?!第)[\u3400-\u9fff]))?")
_CODE: Final = re.compile("(?=.*[0-9])(?:.*[_-]|0x)")
_HOW_MANY: Final = re.compile("^何|^.{0,2}(?<!幾)何.?$")  # of which only the answer stands in a text: 何日, 税込何円
_MOST_ASKED: Final = 8  # codes of a question that are asked for by themselves, in each manual
_FIRST: Final = 5  # sections, of which one should have what was asked for
_FILES: Final = "SELECT id, path FROM file WHERE manual = ?"
_INTO_BELOW: Final = """INSERT OR IGNORE INTO below
    SELECT section.id FROM file CROSS JOIN section ON section.file = file.id
    WHERE file.manual = ? AND (file.path = ? OR (file.path >= ? AND file.path < ?))"""
# SQLite's full-text search takes bounds of ids, but no set of them.
_BEST_BELOW: Final = (
    "SELECT {0}.rowid FROM {0} CROSS JOIN below ON below.id = {0}.rowid "  # noqa: S608  # constants
    f"WHERE {{0}} MATCH ? AND {{0}}.rowid BETWEEN ? AND ? ORDER BY {BEST_FIRST} LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Ranked:
    """A section in the ranking of all manuals.

    `words` are those of the question as it has them, with their number; `sought` shows where in it the match is.
    """

    manual_id: str
    path: str
    line: int
    title: str
    words: Mapping[str, int]
    sought: Mapping[str, int]
    score: float


class Below(Reader):
    """What a search reads of the files at or below a path of a manual. Words are as rare as in the whole manual.

    For one search: until its transaction ends, the connection has a table of the sections below the path.
    """

    def __init__(self, connection: sqlite3.Connection, manual: Manual, counts: Counts, prefix: str) -> None:
        super().__init__(connection, manual, counts)
        connection.execute("CREATE TEMP TABLE below (id INTEGER PRIMARY KEY)")
        for spelled in {prefix, unicodedata.normalize("NFC", prefix), unicodedata.normalize("NFD", prefix)}:
            # What comes between `a/` and `a0` in order begins with `a/`.
            connection.execute(_INTO_BELOW, (manual.number, spelled, f"{spelled}/", f"{spelled}0"))
        self._least, self._greatest = connection.execute("SELECT min(id), max(id) FROM below").fetchone()
        if self._least is None and not prefix.isascii():  # a part of it may be spelled in one way, a part in the other
            files = connection.execute(_FILES, (manual.number,))
            found = ((number,) for number, path in files if lies_below(path, prefix))
            connection.executemany("INSERT INTO below SELECT id FROM section WHERE file = ?", found)
            self._least, self._greatest = connection.execute("SELECT min(id), max(id) FROM below").fetchone()

    @property
    def is_empty(self) -> bool:
        """Tell whether the manual has nothing at or below the path."""
        return self._least is None

    def first(self, most: int) -> list[int]:
        """Return the ids of the first rows below the path."""
        return [each for (each,) in self._connection.execute("SELECT id FROM below ORDER BY id LIMIT ?", (most,))]

    def best(self, match: str, most: int, *, literal: str = "") -> list[int]:  # noqa: ARG002  # no term is required here
        """Return the ids of the rows below the path that fit best."""
        given = (match, self._least, self._greatest, most)
        return [each for (each,) in self._connection.execute(_BEST_BELOW.format(self._table), given)]


class Everywhere:
    """The rankings of manuals, added one by one, and the one of all of them."""

    def __init__(self, query: str, lexical: LexicalSettings, check: CancellationCheck) -> None:
        self._query = query
        self._words = words(query)
        self._parts = sub_queries(query)
        self._lexical = lexical
        self._check = check
        self.frequencies: Frequencies | None = None
        self._found: dict[Key, tuple[str, Scored, float]] = {}
        self.unknown: tuple[str, ...] = ()  # words of the question that no manual has
        self._known = 1.0  # what part of the question any manual has, by how rare its words are
        self._by_words = True

    def count(self, readers: Mapping[str, Reader]) -> None:
        """Find how rare the words of the question are in all manuals together, and how long their sections.

        That is done once for all that is added then. By its own counts alone, a manual without the telling word takes
        another one for it, and one with a few long files has nothing but short sections beside them. A word that stands
        only in the names of manuals is one that all their sections have.
        """
        sought = [each for text in (self._query, *self._parts) for each in terms(text)]
        self.frequencies = known = frequencies(list(readers.values()), sought)
        having = known.having
        for each in sought:
            named = [reader for manual_id, reader in readers.items() if each.hits(in_name(manual_id))]
            having[each.match] = having[each.match] or sum(reader.manual.sections for reader in named)
        of_question = counted(terms(self._query), having)
        weights = [(each.weight * idf(known.sections, having[each.match]), each) for each in of_question]
        # A word of which only others of its family are there is half there.
        shares = {each.text: (RELATED if each.text in known.related else bool(having[each.match])) for each in sought}
        there = sum(weight * shares[each.text] for weight, each in weights)
        of_names = _FILE_NAME.findall(normalise(self._query))  # which say nothing if no manual has them

        def may_be_missed(word: Term) -> bool:
            return word.text not in of_names and not _HOW_MANY.search(word.text)

        missing = sum(weight * (1 - shares[each.text]) for weight, each in weights if may_be_missed(each))
        self._known = there / (there + 2 * missing or 1.0)  # `idf` has half of their weight

        def is_there(match: str) -> bool:
            return any(reader.having(match, 1) for reader in readers.values())

        unknown = [
            each for each in self._words if may_be_missed(each) and self._is_unknown(each, having, known.related)
        ]
        codes = [each for each in unknown if each.is_number]
        known_codes = [each for each in codes[:_MOST_ASKED] if is_there(_one_longer(each))] + codes[_MOST_ASKED:]
        unknown = [each for each in unknown if each not in known_codes]
        numbers = islice(dict.fromkeys(_NUMBERED.findall(normalise(self._query))), _MOST_ASKED)
        numbered = [each for each in numbers if not is_there(phrase(asked(each)))]
        known_words = {each.text for each in self._words if each not in unknown}
        told = {part for each in numbered for part in runs(each)}
        shown = [self._shown(each, known_words) for each in unknown if each.text not in told]
        self.unknown = tuple(dict.fromkeys([*numbered, *shown]))

    def _shown(self, word: Term, known: AbstractSet[str]) -> str:
        """Return a word as the question has it: all of a number such as 1,000, of v3.11 and of an address.

        The same goes for other words that are written together, where none of them is `known`.
        """
        if not word.text.isascii():
            return word.shown(self._query)
        written: list[str] = _WRITTEN.findall(normalise(self._query))
        whole = next((each for each in written if word.text in runs(each)), word.text)
        as_one = _ONE.fullmatch(whole) or known.isdisjoint(runs(whole))
        return whole if as_one else word.text

    def _is_unknown(self, word: Term, having: Mapping[str, int], related: AbstractSet[str]) -> bool:
        """Tell whether no manual has a word, nor a part of it; a code such as e-104 is there only as a whole.

        Katakana is sure to be cut as meant, so a pair of characters that is missing tells. Of kanji before a particle
        or at the end of the words, all pairs must be missing.
        """
        if word.is_in_letters:
            of_it = [each for each in terms(self._query) if word.text in (each.text, each.part_of)]
            if whole := _wholes(word.text):
                of_it = [each for each in of_it if each.text in whole]
            return bool(of_it) and not any(having[each.match] and each.text not in related for each in of_it)
        pairs = [each for each in terms(self._query) if each.text in word.tokens]
        if not pairs:  # too far back in a long question to be counted
            return False
        if KATAKANA_WORD.fullmatch(word.text):
            return any(not having[each.match] for each in pairs)
        return is_whole(word.text, self._query) and not any(having[each.match] for each in pairs)

    def add(self, manual_id: str, reader: Reader, meaning: Meaning | None = None) -> bool:
        """Rank what a manual has; return whether there was time for all of it. Raises OutOfTime if for nothing."""
        compared = meaning is not None
        search = Search(
            reader,
            (),
            self._lexical,
            _MOST_SCORED,
            self._check,
            compared=compared,
            frequencies=self.frequencies,
            manual_id=manual_id,
        )
        ranking = rank(self._query, self._parts, search)
        if meaning is not None and ranking.order:
            meaning.rerank(ranking)
            self._by_words = self._by_words and not meaning.used
        for key, score in spread(ranking.order[:_MOST_OF_A_MANUAL], ranking.fused, _MOST_OF_A_MANUAL):
            if score > 0:
                # A manual's id has no slash, so no two manuals have the same path.
                self._found[f"{manual_id}/{key[0]}", key[1]] = (manual_id, ranking.scored[key], score)
        return ranking.cutoff != TIME_BUDGET

    def best(self, most: int) -> list[Ranked]:
        """Return the sections that fit best of all; further ones of a file sink a little, as in a find.

        A long question has low scores altogether, so what scores little is left out only beside what scores much more.
        """
        order = self._order()
        scores = [self._found[key][2] for key in order]
        least = min(LOWEST_SCORE, _LOWEST_SHARE * scores[0]) if order else 0.0
        return [self._ranked(key) for key, score in zip(order[:most], scores, strict=False) if score >= least]

    def covered(self) -> float:
        """Return what part of the question one of the first sections has, by how rare its words are; 1 with meaning."""
        if not self._by_words:
            return 1.0
        return self._known * max((self._found[key][1].coverage for key in self._order()[:_FIRST]), default=1.0)

    def _order(self) -> list[Key]:
        return sorted(self._found, key=lambda key: (-self._found[key][2], key))

    def _ranked(self, key: Key) -> Ranked:
        manual_id, scored, score = self._found[key]
        path = key[0][len(manual_id) + 1 :]
        title = scored.row.title or path.rpartition("/")[2]
        matched = words_of(scored, self._words)
        sought = sought_in(scored, self._words, terms(self._query), (), matched)
        return Ranked(manual_id, path, key[1], title, matched, sought, score)


def _wholes(word: str) -> tuple[str, ...]:
    """Return a code in each of its spellings; none of another word, of which a part may be all that is asked for."""
    others = other_spellings(word)
    if others or _CODE.match(word):
        return word, word.removeprefix("0x"), *others
    return ()


def _one_longer(code: Term) -> str:
    """Return what asks the index for a code with one more letter, or digit behind a letter: tn-4100k for tn-4100."""
    further = ascii_lowercase if code.text[-1:].isdigit() else digits
    return " OR ".join(phrase([each + one]) for each in (code.text, *other_spellings(code.text)) for one in further)
