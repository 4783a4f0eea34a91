"""A find over one state of the index: from a request to the payload that a trace keeps (contract 4)."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from responses_mcp.manuals import diagnosis
from responses_mcp.manuals.candidates import Reader, frequency
from responses_mcp.manuals.checks import Check, OutOfTime
from responses_mcp.manuals.claims import claim_graph, empty_graph
from responses_mcp.manuals.decomposition import sub_queries
from responses_mcp.manuals.fusion import RRF_K, blended, cut_off, reciprocal_ranks, spread
from responses_mcp.manuals.gates import TIME_BUDGET, Key, Ranking, Search, by_score, in_order, rank
from responses_mcp.manuals.query import required_term
from responses_mcp.manuals.requests import FindRequest
from responses_mcp.settings.model import ManualsSettings

MOST_RESULTS: Final = 50
_UNDISPLACED: Final = 8  # rows at the top that exploration never takes the place of
_FEWEST_SCORED, _SCORED_PER_CANDIDATE = 200, 20  # whoever wants one row wants the best of all


def find(
    request: FindRequest, reader: Reader, settings: ManualsSettings, check: Check, *, unfinished: bool = False
) -> dict[str, Any]:
    """Search one manual and return the payload, without what library, cache and trace add.

    `unfinished` says that time ran out before the index had every file.
    """
    required = [required_term(text) for text in request.required_terms]
    documents = reader.manual.sections
    freqs = {each.text: frequency(reader, each) for each in required}
    judged = [diagnosis.guard(text, count, documents) for text, count in freqs.items()]
    guarded = tuple(each for each in judged if each is not None)
    dropped = {each.term for each in guarded if each.dropped}
    applied_terms = [each for each in required if each.text not in dropped]
    parts: tuple[str, ...] = ()
    if settings.find.query_decomp_enabled:
        parts = sub_queries(request.query, settings.find.query_decomp_max_sub_queries)
    most = min(settings.find.scan_hard_cap, max(_FEWEST_SCORED, _SCORED_PER_CANDIDATE * request.max_candidates))
    search = Search(reader, applied_terms, settings, most, check)
    ranking = rank(request.query, search)
    if parts:
        _decompose(ranking, [_part(part, search) for part in parts[1:]], settings)
    final, cutoff = _final(ranking, request, settings)
    rows = [_row(request.manual_id, ranking, key, score) for key, score in final]
    cutoff = TIME_BUDGET if unfinished else ranking.cutoff or cutoff
    filtered = strict = len(ranking.required)
    if dropped:
        strict = sum(
            any(each.required) or any(term.hits(f"{each.title}\n{each.row.body}") for term in required)
            for each in ranking.scored.values()
        )
    for text in [text for text, count in freqs.items() if not count]:
        # The index knows words; the term may be a part of one.
        inside = [each.text for each in applied_terms].index(text)
        freqs[text] = sum(bool(each.required[inside]) for each in ranking.scored.values())
    applied = diagnosis.applied(
        request,
        diagnosis.Required(
            requested=request.required_terms,
            guarded=guarded,
            doc_freqs=freqs,
            documents=documents,
            strict=strict,
            filtered=filtered,
        ),
        [any(ranking.scored[key].required) for key, _ in final],
    )
    gaps = diagnosis.gap_rows(rows)
    payload: dict[str, Any] = {
        "query": request.query,
        "manual_id": request.manual_id,
        "applied": applied,
        "summary": diagnosis.summary(rows, gaps, scanned_files=reader.manual.files, scanned_nodes=documents),
        "candidates": rows,
        "gaps": gaps,
        "gate_runs": [{**run, "cutoff_reason": cutoff} for run in ranking.runs],
        "fusion_debug": _fusion_debug(request.manual_id, ranking, rows),
    }
    if request.include_claim_graph:
        wanted = settings.find.claim_graph_enabled
        graph = claim_graph(request.query, request.manual_id, rows, parts) if wanted else empty_graph()
        payload["claim_graph"] = graph
    return payload


def _part(query: str, search: Search) -> Ranking | None:
    """Search for a part of the question; the others stand for one that fails."""
    try:
        return rank(query, search)
    except OutOfTime:
        return None
    except sqlite3.OperationalError:  # such as a phrase that the index cannot parse
        return None


def _decompose(whole: Ranking, parts: Sequence[Ranking | None], settings: ManualsSettings) -> None:
    """Let the rankings of the parts of a question speak in the ranking of the whole."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts) or any(part.cutoff == TIME_BUDGET for part in there):
        whole.cutoff = TIME_BUDGET
    rankings = [part.order for part in there if part.order]
    if not rankings:
        return
    whole.scored = in_order({key: each for part in (*there, whole) for key, each in part.scored.items()})
    ranks = reciprocal_ranks([(ranking, 1.0) for ranking in [whole.order, *rankings]], settings.find.query_decomp_rrf_k)
    whole.fused = blended(whole.fused, ranks, settings.find.query_decomp_base_weight)
    whole.order = by_score(whole.scored, whole.fused)
    for key in set[Key]().union(*rankings):
        whole.scored[key].signals.append("query_decomp_rrf")


def _final(
    ranking: Ranking, request: FindRequest, settings: ManualsSettings
) -> tuple[list[tuple[Key, float]], str | None]:
    """Return the rows to show with their scores, and what ended the list, if anything did.

    Each gate's best row has a place, whatever the fusion thinks of it. After that come rows to explore, in a fixed
    share of the places: they keep a wrong ranking from hiding what the index likes.
    """
    most = min(request.max_candidates, MOST_RESULTS)
    diverse = spread(ranking.order, ranking.fused, {key: key[0] for key in ranking.order}, most)
    kept = cut_off(diverse, {key: scored.coverage for key, scored in ranking.scored.items()})
    cutoff = "candidate_cap" if len(ranking.order) > most else None
    if kept < len(diverse):
        cutoff = "dynamic_cutoff"
    shown = diverse[:kept]
    explored = _explored(shown, ranking, settings, most)
    shown = shown[: most - len(explored)]
    there = {key for key, _ in shown}
    tops = [key for key in dict.fromkeys(keys[0] for _, keys, _ in ranking.gates if keys) if key not in there]
    places = most - len(explored)
    if tops:
        shown = shown[: max(places - len(tops), 1)]
        ranking.injected = tops = tops[: places - len(shown)]
    last = shown[-1][1] if shown else 0.0
    shown += [(key, min(ranking.fused[key], last)) for key in tops]
    scale = settings.find.exploration_score_scale
    for key in explored:
        ranking.scored[key].signals.append("exploration")
        shown.append((key, min(ranking.fused[key] * scale, last)))
    return shown, cutoff


def _explored(shown: Sequence[tuple[Key, float]], ranking: Ranking, settings: ManualsSettings, most: int) -> list[Key]:
    """Return the rows to explore: what the index likes best of the rest."""
    find = settings.find
    if not find.exploration_enabled or not shown:
        return []
    quota = max(find.exploration_min_candidates, math.ceil(find.exploration_ratio * len(shown)))
    room = min(quota, max(most - _UNDISPLACED, 0))
    there = {key for key, _ in shown[: most - room]} | {keys[0] for _, keys, _ in ranking.gates if keys}
    left_out = [key for key in dict.fromkeys([*ranking.by_words, *ranking.order]) if key not in there]
    return sorted(left_out[:room], key=lambda key: -ranking.fused[key])


def _row(manual_id: str, ranking: Ranking, key: Key, score: float) -> dict[str, Any]:
    path, line = key
    scored = ranking.scored[key]
    title = scored.row.title or path.rpartition("/")[2]
    signals = list(dict.fromkeys([*scored.signals, "gate_rrf"] if len(ranking.gates) > 1 else scored.signals))
    hits = dict(sorted(scored.hits.items(), key=lambda item: (-item[1], item[0])))
    return {
        "ref": {
            "target": "manual",
            "manual_id": manual_id,
            "path": path,
            "start_line": line,
            "json_path": None,
            "title": title,
            "signals": signals,
        },
        "path": path,
        "start_line": line,
        "title": title,
        "score": round(score, 4),
        "score_lexical": round(scored.score + scored.bonus, 4),
        "score_fused": round(ranking.fused[key], 4),
        "matched_tokens": list(hits),
        "token_hits": hits,
        "match_coverage": round(scored.coverage, 4),
        "rank_explain": [f"{part} {points:+.2f}" for part, points in scored.parts],
        "reason": None,
        "conflict_with": [],
        "gap_hint": None,
    }


def _fusion_debug(manual_id: str, ranking: Ranking, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return how each row came to its score: its rank in each gate, and what that was worth."""
    places = [(gate, weight, {key: at for at, key in enumerate(keys, 1)}) for gate, keys, weight in ranking.gates]
    tops = {keys[0] for _, keys, _ in ranking.gates if keys}
    shown: list[dict[str, Any]] = []
    for at, row in enumerate(rows, 1):
        key = (row["path"], row["start_line"])
        contributions = [
            {
                "gate": gate,
                "rank": rank_of[key],
                "weight": round(weight, 4),
                "rrf": round(weight / (RRF_K + rank_of[key]), 6),
            }
            for gate, weight, rank_of in places
            if key in rank_of
        ]
        shown.append(
            {
                "candidate_key": f"{manual_id}|{key[0]}|{key[1]}",
                "rank": at,
                "score": row["score"],
                "ref": row["ref"],
                "contributions": contributions,
                "guaranteed_top": key in tops,
                "guaranteed_injected": key in ranking.injected,
            }
        )
    return shown
