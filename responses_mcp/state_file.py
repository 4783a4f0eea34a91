"""A database in the user's state folder: made for its owner alone, shared by processes, moved aside when it is broken.

Its writers take short transactions. After a loss of power the last of them may be missing; the file is whole.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

log = logging.getLogger(__name__)

OF_FILE: Final = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
"""Asks for the program that a database is of, for the version of its tables, and how many of them there are."""
_TRIES: Final = 3
_UNWRITABLE: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """Where a database is, what the log calls it, and the statements that make its tables.

    `application_id` and `version` tell it from other files; `upgrades` has the statements that make the next version of
    an older one. `patience` is how many seconds to wait for another process that writes.
    """

    path: Path
    name: str
    tables: Sequence[str]
    application_id: int
    version: int
    patience: float
    upgrades: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])

    def opened(self, *, check: bool = False) -> sqlite3.Connection:
        """Return a connection, which the caller closes; makes the file and its folder where there are none.

        A file that is broken, which `check` looks for in all of it, or of another program, is moved aside, and a new
        one made. Raises `OSError` or `sqlite3.Error` where that cannot be, and for a file of a newer version.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except ValueError as error:
            raise OSError(errno.EINVAL, "this system does not allow its path") from error
        for _ in range(_TRIES):
            # What stands beside a file that somebody deleted must not meet the next one. Looked for first: once the new
            # file is there, another process may have made its own beside it.
            left = [path for end in ("-wal", "-shm") if os.path.lexists(path := f"{self.path}{end}")]
            with suppress(FileExistsError):  # nobody else may read it, from the first byte on
                os.close(os.open(os.path.realpath(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                for path in left:
                    with suppress(OSError):
                        os.unlink(path)  # noqa: PTH108
            found = identity(self.path)
            # Where another process moves the file aside now, none is made here, which others could read.
            path = quote(os.fsencode(self.path))
            there = f"{'file://' if path.startswith('/') else 'file:'}{path}?mode=rw"  # two slashes would begin a host
            with ExitStack() as failing:
                try:
                    connection = sqlite3.connect(
                        there, timeout=self.patience, isolation_level=None, uri=True, check_same_thread=False
                    )
                    failing.callback(connection.close)
                    connection.text_factory = readable  # or one row would make the file unusable
                    self._prepare(connection, check=check)
                    failing.pop_all()
                    return connection
                except (sqlite3.Error, UnicodeDecodeError) as error:
                    if not is_broken(error) and identity(self.path) is not None:
                        raise
            self._move_aside(found)
        raise sqlite3.DatabaseError("it keeps breaking")

    def failed(self, error: BaseException) -> None:
        """Take note of why a use of the file failed: one that is broken within is moved aside, for the next use."""
        if is_broken(error):
            with suppress(OSError, sqlite3.Error):
                self.opened(check=True).close()

    def _prepare(self, connection: sqlite3.Connection, *, check: bool) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        if check and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise _NotOurs("it is broken")
        version = self._version(connection)
        with suppress(sqlite3.OperationalError):  # another process writes, or makes the same change: so the next time
            connection.execute("PRAGMA journal_mode = WAL")
        if version == self.version:
            return
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # which commits, or rolls back
            version = self._version(connection)  # another process may have been quicker
            statements = [each for older in range(version, self.version) for each in self.upgrades.get(older, ())]
            for statement in statements if version else self.tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self.application_id}")
            connection.execute(f"PRAGMA user_version = {self.version}")

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the tables, 0 if there are none; raise sqlite3.DatabaseError if something else is."""
        program, version, tables = connection.execute(OF_FILE).fetchone()
        if program == self.application_id and version > self.version:
            raise sqlite3.DatabaseError("it is of a newer version of this program")
        is_ours = program == self.application_id and (version == self.version or version in self.upgrades)
        if (program, version, tables) != (0, 0, 0) and not (is_ours and tables >= len(self.tables)):
            raise _NotOurs("it belongs to another program")
        return int(version)

    def _move_aside(self, found: tuple[int, int] | None) -> None:
        """Move a file out of the way, unless another process has just put a good one there."""
        aside = self.path.with_name(f"{self.path.name}.broken-{int(time.time())}-{os.getpid()}")
        if found is None or identity(self.path) != found:
            return
        for end in ("-wal", "-shm", ""):  # what is in the first two must not meet the next file
            with suppress(FileNotFoundError):  # another process was quicker
                os.replace(f"{self.path}{end}", f"{aside}{end}")  # noqa: PTH105
        log.warning("%s was broken, or belonged to another program; it is now %s", self.name, aside.name)


def open_to_read(path: Path, patience: float) -> sqlite3.Connection:
    """Return a connection that writes nothing, which the caller closes. Raises `sqlite3.Error` or `OSError`."""
    connection = _to_read(path, "mode=ro", patience)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
            raise
        connection = _to_read(path, "immutable=1", patience)  # nothing at all can be written beside the file
    return connection


def _to_read(path: Path, how: str, patience: float) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, timeout=patience)
    connection.text_factory = readable
    return connection


def readable(text: bytes) -> str:
    """Return a text of a database whatever bytes it has, for `text_factory`."""
    return text.decode("utf-8", "replace")


class _NotOurs(sqlite3.DatabaseError):
    sqlite_errorcode = sqlite3.SQLITE_NOTADB


def is_broken(error: BaseException | None) -> bool:
    """Tell whether an error says that a file is broken, or none of SQLite."""
    # The second is of a message that quotes a name in the file.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN or isinstance(error, UnicodeDecodeError)


def identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another at the same path, None where there is none."""
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None
