"""The file of runs: one SQLite database in the user's state folder, a row a run. For worker threads.

Nobody owns a run: whoever has its row may look at it, follow and cancel it. Each step of a run is a function of its
row, done in one transaction: it returns the row as it is then, or None where the row forbids the step. So of any number
of processes one sends a request, and the first that sees the end of a run writes it.

Every method opens a connection, makes one short transaction, and closes it. Several accounts may share a file. Rows of
the older `runs.sqlite3` beside it are read and never written, since an older server may still use it.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, TypeAlias

from responses_mcp.errors import ResponsesMcpError
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.responses_api.background import ENDED, usable_id
from responses_mcp.responses_api.response.streaming import decode
from responses_mcp.state_file import OF_FILE, StateFile, open_to_read

FILE: Final = "research.sqlite3"
OLDER: Final = "runs.sqlite3"
APPLICATION_ID: Final = 0x6F726D73  # "orms"
VERSION: Final = 1

_OLDER_ID: Final = 0x6F726D72
_OLDER_VERSION: Final = 3
_PATIENCE: Final = 3.0  # seconds, with another process that writes
_DAY: Final = 86_400  # seconds


class RunsFileUnusable(ResponsesMcpError):
    """The file of runs cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of a run on disk. Times are seconds since 1970.

    `account` is a digest of address and key, `digest` one of the request; neither can be read back. `sent` is when the
    request went out, and None until then and after a refusal. From then on the run `may_take` so many seconds.
    `kept` tells whether the API keeps the response. `status`, `reason` and what follows are set when the run ends.
    """

    id: str
    account: str
    digest: str
    model: str
    created: float
    may_take: float
    effort: str = ""
    label: str | None = None
    tool: str = "research"
    client: str | None = None
    has_schema: bool = False
    sent: float | None = None
    response_id: str | None = None
    kept: bool = True
    cancel_asked: bool = False
    status: str | None = None
    reason: str | None = None
    maybe_paid: bool = False
    confirmed: bool = False
    ended: float | None = None
    usage: JsonObject | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether nobody has written an end."""
        return self.status is None

    @property
    def goes_on(self) -> bool:
        """Tell whether it is open, and nobody has asked to cancel it."""
        return self.is_open and not self.cancel_asked

    @property
    def key(self) -> str:
        """The id by which the API can be asked for the response, "" where there is none."""
        return self.response_id or "" if self.kept else ""

    def is_late(self, now: float) -> bool:
        """Tell whether it has taken, or took, longer than it may."""
        return now >= (self.sent or self.created) + self.may_take - 0.001


Step: TypeAlias = Callable[[Row], Row | None]
"""Returns the row as it is after a step, or None where the step is not to be done."""

_COLUMNS: Final = tuple(field.name for field in fields(Row))
_FLAGS: Final = tuple(field.name for field in fields(Row) if field.type == "bool")
_GIVEN: Final = ", ".join(f":{name}" for name in _COLUMNS)
_WRITE: Final = f"INSERT OR REPLACE INTO run ({', '.join(_COLUMNS)}) VALUES ({_GIVEN})"  # noqa: S608
_TABLES: Final = (
    f"CREATE TABLE IF NOT EXISTS run ({', '.join(_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS run_created ON run (account, created)",
)
_IN_OLDER: Final = {"effort": "''", "label": "question", "sent": "created", "kept": "durable", "digest": "''"}


class RunsFile:
    """The runs of one folder. `clock` gives seconds since 1970. Methods block, and raise `RunsFileUnusable`."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = folder / FILE
        self._clock = clock
        self._file = StateFile(
            path=self.path,
            name="the file of runs",
            tables=_TABLES,
            application_id=APPLICATION_ID,
            version=VERSION,
            patience=_PATIENCE,
        )

    def add(self, row: Row, *, may_join: Callable[[Row], bool], most: int | None) -> Row | None:
        """Add a run and return it, or one of the same account and request that goes on and that it may join.

        None where `most` runs of research go on.
        """
        with self._writing() as connection:
            going_on = _select(connection, "account = ? AND status IS NULL ORDER BY created", (row.account,))
            for found in going_on:
                if found.digest == row.digest and may_join(found):
                    return found
            if most is not None and sum(found.tool == "research" and found.goes_on for found in going_on) >= most:
                return None
            _write(connection, row)
            return row

    def change(self, row: Row, step: Step) -> Row | None:
        """Do a step of a run, and return the row as it is then; None where the step was not done.

        `row` is what was known before, and added again where it was sent and has gone.
        """
        with self._writing() as connection:
            found = next(iter(_select(connection, "id = ?", (row.id,))), row if row.sent is not None else None)
            if (new := None if found is None else step(found)) is not None:
                _write(connection, new)
            return new

    def get(self, run_id: str, account: str) -> Row | None:
        """Return a run of an account, None if there is none with that id."""
        return next(iter(self._read("id = ? AND account = ?", (run_id, account))), None)

    def recent(self, account: str, limit: int) -> list[Row]:
        """Return the last runs of an account, the newest first."""
        rows = self._read("account = ? ORDER BY created DESC, id LIMIT ?", (account, limit))
        return sorted(rows, key=lambda row: -row.created)[:limit]

    def going_on(self, account: str) -> list[Row]:
        """Return the open runs of an account, the oldest first."""
        return self._read("account = ? AND status IS NULL ORDER BY created", (account,))

    def count_going_on(self) -> int:
        """Return how many runs of all accounts have not ended; writes nothing, also where there is no file."""
        return len(_read_only(self.path, _COLUMNS, "status IS NULL AND NOT cancel_asked", ()) or ())

    def forget(self, days: int) -> None:
        """Delete runs that began so many days ago, and files that were moved aside so long ago."""
        old = self._clock() - days * _DAY
        with self._writing() as connection:
            connection.execute("DELETE FROM run WHERE created < ? AND (status IS NOT NULL OR cancel_asked)", (old,))
        with suppress(OSError):
            for aside in self.path.parent.glob("*.sqlite3*.broken-*"):
                if aside.stat().st_mtime < old:
                    aside.unlink()

    def _read(self, where: str, values: tuple[Any, ...]) -> list[Row]:
        """Return rows of this file, and of the older one beside it."""
        try:
            with self._connected() as connection:
                rows = _select(connection, where, values)
        except RunsFileUnusable:
            found = _read_only(self.path, _COLUMNS, where, values)
            if found is None:
                raise
            rows = found
        columns = tuple(_IN_OLDER.get(name, name) for name in _COLUMNS)
        older = _read_only(self.path.with_name(OLDER), columns, where, values)
        known = {row.id for row in rows}
        return rows + [row for row in older or () if row.id not in known]

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # which commits, or rolls back
                yield connection

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(self._file.opened()) as connection:
                connection.execute("PRAGMA secure_delete = ON")
                yield connection
        except (OSError, sqlite3.Error, ValueError) as error:  # the last of a text, in the file or for it
            raise RunsFileUnusable(
                f"The file of runs cannot be used ({getattr(error, 'strerror', None) or error}), so no run can start; "
                f"check the folder that research.state_dir (RESEARCH_STATE_DIR) names ({self.path.parent})."
            ) from error


def _read_only(path: Path, columns: tuple[str, ...], where: str, values: tuple[Any, ...]) -> list[Row] | None:
    """Return rows of a file that is not written; None where that cannot be read either."""
    if not path.is_file():
        return None
    with suppress(sqlite3.Error, OSError, ValueError), closing(open_to_read(path, _PATIENCE)) as connection:
        program, version, _ = connection.execute(OF_FILE).fetchone()
        is_known = (program, version) in ((APPLICATION_ID, VERSION), (_OLDER_ID, _OLDER_VERSION))
        return _select(connection, where, values, columns) if is_known else None
    return None


def _select(
    connection: sqlite3.Connection, where: str, values: tuple[Any, ...], columns: tuple[str, ...] = _COLUMNS
) -> list[Row]:
    found = connection.execute(f"SELECT {', '.join(columns)} FROM run WHERE {where}", values)  # noqa: S608
    return [row for each in found.fetchall() if (row := _row(each)) is not None]


def _write(connection: sqlite3.Connection, row: Row) -> None:
    given = {**asdict(row), "usage": None if row.usage is None else json.dumps(row.usage)}
    connection.execute(_WRITE, given)


def _row(values: tuple[Any, ...]) -> Row | None:
    """Return a row, None for one that cannot be read: such a run is not there."""
    given: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
    try:
        for name in ("created", "may_take", "sent", "ended"):
            given[name] = None if given[name] is None and name in ("sent", "ended") else float(given[name])
        given |= {name: bool(given[name]) for name in _FLAGS}
        given["usage"] = None if given["usage"] is None else as_object(decode(given["usage"].encode()))
    except (TypeError, ValueError, AttributeError, RecursionError):
        return None
    is_ours = given["status"] in (None, *ENDED) and usable_id(given["response_id"] or "_", str) is not None
    return Row(**given) if is_ours else None
