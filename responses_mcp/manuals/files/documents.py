"""From a file to the document that is searched; the same that is read page by page."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import BinaryIO, Final

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.texts import decode
from responses_mcp.manuals.formats import PACKED, TEXTS
from responses_mcp.manuals.formats.document import TOO_LONG, Document, Unserved
from responses_mcp.manuals.requests.paths import file_type

NO_READER: Final = "reader_does_not_start"
SECONDS: Final = 10.0
"""Of a processor, which a file may take that no process of its own reads."""

_SIZE: Final = 256 * 1024  # bytes read at once
_MOST_KEPT: Final = 4 * 1024 * 1024  # characters of documents that are read page by page
_LEAST_SIZE: Final = 1000  # characters for which each of them counts


def content_of(handle: BinaryIO, most: int, check: CancellationCheck) -> bytes:
    """Read a file to its end, or to so many bytes. Raises `conflict` when that fails."""
    pieces: list[bytes] = []
    left = most
    try:
        while left > 0 and (piece := handle.read(min(_SIZE, left))):
            check()
            pieces.append(piece)
            left -= len(piece)
    except OSError as error:
        why = error.strerror or "input error"
        message = f"'{handle.name}' could not be read to its end ({why}); check the disk, then ask again."
        raise ManualsError("conflict", exhausted(error) or message) from error
    return b"".join(pieces)


def document_of(path: str, content: bytes, check: CancellationCheck) -> Document:
    """Return what is served of a file. Raises `Unserved`."""
    kind, check = file_type(path) or "md", _bounded(check)
    if kind in PACKED:
        try:
            return PACKED[kind](content, check)
        except OSError as error:
            if shortage := exhausted(error):
                raise ManualsError("conflict", shortage) from error
            raise Unserved(NO_READER) from error
    text, replaced, guessed = decode(content)
    document = TEXTS[kind](text, check)
    return replace(document, replaced=replaced, guessed=guessed) if replaced or guessed else document


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
    """The documents that were made last, and why others are none; threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, Document | Unserved] = {}
        self._lock = threading.Lock()

    def of(self, path: str, content: bytes, check: CancellationCheck) -> Document:
        """Return what is served of a file, kept if a process of its own has read it. Raises `Unserved`."""
        if not is_read_apart(path):
            return document_of(path, content, check)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        return self.get(digest, lambda: document_of(path, content, check))

    def get(self, key: Hashable, make: Callable[[], Document]) -> Document:
        """Return the document of a key, made unless it is kept. Raises `Unserved`, again if that is kept."""
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


def _size_of(kept: Document | Unserved) -> int:
    return _LEAST_SIZE + (len(kept.text) if isinstance(kept, Document) else 0)
