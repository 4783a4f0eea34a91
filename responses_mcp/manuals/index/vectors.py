"""The vectors in the index: one row beside each section that has been embedded, with the model that it is of.

A row holds the vectors of all texts of its section, one behind the other. They go with their section: a file that
changes loses those of the sections that are other than before.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.index.store import Store

_MODEL: Final = "SELECT id, dimensions FROM model WHERE name = ?"
_ROOM: Final = 4 * 32 * 3_076  # bytes: requests, texts, and the largest vectors that are common
_PENDING: Final = "FROM words_{0} LEFT JOIN vector ON vector.section = words_{0}.rowid WHERE vector.model IS NOT ?"
_MANUAL: Final = "SELECT manual FROM file WHERE first <= ? ORDER BY first DESC, sections DESC LIMIT 1"


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
    """Return the id, title, crumbs and text of sections, of any manuals."""
    return sorted(_of_sections(connection, "rowid, title, crumbs, text", ids))


def places(connection: sqlite3.Connection, ids: Iterable[int]) -> list[tuple[str, int]]:
    """Return the path and line of sections."""
    return list(_of_sections(connection, "(SELECT path FROM file WHERE id = file), line", ids))


def _of_sections(connection: sqlite3.Connection, columns: str, ids: Iterable[int]) -> Iterator[Any]:
    for each in ids:
        for (manual,) in connection.execute(_MANUAL, (each,)):
            yield from connection.execute(f"SELECT {columns} FROM words_{manual} WHERE rowid = ?", (each,))  # noqa: S608


def lacking(connection: sqlite3.Connection, name: str, ids: Iterable[int]) -> list[tuple[int, str, str, str]]:
    """Return the id, title, crumbs and text of those sections that have no vectors of a model."""
    wanted = set(ids)
    model = model_of(connection, name)
    return rows(
        connection, wanted.difference(number for number, _ in vectors(connection, name, model.dimensions, wanted))
    )


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
        f"SELECT words_{manual}.rowid, title, crumbs, text {_PENDING.format(manual)} "
        f"AND words_{manual}.rowid > ? ORDER BY words_{manual}.rowid LIMIT ?",
        (model_of(connection, name).id, after, most),
    ).fetchall()


def count_pending(connection: sqlite3.Connection, name: str, manual: int, most: int) -> tuple[int, int, int, int]:
    """Return how many rows have no vectors of a model, of how many characters and bytes they are; how many have others.

    Of each text the first `most` characters count.
    """
    row: tuple[int, int, int, int] = connection.execute(
        f"""SELECT count(*), coalesce(sum(length(text)), 0), coalesce(sum(length(CAST(text AS BLOB))), 0), count(model)
        FROM (SELECT title || crumbs || substr(text, 1, ?) AS text, vector.model {_PENDING.format(manual)})""",  # noqa: S608
        (most, model_of(connection, name).id),
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
    """The vectors of a file of a manual that is being read again, for those of its sections that stay as they are."""

    def __init__(self, connection: sqlite3.Connection, manual: int) -> None:
        self._connection = connection
        self._words = f"words_{manual}"
        self._vectors: dict[bytes, tuple[int, bytes]] = {}

    def take(self, sections: range) -> None:
        """Take the vectors of a file, which has these sections, out of the index."""
        bounds = sections.start, sections.stop - 1
        found = self._connection.execute(
            f"SELECT title, crumbs, text, model, data FROM vector CROSS JOIN {self._words} AS words "  # noqa: S608
            "ON words.rowid = section WHERE section BETWEEN ? AND ?",
            bounds,
        )
        self._vectors = {_digest(title, crumbs, text): (model, data) for title, crumbs, text, model, data in found}
        self._connection.execute("DELETE FROM vector WHERE section BETWEEN ? AND ?", bounds)

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
