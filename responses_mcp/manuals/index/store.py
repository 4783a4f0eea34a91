"""The index on disk: SQLite with full-text search, one file for a folder of manuals.

Each manual has a full-text table of its own, so that how rare a token is does not depend on the other manuals. Its rows
are sections: the tokens, and beside them the text as written. The rows of a file have numbers that follow each other,
which no row of another manual has.

Several processes may use one file: SQLite's own lock lets one write at a time, readers see the last finished state. A
file that is broken or foreign is replaced by a new one, to which all processes move when they next use it; another
version of this program has a file of its own. A new file takes the place of older ones that no process has open.
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
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from responses_mcp.manuals.cancellation import POLL_SECONDS, CancellationCheck, FairLock, unchecked
from responses_mcp.manuals.index.tokens import FORM

log = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID: Final = 0x6F726D63  # "ormc"
VERSION: Final = 8 * 1000 + FORM

_TABLES: Final = (
    """CREATE TABLE manual (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, generation INTEGER NOT NULL,
    files INTEGER NOT NULL, sections INTEGER NOT NULL, characters INTEGER NOT NULL
)""",
    """CREATE TABLE file (
    id INTEGER PRIMARY KEY, manual INTEGER NOT NULL, path TEXT NOT NULL,
    stamp BLOB NOT NULL, digest BLOB NOT NULL, note TEXT, first INTEGER NOT NULL, sections INTEGER NOT NULL,
    UNIQUE (manual, path)
)""",
    "CREATE INDEX file_of_section ON file (first, sections)",
    "CREATE TABLE model (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, dimensions INTEGER NOT NULL)",
    "CREATE TABLE vector (section INTEGER PRIMARY KEY, model INTEGER NOT NULL, data BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_STEPS: Final = 2000  # of SQLite's virtual machine between two checks: well under a millisecond
_MOST_IDLE: Final = 4
_TRIES: Final = 5
_PATIENCE: Final = 3.0  # seconds, with a writer that does nothing: it may have been stopped
_GIVEN_BACK: Final = 1.0  # seconds in which searches that meet the same broken file come to an end
_SMALL_LOG: Final = 1024 * 1024  # bytes of the journal that may stay on a full disk
_LARGEST_LOG: Final = 8 * 1024 * 1024  # bytes to which SQLite cuts its journal when it is done with it
_UNREADABLE: Final = (  # how SQLite begins to say that it cannot make sense of its tables
    "no such",
    "vtable constructor",
    "unsupported file format",
    "invalid fts5",
    "unrecognized",
    "malformed",
    "parse error in",
    "error in tokenizer",
)
_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)

_File = tuple[int, int]  # device and number: a file that replaces another has another number
_MEMORY: Final[_File] = (0, 0)


class Unusable(Exception):  # becomes a ManualsError, or a move into memory
    """The index file cannot be used; the message says why, without its path."""


class Blocked(Unusable):
    """Another process holds the lock for writing, and does nothing."""

    def __init__(self) -> None:
        super().__init__("another process holds its lock and does nothing")


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
        return str(error).startswith(_UNREADABLE)
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
        self._idle_lock = threading.Lock()
        # In memory for the only connection, else for opening and deleting the file. SQLite opens the journals by name a
        # little later than the file itself; if they were those of the next file, this process would cut the shared
        # memory that it uses.
        self._lock = FairLock()
        self._closed = False
        self._stalled: object = None  # how the file was when somebody last waited in vain

    @contextmanager
    def reading(self, check: CancellationCheck) -> Generator[sqlite3.Connection]:
        """Give out a connection that shows one state of the index; what it does stops when `check` raises.

        Raises Unusable when there is none to be had, sqlite3.DatabaseError when the file is broken, and what `check`
        raises.
        """
        with self._connection(check) as connection:
            _when_unlocked(partial(_begin_reading, connection), check)
            yield connection

    @contextmanager
    def writing(self, check: CancellationCheck) -> Generator[sqlite3.Connection]:
        """Write in one transaction, after other writers; nothing of it stays when the block fails.

        Raises as above; Blocked when a writer has done nothing for three seconds, and at once as long as it goes on so.
        """
        with self._connection(check) as connection:
            self._begin_writing(connection, check)
            yield connection
            _when_unlocked(connection.commit, check)

    def shrink(self, check: CancellationCheck) -> bool:
        """Give back the room that the journal takes, and tell whether little of it is left.

        That fails while others read it, and on a disk with no room for what it holds.
        """
        with self._connection(check) as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        state = None if self.path is None else _state_of(self.path.with_name(f"{self.path.name}-wal"))
        return state is None or state[2] <= _SMALL_LOG

    def probe(self, check: CancellationCheck) -> None:
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
        with self._idle_lock:
            ours = [file for _, file in self._idle]
        self._close_idle()  # Windows deletes no file that is open
        if self.path is not None:
            with self._lock.hold(unchecked):
                if not ours or self._file() in ours:  # nobody has replaced it yet
                    self._remove(self.path)

    def _remove(self, path: Path) -> None:
        until = time.monotonic() + (_GIVEN_BACK if os.name == "nt" else 0)
        while True:
            try:
                _remove(path)
            except Unusable:
                if time.monotonic() >= until:
                    raise
            else:
                return
            time.sleep(POLL_SECONDS)
            self._close_idle()  # what a sibling thread has given back by now

    def is_replaced(self) -> bool:
        """Tell whether connections are of a file that is gone: what fails may go well with the next."""
        now = self._file()
        with self._idle_lock:
            return any(file != now for _, file in self._idle)

    def close(self) -> None:
        """Close all connections; one in use is closed when it comes back. Further use raises Unusable."""
        self._closed = True
        self._close_idle()

    @contextmanager
    def _connection(self, check: CancellationCheck) -> Generator[sqlite3.Connection]:
        with self._lock.hold(check) if self.path is None else nullcontext():
            connection, file = self._take(check)
            try:
                with _stoppable(connection, check):
                    yield connection
            except UnicodeDecodeError as error:  # what SQLite says has a piece of the file in it
                raise broken(str(error)) from error
            finally:
                self._give_back(connection, file)

    def _begin_writing(self, connection: sqlite3.Connection, check: CancellationCheck) -> None:
        state = self.written()
        until = time.monotonic() + (0 if state is not None and state == self._stalled else _PATIENCE)
        while not _begun(connection):
            if (now := self.written()) != state:
                state, until = now, time.monotonic() + _PATIENCE
            if time.monotonic() >= until:
                self._stalled = state
                raise Blocked
            check()
            time.sleep(POLL_SECONDS)

    def written(self) -> object:
        """Return what changes whenever somebody writes to the file; None if only this object can."""
        if self.path is None:
            return None
        return _state_of(self.path), _state_of(self.path.with_name(f"{self.path.name}-wal"))

    def _take(self, check: CancellationCheck) -> tuple[sqlite3.Connection, _File | None]:
        # Somebody may have deleted or replaced the file: what is written to the old one would be lost.
        now = self._file()
        with self._idle_lock:
            if self._closed:
                raise Unusable("it is closed")
            # In one step: another thread may just give back a connection to the old one.
            stale = [each for each in self._idle if now is None or each[1] != now]
            self._idle = [each for each in self._idle if each not in stale]
            taken = self._idle.pop() if self._idle else None
        for connection, _ in stale:
            connection.close()
        if taken is not None:
            return taken
        if self.path is None:
            return _opened(":memory:", check), _MEMORY
        with self._lock.hold(check):
            return self._opened_at(self.path, check)

    def _opened_at(self, path: Path, check: CancellationCheck) -> tuple[sqlite3.Connection, _File | None]:
        why: Exception | None = None
        for _ in range(_TRIES):
            state = _state_of(path)
            try:
                connection = _opened(str(path), check)
            except sqlite3.DatabaseError as error:
                why = error
                if not is_broken(error):  # for good, or while another process replaces the file
                    check()
                    time.sleep(POLL_SECONDS)
                # No database, or a foreign one, stands where the index should. Its number may be another's by now.
                elif _state_of(path) == state:
                    _remove(path)
                    log.warning("manuals: a file that is no index stood in its place and is replaced (%s)", error)
                continue
            file = self._file()
            if state is None or state[:2] == file:
                return connection, file
            connection.close()
        raise Unusable(str(why or "its file is replaced all the time")) from why

    def _file(self) -> _File | None:
        state = _state_of(self.path) if self.path is not None else _MEMORY
        return state and state[:2]

    def _give_back(self, connection: sqlite3.Connection, file: _File | None) -> None:
        with self._idle_lock:
            if not self._closed and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, file))
                return
        connection.close()

    def _close_idle(self) -> None:
        """Close the connections that nobody uses."""
        with self._idle_lock:
            closing, self._idle = self._idle, []
        for connection, _ in closing:
            connection.close()


@contextmanager
def _stoppable(connection: sqlite3.Connection, check: CancellationCheck) -> Generator[None]:
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


def _begun(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True


def _when_unlocked(step: Callable[[], T], check: CancellationCheck, patience: float = float("inf")) -> T:
    """Do `step` as soon as no other connection holds a lock on the file. Waiting inside SQLite could not be stopped."""
    until = time.monotonic() + patience
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                raise
        if time.monotonic() >= until:
            raise Blocked
        check()
        time.sleep(POLL_SECONDS)


def _begin_reading(connection: sqlite3.Connection) -> None:
    """Begin a transaction and read: from the first row on, everything read is of one state."""
    if not connection.in_transaction:  # else a second try
        connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _opened(path: str, check: CancellationCheck) -> sqlite3.Connection:
    """Open a connection to an index, made if need be. Raises sqlite3.DatabaseError, and what `check` raises."""
    if path != ":memory:":
        try:
            Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Unusable(error.strerror or type(error).__name__) from error
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        _when_unlocked(partial(_prepare, connection, path), check, _PATIENCE)
    except UnicodeDecodeError as error:
        connection.close()
        raise broken(str(error)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
    connection.execute("PRAGMA temp_store = MEMORY")  # another full disk must not pass for that of the index
    if _is_index(connection):
        return
    with suppress(FileNotFoundError):  # before there is anything in it that others must not read
        os.chmod(path, 0o600)  # noqa: PTH101
    connection.execute("PRAGMA page_size = 16384")  # most rows fit into a half of it
    connection.execute("PRAGMA journal_mode = WAL")  # readers go on while somebody writes
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # which commits, or rolls back
        if not _is_index(connection):  # another process may have been quicker
            for statement in _TABLES:
                connection.execute(statement)
    _remove_older(Path(path))


def _remove_older(path: Path) -> None:
    """Remove what earlier versions made of the same manuals, unless a process has it open or vectors were paid for."""
    name, _, _ = path.stem.rpartition("-")
    for each in path.parent.glob(f"{name}-*.sqlite3") if name else ():
        version = each.stem.rpartition("-")[2]
        if not version.isdecimal() or int(version) >= VERSION:
            continue
        with suppress(sqlite3.Error, OSError, Unusable):
            there = f"{each.absolute().as_uri()}?mode=rw"  # or one that is removed meanwhile would be made anew, empty
            with closing(sqlite3.connect(there, timeout=0, isolation_level=None, uri=True)) as older:
                unused = older.execute("SELECT 1 FROM vector LIMIT 1").fetchone() is None
                # SQLite leaves this mode for one that needs the file alone.
                unused = unused and older.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
            if unused:
                _remove(each)


def _is_index(connection: sqlite3.Connection) -> bool:
    """Tell whether the tables are there; raise sqlite3.DatabaseError if something else is."""
    # One statement, so that what it says is of one state.
    ours, version, tables, known = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version), "
        "count(*), count(CASE WHEN name IN ('manual', 'file', 'model', 'vector') THEN 1 END) "
        "FROM sqlite_master"
    ).fetchone()
    if (ours, version, tables) == (0, 0, 0):
        return False
    if (ours, version, known) != (APPLICATION_ID, VERSION, 4):
        raise broken("not an index of this program")
    return True


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
