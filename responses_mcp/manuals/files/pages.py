"""The text of an open file: pages of it, where lines begin, and where sections are.

Places are counted in characters of the text that `texts` gives, so pages join to exactly the whole.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Final, TypeVar

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder, Stamp
from responses_mcp.manuals.files.sections import Heading, Outline
from responses_mcp.manuals.files.texts import ENOUGH_OF_A_LINE, START, Anchor, Anchors, Lines, Span, encoding_of, spans
from responses_mcp.manuals.files.titles import shown_title

_T = TypeVar("_T")
_TRIES: Final = 3  # of a file that changes while it is read
_DEEPEST: Final = 6  # level of headings
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

    def __init__(self, handle: BinaryIO, stamp: Stamp, anchors: Anchors, check: CancellationCheck) -> None:
        self.stamp = stamp
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
                start_line = end.line
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
        end = self._anchors.before("line", line - 1)
        for span in self.spans(end):
            end = span.end
            if 1 < line <= end.line:
                rest = span.text.split("\n", line - span.start.line)[-1]
                return end.char - len(rest)
        raise ManualsError(
            "invalid_parameter",
            f"start_line {line} is outside the file; pass a line from 1 to {end.line}, its last.",
            lines=end.line,
        )

    def stretch(self, begin: int, end: int) -> Iterator[Span]:
        """Yield the text from the character `begin` on up to `end`, in pieces; where they lie in bytes is not told."""
        for span in self.spans(self._anchors.before("char", begin)):
            start, stop = max(begin - span.start.char, 0), min(end - span.start.char, len(span.text))
            if start < stop:
                line = span.start.line + span.text.count("\n", 0, start)
                text = span.text[start:stop]
                first = Anchor(0, span.start.char + start, line)
                yield Span(text, first, Anchor(0, first.char + len(text), line + text.count("\n")), 0)
            if span.end.char >= end:
                return

    def section(self, wanted: int | None, enough: int) -> Section:
        """Find the section whose heading is on a line, by default the first; its length is exact up to `enough`.

        Line 1 is also the preamble, or else what follows the front matter, which is shown only where nothing does.
        """
        lines = Lines(self.spans(), ENOUGH_OF_A_LINE)
        outline = Outline()
        begun: Section | None = None
        level = start = 0
        text = False  # whether there is some before the first heading
        before: deque[Heading] = deque(maxlen=_NEAREST)
        behind: list[Heading] = []
        for line in lines:
            if begun is not None and lines.offset - begun.start > enough:
                break
            heading = outline.heading(line)
            if begun is not None:
                if heading is not None and heading.level <= level:
                    return replace(begun, length=lines.offset - begun.start)
            elif heading is None:
                if before or behind:
                    continue
                text = text or bool(line.strip())
                if outline.front_lines and not start:
                    start, text = lines.offset + len(line) + 1, False
                elif text and wanted == 1 and not outline.undecided:
                    begun, level = Section(1, start, 0), _DEEPEST  # the preamble, which every heading ends
            elif wanted in (None, heading.line) or (wanted == 1 and start and not behind):
                begun, level = Section(heading.line, lines.offset, 0, text and wanted is None), heading.level
            elif heading.line < wanted:
                before.append(heading)
            else:
                behind.append(heading)
                if len(behind) == _NEAREST:
                    break
        if begun is None and wanted in (None, 1) and not behind:  # there is no heading
            begun = Section(1, start if text else 0, 0)
        if begun is None:
            raise _no_heading(wanted, [*before, *behind])
        return replace(begun, length=lines.length - begun.start)

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
            text = Text(handle, stamp, folder.anchors(manual_id, handle.name, stamp), check)
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


def _no_heading(wanted: int | None, nearest: list[Heading]) -> ManualsError:
    listed = [{"start_line": each.line, "title": shown_title(each.title)} for each in nearest]
    lines = ", ".join(str(each.line) for each in nearest)
    cure = f"pass the line of one, such as {lines}" if lines else "it has no headings, so leave start_line out"
    return ManualsError(
        "not_found",
        f"No heading of the file is on line {wanted}; {cure}, or read from any line with manual_scan.",
        start_line=wanted,
        nearest=listed,
    )
