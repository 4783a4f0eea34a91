"""Traces: the newest payloads, each for a fixed time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.traces import Traces
from tests.manuals.found import payload


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def is_kept(traces: Traces, trace_id: str) -> bool:
    try:
        traces.get(trace_id)
    except ManualsError:
        return False
    return True


def test_a_payload_comes_back_under_an_id_of_32_hexadecimal_digits() -> None:
    traces = Traces(100, 1800, Clock())
    found = payload()
    trace_id = traces.put(found)
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert traces.get(trace_id) is found


def test_each_put_has_an_id_of_its_own() -> None:
    traces = Traces(100, 1800, Clock())
    found = payload()
    assert traces.put(found) != traces.put(found)


def test_an_unknown_trace_is_refused_with_what_to_do() -> None:
    with pytest.raises(ManualsError) as caught:
        Traces(100, 1800, Clock()).get("0" * 32)
    assert caught.value.code == "not_found"
    assert "trace_id" in caught.value.message
    assert "run manual_find again" in caught.value.message


def test_only_the_newest_are_kept() -> None:
    traces = Traces(3, 1800, Clock())
    ids = [traces.put(payload()) for _ in range(5)]
    assert [is_kept(traces, each) for each in ids] == [False, False, True, True, True]


def test_reading_a_trace_prolongs_neither_its_life_nor_its_place() -> None:
    clock = Clock()
    traces = Traces(2, 1800, clock)
    first, _ = traces.put(payload()), traces.put(payload())
    clock.time += 1799
    assert is_kept(traces, first)
    clock.time += 1
    assert not is_kept(traces, first)
    older, newer = traces.put(payload()), traces.put(payload())
    traces.get(older)
    traces.put(payload())
    assert (is_kept(traces, older), is_kept(traces, newer)) == (False, True)


@given(
    keep=st.integers(1, 5),
    steps=st.lists(st.one_of(st.just("put"), st.floats(0, 20)), max_size=40),
)
def test_what_is_kept_is_the_newest_that_have_not_expired(keep: int, steps: list[str | float]) -> None:
    clock = Clock()
    traces = Traces(keep, 10, clock)
    put: list[tuple[float, str]] = []
    for step in steps:
        if isinstance(step, float):
            clock.time += step
        else:
            put.append((clock.time, traces.put(payload())))
        expected = [trace for born, trace in put[-keep:] if born > clock.time - 10]
        assert [trace for _, trace in put if is_kept(traces, trace)] == expected
