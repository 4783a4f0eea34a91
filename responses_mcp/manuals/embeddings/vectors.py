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
import time
from array import array
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from operator import mul
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.errors import program
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.index.pieces import MOST_PIECES, PIECE, pieces
from responses_mcp.manuals.index.store import Layout, Store, Unusable, is_broken

_LAYOUT: Final = Layout(1, {"vector": "CREATE TABLE vector (text INTEGER PRIMARY KEY, data BLOB NOT NULL)"})
_FACTOR: Final = struct.Struct("<f")
_MOST: Final = 127
_DAY: Final = 86_400  # seconds
_DAYS_KEPT: Final = 30  # of a vector whose text is gone: it may come back
_ROOM: Final = 4 * 32 * 3_076  # bytes: requests, texts, and the largest vectors that are common
_OF_OLDER: Final = (
    "SELECT title, crumbs, substr(text, 1, {1}), data FROM vector JOIN words_{0} AS words ON words.rowid = section "
    "WHERE model = ?"
)


def vectors_path(folder: Path, root: Path, model: str) -> Path:
    """Return the place of the vectors that a model made for the manuals in `root`."""
    names = (hashlib.sha256(each).hexdigest() for each in (os.fsencode(root), model.encode()))
    return folder / "{:.24}.{:.12}.vectors".format(*names)


class Question(NamedTuple):
    """A question as a vector: whole numbers from -127 to 127, and what each counts."""

    numbers: Sequence[int]
    factor: float

    def cosine(self, data: bytes) -> float:
        """Return how alike a packed vector is."""
        product: int = sum(map(mul, self.numbers, memoryview(data)[_FACTOR.size :].cast("b")))
        return product * self.factor * float(_FACTOR.unpack_from(data)[0])


def question(vector: Sequence[float]) -> Question:
    """Return a question's vector as it is compared."""
    data = packed(vector)
    return Question(memoryview(data)[_FACTOR.size :].cast("b").tolist(), _FACTOR.unpack_from(data)[0])


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
        self._path = path
        self._store = Store(path, _LAYOUT)
        self._turn: sqlite3.Connection | None = None

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
        self.write({text: packed(vector) for text, vector in vectors.items()}, check)

    def write(self, found: Mapping[str, bytes], check: CancellationCheck) -> None:
        """Write packed vectors, as above."""
        with self._usable(), self._store.writing(check) as connection:
            for data in found.values():
                _require_length(connection, len(data) - _FACTOR.size)
            rows = [(_key(text), data) for text, data in found.items()]
            connection.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)

    def prune(self, texts: Iterable[str], check: CancellationCheck) -> None:
        """Remove the vectors whose texts were not among `texts`, those of all manuals, for a month of such calls."""
        today = int(time.time()) // _DAY
        with self._usable(), self._store.writing(check) as connection:
            connection.execute("CREATE TABLE IF NOT EXISTS gone (text INTEGER PRIMARY KEY, day INTEGER NOT NULL)")
            connection.execute("CREATE TEMP TABLE used (text INTEGER PRIMARY KEY)")
            connection.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((_key(text),) for text in texts))
            connection.execute("DELETE FROM gone WHERE text IN used")
            connection.execute("INSERT OR IGNORE INTO gone SELECT text, ? FROM vector WHERE text NOT IN used", (today,))
            until = (today - _DAYS_KEPT,)
            connection.execute("DELETE FROM vector WHERE text IN (SELECT text FROM gone WHERE day <= ?)", until)
            connection.execute("DELETE FROM gone WHERE day <= ?", until)
            connection.execute("DROP TABLE used")

    def take_turn(self, check: CancellationCheck) -> bool:
        """Keep other processes from making the same vectors, until `give_turn_back`; return whether none does.

        SQLite's lock on an empty file works on every system and ends with the process that holds it. Raises
        `EmbeddingFailed` also where a batch, which would be paid for by then, could not be written.
        """
        if self._path is None or self._turn is not None:
            return True
        with self._usable():
            for statement in ("INSERT INTO vector VALUES (0, zeroblob(?))", "DELETE FROM vector WHERE text = 0 AND ?"):
                with self._store.writing(check) as connection:
                    connection.execute(statement, (_ROOM,))
        path = self._path.with_suffix(".filling")
        with suppress(OSError):  # SQLite would let others read it
            path.touch(mode=0o600)
        turn = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            turn.execute("BEGIN EXCLUSIVE")
            check()  # or nobody waits for it any more
        except sqlite3.Error as error:
            turn.close()
            # Where files cannot be locked, nobody is kept out.
            return getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY
        except BaseException:
            turn.close()
            raise
        self._turn = turn
        return True

    def give_turn_back(self) -> None:
        """Let other processes make vectors. Need not be called in a thread."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close()

    def close(self) -> None:
        """Close the file."""
        self.give_turn_back()
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
    row = connection.execute("SELECT length(data) FROM vector WHERE text != 0 LIMIT 1").fetchone()
    if row is not None and row[0] - _FACTOR.size != numbers:
        raise EmbeddingFailed(
            f"The model gives vectors of {numbers} numbers, but the index has some of {row[0] - _FACTOR.size}; run "
            f"'{program()} manuals index --forget', and then '{program()} manuals index --embed'."
        )


def vectors_of_older(connection: sqlite3.Connection) -> Generator[tuple[str, dict[str, bytes]]]:
    """Yield the vectors that an index of an earlier version has itself, with the names of their models.

    Raises sqlite3.Error for one that has no texts.
    """
    manuals = connection.execute("SELECT id FROM manual WHERE EXISTS (SELECT 1 FROM vector)").fetchall()
    for model, name, dimensions in connection.execute("SELECT id, name, dimensions FROM model").fetchall():
        step = _FACTOR.size + dimensions
        for (manual,) in manuals:
            found: dict[str, bytes] = {}
            for *row, data in connection.execute(_OF_OLDER.format(manual, PIECE * MOST_PIECES), (model,)):
                found.update((text, data[at * step : (at + 1) * step]) for at, text in enumerate(pieces(*row)))
            if found:
                yield name, found
