"""From the bytes of a file to the document that is searched; the same that is read page by page."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Callable, Hashable
from typing import BinaryIO, Final

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.texts import ENOUGH_OF_A_LINE, encoding_of, spans
from responses_mcp.manuals.formats import CONVERTERS, PACKED, PLAIN, pdf
from responses_mcp.manuals.formats.document import TOO_LONG, Document, Unserved, checked_lines
from responses_mcp.manuals.requests.paths import file_type

NOT_TEXT: Final = "not_text"
NO_READER: Final = "reader_does_not_start"
SECONDS: Final = 10.0
"""Of a processor, which a file may take that no process of its own reads."""

_SIZE: Final = 256 * 1024  # bytes read at once
_MOST_KEPT: Final = 4 * 1024 * 1024  # characters of documents that are read page by page
_LEAST_SIZE: Final = 1000  # characters for which each of them counts
_MOST_BEGUN: Final = 4  # files that are read on while no request waits for them


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
    kind, check = file_type(path) or "md", _bounded(check)
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


def _bounded(check: CancellationCheck) -> CancellationCheck:
    """Return a check that raises `Unserved`, too, when a file takes too long."""
    until = time.thread_time() + SECONDS

    def bounded() -> None:
        check()
        if time.thread_time() > until:
            raise Unserved(TOO_LONG)

    return bounded


def is_read_apart(path: str) -> bool:
    """Tell whether a process of its own reads a file, which may take long."""
    return file_type(path) == "pdf"


class Documents:
    """The documents that were made last of files that are not served as they are; threads may share it.

    What a process of its own reads goes on when a request has no more time, and the next request takes it over.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, Document | Unserved] = {}
        self._begun: dict[bytes, pdf.Reading] = {}
        self._lock = threading.Lock()

    def of(self, path: str, content: bytes, check: CancellationCheck) -> Document:
        """Return what is served of a file. Raises `Unserved`."""
        if not is_read_apart(path):
            return document_of(path, content, check)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        return self.get(digest, lambda: self._read_apart(digest, content, check))

    def get(self, key: Hashable, make: Callable[[], Document]) -> Document:
        """Return the document of a state of a file, made unless it is kept. Raises `Unserved`, again if it is kept."""
        with self._lock:
            found = self._kept.pop(key, None)
        if found is None:
            try:
                found = make()
            except Unserved as nothing:
                found = nothing
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > 1 and sum(map(_size_of, self._kept.values())) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        if isinstance(found, Unserved):
            raise Unserved(found.reason)
        return found

    def end(self) -> None:
        """End the processes that still read."""
        while self._begun:
            self._begun.popitem()[1].end()

    def _read_apart(self, digest: bytes, content: bytes, check: CancellationCheck) -> Document:
        with self._lock:
            reading = self._begun.pop(digest, None)
        try:
            reading = pdf.Reading(content) if reading is None else reading
        except OSError as error:
            if shortage := exhausted(error):
                raise ManualsError("conflict", shortage) from error
            raise Unserved(NO_READER) from error
        try:
            return reading.document(check)
        except OutOfTime:
            with self._lock:
                kept = len(self._begun) < _MOST_BEGUN and self._begun.setdefault(digest, reading) is reading
            if not kept:
                reading.end()
            raise
        except Unserved:
            raise
        except BaseException:
            reading.end()
            raise


def _size_of(kept: Document | Unserved) -> int:
    return _LEAST_SIZE + (len(kept.text) if isinstance(kept, Document) else 0)
