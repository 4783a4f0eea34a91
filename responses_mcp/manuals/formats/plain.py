"""Plain text: underlined headings, and lines that stand alone and are numbered or in capitals."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.formats.markup import Markup

_NUMBERED: Final = re.compile(
    r"(\d{1,3}(?:\.\d{1,3}){0,5})\.?[ \t]+(\S.*)$|第[0-9一二三四五六七八九十百]+[章節部条].*$"
)
_ITEM: Final = re.compile(r"\d{1,3}([.)]?)[ \t]+\S")
_ENDS: Final = tuple(".!?,;:。、")  # of sentences
_LONGEST: Final = 80  # characters of a line that is a heading without an underline
_BLANKS: Final = 2  # lines from a line that stands alone to its neighbours
_SLACK: Final = 2  # characters that an underline may be longer or shorter than its title, wide ones apart
_MARKS: Final = re.compile(r"(?P<blank>\s*$)|(?P<underline>(?P<mark>[=\-~^*#])(?P=mark){2,}\s*$)")
_TITLE: Final = re.compile(r"\S")


class Plain(Markup):
    """Plain text, which is served as it is."""

    _match = staticmethod(_MARKS.match)
    _is_title = staticmethod(_TITLE.match)

    def _text(self, line: str) -> None:
        self.page.lines.append(line)
        if not (self.line_at(-1).strip() or self.line_at(1).strip()) and (level := _level(line)):
            item = _ITEM.match(line)
            if item is None or not self._is_in_list(item[1]):
                self.page.heading(level, line, lines=1)

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:  # noqa: ARG002  # as in all formats
        self.page.lines.append(line)
        title = self.title_above(line) if kind == "underline" else ""
        if title and len(title) - _SLACK <= len(line.rstrip()) <= 2 * len(title) + _SLACK:
            self.page.heading(self.level_of(line), title, lines=2)

    def _is_in_list(self, mark: str) -> bool:
        """Tell whether a numbered line is an item of a list: a colon or another item stands beside it."""
        before, behind = self.line_at(-_BLANKS), self.line_at(_BLANKS)
        others = filter(None, map(_ITEM.match, (before, behind)))
        return before.rstrip().endswith((":", "：")) or any(other[1] == mark for other in others)


def _level(line: str) -> int:
    """Return the level of the heading that a line is which stands alone, 0 if it is none."""
    shown = line.strip()
    if len(line) > _LONGEST or line[:1] in " \t" or shown.endswith(_ENDS):
        return 0
    if (numbered := _NUMBERED.match(shown)) is not None:
        level = 1 + (numbered[1] or "").count(".")
        return level if level > 1 or not (numbered[2] or "")[:1].islower() else 0
    return int(shown.isupper() and len(shown) > 3)
