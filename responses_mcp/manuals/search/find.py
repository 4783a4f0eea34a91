"""A find over one state of the index: from a request to the payload that a trace keeps (M4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from responses_mcp.manuals.results import diagnosis
from responses_mcp.manuals.results.claims import claim_graph, empty_graph
from responses_mcp.manuals.results.decomposition import sub_queries
from responses_mcp.manuals.search.candidates import frequency
from responses_mcp.manuals.search.query import query, required_term
from responses_mcp.manuals.search.ranking import RRF_K, TIME_BUDGET, Gate, Key, Ranking, Search, rank
from responses_mcp.manuals.search.selection import Selection, select
from responses_mcp.manuals.search.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from responses_mcp.json_types import JsonObject
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.requests import FindRequest
    from responses_mcp.manuals.results.find_payload import FusionRow, GateRun, Hit, Payload
    from responses_mcp.manuals.search.candidates import Reader
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.query import RequiredTerm
    from responses_mcp.settings.model import ManualsSettings

_FEWEST_SCORED, _MOST_SCORED = 200, 5_000  # rows; whoever wants one row wants the best of all
_SCORED_PER_CANDIDATE: Final = 20


def find(
    request: FindRequest,
    reader: Reader,
    settings: ManualsSettings,
    check: CancellationCheck,
    *,
    unfinished: bool = False,
    unscanned: int = 0,
    unlisted: bool = False,
    meaning: Meaning | None = None,
) -> Payload:
    """Search one manual and return the payload, without what library, cache and trace add.

    `unfinished` says that time ran out before the index had every file. So many files of the manual are `unscanned`;
    there may be more that are `unlisted`. `meaning` compares the candidates with the question.
    """
    required = [required_term(text) for text in request.required_terms]
    doc_freqs = {each.text: frequency(reader, each) for each in required}
    judged = [diagnosis.guard(text, count, reader.manual.sections) for text, count in doc_freqs.items()]
    guarded = [each for each in judged if each is not None]
    dropped = [each["term"] for each in guarded if each["dropped"]]
    used = [each for each in required if each.text not in dropped]
    most = min(_MOST_SCORED, max(_FEWEST_SCORED, _SCORED_PER_CANDIDATE * request.max_candidates))
    asked = query(request.query)
    parts = sub_queries(request.query)
    search = Search(reader, used, settings.lexical, most, check, compared=meaning is not None)
    ranking = rank(asked, [query(part) for part in parts], search)
    if meaning is not None:
        meaning.rerank(ranking)
    selection = select(ranking, request.max_candidates, settings.find)
    filtered = len(ranking.g_req.keys)
    unseen = diagnosis.unseen(unscanned, unlisted=unlisted, unranked=ranking.cutoff == TIME_BUDGET)
    became = diagnosis.Required(
        doc_freqs=doc_freqs,
        guarded=guarded,
        documents=reader.manual.sections,
        strict=_with_any(required, ranking) if dropped else filtered,
        filtered=filtered,
        unseen=unseen,
    )
    rows = [_hit(request.manual_id, ranking, key, score) for key, score in selection.rows]
    found = [ranking.scored[key].row for key, _ in selection.rows]
    texts = reader.texts(each.id for each in found)
    paths = [path for (path, _), _ in selection.rows]
    gaps = diagnosis.gap_rows(paths, unseen)
    cutoff = TIME_BUDGET if unfinished else ranking.cutoff or selection.cutoff
    payload: Payload = {
        "query": request.query,
        "manual_id": request.manual_id,
        "applied": diagnosis.applied(request, became, [any(ranking.scored[key].required) for key, _ in selection.rows]),
        "summary": diagnosis.summary(
            paths, len(gaps), scanned_files=reader.manual.files, scanned_nodes=reader.manual.sections
        ),
        "candidates": rows,
        "texts": [(tuple(each[:5]), tuple(texts[each.id])) for each in found],
        "gaps": gaps,
        "gate_runs": [_gate_run(gate, ranking, cutoff) for gate in (ranking.g0, ranking.g_req)],
        "fusion_debug": _fusion_debug(request.manual_id, ranking, selection, rows),
    }
    if request.include_claim_graph:
        wanted = settings.find.claim_graph_enabled
        with_words = cast("list[Hit]", shown(payload, range(len(rows)))[0]) if wanted else rows
        graph = claim_graph(request.query, request.manual_id, with_words, parts) if wanted else empty_graph()
        payload["claim_graph"] = graph
    return payload


def _with_any(required: Sequence[RequiredTerm], ranking: Ranking) -> int:
    """Count the rows that have any of the requested terms, those that the guard dropped among them."""
    return sum(
        any(each.required) or any(term.hits(tokens) for term in required for tokens in each.row[5:])
        for each in ranking.scored.values()
    )


def _hit(manual_id: str, ranking: Ranking, key: Key, score: float) -> Hit:
    path, line = key
    scored = ranking.scored[key]
    title = scored.row.title or path.rpartition("/")[2]
    signals = [*scored.signals, "gate_rrf"] if ranking.g_req.keys else scored.signals
    return {
        "ref": {
            "target": "manual",
            "manual_id": manual_id,
            "path": path,
            "start_line": line,
            "json_path": None,
            "title": title,
            "signals": list(dict.fromkeys(signals)),
        },
        "path": path,
        "start_line": line,
        "title": title,
        "score": round(score, 4),
        "score_lexical": round(scored.score + scored.bonus, 4),
        "score_fused": round(ranking.fused[key], 4),
        "matched_tokens": [],
        "token_hits": {},
        "match_coverage": round(scored.coverage, 4),
        "rank_explain": [f"{part} {points:+.2f}" for part, points in scored.parts],
        "reason": None,
        "conflict_with": [],
        "gap_hint": None,
    }


def _gate_run(gate: Gate, ranking: Ranking, cutoff: str | None) -> GateRun:
    rows = [ranking.scored[key] for key in gate.keys]
    return {
        "gate": gate.name,
        "required_terms": [term.text for term in gate.required],
        "candidates_count": len(rows),
        "file_bias_ratio": diagnosis.bias([each.row.path for each in rows]),
        "exception_hits": sum("exceptions" in each.signals for each in rows),
        "top_score": max((round(gate.scores[key], 4) for key in gate.keys), default=None),
        "scoring_mode": "lexical",
        "cutoff_reason": cutoff,
        "weight": round(gate.weight, 4),
        "weight_reason": gate.reason,
        "selected": (gate is ranking.g_req) == bool(ranking.g_req.keys),
    }


def _fusion_debug(manual_id: str, ranking: Ranking, selection: Selection, rows: Sequence[Hit]) -> list[FusionRow]:
    """Return how each row came to its score: its rank in each gate, and what that was worth."""
    gates = [(gate, {key: rank for rank, key in enumerate(gate.keys, 1)}) for gate in (ranking.g0, ranking.g_req)]
    shown: list[FusionRow] = []
    for at, ((key, _), row) in enumerate(zip(selection.rows, rows, strict=True), 1):
        contributions: list[JsonObject] = [
            {
                "gate": gate.name,
                "rank": ranks[key],
                "weight": round(gate.weight, 4),
                "rrf": round(gate.weight / (RRF_K + ranks[key]), 6),
            }
            for gate, ranks in gates
            if key in ranks
        ]
        shown.append(
            {
                "candidate_key": f"{manual_id}|{row['path']}|{row['start_line']}",
                "rank": at,
                "score": row["score"],
                "ref": row["ref"],
                "contributions": contributions,
                "guaranteed_top": key in ranking.best_of_gates,
                "guaranteed_injected": key in selection.injected,
            }
        )
    return shown
