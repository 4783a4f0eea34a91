"""Streamed responses: the same answer as without a stream, with phases on the way."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.errors import ConnectionFailed, ServiceFailed, UpstreamError
from responses_mcp.responses_api.reading import read_answer
from responses_mcp.responses_api.reply import ReplyReader
from responses_mcp.testing import bodies, stream_events
from tests.responses_api.replies import fed


def wire(*events: object) -> bytes:
    lines = [event if isinstance(event, bytes) else f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return b"".join(lines)


def collect(data: bytes, chunk: int = 0) -> tuple[ReplyReader, list[str]]:
    phases: list[str] = []
    headers = {"content-type": "text/event-stream"}
    return fed(data, chunk, headers=headers, on_phase=phases.append), phases


def answer(response: dict):
    return read_answer(response, model="m", max_citations=10, date="2026-11-22", redact=str)


@pytest.mark.parametrize("chunk", [0, 1, 7, 1000])
@pytest.mark.parametrize("name", ["searched", "unsearched", "two_parts", "commentary_then_final", "markers", "refusal"])
def test_a_streamed_response_reads_like_the_whole_one(name: str, chunk: int) -> None:
    body = bodies.WELL_FORMED[name]()
    stream, _ = collect(wire(*stream_events(body)), chunk)
    assert answer(stream.finish()) == answer(body)


@pytest.mark.parametrize("name", ["searched", "two_parts", "commentary_then_final", "several_messages"])
def test_a_terminal_event_with_an_empty_output_is_filled_from_the_items(name: str) -> None:
    body = bodies.WELL_FORMED[name]()
    stream, _ = collect(wire(*stream_events(body, empty_terminal=True)))
    assert answer(stream.finish()) == answer(body)


def test_pieces_of_text_stand_in_when_no_item_was_finished_either() -> None:
    body = bodies.searched()
    kept = [event for event in stream_events(body, empty_terminal=True) if event["type"] != "response.output_item.done"]
    stream, _ = collect(wire(*kept))
    got, whole = answer(stream.finish()), answer(body)
    assert (got.text, got.citations) == (whole.text, whole.citations)


def test_the_phases_of_a_searched_answer() -> None:
    body = bodies.response(
        [
            bodies.reasoning(),
            bodies.web_search_call(["python 3.15 release"], []),
            bodies.web_search_call([], []),
            {
                "id": "ws_2",
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "open_page", "url": "https://peps.python.org/x"},
            },
            {
                "id": "ws_3",
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "open_page", "url": None},
            },
            {"id": "ws_4", "type": "web_search_call", "status": "completed"},
            bodies.message([bodies.output_text("It is out. Really.")]),
        ]
    )
    _, phases = collect(wire(*stream_events(body)))
    assert [phase for phase in phases if phase != "searching"] == [
        "thinking",
        "searched: python 3.15 release",
        "searched",
        "reading peps.python.org",
        "reading a page",
        "searched",
        "writing",
    ]
    assert "searching" in phases


@pytest.mark.parametrize("chunk", [0, 5])
def test_a_stream_without_a_terminal_event_is_an_error_that_is_not_repeated(chunk: int) -> None:
    stream, _ = collect(wire(*stream_events(bodies.searched())[:-1]), chunk)
    with pytest.raises(ConnectionFailed, match="ended before") as caught:
        stream.finish()
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "boom", "param": None, "sequence_number": 3},
        {"error": {"code": "server_error", "message": "boom"}},
        {"type": "error", "error": {"code": "server_error", "message": "boom"}},
    ],
)
def test_an_error_event_becomes_a_failed_response(event: dict) -> None:
    stream, _ = collect(wire(*stream_events(bodies.searched())[:3], event))
    with pytest.raises(ServiceFailed, match="boom"):
        stream.finish()


def test_what_comes_after_the_terminal_event_is_ignored() -> None:
    body = bodies.unsearched()
    stream, _ = collect(wire(*stream_events(body), {"type": "error", "message": "late"}, b"data: [DONE]\n\n"))
    assert answer(stream.finish()) == answer(body)


def test_unknown_and_broken_events_are_passed_over() -> None:
    body = bodies.searched()
    noise = [
        b"data: {broken\n\n",
        b": keep-alive\n\n",
        b"data: 5\n\n",
        {"type": "response.new_thing", "item": 7},
        {"type": 5},
    ]
    events = [piece for event in stream_events(body) for piece in (event, *noise)]
    stream, _ = collect(wire(*events))
    assert answer(stream.finish()) == answer(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "item", "text"]), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = st.sampled_from(
    ["response.completed", "response.output_item.done", "response.output_item.added", "response.output_text.delta"]
    + ["response.output_text.annotation.added", "response.web_search_call.searching", "error", "response.failed"]
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": KINDS},
            optional=dict.fromkeys(
                ("item", "response", "delta", "annotation", "output_index", "content_index", "error"), JSON
            ),
        ),
        max_size=6,
    )
)
def test_no_event_of_any_shape_breaks_the_stream(events: list[dict]) -> None:
    stream, phases = collect(wire(*events))
    assert all(isinstance(phase, str) for phase in phases)
    with suppress(UpstreamError):  # most are not complete
        assert isinstance(stream.finish(), dict)
