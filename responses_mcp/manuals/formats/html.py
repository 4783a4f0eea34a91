"""HTML: its text in lines, cut at `<h1>` to `<h6>`; scripts, styles, navigation and comments are left out.

The page is read tag by tag, in one pass whatever it holds. Of a page with `<main>`, that alone is its text.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import Document, Page

# Comments, declarations, and what is in scripts and styles are passed over; then there are tags.
_PIECE: Final = re.compile(
    r"<!--(?:[^-]|-(?!->))*+(?:-->)?|<[!?][^>]*+>?|<(script|style)(?=[\s>])(?:[^<]|<(?!/\1[\s>]))*+"
    r"|<(/?)([a-z][a-z0-9:-]*+)([^<>]*+)>",
    re.IGNORECASE,
)
_LEFT_OUT: Final = frozenset({
    "script", "style", "noscript", "template", "svg", "nav", "iframe", "select", "button",
})  # fmt: skip
_BLOCKS: Final = frozenset({
    "p", "div", "section", "article", "header", "footer", "aside", "ul", "ol", "li", "dl", "dt", "dd",
    "table", "thead", "tbody", "tr", "caption", "blockquote", "pre", "figure", "figcaption", "hr", "br",
    "form", "fieldset", "details", "summary", "address", "body", "html",
})  # fmt: skip
_HEADING: Final = re.compile("h[1-6]")
_NAVIGATION: Final = re.compile(r"""role\s*=\s*["']?navigation""", re.IGNORECASE)
_PERMALINKS: Final = "¶#§🔗\uf0c1 "
_TAGS_BETWEEN_CHECKS: Final = 1024


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text of a page. What is opened and never closed is not left out."""
    writer = _written(text, check, leaves_out=True)
    if writer.left_out:
        writer = _written(text, check, leaves_out=False)
    return writer.document()


def _written(text: str, check: CancellationCheck, *, leaves_out: bool) -> _Writer:
    writer = _Writer(leaves_out=leaves_out)
    at = 0
    for number, piece in enumerate(_PIECE.finditer(text)):
        if not number % _TAGS_BETWEEN_CHECKS:
            check()
        writer.text(text[at : piece.start()])
        at = piece.end()
        if piece[3]:
            writer.tag(piece[3].lower(), piece[4], closing=bool(piece[2]))
        if writer.is_complete:
            break
    else:
        writer.text(text[at:])
    return writer


class _Writer:
    """Takes a page piece by piece and writes its text.

    `left_out` is the open tag within which all is left out.
    """

    def __init__(self, *, leaves_out: bool) -> None:
        self.is_complete = False
        self.left_out = ""
        self._leaves_out = leaves_out
        self._page = Page()
        self._line: list[str] = []
        self._has_text = False  # in the line
        self._title: list[str] | None = None  # of the page, or of a section, which is open
        self._title_of = ""
        self._depth = 0  # how often the tag is open within which all is left out
        self._preformatted = 0

    def tag(self, name: str, attributes: str, *, closing: bool) -> None:
        """Take a tag."""
        if self._title and not closing and name in _BLOCKS and name != "br":
            self._title_tag(self._title_of, closing=True)  # which was not closed
        if self.left_out:
            if name == self.left_out:
                self._depth += -1 if closing else 1
                self.left_out = self.left_out if self._depth else ""
        elif (
            self._leaves_out and not closing and (name in _LEFT_OUT or (attributes and _NAVIGATION.search(attributes)))
        ):
            if not attributes.rstrip().endswith("/"):
                self.left_out, self._depth = name, 1
        elif name == "title" or _HEADING.fullmatch(name):
            self._title_tag(name, closing=closing)
        elif self._title is not None:
            self._title += " " * bool(self._title)
        elif name == "main":
            self._break()
            self.is_complete = closing
            title, self._page = self._page.title, self._page if closing else Page()
            self._page.title = title
        elif name in ("td", "th"):
            self._line.append(" | " if self._has_text and not closing else "")
        elif name in _BLOCKS:
            self._break()
            if name == "pre":
                self._preformatted = max(self._preformatted + (-1 if closing else 1), 0)
            elif name == "li" and not closing:
                self._line.append("- ")
            elif name in ("p", "table") and closing and self._page.lines and self._page.lines[-1]:
                self._page.lines.append("")

    def _title_tag(self, name: str, *, closing: bool) -> None:
        self._title_of = name
        title = " ".join("".join(self._title or ()).split())
        self._title = None if closing else []
        if name != "title":
            if not closing:
                self._break()
            elif title := title.rstrip(_PERMALINKS):
                self._page.heading(int(name[1]), title)
        elif closing:
            self._page.title = self._page.title or title

    def text(self, raw: str) -> None:
        """Take what is between two tags."""
        if not raw or self.left_out:
            return
        text = unescape(raw) if "&" in raw else raw
        if self._title is not None:
            self._title += [text] if self._title or not text.isspace() else []
            return
        self._has_text = self._has_text or not text.isspace()
        if self._preformatted and "\n" in text:
            first, *lines, last = text.split("\n")
            self._page.lines += (each.rstrip() for each in ("".join((*self._line, first)), *lines))
            self._line = [last]
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
