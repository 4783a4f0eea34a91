"""The text of a file, read in pieces: without a byte order mark, all line ends as newlines, controls made visible.

Files in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, GB18030 and Windows-1252 are read as such. Bytes that
stand for nothing become U+FFFD and are counted. A control character becomes the one that depicts it (U+2400 to U+2421),
so none steers a terminal.
Positions count characters (code points) of the text as it is
given here, lines count from 1. Memory stays flat whatever the size of the file or of its lines.
"""

from __future__ import annotations

import codecs
import io
import re
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import BinaryIO, Final, Literal, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.encodings import guess
from responses_mcp.manuals.formats.document import Outline

_SIZE: Final = 128 * 1024  # bytes read at once
_UTF_8: Final = "utf-8"
_MARKS: Final = {_UTF_8: codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
_ISO_2022: Final = re.compile("\x1b\\$[@B]")  # Japanese that is ASCII throughout and means nothing as that
_MOST_NULS: Final = 0.002  # of the characters; of chance bytes it is .004
_NOT_ASCII: Final = re.compile("[^\0-\x7f]+")
_WRITTEN: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[\\\"/bfnrt])")
_CONTROL: Final = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
_BETWEEN_ANCHORS: Final = 1024 * 1024  # bytes

ENOUGH_OF_A_LINE: Final = 64 * 1024
"""Characters at the start of a line that tell whether it is a heading or a code fence."""


class Anchor(NamedTuple):
    """A place in a file at which reading can begin: its byte, and the character and line that are there."""

    byte: int
    char: int
    line: int


START: Final = Anchor(0, 0, 1)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text with its place; `replaced` tells how many U+FFFD in it stand for bytes that are not UTF-8."""

    text: str
    start: Anchor
    end: Anchor
    replaced: int


def encoding_of(handle: BinaryIO, check: CancellationCheck) -> str | None:
    """Return the encoding of a file, None for one that is no text, because it has many NULs or is ISO-2022-JP.

    A mark of UTF-16 decides. A file is UTF-8 if most of what is not ASCII in it is; else its letters tell what it is.
    The handle is left at the beginning.
    """
    handle.seek(0)
    start = _read(handle)
    marked = next((encoding for encoding, mark in _MARKS.items() if mark == start[:2]), _UTF_8)
    source = handle if _read(handle) else io.BytesIO(start)  # most files are small, and need not be read again
    good = wrong = nuls = length = 0
    first = b""  # from where something is wrong on
    source.seek(0)
    decoder = codecs.getincrementaldecoder(marked)("replace")
    found: str | None = marked
    while True:
        check()
        data = _read(source)
        text = decoder.decode(data, not data)
        length += len(text)
        nuls += text.count("\0")
        if nuls > _MOST_NULS * length or _ISO_2022.search(text):
            found = None
            break
        if "\ufffd" in text:
            wrong += max(text.count("\ufffd") - data.count(b"\xef\xbf\xbd"), 0)
        if wrong and len(first) < _SIZE:
            first += data
        if not text.isascii():
            good += sum(map(len, _NOT_ASCII.findall(text)))
        if not data:
            break
    if found == _UTF_8 and wrong and good - wrong <= wrong:
        found = guess(first)
    handle.seek(0)
    return found


def visible(text: str) -> str:
    """Return text with each control character, but tabs and newlines, as the character that depicts it."""
    return _CONTROL.sub(_depicted, text) if _CONTROL.search(text) else text


def decoded(text: str) -> str:
    """Return a text of JSON, as long as before, in which escapes are blanks or the sign that they stand for.

    Characters that JSON writes as numbers are no escapes any more, where they can be shown: see `formats.json`.
    """
    return _WRITTEN.sub(_blank, text) if "\\" in text else text


def _blank(found: re.Match[str]) -> str:
    escaped = found[1]
    return f" {escaped}" if escaped in '"/' else " " * len(found[0])


def _depicted(found: re.Match[str]) -> str:
    number = ord(found[0])
    return chr(0x2400 + number) if number < ord(" ") else "\u2421" if number == 0x7F else "\u2426"


def spans(
    handle: BinaryIO, check: CancellationCheck, start: Anchor = START, *, encoding: str | None = None
) -> Iterator[Span]:
    """Yield the text of a file from `start` on, in pieces of at most 128 Ki characters, none of them empty.

    The handle must stand at `start.byte`; `encoding` None stands for no text, which is read as UTF-8. Raises `conflict`
    when the file cannot be read to its end.
    """
    encoding = encoding or _UTF_8
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    mark = _MARKS.get(encoding, b"")
    at, kept = start, b""
    while True:
        check()
        data = _read(handle)
        final = not data
        raw = kept + data
        if mark and at.byte == 0 and raw.startswith(mark):
            raw, at = raw[len(mark) :], Anchor(len(mark), 0, 1)
        decoder.reset()
        text = decoder.decode(raw, final)
        used = len(raw) - len(decoder.getstate()[0])
        replaced = 0
        if "\ufffd" in text:
            replaced = text.count("\ufffd") - (raw.count(b"\xef\xbf\xbd") if encoding == _UTF_8 else 0)
        if text.endswith("\r") and not final:  # a newline may follow
            text, used = text[:-1], used - (2 if encoding.startswith("utf-16") else 1)
        text = visible(text.replace("\r\n", "\n").replace("\r", "\n"))
        end = Anchor(at.byte + used, at.char + len(text), at.line + text.count("\n"))
        if text:
            yield Span(text, at, end, replaced)
        if final:
            return
        at, kept = end, raw[used:]


def _read(handle: BinaryIO) -> bytes:
    try:
        return handle.read(_SIZE - 8)
    except OSError as error:
        why = error.strerror or "input error"
        message = f"'{handle.name}' could not be read to its end ({why}); check the disk, then ask again."
        raise ManualsError("conflict", exhausted(error) or message) from error


def lines_of(pieces: Iterable[Span], longest: int) -> Iterator[str]:
    """Yield the lines of a text without their newlines, one more than there are newlines.

    A line of more than `longest` characters comes cut to so many.
    """
    begun: list[str] = []
    kept = 0  # characters of the line that has begun
    for span in pieces:
        *whole, last = span.text.split("\n")
        for line in whole:
            yield "".join((*begun, line[: longest - kept])) if begun else line[:longest]
            begun, kept = [], 0
        if last and kept < longest:
            begun.append(last[: longest - kept])
            kept += len(begun[-1])
    yield "".join(begun)


class Anchors:
    """Where reading of a large file can begin, about each MiB: a far page costs no more than a near one.

    Threads may share it. `encoding` is what `encoding_of` says, as soon as it is `known`. `outline` is that of the file
    as soon as somebody has asked for it.
    """

    def __init__(self) -> None:
        self.encoding: str | None = None
        self.known = False
        self.outline: Outline | None = None
        self._known = [START]
        self._lock = threading.Lock()

    def add(self, anchor: Anchor) -> None:
        """Remember a place, unless it is near the last one, or before it."""
        with self._lock:
            if anchor.byte - self._known[-1].byte >= _BETWEEN_ANCHORS:
                self._known.append(anchor)

    def before(self, unit: Literal["char", "line"], place: int) -> Anchor:
        """Return the last known place at or before a character or a line."""
        return self._known[max(bisect_right(self._known, place, key=attrgetter(unit)) - 1, 0)]
