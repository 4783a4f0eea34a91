"""The vectors on disk: one SQLite file beside the index, for a folder of manuals and a model.

A vector belongs to a text, whichever section has it. So it stays when the index is made anew, and when a file goes,
comes back or has another name; nothing is paid for twice. It is one byte a number and one factor for all of them, which
costs less than .001 of a cosine.
"""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import struct
from array import array
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import mul
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.errors import program
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.index.store import Layout, Store, Unusable, is_broken

_LAYOUT: Final = Layout(1, {"vector": "CREATE TABLE vector (text INTEGER PRIMARY KEY, data BLOB NOT NULL)"})
_FACTOR: Final = struct.Struct("<f")
_MOST: Final = 127


def vectors_path(folder: Path, root: Path, model: str) -> Path:
    """Return the place of the vectors that a model made for the manuals in `root`."""
    names = (hashlib.sha256(each).hexdigest() for each in (os.fsencode(root), model.encode()))
    return folder / "{:.24}.{:.12}.vectors".format(*names)


class Vector(NamedTuple):
    """A vector as it is compared: whole numbers from -127 to 127, and what each counts."""

    numbers: Sequence[int]
    factor: float

    def cosine(self, other: Vector) -> float:
        """Return how alike another vector of this length is."""
        product: int = sum(map(mul, self.numbers, other.numbers))
        return product * self.factor * other.factor


def unpacked(data: bytes) -> Vector:
    """Return a packed vector as it is compared."""
    return Vector(memoryview(data)[_FACTOR.size :].cast("b"), _FACTOR.unpack_from(data)[0])


def question(vector: Sequence[float]) -> Vector:
    """Return a question's vector, which is compared with many."""
    made = unpacked(packed(vector))
    return made._replace(numbers=list(made.numbers))


def packed(vector: Sequence[float]) -> bytes:
    """Return a vector of finite numbers as bytes, made one of length 1; one of zeros stays so."""
    peak = max(map(abs, vector))
    if not peak:
        return bytes(_FACTOR.size + len(vector))
    # Divided first: the squares of large numbers may be too large, those of small ones nothing.
    length = math.hypot(*(each / peak for each in vector))
    numbers = array("b", [round(each / peak * _MOST) for each in vector])
    return _FACTOR.pack(1 / length / _MOST) + numbers.tobytes()


def _key(text: str) -> int:
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


class Vectors:
    """The vectors of a model, in a file or, where `path` is None, in memory. For threads.

    All methods raise `EmbeddingFailed` where the file cannot be used, and what `check` raises.
    """

    def __init__(self, path: Path | None) -> None:
        self._store = Store(path, _LAYOUT)

    def of(self, texts: Iterable[str], check: CancellationCheck, numbers: int = 0) -> dict[str, bytes]:
        """Return the packed vectors of those texts that have one.

        Raises `EmbeddingFailed` also where so many `numbers` are wanted and vectors have another length.
        """
        keys = {_key(text): text for text in texts}
        with self._usable(), self._store.reading(check) as connection:
            if numbers:
                _require_length(connection, numbers)
            wanted = ",".join(map(str, keys))
            found = connection.execute(f"SELECT text, data FROM vector WHERE text IN ({wanted})")  # noqa: S608  # numbers
            return {keys[key]: data for key, data in found}

    def keep(self, vectors: Mapping[str, Sequence[float]], check: CancellationCheck) -> None:
        """Write the vectors of texts in one transaction.

        Raises `EmbeddingFailed` also where those that are there, which were paid for, have another length.
        """
        with self._usable(), self._store.writing(check) as connection:
            for vector in vectors.values():
                _require_length(connection, len(vector))
            rows = [(_key(text), packed(vector)) for text, vector in vectors.items()]
            connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    @contextmanager
    def _usable(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, Unusable) as error:
            if is_broken(error):
                with suppress(Unusable):
                    self._store.discard()
            raise EmbeddingFailed(
                f"The vectors cannot be kept ({error}); make room, or set manuals.index_dir to a folder that can be "
                "written to."
            ) from error


def _require_length(connection: sqlite3.Connection, numbers: int) -> None:
    row = connection.execute("SELECT length(data) FROM vector LIMIT 1").fetchone()
    if row is not None and row[0] - _FACTOR.size != numbers:
        raise EmbeddingFailed(
            f"The model gives vectors of {numbers} numbers, but the index has some of {row[0] - _FACTOR.size}; run "
            f"'{program()} manuals index --forget', and then '{program()} manuals index --embed'."
        )
