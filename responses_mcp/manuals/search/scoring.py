"""How well a section fits a query: idf × tf, bonuses for coverage, phrases, closeness and the like (M4.2).

Everything is relative to the weight of the query's terms, so that scores of different queries compare. The weights were
set on known questions. They hardly matter one by one: halving or doubling one moves the quality by a percent or two.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, pairwise
from typing import Final

from responses_mcp.manuals.search.query import RequiredTerm, Term, as_written, longest_parts
from responses_mcp.manuals.words import foldable, normalise
from responses_mcp.settings.model import LexicalSettings

_K1: Final = 1.2
_B: Final = 0.75
_MOST_HITS: Final = 20
_LONG: Final = 3000  # characters; longer sections match by chance
_SHORT: Final = 200
_NEAR, _FAR = 40, 80  # characters
_BESIDE: Final = 12
_POSITIONS: Final = 8  # of a term that closeness looks at

# The LEXICAL_* settings scale those that the contract names (M4.3); these are the values at their defaults.
_COVERAGE: Final = 3.5
_SPARSE_COVERAGE: Final = 0.35  # what coverage weighs whatever the setting says
_TITLE: Final = 0.2
_ABOVE: Final = 0.3
_PATH: Final = 0.3
_WHOLE: Final = 0.3
_REQUIRED: Final = 1.6
_REQUIRED_TITLE: Final = 0.2
_PHRASE: Final = 0.5
_CLOSE: Final = 0.3
_SUBSTANCE: Final = 1.0
_NUMBER: Final = 0.3
_CODE: Final = 0.2
_DEFINITION: Final = 0.3
_NOISE: Final = 0.05
_PARTIAL: Final = 0.5  # of a compound word of which only parts are there

_MOST_FOLDED: Final = 4096  # titles and paths kept as they are searched

_LISTS: Final = re.compile(r"(^|[/_-])(toc|index|目次|contents)([_-]|\.[a-z]+$)", re.IGNORECASE)
_DEFINING: Final = re.compile(r"とは|って何|\bwhat (is|are)\b|\bdefin|定義|意味")

_EXCEPTING: Final = ("ただし", "但し", "除外", "対象外", "を除く", "unless", "except for", "except when", "exclusion")


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a section as the index has it: `title` and `above` as written, `body` folded, `text` normalised."""

    id: int
    path: str
    line: int
    title: str
    above: str
    body: str
    text: str = ""


@dataclass(slots=True)
class Scored:
    """A row and its score. `parts` are the points by their names, `required` the hits of each required term.

    `matched` are the terms that it holds, also only in parts.
    """

    row: Row
    title: str  # folded
    score: float = 0.0
    bonus: float = 0.0  # for required terms; g0 does without it
    coverage: float = 0.0  # from 0 to 1: the share of the query's weight that the row holds
    hits: dict[str, int] = field(default_factory=dict[str, int])
    matched: list[Term] = field(default_factory=list[Term])
    required: tuple[int, ...] = ()
    signals: list[str] = field(default_factory=list[str])
    parts: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    def add(self, part: str, points: float, signal: str = "") -> None:
        """Add `points` to the score, unless they are 0."""
        if points:
            self.score += points
            self.parts.append((part, points))
            if signal and signal not in self.signals:
                self.signals.append(signal)


class Scorer:
    """Scores rows for one query. `terms` come with their weights; `average` is the length of a body, in characters."""

    def __init__(
        self,
        query: str,
        terms: Sequence[tuple[Term, float]],
        required: Sequence[RequiredTerm],
        lexical: LexicalSettings,
        *,
        average: float,
    ) -> None:
        self._query = foldable(normalise(query))
        self._terms = terms
        self._total = sum(weight for _, weight in terms) or 1.0
        self._required = required
        self._average = max(average, 1.0)
        self._lexical = lexical
        self._coverage = _COVERAGE * (lexical.coverage_weight + _SPARSE_COVERAGE) / 0.85
        self._defining = _DEFINING.search(self._query) is not None
        self._phrases = [self._between(*pair) for pair in pairwise(term for term, _ in terms)]

    def _between(self, first: Term, second: Term) -> str:
        """Return the query from one term to the next: a phrase, if a text has it too."""
        start = self._query.find(first.text)
        end = self._query.find(second.text, start + len(first.text))
        return self._query[start : end + len(second.text)] if start >= 0 and end >= 0 else first.text + second.text

    def score(self, row: Row) -> Scored:
        """Score a row by what is quick to find out."""
        title, above, path = _folded(row.title), _folded(row.above), _folded(row.path).rpartition(".")[0]
        head = f"{title}\n{above}\n{path}"
        body = row.body
        length = len(body)
        found = Scored(row, title)
        base = covered = in_title = in_above = in_path = whole = 0.0
        stretch = _K1 * (1 - _B + _B * min(length, _LONG + 1000) / self._average)
        for term, weight in self._terms:
            share = 1.0
            hits = min(term.hits(body), _MOST_HITS)
            count = float(hits)
            seen = hits
            if term.root in head:
                title_hits, above_hits, path_hits = term.hits(title), term.hits(above), term.hits(path)
                count += 2 * bool(title_hits) + 0.5 * bool(above_hits) + 0.5 * bool(path_hits)
                seen += title_hits + above_hits + path_hits
                in_title += weight * bool(title_hits)
                in_above += weight * bool(above_hits)
                in_path += weight * bool(path_hits)
            if not count and term.pattern is None and len(term.tokens) > 1:
                share = sum(part in body or part in title for part in term.tokens) / len(term.tokens) * _PARTIAL
                count = share
            if not count:
                continue
            found.matched.append(term)
            if seen:
                found.hits[term.text] = seen
                if term.pattern is None or term.text in body or term.text in title:
                    whole += weight
            base += weight * count * (_K1 + 1) / (count + stretch)
            covered += weight * share
        total = self._total
        found.coverage = covered / total
        found.add("tf-idf", base / total / (_K1 + 1))
        found.add("coverage", self._coverage * found.coverage)
        found.add("title", _TITLE * in_title / total, "anchor")
        found.add("above", _ABOVE * in_above / total)
        found.add("path", _PATH * in_path / total)
        found.add("whole words", _WHOLE * whole / total)
        found.add("substance", _SUBSTANCE * min(length, _SHORT) / _SHORT)
        if self._defining:
            found.add("definition", _DEFINITION * in_title / total, "definition_title")
        if length > _LONG:
            found.add("length", -self._lexical.length_penalty_weight * min(length / _LONG - 1, 4.0))
        if _LISTS.search(row.path):
            found.add("list of contents", -_NOISE)
        if self._required:
            self._score_required(found, f"{above}\n{path}")
        return found

    def _score_required(self, found: Scored, around: str) -> None:
        bonus = 0.0
        counts: list[int] = []
        for required in self._required:
            hits, title_hits = required.hits(found.row.body), required.hits(found.title)
            around_hits = required.hits(around)
            counts.append(hits + title_hits + around_hits)
            bonus += _REQUIRED if hits or title_hits else _REQUIRED * 0.6 * bool(around_hits)
            bonus += _REQUIRED_TITLE * bool(title_hits)
        found.required = tuple(counts)
        found.bonus = bonus / len(counts)

    def refine(self, found: Scored) -> None:
        """Add what takes longer to find out: phrases, closeness, numbers beside their words, codes."""
        body, lexical = f"{found.title}\n{found.row.body}", self._lexical
        if self._phrases:
            phrases = sum(phrase in body for phrase in self._phrases) / len(self._phrases)
            found.add("phrase", _PHRASE * lexical.phrase_weight / 0.5 * phrases, "phrase")
        places = {
            term.text: where
            for term, _ in self._terms
            if term.text in found.hits and (where := [at for at, _ in islice(term.places(body), _POSITIONS)])
        }
        if len(places) > 1:
            span = _narrowest(list(places.values())) / len(places)
            bonus = lexical.proximity_bonus_near * (span <= _NEAR / 2) + lexical.proximity_bonus_far
            closeness = len(places) / len(self._terms) / (1 + span / 20)
            found.add("proximity", _CLOSE / 1.5 * bonus * closeness, "proximity" if span <= _FAR else "")
        for term, weight in self._terms:
            here = places.get(term.text)
            if here is None or not term.is_number:
                continue
            if not term.text.isdigit():
                found.add("code", _CODE * weight / self._total, "code_exact")
            near = (other for text, where in places.items() if text != term.text for other in where)
            if any(-_BESIDE <= other - mine <= _BESIDE for other in near for mine in here):
                found.add("number in context", _NUMBER * lexical.number_context_bonus / 0.8, "number_context")
        if found.hits and len(found.hits) == len(self._terms):
            found.signals.insert(0, "exact")
        if any(word in body for word in _EXCEPTING):
            found.signals.append("exceptions")


def words_of(found: Scored) -> dict[str, int]:
    """Return the words of the query as they stand in a row, and how often: most often first.

    They are normalised. Of a compound of which only parts are there, it is the parts.
    """
    row = found.row
    texts = [row.text or row.body, *map(normalise, (row.title, row.above, row.path.rpartition(".")[0]))]
    counts: Counter[str] = Counter()
    for term in found.matched:
        if term.text in found.hits:
            counts.update(chain.from_iterable(map(term.words, texts)))
            continue
        for part in longest_parts(term.text, f"{row.body}\n{found.title}"):
            counts.update(chain.from_iterable(as_written(part, text) for text in texts))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def idf(documents: int, having: int) -> float:
    """Return the weight of a term that `having` of so many documents have; an unknown one weighs half of the rarest."""
    if not having:
        return (math.log(documents + 1) + 1) / 2
    return math.log((documents + 1) / (having + 1)) + 1


@lru_cache(maxsize=_MOST_FOLDED)
def _folded(text: str) -> str:
    return foldable(normalise(text))


def _narrowest(places: list[list[int]]) -> int:
    """Return the width of the narrowest stretch that holds a place of each list."""
    events = sorted((at, which) for which, where in enumerate(places) for at in where)
    last: dict[int, int] = {}
    best = events[-1][0] - events[0][0]
    for at, which in events:
        last[which] = at
        if len(last) == len(places):
            best = min(best, at - min(last.values()))
    return best
