"""A search without required terms over one manual after the other, and one ranking of what they have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from responses_mcp.manuals.embeddings.mix import MOST_COMPARED
from responses_mcp.manuals.results.decomposition import sub_queries
from responses_mcp.manuals.results.search_results import LOWEST_SCORE
from responses_mcp.manuals.search.candidates import Frequencies, Reader, frequencies
from responses_mcp.manuals.search.query import Word, query, stands_alone
from responses_mcp.manuals.search.ranking import TIME_BUDGET, Key, Search, rank
from responses_mcp.manuals.search.scoring import idf, in_name, most_of_translations
from responses_mcp.manuals.search.selection import spread
from responses_mcp.manuals.words import KATAKANA_WORD, alike, normalise, prepared

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.search.candidates import Row
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.scoring import Scored
    from responses_mcp.settings.model import LexicalSettings

_MOST_SCORED: Final = MOST_COMPARED  # rows of a manual; a search by words alone has fewer
_MOST_OF_A_MANUAL: Final = 60  # rows that take part in the ranking of all; more are never shown
_LOWEST_SHARE: Final = 0.25  # of the best score; what has so much is shown, however little that is
_FILE_NAME: Final = re.compile(r"\w\.(md|json)(?!\w)")
_FIRST: Final = 5  # sections, of which one should have what was asked for


@dataclass(frozen=True, slots=True)
class Ranked:
    """A section in the ranking of all manuals."""

    manual_id: str
    row: Row
    score: float


class Everywhere:
    """The rankings of manuals, added one by one, and the one of all of them."""

    def __init__(self, question: str, lexical: LexicalSettings, check: CancellationCheck) -> None:
        self.asked = query(question)
        self._question = question
        self._parts = [query(part) for part in sub_queries(question)]
        self._of_names = _FILE_NAME.findall(normalise(question))  # which say nothing if no manual has them
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
        sought = [each for asked in (self.asked, *self._parts) for each in asked.terms]
        known = frequencies(list(readers.values()), sought)
        having = dict(known.having)
        for each in sought:
            named = [reader for manual_id, reader in readers.items() if each.hits(in_name(manual_id))]
            having[each.token] = having[each.token] or sum(reader.manual.sections for reader in named)
        self.frequencies = known._replace(having=having)
        words = {word.tokens[0] for word in self.asked.words if word.text in self._of_names}
        weights = [
            (each.weight * idf(known.sections, having[each.token]), having[each.token])
            for each in self.asked.terms
            if each.token not in words and not (each.part_of and having.get(each.part_of))
        ]
        there = sum(weight for weight, count in weights if count)
        missing = sum(weight for weight, count in weights if not count)
        self._known = there / (there + 2 * missing or 1.0)  # `idf` has half of their weight
        unknown = {word.tokens[0]: self._written(word) for word in self.asked.words if self._is_unknown(word, having)}
        self.unknown = tuple(each for each in unknown.values() if each not in self._of_names)

    def _is_unknown(self, word: Word, having: Mapping[str, int]) -> bool:
        """Tell whether no manual has a word, nor a part of it; a code such as e-104 is there only as a whole."""
        if KATAKANA_WORD.fullmatch(word.text):
            return any(not having.get(token, 1) for token in word.tokens)
        if not word.is_latin and not stands_alone(word.text, self.asked.text):
            return False
        tokens = word.tokens[:1] if word.is_number else (*word.tokens, *word.parts)
        return not any(having.get(token, 1) for token in tokens)

    def _written(self, word: Word) -> str:
        """Return a word as the question has it, in lower case."""
        written = prepared(self._question)
        return next((written[begin:end].lower() for begin, end in word.places(alike(written))), word.text)

    def add(self, manual_id: str, reader: Reader, meaning: Meaning | None = None) -> bool:
        """Rank what a manual has; return whether there was time for all of it. Raises OutOfTime if for nothing."""
        search = Search(
            reader,
            (),
            self._lexical,
            _MOST_SCORED,
            self._check,
            compared=meaning is not None,
            frequencies=self.frequencies,
            manual_id=manual_id,
        )
        ranking = rank(self.asked, self._parts, search)
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
        shown = zip(order[:most], scores, strict=False)
        return [
            Ranked(manual_id, scored.row, score)
            for key, score in shown
            for manual_id, scored, _ in [self._found[key]]
            if score >= least
        ]

    def covered(self) -> float:
        """Return what part of the question one of the first sections has, by how rare its words are; 1 with meaning."""
        if not self._by_words:
            return 1.0
        return self._known * max((self._found[key][1].coverage for key in self._order()[:_FIRST]), default=1.0)

    def _order(self) -> list[Key]:
        most = most_of_translations(((key[0], found[2]) for key, found in self._found.items()), self.asked.language)
        for key, (manual_id, scored, score) in self._found.items():
            if score > most.get(key[0], score):
                self._found[key] = manual_id, scored, most[key[0]]
        return sorted(self._found, key=lambda key: (-self._found[key][2], key))
