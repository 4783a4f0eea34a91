"""`manual_scan` and `manual_read`: a file page by page, and the sections of Markdown (contract, manual_read/_scan).

Places are counted in characters of the text that `texts` gives, so pages join to exactly the whole.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, BinaryIO, Final, Literal, TypeVar

from responses_mcp.manuals.checks import Check
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder, Stamp
from responses_mcp.manuals.paths import file_type, parts_of
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.sections import Heading, headings
from responses_mcp.manuals.texts import ENOUGH_OF_A_LINE, START, Anchor, Lines, Span, spans

_T = TypeVar("_T")
_TRIES: Final = 3  # of a file that changes while it is read
_BETWEEN_ANCHORS: Final = 1024 * 1024  # bytes from one place at which reading can begin to the next
_NEAREST: Final = 3  # headings named on either side of a line that is none


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """What a read gave: the section by the line of its heading (1 for the preamble), and where reading can go on.

    `path` and `manual_id` are spelled as on disk. `char_offset` is the place after the last character given; with `eof`
    nothing follows there.
    """

    manual_id: str
    path: str
    line: int
    char_offset: int
    eof: bool


def scan(folder: Folder, request: ScanRequest, check: Check) -> dict[str, Any]:
    """Return a page of a file from a line or a character on.

    `decoding_replacements` is there when bytes that are not UTF-8 were replaced in the page. Raises `invalid_parameter`
    for a place beyond the end, which is itself an empty page, `conflict` if the file does not stay the same for long
    enough, and what `Folder.open` does.
    """
    manual_id = folder.require_manual(request.manual_id)

    def page(text: _Text) -> _Page:
        if request.start_line is not None:
            return text.page(text.offset_of(request.start_line), request.max_chars)
        return text.page(request.char_offset or 0, request.max_chars)

    path, found = _steadily(folder, manual_id, request.path, check, page)
    return {
        "manual_id": manual_id,
        "path": path,
        "text": found.text,
        **found.place(),
        "truncated": not found.eof,
        "truncated_reason": "none" if found.eof else "max_chars",
        "applied": {"max_chars": request.max_chars},
        **found.replacements(),
    }


def read(
    folder: Folder, request: ReadRequest, check: Check, *, after: int | None = None
) -> tuple[dict[str, Any], ReadEnd]:
    """Return a section with its sub-sections; or, from the character `after` on, the text that follows what was given.

    Where nothing follows `after`, the section is given again. Raises `invalid_scope` for JSON, `not_found` for a line
    that is no heading (`details.nearest` has some), and otherwise what `scan` does.
    """
    if file_type("/".join(parts_of(request.path)).strip()) == "json":
        raise ManualsError(
            "invalid_scope", "path is a JSON file, which has no sections; read it with manual_scan.", path=request.path
        )
    manual_id = folder.require_manual(request.manual_id)

    def found(text: _Text) -> tuple[_Section, _Page, bool]:
        section = text.section(request.start_line, request.max_chars + 1)
        if after is not None:
            following = text.page(after, request.max_chars, beyond_is_empty=True)
            if following.text:
                return section, following, True
        return section, text.page(section.start, min(section.length, request.max_chars + 1)), False

    path, (section, page, fallback) = _steadily(folder, manual_id, request.path, check, found)
    applied = {"scope": "section", "max_sections": None, "max_chars": request.max_chars}
    if fallback:
        shown = {"text": page.text, "truncated": not page.eof, "applied": {**applied, "mode": "scan_fallback"}}
        end = ReadEnd(manual_id, path, section.line, page.end, page.eof)
        return {**shown, **page.place(), **page.replacements()}, end
    whole = page.text.removesuffix("\n") if len(page.text) == section.length else page.text
    truncated = len(whole) > request.max_chars
    shown = {"text": whole[: request.max_chars], "truncated": truncated, "applied": {**applied, "mode": "read"}}
    offset = section.start + (request.max_chars if truncated else section.length)
    return {**shown, **page.replacements()}, ReadEnd(manual_id, path, section.line, offset, page.eof and not truncated)


@dataclass(frozen=True, slots=True)
class _Page:
    """A stretch of text: where it starts and ends, on which lines, and how many characters replace bytes."""

    text: str
    start: int
    start_line: int
    eof: bool
    replaced: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    def place(self) -> dict[str, Any]:
        end_line = self.start_line + self.text.count("\n", 0, -1)
        return {
            "applied_range": {"start_line": self.start_line, "end_line": end_line},
            "next_cursor": {"char_offset": None if self.eof else self.end},
            "eof": self.eof,
        }

    def replacements(self) -> dict[str, Any]:
        return {"decoding_replacements": self.replaced} if self.replaced else {}


@dataclass(frozen=True, slots=True)
class _Section:
    """Where a section is: the line of its heading, its first character, and its characters or more than asked."""

    line: int
    start: int
    length: int


class _Text:
    """The text of an open file. Places that it comes by are added to `anchors`, of which there is at least one."""

    def __init__(self, handle: BinaryIO, anchors: tuple[Anchor, ...], check: Check) -> None:
        self._handle = handle
        self._check = check
        self.anchors = list(anchors)

    def page(self, offset: int, most: int, *, beyond_is_empty: bool = False) -> _Page:
        """Return up to `most` characters from `offset` on."""
        end = self._before("char", offset)
        taken: list[str] = []
        missing = most
        start_line = end.line
        eof = True
        replaced = 0
        for span in self._spans(end):
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
        return _Page("".join(taken), offset, start_line, eof, replaced)

    def offset_of(self, line: int) -> int:
        """Return the place of the first character of a line."""
        if line == 1:
            return 0
        end = self._before("line", line - 1)
        for span in self._spans(end):
            end = span.end
            if 1 < line <= end.line:
                rest = span.text.split("\n", line - span.start.line)[-1]
                return end.char - len(rest)
        raise ManualsError(
            "invalid_parameter",
            f"start_line {line} is outside the file; pass a line from 1 to {end.line}, its last.",
            lines=end.line,
        )

    def section(self, wanted: int | None, enough: int) -> _Section:
        """Find the section whose heading is on a line, or the first; its length is exact up to `enough` characters."""
        lines = Lines(self._spans(START), ENOUGH_OF_A_LINE)
        begun: _Section | None = None
        level = 0
        first_text = 0  # the first line that is not blank

        def until_enough() -> Iterator[str]:
            nonlocal first_text
            for number, line in enumerate(lines, 1):
                preamble = wanted in (None, 1) and first_text
                start = begun.start if begun is not None else 0 if preamble else lines.offset
                if lines.offset - start > enough:
                    return
                if not first_text and line.strip():
                    first_text = number
                yield line

        before: deque[Heading] = deque(maxlen=_NEAREST)
        behind: list[Heading] = []
        for heading in headings(until_enough()):
            if begun is not None:
                if heading.level <= level:
                    return _Section(begun.line, begun.start, lines.offset - begun.start)
            elif wanted in (None, 1) and not behind and first_text < heading.line:
                return _Section(1, 0, lines.offset)
            elif wanted in (None, heading.line):
                begun, level = _Section(heading.line, lines.offset, 0), heading.level
            elif heading.line < wanted:
                before.append(heading)
            else:
                behind.append(heading)
                if len(behind) == _NEAREST:
                    break
        if begun is None and wanted in (None, 1) and not behind:
            begun = _Section(1, 0, 0)
        if begun is None:
            raise _no_heading(wanted, [*before, *behind])
        return _Section(begun.line, begun.start, lines.length - begun.start)

    def _before(self, unit: Literal["char", "line"], place: int) -> Anchor:
        """Return the last known place at or before a character or a line."""
        return self.anchors[max(bisect_right(self.anchors, place, key=attrgetter(unit)) - 1, 0)]

    def _spans(self, start: Anchor) -> Iterator[Span]:
        self._handle.seek(start.byte)
        for span in spans(self._handle, self._check, start):
            if span.start.byte - self.anchors[-1].byte >= _BETWEEN_ANCHORS:
                self.anchors.append(span.start)
            yield span


def _steadily(folder: Folder, manual_id: str, path: str, check: Check, work: Callable[[_Text], _T]) -> tuple[str, _T]:
    """Do `work` on a file that stays the same meanwhile; return its path, spelled as on disk, and the outcome."""
    for _ in range(_TRIES):
        with folder.open(manual_id, path) as handle:
            stamp = Stamp.of(os.fstat(handle.fileno()))
            key = (manual_id, handle.name)
            text = _Text(handle, folder.anchors.known(key, stamp), check)
            try:
                outcome = work(text)
            except ManualsError:
                if Stamp.of(os.fstat(handle.fileno())) == stamp:
                    raise
                continue
            if Stamp.of(os.fstat(handle.fileno())) == stamp:
                folder.anchors.keep(key, stamp, tuple(text.anchors))
                return handle.name, outcome
    raise ManualsError(
        "conflict", f"'{path}' is being changed while it is read; ask again when it is complete.", path=path
    )


def _no_heading(wanted: int | None, nearest: list[Heading]) -> ManualsError:
    listed = [{"start_line": each.line, "title": each.title} for each in nearest]
    lines = ", ".join(str(each.line) for each in nearest)
    cure = f"pass the line of one, such as {lines}" if lines else "it has no headings, so leave start_line out"
    return ManualsError(
        "not_found",
        f"No heading of the file is on line {wanted}; {cure}, or read from any line with manual_scan.",
        start_line=wanted,
        nearest=listed,
    )
