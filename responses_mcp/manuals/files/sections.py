"""A Markdown file as headings and as flat sections: each text belongs to one section only.

Headings are ATX headings (`# …` to `###### …`). Lines in code fences, and in the front matter at the head of the file
(YAML between `---`, TOML between `+++`), are none. A section runs to the next heading, whatever its level. Text before
the first heading is a section too, the preamble: it starts at line 1 and is named by the front matter's `title`. Front
matter is no section: its text counts for the first one that there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

LEADS: Final = frozenset(" #`~")
"""What begins the lines that decide where headings are, once there was one."""
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_ATX: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_FRONT_ENDS: Final = {"---": ("---", "..."), "+++": ("+++",)}  # YAML and TOML, by their first line
_FRONT_LINE: Final = re.compile(r"[ \t#\[\]{}-]|[^:=]{1,80}[:=](?:\s|$)|\s*$")
_FRONT_TITLE: Final = re.compile(r"title[ \t]*[:=][ \t]*(?![ \t|>])(.*)", re.IGNORECASE)
_LONGEST_FRONT_MATTER: Final = 200  # lines; after that the first line was a thematic break
_LONGEST_TITLE: Final = 300  # characters
_LONGEST_HEADING_LINE: Final = 2000  # characters; a longer line is text


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading: its 1-based line, its level from 1 to 6, and its text without marks."""

    line: int
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the text up to the next one.

    `line` is 1-based. `crumbs` are the titles of the headings above it, the outermost first. `text` is without the
    heading's own line, its lines joined by newlines.
    """

    line: int
    title: str
    crumbs: tuple[str, ...]
    text: str


class Outline:
    """Tells headings from other lines, given one line after the other.

    `front_lines` counts the lines of the front matter, from the one on that ends it; `front_title` is its `title`.
    """

    def __init__(self) -> None:
        self._number = 0
        self._fence: str | None = None
        self._front_ends: tuple[str, ...] = ()
        self.front_lines = 0
        self.front_title = ""

    @property
    def undecided(self) -> bool:
        """Tell whether the lines so far may be front matter that has not ended yet."""
        return bool(self._front_ends)

    def heading(self, line: str, number: int | None = None) -> Heading | None:
        """Take the next line; return the heading that it is, if any.

        With a `number`, lines before it may have been left out that come after a heading and begin with none of LEADS.
        """
        self._number = self._number + 1 if number is None else number
        if self._number == 1:
            self._front_ends = _FRONT_ENDS.get(line.rstrip(), ())
        elif self._front_ends and self._in_front_matter(line):
            return None
        if len(line) > _LONGEST_HEADING_LINE:  # neither heading nor fence, and too long to look at closely
            return None
        if self._fence is not None:
            if line.lstrip(" ").startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = None
            return None
        stripped = line[:4].lstrip(" ")
        if stripped[:1] in ("`", "~"):
            fence = _FENCE.match(line)
            if fence is not None:
                self._fence = fence[1]
            return None
        if stripped[:1] != "#":
            return None
        mark = _ATX.match(line)
        if mark is None:
            return None
        title = line[mark.end() :].strip()
        bare = title.rstrip("#")
        if not bare or bare[-1] in " \t":
            title = bare.rstrip()
        return Heading(self._number, len(mark[1]), title[:_LONGEST_TITLE])

    def _in_front_matter(self, line: str) -> bool:
        """Tell whether a line after the first is front matter; if not, the first was a thematic break."""
        if line.rstrip() in self._front_ends:
            self._front_ends = ()
            self.front_lines = self._number
        elif self._number > _LONGEST_FRONT_MATTER:
            self._front_ends = ()
        elif (self._number == 2 and not line.strip()) or not _FRONT_LINE.match(line):
            self._front_ends = ()
            return False
        elif not self.front_title and (found := _FRONT_TITLE.match(line[:_LONGEST_HEADING_LINE])):
            self.front_title = found[1].strip().strip("'\"").strip()[:_LONGEST_TITLE]
        return True


def headings(lines: Iterable[str]) -> Iterator[Heading]:
    """Yield the headings among `lines`, which come without their newlines."""
    outline = Outline()
    for line in lines:
        found = outline.heading(line)
        if found is not None:
            yield found


def sections(lines: Iterable[str]) -> Iterator[Section]:
    """Yield the sections of a file, in order; `lines` come without their newlines."""
    outline = Outline()
    current = Heading(1, 0, "")
    above: list[Heading] = []
    front: list[str] = []  # until the first section takes it
    gathered: list[str] = []
    blank = True  # as far as it is gathered

    def section() -> Section:
        nonlocal front
        title = current.title if current.level else outline.front_title
        crumbs = tuple(each.title for each in above)
        text = "\n".join((*front, *gathered))
        front = []
        return Section(current.line, title, crumbs, text)

    for line in lines:
        found = outline.heading(line)
        if found is None:
            gathered.append(line)
            blank = blank and (not line or line.isspace())
            if outline.front_lines and not front and not current.level and len(gathered) == outline.front_lines:
                front, gathered, blank = gathered, [], True
        else:
            if current.level:
                yield section()
                above.append(current)
            elif not blank:
                yield section()
            while above and above[-1].level >= found.level:
                above.pop()
            current, gathered = found, []
    if current.level or front or not blank:
        yield section()
