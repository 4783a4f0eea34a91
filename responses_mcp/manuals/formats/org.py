"""Org, line by line: headings with `*`; keywords, drawers and addresses of links are left out."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import Document, Page, checked_lines

_HEADING: Final = re.compile(r"(\*+)[ \t]+(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]*)?(.*)$")
_TAGS: Final = re.compile(r"[ \t]+(?::[\w@#%]+)+:[ \t]*$")
_KEYWORD: Final = re.compile(r"\s*#\+(\w+):?[ \t]*(.*)$")
_COMMENT: Final = re.compile(r"\s*#(?:[ \t]|$)")
_DRAWER: Final = re.compile(r"\s*:(?!END:)[A-Za-z_-]+:\s*$")
_END: Final = re.compile(r"\s*:END:\s*$", re.IGNORECASE)
_LINK: Final = re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]")
_BARE_LINK: Final = re.compile(r"\[\[([^\[\]]*)\]\]")
_LONGEST_HEADING: Final = 500  # characters of a line
_MOST_LINES: Final = 100  # of a drawer; one without an end is text


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text in as many lines as the file has."""
    page = Page()
    drawer = 0  # lines of it so far
    verbatim = hidden = False
    for line in checked_lines(text, check):
        if drawer:
            drawer = 0 if _END.match(line) or drawer == _MOST_LINES else drawer + 1
            page.lines.append("")
        elif (keyword := _KEYWORD.match(line)) is not None:
            name = keyword[1].lower()
            if name == "title" and not page.title:
                page.title = keyword[2].strip()
            verbatim = name.startswith("begin") or (verbatim and not name.startswith("end"))
            hidden = verbatim and (name == "begin_comment" or hidden)
            page.lines.append("")
        elif verbatim:
            page.lines.append("" if hidden else line)
        elif len(line) <= _LONGEST_HEADING and (heading := _HEADING.match(line)) is not None:
            page.heading(len(heading[1]), _plain(_TAGS.sub("", heading[2])))
        elif _DRAWER.match(line):
            drawer = 1
            page.lines.append("")
        else:
            page.lines.append("" if _COMMENT.match(line) else _plain(line))
    return page.document()


def _plain(text: str) -> str:
    return _BARE_LINK.sub(r"\1", _LINK.sub(r"\1", text)) if "[[" in text else text
