"""Text in pieces and lines: the same text whatever the size of pieces, the bytes, and the line ends."""

import io
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files import texts
from responses_mcp.manuals.files.texts import START, Anchor, encoding_of, lines_of, spans

# What goes wrong at the edge of a piece: bits of characters, line ends, marks.
AWKWARD = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"\xef\xbb\xbf", b"\xef\xbf\xbd", b"\xef", b"\xbf", b"\xf0\x9f\x98",
                     b"\xf0\x9f\x98\x80", b"\xe3\x81\x82", b"\xe3", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\0"]),
    max_size=30,
).map(b"".join)  # fmt: skip


DEPICTED = {**{chr(number): chr(0x2400 + number) for number in range(32)}, "\x7f": "\u2421"}


class Small(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self._most = most

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 0, self._most))


def text_of(data: bytes, encoding: str | None = None) -> str:
    """Return the text as defined: no mark, replaced, LF, controls depicted."""
    text = data.decode(encoding or "utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return "".join(
        each if each in "\n\t" or unicodedata.category(each) != "Cc" else DEPICTED.get(each, "\u2426") for each in text
    )


@given(AWKWARD | st.binary(), st.integers(1, 9))
def test_pieces_join_to_the_whole_text_with_every_replacement_counted(data: bytes, most: int) -> None:
    read = list(spans(Small(data, most), unchecked))
    assert "".join(span.text for span in read) == text_of(data)
    bare = data.removeprefix(b"\xef\xbb\xbf")
    counted = sum(span.replaced for span in read)
    assert counted == bare.decode("utf-8", "replace").count("\ufffd") - bare.count(b"\xef\xbf\xbd")


@given(AWKWARD | st.text().map(str.encode), st.integers(1, 9), st.integers(1, 5))
def test_lines_are_those_of_the_text(data: bytes, most: int, longest: int) -> None:
    read = lines_of(spans(Small(data, most), unchecked), longest)
    assert list(read) == [line[:longest] for line in text_of(data).split("\n")]


def test_no_piece_is_longer_than_promised_and_every_piece_is_checked() -> None:
    checks = 0

    def check() -> None:
        nonlocal checks
        checks += 1

    sizes = [len(span.text) for span in spans(io.BytesIO(b"x" * 1_000_000), check)]
    assert max(sizes) <= 128 * 1024
    assert sum(sizes) == 1_000_000
    assert checks >= len(sizes)


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

    assert list(lines_of(long_line(), 10)) == ["x" * 10]


JAPANESE = "# 見出し\r\nコレクターの設定は「表１」を見よ。\r\ncommit"


@pytest.mark.parametrize("most", [2, 3, 7, 1000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "shift_jis", "euc_jp"])
def test_a_file_is_read_in_its_encoding_at_any_size_of_pieces(encoding: str, most: int) -> None:
    text = JAPANESE + ("😀" if encoding.startswith("utf") else "") + "\r\n"
    data = (b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding)
    handle = Small(data, most)
    read = list(spans(handle, unchecked, encoding=encoding_of(handle, unchecked)))
    assert "".join(span.text for span in read) == text.replace("\r\n", "\n")
    assert sum(span.replaced for span in read) == 0
    for span in read:  # reading can begin at each
        handle.seek(span.start.byte)
        rest = spans(handle, unchecked, span.start, encoding=encoding_of(io.BytesIO(data), unchecked))
        assert "".join(each.text for each in rest) == text.replace("\r\n", "\n")[span.start.char :]


@pytest.mark.parametrize("text", ["①㈱～ﾃｽﾄ", "ﾃｽﾄ\n", "ソ表能"])
def test_what_windows_calls_shift_jis_is_read_as_that(text: str) -> None:
    handle = io.BytesIO(text.encode("cp932"))
    assert "".join(span.text for span in spans(handle, unchecked, encoding=encoding_of(handle, unchecked))) == text


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", "abc".encode("utf-16-be"),
             "a".encode("utf-32"), "ab\n日本".encode("iso-2022-jp")]
)  # fmt: skip
def test_what_is_in_no_encoding_or_has_many_nuls_is_no_text(data: bytes) -> None:
    assert encoding_of(io.BytesIO(data), unchecked) is None


@pytest.mark.parametrize("text", ["日本語\n" * 100_000, "plain ", "日本"])
def test_one_odd_byte_leaves_a_file_what_it_is(text: str) -> None:
    assert encoding_of(io.BytesIO(text.encode() + b"\xff"), unchecked) == "utf-8"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp949", "비밀번호가 틀렸습니다"),
        ("cp949", "# 설치\n\n프린터의 토너를 교체하려면 먼저 전원을 끄고 덮개를 여십시오.\n"),
        ("gb18030", "密码错误，请重新输入"),
        ("gb18030", "# 安装\n\n更换打印机墨盒之前请先关闭电源，然后打开前盖。\n"),
        ("cp1252", "caf\u00e9 au lait\n"),
        ("cp1252", "Die H\u00f6he der T\u00fcr \u2013 f\u00fcr G\u00e4ste"),
        ("cp932", "エラーの一覧"),
        ("euc_jp", "エラーの一覧"),
    ],
)
def test_the_letters_of_a_text_tell_its_encoding(encoding: str, text: str) -> None:
    assert encoding_of(io.BytesIO(text.encode(encoding)), unchecked) == encoding
    odd = text.encode(encoding) * 20 + b"\xff\n"
    assert encoding_of(io.BytesIO(odd), unchecked) == encoding


def test_the_encoding_of_a_long_file_is_told_by_its_beginning() -> None:
    assert encoding_of(io.BytesIO("日本語\n".encode("cp932") * 100_000), unchecked) == "cp932"
