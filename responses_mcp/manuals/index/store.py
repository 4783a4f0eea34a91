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
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from responses_mcp.manuals.cancellation import POLL_SECONDS, CancellationCheck, holding
from responses_mcp.manuals.index.tokens import FORM

log = logging.getLogger(__name__)

T = TypeVar("T")

APPLICATION_ID: Final = 0x6F726D63  # "ormc"
VERSION: Final = 9 * 1000 + FORM


class Layout(NamedTuple):
    """What a file has: how its tables and their indexes are made, by their names."""

    version: int
    tables: Mapping[str, str]


INDEX: Final = Layout(
    VERSION,
    {
        "manual": """CREATE TABLE manual (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, generation INTEGER NOT NULL,
    files INTEGER NOT NULL, sections INTEGER NOT NULL, characters INTEGER NOT NULL
)""",
        "file": """CREATE TABLE file (
    id INTEGER PRIMARY KEY, manual INTEGER NOT NULL, path TEXT NOT NULL,
    stamp BLOB NOT NULL, digest BLOB NOT NULL, note TEXT, first INTEGER NOT NULL, sections INTEGER NOT NULL,
    UNIQUE (manual, path)
)""",
        "file_of_section": "CREATE INDEX file_of_section ON file (first, sections)",
    },
)
_STEPS: Final = 2000  # of SQLite's virtual machine between two checks: well under a millisecond
_MOST_IDLE: Final = 4
_TRIES: Final = 5
_PATIENCE: Final = 3.0  # seconds, with a writer that does nothing: it may have been stopped
_GIVEN_BACK: Final = 1.0  # seconds in which searches that meet the same broken file come to an end
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


def older_paths(path: Path) -> list[Path]:
    """Return the indexes that earlier versions made of the same manuals, which have an index at `path` now."""
    name, _, _ = path.stem.rpartition("-")
    versions = {each: each.stem.rpartition("-")[2] for each in path.parent.glob(f"{name}-*.sqlite3")}
    return [each for each, version in versions.items() if version.isdecimal() and int(version) < VERSION]


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
    """Connections to one file. `path` None keeps it in memory, with one connection for everybody."""

    def __init__(self, path: Path | None, layout: Layout = INDEX) -> None:
        self.path = path
        self._layout = layout
        self._idle: list[tuple[sqlite3.Connection, _File | None]] = []
        self._idle_lock = threading.Lock()
        # In memory for the only connection, else for opening and deleting the file. SQLite opens the journals by name a
        # little later than the file itself; if they were those of the next file, this process would cut the shared
        # memory that it uses.
        self._lock = threading.Lock()
        self._closed = False
        self._stalled: object = None  # how the file was when somebody last waited in vain

    @contextmanager
    def reading(self, check: CancellationCheck) -> Generator[sqlite3.Connection]:
        """Give out a connection that shows one state of the file; what it does stops when `check` raises.

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
            before = self.written()
            patience = 0 if before is not None and before == self._stalled else _PATIENCE
            try:
                _when_unlocked(partial(connection.execute, "BEGIN IMMEDIATE"), check, patience, self.written)
            except Blocked:
                self._stalled = self.written()
                raise
            yield connection
            _when_unlocked(connection.commit, check)

    def shrink(self, check: CancellationCheck) -> None:
        """Give back the room that the journal takes, unless others read it or the disk is too full for it."""
        with self._connection(check) as connection, suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def probe(self, check: CancellationCheck) -> None:
        """Raise Unusable or sqlite3.OperationalError when nothing can be written to the file."""
        with self._connection(check) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
                # To begin is allowed even where all is read-only.
                connection.execute(f"PRAGMA user_version = {self._layout.version}")
            except sqlite3.OperationalError as error:
                if not _is_busy(error):  # somebody else can write
                    raise

    def discard(self) -> None:
        """Throw away a broken file; the next use begins a new one. Raises Unusable when that cannot be done."""
        with self._idle_lock:
            ours = [file for _, file in self._idle]
        until = time.monotonic() + (_GIVEN_BACK if os.name == "nt" else 0)
        with self._lock:
            while self.path is not None and (not ours or self._file() in ours):  # else somebody has replaced it
                self._close_idle()  # also what sibling threads have given back by now: Windows deletes no open file
                try:
                    remove(self.path)
                except Unusable:
                    if time.monotonic() >= until:
                        raise
                else:
                    return
                time.sleep(POLL_SECONDS)
        self._close_idle()

    def is_replaced(self) -> bool:
        """Tell whether connections are of a file that is gone: what fails may go well with the next."""
        now = self._file()
        with self._idle_lock:
            return any(file != now for _, file in self._idle)

    def close(self) -> None:
        """Close all connections; one in use is closed when it comes back. Further use raises Unusable."""
        self._closed = True
        self._close_idle()

    def written(self) -> object:
        """Return what changes whenever somebody writes to the file; None if only this object can."""
        if self.path is None:
            return None
        return _state_of(self.path), _state_of(self.path.with_name(f"{self.path.name}-wal"))

    @contextmanager
    def _connection(self, check: CancellationCheck) -> Generator[sqlite3.Connection]:
        with holding(self._lock, check) if self.path is None else nullcontext():
            connection, file = self._take(check)
            try:
                with _stoppable(connection, check):
                    yield connection
            except UnicodeDecodeError as error:  # what SQLite says has a piece of the file in it
                raise broken(str(error)) from error
            finally:
                self._give_back(connection, file)

    def _take(self, check: CancellationCheck) -> tuple[sqlite3.Connection, _File | None]:
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
            return self._open(":memory:", check), _MEMORY
        with holding(self._lock, check):
            return self._opened_at(self.path, check)

    def _opened_at(self, path: Path, check: CancellationCheck) -> tuple[sqlite3.Connection, _File | None]:
        why: Exception | None = None
        for _ in range(_TRIES):
            state = _state_of(path)
            try:
                connection = self._open(str(path), check)
            except sqlite3.DatabaseError as error:
                why = error
                if not is_broken(error):  # for good, or while another process replaces the file
                    check()
                    time.sleep(POLL_SECONDS)
                # No database, or a foreign one, stands where the index should. Its number may be another's by now.
                elif _state_of(path) == state:
                    remove(path)
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

    def _open(self, path: str, check: CancellationCheck) -> sqlite3.Connection:
        """Open a connection; a file is made if need be. Raises sqlite3.DatabaseError, and what `check` raises."""
        if path != ":memory:":
            try:
                Path(path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise Unusable(error.strerror or type(error).__name__) from error
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _when_unlocked(partial(self._prepare, connection, path), check, _PATIENCE)
        except BaseException as error:
            connection.close()
            if isinstance(error, UnicodeDecodeError):
                raise broken(str(error)) from error
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection, path: str) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
        connection.execute("PRAGMA temp_store = MEMORY")  # another full disk must not pass for that of the file
        if self._is_made(connection):
            return
        with suppress(FileNotFoundError):  # before there is anything in it that others must not read
            os.chmod(path, 0o600)  # noqa: PTH101
        connection.execute("PRAGMA page_size = 16384")  # most rows fit into a half of it
        connection.execute("PRAGMA journal_mode = WAL")  # readers go on while somebody writes
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # which commits, or rolls back
            if not self._is_made(connection):  # another process may have been quicker
                for statement in self._layout.tables.values():
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {self._layout.version}")

    def _is_made(self, connection: sqlite3.Connection) -> bool:
        """Tell whether the tables are there; raise sqlite3.DatabaseError if something else is."""
        # One statement, so that what it says is of one state.
        ours, version, names = connection.execute(
            "SELECT (SELECT application_id FROM pragma_application_id), "
            "(SELECT user_version FROM pragma_user_version), group_concat(name) FROM sqlite_master"
        ).fetchone()
        if (ours, version, names) == (0, 0, None):
            return False
        if (ours, version) != (APPLICATION_ID, self._layout.version) or not self._layout.tables.keys() <= {
            *(names or "").split(",")
        }:
            raise broken("not a file of this program")
        return True


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


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _when_unlocked(
    step: Callable[[], T],
    check: CancellationCheck,
    patience: float = float("inf"),
    state: Callable[[], object] = lambda: None,
) -> T:
    """Do `step` as soon as no other connection holds a lock on the file. Waiting inside SQLite could not be stopped.

    Raises Blocked when `state` has stayed the same for `patience` seconds.
    """
    seen, until = state(), time.monotonic() + patience
    while True:
        try:
            return step()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        if (now := state()) != seen:
            seen, until = now, time.monotonic() + patience
        if time.monotonic() >= until:
            raise Blocked
        check()
        time.sleep(POLL_SECONDS)


def _begin_reading(connection: sqlite3.Connection) -> None:
    """Begin a transaction and read: from the first row on, everything read is of one state."""
    if not connection.in_transaction:  # else a second try
        connection.execute("BEGIN")
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()


def _state_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # at every use, so it has to be quick
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def remove(path: Path) -> None:
    """Remove a file with its journals. Raises Unusable when that cannot be done."""
    try:
        for end in ("-wal", "-shm", "-journal", ""):  # the journals first, because they must not meet the next one
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{end}")  # noqa: PTH108
    except OSError as error:
        raise Unusable(f"it is broken and cannot be deleted: {error.strerror}") from error
