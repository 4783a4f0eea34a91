"""Formats: from the text of a file to what is served of it, for each type that `paths.file_type` knows.

Files of `PLAIN` types are served as they are, whatever their size, and need an outline alone. `CONVERTERS` have a
function for each other type. It takes the text, and what it calls now and then to learn whether to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import asciidoc, html, man, markdown, mdx, notebook, org, plain, rst
from responses_mcp.manuals.formats.document import Document, Outline, outline_of


def _without_headings(lines: Iterable[str]) -> Outline:
    return outline_of([], lines)


PLAIN: Final[Mapping[str, Callable[[Iterable[str]], Outline]]] = {
    "md": markdown.outline,
    "markdown": markdown.outline,
    "json": _without_headings,
    "txt": plain.outline,
}
"""The outlines of what is served as it is, from its lines without their newlines."""

CONVERTERS: Final[Mapping[str, Callable[[str, CancellationCheck], Document]]] = {
    "mdx": mdx.convert,
    "rst": rst.convert,
    "adoc": asciidoc.convert,
    "org": org.convert,
    "html": html.convert,
    "ipynb": notebook.convert,
    "man": man.convert,
}
"""What makes documents of the texts of other files. They raise `Unserved`."""
