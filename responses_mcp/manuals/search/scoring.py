"""How well a section fits a question: BM25 over its fields, with bonuses for coverage, phrases and the like (M4.2).

A score is the share of what a perfect section would have, so that scores of different questions and manuals compare.
What each weight is worth on questions of other people stands in docs/internals/retrieval.md.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Final

from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.search.candidates import Frequencies, Row
from responses_mcp.manuals.search.query import Query, RequiredTerm, pad, part
from responses_mcp.manuals.words import alike, foldable, prepared
from responses_mcp.settings.model import LexicalSettings

# BM25F: a text of average length counts its words once, a title more. Lengths are in characters.
_K1: Final = 1.2
_B: Final = 0.6
_TITLE, _TITLE_B, _TITLE_LENGTH = 1.5, 0.5, 25
_ABOVE, _IN_NAME = 0.5, 0.5
_SHORTEST: Final = 450  # what is shorter counts as so long; Japanese says as much in a third of it
_MOST_HITS: Final = 20

# The LEXICAL_* settings scale those that the contract names (M4.3); these are the values at their defaults.
_COVERAGE: Final = 1.0
_SPARSE_COVERAGE: Final = 0.35  # what coverage weighs whatever the setting says
_COVERED: Final = 4  # the power of coverage: most of the words count little beside all of them
_CERTAIN: Final = 8  # the power by which the best coverage of any section says how surely words name what is sought
_HEAD: Final = 0.25  # for words in the title, the headings above or the path
_ASKED: Final = 0.5  # for a title that is the question
_REQUIRED: Final = 0.1  # for required terms that the question has, if it is certain
_DEMANDED: Final = 0.4  # of the best score, for those that it lacks: enough to choose among the best
_LEAST_BEST: Final = 0.1  # which is so much at least: they are found where the question finds nothing, too
# The weights of a token that 37 % and 95 % of the sections have: the less the question tells, the more the terms count.
_TELLS, _TELLS_NOTHING = 1.0, 0.05
_WITHIN: Final = 0.03  # of one that stands within another word
_FILE: Final = 0.08  # of each of the two next sections of the file
_NEXT: Final = 2
_PHRASE: Final = 0.1
_AS_WRITTEN: Final = 0.4  # for words in the form that the question has, if it is certain
_CLOSE: Final = 0.15
_UNSURE: Final = 0.33  # of that, if it is not certain
_NUMBER: Final = 0.1
_CODE: Final = 0.05
_NOISE: Final = 0.02
_NOT_OF_CHANGES: Final = 0.15  # of the score, that notes of releases lose unless they are asked for
_TRANSLATED: Final = 0.99  # of the best score of a page, the most that its translation into another language has
_COMMON: Final = 0.1  # of the sections: grammar that more of them have is not looked for
_BONUSES: Final = _HEAD + _AS_WRITTEN + _PHRASE + _CLOSE + _NUMBER + _CODE

# A list of words wants a section that has them all. A sentence has words that its answer need not have, and a long text
# that has them by chance is no answer: there coverage fades, and length counts for more.
_FADES, _FADES_IN_JAPANESE = 1.0, 0.6  # of coverage
_SPOKEN_B, _SPOKEN_B_IN_JAPANESE = 0.25, 0.15  # more of `_B`
_SAID_GRAMMAR: Final = 2  # words of it, with which a short text counts as being as short as it is

_NEAR, _FAR = 40, 80  # characters
_BESIDE: Final = 12
_POSITIONS: Final = 8  # of a word that closeness looks at

_CHANGES: Final = re.compile(
    r"change[-_ ]?log|release[-_ ]?notes?|what'?s[-_ ]?new|breaking[-_ ]changes|リリースノート|変更履歴|更新履歴"
    r"|(?:^|/)(?:changes|history|news|releases)(?:\.[a-z]+$|/)",
    re.IGNORECASE,
)
_LANGUAGE: Final = re.compile(
    r"(?:^|(?<=/))(ar|cs|da|de|el|en|es|fa|fi|fr|he|hi|hu|id|it|ja|ko|nl|no|pl|pt|ro|ru|sv|th|tr|uk|vi|zh)"
    r"(?:[-_][a-z]{2,4})?/|\.(de|en|es|fr|it|ja|ko|pt|ru|zh)(?:[-_][a-z]{2,4})?(?=\.[a-z]+$)",
    re.IGNORECASE,
)
_LISTS: Final = re.compile(r"(^|[/_-])(toc|index|目次|contents)([_-]|\.[a-z]+$)", re.IGNORECASE)
_EXCEPTING: Final = ("ただし", "但し", "除外", "対象外", "を除く", "unless", "except for", "except when", "exclusion")


@dataclass(slots=True)
class Scored:
    """A row and its score. `parts` are the points by their names, `required` the hits of each required term."""

    row: Row
    score: float = 0.0
    bonus: float = 0.0  # for required terms; g0 does without it
    coverage: float = 0.0  # from 0 to 1: the share of the question's weight that the row has
    required: tuple[int, ...] = ()
    has_required: float = 0.0  # how many of them, but for grammar
    asked_for: float = 0.0  # what BM25 makes of required terms that the question lacks, for what they tell
    signals: list[str] = field(default_factory=list[str])
    parts: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    # Of each term that it has: its number, what BM25 makes of it, the same at the average length, and whether title,
    # headings or path have it.
    gains: list[tuple[int, float, float, bool]] = field(default_factory=list[tuple[int, float, float, bool]])
    folded: str = ""  # the text, if it was looked into

    def add(self, part: str, points: float, signal: str = "") -> None:
        """Add `points` to the score, unless they are 0."""
        if points:
            self.score += points
            self.parts.append((part, points))
            if signal and signal not in self.signals:
                self.signals.append(signal)


class Scorer:
    """Scores rows for one question.

    `required` terms come with how far each counts, and how far it lifts a row beside what the question says, from 0 to
    1; `holding` has the rows that hold those that the index does not know. The words of `manual_id` count as those of
    every path.
    """

    def __init__(
        self,
        asked: Query,
        known: Frequencies,
        required: Sequence[tuple[RequiredTerm, float, float]],
        holding: Mapping[str, frozenset[int]],
        lexical: LexicalSettings,
        *,
        manual_id: str = "",
    ) -> None:
        self._asked = asked
        self._required = required
        self._holding = holding
        self._lexical = lexical
        self._name = in_name(manual_id)
        weights = [(each, each.weight * idf(known.sections, known.having[each.token])) for each in asked.terms]
        common = _COMMON * known.sections
        there = [(term, weight) for term, weight in weights if known.having[term.token]]
        # What is little and nearly everywhere tells nothing, and takes the most time.
        there = [each for each in there if each[0].is_telling or known.having[each[0].token] <= common] or there
        self.weights = [weight for _, weight in there]
        self._total = sum(self.weights) or 1.0
        names = {term.token for term, _ in there}
        # A pair that is half grammar covers little, and a part of a name nothing, if the whole name is there.
        self._terms = [term for term, _ in there]
        self._tells = any(term.is_telling for term in self._terms)
        self._covering = [0.0 if term.part_of in names else term.weight for term in self._terms]
        # What the manual does not have tells no section from another, and all of them from what was asked for.
        usual = self._total / max(len(there), 1)
        missing = sum(min(weight, usual) for term, weight in weights if not known.having[term.token])
        share = sum(self.weights) / ((sum(self.weights) + missing) or 1.0)
        in_words = asked.in_words
        fades = asked.spoken * (_FADES if in_words else _FADES_IN_JAPANESE)
        more_b = asked.spoken * (_SPOKEN_B if in_words else _SPOKEN_B_IN_JAPANESE)
        self._average = max(known.average, 1.0)
        self._shortest = min(_SHORTEST, self._average) * (1 - in_words * part(asked.grammar, 0, _SAID_GRAMMAR))
        self._of_changes = _CHANGES.search(asked.text) is not None
        self._b = min((_B + more_b) * lexical.length_penalty_weight / 0.2, 1.0)
        self._coverage = (1 - fades) * _COVERAGE * (lexical.coverage_weight + _SPARSE_COVERAGE) / 0.85
        self._scale = share / ((1 + (1 - fades) * _COVERAGE + _BONUSES) * (1 + _NEXT * _FILE))
        self.certainty = 0.0  # how surely the words name what is sought, from 0 to 1: whether a section has them all

    def look(self, row: Row) -> Scored:
        """Find the terms in a row; `score` makes scores of it."""
        found = Scored(row)
        text, title, above = row.text_tokens, row.title_tokens, row.above_tokens + self._name
        anywhere = f"{text}{title}{above}"
        length = self._length(row)
        in_title = _TITLE / (1 - _TITLE_B + _TITLE_B * len(row.title) / _TITLE_LENGTH)
        for at, term in enumerate(self._terms):
            if term.stands_in(anywhere):
                hits = min(term.hits(text), _MOST_HITS)
                more = in_title * term.hits(title) + _ABOVE * term.stands_in(above)
                in_head = more > 0
                if not hits and term.in_name and term.in_name in anywhere:
                    more += _IN_NAME
            elif term.in_name and term.in_name in anywhere:
                hits, more, in_head = 0, _IN_NAME, False
            else:
                continue
            count = hits / length + more
            found.gains.append((at, count / (count + _K1), (hits + more) / (hits + more + _K1), in_head))
        if not any(self._terms[at].is_telling for at, *_ in found.gains) and self._tells:
            found.gains.clear()  # what has nothing but the grammar of a question has nothing of it
        if self._required:
            self._look_for_required(found, above, length)
        return found

    def _look_for_required(self, found: Scored, above: str, length: float) -> None:
        row, counts = found.row, list[int]()
        for required, said, alone in self._required:
            counting, lifting = said, alone
            if required.text in self._holding:
                hits, more = int(row.id in self._holding[required.text]), 0
                if required.match:
                    counting, lifting = said * _WITHIN, alone * _WITHIN
            else:
                hits = required.hits(row.text_tokens)
                more = required.hits(row.title_tokens) + required.hits(above)
            counts.append(hits + more)
            found.has_required += counting * bool(hits + more)
            if lifting and (hits or more):
                count = min(hits, _MOST_HITS) / length + min(more, 1)
                found.asked_for += lifting * count / (count + _K1)
        found.required = tuple(counts)

    def score(self, looked: Sequence[Scored], asked: Sequence[Scored]) -> None:
        """Give scores to rows that were looked at. Those `asked` for by words of the question decide what these say.

        `certainty` is known after that.
        """
        self._weigh(asked)
        best = max((each.coverage for each in asked), default=0.0)
        self.certainty = best**_CERTAIN
        self._weigh(looked, best)
        scale = self._scale
        # A term that no row has takes nothing from the others, nor one that lifts nothing from those that do.
        held = [any(each) for each in zip(*(each.required for each in looked), strict=True)]
        lifting = sum(has and share > 0 for has, (*_, share) in zip(held, self._required, strict=False)) or 1
        lift = _DEMANDED * max([_LEAST_BEST, *(each.score for each in asked)])
        lift *= _TELLS / min(max([_TELLS_NOTHING, *self.weights]), _TELLS)
        for each in looked:
            each.bonus = scale * _REQUIRED * self.certainty * each.has_required / (sum(held) or 1)
            each.bonus += lift * each.asked_for / lifting

    def _weigh(self, rows: Sequence[Scored], best: float | None = None) -> None:
        """Score rows, where `best` is the best coverage: of these rows, if it is None."""
        weights = self.weights
        total = sum(weights) or 1.0
        covering = [weight * share for weight, share in zip(weights, self._covering, strict=True)]
        all_covering = sum(covering) or 1.0
        for each in rows:
            each.coverage = sum(covering[at] for at, *_ in each.gains) / all_covering
        if best is None:
            best = max((each.coverage for each in rows), default=0.0)
        scale, title = self._scale, pad(self._asked.title)
        for each in rows:
            each.score, each.parts, each.signals = 0.0, [], []
            gained = sum(weights[at] * gain for at, gain, _, _ in each.gains) / total
            at_average = sum(weights[at] * gain for at, _, gain, _ in each.gains) / total
            head = sum(weights[at] for at, _, _, in_head in each.gains if in_head) / total
            each.add("tf-idf", scale * at_average)
            each.add("length", scale * (gained - at_average))
            each.add("coverage", scale * self._coverage * best * each.coverage**_COVERED)
            each.add("head", scale * _HEAD * head, "anchor")
            if each.row.title_tokens == title:
                each.add("title", scale * _ASKED, "exact")
            if _LISTS.search(each.row.path):
                each.add("list of contents", -scale * _NOISE)
            if not self._of_changes and (_CHANGES.search(each.row.path) or _CHANGES.search(each.row.title)):
                each.add("release notes", -_NOT_OF_CHANGES * each.score)

    def refine(self, found: Scored, text: str) -> None:
        """Add what needs the text of a row: phrases, closeness, numbers beside their words, codes."""
        asked, lexical, scale = self._asked, self._lexical, self._scale
        found.folded = alike(text)
        body = foldable(f"{alike(found.row.title)}\n{found.folded}").replace("\n", " ")
        if asked.phrases:
            phrases = sum(phrase in body for phrase in asked.phrases) / len(asked.phrases)
            found.add("phrase", scale * _PHRASE * lexical.phrase_weight / 0.5 * phrases, "phrase")
        as_written = sum(word.text in body for word in asked.words) / max(len(asked.words), 1)
        found.add("as written", scale * _AS_WRITTEN * self.certainty * as_written)
        places = {
            word.text: where
            for word in asked.words
            if (where := [at for at, _ in islice(word.places(body), _POSITIONS)])
        }
        if len(places) > 1:
            span = _narrowest(list(places.values())) / len(places)
            bonus = lexical.proximity_bonus_near * (span <= _NEAR / 2) + lexical.proximity_bonus_far
            closeness = len(places) / len(asked.words) / (1 + span / 20)
            weight = _CLOSE * (_UNSURE + (1 - _UNSURE) * self.certainty)
            found.add("proximity", scale * weight / 1.5 * bonus * closeness, "proximity" if span <= _FAR else "")
        numbers = [word for word in asked.words if word.is_number]
        for word in numbers:
            here = places.get(word.text)
            if here is None:
                continue
            if not word.text.isdigit():
                found.add("code", scale * _CODE / len(asked.words), "code_exact")
            near = (other for each, where in places.items() if each != word.text for other in where)
            if any(-_BESIDE <= other - mine <= _BESIDE for other in near for mine in here):
                weight = _NUMBER * lexical.number_context_bonus / 0.8
                found.add("number in context", scale * weight / len(numbers), "number_context")
        if places and len(places) == len(asked.words):
            found.signals.insert(0, "exact")
        if any(word in body for word in _EXCEPTING):
            found.signals.append("exceptions")

    def _length(self, row: Row) -> float:
        """Return by what BM25 divides the hits in a text: 1 in one of average length."""
        long = max(row.length, self._shortest / (1 if row.text_tokens.isascii() else 3), 1)
        return 1 - self._b + self._b * long / self._average


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


def most_of_translations(pages: Iterable[tuple[str, float]], language: str) -> dict[str, float]:
    """Return the most that pages may score beside the same page in a language, by their paths, given with scores."""
    best = dict[str, float]()
    for path, score in pages:
        best[path] = max(score, best.get(path, 0.0))
    spoken = {path: _LANGUAGE.search(path) for path in best}
    groups = defaultdict[str, dict[str, list[str]]](lambda: defaultdict(list))
    for path, found in spoken.items():
        page = path if found is None else f"{path[: found.start()]}{path[found.end() :]}"
        groups[page][(found[1] or found[2]).lower() if found is not None else ""].append(path)
    most = dict[str, float]()
    for languages in groups.values():
        wanted = language if language in languages else ""
        if len(languages) > 1 and wanted in languages:
            least = _TRANSLATED * max(best[path] for path in languages[wanted])
            most.update((path, least) for other, paths in languages.items() if other != wanted for path in paths)
    return most


def idf(documents: int, having: int) -> float:
    """Return the weight of a term that `having` of so many documents have; an unknown one weighs half of the rarest."""
    if not having:
        return math.log(1 + (documents + 0.5) / 0.5) / 2
    return math.log(1 + (documents - having + 0.5) / (having + 0.5))


@lru_cache(64)
def in_name(manual_id: str) -> str:
    """Return the name of a manual as tokens are looked for in it."""
    return pad(tokens(prepared(manual_id))) if manual_id else ""


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
