"""The vectors in the index: one row beside each section that has been embedded, with the model that it is of.

A row holds the vectors of all texts of its section, one behind the other. They go with their section: a file that
changes loses those of the sections that are other than before.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.index.store import Store

_MODEL: Final = "SELECT id, dimensions FROM model WHERE name = ?"
_ROOM: Final = 4 * 32 * 3_076  # bytes: requests, texts, and the largest vectors that are common
# In the order of the sections' numbers, which goes on where the last batch ended; else each would sort all of them.
_PENDING: Final = """FROM section CROSS JOIN file ON file.id = section.file
    LEFT JOIN vector ON vector.section = section.id
    WHERE file.manual = ? AND vector.model IS NOT ?"""


class Model(NamedTuple):
    """A model as the index knows it. Vectors have so many `dimensions`."""

    id: int
    dimensions: int


def model_of(connection: sqlite3.Connection, name: str) -> Model:
    """Return what the index knows of a model; number 0, which none has, if nothing."""
    row = connection.execute(_MODEL, (name,)).fetchone()
    return Model(0, 0) if row is None else Model(*row)


def vectors(
    connection: sqlite3.Connection, name: str, dimensions: int, ids: Iterable[int]
) -> Iterator[tuple[int, bytes]]:
    """Yield the ids of the sections that have vectors of a model, with these."""
    model = model_of(connection, name)
    if model.dimensions == dimensions:
        marks = ",".join(str(int(each)) for each in ids)
        yield from connection.execute(
            f"SELECT section, data FROM vector WHERE section IN ({marks}) AND model = ?",  # noqa: S608  # numbers
            (model.id,),
        )


def rows(connection: sqlite3.Connection, ids: Iterable[int]) -> list[tuple[int, str, str, str]]:
    """Return the id, title, crumbs and text of sections."""
    marks = ",".join(str(int(each)) for each in ids)
    return connection.execute(
        f"SELECT id, title, crumbs, text FROM section WHERE id IN ({marks}) ORDER BY id"  # noqa: S608  # numbers
    ).fetchall()


def places(connection: sqlite3.Connection, ids: Iterable[int]) -> list[tuple[str, int]]:
    """Return the path and line of sections."""
    marks = ",".join(str(int(each)) for each in ids)
    return connection.execute(
        f"SELECT path, line FROM section JOIN file ON file.id = section.file WHERE section.id IN ({marks})"  # noqa: S608  # numbers
    ).fetchall()


def lacking(connection: sqlite3.Connection, name: str, ids: Iterable[int]) -> list[tuple[int, str, str, str]]:
    """Return the id, title, crumbs and text of those sections that have no vectors of a model."""
    marks = ",".join(str(int(each)) for each in ids)
    without = f"vector.section IS NULL AND id IN ({marks})"
    return connection.execute(
        "SELECT id, title, crumbs, text FROM section LEFT JOIN vector ON vector.section = id AND vector.model = ? "  # noqa: S608  # numbers
        f"WHERE {without} ORDER BY id",
        (model_of(connection, name).id,),
    ).fetchall()


def of_others(connection: sqlite3.Connection, name: str, ids: Iterable[int]) -> tuple[int, str]:
    """Return how many of some sections have vectors of another model, and the name of one."""
    marks = ",".join(str(int(each)) for each in ids)
    row: tuple[int, str] = connection.execute(
        "SELECT count(*), coalesce(min(name), '') FROM vector JOIN model ON model.id = model "  # noqa: S608  # numbers
        f"WHERE section IN ({marks}) AND name != ?",
        (name,),
    ).fetchone()
    return row


def pending(
    connection: sqlite3.Connection, name: str, manual: int, after: int, most: int
) -> list[tuple[int, str, str, str]]:
    """Return the first rows of a manual that have no vectors of a model, of those whose ids are above `after`."""
    return connection.execute(
        f"SELECT section.id, title, crumbs, text {_PENDING} AND section.id > ? ORDER BY section.id LIMIT ?",
        (manual, model_of(connection, name).id, after, most),
    ).fetchall()


def count_pending(connection: sqlite3.Connection, name: str, manual: int, most: int) -> tuple[int, int, int, int]:
    """Return how many rows have no vectors of a model, of how many characters and bytes they are; how many have others.

    Of each text the first `most` characters count.
    """
    row: tuple[int, int, int, int] = connection.execute(
        f"""SELECT count(*), coalesce(sum(length(text)), 0), coalesce(sum(length(CAST(text AS BLOB))), 0), count(model)
        FROM (SELECT title || crumbs || substr(section.text, 1, ?) AS text, vector.model {_PENDING})""",  # noqa: S608
        (most, manual, model_of(connection, name).id),
    ).fetchone()
    return row


def has_vectors(store: Store, check: CancellationCheck) -> bool:
    """Tell whether an index has any vectors, which may have been paid for: then its file must not be removed."""
    with store.reading(check) as connection:
        return connection.execute("SELECT 1 FROM vector LIMIT 1").fetchone() is not None


def require_room(store: Store, check: CancellationCheck) -> None:
    """Raise what `Store.writing` does where there is no room for the requests that are in flight at once."""
    with store.writing(check) as connection:
        (size,) = connection.execute("PRAGMA cache_size").fetchone()
        connection.execute("PRAGMA cache_size = 1")  # else nothing is written before the end of a transaction
        try:
            connection.execute("INSERT INTO vector (section, model, data) VALUES (0, 0, zeroblob(?))", (_ROOM,))
        finally:
            connection.execute(f"PRAGMA cache_size = {int(size)}")
        connection.rollback()


def write(
    connection: sqlite3.Connection, name: str, dimensions: int, found: Iterable[tuple[int, bytes]], *, replacing: bool
) -> None:
    """Write the vectors of sections, `replacing` those of other models or leaving these."""
    connection.execute("INSERT OR IGNORE INTO model (name, dimensions) VALUES (?, ?)", (name, dimensions))
    model = model_of(connection, name)
    connection.executemany(
        "INSERT INTO vector (section, model, data) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET model = excluded.model, data = excluded.data WHERE ?",
        ((section, model.id, data, replacing) for section, data in found),
    )


class Kept:
    """The vectors of a file that is being read again, for those of its sections that stay as they are."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._vectors: dict[bytes, tuple[int, bytes]] = {}

    def take(self, file: int) -> None:
        """Take the vectors of a file out of the index."""
        sections = "(SELECT id FROM section WHERE file = ?)"
        found = self._connection.execute(
            "SELECT title, crumbs, text, model, data FROM vector JOIN section ON section.id = vector.section "
            "WHERE section.file = ?",
            (file,),
        )
        self._vectors = {_digest(title, crumbs, text): (model, data) for title, crumbs, text, model, data in found}
        self._connection.execute(f"DELETE FROM vector WHERE section IN {sections}", (file,))  # noqa: S608

    def give_back(self, added: Iterable[tuple[int, str, str, str]]) -> None:
        """Put those of rows (id, title, crumbs, text) that are as before beside them."""
        if not self._vectors:
            return
        same = ((number, self._vectors.get(_digest(*texts))) for number, *texts in added)
        self._connection.executemany(
            "INSERT OR REPLACE INTO vector (section, model, data) VALUES (?, ?, ?)",
            [(number, *vector) for number, vector in same if vector is not None],
        )


def _digest(*texts: str) -> bytes:
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=16).digest()
