"""How formats of marked lines are read: one line after the other, into a page of as many lines.

A format is a class with the pattern of the lines that are more than text, and what each kind of them means.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import LONGEST_TITLE, Document, Page

ADORNMENT: Final = r"(?P<mark>[!-/:-@\[-`{-~])(?P=mark)+[ \t]*$"
"""A line of one sign, as below or above titles."""


class Markup(ABC):
    """Reads one text. `lines` are all of it, and `at` is the one that is being read.

    `_match` fits lines that are more than text; the name of its group is their kind. `_is_title` fits lines that may be
    underlined. `paragraph` counts the lines of text since the last line of another kind.
    """

    _match: ClassVar[Callable[..., re.Match[str] | None]]
    _is_title: ClassVar[Callable[..., re.Match[str] | None]]

    def __init__(self, text: str, check: CancellationCheck) -> None:
        self.page = Page()
        self.lines = text.split("\n")
        self.at = 0
        self.paragraph = 0
        self._check = check
        self._block: Callable[[str], bool] | None = None
        self._hidden_from: tuple[int, int] | None = None  # the line of the page, and of the text
        self._levels: dict[tuple[str, bool], int] = {}

    @classmethod
    def convert(cls, text: str, check: CancellationCheck) -> Document:
        """Return the document of a text."""
        return cls(text, check).read()

    def read(self) -> Document:
        """Return the document."""
        match, write = self._match, self._text
        for at, line in enumerate(self.lines):
            if not at % 1024:
                self._check()
            if self._block is not None and self._block(line):
                continue
            self.at = at
            found = match(line)
            if found is None:
                self.paragraph += 1
                write(line)
            else:
                self._marked(found.lastgroup or "", line, found)
                self.paragraph = 0
        if self._hidden_from is not None:  # a mark that nothing closes hides nothing
            first, at = self._hidden_from
            self.page.lines[first:] = self.lines[at:]
        return self.page.document()

    def _text(self, line: str) -> None:
        """Write a line of text."""
        self.page.lines.append(line)

    @abstractmethod
    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        """Write a line of a kind that `_match` knows."""

    def line_at(self, offset: int) -> str:
        """Return a line so many behind the one that is read, "" where there is none."""
        at = self.at + offset
        return self.lines[at] if 0 <= at < len(self.lines) else ""

    def take(self, ends: Callable[[str], object], *, shown: bool, end_shown: bool = False) -> None:
        """Show, or hide, the next lines to the one that ends them."""

        def take(line: str) -> bool:
            is_last = bool(ends(line))
            if is_last:
                self._block = self._hidden_from = None
            self.page.lines.append(line if (end_shown if is_last else shown) else "")
            return True

        self._block = take
        if not shown:
            self._hidden_from = len(self.page.lines), self.at + 1

    def hide(self, goes_on: Callable[[str], object]) -> None:
        """Hide the next lines, to the first one with which it does not go on."""

        def take(line: str) -> bool:
            if not goes_on(line):
                return self._end()
            self.page.lines.append("")
            return True

        self._block = take

    def skip(self, count: int) -> None:
        """Leave out the next lines, which are written already."""
        left = iter(range(count))
        self._block = lambda _: next(left, None) is not None or self._end()

    def _end(self) -> bool:
        self._block = None
        return False

    def title_above(self, line: str) -> str:
        """Return the title that the line which is read underlines, "" if it underlines none."""
        title, above = self.line_at(-1), self.line_at(-2).rstrip()
        over = above == line.rstrip()
        if self.paragraph != 1 or len(title) > LONGEST_TITLE or not (over or self._is_title(title)):
            return ""
        return title.strip()

    def level_of(self, line: str) -> int:
        """Return the level of titles underlined like this, by the order in which such lines come."""
        over = self.line_at(-2).rstrip() == line.rstrip()
        return self._levels.setdefault((line[0], over), len(self._levels) + 1)
