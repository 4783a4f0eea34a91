"""`manual_scan` and `manual_read`: a file page by page, and sections (M6 and M7).

Places are counted in characters and lines of the text that is served, so pages join to exactly the whole.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder, Stamp
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.formats.document import Document, Heading
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.paths import file_type, parts_of

_NEAREST: Final = 3  # headings named on either side of a line that is none
_BEFORE_A_MATCH: Final = 1500  # characters shown of what is above it, and no more than a quarter of the page
_BEHIND_A_MATCH: Final = 200  # characters of it, and of what follows, that must be on the page
_GOES_ON: Final = (
    "This section was already read on this connection; this is the text after it. manual_scan with start_line {} "
    "shows it again."
)
_PASSED: Final = "The file has text before the first heading; start_line 1 shows it."
_AT_THE_MATCH: Final = (
    "This section is long, so the text starts at line {}, near the match; manual_scan with start_line {} shows its "
    "beginning."
)
_CHANGED: Final = "The file has changed since this section was read; this is its new text."


@dataclass(frozen=True, slots=True)
class ReadEnd:
    """What a read gave: the section by the line of its heading (1 for the preamble), and where reading can go on.

    `path` and `manual_id` are spelled as on disk. `char_offset` is the place after the last character given, or where
    the line begins that a cut section ended in; with `eof` nothing follows there. All of it is true of the state of the
    file that `stamp` tells. `begun` is the first character given of the section.
    """

    manual_id: str
    path: str
    line: int
    char_offset: int
    eof: bool
    stamp: Stamp
    begun: int | None = None


def scan(folder: Folder, request: ScanRequest, check: CancellationCheck) -> dict[str, Any]:
    """Return a page of a file from a line or a character on.

    `decoding_replacements` is there when bytes that are not UTF-8 were replaced in the page. Raises `invalid_parameter`
    for a place beyond the end, which is itself an empty page, and what `Folder.document` does.
    """
    manual_id = folder.require_manual(request.manual_id)
    path, _, document = folder.document(manual_id, request.path, check)
    start = request.char_offset or 0
    if request.start_line is not None:
        start = _offset_of(document.text, request.start_line)
    if not 0 <= start <= len(document.text):
        raise ManualsError(
            "invalid_parameter",
            f"cursor.char_offset {start} is outside the text, which has {len(document.text)} characters; "
            "go on with the next_cursor of the last page, or start again without a cursor.",
            characters=len(document.text),
        )
    text = document.text[start : start + request.max_chars]
    place = _place(document.text, start, text)
    return {
        "manual_id": manual_id,
        "path": path,
        "text": text,
        **place,
        "truncated": not place["eof"],
        "truncated_reason": "none" if place["eof"] else "max_chars",
        "applied": {"max_chars": request.max_chars},
        **_replacements(document, text),
        **({"guessed_encoding": document.guessed} if document.guessed else {}),
    }


def read(
    folder: Folder, request: ReadRequest, check: CancellationCheck, *, after: ReadEnd | None = None
) -> tuple[dict[str, Any], ReadEnd]:
    """Return a section with its sub-sections; or, `after` it was read, the text that follows what was given.

    A long section begins near the match that the request names, so that it is on the page. Where nothing follows, or
    the file has changed, the section is given again. Raises `invalid_scope` for JSON, `not_found` for a line that is no
    heading (`details.nearest` has some), and otherwise what `scan` does.
    """
    if file_type("/".join(parts_of(request.path)).strip()) == "json":
        raise ManualsError(
            "invalid_scope", "path is a JSON file, which has no sections; read it with manual_scan.", path=request.path
        )
    manual_id = folder.require_manual(request.manual_id)
    path, stamp, document = folder.document(manual_id, request.path, check)
    text, most = document.text, request.max_chars
    line = request.start_line
    if request.any_line and line is not None:
        line = _heading_above(document, line)
    line, start, end, passed = _section(document, line)
    applied = {"scope": "section", "max_sections": None, "max_chars": most}
    if after is not None and after.stamp == stamp and after.char_offset < len(text):
        begin = after.char_offset
        shown = text[begin : begin + most]
        place = _place(text, begin, shown)
        note = {"note": _GOES_ON.format(max(line, request.match_line or 0))}  # near enough to be on its page
        result = {"text": shown, "truncated": not place["eof"], "applied": {**applied, "mode": "scan_fallback"}}
        last = ReadEnd(manual_id, path, line, begin + len(shown), place["eof"], stamp, after.begun)
        return {**result, **place, **_replacements(document, shown), **note}, last
    begin = _begin(text, start, end, request)
    whole = text[begin:end].removesuffix("\n")
    truncated = len(whole) > most
    shown = whole[:most]
    result = {"text": shown, "truncated": truncated, "applied": {**applied, "mode": "read"}}
    if after is not None and after.stamp != stamp:
        result["note"] = _CHANGED
    elif begin > start:
        result["note"] = _AT_THE_MATCH.format(_line_of(text, begin), line)
    elif passed:
        result["note"] = _PASSED
    offset = begin + _next_line(whole, most) if truncated else end
    last = ReadEnd(manual_id, path, line, offset, offset == len(text), stamp, begin)
    return {**result, **_replacements(document, shown)}, last


def _section(document: Document, wanted: int | None) -> tuple[int, int, int, bool]:
    """Find the section whose heading is on a line, by default the first.

    Returns the line, the first character and the one behind the last, and whether there is text before that nobody
    asked for. Line 1 is also the preamble, or else what follows the front matter, which is shown only where nothing
    does.
    """
    headings, front, text = document.headings, document.front_lines, document.text
    number = next((number for number, each in enumerate(headings) if each.line == wanted), None)
    if number is None and headings and (wanted is None or (wanted == 1 and front and not document.has_preamble)):
        number = 0
    if number is not None:
        heading = headings[number]
        following = next((each.line for each in headings[number + 1 :] if each.level <= heading.level), None)
        begin, passed = _offset_of(text, heading.line), document.has_preamble and wanted is None
        return heading.line, begin, len(text) if following is None else _offset_of(text, following), passed
    if (wanted or 1) == 1 and (document.has_preamble or not headings):
        begin = _offset_of(text, front + 1) if front and document.has_preamble else 0
        return 1, begin, _offset_of(text, headings[0].line) if headings else len(text), False
    near = bisect_left(headings, wanted or 0, key=attrgetter("line"))
    raise _no_heading(wanted, headings[max(near - _NEAREST, 0) : near + _NEAREST])


def _heading_above(document: Document, line: int) -> int | None:
    """Return the line of the heading above a line; 1 for a preamble, None where nothing is above it."""
    _offset_of(document.text, line)  # there must be one
    number = bisect_right(document.headings, line, key=attrgetter("line"))
    return document.headings[number - 1].line if number else 1 if document.has_preamble else None


def _begin(text: str, start: int, end: int, request: ReadRequest) -> int:
    """Return where to begin in a section: at its heading, unless the match that is asked for is too far from it."""
    match = request.char_offset
    if match is None and request.match_line is not None:
        with suppress(ManualsError):  # the file has fewer lines than it had
            match = _offset_of(text, request.match_line)
    behind = min(_BEHIND_A_MATCH, request.max_chars // 2)
    if match is None or match + behind <= start + request.max_chars or match >= end:  # at the end, the file has changed
        return start
    before = max(match - min(_BEFORE_A_MATCH, request.max_chars // 4), start)
    return text.find("\n", before, match) + 1 or before


def _offset_of(text: str, line: int) -> int:
    """Return the place of the first character of a line."""
    last = text.count("\n") + (not text.endswith("\n"))
    if not 1 <= line <= last:
        message = f"start_line {line} is outside the file; pass a line from 1 to {last}, its last."
        raise ManualsError("invalid_parameter", message, lines=last)
    return len(text) - len(text.split("\n", line - 1)[-1])


def _line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, min(offset, len(text) - 1)) + 1  # behind the last line end there is no line


def _place(text: str, start: int, page: str) -> dict[str, Any]:
    """Return the fields that tell where a page is, and where to go on."""
    line, end = _line_of(text, start), start + len(page)
    eof = end >= len(text)
    return {
        "applied_range": {"start_line": line, "end_line": line + page.count("\n", 0, -1)},
        "next_cursor": {"char_offset": None if eof else end},
        "eof": eof,
    }


def _replacements(document: Document, page: str) -> dict[str, Any]:
    """Return the field that counts replaced bytes, if there are any."""
    replaced = min(page.count("\ufffd"), document.replaced) if document.replaced else 0
    return {"decoding_replacements": replaced} if replaced else {}


def _next_line(text: str, cut: int) -> int:
    """Return where to go on in a text of which `cut` characters were given: behind the last line that is whole.

    A line longer than all that was given goes on within itself.
    """
    return cut + 1 if text[cut] == "\n" else text.rfind("\n", 0, cut) + 1 or cut


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
