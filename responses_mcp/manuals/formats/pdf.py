"""PDF, with the extra `documents`: each page is a section, under the bookmarks that lead to it or to pages before it.

A process of its own reads the file (`pdf_child`), which ends by itself after `SECONDS`.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import Any, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import pdf_child
from responses_mcp.manuals.formats.document import LONGEST_TITLE, NO_TEXT, TOO_LONG, Document, Heading, Unserved

SECONDS: Final = 30.0
"""What a file may take."""

_POLL: Final = 0.02  # seconds of waiting between two checks
_ENVIRONMENT: Final = ("SYSTEMROOT", "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # and no key
_LIBRARY: Final = "pypdfium2"
_REASONS: Final = {pdf_child.OUT_OF_TIME: TOO_LONG, pdf_child.OUT_OF_MEMORY: "takes_too_much_memory"}


@cache
def folder_of_library() -> str | None:
    """Return the folder from which the library can be imported; None where it, or a Python to run, is missing."""
    name = Path(sys.executable or "").stem.lower()  # in a host it may be another program
    found = find_spec(_LIBRARY) if name.startswith(("python", "pypy")) else None
    return None if found is None or found.origin is None else str(Path(found.origin).parent.parent)


def convert(content: bytes, check: CancellationCheck) -> Document:
    """Return the text of a PDF; what `check` raises ends its process. Raises `Unserved`, and OSError without one.

    Files without a name lead to the process and back, because a pipe would have to be filled and emptied all the time.
    """
    # Without what a user's environment adds, and without the folder of the script, whose `json` is ours.
    command = [sys.executable, "-I", "-S", str(pdf_child.__file__), folder_of_library() or "", str(SECONDS)]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with TemporaryFile() as given, TemporaryFile() as told:
        given.write(content)
        given.seek(0)
        with Popen(command, stdin=given, stdout=told, stderr=DEVNULL, env=environment) as child:  # noqa: S603  # our own
            try:
                code = _end_of(child, check)
            finally:
                child.kill()
        if code:
            raise Unserved(_REASONS.get(code, "damaged_or_too_complex"))
        told.seek(0)
        return _document(json.load(told))


def _end_of(child: Popen[bytes], check: CancellationCheck) -> int:
    while True:
        try:
            return child.wait(_POLL)
        except TimeoutExpired:
            check()


def _document(told: dict[str, Any]) -> Document:
    if "reason" in told:
        raise Unserved(told["reason"])
    texts = ["\n".join(map(str.rstrip, text.splitlines())).strip("\n") for text in told["pages"]]
    if not any(map(str.strip, texts)):
        raise Unserved(NO_TEXT)
    marks: dict[int, list[tuple[int, str]]] = {}
    for level, title, page in told["marks"]:
        marks.setdefault(page, []).append((level, " ".join(title.split())[:LONGEST_TITLE]))
    chain: list[tuple[int, str]] = []  # the bookmarks that a page is under
    headings: list[Heading] = []
    lines: list[str] = []
    for number, text in enumerate(texts):
        found, page = marks.get(number, []), f"Page {number + 1}"
        above = [each for level, each in chain if not found or level < found[0][0]]
        for level, title in found:
            chain = [*(each for each in chain if each[0] < level), (level, title)]
        title = " · ".join(each for _, each in found)[:LONGEST_TITLE]
        headings.append(Heading(len(lines) + 1, 1, title or page, 1, (*above, page) if title else tuple(above)))
        lines += [page, *text.split("\n"), ""]
    return Document("\n".join(lines), headings, has_preamble=False)
