"""The text in the bytes of a file: without a byte order mark, all line ends as newlines, controls made visible.

Files in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, GB18030 and Windows-1252 are read as such. Bytes that
stand for nothing become U+FFFD and are counted. A control character becomes the one that depicts it (U+2400 to U+2421),
so none steers a terminal.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

from responses_mcp.manuals.files.encodings import GUESSED, guess
from responses_mcp.manuals.formats.document import Unserved

NOT_TEXT: Final = "not_text"
"""Why a file is not served that has many NULs, or is ISO-2022-JP."""

_UTF_8: Final = "utf-8"
_MARKS: Final = {_UTF_8: codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_ISO_2022: Final = re.compile(b"\x1b\\$[@B]")  # Japanese that is ASCII throughout and means nothing as that
_MOST_NULS: Final = 0.002  # of the characters; of chance bytes it is .004
_WORDS: Final = 10  # characters, in which one NUL may be
_WRITTEN: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[\\\"/bfnrt])")
_CONTROL: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


class Decoded(NamedTuple):
    """A text, how many U+FFFD in it stand for bytes without a meaning, and its encoding if others resemble it."""

    text: str
    replaced: int
    guessed: str | None


def decode(content: bytes) -> Decoded:
    """Return the text of a file. Raises `Unserved` for what is no text.

    A mark of UTF-16 decides. A file is UTF-8 if most of what is not ASCII in it is; else its letters tell what it is.
    """
    encoding = next((encoding for encoding, mark in _MARKS.items() if content.startswith(mark)), _UTF_8)
    bare = content.removeprefix(_MARKS[encoding])
    text = bare.decode(encoding, "replace")
    if text.count("\0") > max(len(text) >= _WORDS, _MOST_NULS * len(text)) or _ISO_2022.search(bare):
        raise Unserved(NOT_TEXT)
    replaced = _replaced(text, bare, encoding)
    if encoding == _UTF_8 and replaced:
        wide = len(text) - len(text.encode("ascii", "ignore"))
        if wide <= 2 * replaced:
            encoding = guess(bare)
            text = bare.decode(encoding, "replace")
            replaced = _replaced(text, bare, encoding)
    text = visible(text.replace("\r\n", "\n").replace("\r", "\n"))
    return Decoded(text, replaced, encoding if encoding in GUESSED else None)


def _replaced(text: str, content: bytes, encoding: str) -> int:
    if "\ufffd" not in text:
        return 0
    return text.count("\ufffd") - (content.count(b"\xef\xbf\xbd") if encoding == _UTF_8 else 0)


def visible(text: str) -> str:
    """Return text with each control character, but tabs and newlines, as the character that depicts it."""
    return _CONTROL.sub(_depicted, text) if _CONTROL.search(text) else text


def _depicted(found: re.Match[str]) -> str:
    number = ord(found[0])
    return chr(0x2400 + number) if number < ord(" ") else "\u2421" if number == 0x7F else "\u2426"


def decoded(text: str) -> str:
    """Return a text of JSON, as long as before, in which escapes are blanks or the sign that they stand for.

    Characters that JSON writes as numbers are no escapes any more, where they can be shown: see `formats.json`.
    """
    return _WRITTEN.sub(_blank, text) if "\\" in text else text


def _blank(found: re.Match[str]) -> str:
    escaped = found[1]
    return f" {escaped}" if escaped in '"/' else " " * len(found[0])
