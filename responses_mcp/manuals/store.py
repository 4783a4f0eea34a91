"""The index on disk: SQLite with full-text search, one file for a folder of manuals.

A row of `section` is what a search finds. What the full-text table took of it can be made again from the row, because
rows of a contentless table are deleted by giving exactly what was put in. Each manual has a full-text table of its own,
so that how rare a word is does not depend on the other manuals.

Several processes may use one file: writers take turns by SQLite's own lock, readers see the last finished state. A
file that is broken or foreign is replaced by a new one, to which all processes move when they next use it; another
version of this program has a file of its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
import threading
import time
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from responses_mcp.manuals.checks import PATIENCE, Check, Turns, unchecked
from responses_mcp.manuals.words import FOLDING

log = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID: Final = 0x6F726D63  # "ormc"
VERSION: Final = 2 * 1000 + FOLDING

_TABLES: Final = (
    """CREATE TABLE manual (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, generation INTEGER NOT NULL,
    files INTEGER NOT NULL, sections INTEGER NOT NULL, characters INTEGER NOT NULL
)""",
    """CREATE TABLE file (
    id INTEGER PRIMARY KEY, manual INTEGER NOT NULL, path TEXT NOT NULL,
    stamp BLOB NOT NULL, digest BLOB NOT NULL, note TEXT,
    UNIQUE (manual, path)
)""",
    """CREATE TABLE section (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL,
    title TEXT NOT NULL, crumbs TEXT NOT NULL, body TEXT NOT NULL
)""",
    "CREATE INDEX section_of_file ON section (file)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_STEPS: Final = 2000  # of SQLite's virtual machine between two looks at whether to stop: well under a millisecond
_MOST_IDLE: Final = 4
_TRIES: Final = 5
_LARGEST_LOG: Final = 8 * 1024 * 1024  # bytes to which SQLite cuts its journal when it is done with it
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)

_File = tuple[int, int]  # device and number: a file that replaces another has another number


class Unusable(Exception):  # becomes a ManualsError, or a move into memory
    """The index file cannot be used; the message says why, without its path."""


def index_path(folder: Path, root: Path) -> Path:
    """Return the place of the index of the manuals in `root`.

    A Python with another edition of Unicode folds some words differently, so it has an index of its own.
    """
    name = hashlib.sha256(os.fsencode(root) + b"\0" + unicodedata.unidata_version.encode()).hexdigest()[:24]
    return folder / f"{name}-{VERSION}.sqlite3"


def is_broken(error: Exception) -> bool:
    """Tell whether an error of SQLite says that the file is no index, or not a whole one."""
    if not isinstance(error, sqlite3.DatabaseError):
        return False
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:  # raised by Python
        return "decode" in str(error)
    if code == sqlite3.SQLITE_ERROR:  # also what it says to a query that it does not understand
        return str(error).startswith(("no such", "vtable constructor", "unsupported file format"))
    # A constraint fails only when an index contradicts its table.
    return code & 0xFF in (*_BROKEN, sqlite3.SQLITE_CONSTRAINT)


def broken(message: str) -> sqlite3.DatabaseError:
    """Return the error of a file that is no index, or not a whole one."""
    error = sqlite3.DatabaseError(message)
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


class Store:
    """Connections to one index. `path` None keeps it in memory, with one connection for everybody."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._idle: list[tuple[sqlite3.Connection, _File | None]] = []
        self._lock = threading.Lock()
        self._turns = Turns()  # for the only connection, in memory
        # For opening and deleting the file. SQLite opens the journals by name a little later than the file itself; if
        # they were those of the next file, this process would cut the shared memory that it uses.
        self._places = Turns()
        self._closed = False

    @contextmanager
    def reading(self, check: Check) -> Generator[sqlite3.Connection]:
        """Give out a connection that shows one state of the index; what it does stops when `check` raises.

        Raises Unusable when there is none to be had, sqlite3.DatabaseError when the file is broken, and what `check`
        raises.
        """
        with self._connection(check) as connection:
            _patiently(partial(_look, connection), check)
            yield connection

    @contextmanager
    def writing(self, check: Check) -> Generator[sqlite3.Connection]:
        """Write in one transaction, after other writers; nothing of it stays when the block fails. Raises as above."""
        with self._connection(check) as connection:
            _patiently(partial(connection.execute, "BEGIN IMMEDIATE"), check)
            yield connection
            _patiently(connection.commit, check)

    def probe(self, check: Check) -> None:
        """Raise Unusable or sqlite3.OperationalError when nothing can be written to the index."""
        with self._connection(check) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                # To begin is allowed even where all is read-only.
                connection.execute(f"PRAGMA user_version = {VERSION}")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:  # somebody else can write
                    raise

    def discard(self) -> None:
        """Throw away a broken file; the next use begins a new one. Raises Unusable when that cannot be done."""
        with self._lock:
            ours = [file for _, file in self._idle]
        if self.path is not None:
            with self._places.turn(unchecked):
                if not ours or _file_at(self.path) in ours:  # nobody has replaced it yet
                    _remove(self.path)
        self._let_go(lambda _: True)

    def is_replaced(self) -> bool:
        """Tell whether connections are of a file that is gone: what fails may go well with the next."""
        now = None if self.path is None else _file_at(self.path)
        with self._lock:
            return any(file != now for _, file in self._idle)

    def close(self) -> None:
        """Close all connections; one in use is closed when it comes back. Further use raises Unusable."""
        self._closed = True
        self._let_go(lambda _: True)

    @contextmanager
    def _connection(self, check: Check) -> Generator[sqlite3.Connection]:
        with self._turns.turn(check) if self.path is None else nullcontext():
            connection, file = self._take(check)
            try:
                with _stoppable(connection, check):
                    yield connection
            finally:
                self._give_back(connection, file)

    def _take(self, check: Check) -> tuple[sqlite3.Connection, _File | None]:
        file = None if self.path is None else _file_at(self.path)
        # Somebody may have deleted or replaced the file: what is written to the old one would be lost.
        self._let_go(lambda other: other != file)
        with self._lock:
            if self._closed:
                raise Unusable("it is closed")
            if self._idle:
                return self._idle.pop()
        if self.path is None:
            return _opened(":memory:", check), None
        with self._places.turn(check):
            return self._opened_at(self.path, check)

    def _opened_at(self, path: Path, check: Check) -> tuple[sqlite3.Connection, _File | None]:
        why: Exception | None = None
        for _ in range(_TRIES):
            file, state = _file_at(path), _state_of(path)
            try:
                connection = _opened(str(path), check)
            except sqlite3.DatabaseError as error:
                why = error
                if not is_broken(error):  # for good, or while another process replaces the file
                    check()
                    time.sleep(PATIENCE)
                # No database, or a foreign one, stands where the index should. Its number may be another's by now.
                elif _state_of(path) == state:
                    log.warning("manuals: a file that is no index stood in its place and is replaced (%s)", error)
                    _remove(path)
                continue
            if file in (None, _file_at(path)):
                return connection, _file_at(path)
            connection.close()
        raise Unusable(str(why or "its file is replaced all the time")) from why

    def _give_back(self, connection: sqlite3.Connection, file: _File | None) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, file))
                return
        connection.close()

    def _let_go(self, unwanted: Callable[[_File | None], bool]) -> None:
        with self._lock:
            going = [each for each in self._idle if unwanted(each[1])]
            if going:
                self._idle = [each for each in self._idle if each not in going]
        for connection, _ in going:
            connection.close()


@contextmanager
def _stoppable(connection: sqlite3.Connection, check: Check) -> Generator[None]:
    reasons: list[BaseException] = []

    def stop() -> bool:
        try:
            check()
        except BaseException as reason:  # noqa: BLE001  # carried past SQLite, which knows no exceptions
            reasons.append(reason)
        return bool(reasons)

    connection.set_progress_handler(stop, _STEPS)
    try:
        yield
        if reasons:  # somebody took the stop for a failure of a query
            raise reasons[0]
    except sqlite3.OperationalError:
        if reasons:
            raise reasons[0] from None
        raise
    finally:
        connection.set_progress_handler(None, 0)
        if connection.in_transaction:
            connection.rollback()


def _patiently(step: Callable[[], T], check: Check) -> T:
    """Do `step` as soon as no other connection is in its way. Waiting inside SQLite could not be stopped."""
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        check()
        time.sleep(PATIENCE)


def _look(connection: sqlite3.Connection) -> None:
    """Begin to read. From the first row on everything is of one state, and nobody is in the way."""
    connection.execute("BEGIN")
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.rollback()
        raise


def _opened(path: str, check: Check) -> sqlite3.Connection:
    """Open a connection to an index, made if need be. Raises sqlite3.DatabaseError, and what `check` raises."""
    if path != ":memory:":
        try:
            Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(error.strerror or type(error).__name__) from error
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        _patiently(partial(_prepare, connection, path), check)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
    if _is_index(connection):
        return
    with suppress(FileNotFoundError):  # before there is anything in it that others must not read
        os.chmod(path, 0o600)  # noqa: PTH101
    connection.execute("PRAGMA journal_mode = WAL")  # readers go on while somebody writes
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_index(connection):  # another process may have been quicker
            for statement in _TABLES:
                connection.execute(statement)
        connection.commit()
    finally:
        if connection.in_transaction:
            connection.rollback()


def _is_index(connection: sqlite3.Connection) -> bool:
    """Tell whether the tables are there; raise sqlite3.DatabaseError if something else is."""
    # One statement, so that what it says is of one state.
    ours, version, tables, known = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), "
        "count(*), count(CASE WHEN name IN ('manual', 'file', 'section') THEN 1 END) FROM sqlite_master"
    ).fetchone()
    if (ours, version, tables) == (0, 0, 0):
        return False
    if (ours, version, known) != (APPLICATION_ID, VERSION, 3):
        raise broken("not an index of this program")
    return True


def _file_at(path: Path) -> _File | None:
    state = _state_of(path)
    return state and state[:2]


def _state_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # at every use, so it has to be quick
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _remove(path: Path) -> None:
    try:
        for end in ("-wal", "-shm", "-journal", ""):  # the journals first, because they must not meet the next one
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{end}")  # noqa: PTH108
    except OSError as error:
        raise Unusable(f"it is broken and cannot be deleted: {error.strerror}") from error
