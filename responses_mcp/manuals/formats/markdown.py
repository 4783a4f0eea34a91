"""Markdown: headings with `#`, underlined ones, and those of HTML. MDX is the same without its JavaScript.

Lines in code fences, in HTML comments, in `<pre>` and the like, and in the front matter at the head of the file (YAML
between `---`, TOML between `+++`) are no headings. Text before the first heading is a section too, the preamble, named
by the front matter's `title`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import LONGEST_TITLE
from responses_mcp.manuals.formats.markup import Markup

_MARKS: Final = (
    r"(?P<blank>\s*$)| {0,3}(?:(?P<heading>#{1,6}(?:[ \t]|$))|(?P<fence>`{3,}(?=[^`]*$)|~{3,})|(?P<comment><!--)"
    r"|(?P<underline>(?:=+|-{2,})[ \t]*$)|(?P<verbatim><(?i:pre|script|style|textarea)(?=[\s>]))"
    r"|(?P<html><(?i:h)[1-6](?:\s[^>]*)?>))"
)
_TAG: Final = re.compile(r"<[^<>]*>")
_HEADING_ENDS: Final = re.compile(r"</h[1-6]\s*>", re.IGNORECASE)
_FRONT_ENDS: Final = {"---": ("---", "..."), "+++": ("+++",)}  # YAML and TOML, by their first line
_FRONT_LINE: Final = re.compile(r"[ \t#\[\]{}-]|[^:=]{1,80}[:=](?!/)|\s*$")
_FRONT_TITLE: Final = re.compile(r"^title[ \t]*[:=][ \t]*(?![ \t|>])(.*)", re.IGNORECASE | re.MULTILINE)
_EXCLUDED: Final = re.compile(
    r"^search:[ \t]*(?:\{[^{}\n]*\bexclude:[ \t]*true\b|$(?:\n[ \t].*)*?\n[ \t]+exclude:[ \t]*true\b)", re.MULTILINE
)
_LONGEST_FRONT: Final = 200  # lines; after that the first line was a thematic break
_MOST_HEADING_LINES: Final = 10  # of HTML
_CODE: Final = r"(?P<code>(?:import|export)\s+[\w{*'\"])"
_COMMENT: Final = re.compile(r"\{/\*(?:[^*]|\*(?!/\}))*+(\*/\})?")  # or to the end of the line
_MARKDOWN: Final = re.compile(_MARKS)
_TITLE: Final = re.compile(r"(?! {4}|\t| {0,3}(?:[>|<]|[-+*][ \t]|\d{1,9}[.)][ \t]|[-=*_#]+[ \t]*$))")


class Markdown(Markup):
    """Markdown, which is served as it is."""

    _match = staticmethod(_MARKDOWN.match)
    _is_title = staticmethod(_TITLE.match)

    def __init__(self, text: str, check: CancellationCheck) -> None:
        super().__init__(text, check)
        front = _front_lines(self.lines[:_LONGEST_FRONT])
        if front:
            written = "\n".join(self.lines[:front])
            title = _FRONT_TITLE.search(written)
            self.page.title = title[1].strip().strip("'\"").strip()[:LONGEST_TITLE] if title else ""
            self.page.front_lines = front
            self.page.is_excluded = _EXCLUDED.search(written) is not None
            self.take(lambda _: len(self.page.lines) == front - 1, shown=True, end_shown=True)

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        self._text(line)
        if kind == "blank":  # as every other one
            return
        take = partial(self.take, shown=True, end_shown=True)
        match kind:
            case "heading":
                title = line[found.end() :].strip()
                bare = title.rstrip("#")
                self.page.heading(found[kind].count("#"), title if bare[-1:].strip() else bare, lines=1)
            case "underline":
                self.page.heading(1 if line.lstrip()[0] == "=" else 2, self.title_above(line), lines=2)
            case "fence":
                mark = found[kind]
                take(lambda each: mark in each and each.lstrip().startswith(mark) and not each.strip().strip(mark[0]))
            case "comment" if "-->" not in line:
                take(lambda each: "-->" in each)
            case "verbatim" if (end := f"</{found[kind][1:].lower()}") not in line.lower():
                take(lambda each: end in each.lower())
            case "html":
                self._html_heading(line, int(found[kind][2]))
            case _:
                pass

    def _html_heading(self, line: str, level: int) -> None:
        """Read a heading of HTML, which may go over several lines."""
        written = line
        for more in range(_MOST_HEADING_LINES):
            if _HEADING_ENDS.search(written):
                self.page.lines += self.lines[self.at + 1 : self.at + more + 1]
                self.page.heading(level, html.unescape(_TAG.sub("", written)), lines=more + 1)
                self.skip(more)
                return
            written += f"\n{self.line_at(more + 1)}"


def _front_lines(lines: Sequence[str]) -> int:
    """Return how many lines of front matter there are."""
    ends = _FRONT_ENDS.get(lines[0].rstrip())
    if ends is None or not "".join(lines[1:2]).strip():
        return 0
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() in ends:
            return number
        if not _FRONT_LINE.match(line):
            break
    return 0


_MDX: Final = re.compile(rf"{_CODE}|{_MARKS}")


class Mdx(Markdown):
    """MDX: imports, exports and comments of JavaScript are left out, line by line."""

    _match = staticmethod(_MDX.match)

    def _text(self, line: str) -> None:
        if "{/*" in line:
            if not all(comment[1] for comment in _COMMENT.finditer(line)):
                self.take(lambda each: "*/}" in each, shown=False)
            line = _COMMENT.sub("", line)
        self.page.lines.append(line)

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        if kind == "code":
            self.page.lines.append("")
            self.hide(str.strip)
        else:
            super()._marked(kind, line, found)
