"""How well a section fits a query: BM25 over its fields, with bonuses for coverage, phrases and the like (M4.2).

A score is the share of what a perfect section would have, so that scores of different queries and manuals compare. What
each weight is worth on questions of other people stands in docs/retrieval.md.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final

from responses_mcp.manuals.search.query import (
    RequiredTerm,
    Term,
    as_written,
    is_grammar,
    longest_parts,
    other_spellings,
)
from responses_mcp.manuals.words import foldable, normalise, runs
from responses_mcp.settings.model import LexicalSettings

# BM25F: a text of average length counts its words once, a title twice. Lengths are in characters.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE, _TITLE_B, _TITLE_LENGTH = 1.5, 0.5, 25
_ABOVE, _PATH, _NAMES = 0.5, 0.5, 0.5
_SHORTEST: Final = 450  # what is shorter counts as so long; Japanese says as much in a third of it
_MOST_HITS: Final = 20

# The LEXICAL_* settings scale those that the contract names (M4.3); these are the values at their defaults.
_COVERAGE: Final = 1.0
_SPARSE_COVERAGE: Final = 0.35  # what coverage weighs whatever the setting says
_COVERED: Final = 4  # the power of coverage: most of the words count little beside all of them
# The best coverage of any section counts, too: a question that nothing covers asks for meaning.
_CERTAIN: Final = 8  # the power by which that says how surely the words name what is sought
_HEAD: Final = 0.25  # for words in the title, the headings above or the path
_REQUIRED: Final = 0.05  # for required terms that the query has, if it is certain
_DEMANDED: Final = 0.4  # of the best score by the query, for those that it lacks: enough to choose among the best
_LEAST_BEST: Final = 0.1  # which is so much at least: they are found where the query finds nothing, too
# The weights of a word that 37 % and 95 % of the sections have: the less the query tells, the more the terms count.
_TELLS, _TELLS_NOTHING = 1.0, 0.05
_WITHIN: Final = 0.1  # of one that stands within another word
_FORM: Final = 0.5  # of `_REQUIRED`, for one in another form
_FILE: Final = 0.08  # of each of the two next sections of the file
_NEXT: Final = 2
_PHRASE: Final = 0.1
_AS_WRITTEN: Final = 0.3  # for words in the form that the query has, if it is certain
_CLOSE: Final = 0.15
_UNSURE: Final = 0.33  # of that, if it is not certain
_NUMBER: Final = 0.1
_CODE: Final = 0.05
_DEFINITION: Final = 0.1
_NOISE: Final = 0.02
_BONUSES: Final = _HEAD + _AS_WRITTEN + _PHRASE + _CLOSE + _NUMBER + _CODE + _DEFINITION

# A list of words wants a section that has them all. A sentence has words that its answer need not have, and a long text
# that has them by chance is no answer: there coverage fades, and length counts for more.
_LISTED, _SPOKEN = 0.1, 0.25  # the part of the words that are grammar
_FEW_GRAMMAR, _MANY_GRAMMAR = 1, 3  # and how many: a list may begin with "how to"
_FADES, _FADES_IN_JAPANESE = 0.8, 0.6  # of coverage
_SPOKEN_B, _SPOKEN_B_IN_JAPANESE = 0.3, 0.15  # more of `_B`
_SAID_GRAMMAR: Final = 2  # words of it, with which a short text counts as being as short as it is

# In a long question of prose, a word that the best sections do not have says little, however rare it is.
_FEEDBACK: Final = 0.5
_FEEDBACK_ROWS: Final = 5
_FEW_WORDS, _MANY_WORDS = 4, 8
# And what the best sections share may be what was meant. Code shares its language's words, whatever it is about.
_PROSE, _CODE_TEXT = 0.02, 0.04  # the part of the characters that are marks of code
_MARKS_OF_CODE: Final = "(){}[]=;_"
_EXPANSION: Final = 0.25  # of what BM25 makes of the words, if it is not certain
_LONG, _VERY_LONG = 6, 10  # words

_NEAR, _FAR = 40, 80  # characters
_BESIDE: Final = 12
_POSITIONS: Final = 8  # of a word that closeness looks at

_MOST_FOLDED: Final = 4096  # titles and paths kept as they are searched

_LISTS: Final = re.compile(r"(^|[/_-])(toc|index|目次|contents)([_-]|\.[a-z]+$)", re.IGNORECASE)
_DEFINING: Final = re.compile(r"とは|って何|\bwhat (is|are)\b|\bdefin|定義|意味")

_EXCEPTING: Final = ("ただし", "但し", "除外", "対象外", "を除く", "unless", "except for", "except when", "exclusion")


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a section as the index has it: `title` and `above` as written, `body` folded, `text` normalised.

    `names` are the parts of names in it, with spaces between.
    """

    id: int
    path: str
    line: int
    title: str
    above: str
    body: str
    text: str = ""
    names: str = ""


@dataclass(slots=True)
class Scored:
    """A row and its score. `parts` are the points by their names, `required` the hits of each required term."""

    row: Row
    title: str  # folded
    score: float = 0.0
    bonus: float = 0.0  # for required terms; g0 does without it
    gained: float = 0.0  # what BM25 makes of it, from 0 to 1
    coverage: float = 0.0  # from 0 to 1: the share of the query's weight that the row holds
    required: tuple[int, ...] = ()
    has_required: float = 0.0  # how many of them; one in another form is less than one
    asked_for: float = 0.0  # what BM25 makes of those that the query does not have, for what they tell
    signals: list[str] = field(default_factory=list[str])
    parts: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    # Of each term: what BM25 makes of its hits, and at the average length; whether title, headings or path have it.
    gains: list[float] = field(default_factory=list[float])
    at_average: list[float] = field(default_factory=list[float])
    heads: list[bool] = field(default_factory=list[bool])

    def add(self, part: str, points: float, signal: str = "") -> None:
        """Add `points` to the score, unless they are 0."""
        if points:
            self.score += points
            self.parts.append((part, points))
            if signal and signal not in self.signals:
                self.signals.append(signal)


class Scorer:
    """Scores rows for one query.

    `words` are those that a reader sees in it, `terms` what is counted, with what each is worth and whether the manual
    has it at all. Each `required` term has how far it counts that a row has it, and how far that lifts the row beside
    what the query says, both from 0 to 1. `average` is the length of a body, in characters. The words of `manual_id`
    count as those of every path.
    """

    def __init__(
        self,
        query: str,
        words: Sequence[Term],
        terms: Sequence[tuple[Term, float, bool]],
        required: Sequence[tuple[RequiredTerm, float, float]],
        lexical: LexicalSettings,
        *,
        average: float,
        manual_id: str = "",
    ) -> None:
        self._query = foldable(normalise(query))
        self._words = words
        said = runs(self._query)
        grammar = sum(map(is_grammar, said))
        spoken = _part(grammar, _FEW_GRAMMAR, _MANY_GRAMMAR) * _part(grammar / max(len(said), 1), _LISTED, _SPOKEN)
        in_words = self._query.isascii()
        fades = spoken * (_FADES if in_words else _FADES_IN_JAPANESE)
        more_b = spoken * (_SPOKEN_B if in_words else _SPOKEN_B_IN_JAPANESE)
        self._terms = [term for term, _, there in terms if there]
        self._weights = [weight for _, weight, there in terms if there]
        self._telling = self._telling_words()
        # What the manual does not have tells no section from another, and all of them from what was asked for.
        usual = sum(self._weights) / max(len(self._weights), 1)
        missing = sum(min(weight, usual) for _, weight, there in terms if not there)
        self._there = sum(self._weights) / ((sum(self._weights) + missing) or 1.0)
        known = {term.text for term in self._terms}
        # Pairs that are half grammar cover little, and a part of a name nothing, if the whole name is there.
        self._covering = [0.0 if term.part_of in known - {term.text} else term.weight for term in self._terms]
        self._required = required
        self._average = max(average, 1.0)
        self._name = in_name(manual_id)
        self._shortest = min(_SHORTEST, self._average) * (1 - in_words * _part(grammar, 0, _SAID_GRAMMAR))
        self._lexical = lexical
        self._numbers = sum(word.is_number for word in words)
        self.certainty = 0.0  # how surely the words name what is sought, from 0 to 1: whether a section has them all
        self._b = min((_B + more_b) * lexical.length_penalty_weight / 0.2, 1.0)
        self._coverage = (1 - fades) * _COVERAGE * (lexical.coverage_weight + _SPARSE_COVERAGE) / 0.85
        self._perfect = (1 + (1 - fades) * _COVERAGE + _BONUSES) * (1 + _NEXT * _FILE)
        self._feeds_back = 1.0  # how far the best sections are prose, from which something can be learnt
        self._defining = _DEFINING.search(self._query) is not None
        self._phrases = [self._between(*pair) for pair in pairwise(words)]

    def _between(self, first: Term, second: Term) -> str:
        """Return the query from one word to the next: a phrase, if a text has it too."""
        start = self._query.find(first.text)
        end = self._query.find(second.text, start + len(first.text))
        return self._query[start : end + len(second.text)] if start >= 0 and end >= 0 else first.text + second.text

    def look(self, row: Row) -> Scored:
        """Find the terms in a row; `score` makes scores of it."""
        title, above, path = _folded(row.title), _folded(row.above), _folded(row.path).rpartition(".")[0]
        if self._name:
            path = f"{self._name}/{path}"
        head = f"{title}\n{above}\n{path}"
        body, names = row.body, row.names
        found = Scored(row, title)
        length = self._length(body)
        in_title = _TITLE / (1 - _TITLE_B + _TITLE_B * len(title) / _TITLE_LENGTH)
        found.gains, found.at_average = [0.0] * len(self._terms), [0.0] * len(self._terms)
        found.heads = [False] * len(self._terms)
        for at, term in enumerate(self._terms):
            root = term.root
            hits, more = min(term.hits(body), _MOST_HITS) if root in body else 0, 0.0
            if root in head:
                title_hits, above_hits, path_hits = term.hits(title), term.hits(above), term.hits(path)
                more = in_title * title_hits + _ABOVE * bool(above_hits) + _PATH * bool(path_hits)
                found.heads[at] = more > 0
            if not hits and root in names:
                more += _NAMES * bool(term.hits(names))
            if hits or more:
                count = hits / length + more
                found.gains[at] = count / (count + _K1)
                found.at_average[at] = (hits + more) / (hits + more + _K1)
        if self._required:
            self._look_for_required(found, f"{above}\n{path}", length)
        return found

    def _look_for_required(self, found: Scored, around: str, length: float) -> None:
        counts: list[int] = []
        for required, counting, lifting in self._required:
            hits, more = required.hits(found.row.body), required.hits(found.title) + required.hits(around)
            counts.append(hits + more)
            first = required.spellings[0].text if required.spellings else None
            as_written = first is not None and (first in found.title or first in found.row.body)
            found.has_required += counting * (bool(hits + more) * _FORM + bool(as_written) * (1 - _FORM))
            if lifting and (hits or more):
                count = min(_alone(required, found.row.body), _MOST_HITS) / length
                count += min(_alone(required, f"{found.title}\n{around}"), 1)
                found.asked_for += lifting * count / (count + _K1)
        found.required = tuple(counts)

    def score(self, looked: Sequence[Scored], asked: Sequence[Scored]) -> None:
        """Give scores to rows that were looked at. Those `asked` for by the words of the query decide what words say.

        `certainty` is known after that.
        """
        weights = self._weights
        if share := _FEEDBACK * _part(self._telling, _FEW_WORDS, _MANY_WORDS):
            self._weigh(asked, weights, self._cover(asked, weights))
            top = sorted(asked, key=lambda each: -each.score)[:_FEEDBACK_ROWS]
            text = "".join(each.row.body for each in top)
            marks = sum(map(text.count, _MARKS_OF_CODE)) / max(len(text), 1)
            self._feeds_back = 1 - _part(marks, _PROSE, _CODE_TEXT)
            share *= self._feeds_back
            seen = [sum(each.gains[at] for each in top) for at in range(len(weights))]
            most = max(seen, default=0.0) or 1.0
            weights = [
                weight * (1 - share + share * there / most) if term.pattern is not None else weight
                for term, weight, there in zip(self._terms, weights, seen, strict=True)
            ]
        best = self._cover(asked, weights)
        self._cover(looked, weights)
        self._weigh(looked, weights, best)
        # A term that no row has takes nothing from the others, nor one that lifts nothing from those that do.
        held = [any(each) for each in zip(*(each.required for each in looked), strict=True)]
        there = sum(held) or 1
        lifting = sum(has and share > 0 for has, (*_, share) in zip(held, self._required, strict=False)) or 1
        scale = self._there / self._perfect
        lift = _DEMANDED * max([_LEAST_BEST, *(each.score for each in asked)])
        lift *= _TELLS / min(max([_TELLS_NOTHING, *self._weights]), _TELLS)
        self.certainty = best**_CERTAIN
        for each in looked:
            each.bonus = scale * _REQUIRED * self.certainty * each.has_required / there
            each.bonus += lift * each.asked_for / lifting

    @property
    def prose(self) -> float:
        """Return how far this is a long question of prose that no section answers word by word, from 0 to 1."""
        return _part(self._telling, _LONG, _VERY_LONG) * (1 - self.certainty) * self._feeds_back

    def expand(self, looked: Iterable[Scored], related: Sequence[tuple[Term, float]]) -> None:
        """Let the words count that are `related` to the question, each for its share, in rows that have scores."""
        weight = self._there / self._perfect * _EXPANSION * self.prose
        for each in looked:
            body = each.row.body
            length = self._length(body)
            counts = ((share, min(term.hits(body), _MOST_HITS) / length) for term, share in related)
            gained = sum(share * count / (count + _K1) for share, count in counts)
            each.add("related", weight * (gained - each.gained))

    def _telling_words(self) -> float:
        """Return how many words in an alphabet tell what is asked for: fewer, if some tell much more than others."""
        weights = [weight for term, weight in zip(self._terms, self._weights, strict=True) if term.pattern is not None]
        if not weights:
            return 0.0
        return sum(weights) ** 2 / sum(weight**2 for weight in weights) * sum(weights) / sum(self._weights)

    def _length(self, body: str) -> float:
        """Return by what BM25 divides the hits in a body: 1 in one of average length."""
        long = max(len(body), self._shortest / (1 if body.isascii() else 3), 1)
        return 1 - self._b + self._b * long / self._average

    def _cover(self, rows: Sequence[Scored], weights: Sequence[float]) -> float:
        """Find the coverage of rows by so much for each term; return the best."""
        covering = [weight * share for weight, share in zip(weights, self._covering, strict=True)]
        all_covering = sum(covering) or 1.0
        for each in rows:
            covered = sum(weight for weight, gain in zip(covering, each.gains, strict=True) if gain)
            each.coverage = covered / all_covering
        return max((each.coverage for each in rows), default=0.0)

    def _weigh(self, rows: Sequence[Scored], weights: Sequence[float], best: float) -> None:
        """Score rows anew by so much for each term, where the best coverage of any row is `best`."""
        total = sum(weights) or 1.0
        scale = self._there / self._perfect
        for each in rows:
            each.score, each.parts, each.signals = 0.0, [], []
            plain = sum(map(float.__mul__, weights, each.at_average)) / total
            each.gained = sum(map(float.__mul__, weights, each.gains)) / total
            head = sum(weight for weight, there in zip(weights, each.heads, strict=True) if there) / total
            each.add("tf-idf", scale * plain)
            each.add("length", scale * (each.gained - plain))
            each.add("coverage", scale * self._coverage * best * each.coverage**_COVERED)
            each.add("head", scale * _HEAD * head, "anchor")
            if self._defining:
                each.add("definition", scale * _DEFINITION * head, "definition_title")
            if _LISTS.search(each.row.path):
                each.add("list of contents", -scale * _NOISE)

    def refine(self, found: Scored) -> None:
        """Add what takes longer to find out: phrases, closeness, numbers beside their words, codes."""
        body, lexical, scale = f"{found.title}\n{found.row.body}", self._lexical, self._there / self._perfect
        if self._phrases:
            phrases = sum(phrase in body for phrase in self._phrases) / len(self._phrases)
            found.add("phrase", scale * _PHRASE * lexical.phrase_weight / 0.5 * phrases, "phrase")
        if self._words:
            as_written = sum(word.text in body for word in self._words) / len(self._words)
            found.add("as written", scale * _AS_WRITTEN * self.certainty * as_written)
        places = {
            word.text: where
            for word in self._words
            if (where := [at for at, _ in islice(word.places(body), _POSITIONS)])
        }
        if len(places) > 1:
            span = _narrowest(list(places.values())) / len(places)
            bonus = lexical.proximity_bonus_near * (span <= _NEAR / 2) + lexical.proximity_bonus_far
            closeness = len(places) / len(self._words) / (1 + span / 20)
            weight = _CLOSE * (_UNSURE + (1 - _UNSURE) * self.certainty)
            found.add("proximity", scale * weight / 1.5 * bonus * closeness, "proximity" if span <= _FAR else "")
        for word in self._words:
            here = places.get(word.text)
            if here is None or not word.is_number:
                continue
            if not word.text.isdigit():
                found.add("code", scale * _CODE / len(self._words), "code_exact")
            near = (other for text, where in places.items() if text != word.text for other in where)
            if any(-_BESIDE <= other - mine <= _BESIDE for other in near for mine in here):
                weight = _NUMBER * lexical.number_context_bonus / 0.8
                found.add("number in context", scale * weight / self._numbers, "number_context")
        if places and len(places) == len(self._words):
            found.signals.insert(0, "exact")
        if any(word in body for word in _EXCEPTING):
            found.signals.append("exceptions")


def _alone(required: RequiredTerm, text: str) -> float:
    """Count where a required term stands in a text; within other words, where it is not as rare, it counts little."""
    hits = required.hits(text)
    if not hits or required.literal:
        return hits
    return max(*(len(each.words(text)) for each in required.spellings), _WITHIN * hits)


def lift_files(rows: Iterable[Scored]) -> None:
    """Let the best section of each file gain by the next ones: who finds several wants the page."""
    files = defaultdict[str, dict[int, Scored]](dict)
    for each in rows:
        sections = files[each.row.path]
        if each.row.line not in sections or sections[each.row.line].score < each.score:
            sections[each.row.line] = each
    for sections in files.values():
        first, *others = sorted(sections.values(), key=lambda each: (-each.score, each.row.line))
        first.add("file", _FILE * sum(each.score for each in others[:_NEXT]))


def words_of(found: Scored, words: Sequence[Term]) -> dict[str, int]:
    """Return the words of the query as they stand in a row, and how often: most often first.

    They are normalised. Of a compound of which only parts are there, it is the parts.
    """
    row = found.row
    heads = (row.title, row.above, row.path.rpartition(".")[0])
    texts = [row.text or row.body, *map(_normalised, heads)]
    anywhere = "\n".join((row.body, *map(_folded, heads)))
    counts: Counter[str] = Counter()
    for word in words:
        standing = [each for text in texts for each in word.words(text)] if word.root in anywhere else []
        if not standing and word.pattern is None:
            parts = longest_parts(word.text, anywhere)
            standing = [each for part in parts for text in texts for each in as_written(part, text)]
        counts.update(standing)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def sought_in(
    found: Scored,
    words: Sequence[Term],
    asked: Sequence[Term],
    required: Sequence[RequiredTerm],
    matched: Mapping[str, int],
) -> dict[str, int]:
    """Return what shows where in a row the match is, and how often it stands there.

    That is the words that `matched`, as `words_of` has them, and the required terms that the row has. Of a word that
    its text lacks it is what was `asked` for beside it: its other spellings and its relatives, or, where nothing
    matched and its heading has it neither, its parts. Where it has none of them, it is the words that are parts of
    names in it.
    """
    sought = dict(matched)
    text, title = found.row.text or found.row.body, _normalised(found.row.title)
    for word in words:
        if not word.is_in_letters or word.words(text):
            continue
        of_it = [each for each in asked if word.text in (each.text, each.part_of)]
        alike = (word.text, *other_spellings(word.text))
        spelled = [there for each in of_it if each.text in alike for there in each.words(text)]
        if not spelled and (matched or any(each.words(title) for each in (word, *of_it) if each.text in alike)):
            continue  # a part says less than any other word
        for there in spelled or [part for each in of_it for part in each.words(text)]:
            sought[there] = sought.get(there, 0) + (there not in matched)
    terms = [each for term, has in zip(required, found.required, strict=False) if has for each in term.spellings]
    for term in terms or ([] if sought else words):
        root = term.text if term.pattern is None else term.root
        for standing in term.words(text) or [each for each in (term.text, root) if each in text][:1]:
            if standing not in matched:
                sought[standing] = sought.get(standing, 0) + 1
    return sought


def _part(number: float, least: float, most: float) -> float:
    """Return where a number lies between two others, from 0 to 1."""
    return min(max((number - least) / (most - least), 0.0), 1.0)


def idf(documents: int, having: int) -> float:
    """Return the weight of a term that `having` of so many documents have; an unknown one weighs half of the rarest."""
    if not having:
        return math.log(1 + (documents + 0.5) / 0.5) / 2
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


@lru_cache(maxsize=_MOST_FOLDED)
def _normalised(text: str) -> str:
    return normalise(text)


@lru_cache(maxsize=_MOST_FOLDED)
def in_name(manual_id: str) -> str:
    """Return the name of a manual as words are looked for in it."""
    return _folded(manual_id)


def _folded(text: str) -> str:
    return foldable(_normalised(text))


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
