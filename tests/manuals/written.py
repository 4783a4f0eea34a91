"""Markdown in tests: its headings and sections, from its lines."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.formats.document import Heading
from responses_mcp.manuals.formats.markdown import Markdown


class Section(NamedTuple):
    """A section with its text, without the lines of its heading."""

    line: int
    title: str
    crumbs: tuple[str, ...]
    text: str


def headings(lines: Iterable[str]) -> Sequence[Heading]:
    """Return the headings among lines without their newlines."""
    return Markdown.convert("\n".join(lines), unchecked).headings


def sections(lines: Iterable[str]) -> Iterator[Section]:
    """Yield the sections of a file. Front matter counts for the first one."""
    lines = list(lines)
    document = Markdown.convert("\n".join(lines), unchecked)
    front = lines[: document.front_lines]
    for place in document.places():
        end = len(lines) if place.end is None else place.end - 1
        text = lines[max(place.text - 1, len(front)) : end]
        yield Section(place.line, place.title, place.crumbs, "\n".join((*front, *text)))
        front = []
