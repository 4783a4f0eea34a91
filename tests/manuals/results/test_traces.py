"""Traces: the newest payloads, each for a fixed time."""

import re

import pytest

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.results.traces import Traces
from tests.manuals.found import Clock, payload


def is_kept(traces: Traces, trace_id: str) -> bool:
    try:
        traces.get(trace_id)
    except ManualsError:
        return False
    return True


def test_a_payload_comes_back_under_an_id_of_32_hexadecimal_digits_of_its_own() -> None:
    traces = Traces(Clock())
    found = payload()
    first, second = traces.put(found), traces.put(found)
    assert first != second
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert traces.get(first) is found


def test_an_unknown_trace_is_refused_with_what_to_do() -> None:
    with pytest.raises(ManualsError, match=r"trace_id .* run manual_find again") as caught:
        Traces(Clock()).get("0" * 32)
    assert caught.value.code == "not_found"


def test_only_the_100_newest_are_kept_however_they_are_read() -> None:
    traces = Traces(Clock())
    ids = [traces.put(payload()) for _ in range(100)]
    assert is_kept(traces, ids[0])
    ids += [traces.put(payload()) for _ in range(2)]
    assert [is_kept(traces, each) for each in ids] == [False] * 2 + [True] * 100


def test_a_trace_lives_for_30_minutes_however_it_is_read() -> None:
    clock = Clock()
    traces = Traces(clock)
    first = traces.put(payload())
    clock.time += 1799
    second = traces.put(payload())
    assert is_kept(traces, first)
    clock.time += 1
    assert (is_kept(traces, first), is_kept(traces, second)) == (False, True)
    clock.time += 1799
    assert not is_kept(traces, second)
