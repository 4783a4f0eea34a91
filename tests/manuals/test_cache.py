"""The cache of finds: what counts as the same question, for how long, and what is never kept."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cache import Embedding, FindCache, Lookup
from responses_mcp.manuals.requests import FindRequest
from responses_mcp.settings.model import CacheSettings
from tests.manuals.found import payload, row

ASKED = FindRequest(query="how to pay", manual_id="shop", required_terms=("pay", "card"))


class Clock:
    time = 0.0

    def __call__(self) -> float:
        return self.time


class Directions:
    """An embedding by the first letter: a and b are nearly the same, c is something else."""

    def __init__(self, **vectors: Sequence[float]) -> None:
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


def test_an_answer_that_takes_longer_than_the_search_did_saves_nothing() -> None:
    cache = cache_with()
    store(cache)
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


def test_a_bypassed_find_is_not_kept() -> None:
    cache = cache_with()
    store(cache, replace(ASKED, include_claim_graph=True))
    store(cache, replace(ASKED, use_cache=False))
    assert look(cache).mode == "miss"


def test_a_search_that_was_cut_short_is_not_kept() -> None:
    cache = cache_with()
    cache.store(ASKED, 1, payload(row()), elapsed_ms=1, complete=False)
    assert look(cache).mode == "miss"


def test_an_answer_lives_from_its_search_on_however_often_it_is_used() -> None:
    clock = Clock()
    cache = cache_with(clock, ttl_sec=10)
    store(cache)
    clock.time = 9.5
    assert look(cache).mode == "exact"
    clock.time = 10
    assert look(cache).mode == "miss"


def test_a_new_search_renews_its_answer() -> None:
    clock = Clock()
    cache = cache_with(clock, ttl_sec=10)
    store(cache)
    clock.time = 9
    store(cache)
    clock.time = 18
    assert look(cache).mode == "exact"


def test_the_least_recently_used_answer_makes_room() -> None:
    cache = cache_with(max_keep=2)
    one, two, three = (replace(ASKED, query=each) for each in ("one", "two", "three"))
    store(cache, one)
    store(cache, two)
    look(cache, one)
    store(cache, three)
    assert [look(cache, each).mode for each in (one, two, three)] == ["exact", "miss", "exact"]


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


def test_without_an_embedding_only_the_same_words_hit() -> None:
    cache = cache_with()
    store(cache, replace(ASKED, query="apples"))
    assert cache.vector(ASKED) is None
    assert look(cache, replace(ASKED, query="bananas")).mode == "miss"


def test_with_an_embedding_a_question_in_other_words_hits() -> None:
    cache = cache_with(embedding=Directions())
    store(cache, replace(ASKED, query="apples"))
    found = look(cache, replace(ASKED, query="Bananas"))
    assert (found.mode, found.score) == ("semantic", 0.995)
    assert found.payload is not None
    assert found.payload["query"] == "Bananas"
    assert found.payload["applied"]["sem_cache_mode"] == "semantic"
    assert look(cache, replace(ASKED, query="cherries")).mode == "miss"


def test_the_most_alike_question_answers() -> None:
    cache = cache_with(embedding=Directions(a=(1, 0), b=(10, 1), c=(10, 2)))
    for query in ("a", "c"):
        cache.store(
            replace(ASKED, query=query), 1, payload(marked=query), elapsed_ms=1, complete=True,
            vector=cache.vector(replace(ASKED, query=query)),
        )  # fmt: skip
    found = look(cache, replace(ASKED, query="bb")).payload
    assert found is not None
    assert found["marked"] == "c"


def test_a_question_alike_in_words_only_is_not_the_same() -> None:
    cache = cache_with(embedding=Directions())
    store(cache, replace(ASKED, query="a"))
    assert look(cache, replace(ASKED, query="b", required_terms=("pay",))).mode == "miss"
    assert look(cache, replace(ASKED, query="b"), generation=2).mode == "miss"


def test_the_threshold_of_likeness_is_a_setting() -> None:
    cache = cache_with(embedding=Directions(), sim_threshold=0.999)
    store(cache, replace(ASKED, query="a"))
    assert look(cache, replace(ASKED, query="b")).mode == "miss"
    assert look(cache, replace(ASKED, query="a2")).mode == "semantic"


def test_an_answer_found_by_likeness_can_be_doubtful_too() -> None:
    cache = cache_with(embedding=Directions(), max_summary_gap=0)
    store(cache, replace(ASKED, query="a"), gap_count=1)
    assert look(cache, replace(ASKED, query="b")).mode == "guard_revalidate"


@pytest.mark.parametrize("broken", [(0, 0), (float("nan"), 1), (float("inf"), 1), (), "text"])
def test_a_vector_that_is_none_never_hits(broken: Any) -> None:
    cache = cache_with(embedding=Directions(a=broken))
    request = replace(ASKED, query="a")
    assert cache.vector(request) is None
    store(cache, request)
    assert look(cache, replace(request, query="aa")).mode == "miss"


def test_vectors_of_different_length_are_not_compared() -> None:
    cache = cache_with(embedding=Directions(a=(1, 0), b=(1, 0, 0)))
    store(cache, replace(ASKED, query="a"))
    assert look(cache, replace(ASKED, query="b")).mode == "miss"


def test_an_embedding_that_fails_costs_only_the_hit(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_with(embedding=Directions())
    assert cache.vector(replace(ASKED, query="unknown to it")) is None
    assert "the embedding of the cache failed" in caplog.text


@given(asked=st.lists(st.sampled_from("abcdef"), max_size=30), keep=st.integers(1, 4))
def test_what_is_kept_are_the_most_recently_used(asked: list[str], keep: int) -> None:
    cache = cache_with(max_keep=keep)
    used: list[str] = []
    for word in asked:
        request = replace(ASKED, query=word)
        assert (look(cache, request).mode == "exact") is (word in used)
        store(cache, request)
        used = [*(each for each in used if each != word), word][-keep:]
