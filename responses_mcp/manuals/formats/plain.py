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
_ITEM: Final = re.compile(r"(\d{1,3})([.)]?)[ \t]+\S")
_ENDS_A_SENTENCE: Final = re.compile(r"[.!?,;:。、]$")
_LONGEST: Final = 80  # characters of a line that is a heading without an underline
_SLACK: Final = 2  # characters that an underline may be longer or shorter than its title, wide ones apart


def outline(lines: Iterable[str]) -> Outline:
    """Return the outline of plain text, whose lines come without their newlines."""
    headings: list[Heading] = []
    levels: dict[str, int] = {}
    text = 0
    before, last = "", ""  # the two lines before
    numbered = _Numbered()
    for number, line in enumerate(lines, 1):
        blank = not line or line.isspace()
        if not blank:
            text = text or number
            if (heading := numbered.heading(line)) is not None:
                headings.append(heading)
        found = _alone(number, line, last, before) if blank else _underlined(number, line, last, before, levels)
        if found is not None and (not blank or not numbered.holds(found)):
            headings.append(found)
        if len(headings) >= MOST_HEADINGS:
            break
        before, last = last, line
    if (heading := numbered.heading("")) is not None:
        headings.append(heading)
    return Outline(headings, bool(text) and (not headings or text < headings[0].line))


class _Numbered:
    """Tells headings such as `1. Opening` from items of a list, by what stands before and behind them.

    An item follows a colon or the item before it, or the next one follows it at once.
    """

    def __init__(self) -> None:
        self._held: Heading | None = None
        self._before, self._last = "", ""  # the two last lines with text
        self._in_list = False

    def holds(self, found: Heading) -> bool:
        """Take a heading, the last line with text; tell whether it is held, because it may be an item."""
        if _ITEM.match(found.title) is None:
            return False
        self._in_list = self._in_list or self._before.endswith((":", "："))
        self._held = found
        return True

    def heading(self, line: str) -> Heading | None:
        """Take the next line with text, "" at the end; return the heading that was held, if it is one."""
        held, self._held = self._held, None
        goes_on = held is not None and _goes_on(held.title, line)
        found = None if goes_on or self._in_list else held
        self._in_list = goes_on
        self._before, self._last = self._last, line.rstrip()
        return found


def _goes_on(item: str, line: str) -> bool:
    """Tell whether a line is the next item of the list."""
    one, other = _ITEM.match(item), _ITEM.match(line)
    return one is not None and other is not None and one[2] == other[2] and int(other[1]) - int(one[1]) in (0, 1)


def _underlined(number: int, line: str, title: str, before: str, levels: dict[str, int]) -> Heading | None:
    mark = _UNDERLINE.match(line)
    over = _UNDERLINE.match(before) is not None  # the line above the title is one, too
    if (
        mark is None
        or not title.strip()
        or (not over and (title[:1] in " \t" or before.strip()))
        or _UNDERLINE.match(title)
    ):
        return None
    if len(title) > LONGEST_TITLE or not len(title) - _SLACK <= len(line.rstrip()) <= 2 * len(title) + _SLACK:
        return None
    level = levels.setdefault(f"{mark[1]}{over}", len(levels) + 1)
    return Heading(number - 1, level, title.strip(), 2)


def _alone(number: int, line: str, title: str, before: str) -> Heading | None:
    """Return the heading that the line before is, if it stands between blank lines."""
    if line.strip() or before.strip() or not title.strip() or len(title) > _LONGEST or title[:1] in " \t":
        return None
    shown = title.strip()
    numbered = _NUMBERED.match(shown)
    if numbered is not None and not _ENDS_A_SENTENCE.search(shown):
        level = 1 + (numbered[1] or "").count(".")
        return Heading(number - 1, level, shown) if level > 1 or not (numbered[2] or "")[:1].islower() else None
    if shown.isupper() and len(shown) > 3 and not _ENDS_A_SENTENCE.search(shown):
        return Heading(number - 1, 1, shown)
    return None
