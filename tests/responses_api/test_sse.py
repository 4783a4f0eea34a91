"""Server-sent events by the rules, in every chunking."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.sse import EventStream

STREAMS = {
    "one event": (b"data: a\n\n", ["a"]),
    "two events": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "line ends by CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "line ends by CR": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "line ends mixed": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r", ["a", "b", "c"]),
    "comments and other fields": (b": keep-alive\n\n:\nid: 5\nretry: 10\ndata: a\nunknown\n\n", ["a"]),
    "several data lines": (b"data: a\ndata:\ndata:  b\n\n", ["a\n\n b"]),
    "no blank after the colon": (b"data:a\n\n", ["a"]),
    "a data field without a colon": (b"data\n\n", [""]),
    "a field that only begins like data": (b"database: x\n\ndata : y\n\n", []),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
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
    assert [event.data.decode("utf-8", "replace") for event in events] == expected


@given(
    st.lists(st.sampled_from([b"data: ", b"a", b"\n", b"\r", b"\r\n", b":", b"\xe6", b"\x9d\xb1", b"\xef\xbb\xbf"])),
    st.data(),
)
def test_chunks_never_matter(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces) + b"\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    one, many = EventStream(), EventStream()
    whole = one.feed(stream)
    parts = [event for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) for event in many.feed(stream[a:b])]
    assert parts == whole
