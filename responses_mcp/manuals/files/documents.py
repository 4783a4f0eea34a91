"""From the bytes of a file to the document that is searched; the same that is read page by page."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import BinaryIO, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.files.texts import ENOUGH_OF_A_LINE, encoding_of, spans
from responses_mcp.manuals.formats import CONVERTERS, PLAIN
from responses_mcp.manuals.formats.document import Document, lines_of
from responses_mcp.manuals.requests.paths import file_type

NOT_TEXT: Final = "not_text"

_SIZE: Final = 256 * 1024  # bytes read at once
_LINES_BETWEEN_CHECKS: Final = 4096


class Unserved(Exception):  # no fault of the program
    """There is nothing to search in a file; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def content_of(handle: BinaryIO, most: int, check: CancellationCheck) -> bytes:
    """Read a file to its end, or to so many bytes."""
    pieces: list[bytes] = []
    left = most
    while left > 0 and (piece := handle.read(min(_SIZE, left))):
        check()
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def document_of(path: str, content: bytes, check: CancellationCheck) -> Document:
    """Return what is served of a file. Raises `Unserved`."""
    kind = file_type(path) or "md"
    source = io.BytesIO(content)
    encoding = encoding_of(source, check)
    if encoding is None:
        raise Unserved(NOT_TEXT)
    text = "".join(span.text for span in spans(source, check, encoding=encoding))
    if kind in PLAIN:
        return Document(text, PLAIN[kind](_checked(text, check)))
    return CONVERTERS[kind](text)


def _checked(text: str, check: CancellationCheck) -> Iterator[str]:
    for number, line in enumerate(_short(lines_of(text))):
        if not number % _LINES_BETWEEN_CHECKS:
            check()
        yield line


def _short(lines: Iterable[str]) -> Iterator[str]:
    return (line[:ENOUGH_OF_A_LINE] for line in lines)
