"""The text in bytes: without a mark, with newlines alone, in the encoding that its letters tell."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.files.texts import decode
from responses_mcp.manuals.formats.document import Unserved

# Bits of characters, line ends, marks.
AWKWARD = st.lists(
    st.sampled_from([b"\r", b"\n", b"\r\n", b"a", b"\xef\xbb\xbf", b"\xef\xbf\xbd", b"\xef", b"\xbf", b"\xf0\x9f\x98",
                     b"\xf0\x9f\x98\x80", b"\xe3\x81\x82", b"\xe3", b"\xff", b"\xc0\x80", b"\xed\xa0\x80"]),
    max_size=30,
).map(b"".join)  # fmt: skip

DEPICTED = {**{chr(number): chr(0x2400 + number) for number in range(32)}, "\x7f": "\u2421"}


@given(AWKWARD | st.text().map(str.encode))
def test_a_text_has_no_mark_and_newlines_alone_and_every_replacement_is_counted(data: bytes) -> None:
    data += "日本語".encode() * 30  # so that it is UTF-8
    bare = data.removeprefix(b"\xef\xbb\xbf")
    plain = bare.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    shown = "".join(
        each if each in "\n\t" or unicodedata.category(each) != "Cc" else DEPICTED.get(each, "\u2426") for each in plain
    )
    if "\0" not in plain:
        found = decode(data)
        assert (found.text, found.guessed) == (shown, None)
        assert found.replaced == plain.count("\ufffd") - bare.count(b"\xef\xbf\xbd")


JAPANESE = "# 見出し\r\nコレクターの設定は「表１」を見よ。\r\ncommit\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "shift_jis", "euc_jp"])
def test_a_file_is_read_in_its_encoding(encoding: str) -> None:
    data = (b"\xfe\xff" if encoding == "utf-16-be" else b"") + JAPANESE.encode(encoding)
    assert decode(data) == (JAPANESE.replace("\r\n", "\n"), 0, None)


@pytest.mark.parametrize("text", ["①㈱～ﾃｽﾄ", "ﾃｽﾄ\n", "ソ表能"])
def test_what_windows_calls_shift_jis_is_read_as_that(text: str) -> None:
    assert decode(text.encode("cp932")).text == text


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", "abc".encode("utf-16-be"),
             "a".encode("utf-32"), "ab\n日本".encode("iso-2022-jp")]
)  # fmt: skip
def test_what_is_in_no_encoding_or_has_many_nuls_is_no_text(data: bytes) -> None:
    with pytest.raises(Unserved):
        decode(data)


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
        ("cp932", "日本語\n" * 100_000),
    ],
)
def test_the_letters_of_a_text_tell_its_encoding(encoding: str, text: str) -> None:
    guessed = encoding if encoding in {"cp949", "gb18030", "cp1252"} else None
    assert decode(text.encode(encoding)) == (text, 0, guessed)
    odd = decode(text.encode(encoding) * 20 + b"\xff\n")
    assert (odd.text[: len(text)], odd.guessed) == (text, guessed)
