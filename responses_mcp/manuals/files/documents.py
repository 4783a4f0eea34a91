"""From the bytes of a file to the document that is searched; the same that is read page by page."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Hashable
from typing import BinaryIO, Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.files.texts import ENOUGH_OF_A_LINE, encoding_of, spans
from responses_mcp.manuals.formats import CONVERTERS, PACKED, PLAIN
from responses_mcp.manuals.formats.document import Document, Unserved, checked_lines
from responses_mcp.manuals.requests.paths import file_type

NOT_TEXT: Final = "not_text"

_SIZE: Final = 256 * 1024  # bytes read at once
_MOST_KEPT: Final = 4 * 1024 * 1024  # characters of documents that are read page by page


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
    if kind in PACKED:
        return PACKED[kind](content, check)
    source = io.BytesIO(content)
    encoding = encoding_of(source, check)
    if encoding is None:
        raise Unserved(NOT_TEXT)
    text = "".join(span.text for span in spans(source, check, encoding=encoding))
    if kind not in CONVERTERS:
        return Document(text, PLAIN[kind](line[:ENOUGH_OF_A_LINE] for line in checked_lines(text, check)))
    return CONVERTERS[kind](text, check)


class Documents:
    """The documents that were made last of files that are not served as they are; threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Document] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Document]) -> Document:
        """Return the document of a state of a file, made unless it is kept."""
        with self._lock:
            found = self._kept.pop(key, None)
        document = make() if found is None else found
        with self._lock:
            self._kept[key] = document
            while len(self._kept) > 1 and sum(len(each.text) for each in self._kept.values()) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return document
