"""Markdown: headings with `#`, underlined ones, and those of HTML.

Lines in code fences, in HTML comments, in `<pre>` and the like, and in the front matter at the head of the file (YAML
between `---`, TOML between `+++`) are no headings. Text before the first heading is a section too, the preamble, named
by the front matter's `title`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

from responses_mcp.manuals.formats.document import LONGEST_TITLE, MOST_HEADINGS, Heading, Outline

_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE: Final = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*$")
_NO_PARAGRAPH: Final = re.compile(r" {4}|\t|[ ]{0,3}(?:[>|<]|[-+*][ \t]|\d{1,9}[.)][ \t]|[-=*_#]+[ \t]*$)")
_HTML_HEADING: Final = re.compile(r" {0,3}<h([1-6])(?:\s[^>]*)?>", re.IGNORECASE)
_HTML_HEADING_ENDS: Final = re.compile(r"</h[1-6]\s*>", re.IGNORECASE)
_VERBATIM: Final = re.compile(r" {0,3}<(pre|script|style|textarea)[\s>]", re.IGNORECASE)
_COMMENT: Final = re.compile(r"\s*<!--")
_TAG: Final = re.compile(r"<[^<>]*>")
_FRONT_ENDS: Final = {"---": ("---", "..."), "+++": ("+++",)}  # YAML and TOML, by their first line
_FRONT_LINE: Final = re.compile(r"[ \t#\[\]{}-]|[^:=]{1,80}[:=](?:\s|$)|\s*$")
_FRONT_TITLE: Final = re.compile(r"title[ \t]*[:=][ \t]*(?![ \t|>])(.*)", re.IGNORECASE)
_SEARCH: Final = re.compile(r"search:\s*(?:$|\{(.*)\}\s*$)")
_EXCLUDED: Final = re.compile(r"(?:^|[\s{,])exclude:\s*true\b")
_LONGEST_FRONT_MATTER: Final = 200  # lines; after that the first line was a thematic break
_LONGEST_HEADING_LINE: Final = 2000  # characters; a longer line is text
_MOST_HEADING_LINES: Final = 10  # of an HTML heading; of an underlined one half as many


def outline(lines: Iterable[str]) -> Outline:
    """Return the outline of Markdown, whose lines come without their newlines."""
    reader = _Reader()
    headings: list[Heading] = []
    text = 0  # the first line that is not blank and no front matter
    for line in lines:
        found = reader.heading(line)
        if reader.front_lines == reader.number:
            text = 0
        elif not text and line and not line.isspace():
            text = reader.number
        if found is not None:
            headings.append(found)
            if len(headings) == MOST_HEADINGS:
                break
    has_preamble = bool(text) and (not headings or text < headings[0].line)
    return Outline(headings, has_preamble, reader.front_lines, reader.front_title, reader.is_excluded)


class _Reader:
    """Tells headings from other lines, given one line after the other."""

    def __init__(self) -> None:
        self.number = 0
        self.front_lines = 0
        self.front_title = ""
        self.is_excluded = False
        self._front_ends: tuple[str, ...] = ()
        self._in_search = False  # of the front matter
        self._fence: str | None = None
        self._until: str | None = None  # what ends a comment, or verbatim text
        self._html: list[str] = []  # the lines of an HTML heading that has begun
        self._paragraph: list[str] = []  # which an underline would make a heading

    def heading(self, line: str) -> Heading | None:
        """Take the next line; return the heading that it is, or that it ends, if any."""
        self.number += 1
        if self.number == 1:
            self._front_ends = _FRONT_ENDS.get(line.rstrip(), ())
        elif self._front_ends and self._in_front_matter(line):
            return None
        if len(line) > _LONGEST_HEADING_LINE:  # neither heading nor fence, and too long to look at closely
            self._html = []
            self._paragraph = ["", *[""] * _MOST_HEADING_LINES]
            if self._until is None and self._fence is None and _COMMENT.match(line):
                self._until = "-->"
            if self._until is not None and self._until in line.lower():
                self._until = None
            return None
        if self._until is not None:
            if self._until in line.lower():
                self._until = None
            return None
        if self._fence is not None:
            if line.lstrip(" ").startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = None
            return None
        if self._html:
            return self._html_heading(line)
        first = line.lstrip(" \t")[:1]
        if first in ("`", "~", "#", "<", "=", "-", ""):
            return self._marked(line, first)
        self._goes_on(line)
        return None

    def _goes_on(self, line: str) -> None:
        """Take a line as one of the paragraph, whose first lines are kept until they are too many for a heading."""
        if len(self._paragraph) <= _MOST_HEADING_LINES:
            self._paragraph.append(line)

    def _marked(self, line: str, first: str) -> Heading | None:
        """Look at a line that begins with a sign which may mean something, or is blank."""
        paragraph, self._paragraph = self._paragraph, []
        if first in ("`", "~"):
            if (fence := _FENCE.match(line)) is not None:
                self._fence = fence[1]
                return None
        elif first == "#":
            if (mark := _ATX.match(line)) is not None:
                return Heading(self.number, len(mark[1]), _without_closing(line[mark.end() :].strip()))
        elif first == "<":
            if _COMMENT.match(line):
                self._until = None if "-->" in line else "-->"
                return None
            if (verbatim := _VERBATIM.match(line)) is not None:
                ends = f"</{verbatim[1].lower()}"
                self._until = None if ends in line.lower() else ends
                return None
            if _HTML_HEADING.match(line):
                return self._html_heading(line)
        elif first and paragraph and (underline := _UNDERLINE.match(line)) is not None:
            return self._underlined(paragraph, 1 if underline[1][0] == "=" else 2)
        if first:
            self._paragraph = paragraph
            self._goes_on(line)
        return None

    def _underlined(self, paragraph: list[str], level: int) -> Heading | None:
        title = " ".join(map(str.strip, paragraph))
        if len(paragraph) > _MOST_HEADING_LINES // 2 or len(title) > LONGEST_TITLE or _NO_PARAGRAPH.match(paragraph[0]):
            return None
        return Heading(self.number - len(paragraph), level, title, len(paragraph) + 1)

    def _html_heading(self, line: str) -> Heading | None:
        self._html.append(line)
        if not _HTML_HEADING_ENDS.search(line):
            if len(self._html) == _MOST_HEADING_LINES:
                self._html = []
            return None
        lines, self._html = self._html, []
        level = _HTML_HEADING.match(lines[0])
        title = " ".join(html.unescape(_TAG.sub("", "\n".join(lines))).split())
        if level is None or not title:
            return None
        return Heading(self.number - len(lines) + 1, int(level[1]), title[:LONGEST_TITLE], len(lines))

    def _in_front_matter(self, line: str) -> bool:
        """Tell whether a line after the first is front matter; if not, the first was a thematic break."""
        if line.rstrip() in self._front_ends:
            self._front_ends = ()
            self.front_lines = self.number
        elif self.number > _LONGEST_FRONT_MATTER:
            self._front_ends = ()
        elif (self.number == 2 and not line.strip()) or not _FRONT_LINE.match(line):
            self._front_ends = ()
            return False
        else:
            self._note(line[:_LONGEST_HEADING_LINE])
        return True

    def _note(self, line: str) -> None:
        """Note what a line of front matter says of the page."""
        if not self.front_title and (found := _FRONT_TITLE.match(line)):
            self.front_title = found[1].strip().strip("'\"").strip()[:LONGEST_TITLE]
        if (search := _SEARCH.match(line)) is not None:
            self._in_search = True
            self.is_excluded = self.is_excluded or bool(_EXCLUDED.search(search[1] or ""))
        elif line[:1] in (" ", "\t"):
            self.is_excluded = self.is_excluded or (self._in_search and bool(_EXCLUDED.search(line)))
        else:
            self._in_search = False


def _without_closing(title: str) -> str:
    bare = title.rstrip("#")
    if not bare or bare[-1] in " \t":
        title = bare.rstrip()
    return title[:LONGEST_TITLE]
