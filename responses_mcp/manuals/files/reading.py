"""`manual_scan` and `manual_read`: a file page by page, and sections (M6 and M7).

Places are counted in characters of the text that `texts` gives, so pages join to exactly the whole.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder, Stamp
from responses_mcp.manuals.files.pages import Page, Section, Text, steadily
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.paths import file_type, parts_of

_BEFORE_A_MATCH: Final = 1500  # characters shown of what is above it, and no more than a quarter of the page
_BEHIND_A_MATCH: Final = 200  # characters of it, and of what follows, that must be on the page
_GOES_ON: Final = (
    "This section has been read before on this connection, so here is what follows. manual_scan with start_line {} "
    "shows it again."
)
_PASSED: Final = "There is text before the first heading, which start_line 1 shows."
_AT_THE_MATCH: Final = (
    "This section is long, so here it is from line {} on, near the match; manual_scan with start_line {} shows its "
    "beginning."
)
_CHANGED: Final = "The file has changed since this section was read, so here it is anew."


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
    for a place beyond the end, which is itself an empty page, `conflict` if the file does not stay the same for long
    enough, and what `Folder.open` does.
    """
    manual_id = folder.require_manual(request.manual_id)

    def page(text: Text) -> tuple[Page, dict[str, Any]]:
        start = request.char_offset or 0 if request.start_line is None else text.offset_of(request.start_line)
        return text.page(start, request.max_chars), text.guessed()

    path, (found, guessed) = steadily(folder, manual_id, request.path, check, page)
    return {
        "manual_id": manual_id,
        "path": path,
        "text": found.text,
        **found.place(),
        "truncated": not found.eof,
        "truncated_reason": "none" if found.eof else "max_chars",
        "applied": {"max_chars": request.max_chars},
        **found.replacements(),
        **guessed,
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

    def found(text: Text) -> tuple[Stamp, Section, Page, bool]:
        section, begin = _from_match(text, request)
        if after is not None and after.stamp == text.stamp:
            following = text.page(after.char_offset, request.max_chars, beyond_is_empty=True)
            if following.text:
                return text.stamp, section, following, True
        page = text.page(begin, min(section.end - begin, request.max_chars + 1))
        return text.stamp, section, page, False

    path, (stamp, section, page, fallback) = steadily(folder, manual_id, request.path, check, found)
    applied = {"scope": "section", "max_sections": None, "max_chars": request.max_chars}
    if fallback:
        shown = {"text": page.text, "truncated": not page.eof, "applied": {**applied, "mode": "scan_fallback"}}
        note = {"note": _GOES_ON.format(max(section.line, request.match_line or 0))}  # near enough to be on its page
        begun = after.begun if after is not None else None
        end = ReadEnd(manual_id, path, section.line, page.end, page.eof, stamp, begun)
        return {**shown, **page.place(), **page.replacements(), **note}, end
    whole = page.text.removesuffix("\n") if page.end == section.end else page.text
    truncated = len(whole) > request.max_chars
    shown = {"text": whole[: request.max_chars], "truncated": truncated, "applied": {**applied, "mode": "read"}}
    note = {"note": _PASSED} if section.passed else {}
    if page.start > section.start:
        note = {"note": _AT_THE_MATCH.format(page.start_line, section.line)}
    if after is not None and after.stamp != stamp:
        note = {"note": _CHANGED}
    offset = page.start + _next_line(whole, request.max_chars) if truncated else section.end
    end = ReadEnd(manual_id, path, section.line, offset, page.eof and not truncated, stamp, page.start)
    return {**shown, **page.replacements(), **note}, end


def _from_match(text: Text, request: ReadRequest) -> tuple[Section, int]:
    """Return the section that is asked for, and where to begin: at its heading, unless the match is too far from it."""
    enough = request.max_chars + 1
    line = request.start_line
    if request.any_line and line is not None:
        line = text.heading_above(line)
    section = text.section(line, enough)
    match = request.char_offset
    if match is None and request.match_line is not None:
        with suppress(ManualsError):  # the file has fewer lines than it had
            match = text.offset_of(request.match_line)
    behind = min(_BEHIND_A_MATCH, request.max_chars // 2)
    if match is None or match + behind <= section.start + request.max_chars:
        return section, section.start
    longer = text.section(line, match - section.start + enough)
    if match >= longer.end:  # the file has changed
        return section, section.start
    before = max(match - min(_BEFORE_A_MATCH, request.max_chars // 4), section.start)
    above = text.page(before, match - before).text
    return longer, before + above.find("\n") + 1


def _next_line(text: str, cut: int) -> int:
    """Return where to go on in a text of which `cut` characters were given: behind the last line that is whole.

    A line longer than all that was given goes on within itself.
    """
    return cut + 1 if text[cut] == "\n" else text.rfind("\n", 0, cut) + 1 or cut
