"""The claim graph of a find: what its question asks, and which hits support or contradict an answer (M4.5, M4.56).

The contract gives the fields and is silent on how relations are drawn, so words and thresholds here are choices.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.manuals.words import normalise

if TYPE_CHECKING:
    from responses_mcp.json_types import JsonObject

_HINTS: Final = {
    "definition": re.compile(r"とは|定義|意味|概要|用語|\b(?:what (?:is|are)|defin\w+|meaning|overview|glossary)\b"),
    "procedure": re.compile(
        r"手順|方法|やり方|手続|使い方|操作|設定|\b(?:how (?:to|do|can)|steps?|guide|install\w*|set ?up)\b"
    ),
    "eligibility": re.compile(
        r"条件|要件|資格|対象|前提|可否|\b(?:requirements?|eligib\w+|conditions?|allowed|can i)\b"
    ),
    "exceptions": re.compile(
        r"例外|除外|対象外|ただし|を除く|禁止|制限|\b(?:except\w*|exclu\w+|unless|limitations?)\b"
    ),
    "compare": re.compile(r"違い|差異|比較|使い分け|\b(?:vs|versus|compar\w+|differences?|alternatives?)\b"),
}
_COVERED, _TOUCHED = 0.45, 0.2  # of a question: what a hit has that bears on it, and one that may


def empty_graph() -> dict[str, Any]:
    """Return the graph with nothing in it, which is the answer when the feature is off (M4.6)."""
    return {"claims": [], "evidences": [], "edges": [], "facets": []}


def claim_graph(question: str, parts: Sequence[str], hits: Sequence[JsonObject]) -> dict[str, Any]:
    """Return the graph of a question over its hits, the best first; each of its `parts` is a claim of its own.

    A hit that has much of the question supports a claim; with an exception it contradicts that something is allowed.
    One that has less calls for a closer look.
    """
    graph = empty_graph()
    for rank, hit in enumerate(hits, 1):
        ref = {name: hit["ref"][name] for name in ("target", "manual_id", "path", "start_line")}
        told = {"ref": ref, "signals": hit["ref"]["signals"], "score": hit["score"]}
        digest = hashlib.sha256(repr(told).encode()).hexdigest()[:16]
        graph["evidences"].append({"evidence_id": f"ev:{rank}", **told, "snippet_digest": digest})
    chosen = [kind for kind, hints in _HINTS.items() if hints.search(normalise(question))] or ["unknown"]
    for kind in (*_HINTS, "unknown"):
        statuses = Counter[str]()
        for text in [question, *parts] if kind in chosen else ():
            claim_id = f"claim:{kind}:{len(graph['claims']) + 1}"
            edges = [
                {
                    "from_claim_id": claim_id,
                    "to_evidence_id": f"ev:{rank}",
                    "relation": _relation(kind, hit),
                    "confidence": round(0.05 + 0.9 * hit["match_coverage"], 4),
                }
                for rank, hit in enumerate(hits, 1)
                if hit["match_coverage"] >= _TOUCHED
            ]
            relations = {edge["relation"] for edge in edges}
            status = "conflicted" if {"supports", "contradicts"} <= relations else "unresolved"
            status = "supported" if "supports" in relations and status == "unresolved" else status
            confidence = max((edge["confidence"] for edge in edges), default=0.0)
            claim = {"claim_id": claim_id, "facet": kind, "text": text, "status": status, "confidence": confidence}
            graph["claims"].append(claim)
            graph["edges"] += edges
            statuses[status] += 1
        counts = {f"{status}_count": statuses[status] for status in ("supported", "conflicted", "unresolved")}
        coverage = "covered" if statuses["supported"] else "partial" if statuses else "missing"
        many = statuses.total()
        graph["facets"].append({"facet": kind, "claim_count": many, **counts, "coverage_status": coverage})
    return graph


def _relation(kind: str, hit: JsonObject) -> str:
    if hit["match_coverage"] < _COVERED:
        return "requires_followup"
    return "contradicts" if kind == "eligibility" and "exceptions" in hit["ref"]["signals"] else "supports"
