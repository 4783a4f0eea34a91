"""What a find has found, made up: rows and payloads as the search gives them."""

from typing import Any


class Clock:
    """A clock that stands still; `time` is in seconds."""

    time = 1000.0

    def __call__(self) -> float:
        return self.time


def row(
    path: str = "guide.md",
    line: int = 1,
    *,
    score: float = 1.0,
    title: str = "Guide",
    tokens: tuple[str, ...] = ("guide",),
    signals: tuple[str, ...] = (),
    manual: str = "shop",
    **rest: Any,
) -> Any:
    """Return a row of `candidates`."""
    ref = {
        "target": "manual",
        "manual_id": manual,
        "path": path,
        "start_line": line,
        "json_path": None,
        "title": title,
        "signals": list(signals),
    }
    return {
        "ref": ref,
        "path": path,
        "start_line": line,
        "title": title,
        "score": score,
        "score_lexical": score,
        "score_fused": score,
        "matched_tokens": list(tokens),
        "token_hits": dict.fromkeys(tokens, 1),
        "match_coverage": 1.0,
        "rank_explain": ["bm25"],
        "reason": None,
        "conflict_with": [],
        "gap_hint": None,
        **rest,
    }


def payload(*rows: dict[str, Any], gap_count: int = 0, **rest: Any) -> Any:
    """Return what a trace and the cache keep of a find."""
    return {
        "query": "guide",
        "manual_id": "shop",
        "applied": {
            "manual_id": "shop",
            "requested_expand_scope": None,
            "requested_required_terms": ["guide"],
            "selected_gate": "g_req",
            "sem_cache_mode": "miss",
        },
        "summary": {"candidates": len(rows), "gap_count": gap_count, "conflict_count": 0},
        "candidates": list(rows),
        "unscanned": [],
        "gaps": [],
        "gate_runs": [],
        "fusion_debug": [],
        **rest,
    }
