"""The cache of finds: what counts as the same question, for how long, and what is never kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from responses_mcp.manuals.requests import FindRequest
from responses_mcp.manuals.results.cache import Embedding, FindCache, Lookup
from responses_mcp.settings.model import CacheSettings
from tests.manuals.found import Clock, payload, row

ASKED = FindRequest(query="how to pay", manual_id="shop", required_terms=("pay", "card"))


class Directions:
    """An embedding by the first letter: a and b are nearly the same, c is something else."""

    def __init__(self, **vectors: Any) -> None:
        self.vectors = vectors or {"a": (1, 0), "b": (10, 1), "c": (0, 1)}
        self.asked: list[str] = []

    def embed(self, text: str, /) -> Sequence[float]:
        self.asked.append(text)
        return self.vectors[text[0]]


def cache_with(clock: Clock | None = None, embedding: Embedding | None = None, **settings: Any) -> FindCache:
    return FindCache(CacheSettings(**settings), clock or Clock(), embedding)


def store(cache: FindCache, request: FindRequest = ASKED, generation: int = 1, **kept: Any) -> None:
    found = payload(row(), **kept)
    cache.store(request, generation, found, elapsed_ms=40, complete=True, vector=cache.vector(request))


def look(cache: FindCache, request: FindRequest = ASKED, generation: int = 1) -> Lookup:
    return cache.lookup(request, generation, elapsed_ms=1.2, vector=cache.vector(request))


def test_what_was_never_asked_is_a_miss() -> None:
    found = look(cache_with())
    assert found == Lookup("miss")
    assert found.applied() == {
        "sem_cache_used": True,
        "sem_cache_hit": False,
        "sem_cache_mode": "miss",
        "sem_cache_score": None,
        "sem_cache_latency_saved_ms": None,
    }


def test_the_same_question_is_answered_again_and_says_so() -> None:
    cache = cache_with()
    store(cache)
    found = look(cache)
    assert found.payload is not None
    assert found.payload["applied"] == {
        **payload()["applied"],
        "requested_required_terms": ["pay", "card"],
        "sem_cache_used": True,
        "sem_cache_hit": True,
        "sem_cache_mode": "exact",
        "sem_cache_score": 1.0,
        "sem_cache_latency_saved_ms": 39,
    }
    assert cache.lookup(ASKED, 1, elapsed_ms=1000).latency_saved_ms == 0


def test_an_answer_is_the_callers_own_over_shared_rows() -> None:
    cache = cache_with()
    found = payload(row())
    cache.store(ASKED, 1, found, elapsed_ms=1, complete=True)
    first = look(cache, replace(ASKED, expand_scope=True, query="How  to pay")).payload
    second = look(cache, replace(ASKED, required_terms=("card", "pay"))).payload
    assert first is not None
    assert second is not None
    assert first["applied"]["requested_expand_scope"] is True
    assert second["applied"]["requested_expand_scope"] is None
    assert (first["query"], second["query"]) == ("How  to pay", "how to pay")
    assert second["applied"]["requested_required_terms"] == ["card", "pay"]
    assert first["candidates"] is second["candidates"] is found["candidates"]
    assert found["applied"] == payload()["applied"]


@pytest.mark.parametrize(
    "same",
    [
        {"query": "  HOW to\u3000ｐａｙ "},
        {"required_terms": ("card", "pay")},
        {"expand_scope": True},
        {"inline_hits": 3},
        {"use_cache": True},
    ],
)
def test_what_does_not_change_the_answer_does_not_change_the_question(same: dict[str, Any]) -> None:
    cache = cache_with()
    store(cache)
    assert look(cache, replace(ASKED, **same)).mode == "exact"


@pytest.mark.parametrize(
    "other",
    [
        {"query": "how to play"},
        {"manual_id": "bank"},
        {"required_terms": ("pay",)},
        {"time_ms": 1},
        {"max_candidates": 3},
    ],
)
def test_another_question_is_searched(other: dict[str, Any]) -> None:
    cache = cache_with()
    store(cache)
    assert look(cache, replace(ASKED, **other)).mode == "miss"


def test_a_changed_manual_is_searched_again_and_its_old_answers_are_dropped() -> None:
    cache = cache_with()
    store(cache, generation=1)
    store(cache, replace(ASKED, manual_id="bank"), generation=1)
    assert look(cache, generation=2).mode == "miss"
    store(cache, generation=2)
    assert look(cache, generation=2).mode == "exact"
    assert look(cache, generation=1).mode == "miss"
    assert look(cache, replace(ASKED, manual_id="bank"), generation=1).mode == "exact"


@pytest.mark.parametrize(
    ("enabled", "asked", "bypassed"),
    [
        (True, {}, False),
        (False, {}, True),
        (True, {"use_cache": False}, True),
        (False, {"use_cache": True}, False),
        (True, {"include_claim_graph": True}, True),
        (True, {"use_cache": True, "include_claim_graph": True}, True),
        (True, {"only_unscanned_from_trace_id": "0" * 32}, True),
    ],
)
def test_the_cache_is_bypassed_when_it_is_off_or_the_answer_is_special(
    enabled: bool, asked: dict[str, Any], bypassed: bool
) -> None:
    embedding = Directions(h=(1, 0))
    cache = cache_with(embedding=embedding, enabled=enabled)
    store(cache, replace(ASKED, use_cache=True))  # so that there is something to find
    embedding.asked.clear()
    request = replace(ASKED, **asked)
    found = look(cache, request)
    assert (found.mode == "bypass") is bypassed
    assert found.applied()["sem_cache_used"] is not bypassed
    assert (embedding.asked == []) is bypassed


@pytest.mark.parametrize(
    ("asked", "complete"), [({"include_claim_graph": True}, True), ({"use_cache": False}, True), ({}, False)]
)
def test_what_bypassed_the_cache_or_was_cut_short_is_not_kept(asked: dict[str, Any], complete: bool) -> None:
    cache = cache_with()
    cache.store(replace(ASKED, **asked), 1, payload(row()), elapsed_ms=1, complete=complete)
    assert look(cache).mode == "miss"


def test_an_answer_lives_for_30_minutes_from_its_last_search_on_however_often_it_is_used() -> None:
    clock = Clock()
    cache = cache_with(clock)
    for _ in range(2):
        store(cache)
        clock.time += 1799.5
        assert look(cache).mode == "exact"
    clock.time += 0.5
    assert look(cache).mode == "miss"


def test_the_least_recently_used_answer_makes_room() -> None:
    cache = cache_with()
    asked = [replace(ASKED, query=str(number)) for number in range(501)]
    for request in asked[:500]:
        store(cache, request)
    look(cache, asked[0])
    store(cache, asked[500])
    assert [look(cache, asked[number]).mode for number in (0, 1, 2, 500)] == ["exact", "miss", "exact", "exact"]


@pytest.mark.rule("M4.44")
@pytest.mark.parametrize(
    ("limits", "kept", "mode"),
    [
        ({}, {"gap_count": 9}, "exact"),
        ({"max_summary_gap": 0}, {"gap_count": 0}, "exact"),
        ({"max_summary_gap": -1, "max_summary_conflict": 0}, {"gap_count": 9}, "exact"),
        ({"max_summary_gap": 0}, {"gap_count": 1}, "guard_revalidate"),
        ({"max_summary_gap": 1}, {"gap_count": 1}, "exact"),
    ],
)
def test_an_answer_over_the_limit_for_gaps_is_searched_again(
    limits: dict[str, Any], kept: dict[str, Any], mode: str
) -> None:
    cache = cache_with(**limits)
    store(cache, **kept)
    found = look(cache)
    assert found.mode == mode
    assert (found.payload is None) is (mode == "guard_revalidate")
    assert found.applied()["sem_cache_hit"] is (mode == "exact")


def test_a_doubtful_answer_is_replaced_by_a_better_one() -> None:
    cache = cache_with(max_summary_gap=0)
    store(cache, gap_count=1)
    assert look(cache).mode == "guard_revalidate"
    store(cache, gap_count=0)
    assert look(cache).mode == "exact"


def test_with_an_embedding_a_question_in_other_words_hits() -> None:
    cache = cache_with(embedding=Directions())
    store(cache, replace(ASKED, query="apples"))
    found = look(cache, replace(ASKED, query="Bananas"))
    assert (found.mode, found.score) == ("semantic", 0.995)
    assert found.payload is not None
    assert found.payload["query"] == "Bananas"
    assert found.payload["applied"]["sem_cache_mode"] == "semantic"


@pytest.mark.parametrize(
    ("embedding", "changed", "generation"),
    [
        (None, {"query": "bananas"}, 1),
        (Directions(), {"query": "cherries"}, 1),
        (Directions(), {"query": "bananas", "required_terms": ("pay",)}, 1),
        (Directions(), {"query": "bananas"}, 2),
        (Directions(a=(1, 0), b=(1, 0, 0)), {"query": "bananas"}, 1),  # vectors of different length
        *(
            (Directions(a=none), {"query": "aa"}, 1)
            for none in [(0, 0), (float("nan"), 1), (float("inf"), 1), (), "text"]
        ),
    ],
)
def test_a_question_that_is_not_the_same_in_meaning_does_not_hit(
    embedding: Any, changed: dict[str, Any], generation: int
) -> None:
    cache = cache_with(embedding=embedding)
    store(cache, replace(ASKED, query="apples"))
    assert look(cache, replace(ASKED, **changed), generation).mode == "miss"


def test_the_most_alike_question_answers() -> None:
    cache = cache_with(embedding=Directions(a=(1, 0), b=(10, 1), c=(10, 2)))
    for query in ("a", "c"):
        store(cache, replace(ASKED, query=query), marked=query)
    found = look(cache, replace(ASKED, query="bb")).payload
    assert found is not None
    assert found["marked"] == "c"


def test_the_threshold_of_likeness_is_a_setting() -> None:
    cache = cache_with(embedding=Directions(), sim_threshold=0.999)
    store(cache, replace(ASKED, query="a"))
    assert look(cache, replace(ASKED, query="b")).mode == "miss"
    assert look(cache, replace(ASKED, query="a2")).mode == "semantic"


def test_an_answer_found_by_likeness_can_be_doubtful_too() -> None:
    cache = cache_with(embedding=Directions(), max_summary_gap=0)
    store(cache, replace(ASKED, query="a"), gap_count=1)
    assert look(cache, replace(ASKED, query="b")).mode == "guard_revalidate"


def test_an_embedding_that_fails_costs_only_the_hit(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_with(embedding=Directions())
    assert cache.vector(replace(ASKED, query="unknown to it")) is None
    assert "the embedding of the cache failed" in caplog.text
