"""How well sections fit a question: BM25 over their fields, with bonuses for coverage, phrases and the like (M4.2).

A score is the share of what a perfect section would have, so that scores of different questions and manuals compare.
What each weight is worth on questions of other people stands in docs/internals/retrieval.md.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.index.tokens import is_character
from responses_mcp.manuals.search.query import GRAMMAR, Query, RequiredTerm
from responses_mcp.manuals.search.reader import (
    Frequencies,
    Reader,
    Row,
    candidates,
    candidates_with,
    frequencies,
    in_turn,
)
from responses_mcp.manuals.words import alike, foldable, normalise
from responses_mcp.settings.model import LexicalSettings

Key = tuple[str, str, int]
"""Manual, path and heading line: what a hit is. A long section has several rows, of which the best stands for it."""

# BM25F: a text of average length counts its words once, a title more. Lengths are in characters.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE, _TITLE_B, _TITLE_LENGTH = 1.5, 0.5, 25
_ABOVE, _IN_NAME = 0.5, 0.5
_MOST_HITS: Final = 20

# The LEXICAL_* settings scale those that the contract names (M4.3); these are the values at their defaults.
_COVERAGE, _SPARSE_COVERAGE = 0.5, 0.35  # the latter is what coverage weighs whatever the setting says
_COVERED: Final = 4  # the power of coverage: most of the words count little beside all of them
_CERTAIN: Final = 8  # the power by which the best coverage of any section says how surely words name what is sought
_HEAD: Final = 0.25  # for words in the title, the headings above or the path
_ASKED: Final = 0.5  # for a title that is the question
_LIKE, _NEARLY = 4, 0.8  # the power of how far it is; what one counts that is not written so
_LITTLE_OF_TITLE: Final = 0.1  # words of grammar
_FILE, _NEXT = 0.08, 2  # of each of the two next sections of the file
_PHRASE: Final = 0.1
_AS_WRITTEN: Final = 0.4  # for words in the form that the question has, if it is certain
_CLOSE: Final = 0.15
_UNSURE: Final = 0.33  # of that, if it is not certain
_NUMBER: Final = 0.1
_COMMON: Final = 0.1  # of the sections: grammar that more of them have is not looked for
_BONUSES: Final = _HEAD + _AS_WRITTEN + _PHRASE + _CLOSE + _NUMBER

# A list of words wants a section that has them all. A sentence has words that its answer need not have, and a long text
# that has them by chance is no answer: there coverage fades, in Japanese less.
_FADES_IN_JAPANESE: Final = 0.6

# Required terms, in parts of the best score that the question gives.
_SAID: Final = 0.1  # for one that the question has, if it is certain
_DEMANDED: Final = 0.4  # for one that it lacks: enough to choose among the best
_LEAST_BEST: Final = 0.1  # which is so much at least: they are found where the question finds nothing, too
_RARE: Final = 6  # the power of how rare such a term is beside the words of the question
_WITHIN: Final = 0.03  # of one that stands within other words only
# The weights of a token that 37 % and 95 % of the sections have: the less the question tells, the more the terms count.
_TELLS, _TELLS_NOTHING = 1.0, 0.05

_NEAR, _FAR = 12, 80  # characters of tokens, for each word
_BESIDE: Final = 12
_POSITIONS: Final = 8  # of a word that closeness looks at
_REFINED: Final = 30  # rows whose phrases and distances are looked at
_MOST_OF_A_FILE: Final = 8  # candidates
_CROWDED: Final = 0.05  # of the top score, for each row that the file has already

_CHANGES: Final = re.compile(
    r"change[-_ ]?log|release[-_ ]?notes?|what'?s[-_ ]?new|breaking[-_ ]changes|リリースノート|変更履歴|更新履歴"
    r"|(?:^|/)(?:changes|history|news|releases)(?:\.[a-z]+$|/)",
    re.IGNORECASE,
)
_LISTS: Final = re.compile(r"(^|[/_-])(toc|index|目次|contents)([_-]|\.[a-z]+$)", re.IGNORECASE)
_NOISE: Final = (("list of contents", _LISTS, 0.015), ("release notes", _CHANGES, 0.15))
"""What costs a row a share of its score, unless the question asks for it."""
_LANGUAGE: Final = re.compile(
    r"(?:^|/)(ar|cs|de|en|es|fr|hu|ja|ko|nl|pl|pt|ro|ru|sv|tr|uk|vi|zh)(?:[-_][a-z]{2,4})?/"
    r"|\.(de|en|es|fr|it|ja|ko|pt|ru|zh)(?:[-_][a-z]{2,4})?\.[a-z]+$",
    re.IGNORECASE,
)
_TRANSLATED: Final = 0.05  # of the score, that a page in another language than the question's loses
_EXCEPTING: Final = ("ただし", "但し", "除外", "対象外", "を除く", "unless", "except for", "except when", "exclusion")


@dataclass(frozen=True, slots=True)
class Search:
    """What the questions of one search share. `required` are the terms that the guard left.

    At most `most` rows of a manual are scored for a question. `check` stops the search. `compared` says that meaning
    will choose among the rows.
    """

    readers: Sequence[Reader]
    lexical: LexicalSettings
    check: CancellationCheck
    most: int
    required: Sequence[RequiredTerm] = ()
    compared: bool = False


@dataclass(slots=True)
class Scored:
    """A row and its score. `parts` are its points by their names, `required` the hits of each required term."""

    row: Row
    asked: bool  # whether words of the question found it, not a required term alone
    score: float = 0.0
    bonus: float = 0.0  # for required terms; g0 does without it
    coverage: float = 0.0  # from 0 to 1: the share of the question's weight that the row has
    required: tuple[int, ...] = ()
    signals: list[str] = field(default_factory=list[str])
    parts: dict[str, float] = field(default_factory=dict[str, float])
    # Of each term that it has: its number, what BM25 makes of it, and whether title, headings or path have it.
    gains: list[tuple[int, float, bool]] = field(default_factory=list[tuple[int, float, bool]])

    @property
    def key(self) -> Key:
        """Return the section that it is of."""
        return self.row.manual, self.row.path, self.row.line

    def add(self, part: str, points: float, signal: str = "") -> None:
        """Add `points` to the score, unless they are 0."""
        if points:
            self.score += points
            self.parts[part] = self.parts.get(part, 0.0) + points
            if signal and signal not in self.signals:
                self.signals.append(signal)


@dataclass(slots=True)
class Ranking:
    """What one question finds: sections by their keys, those that its words find in their `order`, and `fused` scores.

    `having` are those with a required term, by their scores with the bonus for that. `liked` are the first as the index
    orders them. `cutoff` says why rows are missing, if any are; `late` are the manuals that there was no time for.
    `certainty` says how surely the words name what is sought, from 0 to 1: whether a section has them all. `known` is
    the part of the question that any section has, by how rare words are, and `unknown` are its words that none has.
    """

    scored: dict[Key, Scored]
    order: list[Key]
    fused: dict[Key, float]
    having: dict[Key, float]
    liked: list[Key]
    cutoff: str | None
    late: Sequence[str]
    certainty: float
    known: float
    unknown: Sequence[str]


def rank(asked: Query, search: Search) -> Ranking:
    """Rank what a question finds in the manuals of a search.

    When time runs out, those that were looked into by then are ranked. Raises OutOfTime where there are none.
    """
    readers, check = search.readers, search.check
    asked = asked.with_words(dict.fromkeys(word for reader in readers for word in reader.in_titles(asked.kana)))
    counts = frequencies(readers, asked.terms)
    scorer = _Scorer(asked, counts, search)
    scored: list[Scored] = []
    liked: list[int] = []
    cutoff: str | None = None
    late: Sequence[str] = ()
    for number, reader in enumerate(readers):
        try:
            ids = candidates(reader, asked, compared=search.compared)
            every = in_turn([ids, candidates_with(reader, search.required)])
            rows = reader.rows(every[: search.most])
            by_words = set(ids)
            looked = [scorer.look(Scored(row, row.id in by_words)) for row in rows if check() is None]
        except (OutOfTime, sqlite3.OperationalError):
            with suppress(OutOfTime):  # which is how SQLite was interrupted, perhaps
                check()
                raise
            if not number:
                raise OutOfTime from None
            late = [each.name for each in readers[number:]]
            break
        cutoff = "candidate_cap" if len(every) > search.most else cutoff
        scored += looked
        liked += ids
    scorer.score(scored)
    best = {each.row.id: each for pool in _pools(scored) for each in pool[:_REFINED]}
    for reader in () if late else readers:
        of_it = [number for number, each in best.items() if each.row.manual == reader.name]
        for number, text in reader.texts(of_it).items():
            check()
            scorer.refine(best[number], text.text)
    _lift_files(each for each in scored if each.asked)
    plain, having = map(_of_sections, _pools(scored))
    keys = {each.row.id: key for key, each in plain.items()}
    return Ranking(
        {**having, **plain},
        list(plain),
        {key: each.score for key, each in plain.items()},
        {key: each.score + (1 - each.score) * each.bonus / (1 + each.bonus) for key, each in having.items()},
        [keys[each] for each in liked if each in keys],
        cutoff,
        late,
        scorer.certainty,
        scorer.known,
        [word for word, of_it in asked.words.items() if not any(counts.having.get(each, 1) for each in of_it)],
    )


def _pools(scored: Iterable[Scored]) -> tuple[list[Scored], list[Scored]]:
    """Return the rows that words of the question find, and those that have a required term, each the best first."""
    in_order = sorted(scored, key=lambda each: (-each.score, -each.coverage, each.key))
    having = [each for each in in_order if any(each.required) and each.score + each.bonus > 0]
    plain = [each for each in in_order if each.asked and each.score > 0]
    return plain, sorted(having, key=lambda each: -each.score - each.bonus)


def _of_sections(rows: Iterable[Scored]) -> dict[Key, Scored]:
    """Return the best row of each section, of so many sections of a file."""
    best: dict[Key, Scored] = {}
    of_file: Counter[tuple[str, str]] = Counter()
    for each in rows:
        if each.key not in best and of_file[each.key[:2]] < _MOST_OF_A_FILE:
            of_file[each.key[:2]] += 1
            best[each.key] = each
    return best


class _Scorer:
    """Scores rows for one question."""

    def __init__(self, asked: Query, known: Frequencies, search: Search) -> None:
        self._asked = asked
        self._lexical = lexical = search.lexical
        weighed = [(term, term.weight * idf(known.sections, known.having[term.token])) for term in asked.terms]
        there = [each for each in weighed if known.having[each[0].token]]
        # What is little and nearly everywhere tells nothing, and takes the most time.
        common = _COMMON * known.sections
        there = [each for each in there if each[0].is_telling or known.having[each[0].token] <= common] or there
        self._terms, self._weights = [term for term, _ in there], [weight for _, weight in there]
        self._total = sum(self._weights) or 1.0
        self._tells = any(term.is_telling for term in self._terms)
        # A pair that is half grammar covers little, and a part of a name nothing, if the whole name is there.
        names = {term.token for term in self._terms}
        self._covering = [0.0 if term.part_of in names else term.weight * weight for term, weight in there]
        # What the manual does not have tells no section from another, and all of them from what was asked for.
        missing = sum(
            min(weight, self._total / max(len(there), 1)) for term, weight in weighed if term.token not in names
        )
        fades = asked.spoken * (1.0 if asked.is_latin else _FADES_IN_JAPANESE)
        self._b = min(_B * lexical.length_penalty_weight / 0.2, 1.0)
        self._average = max(known.average, 1.0)
        self._noise = [each for each in _NOISE if each[1].search(asked.text) is None]
        self._coverage = (1 - fades) * (lexical.coverage_weight + _SPARSE_COVERAGE) / (_COVERAGE + _SPARSE_COVERAGE)
        lacking = sum(weight for term, weight in weighed if not known.having[term.token] and term.part_of not in names)
        self.known = self._total / (self._total + 2 * lacking)  # `idf` has half of the weight of what none has
        self._scale = self._total / (self._total + missing) / ((2 - fades + _BONUSES) * (1 + _NEXT * _FILE))
        self.certainty = 0.0
        self._said = frozenset(asked.title.split())
        self._names = {term.token for term in self._terms if term.is_telling}
        self._required = [(each, *self._worth(each, search.readers[0])) for each in search.required]

    def _worth(self, term: RequiredTerm, reader: Reader) -> tuple[bool, float, frozenset[int]]:
        """Return whether a required term is a word of the question, what it is worth if not, and what holds it."""
        holding = frozenset(reader.holding(term))
        having = reader.having(term.match) or len(holding)
        said = self._asked.has(term)
        if said or term.is_grammar or not having:
            return said and not term.is_grammar, 0.0, holding
        telling = max(self._weights, default=0.0)
        worth = min(idf(reader.manual.sections, having) / telling, 1.0) ** _RARE if telling else 1.0
        return False, worth / min(max(telling, _TELLS_NOTHING), _TELLS) * (_WITHIN if holding else 1.0), holding

    def look(self, found: Scored) -> Scored:
        """Find the terms in a row; `score` makes scores of it."""
        row = found.row
        text, title, above = row.text_tokens, row.title_tokens, row.above_tokens
        anywhere = f"{text}{title}{above}"
        length = 1 - self._b + self._b * max(row.length, 1) / self._average
        in_title = _TITLE / (1 - _TITLE_B + _TITLE_B * len(row.title) / _TITLE_LENGTH)
        for at, term in enumerate(self._terms):
            hits, more = 0, 0.0
            if term.stands_in(anywhere):
                hits = min(term.hits(text), _MOST_HITS)
                more = in_title * term.hits(title) + _ABOVE * term.stands_in(above)
            in_part = _IN_NAME if not hits and term.in_name and term.in_name in anywhere else 0.0
            if count := hits / length + more + in_part:
                found.gains.append((at, count / (count + _K1), more > 0))
        if self._tells and not any(self._terms[at].is_telling for at, *_ in found.gains):
            found.gains.clear()  # what has nothing but the grammar of a question has nothing of it
        found.required = tuple(
            max(term.hits(text) + term.hits(title) + term.hits(above), row.id in holding)
            for term, _, _, holding in self._required
        )
        return found

    def score(self, looked: Sequence[Scored]) -> None:
        """Give scores to rows that were looked at. Those that words of the question found decide what these say."""
        covering = sum(self._covering) or 1.0
        for each in looked:
            each.coverage = sum(self._covering[at] for at, *_ in each.gains) / covering
            each.score, each.parts, each.signals = 0.0, {}, []
        best = max((each.coverage for each in looked if each.asked), default=0.0)
        self.certainty = best**_CERTAIN
        scale = self._scale
        for each in looked:
            row = each.row
            each.add("tf-idf", scale * sum(self._weights[at] * gain for at, gain, _ in each.gains) / self._total)
            each.add("coverage", scale * self._coverage * best * each.coverage**_COVERED)
            head = sum(self._weights[at] for at, _, in_head in each.gains if in_head) / self._total
            each.add("head", scale * _HEAD * head, "anchor")
            for name, share in self._losses(row):
                each.add(name, -share * each.score)
            if likeness := self._likeness(row):
                each.add("title", max(1 - each.score, 0.0) * _ASKED * likeness, "exact" if likeness == 1 else "")
        top = max([_LEAST_BEST, *(each.score for each in looked if each.asked)])
        for each in looked:
            for hits, (_, said, worth, _) in zip(each.required, self._required, strict=True):
                points = _SAID * scale * self.certainty if said else _DEMANDED * top * worth
                each.bonus += points * hits / (hits + _K1)

    def _losses(self, row: Row) -> Iterator[tuple[str, float]]:
        """Yield what costs a row a share of its score."""
        for name, pattern, share in self._noise:
            if pattern.search(row.path) or pattern.search(row.title):
                yield name, share
        language = _LANGUAGE.search(f"{row.manual}/{row.path}")
        if language and self._asked.language not in ("", (language[1] or language[2]).lower()):
            yield "translation", _TRANSLATED

    def _likeness(self, row: Row) -> float:
        """Return how far the title of a row is the question, from 0 to 1: what each has that the other has, too."""
        said = row.title_tokens.split()
        if self._said.isdisjoint(said):
            return 0.0
        weights = [1.0 if token in self._names or not _is_little(token) else _LITTLE_OF_TITLE for token in said]
        of_title = sum(weight for token, weight in zip(said, weights, strict=True) if token in self._said)
        if 2 * of_title <= sum(weights):
            return 0.0
        of_asked = sum(
            weight
            for term, weight in zip(self._terms, self._weights, strict=True)
            if term.stands_in(row.title_tokens) or (term.in_name and term.in_name in row.title_tokens)
        )
        written = foldable(normalise(shown_title(row.title)))
        form = 1.0 if written in self._asked.text else _NEARLY
        return form * (of_title / sum(weights) * of_asked / self._total) ** _LIKE

    def refine(self, found: Scored, text: str) -> None:
        """Add what phrases, words as they are written, closeness and numbers beside their words are worth."""
        asked, lexical, scale = self._asked, self._lexical, self._scale
        body = foldable(alike(f"{found.row.title}\n{text}").lower()).replace("\n", " ")
        phrases = sum(phrase in body for phrase in asked.phrases) / max(len(asked.phrases), 1)
        found.add("phrase", scale * _PHRASE * lexical.phrase_weight / 0.5 * phrases, "phrase")
        as_written = sum(word in body for word in asked.words) / max(len(asked.words), 1)
        found.add("as written", scale * _AS_WRITTEN * self.certainty * as_written)
        sought = [term for term in self._terms if term.is_telling and not term.part_of] or self._terms
        placed = f"{found.row.title_tokens}{found.row.text_tokens}"
        places = sorted((at, term.token) for term in sought for at in _places(placed, term.needles))
        there = {token for _, token in places}
        if len(there) > 1:
            span = _narrowest(places, len(there)) / len(there)
            bonus = lexical.proximity_bonus_near * (span <= _NEAR) + lexical.proximity_bonus_far
            closeness = len(there) / len(sought) / (1 + span / _NEAR)
            weight = _CLOSE * (_UNSURE + (1 - _UNSURE) * self.certainty)
            found.add("proximity", scale * weight / 1.5 * bonus * closeness, "proximity" if span <= _FAR else "")
        neighbours = (
            (one, other) for (at, one), (to, other) in pairwise(places) if to - at <= _BESIDE and one != other
        )
        near = set(chain.from_iterable(neighbours))
        numbers = [term.token for term in sought if any(map(str.isdigit, term.token))]
        beside = len(near.intersection(numbers)) / max(len(numbers), 1)
        found.add("number in context", scale * _NUMBER * lexical.number_context_bonus / 0.8 * beside, "number_context")
        if places and len(there) == len(sought):
            found.signals.insert(0, "exact")
        if any(word in body for word in _EXCEPTING):
            found.signals.append("exceptions")


def _is_little(token: str) -> bool:
    return token in GRAMMAR or is_character(token)


def _places(padded: str, needles: Iterable[str]) -> list[int]:
    """Return the first places of a term in the tokens of a row."""
    found: list[int] = []
    for needle in needles:
        at = padded.find(needle)
        while at >= 0 and len(found) < _POSITIONS:
            found.append(at)
            at = padded.find(needle, at + 1)
    return found


def _narrowest(places: Sequence[tuple[int, str]], many: int) -> int:
    """Return the width of the narrowest stretch that holds a place of each of so many terms; places are in order."""
    last: dict[str, int] = {}
    best = places[-1][0] - places[0][0]
    for at, token in places:
        last[token] = at
        if len(last) == many:
            best = min(best, at - min(last.values()))
    return best


def _lift_files(rows: Iterable[Scored]) -> None:
    """Let the best section of each file gain by the next ones: who finds several wants the page."""
    files = defaultdict[tuple[str, str], dict[int, Scored]](dict)
    for each in sorted(rows, key=lambda each: (each.score, -each.row.line)):
        sections = files[each.row.manual, each.row.path]
        sections.pop(each.row.line, None)
        sections[each.row.line] = each
    for sections in files.values():
        *others, first = sections.values()
        first.add("file", _FILE * sum(each.score for each in others[-_NEXT:]))


def spread(ranking: Sequence[Key], scores: Mapping[Key, float], most: int) -> list[tuple[Key, float]]:
    """Return the first `most` keys with scores, such that no file crowds out others: each row dampens its file's next.

    The scores that are returned never rise, and are from 0 to 1.
    """
    step = _CROWDED * max((scores[key] for key in ranking), default=0.0)
    of_file: Counter[tuple[str, str]] = Counter()
    sunk: list[tuple[Key, float]] = []
    for key in ranking:  # the best first
        sunk.append((key, min(max(scores[key] - step * of_file[key[:2]], 0.0), 1.0)))  # weights set high go beyond 1
        of_file[key[:2]] += 1
    return sorted(sunk, key=lambda each: -each[1])[:most]


def idf(documents: int, having: int) -> float:
    """Return the weight of a term that `having` of so many documents have; an unknown one weighs half of the rarest."""
    if not having:
        return math.log(1 + (documents + 0.5) / 0.5) / 2
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))
