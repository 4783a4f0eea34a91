"""AsciiDoc, line by line: headings with `=`; attributes, anchors and macros become the text in them, or nothing."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import Document, Page, checked_lines

_ATTRIBUTE: Final = re.compile(r":([\w-]{1,60}):[ \t]+(\S.{0,300})$")
_REFERENCE: Final = re.compile(r"(?<!\\)\{([\w-]{1,60})\}")
_HEADING: Final = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*$")
_UNDERLINE: Final = re.compile(r"([=\-~^+])\1{2,}\s*$")
_BLOCK: Final = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|```+)\s*$")
_NO_TEXT: Final = re.compile(
    r":!?[\w-]+!?:(?:\s|$)|\[[^\]]*\]\s*$|//(?!/)|(?:include|ifdef|ifndef|ifeval|endif|toc)::|'''\s*$|<<<\s*$"
)
_IMAGE: Final = re.compile(r"(?:image|video|audio)::?[^\s\[]{0,200}\[([^\],]{0,200})[^\]]{0,100}\]")
_MACRO: Final = re.compile(r"(?:link|xref|https?|mailto):[^\s\[]{1,200}\[([^\]^]{0,200})\^?\]")
_CROSS: Final = re.compile(r"<<[^<>,]{1,200}(?:,([^<>]*))?>>")
_ANCHOR: Final = re.compile(r"\[\[[^\[\]]*\]\]")
_LEVELS: Final = "=-~^+"
_LONGEST_HEADING: Final = 500  # characters of a line
_LONGEST_FILLED: Final = 2000  # characters of a line in which attributes have their values
_LONGEST_VALUE: Final = 300
_MOST_GROWN: Final = 3  # times its size that the values of attributes may add


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text in as many lines as the file has."""
    page = Page()
    attributes = _Attributes(_MOST_GROWN * len(text))
    block = ""  # the line that ends it
    last = ""
    for line in checked_lines(text, check):
        if block:
            page.lines.append("" if block[0] == "/" or line.rstrip() == block else line)
            block = "" if line.rstrip() == block else block
        elif (level := _underlined(line, last)) is not None:
            page.lines.append("")
            page.heading(level, _plain(attributes.filled(last)), back=2)
        elif (delimiter := _BLOCK.match(line)) is not None:
            block = line.rstrip() if delimiter[1][0] != "`" else "```"
            page.lines.append("")
        elif len(line) <= _LONGEST_HEADING and (heading := _HEADING.match(line)) is not None:
            page.heading(len(heading[1]), _plain(attributes.filled(heading[2])))
        elif _NO_TEXT.match(line):
            attributes.note(line)
            page.lines.append("")
        else:
            page.lines.append(_plain(attributes.filled(line)))
        last = "" if block else line
    return page.document()


class _Attributes:
    """The attributes that a file sets, which may add so many characters to it."""

    def __init__(self, room: int) -> None:
        self._values: dict[str, str] = {}
        self._room = room

    def note(self, line: str) -> None:
        """Take a line that may set one."""
        if (found := _ATTRIBUTE.match(line)) is not None:
            self._values[found[1]] = self.filled(found[2].rstrip())[:_LONGEST_VALUE]

    def filled(self, text: str) -> str:
        """Return a text with the values in place of the names."""
        if "{" not in text or not self._values or len(text) > _LONGEST_FILLED:
            return text
        filled = _REFERENCE.sub(lambda found: self._values.get(found[1], found[0]), text)
        self._room -= max(len(filled) - len(text), 0)
        return filled if self._room >= 0 else text


def _underlined(line: str, title: str) -> int | None:
    mark = _UNDERLINE.match(line)
    if mark is None or not title.strip() or title[:1] in "[.:" or abs(len(title) - len(line.rstrip())) > 1:
        return None
    return _LEVELS.index(mark[1]) + 1


def _plain(text: str) -> str:
    if "[" not in text and "<<" not in text:
        return text
    text = _IMAGE.sub(r"\1", text)
    text = _MACRO.sub(r"\1", text)
    text = _CROSS.sub(lambda found: found[1] or "", text)
    return _ANCHOR.sub("", text)
