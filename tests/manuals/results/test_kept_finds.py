"""What is kept of finds: the cache of answers to the same question, and the traces that `manual_hits` pages through."""

import re
from dataclasses import replace
from typing import Any

import pytest

from responses_mcp.manuals.embeddings.vectors import Vector, question
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import FindRequest
from responses_mcp.manuals.results.kept import FindCache, Lookup, Traces
from responses_mcp.settings.model import CacheSettings

ASKED = FindRequest(query="how to pay", manual_id="shop", required_terms=("pay", "card"))


DIRECTIONS = {"a": (1, 0), "b": (10, 1), "c": (0, 1), "d": (1, 0, 0)}
"""Questions by their first letter: a and b are nearly the same, c is something else, and others have no vector."""


def vector(request: FindRequest) -> Vector | None:
    numbers = DIRECTIONS.get(request.query[0])
    return None if numbers is None else question(numbers)


def kept(gap_count: int = 0) -> dict[str, Any]:
    return {
        "query": "",
        "manual_id": "shop",
        "applied": {"selected_gate": "g_req"},
        "summary": {"gap_count": gap_count},
    }


def store(cache: FindCache, request: FindRequest = ASKED, generation: int = 1, **given: Any) -> None:
    payload = given.pop("payload", kept())
    given = {"elapsed_ms": 40, "vector": vector(request), **given}
    cache.store(request, generation, payload, **given)


def look(cache: FindCache, request: FindRequest = ASKED, generation: int = 1) -> Lookup:
    return cache.lookup(request, generation, elapsed_ms=1.2, vector=vector(request))


def test_the_same_question_is_answered_again_with_what_the_caller_said() -> None:
    cache = FindCache(CacheSettings())
    assert look(cache) == Lookup("miss")
    store(cache)
    again = replace(ASKED, query="  HOW to\u3000ｐａｙ ", required_terms=("card", "pay"), expand_scope=True)
    answer = look(cache, again).payload
    assert answer is not None
    assert answer["query"] == again.query
    assert answer["applied"] == {
        "selected_gate": "g_req",
        "requested_expand_scope": True,
        "requested_required_terms": ["card", "pay"],
        "sem_cache_used": True,
        "sem_cache_hit": True,
        "sem_cache_mode": "exact",
        "sem_cache_score": 1.0,
        "sem_cache_latency_saved_ms": 39,
    }


@pytest.mark.parametrize(
    ("changed", "generation"),
    [
        ({"query": "how to play"}, 1),
        ({"manual_id": "bank"}, 1),
        ({"required_terms": ("pay",)}, 1),
        ({"time_ms": 1}, 1),
        ({"max_candidates": 3}, 1),
        ({}, 2),  # of the manual's index
    ],
)
def test_another_question_or_another_state_of_the_manual_is_searched(changed: dict[str, Any], generation: int) -> None:
    cache = FindCache(CacheSettings())
    store(cache)
    assert look(cache, replace(ASKED, **changed), generation).mode == "miss"


def test_the_oldest_of_500_answers_makes_room() -> None:
    cache = FindCache(CacheSettings())
    asked = [replace(ASKED, query=str(number)) for number in range(501)]
    for request in asked:
        store(cache, request)
    assert [look(cache, asked[number]).mode for number in (0, 1, 500)] == ["miss", "exact", "exact"]


@pytest.mark.rule("M4.44")
@pytest.mark.parametrize(("limit", "gaps", "again"), [(-1, 9, False), (0, 0, False), (0, 1, True), (1, 1, False)])
def test_an_answer_over_the_limit_for_gaps_is_searched_again(limit: int, gaps: int, again: bool) -> None:
    cache = FindCache(CacheSettings(max_summary_gap=limit))
    store(cache, replace(ASKED, query="a"), payload=kept(gaps))
    for query in ("a", "b"):
        found = look(cache, replace(ASKED, query=query))
        assert (found.mode == "guard_revalidate", found.payload is None) == (again, again)


@pytest.mark.parametrize(
    ("asked", "threshold", "mode"),
    [("a2", 0.92, "semantic"), ("b", 0.92, "semantic"), ("b", 0.999, "miss"), ("c", 0.92, "miss"), ("d", 0.92, "miss"),
     ("nobody knows it", 0.92, "miss"), ("a", 0.92, "exact")],
)  # fmt: skip
def test_a_question_in_other_words_hits_by_its_vector(asked: str, threshold: float, mode: str) -> None:
    cache = FindCache(CacheSettings(sim_threshold=threshold))
    store(cache, replace(ASKED, query="c"))
    store(cache, replace(ASKED, query="a"))
    cache.store(replace(ASKED, query="c"), 2, kept(), elapsed_ms=1)  # which takes the first away
    store(cache, replace(ASKED, query="a"))
    found = look(cache, replace(ASKED, query=asked))
    assert found.mode == mode
    if mode == "semantic":
        assert found.score == {"a2": 1.0, "b": 0.995}[asked]
        assert found.payload is not None
        assert found.payload["query"] == asked


def is_kept(traces: Traces, trace_id: str) -> bool:
    try:
        traces.get(trace_id)
    except ManualsError as error:
        return "run manual_find again" not in error.message
    return True


def test_the_100_newest_traces_are_kept_however_they_are_read() -> None:
    traces = Traces()
    ids = [traces.put({}) for _ in range(100)]
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)
    assert is_kept(traces, ids[0])
    ids += [traces.put({}) for _ in range(2)]
    assert [is_kept(traces, each) for each in ids] == [False] * 2 + [True] * 100
    assert not is_kept(traces, "0" * 32)
