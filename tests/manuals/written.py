"""Markdown in tests: its headings and sections, from its lines."""

from collections.abc import Iterable, Iterator, Sequence

from responses_mcp.manuals.formats import document, markdown
from responses_mcp.manuals.formats.document import Heading, Section


def headings(lines: Iterable[str]) -> Sequence[Heading]:
    """Return the headings among lines without their newlines."""
    return markdown.outline(lines).headings


def sections(lines: Iterable[str]) -> Iterator[Section]:
    """Yield the sections of a file."""
    lines = list(lines)
    return document.sections(lines, markdown.outline(lines))
