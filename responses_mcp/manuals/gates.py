"""One question through its gates: g0 without the required terms, g_req with them, and both fused (contract 4).

With two required terms g_req is a fusion itself, of the passes A, B and A+B. All of them look at the same rows: a gate
is a choice among rows that have been scored once, so that a gate costs no search.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from responses_mcp.manuals.candidates import Reader, candidates
from responses_mcp.manuals.checks import Check, OutOfTime
from responses_mcp.manuals.diagnosis import bias
from responses_mcp.manuals.fusion import blended, reciprocal_ranks, required_gate_weight
from responses_mcp.manuals.query import RequiredTerm, terms
from responses_mcp.manuals.scoring import Scored, Scorer, idf
from responses_mcp.settings.model import ManualsSettings

Key = tuple[str, int]
"""Path and heading line: what a hit is. A long section has several rows, of which the best stands for it."""

TIME_BUDGET: Final = "time_budget"
"""Why rows, or files, are missing that a search with more time would have looked at."""

_REFINED: Final = 50  # rows whose phrases and distances are looked at
_GATES_BASE: Final = 0.65
_PASSES_BASE, _ONE_SIDED_BASE, _ONE_SIDED = 0.70, 0.45, 0.70
_BOTH: Final = 0.10  # for a row with both required terms, in parts of the top score
_PASS_WEIGHTS: Final = (1.0, 1.0, 1.1)


@dataclass(slots=True)
class Ranking:
    """What the gates made of one question. `fused` scores are between 0 and about 1, `order` is by them.

    `required` are the rows of g_req; `by_words` those that the index likes for the words of the question, best first.
    `injected` are the best rows of gates that have a place only for being that.
    """

    scored: dict[Key, Scored]
    fused: dict[Key, float]
    order: list[Key]
    required: list[Key]
    by_words: list[Key]
    gates: list[tuple[str, list[Key], float]]
    runs: list[dict[str, Any]]
    cutoff: str | None
    injected: list[Key] = field(default_factory=list[Key])


@dataclass(frozen=True, slots=True)
class Search:
    """What the questions of one find share: the index, the required terms that the guard left, and the limits.

    At most `most` rows are scored for a question. `check` stops the search.
    """

    reader: Reader
    required: Sequence[RequiredTerm]
    settings: ManualsSettings
    most: int
    check: Check


def rank(query: str, search: Search) -> Ranking:
    """Search for `query` and rank what is found.

    When time runs out while rows are scored, those scored so far are ranked. Raises OutOfTime when there are none.
    """
    required = search.required
    scored, by_words, cutoff = _scored(query, search)
    base = {key: each.score + each.bonus for key, each in scored.items()}
    plain = sorted(scored, key=lambda key: -scored[key].score)
    having = sorted((key for key in scored if any(scored[key].required)), key=lambda key: -base[key])
    gated = _passes(having, scored, base) if len(required) > 1 else having
    for key in gated:
        signals = scored[key].signals
        signals.append("required_term")
        if len(required) > 1:
            signals.append("required_terms_rrf")
            if all(scored[key].required):
                signals.append("required_term_and")
    weight, reason = required_gate_weight(plain, gated) if gated else (0.0, "empty")
    gates = [("g0", plain, 1.0), ("g_req", gated, weight)] if gated else [("g0", plain, 1.0)]
    ranks = reciprocal_ranks([(ranking, share) for _, ranking, share in gates])
    fused = blended(base, ranks, _GATES_BASE)
    runs = [
        _run("g0", [], [scored[key] for key in plain], 1.0, None, selected=not gated),
        _run("g_req", required, [scored[key] for key in gated], weight, reason, selected=bool(gated)),
    ]
    return Ranking(scored, fused, by_score(scored, fused), gated, by_words, gates, runs, cutoff)


def by_score(scored: dict[Key, Scored], scores: dict[Key, float]) -> list[Key]:
    """Return the keys of `scores`, best first; what is alike is ordered as in `scored`, which is in order."""
    return sorted((key for key in scored if key in scores), key=lambda key: -scores[key])


def _scored(query: str, search: Search) -> tuple[dict[Key, Scored], list[Key], str | None]:
    """Return the best row of each section found, those found by words alone, and what kept others out.

    The rows are `in_order`.
    """
    reader, check, most = search.reader, search.check, search.most
    all_scored: list[Scored] = []
    by_words: list[int] = []
    cutoff: str | None = None
    try:
        words = terms(query)
        weights = {word.text: idf(reader.manual.sections, reader.having(word.match)) for word in words}
        scorer = Scorer(query, weights, words, search.required, search.settings.lexical, average=reader.average)
        ids, by_words = candidates(reader, words, search.required)
        cutoff = "candidate_cap" if len(ids) > most else None
        for row in reader.rows(ids[:most]):
            check()
            all_scored.append(scorer.score(row))
        all_scored.sort(key=lambda each: (-each.score - each.bonus, each.row.id))
        for each in all_scored[:_REFINED]:
            check()
            scorer.refine(each)
    except (OutOfTime, sqlite3.OperationalError):
        with suppress(OutOfTime):  # which is how SQLite was interrupted, perhaps
            check()
            raise
        if not all_scored:
            raise OutOfTime from None
        cutoff = TIME_BUDGET
    all_scored.sort(key=lambda each: (-each.score - each.bonus, each.row.id))
    best: dict[Key, Scored] = {}
    of_file: Counter[str] = Counter()
    for each in all_scored:
        key = (each.row.path, each.row.line)
        if key not in best and each.score + each.bonus > 0:
            of_file[each.row.path] += 1
            if of_file[each.row.path] <= search.settings.find.per_file_candidate_cap:
                best[key] = each
    keys = {each.row.id: key for key, each in best.items()}
    return in_order(best), [keys[id_] for id_ in by_words if id_ in keys], cutoff


def _passes(having: list[Key], scored: dict[Key, Scored], base: dict[Key, float]) -> list[Key]:
    """Rank the rows that have one of two required terms by the passes A, B and A+B."""
    first = [key for key in having if scored[key].required[0]]
    second = [key for key in having if scored[key].required[1]]
    both = [key for key in first if scored[key].required[1]]
    passes = list(zip((first, second, both), _PASS_WEIGHTS, strict=True))
    one_sided = max(len(first), len(second)) >= _ONE_SIDED * (len(first) + len(second) + len(both))
    ranks = reciprocal_ranks(passes)
    fused = blended(base, ranks, _ONE_SIDED_BASE if one_sided else _PASSES_BASE)
    for key in both:
        fused[key] += _BOTH
    return by_score(scored, fused)


def in_order(scored: dict[Key, Scored]) -> dict[Key, Scored]:
    """Return the rows in the order that decides between equal scores: coverage, terms, hits, then path and line."""
    return dict(sorted(scored.items(), key=lambda item: _tie(item[1])))


def _tie(each: Scored) -> tuple[float, int, int, str, int]:
    return (-each.coverage, -len(each.hits), -sum(each.hits.values()), each.row.path, each.row.line)


def _run(
    gate: str,
    required: Sequence[RequiredTerm],
    rows: Sequence[Scored],
    weight: float,
    why: str | None,
    *,
    selected: bool,
) -> dict[str, Any]:
    """Return a row of `manual_hits` kind gate_runs: one gate, before fusion, and its weight in it."""
    return {
        "gate": gate,
        "required_terms": [term.text for term in required],
        "candidates_count": len(rows),
        "file_bias_ratio": bias([each.row.path for each in rows]),
        "exception_hits": sum("exceptions" in each.signals for each in rows),
        "top_score": max((round(each.score, 4) for each in rows), default=None),
        "scoring_mode": "lexical",
        "cutoff_reason": None,  # known when all parts of the question are
        "weight": round(weight, 4),
        "weight_reason": why,
        "selected": selected,
    }
