"""The file of runs: one SQLite database in the user's state folder, a row a run. For worker threads.

A row is written before the API is asked, so that no crash can hide a request that was paid for. Each run that goes on
has an owner, who says every few seconds that it is still there; the lease of one that does not ends, and whoever finds
the row takes it over. That is one conditional UPDATE, so of two servers one gets it.

Every method opens a connection, makes one short transaction, and closes it: nothing is held between them, in any
thread, and a file that others replace is not used on. Several processes, also of different accounts, may share a file.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Callable, Container, Generator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from responses_mcp.errors import ResponsesMcpError
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.research.states import State
from responses_mcp.responses_api.background import ENDED
from responses_mcp.responses_api.response.streaming import decode, usable_id
from responses_mcp.state_file import StateFile

FILE: Final = "runs.sqlite3"
LEASE_SECONDS: Final[float] = 20.0
APPLICATION_ID: Final = 0x6F726D72  # "ormr"
VERSION: Final = 3

_PATIENCE: Final = 3.0  # seconds, with another process that writes
_LONGEST_QUESTION: Final = 200  # characters that are kept of a question, where any are

_WHY: Final = {
    sqlite3.SQLITE_BUSY: "another process holds its lock",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened, or its folder is read-only",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk fails, or is full",
    sqlite3.SQLITE_READONLY: "it is read-only",
}


class RunsFileUnusable(ResponsesMcpError):
    """The file of runs cannot be read or written; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of a run on disk. Times are seconds since 1970.

    `account` tells at which address and with which key it was asked, `digest` what was asked, neither in a form that
    can be read back. From when it `began`, which is when it is asked, it `may_take` so many seconds, whoever goes on
    with it. `durable` tells whether the API keeps the answer. `tool` and `client`, as it names itself, are for the
    ledger. `question` is None unless questions are kept.
    `status` and `reason` are set when the run ends.
    """

    id: str
    account: str
    digest: str
    state: State
    model: str
    created: float
    may_take: float
    began: float | None = None
    ended: float | None = None
    status: str | None = None
    reason: str | None = None
    maybe_paid: bool = False
    confirmed: bool = False
    has_schema: bool = False
    durable: bool = True
    response_id: str | None = None
    cursor: int = -1
    cancel_asked: bool = False
    usage: JsonObject | None = None
    question: str | None = None
    tool: str = "research"
    client: str | None = None
    owner: str | None = None
    leased_until: float = 0.0

    @property
    def is_kept(self) -> bool:
        """Tell whether the API keeps its response, under an id that is known."""
        return self.durable and self.response_id is not None

    @property
    def may_go_on(self) -> bool:
        """Tell whether it was given up, and the API may work on it, or have its answer, all the same."""
        given_up = self.status in ("failed", "cancelled") and self.maybe_paid and not self.confirmed
        return given_up and self.response_id is not None


_COLUMNS: Final = tuple(field.name for field in fields(Row))
_KEPT: Final = (
    *("state", "response_id", "cursor", "status", "reason", "maybe_paid", "confirmed"),
    *("durable", "usage", "began", "ended", "leased_until"),
)
# By who took it over knowing nothing of it.
_ENDED_BLINDLY: Final = "(response_id IS NULL AND maybe_paid AND NOT confirmed AND status IN ('failed', 'cancelled'))"
_VALUES: Final = f"run ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_TABLES: Final = (
    f"CREATE TABLE run ({', '.join(_COLUMNS)}, PRIMARY KEY (id)) WITHOUT ROWID",
    "CREATE INDEX run_created ON run (account, created)",
)
_UPGRADES: Final = {
    1: ("ALTER TABLE run ADD COLUMN may_take NOT NULL DEFAULT 3600.0",),
    2: (
        "ALTER TABLE run ADD COLUMN tool NOT NULL DEFAULT 'research'",
        "ALTER TABLE run ADD COLUMN client",
        "ALTER TABLE run ADD COLUMN began",
    ),
}


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
            upgrades=_UPGRADES,
            patience=_PATIENCE,
        )

    def add(self, row: Row, *, join: bool, besides: Container[str] = ()) -> Row:
        """Add a run and return it, or, with `join`, one of the same account and digest that goes on.

        One that the API does not keep is joined by its owner alone, which alone will have its answer. `besides` are ids
        of runs that do not go on, whatever the file says.
        """
        with self._writing() as connection:
            if join:
                same = (
                    "account = ? AND digest = ? AND (durable OR owner = ?) AND status IS NULL AND NOT cancel_asked "
                    "ORDER BY created"
                )
                for found in _select(connection, same, (row.account, row.digest, row.owner)):
                    if found.id not in besides:
                        return found
            connection.execute(f"INSERT INTO {_VALUES}", _written(row))
            return row

    def get(self, run_id: str, account: str) -> Row | None:
        """Return a run of an account, None if there is none with that id."""
        rows = self._select("id = ? AND account = ?", (run_id, account))
        return rows[0] if rows else None

    def recent(self, account: str, limit: int) -> list[Row]:
        """Return the last runs of an account, the newest first."""
        return self._select("account = ? ORDER BY created DESC, id LIMIT ?", (account, limit))

    def orphans(self, account: str) -> list[Row]:
        """Return the runs of an account that go on and whose lease is over."""
        now = self._clock()
        return self._select(f"account = ? AND status IS NULL AND {_FREE} ORDER BY created", (account, *_free(now)))

    def claim(self, run_id: str, owner: str) -> Row | None:
        """Take over a run without a living owner, and return it; None if it has one or has ended."""
        now = self._clock()
        # Without its digest nobody joins it: its question was never sent, and has gone with its owner.
        unasked = f"CASE state WHEN '{State.QUEUED.value}' THEN '' ELSE digest END"
        going_on = f"CASE state WHEN '{State.ENDED.value}' THEN '{State.POLLING.value}' ELSE state END"
        with self._writing() as connection:
            taken = connection.execute(
                f"UPDATE run SET owner = ?, leased_until = ?, digest = {unasked}, state = {going_on} "  # noqa: S608
                f"WHERE id = ? AND status IS NULL AND {_FREE}",
                (owner, now + LEASE_SECONDS, run_id, *_free(now)),
            )
            return next(iter(_select(connection, "id = ?", (run_id,))), None) if taken.rowcount else None

    def keep(self, row: Row) -> bool | None:
        """Write how far a run is, and that its owner is there; tell whether somebody has asked for its cancel.

        None if it has another owner by now, or has ended. A row that has gone, with its file, is added again.
        """
        row = replace(row, leased_until=self._clock() + LEASE_SECONDS)
        # An id is kept: it may have come to an owner that had lost the run before.
        names = ", ".join(f"{name} = {'coalesce(?, response_id)' if name == 'response_id' else '?'}" for name in _KEPT)
        new = [_value(getattr(row, name)) for name in _KEPT]
        with self._writing() as connection:
            done = connection.execute(
                f"UPDATE run SET {names} WHERE id = ? AND owner = ? AND status IS NULL",  # noqa: S608
                (*new, row.id, row.owner),
            )
            if not done.rowcount:
                if connection.execute(f"INSERT OR IGNORE INTO {_VALUES}", _written(row)).rowcount:
                    return row.cancel_asked
                # Its owner was only stopped, and may have the answer.
                done = connection.execute(
                    f"UPDATE run SET {names}, owner = ? WHERE id = ? AND {_ENDED_BLINDLY}",  # noqa: S608
                    (*new, row.owner, row.id),
                )
            if done.rowcount:
                (asked,) = connection.execute("SELECT cancel_asked FROM run WHERE id = ?", (row.id,)).fetchone()
                return bool(asked)
            late = "UPDATE run SET response_id = ? WHERE id = ? AND response_id IS NULL"
            connection.execute(late, (row.response_id, row.id))
            return None

    def correct(self, row: Row) -> None:
        """Write what was found of a run that was given up: that it has an answer after all, or how it ended."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE run SET status = ?, reason = ?, maybe_paid = ?, confirmed = ?, usage = ? "
                "WHERE id = ? AND status IN ('failed', 'cancelled') AND NOT confirmed",
                [*map(_value, (row.status, row.reason, row.maybe_paid, row.confirmed, row.usage)), row.id],
            )

    def reopen(self, run_id: str, *, cancel: bool) -> None:
        """Have a run that was given up, and may go on, do so for whoever takes it over; with `cancel`, to end."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE run SET cancel_asked = cancel_asked OR ?, state = ?, status = NULL, "
                "reason = NULL, ended = NULL, maybe_paid = 0, owner = NULL WHERE id = ? AND maybe_paid "
                "AND NOT confirmed AND response_id IS NOT NULL AND status IN ('failed', 'cancelled')",
                (cancel, State.POLLING.value, run_id),
            )

    def ask_cancel(self, run_id: str) -> None:
        """Tell the owner of a run, wherever it is, that it should be cancelled; also one that may take it back."""
        with self._writing() as connection:
            connection.execute(
                f"UPDATE run SET cancel_asked = 1 WHERE id = ? AND (status IS NULL OR {_ENDED_BLINDLY})",  # noqa: S608
                (run_id,),
            )

    def release(self, owner: str) -> None:
        """Give up all runs of an owner, so that others may take them over at once."""
        with self._writing() as connection:
            connection.execute("UPDATE run SET owner = NULL, leased_until = 0 WHERE owner = ?", (owner,))

    def forget(self, days: int) -> None:
        """Delete runs that began so many days ago, unless somebody owns them."""
        now = self._clock()
        with self._writing() as connection:
            old = now - days * 86_400
            connection.execute(f"DELETE FROM run WHERE created < ? AND {_FREE}", (old, *_free(now)))  # noqa: S608

    def _select(self, where: str, values: tuple[Any, ...]) -> list[Row]:
        with self._connected() as connection:
            return _select(connection, where, values)

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
                yield connection
        except OSError as error:
            raise self._unusable(error.strerror or type(error).__name__) from error
        except (sqlite3.Error, ValueError) as error:  # the latter of a text, in the file or for it
            self._file.failed(error)
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise self._unusable(_WHY.get(code, str(error))) from error

    def _unusable(self, why: str) -> RunsFileUnusable:
        return RunsFileUnusable(
            f"The file of runs cannot be used ({why}), and without it no run is begun; "
            f"check the folder that research.state_dir (RESEARCH_STATE_DIR) names ({self.path.parent})."
        )


# A lease that ends far in the future was written by a clock that has been set back since. A run that has ended has no
# owner who works on it, though its row need not say how it ended.
_FREE: Final = f"(owner IS NULL OR leased_until <= ? OR leased_until > ? OR state = '{State.ENDED.value}')"


def _free(now: float) -> tuple[float, float]:
    return now, now + 10 * LEASE_SECONDS


def is_free(row: Row, now: float) -> bool:
    """Tell whether a run may be claimed, as far as its lease goes."""
    over, ahead = _free(now)
    return row.owner is None or row.leased_until <= over or row.leased_until > ahead


def shortened(question: str) -> str:
    """Return as much of a question as is kept or listed, on one line."""
    line = " ".join(question[: 4 * _LONGEST_QUESTION].split())
    return line if len(line) <= _LONGEST_QUESTION else f"{line[: _LONGEST_QUESTION - 1]}…"


def _select(connection: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Row]:
    found = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM run WHERE {where}", values)  # noqa: S608
    return [row for each in found.fetchall() if (row := _row(each)) is not None]


_TEXTS: Final = ("id", "account", "digest", "model", "tool")
_TEXTS_IF_ANY: Final = ("reason", "response_id", "question", "client", "owner")
_TIMES: Final = ("created", "may_take", "leased_until")
_FLAGS: Final = ("maybe_paid", "confirmed", "has_schema", "durable", "cancel_asked")
_WITH_ID: Final = frozenset(State) - {State.QUEUED, State.ASKING, State.WITHDRAWING}
_LAST_TIME: Final = 1e11  # seconds since 1970: a date that can be told
_MOST_EVENTS: Final = 2**53


def _row(values: tuple[Any, ...]) -> Row | None:
    """Return a row, None for one that nobody of ours has written: such a run is not there."""
    named = dict(zip(_COLUMNS, values, strict=True))
    try:
        named["state"] = State(named["state"])
        named["usage"] = None if named["usage"] is None else _usage(named["usage"])
    except (TypeError, ValueError, RecursionError):
        return None
    times = [named[name] for name in _TIMES] + [named[name] or 0.0 for name in ("began", "ended")]
    ours = (
        all(isinstance(named[name], str) for name in _TEXTS)
        and all(isinstance(named[name], str | None) for name in _TEXTS_IF_ANY)
        and all(isinstance(each, int | float) and 0 <= each <= _LAST_TIME for each in times)
        and all(named[name] in (0, 1) for name in _FLAGS)
        and isinstance(named["cursor"], int)
        and -1 <= named["cursor"] <= _MOST_EVENTS
        and named["status"] in (None, *ENDED)
        and (named["response_id"] is None or usable_id(named["response_id"], str) is not None)
    )
    if not ours:
        return None
    if named["status"] is None and named["state"] is State.ENDED:
        named["state"] = State.POLLING
        named["owner"] = None
    if named["status"] is None and named["response_id"] is None and named["state"] in _WITH_ID:
        named["state"] = State.ASKING  # nobody can tell what became of it
    for name in _FLAGS:
        named[name] = bool(named[name])
    return Row(**named)


def _usage(text: object) -> JsonObject:
    """Return what a run used, from a row. Raises ValueError for what is not that."""
    usage = decode(text.encode("utf-8", "replace")) if isinstance(text, str) else None
    if not isinstance(usage, dict):
        raise ValueError("no usage at all")  # noqa: TRY004  # as what is no JSON is
    usage = as_object(usage)
    dated = {"prices_as_of": usage.get("prices_as_of") or ""}  # prices of one's own have no date
    numbers = [each for each in (usage | dated).values() if not isinstance(each, str)]
    if not all(isinstance(each, int | float) and math.isfinite(each) for each in [*numbers, usage.get("cost_usd", 0)]):
        raise ValueError("no usage of ours")
    return usage


def _written(row: Row) -> tuple[Any, ...]:
    return tuple(_value(value) for value in asdict(row).values())


def _value(value: Any) -> Any:
    if isinstance(value, State):
        return value.value
    return json.dumps(value) if isinstance(value, dict) else value
