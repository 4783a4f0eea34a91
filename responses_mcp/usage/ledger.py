"""The ledger: what calls cost, for the limits, and a row for each in an SQLite file, without any text of theirs.

A call gets its row, with the guess, before its request is sent; its cost replaces the guess. A row without an end
counts its guess; its call counts as running for as long as it may take. Sums in memory keep the limits of a session,
and that of the day where there is no file; all servers with the same file keep that of the day together.

Each write to the file is one transaction in a worker thread, over a connection that stays open: closing the last one
makes the disk wait twice. A disk that is full, hangs or holds something else costs a call two seconds twice, and its
row, but no answer.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from responses_mcp.state_file import StateFile, open_to_read
from responses_mcp.usage.bill import UNSENT, Call
from responses_mcp.usage.limits import NOTHING, Account, Amount, require_room
from responses_mcp.usage.models import Usage

log = logging.getLogger(__name__)

DAY: Final = 86_400  # seconds; days are those of UTC, as on the bill
FILE: Final = "usage.sqlite3"
KEPT_DAYS: Final = 400
_PATIENCE: Final = 2.0  # seconds for one write
_BUSY: Final = 1.5  # seconds, while another server writes
_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS calls (
  id TEXT PRIMARY KEY, at INTEGER NOT NULL, tool TEXT NOT NULL, model TEXT NOT NULL, client TEXT,
  kind TEXT NOT NULL,            -- of calls that cost alike
  until INTEGER NOT NULL,        -- when the call has ended in any case
  held REAL NOT NULL,            -- the guess for what is not known of the cost
  held_tokens INTEGER NOT NULL,
  settled INTEGER NOT NULL DEFAULT 0,  -- 0 while the call runs, 1 if its cost is known, 2 if it has ended without
  usd REAL,                      -- what is known of the cost
  tier TEXT, response_id TEXT, attempts INTEGER NOT NULL DEFAULT 0, searches INTEGER NOT NULL DEFAULT 0,
  input INTEGER NOT NULL DEFAULT 0, cached INTEGER NOT NULL DEFAULT 0, output INTEGER NOT NULL DEFAULT 0,
  reasoning INTEGER NOT NULL DEFAULT 0, total INTEGER NOT NULL DEFAULT 0
)""",
    "CREATE INDEX IF NOT EXISTS calls_at ON calls (at)",
    "CREATE UNIQUE INDEX IF NOT EXISTS calls_response ON calls (response_id)",
)
_COLUMNS: Final = {"day": "strftime('%Y-%m-%d', at, 'unixepoch')", "tool": "tool", "model": "model", "client": "client"}
BY: Final = tuple(_COLUMNS)
_AMOUNTS: Final = """SELECT NOT settled AND until > :now AS runs, count(*), sum(total + held_tokens),
  total(coalesce(usd, 0) + held) FROM calls WHERE at >= :day AND at < :day + 86400 AND id != :id GROUP BY runs"""
_INSERT: Final = """INSERT OR IGNORE INTO calls (id, at, tool, model, client, kind, until, held, held_tokens)
  VALUES (:id, :at, :tool, :model, :client, :kind, :until, :usd, :tokens)"""
_TWIN: Final = "SELECT 1 FROM calls WHERE response_id = ? AND id != ? AND settled = 1"
_UPDATE: Final = """UPDATE OR REPLACE calls SET tier = :service_tier, attempts = :attempts, input = :input_tokens,
  cached = :cached_tokens, output = :output_tokens, reasoning = :reasoning_tokens, total = :total_tokens,
  searches = :web_searches, usd = :usd, held = held * :unknown, held_tokens = held_tokens * :uncounted,
  settled = :state, response_id = coalesce(:response_id, response_id)
  WHERE id = :id AND (NOT settled OR (settled = 2 AND :state = 1))"""
_ROWS: Final = """SELECT coalesce({0}, ''), count(*), sum(input), sum(cached), sum(output), sum(searches),
  total(usd) + total(held), total(held), sum(settled != 1 OR held > 0),
  sum(usd IS NULL AND held = 0 AND (settled != 1 OR total > 0)) FROM calls WHERE at >= ? GROUP BY 1 ORDER BY {1}"""

InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]


class Row(NamedTuple):
    """A line of the table: a day, tool, model or client, and its calls.

    `usd` is the cost, `guessed` the part of it that stands for calls that run or ended without a known cost, of which
    there are `unsettled`. The price of `unpriced` calls is not known; they are not in `usd`.
    """

    name: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    searches: int
    usd: float
    guessed: float
    unsettled: int
    unpriced: int


class Ledger:
    """The sums of a session, and the rows of its calls in the file of `folder`, if any, which the first row makes.

    `limits` are those that are set, by name. `in_thread` runs a function elsewhere, by default in a worker thread.
    """

    def __init__(self, folder: str | None, limits: Mapping[str, float], in_thread: InThread | None = None) -> None:
        self._of_day = {name: limit for name, limit in limits.items() if name.startswith("day_")}
        self._of_session = {name: limit for name, limit in limits.items() if name not in self._of_day}
        self._session, self._day = Account(), Account()
        self._today = 0  # the day of `_day`, in days since 1970
        self._file = None if folder is None else _file_in(folder)
        limiter = trio.CapacityLimiter(1)
        self._in_thread = in_thread or partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=limiter)
        self._database: sqlite3.Connection | None = None
        self._found: int | None = None  # the file that it is of
        self._warned = False

    async def admit(self, call: Call, guess: Amount) -> None:
        """Write the row of a call with what it is expected to need, no less than the dearest of its kind so far.

        Raises `LimitReached` if the limits leave no room; then, and after a cancel, the call has no row.
        """
        guess = self._session.guess(call.kind, guess)
        if self._today != int(call.at) // DAY:
            self._today, self._day = int(call.at) // DAY, Account()
        require_room(self._of_session, guess, self._session.spent, self._session.held)
        spent, held = self._day.spent, self._day.held
        for account in (self._session, self._day):
            account.hold(call.id, call.kind, guess)
        try:
            if not await self._use(partial(_admit, call=call, guess=guess, limits=self._of_day)):
                require_room(self._of_day, guess, spent, held)  # as far as this process knows
        except BaseException:  # also a cancel, after which the file may have the row
            await self.settle(call, UNSENT)  # noqa: ASYNC102  # shielded, and bounded, within
            raise

    async def settle(self, call: Call, usage: Usage, response_id: str | None = None) -> None:
        """Write what a call used; waits two seconds at most. A call that made no request loses its row."""
        guess = self._session.settle(call.id, usage)
        if self._today == int(call.at) // DAY:
            self._day.settle(call.id, usage)
        settle = partial(_settle, call=call, usage=usage, response_id=response_id, guess=guess)
        with trio.CancelScope(shield=True):  # which `_use` bounds
            await self._use(settle)

    async def aclose(self) -> None:
        """Close the file, which later writes open again."""
        with trio.move_on_after(_PATIENCE, shield=True):
            if self._database is not None:
                await self._in_thread(self._close)

    async def _use(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Do `work` in one transaction in the file; return False where there is none, or it cannot be used."""
        if self._file is None:
            return False
        why = "the disk is too slow"
        with trio.move_on_after(_PATIENCE):
            try:
                await self._in_thread(partial(self._write, self._file, work))
            except (OSError, RuntimeError, ValueError, sqlite3.Error) as error:  # the next rows may fare better
                why = getattr(error, "strerror", None) or str(error)
            else:
                return True
        if not self._warned:
            self._warned = True
            log.warning("usage: the ledger %s cannot be used (%s); calls are not recorded.", self._file.path, why)
        return False

    def _write(self, file: StateFile, work: Callable[[sqlite3.Connection], None]) -> None:
        if self._database is not None and _inode(file.path) != self._found:  # it was moved aside, or deleted
            self._close()
        if self._database is None:
            self._database, self._found = file.opened(), _inode(file.path)
        try:
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # which commits, or rolls back
                work(self._database)
        except sqlite3.Error:
            self._close()
            raise

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def __del__(self) -> None:
        """Close what a host has not closed, or what was opened again behind that."""
        self._close()


def read_ledger(folder: str, *, days: int, by: str, now: float | None = None) -> list[Row] | None:
    """Return what the calls of the last `days` used and cost, by one of `BY`; None if there is no table yet.

    Raises `sqlite3.Error` or `OSError` if the file cannot be read or is of a newer version.
    """
    file = _file_in(folder)
    if not file.path.exists():
        return None
    today = int(time.time() if now is None else now) // DAY * DAY
    order = "1" if by == "day" else "7 DESC, 2 DESC, 1"
    with closing(open_to_read(file.path, _BUSY)) as database:
        if not file.is_made(database):
            return None
        oldest = today - (days - 1) * DAY
        found = database.execute(_ROWS.format(_COLUMNS[by], order), (oldest,)).fetchall()
    return [Row(*row) for row in found]


def _file_in(folder: str) -> StateFile:
    return StateFile(
        path=Path(folder) / FILE,
        name="the ledger",
        tables=_TABLES,
        application_id=0x6F726D74,  # "ormt"
        version=1,
        patience=_BUSY,
    )


def _admit(database: sqlite3.Connection, call: Call, guess: Amount, limits: Mapping[str, float]) -> None:
    """Write the row of a call if the limits of its day leave room for it."""
    if limits:
        day = {"day": int(call.at) // DAY * DAY, "now": call.at, "id": call.id}
        amounts = {runs: Amount(*rest) for runs, *rest in database.execute(_AMOUNTS, day)}
        require_room(limits, guess, spent=amounts.get(0, NOTHING), held=amounts.get(1, NOTHING))
    database.execute(_INSERT, _row(call, guess))


def _settle(database: sqlite3.Connection, call: Call, usage: Usage, response_id: str | None, guess: Amount) -> None:
    """Write what a call used; `guess` is for one that has no row yet."""
    if not usage.attempts:
        database.execute("DELETE FROM calls WHERE id = ? AND settled != 1", (call.id,))
    elif response_id is not None and database.execute(_TWIN, (response_id, call.id)).fetchone():
        database.execute("DELETE FROM calls WHERE id = ?", (call.id,))
    else:
        database.execute(_INSERT, _row(call, guess))
        is_free = not usage.counted and not usage.unknown  # it was refused
        known = {"usd": 0.0 if is_free else usage.cost_usd, "unknown": usage.unknown, "state": 1 + bool(usage.unknown)}
        database.execute(_UPDATE, {**usage._asdict(), **known, "response_id": response_id, "id": call.id})
        database.execute("DELETE FROM calls WHERE at < ?", (int(call.at) - KEPT_DAYS * DAY,))


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


def _row(call: Call, guess: Amount) -> dict[str, object]:
    return {**call._asdict(), **guess._asdict(), "at": int(call.at), "until": int(call.at + call.may_take) + 1}
