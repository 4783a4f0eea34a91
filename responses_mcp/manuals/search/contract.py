"""`manual_find` and `manual_hits` as their contract has them: what a find makes of the ranking, and the rows it keeps.

Field names are those of the contract; the thresholds are ours, where it is silent.
"""

from __future__ import annotations

import marshal
import math
import re
import sqlite3
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.cancellation import OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.results.search_results import TIME_BUDGET, place, ref_of
from responses_mcp.manuals.search.claims import claim_graph, empty_graph
from responses_mcp.manuals.search.query import Query, query, required_term
from responses_mcp.manuals.search.ranking import Key, Ranking, Scored, Search, rank, spread
from responses_mcp.manuals.search.reader import Row, Text
from responses_mcp.manuals.search.shown import Showing
from responses_mcp.manuals.words import normalise

if TYPE_CHECKING:
    from responses_mcp.json_types import JsonObject
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.requests import FindRequest, HitsRequest
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.reader import Reader
    from responses_mcp.settings.model import FindSettings, ManualsSettings

MOST_RESULTS: Final = 50
_FEWEST_SCORED, _MOST_SCORED, _SCORED_PER_CANDIDATE = 200, 5_000, 20  # rows; whoever wants one wants the best of all
_RARE, _COMMON, _ENOUGH_SECTIONS = 0.02, 0.85, 20  # shares that call a term too rare or, of so many, too common
_RRF_K: Final = 60
_PASS_WEIGHTS: Final = (1.0, 1.0, 1.1)
_BOTH: Final = 0.1  # for a row with both required terms, in parts of the top score
_OF_REQUIRED, _OF_LACKING = 0.25, 0.1  # what the ranks of g_req weigh: where the question has a term, or has none
_OF_RANKS, _OF_PARTS = 0.35, 0.70  # what ranks weigh beside scores: of gates and passes, if words are certain; of parts
_LEAST_KEPT: Final = 8  # rows that the cut-off leaves alone, and that exploration never takes the place of
_LOW_SHARE, _LOW_COVERAGE = 0.25, 0.50  # of the top score, of the question: what has less of both is cut off
_TOP, _FEW, _READY = 5, 3, 4  # rows that are read, too few, enough
_SMALL: Final = ("query", "manual_id", "applied", "summary", "unscanned")

# The parts of a question about two things: A and B of a comparison.
_NOUN: Final = "[々〆一-鿿ァ-ヺーa-z0-9_.+#-]{1,40}"
_CONTRAST: Final = re.compile(r"違い|差異|比較|比べ|使い分け|どちら|どっち|\b(?:vs|versus|compar\w*|differen\w+)\b")
_OF_TWO: Final = (
    re.compile(rf"(?P<a>{_NOUN}) ?(?:と|及び|および|または) ?(?P<b>{_NOUN}) ?[のはをで間、]"),
    re.compile(r"(?:between|compar(?:e|ing)) (?:the |an? )?(?P<a>.+?) (?:and|with|to) (?:the |an? )?(?P<b>.+)$"),
    re.compile(r"^(?P<a>.+?) (?:vs\.?|versus) (?P<b>.+)$"),
)
_LONGEST_QUESTION: Final = 300  # characters; more is pasted text rather than a question


def sub_queries(question: str) -> list[str]:
    """Return the two things that a question compares, normalised; nothing for another question (M4.35)."""
    text = normalise(question).rstrip("?。.! ")
    if len(text) <= _LONGEST_QUESTION and _CONTRAST.search(text) is not None:
        for pattern in _OF_TWO:
            if (found := pattern.search(text)) is not None and found["a"] != found["b"]:
                return [found["a"], found["b"]]
    return []


class Gate(NamedTuple):
    """The rows that a gate lets through, best first, and what their ranks weigh."""

    name: str
    required: Sequence[str]
    keys: Sequence[Key]
    weight: float


def find(
    request: FindRequest,
    reader: Reader,
    settings: ManualsSettings,
    check: CancellationCheck,
    *,
    unseen: str | None = None,
    unfinished: bool = False,
    meaning: Meaning | None = None,
) -> JsonObject:
    """Search one manual and return the payload, without what library, cache and trace add.

    `unseen` says what of the manual is not indexed; `unfinished` that this is for want of time. `meaning` compares the
    candidates with the question.
    """
    sections = reader.manual.sections
    required = [required_term(text) for text in request.required_terms]
    counts = {each.text: reader.having_required([each]) for each in required}
    guarded = _guarded(counts, sections)
    dropped = [each["term"] for each in guarded if each["dropped"]]
    used = [each for each in required if each.text not in dropped]
    most = min(_MOST_SCORED, max(_FEWEST_SCORED, _SCORED_PER_CANDIDATE * request.max_candidates))
    search = Search([reader], settings.lexical, check, most, used, compared=meaning is not None)
    parts = sub_queries(request.query)
    ranking, gates = _fused(query(request.query), parts, search)
    if meaning is not None:
        meaning.rerank(ranking, [reader])
    rows, ended = _selected(ranking, gates, request.max_candidates, settings.find)
    cutoff = TIME_BUDGET if unfinished else ranking.cutoff or ended
    found = [ranking.scored[key] for key, _ in rows]
    paths = [each.row.path for each in found]
    gaps = _gaps(len(paths), unseen)
    hits = [_hit(request.manual_id, each, score, gates) for each, (_, score) in zip(found, rows, strict=True)]
    texts = reader.texts(each.row.id for each in found)
    top = [any(each.required) for each in found[:_TOP]]
    missing = [term for term, count in counts.items() if not count]
    strict, filtered = reader.having_required(required), reader.having_required(used)
    looked = all(counts[each.text] or reader.looks_within_words(each) for each in required)
    not_looked = unseen or (None if looked else "parts_of_words_not_searched")
    effect, failure = _effect(missing, dropped, strict, filtered, top=top, unseen=not_looked)
    # All terms dropped by the guard is no gate that came back empty: nothing was asked of it.
    relaxed = bool(used) and not filtered
    empty = "required_gate_empty_fallback_to_g0" if relaxed else "required_terms_dropped_by_df_guard"
    status = "ready" if not gaps and len(rows) >= _READY else "needs_followup"
    payload: JsonObject = {
        "query": request.query,
        "manual_id": request.manual_id,
        "applied": {
            "manual_id": request.manual_id,
            "requested_expand_scope": request.expand_scope,
            "expand_scope": False,
            "required_terms_source": "user",
            "required_terms_decision_reason": "provided_by_caller",
            "requested_required_terms": list(counts),
            "required_terms": [each.text for each in used],
            "required_terms_df_filtered": guarded,
            "required_terms_relaxed": relaxed,
            "required_terms_relax_reason": "zero_candidates_with_required_terms" if relaxed else None,
            "required_effect_status": effect,
            "required_failure_reason": failure,
            "required_strict_candidates": strict,
            "required_filtered_candidates": filtered,
            "required_terms_match_stats": [
                {"term": term, "matched_docs": count, "matched_doc_ratio": _share(count, sections)}
                for term, count in counts.items()
            ],
            "required_terms_missing": missing,
            "required_top_k": len(top),
            "required_top_hits": sum(top),
            "selected_gate": "g_req" if filtered else "g0",
            "gate_selection_reason": "rrf_fusion_with_required_gate" if filtered else empty,
        },
        "summary": {
            "scanned_files": reader.manual.files,
            "scanned_nodes": sections,
            "candidates": len(rows),
            "file_bias_ratio": _bias(paths),
            "conflict_count": 0,
            "gap_count": len(gaps),
            "integration_status": status if rows else "blocked",
        },
        "candidates": hits,
        "texts": [(tuple(each.row[:6]), tuple(texts[each.row.id])) for each in found],
        "gaps": gaps,
        "gate_runs": [_gate_run(gate, cutoff, selected=gate is gates[bool(gates[1].keys)]) for gate in gates],
        "fusion_debug": [
            _fusion(at, each.key, hit, gates) for at, (each, hit) in enumerate(zip(found, hits, strict=True), 1)
        ],
    }
    if request.include_claim_graph:
        wanted = settings.find.claim_graph_enabled
        payload["claim_graph"] = claim_graph(request.query, parts, hits) if wanted else empty_graph()
    return payload


def _guarded(counts: Mapping[str, int], sections: int) -> list[JsonObject]:
    """Return the required terms that so few or so many sections have that they select badly (M4.22)."""
    found: list[JsonObject] = []
    for term, count in counts.items():
        common = sections >= _ENOUGH_SECTIONS and count > _COMMON * sections
        if common or 0 < count < _RARE * sections:
            reason = "too_common" if common else "too_rare"
            ratio = _share(count, sections)
            found.append(
                {"term": term, "doc_freq": count, "doc_freq_ratio": ratio, "reason": reason, "dropped": common}
            )
    return found


def _fused(asked: Query, parts: Sequence[str], search: Search) -> tuple[Ranking, tuple[Gate, Gate]]:
    """Rank a question: gate g0 without the required terms, g_req with them, and its parts, all fused by their ranks.

    With two required terms g_req is itself fused from the passes A, B and A+B (M4.31). A part that fails is left out.
    """
    ranking = rank(asked, search)
    scored, base, certain = ranking.scored, {**ranking.fused, **ranking.having}, ranking.certainty * _OF_RANKS
    gated = list(ranking.having)
    if len(search.required) > 1:
        first, second = ([key for key in gated if scored[key].required[at]] for at in (0, 1))
        both = [key for key in first if scored[key].required[1]]
        lifted = _BOTH * ranking.certainty * max(base.values(), default=0.0)
        for key in both:
            base[key] += lifted
            scored[key].signals.append("required_term_and")
        passes = _blended(base, list(zip((first, second, both), _PASS_WEIGHTS, strict=True)), certain)
        gated.sort(key=lambda key: -passes[key])
    for key in gated:
        scored[key].signals += ["required_term", *["required_terms_rrf"] * (len(search.required) > 1)]
    terms = [each.text for each in search.required]
    weight = (_OF_REQUIRED if any(map(asked.has, search.required)) else _OF_LACKING) if gated else 0.0
    gates = (
        Gate("g0", (), ranking.order, 1.0),
        Gate("g_req", terms, gated, weight),
    )
    fused = _blended(base, [(gate.keys, gate.weight) for gate in gates], certain)
    order = sorted(fused, key=lambda key: -fused[key])
    cutoff = ranking.cutoff
    orders = [order]
    for part in parts:
        try:
            of_part = rank(query(part), replace(search, required=()))
        except (OutOfTime, sqlite3.OperationalError):  # the latter such as a phrase that the index cannot parse
            cutoff = TIME_BUDGET
            continue
        orders.append(of_part.order)
        scored = {**of_part.scored, **scored}
        for key in of_part.order:
            scored[key].signals.append("query_decomp_rrf")
    if len(orders) > 1:
        fused = _blended(fused, [(each, 1.0) for each in orders], _OF_PARTS)
        order = sorted(fused, key=lambda key: -fused[key])
    return replace(ranking, scored=scored, order=order, fused=fused, cutoff=cutoff), gates


def _blended(
    base: Mapping[Key, float], rankings: Sequence[tuple[Sequence[Key], float]], of_ranks: float
) -> dict[Key, float]:
    """Mix scores with reciprocal ranks, which are scaled such that the best by rank has the best score."""
    ranks: dict[Key, float] = {}
    for keys, weight in rankings:
        for at, key in enumerate(keys, 1):
            ranks[key] = ranks.get(key, 0.0) + weight / (_RRF_K + at)
    most = max(base.values(), default=0.0)
    top = max(ranks.values(), default=0.0) or 1.0
    return {
        key: (1 - of_ranks) * base.get(key, 0.0) + of_ranks * most * each / top
        for key, each in sorted(ranks.items(), key=lambda item: -item[1])
    }


def _selected(
    ranking: Ranking, gates: Sequence[Gate], max_candidates: int, settings: FindSettings
) -> tuple[list[tuple[Key, float]], str | None]:
    """Return the rows to show with their scores, which never rise, and what ended the list.

    Further rows of a file sink (M4.52), weak ones are cut off (M4.51), a fixed share of the places goes to what the
    index likes best of the rest (M4.4), and the best row of each gate has a place.
    """
    most = min(max_candidates, MOST_RESULTS)
    diverse = spread(ranking.order, ranking.fused, most)
    cutoff = "candidate_cap" if len(ranking.order) > most else None
    for at, (key, score) in enumerate(diverse):
        weak = score < _LOW_SHARE * diverse[0][1] and ranking.scored[key].coverage < _LOW_COVERAGE
        if at >= _LEAST_KEPT and weak:
            diverse, cutoff = diverse[:at], "dynamic_cutoff"
            break
    quota = 0
    if settings.exploration_enabled and diverse:
        share = math.ceil(settings.exploration_ratio * len(diverse))
        quota = min(max(settings.exploration_min_candidates, share), max(most - _LEAST_KEPT, 0))
    shown = diverse[: most - quota]
    there = {key for key, _ in shown}
    injected = [key for key in dict.fromkeys(gate.keys[0] for gate in gates if gate.keys) if key not in there]
    injected = injected[: max(most - 1, 0)]
    rest = [key for key in dict.fromkeys([*ranking.liked, *ranking.order]) if key not in {*there, *injected}]
    explored = sorted(rest[:quota], key=lambda key: -ranking.fused[key])
    shown = shown[: most - len(explored) - len(injected)]
    shown += [(key, ranking.fused[key]) for key in injected]
    for key in explored:
        ranking.scored[key].signals.append("exploration")
        shown.append((key, ranking.fused[key] * settings.exploration_score_scale))
    scores = accumulate((min(max(score, 0.0), 1.0) for _, score in shown), min)
    return [(key, score) for (key, _), score in zip(shown, scores, strict=True)], cutoff


def _effect(
    missing: Sequence[str],
    dropped: Sequence[str],
    strict: int,
    filtered: int,
    *,
    top: Sequence[bool],
    unseen: str | None,
) -> tuple[str, str | None]:
    """Return `required_effect_status` and `required_failure_reason`.

    So many sections have any of the terms, and any that was used; `top` says of the first rows whether they have one.
    """
    fallback = ("required_effective", None) if any(top) else ("required_fallback", "required_terms_not_in_top_k")
    if unseen:
        # Only who has looked everywhere can tell that a term is nowhere.
        reason = f"incomplete:{unseen}" + (f";not_found_so_far:{','.join(missing)}" if missing else "")
        return ("term_dropped_or_weakened" if missing and filtered else fallback[0]), reason
    if not strict:
        return "required_none_matched", f"required_terms_not_found_in_manual_scope:{','.join(missing)}"
    if missing:
        return "term_dropped_or_weakened", f"some_required_terms_not_found_in_manual_scope:{','.join(missing)}"
    if filtered < strict:
        return "term_dropped_or_weakened", f"required_terms_dropped_by_df_guard:{','.join(dropped)}"
    return fallback


def unseen_of(files: int, *, unlisted: bool) -> str | None:
    """Say what of a manual is not indexed: so many files, and perhaps more that are not known."""
    return f"{files}_{'or_more_' if unlisted else ''}files_not_searched" if files or unlisted else None


def _gaps(found: int, unseen: str | None) -> list[JsonObject]:
    """Return the rows of kind `gaps`: one if not all was looked at, and one for what the candidates lack."""
    hints: list[str] = []
    if unseen:
        hints.append(f"The search is incomplete ({unseen}); manual_hits kind unscanned lists files, search again.")
    if not found:
        hints.append("Nothing was found; use other words, or other required_terms.")
    elif found < _FEW:
        hints.append(f"Fewer than {_FEW} sections were found; use more general words, or other required_terms.")
    return [_no_hit("gap", ref=None, path=None, gap_hint=hint) for hint in hints]


def _no_hit(reason: str, *, gap_hint: str | None = None, **fields: Any) -> JsonObject:
    """Return a row of kind `gaps` or `unscanned`. `fields` come first."""
    empty: JsonObject = {"start_line": None, "score": None, "reason": reason, "signals": [], "conflict_with": []}
    return {**fields, **empty, "gap_hint": gap_hint}


def _hit(manual_id: str, found: Scored, score: float, gates: Sequence[Gate]) -> JsonObject:
    _, path, line = found.key
    signals = list(dict.fromkeys([*found.signals, *["gate_rrf"] * bool(gates[1].keys)]))
    ref = {"target": "manual", "manual_id": manual_id, "path": path, "start_line": line, "signals": signals}
    return {
        "ref": ref,
        "title": found.row.title or path.rpartition("/")[2],
        "score": round(score, 4),
        "match_coverage": round(found.coverage, 4),
        "rank_explain": [f"{part} {points:+.2f}" for part, points in found.parts.items()],
    }


def _gate_run(gate: Gate, cutoff: str | None, *, selected: bool) -> JsonObject:
    return {
        "gate": gate.name,
        "required_terms": list(gate.required),
        "candidates_count": len(gate.keys),
        "cutoff_reason": cutoff,
        "selected": selected,
    }


def _fusion(rank: int, key: Key, hit: JsonObject, gates: Sequence[Gate]) -> JsonObject:
    """Return how a row came to its score: its rank in each gate."""
    ranks = [{"gate": gate.name, "rank": gate.keys.index(key) + 1} for gate in gates if key in gate.keys]
    return {"rank": rank, "score": hit["score"], "ref": hit["ref"], "contributions": ranks}


def _bias(paths: Sequence[str]) -> float:
    """Return the share of rows, given by their files, that are of the one file with the most."""
    return _share(max(Counter(paths).values(), default=0), len(paths))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


# What is kept of a find, and its pages


def packed(payload: Mapping[str, Any], unscanned: Iterable[tuple[str, str]]) -> JsonObject:
    """Return a payload, and the files that were not searched with the reasons, in the form that takes little memory.

    To be done in a thread. It never leaves the process, and `marshal` takes a quarter of the time that JSON does.
    """
    small = {key: value for key, value in payload.items() if key in _SMALL}
    large = {key: value for key, value in payload.items() if key not in _SMALL}
    return {**small, "unscanned": _compressed(list(unscanned)), "packed": _compressed(large)}


def _compressed(value: Any) -> bytes:
    return zlib.compress(marshal.dumps(value), 1)


def _expanded(data: bytes) -> Any:
    return marshal.loads(zlib.decompress(data))  # noqa: S302  # written above


def unscanned_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the files that a find did not search, with the reasons."""
    files: list[tuple[str, str]] = _expanded(payload["unscanned"])
    return files


def graph_of(payload: Mapping[str, Any]) -> JsonObject:
    """Return the claim graph of a find, which is empty unless it was asked for."""
    graph: JsonObject = _expanded(payload["packed"]).get("claim_graph") or empty_graph()
    return graph


def page(payload: JsonObject, request: HitsRequest, *, compact: bool) -> JsonObject:
    """Return one page of the rows of a kind (M5); past the last row it is empty.

    `compact` is the form that clients get: candidates and integrated_top say where, how good and why, with the place of
    the match in `ref`.
    """
    if request.kind not in KINDS:
        raise ManualsError("invalid_parameter", f"kind must be one of {', '.join(KINDS)}.", field="kind")
    part = slice(request.offset, request.offset + request.limit)
    shared: JsonObject = {}
    if request.kind == "unscanned":
        rows: Sequence[Any] = unscanned_of(payload)
        items = [_no_hit(reason, manual_id=payload["manual_id"], path=path) for path, reason in rows[part]]
    else:
        large = _expanded(payload["packed"])
        source = large.get("claim_graph") or empty_graph() if request.kind in empty_graph() else large
        of_candidates = request.kind in ("candidates", "integrated_top")
        rows = source["candidates" if of_candidates else request.kind] if request.kind != "conflicts" else ()
        items = list(rows[part])
        if of_candidates:
            items = _shown(payload, items, large["texts"][part], request.kind, compact=compact)
        if request.kind == "candidates" and rows:
            shared["manual_id"] = payload["manual_id"]  # a find stays in its manual
    head = {"trace_id": request.trace_id, **shared, "kind": request.kind, "offset": request.offset}
    return {**head, "limit": request.limit, "total": len(rows), "items": items}


def _shown(
    payload: JsonObject, rows: Sequence[JsonObject], texts: Sequence[Any], kind: str, *, compact: bool
) -> list[JsonObject]:
    """Return candidates with their words and places, which are looked for when they are asked for."""
    required = [required_term(each) for each in payload["applied"]["required_terms"]]
    showing = Showing(query(payload["query"]), required)
    items: list[JsonObject] = []
    for row, (of_row, text) in zip(rows, texts, strict=True):
        shown = showing.show(Row._make((*of_row, "", "", "")), Text(*text))
        ref = {name: row["ref"][name] for name in ("path", "start_line")}
        matched: JsonObject = {"matched_tokens": list(shown.words)}
        if not compact:
            whole = {**row, **matched, "token_hits": shown.words}
            if kind == "candidates":
                del whole["title"]
                whole["ref"] = {**ref, "signals": row["ref"]["signals"]}
            items.append(whole)
            continue
        ref = ref_of(ref["path"], ref["start_line"], place(shown.match_line, shown.char_offset))
        title: JsonObject = {}
        if kind == "integrated_top":
            ref |= {"manual_id": payload["manual_id"], "above": shown.above, "snippet": shown.snippet.text}
            title = {"title": shown_title(row["title"])}
        items.append({"ref": ref, **title, "score": row["score"], **matched})
    return items
