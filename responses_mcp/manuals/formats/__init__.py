"""Formats: from the text of a file to what is served of it, for each type that `paths.file_type` knows.

Files of `PLAIN` types can be served as they are, whatever their size, and need an outline alone. `CONVERTERS` take the
text of others, and `PACKED` the bytes of files that are no text. Both take what they call now and then to learn whether
to stop. JSON is in two of them: it is converted unless it is too large. A PDF is in none: `pdf.Reading` reads it apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import asciidoc, docx, html, json, man, markdown, mdx, notebook, org, plain, rst
from responses_mcp.manuals.formats.document import Document, Outline

PLAIN: Final[Mapping[str, Callable[[Iterable[str]], Outline]]] = {
    "md": markdown.outline,
    "markdown": markdown.outline,
    "json": json.outline,
    "txt": plain.outline,
}
"""The outlines of what is served as it is, from its lines without their newlines."""

CONVERTERS: Final[Mapping[str, Callable[[str, CancellationCheck], Document]]] = {
    "json": json.convert,
    "mdx": mdx.convert,
    "rst": rst.convert,
    "adoc": asciidoc.convert,
    "org": org.convert,
    "html": html.convert,
    "ipynb": notebook.convert,
    "man": man.convert,
}
"""What makes documents of the texts of other files. They raise `Unserved`."""

PACKED: Final[Mapping[str, Callable[[bytes, CancellationCheck], Document]]] = {"docx": docx.convert}
"""What makes documents of files that are no text. They raise `Unserved`."""
