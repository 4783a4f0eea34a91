"""`manual_search`: one manual after the other, without required terms, and one ranking of what they have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from responses_mcp.manuals.results.search_results import LOWEST_SCORE, TIME_BUDGET
from responses_mcp.manuals.search.meaning import MOST_COMPARED, Meaning
from responses_mcp.manuals.search.query import is_japanese, query
from responses_mcp.manuals.search.ranking import (
    Key,
    Search,
    idf,
    most_of_translations,
    name_of,
    rank,
    spread,
)
from responses_mcp.manuals.search.reader import Frequencies, Reader, frequencies
from responses_mcp.manuals.words import LONG_VOWEL, foldable, normalise

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.search.ranking import Scored
    from responses_mcp.manuals.search.reader import Row
    from responses_mcp.settings.model import LexicalSettings

_MOST_OF_A_MANUAL: Final = 60  # rows that take part in the ranking of all; more are never shown
_LOWEST_SHARE: Final = 0.25  # of the best score; what has so much is shown, however little that is
# A word of kanji beside other kana than particles may be a part of one: 決 of 決まり is none.
_STANDING: Final = re.compile(
    "(?:(?<![\u3041-\u3096\u3005-\u3007\u3400-\u9fff])|(?<=[をはがのにとでもやへ]))"
    "[\u3005-\u3007\u3400-\u9fff]++(?:(?![\u3041-\u3096])|(?=[をはがのにとでもやへ]))"
)
_KATAKANA: Final = re.compile(f"[\u30a1-\u30fa{LONG_VOWEL}]+")
_FIRST: Final = 5  # sections, of which one should have what was asked for


@dataclass(frozen=True, slots=True)
class Ranked:
    """A section in the ranking of all manuals."""

    manual_id: str
    row: Row
    score: float


class Everywhere:
    """The rankings of manuals, added one by one, and the one of all of them.

    How rare words are is counted in all manuals together, once for all that is added then: by its own counts alone, a
    manual without the telling word takes another one for it. A word that stands only in the names of manuals is one
    that all their sections have. `unknown` are words of the question that no manual has.
    """

    def __init__(
        self, question: str, lexical: LexicalSettings, check: CancellationCheck, readers: Mapping[str, Reader]
    ) -> None:
        self.asked = query(question)
        self._lexical = lexical
        self._check = check
        self._found: dict[Key, tuple[str, Scored, float]] = {}
        self._by_words = True
        known = frequencies(list(readers.values()), self.asked.terms)
        having = dict(known.having)
        for each in self.asked.terms:
            named = [reader for manual_id, reader in readers.items() if each.hits(name_of(manual_id))]
            having[each.token] = having[each.token] or sum(reader.manual.sections for reader in named)
        self._frequencies: Frequencies = known._replace(having=having)
        weights = {
            each.token: each.weight * idf(known.sections, having[each.token])
            for each in self.asked.terms
            if not (each.part_of and having.get(each.part_of))
        }
        there = sum(weight for token, weight in weights.items() if having[token])
        # What part of the question any manual has; `idf` has half of the weight of what none has.
        self._known = there / (2 * sum(weights.values()) - there or 1.0)
        missing = dict[str, str]()
        for word, of_it in self.asked.words.items():
            if self._is_unknown(word, of_it, having):
                missing.setdefault(of_it[0], _written(word, question))
        self.unknown = tuple(missing.values())

    def _is_unknown(self, word: str, of_it: Sequence[str], having: Mapping[str, int]) -> bool:
        """Tell whether no manual has a word or a part of it; a code such as e-104 is there only as a whole."""
        if _KATAKANA.fullmatch(word):  # which is cut as meant, unlike most of Japanese
            return not all(having.get(token, 1) for token in of_it)
        if is_japanese(word) and word not in _STANDING.findall(self.asked.text):
            return False
        return not any(having.get(token, 1) for token in (of_it[:1] if any(map(str.isdigit, word)) else of_it))

    def add(self, manual_id: str, reader: Reader, meaning: Meaning | None = None) -> bool:
        """Rank what a manual has; return whether there was time for all of it. Raises OutOfTime if for nothing."""
        search = Search(
            reader,
            self._lexical,
            self._check,
            MOST_COMPARED,
            compared=meaning is not None,
            frequencies=self._frequencies,
            manual_id=manual_id,
        )
        ranking = rank(self.asked, search)
        if meaning is not None and ranking.order:
            meaning.rerank(ranking)
            self._by_words = self._by_words and not meaning.used
        for key, score in spread(ranking.order, ranking.fused, _MOST_OF_A_MANUAL):
            if score > 0:
                # A manual's id has no slash, so no two manuals have the same path.
                self._found[f"{manual_id}/{key[0]}", key[1]] = (manual_id, ranking.scored[key], score)
        return ranking.cutoff != TIME_BUDGET

    def best(self, most: int) -> list[Ranked]:
        """Return the sections that fit best of all; further ones of a file sink a little, as in a find.

        A long question has low scores altogether, so what scores little is left out only beside what scores much more.
        """
        order = self._order()
        least = min(LOWEST_SCORE, _LOWEST_SHARE * self._found[order[0]][2]) if order else 0.0
        found = (self._found[key] for key in order[:most])
        return [Ranked(manual_id, scored.row, score) for manual_id, scored, score in found if score >= least]

    def covered(self) -> float:
        """Return what part of the question one of the first sections has, by how rare its words are; 1 with meaning."""
        if not self._by_words:
            return 1.0
        return self._known * max((self._found[key][1].coverage for key in self._order()[:_FIRST]), default=1.0)

    def _order(self) -> list[Key]:
        most = most_of_translations(((key[0], found[2]) for key, found in self._found.items()), self.asked.language)
        for key, (manual_id, scored, score) in self._found.items():
            self._found[key] = manual_id, scored, min(score, most.get(key[0], score))
        return sorted(self._found, key=lambda key: (-self._found[key][2], -self._found[key][1].score, key))


def _written(word: str, question: str) -> str:
    """Return a folded word with the long vowels that the question has in it."""
    return next((each for each in _KATAKANA.findall(normalise(question)) if foldable(each) == word), word)
