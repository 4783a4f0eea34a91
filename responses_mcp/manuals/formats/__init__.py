"""Formats: from a file to the text that is served, for each type that `paths.file_type` knows.

What makes documents takes something to call now and then, to learn whether to stop. It raises `Unserved`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import docx, html, json, notebook, pdf
from responses_mcp.manuals.formats.asciidoc import AsciiDoc
from responses_mcp.manuals.formats.document import Document
from responses_mcp.manuals.formats.man import Man
from responses_mcp.manuals.formats.markdown import Markdown, Mdx
from responses_mcp.manuals.formats.org import Org
from responses_mcp.manuals.formats.plain import Plain
from responses_mcp.manuals.formats.rst import Rst

TEXTS: Final[Mapping[str, Callable[[str, CancellationCheck], Document]]] = {
    "md": Markdown.convert,
    "markdown": Markdown.convert,
    "mdx": Mdx.convert,
    "txt": Plain.convert,
    "rst": Rst.convert,
    "adoc": AsciiDoc.convert,
    "org": Org.convert,
    "man": Man.convert,
    "html": html.convert,
    "ipynb": notebook.convert,
    "json": json.convert,
}
"""What makes documents of texts."""

PACKED: Final[Mapping[str, Callable[[bytes, CancellationCheck], Document]]] = {
    "docx": docx.convert,
    "pdf": pdf.convert,  # in a process of its own
}
"""What makes documents of files that are no text."""
