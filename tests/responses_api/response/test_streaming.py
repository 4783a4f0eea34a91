"""Event streams by the rules, in every chunking, and the Response and the phases that they spell."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.errors import UpstreamError
from responses_mcp.responses_api.response.parser import read_answer
from responses_mcp.responses_api.response.reply import ReplyReader
from responses_mcp.responses_api.response.streaming import EventStream
from responses_mcp.testing import bodies, stream_events
from responses_mcp.testing.items import open_page
from tests.responses_api.response.replies import fed


def wire(*events: object) -> bytes:
    lines = [event if isinstance(event, bytes) else f"data: {json.dumps(event)}\n\n".encode() for event in events]
    return b"".join(lines)


def collect(data: bytes, chunk: int = 0) -> tuple[ReplyReader, list[str]]:
    phases: list[str] = []
    headers = {"content-type": "text/event-stream"}
    return fed(data, chunk, headers=headers, on_phase=phases.append), phases


def answer(response: dict):
    return read_answer(response, model="m", max_citations=10, date="2026-11-22", redact=str)


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


def test_the_host_of_an_ipv6_address_is_told_whole() -> None:
    body = bodies.answer("Read.", searches=[open_page("http://[2001:DB8::1]:8080/x")])
    assert "reading [2001:db8::1]" in collect(wire(*stream_events(body)))[1]


@pytest.mark.parametrize("output", [None, 0, 5, "text", True, {"a": 1}, [], [5], [[]]])
def test_a_terminal_event_with_an_output_of_any_kind_is_completed_from_the_events_before(output: Any) -> None:
    *before, last = stream_events(bodies.unsearched())
    stream, _ = collect(wire(*before, {**last, "response": {**last["response"], "output": output}}))
    assert answer(stream.finish()) == answer(bodies.unsearched())


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


# Events out of bytes

STREAMS = {
    "one event": (b"data: a\n\n", ["a"]),
    "two events": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "line ends by CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "line ends by CR": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "line ends mixed": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r", ["a", "b", "c"]),
    "comments and other fields": (b": keep-alive\n\n:\nid: 5\nretry: 10\ndata: a\nunknown\n\n", ["a"]),
    "several data lines": (b"data: a\ndata:\ndata:  b\n\n", ["a\n\n  b"]),
    "no blank after the colon": (b"data:a\n\n", ["a"]),
    "a field that only begins like data": (b"database: x\n\ndata : y\n\n", []),
    "a byte order mark later on": (b"data: a\n\n\xef\xbb\xbfdata: b\n\n", ["a"]),
    "text outside ASCII": ("data: 東京☔𠮷\n\n".encode(), ["東京☔𠮷"]),
    "line separators of Unicode inside data": ("data: a\u2028b\u0085c\n\n".encode(), ["a\u2028b\u0085c"]),
    "invalid UTF-8": (b"data: \xff\n\n", ["\ufffd"]),
    "a cut event": (b"data: a\n\ndata: b\n", ["a"]),
    "nothing": (b"", []),
    "blank lines only": (b"\n\n\r\n\r", []),
}


@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_gives_the_same_events_whatever_the_chunks(name: str, chunk: int) -> None:
    data, expected = STREAMS[name]
    stream = EventStream()
    events = [event for start in range(0, len(data), chunk) for event in stream.feed(data[start : start + chunk])]
    assert [data.decode("utf-8", "replace").strip() for _, data in events] == expected


@given(
    st.lists(st.sampled_from([b"data: ", b"a", b"\n", b"\r", b"\r\n", b":", b"\xe6", b"\x9d\xb1", b"\xef\xbb\xbf"])),
    st.data(),
)
def test_chunks_never_matter(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces) + b"\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=8))) if len(stream) > 1 else []
    one, many = EventStream(), EventStream()
    whole = one.feed(stream)
    parts = [event for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) for event in many.feed(stream[a:b])]
    assert parts == whole
