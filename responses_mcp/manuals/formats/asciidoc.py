"""AsciiDoc: headings with `=`; attributes, anchors and macros become the text in them, or nothing."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.markup import Markup

_ATTRIBUTE: Final = re.compile(r":([\w-]{1,60}):[ \t]+(\S.{0,300})$")
_REFERENCE: Final = re.compile(r"(?<!\\)\{([\w-]{1,60})\}")
_IMAGE: Final = re.compile(r"(?:image|video|audio)::?[^\s\[]{0,200}\[([^\],]{0,200})[^\]]{0,100}\]")
_MACRO: Final = re.compile(r"(?:link|xref|https?|mailto):[^\s\[]{1,200}\[([^\]^]{0,200})\^?\]")
_CROSS: Final = re.compile(r"<<[^<>,]{1,200}(?:,([^<>]*))?>>|\[\[[^\[\]]*\]\]")
_CLOSING: Final = re.compile(r"[ \t](?:=+|#+)$")
_LEVELS: Final = "=-~^+"
_LONGEST_FILLED: Final = 2000  # characters of a line in which attributes have their values
_LONGEST_VALUE: Final = 300
_MOST_GROWN: Final = 3  # times its size that the values of attributes may add
_MARKS: Final = re.compile(
    r"(?P<blank>\s*$)|(?P<heading>(?:={1,6}|#{1,6})[ \t]+(?=\S))|(?P<underline>(?P<mark>[=\-~^+])(?P=mark)+[ \t]*$)"
    r"|(?P<block>(?:\.{4,}|/{4,}|```+\w*)\s*$)|(?P<attribute>:!?[\w-]+!?:(?:\s|$))"
    r"|(?P<noise>\[.*\]\s*$|//(?!/)|(?:include|ifdef|ifndef|ifeval|endif|toc)::|'''\s*$|<<<\s*$)"
)
_TITLE: Final = re.compile(r"[^\[.:\s]")


class AsciiDoc(Markup):
    """AsciiDoc. The values of its attributes may add only so much to a file."""

    _match = staticmethod(_MARKS.match)
    _is_title = staticmethod(_TITLE.match)

    def __init__(self, text: str, check: CancellationCheck) -> None:
        super().__init__(text, check)
        self._values: dict[str, str] = {}
        self._room = _MOST_GROWN * len(text)

    def _text(self, line: str) -> None:
        self.page.lines.append(self._plain(line))

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        mark = line.rstrip()
        if kind == "heading":
            title = _CLOSING.sub("", mark[found.end() :])
            self.page.heading(len(found[kind].rstrip()), self._plain(title))
            return
        self.page.lines.append("")
        title = self.title_above(line) if kind == "underline" else ""
        if title and abs(len(title) - len(mark)) <= 1:
            self.page.heading(_LEVELS.index(mark[0]) + 1, self._plain(title), lines=2)
        elif kind == "block" or (kind == "underline" and mark[0] in "-+" and len(mark) > 3):
            end = "```" if mark[0] == "`" else mark
            self.take(lambda each: each.rstrip() == end, shown=mark[0] != "/")
        elif (attribute := _ATTRIBUTE.match(line)) is not None:
            self._values[attribute[1]] = self._filled(attribute[2].rstrip())[:_LONGEST_VALUE]

    def _plain(self, text: str) -> str:
        text = self._filled(text)
        if "[" not in text and "<<" not in text:
            return text
        return _CROSS.sub(r"\1", _MACRO.sub(r"\1", _IMAGE.sub(r"\1", text)))

    def _filled(self, text: str) -> str:
        """Return a text with the values of attributes in place of their names."""
        if "{" not in text or not self._values or len(text) > _LONGEST_FILLED:
            return text
        filled = _REFERENCE.sub(lambda found: self._values.get(found[1], found[0]), text)
        self._room -= max(len(filled) - len(text), 0)
        return filled if self._room >= 0 else text
