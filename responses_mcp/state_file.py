"""A database in the user's state folder: made for its owner alone, shared by processes, moved aside when it is foreign.

Its writers take short transactions. After a loss of power the last of them may be missing; the file is whole.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

OF_FILE: Final = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
"""Asks for the program that a database is of, for the version of its tables, and how many of them there are."""
_UNWRITABLE: Final = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """Where a database is, what the log calls it, and the statements that make its tables where there are none.

    `application_id` and `version` tell it from other files. `patience` is how many seconds to wait for another process
    that writes.
    """

    path: Path
    name: str
    tables: Sequence[str]
    application_id: int
    version: int
    patience: float

    def opened(self) -> sqlite3.Connection:
        """Return a connection, which the caller closes; makes the file and its folder where there are none.

        A file that is no database, or of another program, is moved aside, and a new one made. Raises `OSError`,
        `sqlite3.Error` or `ValueError` where that cannot be, and for a file of a newer version.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return self._connected()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:  # it is no database, or not ours
            self._move_aside()
        return self._connected()

    def _connected(self) -> sqlite3.Connection:
        left = [path for end in ("-wal", "-shm") if (path := Path(f"{self.path}{end}")).exists()]
        with suppress(FileExistsError):  # nobody else may read it, from the first byte on
            os.close(os.open(os.path.realpath(self.path), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            for path in left:  # of a file that somebody deleted, which a server may still have open
                path.unlink(missing_ok=True)
        connection = _connection(self.path, "mode=rw", self.patience)  # makes none, which others could read
        try:
            connection.execute("PRAGMA synchronous = NORMAL")
            if not self.is_made(connection):
                with suppress(sqlite3.OperationalError):  # another process makes the same change
                    connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                with connection:  # which commits, or rolls back
                    for statement in self.tables:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id = {self.application_id}")
                    connection.execute(f"PRAGMA user_version = {self.version}")
        except BaseException:
            connection.close()
            raise
        return connection

    def is_made(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a database has our tables, or none yet; raise sqlite3.DatabaseError if it has others."""
        program, version, tables = connection.execute(OF_FILE).fetchone()
        if program == self.application_id and version > self.version:
            raise sqlite3.OperationalError("it is of a newer version of this program")
        is_ours = (program, version) == (self.application_id, self.version) and tables >= len(self.tables)
        if not is_ours and (program, version, tables) != (0, 0, 0):
            raise sqlite3.DatabaseError("it belongs to another program")
        return is_ours

    def _move_aside(self) -> None:
        aside = self.path.with_name(f"{self.path.name}.broken-{int(time.time())}-{os.getpid()}")
        for end in ("-wal", "-shm", ""):  # what is in the first two must not meet the next file
            with suppress(FileNotFoundError):
                os.replace(f"{self.path}{end}", f"{aside}{end}")  # noqa: PTH105
        log.warning("%s was broken, or belonged to another program; it is now %s", self.name, aside.name)


def open_to_read(path: Path, patience: float) -> sqlite3.Connection:
    """Return a connection that writes nothing, which the caller closes. Raises `sqlite3.Error` or `OSError`."""
    connection = _connection(path, "mode=ro", patience)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
            raise
        connection = _connection(path, "immutable=1", patience)  # nothing at all can be written beside the file
    return connection


def _connection(path: Path, how: str, patience: float) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?{how}"
    connection = sqlite3.connect(address, timeout=patience, isolation_level=None, uri=True, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # one row must not hide the others
    return connection
