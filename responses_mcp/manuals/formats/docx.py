"""Word documents (`.docx`): paragraphs, headings by their styles, lists and the rows of tables."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from typing import Final
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
_TOO_LARGE: Final = "unpacks_to_too_much"


def convert(content: bytes, check: CancellationCheck) -> Document:
    """Return the text of a document. Raises `Unserved` for what is no such file, or unpacks to too much."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            styles = _Styles()
            if _STYLES in archive.namelist():
                _parse(archive, _STYLES, styles, check)
            body = _Body(styles.levels)
            _parse(archive, _TEXT, body, check)
    except (zipfile.BadZipFile, zlib.error, expat.ExpatError, KeyError, EOFError, RuntimeError, ValueError) as error:
        # RuntimeError is for an encrypted part, or a compression that Python does not have.
        raise Unserved(_NO_DOCUMENT) from error
    document = body.page.document()
    if not document.text or document.text.isspace():
        raise Unserved(NO_TEXT)
    return document


class _Reader:
    """Takes the elements of one part, by their names without a namespace."""

    def begin(self, name: str, value: str) -> None:
        """Take the beginning of an element and its attribute `val`, or `styleId`."""

    def text(self, text: str) -> None:
        """Take characters."""

    def end(self, name: str) -> None:
        """Take the end of an element."""


class _Styles(_Reader):
    """The levels of headings by the ids of their styles, which every language of Word has its own of."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self._style = ""

    def begin(self, name: str, value: str) -> None:
        if name == "style":
            self._style = value
        elif name == "name" and self._style:
            if found := _HEADING.match(value):
                self.levels[self._style] = int(found[1])
            elif value.lower() == "title":
                self.levels[self._style] = 1
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:  # 9 is for body text
            self.levels.setdefault(self._style, int(value) + 1)


class _Body(_Reader):
    """The text: a paragraph is a line, with an empty line behind it, and so is the row of a table."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.page = Page()
        self._levels = levels
        self._paragraph: list[str] = []
        self._cells: list[str] = []
        self._depth = 0  # of tables
        self._level = 0
        self._is_item = self._is_text = False
        self._skipped = 0  # elements that repeat for older programs what stood before

    def begin(self, name: str, value: str) -> None:
        if name == "Fallback" or self._skipped:
            self._skipped += 1
        elif name == "p":
            self._level, self._is_item = 0, False
        elif name == "pStyle":
            self._level = self._levels.get(value, 0)
        elif name == "outlineLvl" and value.isdecimal() and int(value) < 9:
            self._level = int(value) + 1
        elif name == "numPr":
            self._is_item = True
        elif name == "tbl":
            self._depth += 1
        elif name in _MARKS:
            self._paragraph.append(_MARKS[name])
        self._is_text = name == "t"

    def text(self, text: str) -> None:
        if self._is_text and not self._skipped:
            self._paragraph.append(text)

    def end(self, name: str) -> None:
        self._is_text = False
        if self._skipped:
            self._skipped -= 1
        elif name == "p":
            self._end_paragraph()
        elif name == "tc" and self._depth == 1:
            self._cells.append(" ".join("".join(self._paragraph).split()))
            self._paragraph.clear()
        elif name == "tr" and self._depth == 1:
            self.page.lines.append(" | ".join(self._cells))
            self._cells.clear()
        elif name == "tbl":
            self._depth -= 1
            if not self._depth:
                self.page.lines.append("")

    def _end_paragraph(self) -> None:
        if self._depth:
            self._paragraph.append(" ")  # which is all that is between two paragraphs of a cell
            return
        text = "".join(self._paragraph).strip()
        self._paragraph.clear()
        if not text:
            return
        if self._level:
            self.page.heading(self._level, text)
        else:
            self.page.lines += (f"- {text}" if self._is_item else text).split("\n")
        self.page.lines.append("")


def _parse(archive: zipfile.ZipFile, part: str, reader: _Reader, check: CancellationCheck) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def begin(name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        value = next((attributes[key] for key in attributes if key.endswith((" val", " styleId"))), "")
        reader.begin(local if _WORD in space or local == "Fallback" else "", value)

    def end(name: str) -> None:
        space, _, local = name.rpartition(" ")
        reader.end(local if _WORD in space else "")

    def refuse(*_: object) -> None:  # entities may unpack to anything; Word writes none
        raise Unserved(_NO_DOCUMENT)

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = refuse
    with archive.open(part) as unpacked:
        left = _LARGEST
        while piece := unpacked.read(min(_PIECE, left + 1)):
            check()
            left -= len(piece)
            if left < 0:
                raise Unserved(_TOO_LARGE)
            parser.Parse(piece)
        parser.Parse(b"", True)  # noqa: FBT003  # its only form
