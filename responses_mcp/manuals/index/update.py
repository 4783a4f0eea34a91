"""Updating the index of a manual to what its files hold.

The files are walked, their stamps compared with those in the index, and what differs is read, a batch of files in one
transaction. What another process has done meanwhile is skipped. So a stop, or a kill, at any moment leaves an index
that knows fewer files, and the next update goes on from there.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.documents import content_of, is_read_apart
from responses_mcp.manuals.files.folder import UNREADABLE, Folder, Stamp
from responses_mcp.manuals.formats.document import Document, Unserved
from responses_mcp.manuals.index.rows import Entry, entries
from responses_mcp.manuals.index.store import Blocked, Store
from responses_mcp.manuals.index.tokens import TOKENIZER, forget

TOO_LARGE: Final = "too_large"
DISK_FULL: Final = "disk_full"
LOCKED: Final = "locked"

_FIRST_BATCH, _LARGEST_BATCH = 8, 256  # files in a transaction
_BYTES_A_FILE: Final = 8 * 1024  # by which larger ones count for more
_LARGE_FILE: Final = 256 * 1024  # bytes; these come last, or a find with little time would never get past one
_UNSURE: Final = b""  # a stamp that no file has, so that the next comparison reads the file again
_ROWS_AT_ONCE: Final = 64

_LOW_64: Final = 2**64 - 1
_pack = struct.Struct("<4Q?").pack

_COLUMNS: Final = ", ".join(each if each.endswith("_tokens") else f"{each} UNINDEXED" for each in Entry._fields)
_WORDS: Final = (
    f'CREATE VIRTUAL TABLE words_{{0}} USING fts5(file UNINDEXED, {_COLUMNS}, tokenize="{TOKENIZER}")',
    # Bytes of postings that are gathered before they are written: else small pieces are merged over and over.
    "INSERT INTO words_{0} (words_{0}, rank) VALUES ('hashsize', 8000000)",
    # Pieces that are merged at once: with SQLite's own 4, each posting is written three times.
    "INSERT INTO words_{0} (words_{0}, rank) VALUES ('automerge', 16)",
)
# Row by row: before a statement for many rows, SQLite has the full-text table write what it has gathered.
_INSERT: Final = (
    f"INSERT INTO words_{{}} (rowid, file, {', '.join(Entry._fields)}) "  # noqa: S608  # constants
    f"VALUES (?, ?{', ?' * len(Entry._fields)})"
)
_DELETE: Final = "DELETE FROM words_{} WHERE rowid = ?"
_LENGTH: Final = "SELECT coalesce(sum(length), 0) FROM words_{} WHERE rowid BETWEEN ? AND ?"
_KNOWN: Final = "SELECT id, stamp, digest, note, first, sections FROM file WHERE manual = ? AND path = ?"
_NEXT: Final = """SELECT coalesce(max(id), 0) + 1,
    coalesce((SELECT first + sections FROM file ORDER BY first DESC, sections DESC LIMIT 1), 1) FROM file"""
_RECORD: Final = """UPDATE manual SET generation = generation + 1,
    files = files + ?, sections = sections + ?, characters = characters + ? WHERE id = ?"""


class Hindered(OutOfTime):
    """No more can be written for now; what is indexed can be searched."""


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
class Changes:
    """What differs between the files of one manual and its index. Paths are relative to the manual.

    `changed` are the files to read, with the stamps they had; `gone` those to forget. `unindexed` are files that stay
    out of the index: path to the reason, such as `TOO_LARGE`. `others` counts files that are not served for their
    format, by their endings. `whole` is false when time ran out before all `files`
    were looked at. `update` takes out what it has done; `hindered` says why it could not do the rest, if not for time.
    """

    name: str
    number: int
    files: int = 0
    changed: dict[str, Stamp] = field(default_factory=dict[str, Stamp])
    gone: set[str] = field(default_factory=set[str])
    unindexed: dict[str, str] = field(default_factory=dict[str, str])
    others: Counter[str] = field(default_factory=Counter[str])
    whole: bool = True
    hindered: str | None = None

    @property
    def finished(self) -> bool:
        """Tell whether nothing is left to do."""
        return self.whole and not self.changed and not self.gone


def manual_of(connection: sqlite3.Connection, name: str) -> Manual | None:
    """Return what the index says of a manual, None when it knows nothing."""
    row = connection.execute(
        "SELECT id, generation, files, sections, characters FROM manual WHERE name = ?", (name,)
    ).fetchone()
    return None if row is None else Manual(*row)


def compare(store: Store, folder: Folder, name: str, check: CancellationCheck, *, largest: int) -> Changes:
    """Walk the files of a manual and find out what differs from the index; files of over `largest` bytes are not in it.

    When time runs out while it walks, what was found until then is returned.
    """
    known: dict[str, bytes] = {}
    unindexed: dict[str, str] = {}
    with store.reading(check) as connection:
        manual = manual_of(connection, name)
        number = manual.number if manual is not None else None
        for path, stamp, note in connection.execute("SELECT path, stamp, note FROM file WHERE manual = ?", (number,)):
            known[path] = stamp
            if note is not None:
                unindexed[path] = note
    if manual is None:
        manual = begin(store, name, check)
    changes = Changes(name, manual.number, unindexed=unindexed)
    left_out: dict[str, str] = {}
    try:
        for path, stamp in folder.walk(name, check, left_out, others=changes.others):
            changes.files += 1
            if known.pop(path, None) != packed(stamp, largest):
                changes.changed[path] = stamp
    except OutOfTime:
        changes.whole = False
    else:
        # What could not be looked at may still be there.
        hidden = tuple(f"{path}/" if path else "" for path in left_out)
        changes.gone = {path for path in known if not f"{path}/".startswith(hidden)}
    for path in chain(changes.gone, changes.changed):
        unindexed.pop(path, None)
    unindexed.update(left_out)
    return changes


def packed(stamp: Stamp, largest: int) -> bytes:
    """Return what the index keeps of a stamp: other bytes for another file, or when the limit changes what is read."""
    size, changed, status_changed, inode = stamp
    # Some file systems use all 64 bits, some have times before 1970 or after 2262.
    return _pack(size, changed & _LOW_64, status_changed & _LOW_64, inode & _LOW_64, size > largest)


def update(
    store: Store,
    folder: Folder,
    changes: Changes,
    check: CancellationCheck,
    *,
    largest: int,
    order: Callable[[str], int] = lambda _: 0,
) -> Iterator[None]:
    """Do what `compare` found, a transaction at each step.

    Paths with a lower `order` come first. Raises Vanished when the index that was compared is no more, Hindered when a
    writer that does nothing is in the way, or the disk is full and most files are indexed.
    """
    changes.hindered = None
    for batch in _batches(changes, order, check):
        notes: dict[str, str] = {}
        _read_apart(folder, changes, batch, check, largest)
        try:
            with store.writing(check) as connection:
                transaction = _Transaction(connection, changes, check)
                for path in batch:
                    check()
                    stamp = changes.changed.get(path)
                    if stamp is None:
                        transaction.forget(transaction.known(path))
                    elif note := transaction.read(folder, path, stamp, largest):
                        notes[path] = note
                transaction.record()
        except Blocked as error:
            changes.hindered = LOCKED
            raise Hindered from error
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_FULL:
                raise
            store.shrink(check)
            if changes.files < 2 * len(changes.changed):  # memory has more room
                raise
            changes.hindered = DISK_FULL
            raise Hindered from error
        changes.unindexed.update(notes)
        for path in batch:
            changes.changed.pop(path, None)
        changes.gone.difference_update(batch)
        yield
    forget()


def _read_apart(folder: Folder, changes: Changes, batch: Sequence[str], check: CancellationCheck, largest: int) -> None:
    """Wait for the process that reads a file, if one does, before the transaction that others would wait for."""
    for path in filter(is_read_apart, batch):
        if path in changes.changed and changes.changed[path].size <= largest:
            with suppress(ManualsError, OSError, Unserved), folder.open(changes.name, path) as handle:
                folder.documents.of(path, content_of(handle, largest, check), check)


def _batches(changes: Changes, order: Callable[[str], int], check: CancellationCheck) -> Iterator[list[str]]:
    """Cut the work into transactions, small ones first: a find with little time must get on, too."""
    queues: dict[tuple[int, int], list[str]] = {}  # sorting 100,000 paths would keep other threads from running
    for number, (path, stamp) in enumerate(changes.changed.items()):
        if not number % _LARGEST_BATCH:
            check()
        rank = 2 if is_read_apart(path) else int(stamp.size > _LARGE_FILE)
        queues.setdefault((rank, order(path)), []).append(path)
    batch: list[str] = []
    size, most = 0, _FIRST_BATCH
    for path in chain(list(changes.gone), *(queues[key] for key in sorted(queues))):
        if batch and is_read_apart(path):
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += changes.changed[path].size if path in changes.changed else 0
        if len(batch) >= most or size >= most * _BYTES_A_FILE:
            yield batch
            batch, size, most = [], 0, min(2 * most, _LARGEST_BATCH)
    if batch:
        yield batch


def begin(store: Store, name: str, check: CancellationCheck) -> Manual:
    """Make the tables of a manual, unless they are there."""
    with store.writing(check) as connection:
        manual = manual_of(connection, name)
        if manual is None:
            # By chance, so that they are never the same as in an index that was thrown away.
            manual = Manual(_unique(), _unique(), 0, 0, 0)
            connection.execute("INSERT INTO manual VALUES (?, ?, ?, 0, 0, 0)", (manual.number, name, manual.generation))
            for statement in _WORDS:
                connection.execute(statement.format(manual.number))
    return manual


def _unique() -> int:
    return int.from_bytes(os.urandom(8)) >> 2  # SQLite has 63 bits, and a generation rises


class _Known(NamedTuple):
    """A row of `file`; `note` says why the file has no sections, if it must not have any."""

    id: int
    stamp: bytes
    digest: bytes
    note: str | None
    first: int
    sections: int


class _Transaction:
    """What one transaction does to the tables of a manual."""

    def __init__(self, connection: sqlite3.Connection, changes: Changes, check: CancellationCheck) -> None:
        manual = manual_of(connection, changes.name)
        if manual is None or manual.number != changes.number:
            raise Vanished
        self._connection = connection
        self._check = check
        self._name = changes.name
        self._number = changes.number
        self._files = self._sections = self._characters = 0  # more, or fewer, than before
        self._any = False
        self._file, self._section = connection.execute(_NEXT).fetchone()

    def known(self, path: str) -> _Known | None:
        """Return what the index has of a file."""
        row = self._connection.execute(_KNOWN, (self._number, path)).fetchone()
        return None if row is None else _Known(*row)

    def read(self, folder: Folder, path: str, stamp: Stamp, largest: int) -> str | None:
        """Make the rows of one file those of what it holds now; return why it has none, if it must not have any."""
        known = self.known(path)
        new = packed(stamp, largest)
        if known is not None and known.stamp == new:
            return known.note  # another process was here
        if stamp.is_fresh():
            new = _UNSURE
        document, digest = None, b""
        note = TOO_LARGE if stamp.size > largest else None
        try:
            if note is None:
                with folder.open(self._name, path, walked=True) as handle:
                    content = content_of(handle, largest, self._check)
                digest = hashlib.blake2b(content, digest_size=16).digest()
                if known is None or known.digest != digest:
                    document = folder.documents.of(path, content, self._check)
        except Unserved as nothing:
            note, digest = nothing.reason, b""
        except (ManualsError, OSError) as error:
            if exhausted(error):  # the file is not to blame, so its rows stay
                raise
            if isinstance(error, ManualsError) and error.code == "not_found":  # it has gone since it was seen
                self.forget(known)
                return None
            note, new = UNREADABLE, _UNSURE
        if known is not None and (known.note, known.digest) == (note, digest):
            if known.stamp != new:
                self._connection.execute("UPDATE file SET stamp = ? WHERE id = ?", (new, known.id))
        else:
            self.forget(known)
            self._add(path, new, digest, note, document)
        return note

    def _add(self, path: str, stamp: bytes, digest: bytes, note: str | None, document: Document | None) -> None:
        """Add a file, with the rows of its document if it has one."""
        first = self._section
        found = entries(path, document, self._check) if document is not None else iter(())
        insert = _INSERT.format(self._number)
        while rows := list(islice(found, _ROWS_AT_ONCE)):  # a file of 16 MiB has too many to hold at once
            self._connection.executemany(
                insert, ((number, self._file, *entry) for number, entry in enumerate(rows, self._section))
            )
            self._section += len(rows)
            self._characters += sum(entry.length for entry in rows)
        sections = self._section - first
        given = (self._file, self._number, path, stamp, digest, note, first, sections)
        self._connection.execute("INSERT INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)", given)
        self._file += 1
        self._files += note is None
        self._sections += sections
        self._any = True

    def forget(self, known: _Known | None) -> None:
        """Remove a file and its rows."""
        if known is None:
            return
        numbers = range(known.first, known.first + known.sections)
        length, delete = _LENGTH.format(self._number), _DELETE.format(self._number)
        self._characters -= self._connection.execute(length, (numbers.start, numbers.stop - 1)).fetchone()[0]
        for number in numbers:
            self._check()
            self._connection.execute(delete, (number,))
        self._connection.execute("DELETE FROM file WHERE id = ?", (known.id,))
        self._files -= known.note is None
        self._sections -= known.sections
        self._any = True

    def record(self) -> None:
        """Count what has changed, and give the manual a new generation if anything has."""
        if self._any:
            given = (self._files, self._sections, self._characters, self._number)
            self._connection.execute(_RECORD, given)
