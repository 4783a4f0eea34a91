"""`manual_scan` and `manual_read`: a file page by page, and the sections of Markdown (M6 and M7).

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
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.paths import file_type, parts_of

_T = TypeVar("_T")
_TRIES: Final = 3  # of a file that changes while it is read
_DEEPEST: Final = 6  # level of headings
_NEAREST: Final = 3  # headings named on either side of a line that is none
_GOES_ON: Final = (
    "This section has been read before on this connection, so here is what follows. manual_scan with start_line {} "
    "shows it again."
)
_PASSED: Final = "There is text before the first heading, which start_line 1 shows."
_CHANGED: Final = "The file has changed since this section was read, so here it is anew."


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """What a read gave: the section by the line of its heading (1 for the preamble), and where reading can go on.

    `path` and `manual_id` are spelled as on disk. `char_offset` is the place after the last character given, or where
    the line begins that a cut section ended in; with `eof` nothing follows there. All of it is true of the state of the
    file that `stamp` tells.
    """

    manual_id: str
    path: str
    line: int
    char_offset: int
    eof: bool
    stamp: Stamp


def scan(folder: Folder, request: ScanRequest, check: CancellationCheck) -> dict[str, Any]:
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
    folder: Folder, request: ReadRequest, check: CancellationCheck, *, after: ReadEnd | None = None
) -> tuple[dict[str, Any], ReadEnd]:
    """Return a section with its sub-sections; or, `after` it was read, the text that follows what was given.

    Where nothing follows, or the file has changed, the section is given again. Raises `invalid_scope` for JSON,
    `not_found` for a line that is no heading (`details.nearest` has some), and otherwise what `scan` does.
    """
    if file_type("/".join(parts_of(request.path)).strip()) == "json":
        raise ManualsError(
            "invalid_scope", "path is a JSON file, which has no sections; read it with manual_scan.", path=request.path
        )
    manual_id = folder.require_manual(request.manual_id)

    def found(text: _Text) -> tuple[Stamp, _Section, _Page, bool]:
        section = text.section(request.start_line, request.max_chars + 1)
        if after is not None and after.stamp == text.stamp:
            following = text.page(after.char_offset, request.max_chars, beyond_is_empty=True)
            if following.text:
                return text.stamp, section, following, True
        page = text.page(section.start, min(section.length, request.max_chars + 1))
        return text.stamp, section, page, False

    path, (stamp, section, page, fallback) = _steadily(folder, manual_id, request.path, check, found)
    applied = {"scope": "section", "max_sections": None, "max_chars": request.max_chars}
    if fallback:
        shown = {"text": page.text, "truncated": not page.eof, "applied": {**applied, "mode": "scan_fallback"}}
        note = {"note": _GOES_ON.format(section.line)}
        end = ReadEnd(manual_id, path, section.line, page.end, page.eof, stamp)
        return {**shown, **page.place(), **page.replacements(), **note}, end
    whole = page.text.removesuffix("\n") if len(page.text) == section.length else page.text
    truncated = len(whole) > request.max_chars
    shown = {"text": whole[: request.max_chars], "truncated": truncated, "applied": {**applied, "mode": "read"}}
    note = {"note": _PASSED} if section.passed else {}
    if after is not None and after.stamp != stamp:
        note = {"note": _CHANGED}
    offset = section.start + (_next_line(whole, request.max_chars) if truncated else section.length)
    end = ReadEnd(manual_id, path, section.line, offset, page.eof and not truncated, stamp)
    return {**shown, **page.replacements(), **note}, end


def _next_line(text: str, cut: int) -> int:
    """Return where to go on in a text of which `cut` characters were given: behind the last line that is whole.

    A line longer than all that was given goes on within itself.
    """
    return cut + 1 if text[cut] == "\n" else text.rfind("\n", 0, cut) + 1 or cut


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
    """Where a section is: the line of its heading, its first character, and its characters or more than asked.

    `passed` tells whether there is text before it that nobody asked for.
    """

    line: int
    start: int
    length: int
    passed: bool = False


class _Text:
    """The text of an open file. Where it was read is added to `anchors`."""

    def __init__(self, handle: BinaryIO, stamp: Stamp, anchors: Anchors, check: CancellationCheck) -> None:
        self.stamp = stamp
        self._handle = handle
        self._check = check
        self._anchors = anchors

    def page(self, offset: int, most: int, *, beyond_is_empty: bool = False) -> _Page:
        """Return up to `most` characters from `offset` on."""
        end = self._anchors.before("char", offset)
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
        end = self._anchors.before("line", line - 1)
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
        """Find the section whose heading is on a line, by default the first; its length is exact up to `enough`.

        Line 1 is also the preamble, or else what follows the front matter, which is shown only where nothing does.
        """
        lines = Lines(self._spans(START), ENOUGH_OF_A_LINE)
        outline = Outline()
        begun: _Section | None = None
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
                    begun, level = _Section(1, start, 0), _DEEPEST  # the preamble, which every heading ends
            elif wanted in (None, heading.line) or (wanted == 1 and start and not behind):
                begun, level = _Section(heading.line, lines.offset, 0, text and wanted is None), heading.level
            elif heading.line < wanted:
                before.append(heading)
            else:
                behind.append(heading)
                if len(behind) == _NEAREST:
                    break
        if begun is None and wanted in (None, 1) and not behind:  # there is no heading
            begun = _Section(1, start if text else 0, 0)
        if begun is None:
            raise _no_heading(wanted, [*before, *behind])
        return replace(begun, length=lines.length - begun.start)

    def _spans(self, start: Anchor) -> Iterator[Span]:
        if not self._anchors.known:
            self._anchors.encoding, self._anchors.known = encoding_of(self._handle, self._check), True
        self._handle.seek(start.byte)
        for span in spans(self._handle, self._check, start, encoding=self._anchors.encoding):
            self._anchors.add(span.start)
            yield span


def _steadily(
    folder: Folder, manual_id: str, path: str, check: CancellationCheck, work: Callable[[_Text], _T]
) -> tuple[str, _T]:
    """Do `work` on a file that stays the same meanwhile; return its path, spelled as on disk, and the outcome."""
    for _ in range(_TRIES):
        with folder.open(manual_id, path) as handle:
            stamp = Stamp.of(os.fstat(handle.fileno()))
            text = _Text(handle, stamp, folder.anchors(manual_id, handle.name, stamp), check)
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
    listed = [{"start_line": each.line, "title": each.title} for each in nearest]
    lines = ", ".join(str(each.line) for each in nearest)
    cure = f"pass the line of one, such as {lines}" if lines else "it has no headings, so leave start_line out"
    return ManualsError(
        "not_found",
        f"No heading of the file is on line {wanted}; {cure}, or read from any line with manual_scan.",
        start_line=wanted,
        nearest=listed,
    )
