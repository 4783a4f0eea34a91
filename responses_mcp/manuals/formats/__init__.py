"""Formats: from the text of a file to what is served of it.

`CONVERTERS` has a function for each type of file (see `paths.file_type`). It takes the text and returns a `Document`.
Types without one are served as they are: `PLAIN` has what finds their outlines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from responses_mcp.manuals.formats import markdown
from responses_mcp.manuals.formats.document import Document, Outline, outline_of


def _without_headings(lines: Iterable[str]) -> Outline:
    return outline_of([], lines)


PLAIN: Final[Mapping[str, Callable[[Iterable[str]], Outline]]] = {
    "md": markdown.outline,
    "markdown": markdown.outline,
    "json": _without_headings,
}
"""The outlines of what is served as it is, from its lines without their newlines."""

CONVERTERS: Final[Mapping[str, Callable[[str], Document]]] = {}
"""What makes documents of the texts of other files."""
