"""The claim graph of a find: what its question asks, and which hits support or contradict an answer (M4.5, M4.56).

It is made from rows alone and never opens a file. The contract gives the fields and is silent on how relations are
drawn, so weights and thresholds here are choices.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from responses_mcp.manuals.results.decomposition import compares
from responses_mcp.manuals.results.find_payload import Hit
from responses_mcp.manuals.words import foldable, is_hiragana, normalise, runs, stem

Relation = Literal["supports", "contradicts", "requires_followup"]

_FACETS: Final = ("definition", "procedure", "eligibility", "exceptions", "compare", "unknown")
_HINTS: Final = {
    "definition": re.compile(
        r"とは|定義|意味|概要|用語"
        r"|\b(?:what (?:is|are)|defin(?:e[ds]?|itions?)|meaning|overview|introduction|glossary)\b"
    ),
    "procedure": re.compile(
        r"手順|方法|やり方|手続|使い方|操作|設定|するには"
        r"|\b(?:how (?:to|do|can)|steps?|procedures?|guide|install\w*|configur\w+|set ?up)\b"
    ),
    "eligibility": re.compile(
        r"条件|要件|資格|対象|前提|可否|可能|できるか|できますか"
        r"|\b(?:requirements?|prerequisites?|eligib\w+|conditions?|supported|allowed|can i)\b"
    ),
    "exceptions": re.compile(
        r"例外|除外|対象外|ただし|但し|を除く|禁止|制限|免責|注意"
        r"|\b(?:except(?:ions?)?|exclu\w+|unless|limitations?|caveats?|not supported)\b"
    ),
    "compare": re.compile(r"違い|相違|差異|比較|使い分け|\b(?:vs|versus|compar\w+|differences?|alternatives?)\b"),
}
_MOST_WORDS: Final = 50  # of a claim, the first ones; a question has fewer
_LONGEST_WORD: Final = 40  # characters
_STRONG: Final = 0.75  # average confidence of support that outweighs one more open question


@dataclass(frozen=True, slots=True)
class Seen:
    """A hit as a claim sees it: its words, folded; its score in parts of the best one; and two of its signals."""

    text: str
    score: float
    exception: bool
    definition: bool


@dataclass(frozen=True, slots=True)
class Fit:
    """How a hit fits a claim, each from 0 to 1: as to the kind of question, the words, the score.

    `hinted` says that the hit has words of the kind.
    """

    kind: float
    coverage: float
    score: float
    exception: bool
    hinted: bool


def empty_graph() -> dict[str, Any]:
    """Return the graph with nothing in it, which is the answer when the feature is off (M4.6)."""
    return {"claims": [], "evidences": [], "edges": [], "facets": []}


def claim_graph(query: str, manual_id: str, rows: Sequence[Hit], parts: Sequence[str]) -> dict[str, Any]:
    """Return the graph of a question over its rows, the best first; each of its `parts` is a claim of its own."""
    graph = empty_graph()
    graph["evidences"] = [_evidence(rank, manual_id, row) for rank, row in enumerate(rows, 1)]
    hits = _seen(rows)
    claims = [query, *parts]
    coverages = [[coverage_of(words, hit.text) for hit in hits] for words in map(_words, claims)]
    asked = normalise(query)
    hinted = {facet for facet, hints in _HINTS.items() if hints.search(asked)}
    chosen = set(hinted)
    if compares(query):
        chosen.add("compare")
    if any(hit.exception for hit in hits):
        chosen.add("exceptions")
    for facet in _FACETS:
        leanings = [leaning_of(facet, hit, asked=facet in hinted) for hit in hits]
        counts = {"supported": 0, "conflicted": 0, "unresolved": 0}
        for claim, covered in zip(claims, coverages, strict=True) if facet in (chosen or {"unknown"}) else ():
            claim_id = f"claim:{facet}:{len(graph['claims']) + 1}"
            edges: list[dict[str, Any]] = []
            for rank, (hit, leaning, coverage) in enumerate(zip(hits, leanings, covered, strict=True), 1):
                kind = min(1.0, leaning[0] + min(0.35, 0.55 * coverage))
                fit = Fit(kind, coverage, hit.score, hit.exception, hinted=leaning[1])
                relation = relation_of(facet, fit)
                if relation is not None:
                    edge = {"from_claim_id": claim_id, "to_evidence_id": f"ev:{rank}", "relation": relation}
                    edges.append({**edge, "confidence": confidence_of(relation, fit)})
            status, confidence = _verdict(edges)
            counts[status] += 1
            text = f"{claim} [{facet}]"
            graph["claims"].append(
                {"claim_id": claim_id, "facet": facet, "text": text, "status": status, "confidence": confidence}
            )
            graph["edges"] += edges
        graph["facets"].append(_facet_row(facet, counts))
    return graph


def _seen(rows: Sequence[Hit]) -> list[Seen]:
    best = max((row["score"] for row in rows), default=0.0)
    seen: list[Seen] = []
    for row in rows:
        ref = row["ref"]
        text = foldable(normalise(" ".join([ref["title"], ref["path"], *row["matched_tokens"]])))
        score = max(0.0, row["score"] / best) if best > 0 else 0.0
        signals = ref["signals"]
        seen.append(Seen(text, score, "exceptions" in signals, "definition_title" in signals))
    return seen


def _words(claim: str) -> list[str]:
    words = list(dict.fromkeys(runs(foldable(normalise(claim)))))
    words = [word for word in words if not is_hiragana(word)] or words
    return [word[:_LONGEST_WORD] for word in words[:_MOST_WORDS]]


def coverage_of(words: Sequence[str], text: str) -> float:
    """Return the share of words in the text, in any form; of a longer Japanese word, that of its pairs."""
    if not words:
        return 0.0
    found = 0.0
    for word in words:
        if stem(word) in text:
            found += 1
        elif not word.isascii() and len(word) > 2:
            pairs = [word[at : at + 2] for at in range(len(word) - 1)]
            found += sum(pair in text for pair in pairs) / len(pairs)
    return found / len(words)


def leaning_of(facet: str, hit: Seen, *, asked: bool) -> tuple[float, bool]:
    """Return how much a hit is of the facet's kind, and whether it has words for it; `asked` if the question has."""
    hints = _HINTS.get(facet)
    if hints is None:
        return 0.0, False
    found = len({hint[0] for hint in hints.finditer(hit.text)})
    told = 0.28 + min(0.20, 0.08 * (found - 1)) if found else 0.0
    marked = (hit.exception and facet == "exceptions") or (hit.definition and facet == "definition")
    return (0.12 if asked else 0.0) + told + (0.20 if marked else 0.0), found > 0


def relation_of(facet: str, fit: Fit) -> Relation | None:
    """Return how a hit bears on a claim under a facet, None if it does not."""
    supports = contradicts = follow_up = False
    if facet == "exceptions":
        supports = fit.exception and fit.kind >= 0.30
        contradicts = fit.coverage >= 0.45
        follow_up = fit.kind >= 0.20 or fit.coverage >= 0.25
    elif facet == "eligibility":
        contradicts = fit.exception and fit.coverage >= 0.30  # "this applies" does not go with an exception
        supports = not contradicts and fit.coverage > 0 and fit.kind >= 0.26
        follow_up = fit.kind >= 0.18 or fit.coverage >= 0.25
    elif facet == "compare":
        supports = fit.hinted and fit.coverage >= 0.45 and fit.kind >= 0.30
        follow_up = fit.coverage >= 0.20
    elif facet == "unknown":
        supports = fit.score >= 0.50 and fit.coverage >= 0.15
        follow_up = fit.coverage >= 0.10 and fit.score >= 0.20
    else:
        supports = fit.coverage > 0 and fit.kind >= 0.24
        follow_up = fit.coverage >= 0.20
    if supports:
        return "supports"
    if contradicts:
        return "contradicts"
    return "requires_followup" if follow_up else None


def confidence_of(relation: Relation, fit: Fit) -> float:
    """Return how sure a relation is, from .05 to .98."""
    if relation == "requires_followup":
        value = 0.20 + 0.25 * fit.kind + 0.20 * fit.coverage + 0.15 * fit.score
    else:
        value = 0.25 + 0.35 * fit.score + 0.30 * fit.kind + 0.10 * fit.coverage
        value += 0.03 if relation == "contradicts" else 0.08 if fit.hinted else 0.02
    return round(min(0.98, max(0.05, value)), 4)


def _verdict(edges: Sequence[Mapping[str, Any]]) -> tuple[str, float]:
    """Return a claim's status, and its confidence: the average of the edges that decided it."""
    supports, contradicts, follow_ups = (
        [edge["confidence"] for edge in edges if edge["relation"] == relation]
        for relation in ("supports", "contradicts", "requires_followup")
    )
    if supports and contradicts:
        return "conflicted", _average([*supports, *contradicts])
    outweighed = len(supports) + (_average(supports) >= _STRONG)
    if supports and len(follow_ups) <= outweighed:
        return "supported", _average(supports)
    return "unresolved", _average([*contradicts, *follow_ups])


def _average(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _evidence(rank: int, manual_id: str, row: Hit) -> dict[str, Any]:
    ref = row["ref"]
    parts = (manual_id, ref["path"], str(ref["start_line"]), ",".join(ref["signals"]), str(row["score"]))
    return {
        "evidence_id": f"ev:{rank}",
        "ref": {"target": "manual", "manual_id": manual_id, "path": ref["path"], "start_line": ref["start_line"]},
        "signals": list(ref["signals"]),
        "score": row["score"],
        "snippet_digest": hashlib.sha256("|".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16],
    }


def _facet_row(facet: str, counts: Mapping[str, int]) -> dict[str, Any]:
    claims = sum(counts.values())
    return {
        "facet": facet,
        "claim_count": claims,
        **{f"{status}_count": count for status, count in counts.items()},
        "coverage_status": "covered" if counts["supported"] else "partial" if claims else "missing",
    }
