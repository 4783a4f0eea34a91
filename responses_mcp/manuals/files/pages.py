"""The text of an open file: pages of it, where lines begin, and where sections are.

Places are counted in characters of the text that `texts` gives, so pages join to exactly the whole.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, BinaryIO, Final, TypeVar

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.documents import content_of
from responses_mcp.manuals.files.encodings import GUESSED
from responses_mcp.manuals.files.folder import Folder, Stamp
from responses_mcp.manuals.files.texts import (
    ENOUGH_OF_A_LINE,
    START,
    Anchor,
    Anchors,
    Span,
    encoding_of,
    lines_of,
    spans,
)
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.formats import CONVERTERS, PLAIN
from responses_mcp.manuals.formats.document import Document, Heading, Outline, Unserved
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.settings.model import FileType

_T = TypeVar("_T")
_TRIES: Final = 3  # of a file that changes while it is read
_NEAREST: Final = 3  # headings named on either side of a line that is none


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of text: where it starts and ends, on which lines, and how many characters replace bytes."""

    text: str
    start: int
    start_line: int
    eof: bool
    replaced: int

    @property
    def end(self) -> int:
        """Return the place behind its last character."""
        return self.start + len(self.text)

    def place(self) -> dict[str, Any]:
        """Return the fields that tell where it is, and where to go on."""
        end_line = self.start_line + self.text.count("\n", 0, -1)
        return {
            "applied_range": {"start_line": self.start_line, "end_line": end_line},
            "next_cursor": {"char_offset": None if self.eof else self.end},
            "eof": self.eof,
        }

    def replacements(self) -> dict[str, Any]:
        """Return the field that counts replaced bytes, if there are any."""
        return {"decoding_replacements": self.replaced} if self.replaced else {}


@dataclass(frozen=True, slots=True)
class Section:
    """Where a section is: the line of its heading, its first character, and its characters or more than asked.

    `passed` tells whether there is text before it that nobody asked for.
    """

    line: int
    start: int
    length: int
    passed: bool = False

    @property
    def end(self) -> int:
        """Return the place behind its last character, as far as that is known."""
        return self.start + self.length


class Text:
    """The text of an open file. Where it was read is added to `anchors`."""

    def __init__(
        self, handle: BinaryIO, stamp: Stamp, anchors: Anchors, check: CancellationCheck, kind: FileType = "md"
    ) -> None:
        self.stamp = stamp
        self._type = kind
        self._handle = handle
        self._check = check
        self._anchors = anchors
        self._first: Span | None = None  # which is all of most files, and is asked for several times

    def page(self, offset: int, most: int, *, beyond_is_empty: bool = False) -> Page:
        """Return up to `most` characters from `offset` on."""
        end = self._anchors.before("char", offset)
        taken: list[str] = []
        missing = most
        start_line = end.line
        eof = True
        replaced = 0
        for span in self.spans(end):
            end = span.end
            if not taken and end.char <= offset:
                start_line = end.line - span.text.endswith("\n")  # what follows is a line only if there is anything
                continue
            skipped = max(offset - span.start.char, 0)
            if not taken:
                start_line = span.start.line + span.text.count("\n", 0, skipped)
            part = span.text[skipped : skipped + missing]
            taken.append(part)
            missing -= len(part)
            if span.replaced:
                replaced += min(part.count("\ufffd"), span.replaced)
            if skipped + len(part) < len(span.text):
                eof = False
                break
        if not 0 <= offset <= end.char and not beyond_is_empty:
            raise ManualsError(
                "invalid_parameter",
                f"cursor.char_offset {offset} is outside the text, which has {end.char} characters; "
                "go on with the next_cursor of the last page, or start again without a cursor.",
                characters=end.char,
            )
        return Page("".join(taken), offset, start_line, eof, replaced)

    def offset_of(self, line: int) -> int:
        """Return the place of the first character of a line."""
        if line == 1:
            return 0
        end, last = self._anchors.before("line", line - 1), 1
        begin: int | None = None
        for span in self.spans(end):
            if begin is not None:
                return begin
            end, last = span.end, span.end.line - span.text.endswith("\n")
            if 1 < line <= end.line:
                begin = end.char - len(span.text.split("\n", line - span.start.line)[-1])
                if begin < end.char:
                    return begin
        message = f"start_line {line} is outside the file; pass a line from 1 to {last}, its last."
        raise ManualsError("invalid_parameter", message, lines=last)

    def guessed(self) -> dict[str, Any]:
        """Return the field that names the encoding, if it was guessed."""
        encoding = self._anchors.encoding
        return {"guessed_encoding": encoding} if encoding in GUESSED else {}

    def outline(self) -> Outline:
        """Return the headings of the file, and what else its sections begin with."""
        outline = self._anchors.outline
        if outline is None:
            outline = PLAIN[self._type](lines_of(self.spans(), ENOUGH_OF_A_LINE))
            self._anchors.outline = outline
        return outline

    def heading_above(self, line: int) -> int | None:
        """Return the line of the heading above a line; 1 for a preamble, None where nothing is above it."""
        self.offset_of(line)  # there must be one
        outline = self.outline()
        number = bisect_right(outline.headings, line, key=attrgetter("line"))
        return outline.headings[number - 1].line if number else 1 if outline.has_preamble else None

    def section(self, wanted: int | None, enough: int) -> Section:
        """Find the section whose heading is on a line, by default the first; its length is exact up to `enough`.

        Line 1 is also the preamble, or else what follows the front matter, which is shown only where nothing does.
        """
        outline = self.outline()
        headings = outline.headings
        front = outline.front_lines
        number = next((number for number, each in enumerate(headings) if each.line == wanted), None)
        if number is None and headings and (wanted is None or (wanted == 1 and front and not outline.has_preamble)):
            number = 0
        if number is not None:
            heading = headings[number]
            following = next((each.line for each in headings[number + 1 :] if each.level <= heading.level), None)
            passed = outline.has_preamble and wanted is None
            return self._section(heading.line, self.offset_of(heading.line), following, enough, passed=passed)
        if outline.has_preamble if wanted == 1 else wanted is None:
            begin = self.offset_of(front + 1) if front and outline.has_preamble else 0
            return self._section(1, begin, headings[0].line if headings else None, enough)
        if wanted == 1 and not headings:  # there is nothing else
            return self._section(1, 0, None, enough)
        near = bisect_left(headings, wanted or 0, key=attrgetter("line"))
        raise _no_heading(wanted, headings[max(near - _NEAREST, 0) : near + _NEAREST])

    def _section(self, line: int, begin: int, following: int | None, enough: int, *, passed: bool = False) -> Section:
        page = self.page(begin, enough + 1, beyond_is_empty=True)
        length = len(page.text)
        if following is not None and length and following <= page.start_line + page.text.count("\n"):
            length = self.offset_of(following) - begin
        return Section(line, begin, length, passed)

    def spans(self, start: Anchor = START) -> Iterator[Span]:
        """Yield the text from a known place on."""
        if not self._anchors.known:
            self._anchors.encoding, self._anchors.known = encoding_of(self._handle, self._check), True
        if start == START:
            if self._first is None:
                self._handle.seek(0)
                self._first = next(spans(self._handle, self._check, encoding=self._anchors.encoding), None)
                if self._first is None:
                    return
            yield self._first
            start = self._first.end
        self._handle.seek(start.byte)
        for span in spans(self._handle, self._check, start, encoding=self._anchors.encoding):
            self._anchors.add(span.start)
            yield span


def steadily(
    folder: Folder, manual_id: str, path: str, check: CancellationCheck, work: Callable[[Text], _T]
) -> tuple[str, _T]:
    """Do `work` on a file that stays the same meanwhile; return its path, spelled as on disk, and the outcome."""
    for _ in range(_TRIES):
        with folder.open(manual_id, path) as handle:
            stamp = Stamp.of(os.fstat(handle.fileno()))
            text = _text_of(folder, manual_id, handle, stamp, check)
            try:
                outcome = work(text)
            except ManualsError:
                if Stamp.of(os.fstat(handle.fileno())) == stamp:
                    raise
                continue
            if Stamp.of(os.fstat(handle.fileno())) == stamp:
                return handle.name, outcome
    raise ManualsError(
        "conflict", f"'{path}' is being changed while it is read; ask again when it is complete.", path=path
    )


def _text_of(folder: Folder, manual_id: str, handle: BinaryIO, stamp: Stamp, check: CancellationCheck) -> Text:
    kind = file_type(handle.name) or "md"
    anchors = folder.anchors(manual_id, handle.name, stamp)
    if kind in PLAIN and (kind not in CONVERTERS or stamp.size > folder.largest):
        return Text(handle, stamp, anchors, check, kind)
    if stamp.size > folder.largest:
        raise ManualsError(
            "conflict", f"'{handle.name}' is larger than manuals.max_file_bytes, {folder.largest}.", path=handle.name
        )

    def made() -> Document:
        return folder.documents.of(handle.name, content_of(handle, folder.largest, check), check)

    try:
        document = folder.documents.get((manual_id, handle.name, stamp), made)
    except Unserved as error:
        if kind in PLAIN:
            handle.seek(0)
            return Text(handle, stamp, anchors, check, kind)
        message = f"There is no text to serve in '{handle.name}' ({error.reason})."
        raise ManualsError("conflict", message, path=handle.name) from error
    anchors.outline, anchors.known, anchors.encoding = document.outline, True, "utf-8"
    served = io.BytesIO(document.text.encode("utf-8", "surrogatepass"))
    return Text(served, stamp, anchors, check, kind)


def _no_heading(wanted: int | None, nearest: Sequence[Heading]) -> ManualsError:
    listed = [{"start_line": each.line, "title": shown_title(each.title)} for each in nearest]
    lines = ", ".join(str(each.line) for each in nearest)
    cure = f"pass the line of one, such as {lines}" if lines else "it has no headings, so leave start_line out"
    return ManualsError(
        "not_found",
        f"No heading of the file is on line {wanted}; {cure}, or read from any line with manual_scan.",
        start_line=wanted,
        nearest=listed,
    )
