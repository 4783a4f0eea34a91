"""Text in pieces and lines: the same text whatever the size of pieces, the bytes, and the line ends."""

import io
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals import texts
from responses_mcp.manuals.checks import OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.texts import START, Anchor, Anchors, Lines, spans

# What goes wrong at the edge of a piece: bits of characters, line ends, marks.
AWKWARD = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"\xef\xbb\xbf", b"\xef\xbf\xbd", b"\xef", b"\xbf", b"\xf0\x9f\x98",
                     b"\xf0\x9f\x98\x80", b"\xe3\x81\x82", b"\xe3", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0"]),
    max_size=30,
).map(b"".join)  # fmt: skip


class Small(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, self._most))


def text_of(data: bytes) -> str:
    """Return the text as defined: no mark, replaced, LF."""
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")


@given(AWKWARD | st.binary(), st.integers(1, 9))
def test_pieces_join_to_the_whole_text_with_every_replacement_counted(data: bytes, most: int) -> None:
    read = list(spans(Small(data, most), unchecked))
    assert "".join(span.text for span in read) == text_of(data)
    bare = data.removeprefix(b"\xef\xbb\xbf")
    counted = sum(span.replaced for span in read)
    assert counted == bare.decode("utf-8", "replace").count("\ufffd") - bare.count(b"\xef\xbf\xbd")


@given(AWKWARD, st.integers(1, 9))
def test_reading_can_begin_where_any_piece_did(data: bytes, most: int) -> None:
    whole = list(spans(Small(data, most), unchecked))
    assert all(span.text for span in whole)
    for index, span in enumerate(whole):
        handle = io.BytesIO(data)
        handle.seek(span.start.byte)
        rest = list(spans(handle, unchecked, span.start))
        assert "".join(each.text for each in rest) == "".join(each.text for each in whole[index:])
        assert rest[-1].end[1:] == whole[-1].end[1:] == (len(text_of(data)), text_of(data).count("\n") + 1)


@given(AWKWARD | st.text().map(str.encode), st.integers(1, 9), st.none() | st.integers(1, 5))
def test_lines_are_those_of_the_text_each_with_its_place(data: bytes, most: int, longest: int | None) -> None:
    text = text_of(data)
    read = Lines(spans(Small(data, most), unchecked), longest)
    offset = 0
    for expected, line in zip(text.split("\n"), read, strict=True):
        assert line == expected[:longest]
        assert read.offset == offset
        offset += len(expected) + 1
    assert read.length == len(text)


def test_no_piece_is_longer_than_promised_and_every_piece_is_checked() -> None:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    sizes = [len(span.text) for span in spans(io.BytesIO(b"x" * 1_000_000), check)]
    assert max(sizes) <= 128 * 1024
    assert sum(sizes) == 1_000_000
    assert checks >= len(sizes)


def test_a_check_that_raises_ends_the_reading() -> None:
    def check() -> None:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        next(spans(io.BytesIO(b"x"), check))


def test_a_file_that_fails_in_the_middle_is_a_conflict_that_names_it() -> None:
    class Failing(io.BytesIO):
        name = "ja/a.md"

        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, "Input/output error", "/somewhere/ja/a.md")

    with pytest.raises(ManualsError) as caught:
        list(spans(Failing(), unchecked))
    assert caught.value.code == "conflict"
    assert "'ja/a.md'" in caught.value.message
    assert "/somewhere" not in caught.value.message


def test_a_line_of_many_pieces_is_held_only_as_far_as_it_is_wanted() -> None:
    def long_line() -> Iterator[texts.Span]:
        at = START
        for _ in range(1000):
            end = Anchor(at.byte + 100_000, at.char + 100_000, 1)
            yield texts.Span("x" * 100_000, at, end, 0)
            at = end

    read = Lines(long_line(), 10)
    assert list(read) == ["x" * 10]
    assert (read.offset, read.length) == (0, 100_000_000)


def test_places_are_known_for_one_state_of_a_file_and_for_the_files_last_used() -> None:
    known = Anchors(files=2)
    far = (START, Anchor(5, 4, 2))
    known.keep("a", 1, far)
    assert known.known("a", 1) == far
    assert known.known("a", 2) == known.known("b", 1) == (START,)
    known.keep("a", 1, (*far, Anchor(9, 8, 3)))
    known.keep("a", 1, far)
    assert len(known.known("a", 1)) == 3, "the longer list stays"
    known.keep("b", 1, far)
    known.known("a", 1)
    known.keep("c", 1, far)
    assert known.known("a", 1) != (START,)
    assert known.known("b", 1) == (START,), "used longest ago"
    known.keep("a", 2, far)
    assert known.known("a", 2) == far
    known.keep("small", 1, (START,))
    assert known.known("c", 1) == far
