"""Word documents (`.docx`): paragraphs, headings by their styles, lists and the rows of tables."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Final
from xml.parsers import expat

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import NO_TEXT, Document, Page, Unserved

_TEXT: Final = "word/document.xml"
_STYLES: Final = "word/styles.xml"
_LARGEST: Final = 32 * 1024 * 1024  # bytes of one part behind its compression
_PIECE: Final = 256 * 1024  # bytes that are unpacked and parsed at once
_WORD: Final = "wordprocessingml"  # in the namespaces of both editions of the format
_HEADING: Final = re.compile(r"heading ([1-9])$", re.IGNORECASE)  # a built-in name, the same in all languages
_MARKS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_NO_DOCUMENT: Final = "not_a_word_document"


def convert(content: bytes, check: CancellationCheck) -> Document:
    """Return the text of a document. Raises `Unserved` for what is no such file, or unpacks to too much."""
    body = _Body()
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if _STYLES in archive.namelist():
                with archive.open(_STYLES) as styles, suppress(zlib.error, expat.ExpatError, zipfile.BadZipFile):
                    _parse(styles, check, body.style)
            with archive.open(_TEXT) as text:
                _parse(text, check, body.begin, body.text, body.end)
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, KeyError, EOFError, RuntimeError, ValueError) as error:
        # RuntimeError is for an encrypted part, or a compression that Python does not have.
        raise Unserved(_NO_DOCUMENT) from error
    document = body.page.document()
    if not document.text or document.text.isspace():
        raise Unserved(NO_TEXT)
    return document


class _Body:
    """Takes the elements of a document: a paragraph is a line, with an empty line behind it, as is a row of a table."""

    def __init__(self) -> None:
        self.page = Page()
        self._levels: dict[str, int] = {}  # of headings by the ids of their styles, which each language has its own of
        self._style = ""
        self._paragraph: list[str] = []
        self._cells: list[str] = []
        self._tables = 0  # that are open
        self._level = 0
        self._is_item = self._is_text = False
        self._skipped = 0  # elements that are open of those that repeat for older programs what stood before

    def style(self, name: str, value: str) -> None:
        """Take an element of the styles."""
        if name == "style":
            self._style = value
        elif name == "name" and (found := _HEADING.match(value)):
            self._levels[self._style] = int(found[1])
        elif name == "name" and value.lower() == "title":
            self._levels[self._style] = 1
        elif name == "outlineLvl":
            self._levels.setdefault(self._style, _outline_level(value))

    def begin(self, name: str, value: str) -> None:
        """Take the beginning of an element of the text."""
        if name == "Fallback" or self._skipped:
            self._skipped += 1
        elif name == "p":
            self._level, self._is_item = 0, False
        elif name == "pStyle":
            self._level = self._levels.get(value, 0)
        elif name == "outlineLvl":
            self._level = _outline_level(value) or self._level
        elif name == "numPr":
            self._is_item = True
        elif name == "tbl":
            self._tables += 1
        elif name in _MARKS:
            self._paragraph.append(_MARKS[name])
        self._is_text = name == "t"

    def text(self, text: str) -> None:
        """Take characters."""
        if self._is_text and not self._skipped:
            self._paragraph.append(text)

    def end(self, name: str) -> None:
        """Take the end of an element."""
        self._is_text = False
        if self._skipped:
            self._skipped -= 1
        elif name == "p":
            self._end_paragraph()
        elif name == "tc" and self._tables == 1:
            self._cells.append(" ".join("".join(self._paragraph).split()))
            self._paragraph.clear()
        elif name == "tr" and self._tables == 1:
            self.page.lines.append(" | ".join(self._cells))
            self._cells.clear()
        elif name == "tbl":
            self._tables -= 1
            self.page.lines += [""] * (not self._tables)

    def _end_paragraph(self) -> None:
        if self._tables:
            self._paragraph.append(" ")  # which is all that is between two paragraphs of a cell
            return
        text = "".join(self._paragraph).strip()
        self._paragraph.clear()
        if text and self._level:
            self.page.heading(self._level, text)
        elif text:
            self.page.lines += (f"- {text}" if self._is_item else text).split("\n")
        self.page.lines += [""] * bool(text)


def _outline_level(value: str) -> int:
    return int(value) + 1 if value in "012345678" else 0  # 9 is for the text


def _parse(
    unpacked: IO[bytes],
    check: CancellationCheck,
    begin: Callable[[str, str], None],
    text: Callable[[str], None] | None = None,
    end: Callable[[str], None] = lambda _: None,
) -> None:
    """Hand on the elements of a part, with their names without a namespace and the attribute `val` or `styleId`."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def local(name: str) -> str:
        space, _, bare = name.rpartition(" ")
        return bare if _WORD in space or bare == "Fallback" else ""

    def start(name: str, attributes: dict[str, str]) -> None:
        begin(local(name), next((attributes[key] for key in attributes if key.endswith((" val", " styleId"))), ""))

    def refuse(*_: object) -> None:  # entities may unpack to anything; Word writes none
        raise Unserved(_NO_DOCUMENT)

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: end(local(name))
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    left = _LARGEST
    while piece := unpacked.read(min(_PIECE, left + 1)):
        check()
        left -= len(piece)
        if left < 0:
            raise Unserved("unpacks_to_too_much")
        parser.Parse(piece)
    parser.Parse(b"", True)  # noqa: FBT003  # its only form
