"""HTML: its text in lines, cut at `<h1>` to `<h6>`; scripts, styles, navigation and comments are left out.

The page is read tag by tag, in one pass whatever it holds.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import Document, Page

_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>]*+)>")
_LEFT_OUT: Final = frozenset(("script", "style", "noscript", "template", "svg", "nav", "iframe", "select", "button"))
_BLOCKS: Final = frozenset(
    {
        *("p", "div", "section", "article", "main", "header", "footer", "aside", "ul", "ol", "li", "dl", "dt", "dd"),
        *("table", "thead", "tbody", "tr", "caption", "blockquote", "pre", "figure", "figcaption", "hr", "br", "form"),
        *("fieldset", "details", "summary", "address", "body", "html"),
    }
)

_CELLS: Final = frozenset(("td", "th"))
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_NAVIGATION: Final = re.compile(r"""role\s*=\s*["']?navigation""", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[\s>]", re.IGNORECASE)
_MAIN: Final = re.compile(r"<main[\s>]", re.IGNORECASE)
_PERMALINKS: Final = "¶#§🔗\uf0c1 "
_TAGS_BETWEEN_CHECKS: Final = 1024


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text of a page; of one with `<main>`, of that alone."""
    writer = _Writer()
    if (title := _TITLE.search(text)) is not None:
        end = _end_of(text, "title", title.start())
        writer.read(f"{text[title.start() : end]}</title>" if end >= 0 else "", check)
    main = _MAIN.search(text)
    start, end = (main.start(), _end_of(text, "main", main.start())) if main else (0, -1)
    writer.read(text[start : end if end >= 0 else len(text)], check)
    return writer.document()


class _Writer:
    """Takes a page tag by tag and writes its text."""

    def __init__(self) -> None:
        self._page = Page()
        self._line: list[str] = []
        self._has_text = False  # in the line
        self._heading: list[str] | None = None
        self._title: list[str] | None = None
        self._left_out = ""  # the tag within which all is left out
        self._depth = 0  # how often it is open
        self._preformatted = 0

    def read(self, text: str, check: CancellationCheck) -> None:
        """Take a text with tags."""
        at = count = 0
        while (found := text.find("<", at)) >= 0:
            count += 1
            if not count % _TAGS_BETWEEN_CHECKS:
                check()
            self._text(text[at:found])
            if text.startswith("<!--", found):
                end = text.find("-->", found)
                at = end + 3 if end >= 0 else len(text)
                continue
            if text.startswith(("<!", "<?"), found):
                end = text.find(">", found)
                at = end + 1 if end >= 0 else len(text)
                continue
            tag = _TAG.match(text, found)
            if tag is None:
                self._text("<")
                at = found + 1
                continue
            at = tag.end()
            name = tag[2].lower()
            if name in ("script", "style") and not tag[1]:  # what is in them need not be tags
                end = _end_of(text, name, at)
                at = end if end >= 0 else len(text)
                continue
            self._tag(name, tag[3], closing=bool(tag[1]))
        self._text(text[at:])

    def _tag(self, name: str, attributes: str, *, closing: bool) -> None:
        if self._left_out:
            if name == self._left_out:
                self._depth += -1 if closing else 1
                self._left_out = self._left_out if self._depth else ""
        elif not closing and (name in _LEFT_OUT or (attributes and _NAVIGATION.search(attributes))):
            if not attributes.rstrip().endswith("/"):
                self._left_out, self._depth = name, 1
        elif name == "title":
            if closing and self._title is not None:
                self._page.title = self._page.title or " ".join("".join(self._title).split())
            self._title = None if closing else []
        elif name in _HEADINGS:
            self._heading_tag(name, closing=closing)
        elif self._heading is not None:
            self._heading.append(" ")
        elif name in _CELLS:
            self._line.append(" | " if self._has_text and not closing else "")
        elif name in _BLOCKS:
            self._break()
            if name == "pre":
                self._preformatted = max(self._preformatted + (-1 if closing else 1), 0)
            elif name == "li" and not closing:
                self._line.append("- ")
            elif name in ("p", "table", "pre") and closing and self._page.lines and self._page.lines[-1]:
                self._page.lines.append("")

    def _heading_tag(self, name: str, *, closing: bool) -> None:
        if not closing:
            self._break()
            self._heading = []
        elif self._heading is not None:
            title = " ".join("".join(self._heading).split()).rstrip(_PERMALINKS)
            self._heading = None
            if title:
                self._page.heading(_HEADINGS[name], title)

    def _text(self, raw: str) -> None:
        if not raw or self._left_out:
            return
        text = unescape(raw) if "&" in raw else raw
        self._has_text = self._has_text or not text.isspace()
        for taker in (self._title, self._heading):
            if taker is not None:
                taker.append(text)
                return
        if self._preformatted and "\n" in text:
            *whole, last = text.split("\n")
            for line in whole:
                self._page.lines.append(("".join(self._line) + line).rstrip())
                self._line = []
            self._line.append(last)
        else:
            self._line.append(text if self._preformatted else " ".join(f"x{text}x".split())[1:-1])

    def _break(self) -> None:
        line = "".join(self._line)
        self._line, self._has_text = [], False
        shown = line.rstrip() if self._preformatted else " ".join(line.split())
        if shown and shown != "-":
            self._page.lines.append(shown)

    def document(self) -> Document:
        """Return what was written."""
        self._break()
        return self._page.document()


def _end_of(text: str, name: str, at: int) -> int:
    """Return where the closing tag of an element begins; -1 if there is none."""
    while (found := text.find("</", at)) >= 0:
        if text[found + 2 : found + 2 + len(name)].lower() == name:
            return found
        at = found + 2
    return -1
