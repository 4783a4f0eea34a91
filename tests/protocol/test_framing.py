"""Framing: any bytes, any chunking, the same messages."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.protocol.framing import (
    MAX_HEADER_BYTES,
    FramingFault,
    MessageReader,
    Payload,
    encode_frame,
    encode_line,
)

pytestmark = pytest.mark.rule("spec 2")

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
MARK = b"\xef\xbb\xbf"
PONG = '{"jsonrpc":"2.0","id":"二","method":"ping"}'.encode()


def read(data: bytes, chunk: int = 0, limit: int = 0, *, eof: bool = True) -> list[Payload | FramingFault]:
    """Feed `data` in pieces of `chunk` bytes (0: at once) and collect everything."""
    reader = MessageReader(limit)
    step = chunk or len(data) or 1
    items: list[Payload | FramingFault] = []
    for start in range(0, len(data), step):
        items += reader.feed(data[start : start + step])
    return items + (reader.feed_eof() if eof else [])


def brief(items: list[Payload | FramingFault]) -> list[object]:
    """Return payloads as bytes and faults as what kind they are."""
    return [item.data if isinstance(item, Payload) else ("oversized" if item.oversized else "fault") for item in items]


STREAMS: dict[str, tuple[bytes, list[object]]] = {
    "one frame": (encode_frame(PING), [PING]),
    "frames glued together": (encode_frame(PING) + encode_frame(PONG), [PING, PONG]),
    "lines": (encode_line(PING) + encode_line(PONG), [PING, PONG]),
    "lines ended by CRLF": (PING + b"\r\n" + PONG + b"\r\n", [PING, PONG]),
    "a last line without a newline": (PING + b"\n" + PONG, [PING, PONG]),
    "blank lines between": (b"\n\r\n" + PING + b"\n\n \n" + PONG + b"\n", [PING, PONG]),
    "a frame, then a line, then a frame": (encode_frame(PING) + PONG + b"\n" + encode_frame(PING), [PING, PONG, PING]),
    "a frame followed by a stray newline": (encode_frame(PING) + b"\n" + encode_frame(PONG), [PING, PONG]),
    "headers ended by bare newlines": (b"Content-Length: %d\n\n" % len(PING) + PING, [PING]),
    "header names in any case, no blank": (b"content-LENGTH:%d\r\n\r\n" % len(PING) + PING, [PING]),
    "a Content-Type header first": (
        b"Content-Type: application/json; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(PING) + PING,
        [PING],
    ),
    "an unknown header after the length": (b"Content-Length: %d\r\nX-Note: a{b\r\n\r\n" % len(PING) + PING, [PING]),
    "the same length twice": (b"Content-Length: %d\r\n" % len(PING) * 2 + b"\r\n" + PING, [PING]),
    "a body with newlines in it": (b"Content-Length: 5\r\n\r\n{\n\n\n}", [b"{\n\n\n}"]),
    "an empty body": (b"Content-Length: 0\r\n\r\n" + PING + b"\n", [b"", PING]),
    "two lengths that disagree": (b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "a length that is no number": (b"Content-Length: ten\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "a negative length": (b"Content-Length: -1\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "a length of 30 digits": (b"Content-Length: " + b"9" * 30 + b"\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "a length over 1 GiB": (b"Content-Length: 99999999999\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "a length of a byte over 1 GiB, then frames": (
        b"Content-Length: %d\r\n\r\n" % (2**30 + 1) + PING + encode_frame(PONG) + encode_frame(PING),
        ["fault", PING, PONG, PING],
    ),
    "a length over 1 GiB behind a body cut short": (
        b"Content-Length: 40\r\n\r\n" + PING + PING[:9] + b"Content-Length: 99999999999\n\n" + PONG + b"\n",
        [PING, PING[:9], "fault", PONG],
    ),
    "a length in other digits": ("Content-Length: ٣\r\n\r\n".encode() + PING + b"\n", ["fault", PING]),
    "headers without a length": (b"Content-Type: text/plain\r\n\r\n" + PING + b"\n", ["fault", PING]),
    "the blank line missing": (
        b"Content-Length: %d\r\n" % len(PING) + PING + b"\n" + PONG + b"\n",
        ["fault", PING, PONG],
    ),
    "the blank line missing among frames": (
        b"Content-Length: %d\r\n" % len(PING) + PING + encode_frame(PONG),
        ["fault", PING, PONG],
    ),
    "a length too short comes back into step": (
        b"Content-Length: 10\r\n\r\n" + PING + encode_frame(PONG) + encode_frame(PING),
        [PING[:10], PING[10:], PONG, PING],
    ),
    "a header block too long": (
        b"Content-Length: 5\r\n" + b"X: yes\r\n" * (MAX_HEADER_BYTES // 4) + b"\r\n" + PING + b"\n",
        ["fault", PING],
    ),
    "a header block too long that runs into a message": (
        b"Content-Length: 5\r\n" + b"X: yes\r\n" * (MAX_HEADER_BYTES // 4) + PING + b"\n",
        ["fault", PING],
    ),
    "a header line too long": (
        b"Content-Length: 5\r\nX: " + b"y" * (3 * MAX_HEADER_BYTES) + b"\r\n\r\n" + PING + b"\n",
        ["fault", PING],
    ),
    "garbage between messages": (PING + b"\nnot json at all\n" + PONG + b"\n", [PING, b"not json at all", PONG]),
    "U+2028 inside a line": ('{"a":"\u2028"}\n'.encode(), ['{"a":"\u2028"}'.encode()]),
    "the end inside a body": (b"Content-Length: 50\r\n\r\n" + PING, ["fault"]),
    "the end inside a header": (b"Content-Length: 50\r\n", ["fault"]),
    "the end inside a header line": (b"Content-Length: 5", ["fault"]),
    "a byte order mark before a last line": (PING + b"\n" + MARK + PONG, [PING, PONG]),
    "several byte order marks": (
        b"".join([MARK * 2, PING, b"\n", MARK * 3, encode_frame(MARK * 2 + PONG), MARK * 4, b"\n", MARK * 2, PING]),
        [PING, PONG, PING],
    ),
    "byte order marks before headers that a message runs into": (
        PING + MARK * 2 + encode_frame(PONG) + encode_frame(PING),
        [PING, PONG, PING],
    ),
    "a byte order mark where the blank line is missing": (
        b"Content-Length: %d\r\n" % len(PING) + MARK + PING + b"\n" + encode_frame(PONG),
        ["fault", PING, PONG],
    ),
    "a byte order mark in place of the blank line": (
        b"Content-Length: %d\r\n" % len(PING) + MARK + b"\r\n" + PING + encode_frame(PONG),
        [PING, PONG],
    ),
    "a byte order mark within a message": (b"{" + MARK + b"}\n", [b"{" + MARK + b"}"]),
    "nothing": (b"", []),
    "only blanks": (b" \r\n\t\n ", []),
}


@pytest.mark.rule("spec 2.1")
@pytest.mark.parametrize("limit", [0, 2**24])
@pytest.mark.parametrize("chunk", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_cut_into_the_same_messages_whatever_the_chunks(name: str, chunk: int, limit: int) -> None:
    data, expected = STREAMS[name]
    assert brief(read(data, chunk, limit)) == expected


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """Tell how many bytes of memory are held since the block began: a fixture would count what pytest does, too."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_an_endless_header_line_is_not_kept() -> None:
    with counting() as held:
        reader = MessageReader()
        reader.feed(b"Content-Length: 5\r\nX: ")
        for _ in range(200):
            assert reader.feed(b"y" * 1000) == []
        assert held() < 3 * MAX_HEADER_BYTES


@pytest.mark.rule("spec 2.1")
@pytest.mark.parametrize("chunk", [0, 1, 7])
@pytest.mark.parametrize("frame", [encode_line, encode_frame], ids=["line", "framed"])
def test_a_message_over_the_limit_is_refused_once_and_skipped_exactly(frame, chunk) -> None:
    long = b'{"x":"' + b"y" * 200 + b'"}'
    stream = frame(PING) + frame(long) + frame(PONG)
    assert brief(read(stream, chunk, limit=100)) == [PING, "oversized", PONG]


@pytest.mark.parametrize("frame", [encode_line, encode_frame], ids=["line", "framed"])
def test_a_message_of_exactly_the_limit_is_accepted(frame) -> None:
    assert brief(read(frame(PING), 1, limit=len(PING))) == [PING]
    assert brief(read(frame(PING), 1, limit=len(PING) - 1)) == ["oversized"]


def test_an_over_long_message_is_refused_before_it_has_arrived_and_is_not_kept() -> None:
    with counting() as held:
        reader = MessageReader(1000)
        assert brief(reader.feed(b"{" * 1001)) == ["oversized"]
        for _ in range(200):
            assert reader.feed(b"{" * 1000) == []
        assert held() < 3 * MAX_HEADER_BYTES
    assert brief(reader.feed(b"\n" + PING + b"\n")) == [PING]


def test_a_body_of_exactly_1_gib_is_a_body_and_is_skipped_exactly() -> None:
    reader = MessageReader(1000)
    assert brief(reader.feed(b"Content-Length: %d\r\n\r\n" % 2**30)) == ["oversized"]
    for _ in range(1024):
        assert reader.feed(b"\n" * 2**20) == []
    assert brief(reader.feed(PING + b"\n")) == [PING]


def test_the_end_of_input_inside_a_skipped_message_is_silent() -> None:
    assert brief(read(b"{" * 300, limit=100)) == ["oversized"]


def test_a_message_tells_whether_it_came_as_a_line() -> None:
    items = read(encode_frame(PING) + encode_line(PONG) + PING[:5] + encode_frame(PONG))
    assert [item.line for item in items if isinstance(item, Payload)] == [False, True, False, False]


MESSY = st.one_of(
    st.sampled_from(
        [PING, PONG, b"\n", b"\r\n", b"Content-Length: ", b"Content-Length: 40\r\n\r\n", b"{", b"[", b"4", b":"]
    ),
    st.sampled_from([encode_frame(PING), encode_line(PONG), b"Content-Type: x\r\n", b"content-length:3\n\n"]),
    st.just(b"Content-Length: 99999999999\r\n\r\n"),
    st.binary(max_size=20),
)


@given(st.lists(MESSY, max_size=30), st.data())
def test_any_bytes_in_any_chunks_give_the_same_messages_and_never_raise(
    pieces: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(pieces)
    limit = data.draw(st.sampled_from([0, 10, 45, 100]))
    whole = read(stream, limit=limit)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = MessageReader(limit)
    parts: list[Payload | FramingFault] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        parts += reader.feed(stream[start:end])
    parts += reader.feed_eof()
    assert parts == whole


@pytest.mark.rule("spec 2.1")
@given(st.lists(MESSY, max_size=20))
def test_after_any_garbage_three_blank_lines_and_a_frame_are_read(pieces: list[bytes]) -> None:
    # Garbage may have promised a body of up to 40 bytes, so enough filler follows to pay that debt first.
    stream = b"".join(pieces) + b"\n" * 60 + encode_frame(PING)
    assert PING in brief(read(stream))


@pytest.mark.parametrize(("more", "heard"), [(0, [PING]), (1, ["fault"])])
def test_a_header_block_has_at_most_16_kib(more: int, heard: list[object]) -> None:
    long = b"X-Note: ".ljust(16 * 1024 - 1 + more, b"x")  # the carriage return of the blank line is one byte more
    stream = b"Content-Length: %d\r\n%b\n\r\n" % (len(PING), long)
    assert brief(MessageReader().feed(stream + PING))[: len(heard)] == heard


@pytest.mark.parametrize(("more", "heard"), [(0, [b"{", PING]), (1, None)])
def test_a_header_at_the_end_of_a_line_is_looked_for_in_256_bytes(more: int, heard: list[object] | None) -> None:
    header = (b"Content-Length:" + b"%d\r" % len(PING)).replace(b":", b":" + b" " * (256 + more - 18))
    assert len(header) == 256 + more
    found = brief(MessageReader().feed(b"{" + header + b"\n\r\n" + PING))
    assert found == heard if heard else found == [b"{" + header.strip()]


def test_a_last_line_without_a_newline_came_as_a_line_and_is_told_once() -> None:
    reader = MessageReader()
    reader.feed(PING)
    assert reader.feed_eof() == [Payload(PING, line=True)]
    assert reader.feed_eof() == []
