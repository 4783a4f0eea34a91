"""A file as it is served: its text, and where its sections begin. Every format comes down to this."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

MOST_HEADINGS: Final = 100_000
"""Headings of a file; what follows the last of them is its text."""

LONGEST_TITLE: Final = 300
"""Characters of a title."""

TOO_LONG: Final = "takes_too_long"
"""Why a file is not served that is too complex."""

NO_TEXT: Final = "no_text"
"""Why a file is not served that has pictures alone."""

_BLANKS: Final = re.compile(r"[ \t\n]+")


class Unserved(Exception):  # no fault of the program
    """There is nothing to search in a file; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Heading(NamedTuple):
    """The beginning of a section: its 1-based line, its level from 1 on, and its title without marks.

    `lines` counts the lines of the heading itself, which are not text of the section. `above` are the titles above it
    where levels do not tell them.
    """

    line: int
    level: int
    title: str
    lines: int = 1
    above: tuple[str, ...] | None = None


class Place(NamedTuple):
    """A section by its lines: that of its heading, the first one of its text, and the first one behind it.

    `end` is None for the last section. `crumbs` are the titles above it, the outermost first.
    """

    line: int
    text: int
    end: int | None
    title: str
    crumbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """The text that is served of a file, and its headings in order of their lines.

    `front_lines` counts the lines of front matter at the head of the text, `front_title` is its title. With
    `has_preamble` there is text between that and the first heading. `is_excluded`: its author does not want the file to
    be found. `replaced` counts the U+FFFD that stand for bytes without a meaning; `guessed` is an encoding that other
    encodings resemble.
    """

    text: str
    headings: Sequence[Heading]
    has_preamble: bool
    front_lines: int = 0
    front_title: str = ""
    is_excluded: bool = False
    replaced: int = 0
    guessed: str | None = None

    def places(self) -> Iterator[Place]:
        """Yield the sections. Each text belongs to one section only: the one of the heading before it."""
        ends = [*(each.line for each in self.headings), None]
        if self.has_preamble or (self.front_lines and not self.headings):
            yield Place(1, self.front_lines + 1 if self.has_preamble else 1, ends[0], self.front_title, ())
        above: list[Heading] = []
        for heading, end in zip(self.headings, ends[1:], strict=True):
            while above and above[-1].level >= heading.level:
                above.pop()
            crumbs = tuple(each.title for each in above) if heading.above is None else heading.above
            yield Place(heading.line, heading.line + heading.lines, end, heading.title, crumbs)
            above.append(heading)


class Page:
    """A document that a format writes line by line. What stands before the first heading is named by `title`."""

    def __init__(self) -> None:
        self.title = ""
        self.lines: list[str] = []
        self.front_lines = 0
        self.is_excluded = False
        self._headings: list[Heading] = []

    def heading(self, level: int, title: str, *, lines: int = 0) -> None:
        """Begin a section with a line that has its title, or with the last `lines` written. No title, no heading."""
        shown = _BLANKS.sub(" ", title).strip()[:LONGEST_TITLE]
        if not lines:
            self.lines.append(shown)
        if shown and len(self._headings) < MOST_HEADINGS:
            lines = lines or 1
            self._headings.append(Heading(len(self.lines) - lines + 1, level, shown, lines))

    def document(self) -> Document:
        """Return it as it is now."""
        first = self._headings[0].line - 1 if self._headings else len(self.lines)
        has_preamble = any(map(str.strip, islice(self.lines, self.front_lines, first)))
        text = "\n".join(self.lines)
        return Document(text, self._headings, has_preamble, self.front_lines, self.title, self.is_excluded)
