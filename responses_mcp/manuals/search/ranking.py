"""Rank what a question finds: gate g0 without the required terms, gate g_req with them, and both fused (M4.14).

g0 has the rows that the words of the question find, by their own scores, as if no term were required. With two
required terms g_req is itself fused from the passes A, B and A+B (M4.31); the parts of a question are fused with the
whole. A row is scored once, whichever gates it is in.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.search.candidates import (
    ANY_WORD,
    ANY_WORD_COMPARED,
    Candidates,
    Frequencies,
    Reader,
    candidates,
    frequencies,
    frequency,
)
from responses_mcp.manuals.search.query import GRAMMAR, Query, RequiredTerm
from responses_mcp.manuals.search.scoring import Scored, Scorer, idf, in_name, lift_files, most_of_translations
from responses_mcp.manuals.words import is_hiragana, runs
from responses_mcp.settings.model import LexicalSettings

Key = tuple[str, int]
"""Path and heading line: what a hit is. A long section has several rows, of which the best stands for it."""

TIME_BUDGET: Final = "time_budget"
"""Why rows, or files, are missing that a search with more time would have looked at."""

RRF_K: Final = 60
_MOST_OF_A_FILE: Final = 8  # candidates
_REFINED: Final = 30  # rows whose phrases and distances are looked at
_BOTH: Final = 0.10  # for a row with both required terms, in parts of the top score
_PASS_WEIGHTS: Final = (1.0, 1.0, 1.1)
_RARE: Final = 6.0  # the power of how rare a required term is beside the words of the question
_SAID_RANKS: Final = 0.25  # what the ranks of g_req weigh where the question has its terms
_LACKING_RANKS: Final = 0.1  # and where it lacks them, which by ranks would push out what fits better

# What a row's own score weighs beside its ranks, from 0 to 1.
_GATES_BASE: Final = 0.65
_PASSES_BASE, _ONE_SIDED_BASE, _ONE_SIDED = 0.70, 0.45, 0.70
_PARTS_BASE: Final = 0.30


@dataclass(frozen=True, slots=True)
class Search:
    """What the questions of one find share. `required` are the terms that the guard left.

    At most `most` rows are scored for a question. `check` stops the search. `compared` says that meaning will choose
    among the rows: it is given more of them.
    """

    reader: Reader
    required: Sequence[RequiredTerm]
    lexical: LexicalSettings
    most: int
    check: CancellationCheck
    compared: bool = False
    frequencies: Frequencies | None = None  # of other manuals too, which the question is asked of
    manual_id: str = ""  # whose words count as those of paths, where a question is asked of several


@dataclass(frozen=True, slots=True)
class Gate:
    """The rows that a gate lets through, best first, and the weight of their ranks, with the reason for it.

    `scores` are those by which the gate knows them.
    """

    name: str
    required: Sequence[RequiredTerm]
    keys: list[Key]
    weight: float = 1.0
    reason: str | None = None
    scores: Mapping[Key, float] = field(default_factory=dict[Key, float])


@dataclass(slots=True)
class Ranking:
    """The rows found, `fused` scores between 0 and 1, and the `order` by them.

    `by_words` are the rows that the index likes for the words of the question, best first. `holding` has the best row
    of each file that holds a required term as it is written. `cutoff` says why rows are missing, if any are.
    `certainty` is that of the `Scorer`.
    """

    scored: dict[Key, Scored]
    fused: dict[Key, float]
    order: list[Key]
    by_words: list[Key]
    holding: list[Key]
    g0: Gate
    g_req: Gate
    cutoff: str | None
    certainty: float

    @property
    def best_of_gates(self) -> list[Key]:
        """Return the best row of each gate that has one."""
        return list(dict.fromkeys(gate.keys[0] for gate in (self.g0, self.g_req) if gate.keys))


def rank(asked: Query, parts: Sequence[Query], search: Search) -> Ranking:
    """Rank what a question and its `parts` find; a part that fails is left out (M4.35).

    When time runs out while rows are scored, those scored so far are ranked. Raises OutOfTime when there are none.
    """
    whole = _rank(asked, asked, search)
    of_parts: list[Ranking] = []
    for part in parts:
        try:
            of_parts.append(_rank(part, asked, search))
        except (OutOfTime, sqlite3.OperationalError):  # the latter such as a phrase that the index cannot parse
            whole.cutoff = TIME_BUDGET
    if any(part.cutoff == TIME_BUDGET for part in of_parts):
        whole.cutoff = TIME_BUDGET
    orders = [part.order for part in of_parts if part.order]
    if orders:
        whole.scored = _in_order({key: each for part in (*of_parts, whole) for key, each in part.scored.items()})
        ranks = reciprocal_ranks([(order, 1.0) for order in (whole.order, *orders)])
        whole.fused = blended(whole.fused, ranks, _PARTS_BASE)
        whole.order = _by_score(whole.scored, whole.fused)
        for key in set[Key]().union(*orders):
            whole.scored[key].signals.append("query_decomp_rrf")
    return whole


def _rank(asked: Query, question: Query, search: Search) -> Ranking:
    """Rank what is `asked`, which is the `question` or a part of it."""
    of_words, having, found, cutoff = _scored(asked, question, search)
    certainty = found.certainty
    scored = _in_order({**of_words, **having})
    own = {key: each.score for key, each in of_words.items()}
    with_bonus = {key: each.score + (1 - each.score) * min(each.bonus, 1.0) for key, each in having.items()}
    base = {**own, **with_bonus}
    plain = sorted(_in_order(of_words), key=lambda key: -own[key])
    gated = sorted(_in_order(having), key=lambda key: -base[key])
    two_terms = len(search.required) > 1
    if two_terms:
        gated = _passes(gated, scored, base, certainty)
    for key in gated:
        signals = scored[key].signals
        signals.append("required_term")
        if two_terms:
            signals.append("required_terms_rrf")
            if all(scored[key].required):
                signals.append("required_term_and")
    g0 = Gate("g0", (), plain, scores=own)
    weight, reason = required_gate_weight(plain, gated)
    # Grammar, and what most sections have, asks for nothing.
    weight *= max(
        (
            _SAID_RANKS * (not _is_grammar(each)) if _is_said(each, question) else _LACKING_RANKS * found.telling[at]
            for at, each in enumerate(search.required)
            if any(scored[key].required[at] for key in gated)
        ),
        default=0.0,
    )
    g_req = Gate("g_req", search.required, gated, weight, reason, scores=with_bonus)
    ranks = reciprocal_ranks([(plain, 1.0), (gated, g_req.weight)])
    fused = blended(base, ranks, 1 - certainty * (1 - _GATES_BASE))
    keys = {each.row.id: key for key, each in of_words.items()}
    liked = [keys[id_] for id_ in found.by_any_word if id_ in keys]
    order = _by_score(scored, fused)
    holding = _first_of_files(order, found.paths)
    return Ranking(scored, fused, order, liked, holding, g0, g_req, cutoff, certainty)


def _first_of_files(order: Iterable[Key], paths: AbstractSet[str]) -> list[Key]:
    first = dict[str, Key]()
    for key in order:
        if key[0] in paths:
            first.setdefault(key[0], key)
    return list(first.values())


class _Found(NamedTuple):
    """What the index likes for the words of a question, and the files that hold a required term as it is written.

    `telling` is how much each required term tells beside the question, from 0 to 1. `certainty` is that of the
    `Scorer`.
    """

    telling: Sequence[float]
    by_any_word: list[int]
    paths: AbstractSet[str]
    certainty: float


def _scored(
    asked: Query, question: Query, search: Search
) -> tuple[dict[Key, Scored], dict[Key, Scored], _Found, str | None]:
    """Return what was scored and found, and what kept other rows out.

    First the sections that words of the question find, then those that have a required term, each with its best row as
    such.
    """
    reader, check = search.reader, search.check
    scored: list[Scored] = []
    found = Candidates([], [], [], [], whole=True, holding={})
    scorer: Scorer | None = None
    cutoff: str | None = None
    telling: list[float] = []
    try:
        asked = asked.with_words(reader.in_titles(asked.kana))
        known = search.frequencies or frequencies([reader], asked.terms)
        asked = asked.counted(known.having)
        found = candidates(reader, asked, search.required, ANY_WORD_COMPARED if search.compared else ANY_WORD)
        most_telling = max(
            (each.weight * idf(known.sections, many) for each in asked.terms if (many := known.having[each.token])),
            default=0.0,
        )
        beside = [_weight_beside(reader, each, question) for each in search.required]
        telling = [min(weight / most_telling, 1.0) ** _RARE if most_telling else 1.0 for weight in beside]
        required = [
            (each, share if weight else float(not _is_grammar(each)), share if weight else 0.0)
            for each, weight, share in zip(search.required, beside, telling, strict=True)
        ]
        scorer = Scorer(asked, known, required, found.holding, search.lexical, manual_id=search.manual_id)
        if not found.of_words and any(each.hits(in_name(search.manual_id)) for each in asked.terms):
            found = found._replace(of_words=reader.first(ANY_WORD))
        ids = [each for each in dict.fromkeys(chain(*zip_longest(found.of_words, found.required))) if each is not None]
        cutoff = "candidate_cap" if len(ids) > search.most or not found.whole else None
        for row in reader.rows(ids[: search.most]):
            check()
            scored.append(scorer.look(row))
        by_words = set(found.of_words)
        scorer.score(scored, [each for each in scored if each.row.id in by_words])
        best = {each.row.id: each for pool in _pools(scored, found.of_words) for each in pool[:_REFINED]}
        for number, text in reader.texts(best).items():
            check()
            scorer.refine(best[number], text.text)
    except (OutOfTime, sqlite3.OperationalError):
        with suppress(OutOfTime):  # which is how SQLite was interrupted, perhaps
            check()
            raise
        if scorer is None or not scored:
            raise OutOfTime from None
        by_words = set(found.of_words)
        scorer.score(scored, [each for each in scored if each.row.id in by_words])
        cutoff = TIME_BUDGET
    lift_files(each for each in scored if each.row.id in by_words)
    most = most_of_translations(((each.row.path, each.score) for each in scored), asked.language)
    for each in scored:
        if each.score > most.get(each.row.path, each.score):
            each.add("translation", most[each.row.path] - each.score)
    of_words, having = _pools(scored, found.of_words)
    exact = set(found.exact)
    paths = {each.row.path for each in having if each.row.id in exact}
    return (
        _of_sections(of_words),
        _of_sections(having),
        _Found(telling, found.by_any_word, paths, scorer.certainty),
        cutoff,
    )


def _is_said(required: RequiredTerm, asked: Query) -> bool:
    """Tell whether a required term is a word of the question, in any form: that has its tokens, or some of a name."""
    return bool(required.tokens) and required.tokens <= asked.tokens


def _is_grammar(required: RequiredTerm) -> bool:
    said = runs(required.text)
    return bool(said) and all(each in GRAMMAR or is_hiragana(each) for each in said)


def _weight_beside(reader: Reader, required: RequiredTerm, asked: Query) -> float:
    """Return what a required term is worth beside the question: nothing if it is a word of it, or grammar."""
    having = 0 if _is_said(required, asked) or _is_grammar(required) else frequency(reader, required)
    return idf(reader.manual.sections, having) if having else 0.0


def _pools(scored: Sequence[Scored], of_words: Sequence[int]) -> tuple[list[Scored], list[Scored]]:
    """Return the rows of g0 and those of g_req, each the best first by its own scores."""
    asked = set(of_words)
    plain = [each for each in scored if each.row.id in asked and each.score > 0]
    having = [each for each in scored if any(each.required) and each.score + each.bonus > 0]
    return (
        sorted(plain, key=lambda each: (-each.score, each.row.id)),
        sorted(having, key=lambda each: (-each.score - each.bonus, each.row.id)),
    )


def _of_sections(rows: Iterable[Scored]) -> dict[Key, Scored]:
    """Return the best row of each section, of so many sections of a file."""
    best: dict[Key, Scored] = {}
    of_file: Counter[str] = Counter()
    for each in rows:
        key = (each.row.path, each.row.line)
        if key not in best:
            of_file[each.row.path] += 1
            if of_file[each.row.path] <= _MOST_OF_A_FILE:
                best[key] = each
    return best


def _passes(having: list[Key], scored: Mapping[Key, Scored], base: Mapping[Key, float], certainty: float) -> list[Key]:
    """Rank the rows that have one of two required terms by the passes A, B and A+B."""
    first = [key for key in having if scored[key].required[0]]
    second = [key for key in having if scored[key].required[1]]
    both = [key for key in first if scored[key].required[1]]
    one_sided = max(len(first), len(second)) >= _ONE_SIDED * (len(first) + len(second) + len(both))
    ranks = reciprocal_ranks(list(zip((first, second, both), _PASS_WEIGHTS, strict=True)))
    base_weight = _ONE_SIDED_BASE if one_sided else _PASSES_BASE
    fused = blended(base, ranks, 1 - certainty * (1 - base_weight))
    best = max(base.values(), default=0.0)
    for key in both:
        fused[key] += certainty * _BOTH * best
    return _by_score(scored, fused)


def reciprocal_ranks(rankings: Sequence[tuple[Sequence[Key], float]]) -> dict[Key, float]:
    """Return for each key the sum of weight / (k + rank) over the rankings, best first, that have it."""
    sums: dict[Key, float] = {}
    for ranking, weight in rankings:
        for at, key in enumerate(ranking, 1):
            sums[key] = sums.get(key, 0.0) + weight / (RRF_K + at)
    return sums


def blended(base: Mapping[Key, float], ranks: Mapping[Key, float], base_weight: float) -> dict[Key, float]:
    """Mix scores with fused ranks, which are scaled such that the best by rank has the best score."""
    most = max(0.0, *base.values()) if base else 0.0
    top = max(ranks.values(), default=0.0) or 1.0
    return {
        key: base_weight * max(base.get(key, 0.0), 0.0) + (1 - base_weight) * most * each / top
        for key, each in ranks.items()
    }


def required_gate_weight(plain: Sequence[Key], required: Sequence[Key]) -> tuple[float, str]:
    """Return the weight of g_req beside g0's 1, by how its rows compare with those of g0; and the reason."""
    if not required:
        return 0.0, "empty"
    weight = 1.0
    reasons: list[str] = []
    share = len(required) / max(len(plain), 1)
    if share < 0.20:
        weight -= 0.25
        reasons.append("few_candidates")
    elif share >= 0.75:
        weight += 0.15
        reasons.append("many_candidates")
    top = set(required[:10])
    overlap = len(top.intersection(plain[:10])) / len(top)
    if overlap >= 0.9:
        weight -= 0.20
        reasons.append("same_top")
    elif overlap <= 0.5:
        weight += 0.10
        reasons.append("new_top")
    return weight, "+".join(reasons) or "default"


def _by_score(scored: Mapping[Key, Scored], scores: Mapping[Key, float]) -> list[Key]:
    """Return the keys of `scores`, best first; what is alike is ordered as in `scored`, which is in order."""
    return sorted((key for key in scored if key in scores), key=lambda key: -scores[key])


def _in_order(scored: Mapping[Key, Scored]) -> dict[Key, Scored]:
    """Return the rows in the order that decides between equal scores: coverage, then path and line."""
    return dict(sorted(scored.items(), key=lambda item: _tie(item[1])))


def _tie(each: Scored) -> tuple[float, str, int]:
    return (-each.coverage, each.row.path, each.row.line)
