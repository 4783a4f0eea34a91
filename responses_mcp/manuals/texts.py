"""The text of a file, read in pieces: UTF-8 without a byte order mark, all line ends as newlines.

Bytes that are not UTF-8 become U+FFFD and are counted. Positions count characters (code points) of the text as it is
given here, lines count from 1. Memory stays flat whatever the size of the file or of its lines.
"""

from __future__ import annotations

import codecs
import sys
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.manuals.checks import Check
from responses_mcp.manuals.errors import ManualsError

_SIZE: Final = 128 * 1024  # bytes read at once
_BOM: Final = codecs.BOM_UTF8

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


def spans(handle: BinaryIO, check: Check, start: Anchor = START) -> Iterator[Span]:
    """Yield the text of a file from `start` on, in pieces of at most 128 Ki characters, none of them empty.

    The handle must stand at `start.byte`. Raises `conflict` when the file cannot be read to its end.
    """
    at, kept = start, b""
    while True:
        check()
        data = _read(handle)
        final = not data
        raw = kept + data
        if at.byte == 0 and raw.startswith(_BOM):
            raw, at = raw[len(_BOM) :], Anchor(len(_BOM), 0, 1)
        text, used = codecs.utf_8_decode(raw, "replace", final)
        replaced = 0
        if "\ufffd" in text:
            replaced = text.count("\ufffd") - raw.count(b"\xef\xbf\xbd")
        if text.endswith("\r") and not final:  # a newline may follow
            text, used = text[:-1], used - 1
        text = text.replace("\r\n", "\n").replace("\r", "\n")
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


class Lines:
    """The lines of a text, without their newlines; there is one more than there are newlines, so the last may be "".

    A line of more than `longest` characters comes cut to so many; where lines are is not affected. `offset` is the
    place of the line that came last, in characters; `length` counts what was read so far.
    """

    def __init__(self, pieces: Iterator[Span], longest: int | None = None) -> None:
        self._spans = pieces
        self._longest = longest if longest is not None else sys.maxsize
        self.offset = 0
        self.length = 0

    def __iter__(self) -> Iterator[str]:
        longest = self._longest
        begun: list[str] = []
        kept = size = 0  # characters of the line that has begun: held in `begun`, and in the file
        following = 0  # where the line after the current one starts
        for span in self._spans:
            self.length += len(span.text)
            whole = span.text.split("\n")
            last = whole.pop()
            for line in whole:
                self.offset = following
                following += size + len(line) + 1
                if begun:
                    yield "".join((*begun, line[: longest - kept]))
                    begun, kept, size = [], 0, 0
                else:
                    yield line if len(line) <= longest else line[:longest]
            size += len(last)
            if last and kept < longest:
                begun.append(last[: longest - kept])
                kept += len(begun[-1])
        self.offset = following
        yield "".join(begun)


class Anchors:
    """Where reading of recently read large files can begin, so that a far page costs no more than a near one.

    Knows the files last used, one place for each MiB. Threads may share it.
    """

    def __init__(self, files: int = 32) -> None:
        self._files = files
        self._known: OrderedDict[Hashable, tuple[object, tuple[Anchor, ...]]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, file: Hashable, stamp: object) -> tuple[Anchor, ...]:
        """Return the places known of a file as long as it has this stamp, in order; the first is its start."""
        with self._lock:
            seen, anchors = self._known.get(file, (None, ()))
            if seen != stamp:
                return (START,)
            self._known.move_to_end(file)
            return anchors

    def keep(self, file: Hashable, stamp: object, anchors: tuple[Anchor, ...]) -> None:
        """Remember the places of a file, in order, as long as it has this stamp; forget the file used longest ago."""
        if len(anchors) == 1:  # not a large file
            return
        with self._lock:
            seen, known = self._known.get(file, (None, ()))
            if seen != stamp or len(anchors) > len(known):
                self._known[file] = (stamp, anchors)
            self._known.move_to_end(file)
            while len(self._known) > self._files:
                self._known.popitem(last=False)
