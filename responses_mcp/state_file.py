"""A database in the user's state folder: made for its owner alone, shared by processes, moved aside when it is broken.

Its writers take short transactions. After a loss of power the last of them may be missing; the file is whole.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

log = logging.getLogger(__name__)

_TRIES: Final = 3
_POLL_SECONDS: Final = 0.01
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFile:
    """Where a database is, what it is called in the log, and what makes it.

    `application_id` and `version` tell it from the files of other programs; `tables` are the statements for a new one,
    and `upgrades` those that make the next version of an older one.
    `patience` is how many seconds to wait for another process that writes. `clock` gives seconds since 1970.
    """

    path: Path
    name: str
    tables: Sequence[str]
    application_id: int
    version: int
    patience: float
    upgrades: Mapping[int, Sequence[str]] = field(default_factory=dict[int, Sequence[str]])
    clock: Callable[[], float] = time.time

    def opened(self) -> sqlite3.Connection:
        """Return a connection, which the caller closes; makes the file and its folder where there are none.

        A file that is broken, or of another program, is moved aside, and a new one made. Raises `OSError` or
        `sqlite3.Error` where that cannot be, and for a file of a newer version of this program.
        """
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except ValueError as error:
            raise OSError(errno.EINVAL, "its path is none that this system has") from error
        for _ in range(_TRIES):
            with suppress(FileExistsError):  # nobody else may read it, from the first byte on
                new = os.path.realpath(self.path)  # of a link, what it points to
                os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            before = _identity(self.path)
            try:
                connection = self._connected()
            except sqlite3.OperationalError:
                if _identity(self.path) is None:  # another process has just moved it aside
                    continue
                raise
            connection.text_factory = _readable  # or one row would make the file unusable
            try:
                self._prepare(connection)
            except BaseException as error:
                connection.close()
                if not _is_broken(error):
                    raise
                self._move_aside(before)
            else:
                return connection
        raise sqlite3.DatabaseError("it keeps breaking")

    def failed(self, error: BaseException) -> None:
        """Take note of why a use of the file failed: one that is broken within is moved aside, for the next use."""
        if not _is_broken(error):
            return
        before = _identity(self.path)
        try:
            with closing(self._connected()) as connection:
                is_broken = connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as worse:
            is_broken = _is_broken(worse)
        if is_broken:
            with suppress(OSError):
                self._move_aside(before)

    def _connected(self) -> sqlite3.Connection:
        # Another process may have moved the file aside by now: none is made here, where others could read it.
        path = quote(os.fsencode(self.path))
        there = f"{'file://' if path.startswith('/') else 'file:'}{path}?mode=rw"  # two slashes would begin a host
        return sqlite3.connect(there, timeout=self.patience, isolation_level=None, uri=True)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        if self._version(connection) == self.version:
            return
        self._write_ahead(connection)
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # which commits, or rolls back
            version = self._version(connection)  # another process may have been quicker
            statements = [each for older in range(version, self.version) for each in self.upgrades.get(older, ())]
            for statement in statements if version else self.tables:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self.application_id}")
            connection.execute(f"PRAGMA user_version = {self.version}")

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        # For this one change SQLite does not wait itself: of two that would make it at the same moment it refuses one.
        until = time.monotonic() + self.patience
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                is_locked = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_locked or time.monotonic() >= until:
                    raise
            else:
                return
            time.sleep(_POLL_SECONDS)

    def _version(self, connection: sqlite3.Connection) -> int:
        """Return the version of the tables, 0 if there are none; raise sqlite3.DatabaseError if something else is."""
        program, version, tables = connection.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), "
            "(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if (program, version, tables) == (0, 0, 0):
            return 0
        if program == self.application_id and version > self.version:
            raise sqlite3.DatabaseError("it is of a newer version of this program")
        ours = program == self.application_id and (version == self.version or version in self.upgrades)
        if not ours or tables < len(self.tables):
            error = sqlite3.DatabaseError("it belongs to another program")
            error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
            raise error
        return int(version)

    def _move_aside(self, found: tuple[int, int] | None) -> None:
        """Move a file out of the way, unless another process has just put a good one there."""
        aside = self.path.with_name(f"{self.path.name}.broken-{int(self.clock())}-{os.getpid()}")
        if found is None or _identity(self.path) != found:
            return
        for end in ("-wal", "-shm"):  # what is in them must not meet the next file
            with suppress(FileNotFoundError):
                os.replace(f"{self.path}{end}", f"{aside}{end}")  # noqa: PTH105
        with suppress(FileNotFoundError):  # another process was quicker
            os.replace(self.path, aside)  # noqa: PTH105
            log.warning("%s was broken, or belonged to another program; it is now %s", self.name, aside.name)


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _is_broken(error: BaseException) -> bool:
    if isinstance(error, UnicodeDecodeError):  # of a message that quotes a name in the file
        return True
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
