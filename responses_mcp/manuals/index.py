"""Bringing the index up to date with the files of a manual.

The files are walked, their stamps compared with those in the index, and what differs is read anew, a batch of files in
one transaction. What another process has done meanwhile is skipped. So a stop, or a kill, at any moment leaves an index
that knows fewer files, and the next refresh goes on from there.
"""

from __future__ import annotations

import sqlite3
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, cast

from responses_mcp.errors import exhausted
from responses_mcp.manuals.checks import Check, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder, Stamp
from responses_mcp.manuals.intake import Entry, Hashed, entries, indexed
from responses_mcp.manuals.store import Store, broken

TOO_LARGE: Final = "too_large"
UNREADABLE: Final = "unreadable"

_FIRST_BATCH, _LARGEST_BATCH = 8, 256  # files in a transaction
_BYTES_A_FILE: Final = 8 * 1024  # by which larger ones count for more
_LARGE_FILE: Final = 256 * 1024  # bytes; these come last, or a find with little time would never get past one
_FRESH_NS: Final = 2_000_000_000  # a file changed this recently may change again without its times telling
_UNSURE: Final = b""  # a stamp that no file has, so that the next refresh looks again
_ROWS_AT_ONCE: Final = 64

_LOW_64: Final = 2**64 - 1
_pack = struct.Struct("<4Q?").pack

_WORDS: Final = (
    "CREATE VIRTUAL TABLE words_{} USING fts5(title, crumbs, body, content='', "
    "tokenize='porter unicode61 remove_diacritics 0')"
)


# What is there, less what the manuals count: a millisecond for 10,000 files.
_MISSING: Final = """SELECT (SELECT count(*) - count(note) FROM file) - sum(files),
    (SELECT count(*) FROM section) - sum(sections),
    (SELECT count(*) FROM words_{0}_docsize) - (SELECT sections FROM manual WHERE id = {0}) FROM manual"""


class Vanished(Exception):  # the caller looks again
    """The index of a manual is no longer the one that was compared: another process has begun it anew."""


@dataclass(frozen=True, slots=True)
class Manual:
    """A manual as the index knows it: the number of its tables, and a generation that rises with each change.

    `files`, `sections` (rows) and `characters` (of their texts) count what is indexed.
    """

    number: int
    generation: int
    files: int
    sections: int
    characters: int


@dataclass(slots=True)
class Refresh:
    """What is to be done for one manual. Paths are relative to it.

    `stale` are the files to read, with the stamps they had; `gone` those to forget. `unindexed` are files that are not
    in the index for good: path to `TOO_LARGE` or `UNREADABLE`. `whole` is false when time ran out before all `files`
    were looked at.
    """

    name: str
    number: int
    files: int
    stale: dict[str, Stamp]
    gone: set[str]
    unindexed: dict[str, str] = field(default_factory=dict[str, str])
    whole: bool = True

    @property
    def finished(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.whole and not self.stale and not self.gone


def manual_of(connection: sqlite3.Connection, name: str) -> Manual | None:
    """Return what the index says of a manual, None when it knows nothing."""
    row = connection.execute(
        "SELECT id, generation, files, sections, characters FROM manual WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Manual(*row)


def check_whole(connection: sqlite3.Connection, manual: Manual) -> None:
    """Raise the error of a broken index when there are not as many rows as should be: others have deleted some."""
    if any(connection.execute(_MISSING.format(manual.number)).fetchone()):
        raise broken("rows are missing")


def compare(store: Store, folder: Folder, name: str, check: Check, *, largest: int) -> Refresh:
    """Walk the files of a manual and find out what differs from the index; files of over `largest` bytes are not in it.

    When time runs out while it walks, what was found until then is returned.
    """
    with store.reading(check) as connection:
        manual = manual_of(connection, name)
        number = 0 if manual is None else manual.number
        if manual is not None:
            check_whole(connection, manual)
        known: dict[str, bytes] = dict(connection.execute("SELECT path, stamp FROM file WHERE manual = ?", (number,)))
        unindexed: dict[str, str] = dict(
            connection.execute("SELECT path, note FROM file WHERE manual = ? AND note NOT NULL", (number,))
        )
    if manual is None:
        manual = begin(store, name, check)
    unreadable: list[str] = []
    refresh = Refresh(name, manual.number, 0, {}, set(), unindexed)
    try:
        for path, stamp in folder.walk(name, check, unreadable=unreadable):
            refresh.files += 1
            if known.pop(path, None) != packed(stamp, largest):
                refresh.stale[path] = stamp
    except OutOfTime:
        refresh.whole = False
    else:
        # What could not be looked at may still be there.
        hidden = tuple(f"{path}/" if path else "" for path in unreadable)
        refresh.gone = {path for path in known if not f"{path}/".startswith(hidden)}
    for path in chain(refresh.gone, refresh.stale):
        unindexed.pop(path, None)
    unindexed.update(dict.fromkeys(unreadable, UNREADABLE))
    return refresh


def packed(stamp: Stamp, largest: int) -> bytes:
    """Return what the index keeps of a stamp: other bytes for another file, or when the limit changes what is read."""
    size, changed, status_changed, inode = stamp
    # Some file systems use all 64 bits, some have times before 1970 or after 2262.
    return _pack(size, changed & _LOW_64, status_changed & _LOW_64, inode & _LOW_64, size > largest)


def work_off(
    store: Store, folder: Folder, refresh: Refresh, check: Check, *, largest: int, order: Callable[[str], int]
) -> Iterator[None]:
    """Do what `compare` found, a transaction at each step; what is done leaves `refresh`.

    Files with a lower `order` come first. Raises Vanished when the index that was compared is no more.
    """
    for batch in _batches(refresh, order, check):
        notes: dict[str, str] = {}
        with store.writing(check) as connection:
            change = _Change(connection, refresh)
            for path in batch:
                check()
                stamp = refresh.stale.get(path)
                if stamp is None:
                    change.forget(path, check)
                elif note := change.bring_in(folder, path, stamp, check, largest=largest):
                    notes[path] = note
            change.record()
        refresh.unindexed.update(notes)
        for path in batch:
            refresh.stale.pop(path, None)
        refresh.gone.difference_update(batch)
        yield


def _batches(refresh: Refresh, order: Callable[[str], int], check: Check) -> Iterator[list[str]]:
    """Cut the work into transactions, small ones first: a find with little time must get on, too."""
    queues: dict[tuple[bool, int], list[str]] = {}  # sorting 100,000 paths would keep other threads from running
    for number, (path, stamp) in enumerate(refresh.stale.items()):
        if not number % _LARGEST_BATCH:
            check()
        queues.setdefault((stamp.size > _LARGE_FILE, order(path)), []).append(path)
    batch: list[str] = []
    size, most = 0, _FIRST_BATCH
    for path in chain(list(refresh.gone), *(queues[key] for key in sorted(queues))):
        batch.append(path)
        size += refresh.stale[path].size if path in refresh.stale else 0
        if len(batch) >= most or size >= most * _BYTES_A_FILE:
            yield batch
            batch, size, most = [], 0, min(2 * most, _LARGEST_BATCH)
    if batch:
        yield batch


def begin(store: Store, name: str, check: Check) -> Manual:
    """Make the tables of a manual, unless they are there."""
    with store.writing(check) as connection:
        manual = manual_of(connection, name)
        if manual is None:
            # By the clock, so that neither is ever the same as in an index that was thrown away.
            now = time.time_ns()
            connection.execute("INSERT INTO manual VALUES (?, ?, ?, 0, 0, 0)", (now, name, now))
            connection.execute(_WORDS.format(now))
            manual = Manual(now, now, 0, 0, 0)
    return manual


class _Change:
    """What one transaction does to the tables of a manual."""

    def __init__(self, connection: sqlite3.Connection, refresh: Refresh) -> None:
        manual = manual_of(connection, refresh.name)
        if manual is None or manual.number != refresh.number:
            raise Vanished
        self._connection = connection
        self._name = refresh.name
        self._number = refresh.number
        self._files = self._sections = self._characters = 0  # more, or fewer, than before
        self._any = False
        self._next: int = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM section").fetchone()[0]

    def bring_in(self, folder: Folder, path: str, stamp: Stamp, check: Check, *, largest: int) -> str | None:
        """Make the rows of one file those of what it holds now; return why it has none, if it must not have any."""
        known = self._connection.execute(
            "SELECT id, stamp, digest, note FROM file WHERE manual = ? AND path = ?", (self._number, path)
        ).fetchone()
        new = packed(stamp, largest)
        if known is not None and known[1] == new:
            return cast("str | None", known[3])  # another process was here
        # The time of change (POSIX) cannot be set by anybody, so it is the better one; the other may lie in the future.
        if time.time_ns() - (stamp.ctime_ns or stamp.mtime_ns) < _FRESH_NS:
            new = _UNSURE
        if stamp.size > largest:
            return self._without_rows(known, path, new, TOO_LARGE, check)
        try:
            with folder.open(self._name, path) as handle:
                if known is not None and known[3] is None:
                    if Hashed(handle, largest).digest_of_all(check) == known[2]:
                        self._stamp(known[0], known[1], new)
                        return None
                    handle.seek(0)
                self.forget(path, check)
                self._add_file(path, new, Hashed(handle, largest), check)
        except (ManualsError, OSError) as error:
            if exhausted(error):  # the file is not to blame, so its rows stay
                raise
            if isinstance(error, ManualsError) and error.code == "not_found":  # it has gone since it was seen
                self.forget(path, check)
                return None
            return self._without_rows(known, path, _UNSURE, UNREADABLE, check)
        return None

    def _without_rows(
        self, known: tuple[int, bytes, bytes, str | None] | None, path: str, stamp: bytes, note: str, check: Check
    ) -> str:
        if known is not None and known[3] == note:
            self._stamp(known[0], known[1], stamp)
        else:
            self.forget(path, check)
            self._insert_file(path, stamp, note)
        return note

    def _stamp(self, file: int, known: bytes, stamp: bytes) -> None:
        if known != stamp:
            self._connection.execute("UPDATE file SET stamp = ? WHERE id = ?", (stamp, file))

    def _insert_file(self, path: str, stamp: bytes, note: str | None) -> int | None:
        self._any = True
        return self._connection.execute(
            "INSERT INTO file (manual, path, stamp, digest, note) VALUES (?, ?, ?, x'', ?)",
            (self._number, path, stamp, note),
        ).lastrowid

    def _add_file(self, path: str, stamp: bytes, source: Hashed, check: Check) -> None:
        file = self._insert_file(path, stamp, None)
        self._files += 1
        found = entries(path, source, check)
        while rows := list(islice(found, _ROWS_AT_ONCE)):  # a file of 16 MiB has too many to hold at once
            self._add_rows(file, path, rows)
        self._connection.execute("UPDATE file SET digest = ? WHERE id = ?", (source.digest(), file))

    def _add_rows(self, file: int | None, path: str, rows: list[Entry]) -> None:
        first, self._next = self._next, self._next + len(rows)
        self._connection.executemany(
            "INSERT INTO section (id, file, line, title, crumbs, body) VALUES (?, ?, ?, ?, ?, ?)",
            ((number, file, *entry) for number, entry in enumerate(rows, first)),
        )
        self._connection.executemany(
            f"INSERT INTO words_{self._number} (rowid, title, crumbs, body) VALUES (?, ?, ?, ?)",  # noqa: S608  # a number
            ((number, *indexed(path, *entry[1:])) for number, entry in enumerate(rows, first)),
        )
        self._sections += len(rows)
        self._characters += sum(len(entry.body) for entry in rows)

    def forget(self, path: str, check: Check) -> None:
        """Remove the rows of one file, if it has any."""
        known = self._connection.execute(
            "SELECT id, note FROM file WHERE manual = ? AND path = ?", (self._number, path)
        ).fetchone()
        if known is None:
            return
        file, note = known
        rows = self._connection.execute("SELECT id, title, crumbs, body FROM section WHERE file = ?", (file,))
        # A contentless table forgets a row only when told exactly what it was given.
        self._connection.executemany(
            f"INSERT INTO words_{self._number} (words_{self._number}, rowid, title, crumbs, body) "  # noqa: S608
            "VALUES ('delete', ?, ?, ?, ?)",
            self._forgotten(path, rows, check),
        )
        self._connection.execute("DELETE FROM section WHERE file = ?", (file,))
        self._connection.execute("DELETE FROM file WHERE id = ?", (file,))
        self._files -= note is None
        self._any = True

    def _forgotten(
        self, path: str, rows: Iterable[tuple[int, str, str, str]], check: Check
    ) -> Iterator[tuple[int, str, str, str]]:
        for number, title, crumbs, body in rows:
            check()
            yield (number, *indexed(path, title, crumbs, body))
            self._sections -= 1
            self._characters -= len(body)

    def record(self) -> None:
        """Count what has changed, and give the manual a new generation if anything has."""
        if self._any:
            self._connection.execute(
                "UPDATE manual SET generation = generation + 1, files = files + ?, sections = sections + ?, "
                "characters = characters + ? WHERE id = ?",
                (self._files, self._sections, self._characters, self._number),
            )
