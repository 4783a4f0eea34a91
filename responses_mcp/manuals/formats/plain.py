"""Plain text: underlined headings, and lines that stand alone and are numbered or in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from responses_mcp.manuals.formats.document import LONGEST_TITLE, MOST_HEADINGS, Heading, Outline

_UNDERLINE: Final = re.compile(r"([=\-~^*#])\1{2,}\s*$")
_NUMBERED: Final = re.compile(
    r"(\d{1,3}(?:\.\d{1,3}){0,5})\.?[ \t]+(\S.*)$|第[0-9一二三四五六七八九十百]+[章節部条].*$"
)
_ENDS_A_SENTENCE: Final = re.compile(r"[.!?,;:。、]$")
_LONGEST: Final = 80  # characters of a line that is a heading without an underline
_SLACK: Final = 2  # characters that an underline may be longer or shorter than its title, wide ones apart


def outline(lines: Iterable[str]) -> Outline:
    """Return the outline of plain text, whose lines come without their newlines."""
    headings: list[Heading] = []
    levels: dict[str, int] = {}
    text = 0
    before, last = "", ""  # the two lines before
    for number, line in enumerate(lines, 1):
        if not text and line.strip():
            text = number
        found = _underlined(number, line, last, before, levels) or _alone(number, line, last, before)
        if found is not None and len(headings) < MOST_HEADINGS:
            headings.append(found)
        before, last = last, line
    return Outline(headings, bool(text) and (not headings or text < headings[0].line))


def _underlined(number: int, line: str, title: str, before: str, levels: dict[str, int]) -> Heading | None:
    mark = _UNDERLINE.match(line)
    if mark is None or not title.strip() or title[:1] in " \t" or before.strip() or _UNDERLINE.match(title):
        return None
    if len(title) > LONGEST_TITLE or not len(title) - _SLACK <= len(line.rstrip()) <= 2 * len(title) + _SLACK:
        return None
    level = levels.setdefault(mark[1], len(levels) + 1)
    return Heading(number - 1, level, title.strip(), 2)


def _alone(number: int, line: str, title: str, before: str) -> Heading | None:
    """Return the heading that the line before is, if it stands between blank lines."""
    if line.strip() or before.strip() or not title.strip() or len(title) > _LONGEST or title[:1] in " \t":
        return None
    shown = title.strip()
    numbered = _NUMBERED.match(shown)
    if numbered is not None and not _ENDS_A_SENTENCE.search(shown):
        return Heading(number - 1, 1 + (numbered[1] or "").count("."), shown)
    if shown.isupper() and len(shown) > 3 and not _ENDS_A_SENTENCE.search(shown):
        return Heading(number - 1, 1, shown)
    return None
