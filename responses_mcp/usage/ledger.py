"""The ledger: a row for each call in an SQLite file, without any text of questions or answers.

A call gets its row, with the guess, before its request is sent; its cost replaces the guess. A row without an end
counts its guess, so nothing is lost when a server is killed; the call counts as running for as long as it may take. All
servers with the same folder keep the limit of the day together. Each write is one transaction in a worker thread, over
a connection that stays open: closing the last one makes the disk wait twice. A disk that is full, hangs or holds
something else costs a call at most two seconds twice, and its row, but no answer.
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

from responses_mcp.errors import LimitReached
from responses_mcp.state_file import OF_FILE, StateFile, identity, open_to_read
from responses_mcp.usage.bill import Call
from responses_mcp.usage.limits import NOTHING, Amount, require_room
from responses_mcp.usage.models import Usage

log = logging.getLogger(__name__)

DAY: Final = 86_400  # seconds; days are those of UTC, as on the bill
FILE: Final = "ledger.sqlite3"
KEPT_DAYS: Final = 400
_PATIENCE: Final = 2.0  # seconds for one write
_BUSY: Final = 1.5  # seconds, while another server writes
_APPLICATION_ID: Final = 0x6F726D75  # "ormu"
_VERSION: Final = 3
_TABLES: Final = (
    """CREATE TABLE calls (
  id TEXT PRIMARY KEY, at INTEGER NOT NULL, tool TEXT NOT NULL, model TEXT NOT NULL, client TEXT,
  tier TEXT, attempts INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL, total INTEGER NOT NULL, searches INTEGER NOT NULL,
  usd REAL,                  -- what is known of the cost
  held REAL NOT NULL,        -- the guess for what is not known
  settled INTEGER NOT NULL,  -- 0 while the call runs, 1 if its cost is known, 2 if it has ended without
  response_id TEXT,
  until INTEGER NOT NULL DEFAULT 0  -- when the call has ended in any case
)""",
    "CREATE INDEX calls_at ON calls (at)",
    "CREATE UNIQUE INDEX calls_response ON calls (response_id)",
)
_UPGRADES: Final = {
    1: ("ALTER TABLE calls ADD COLUMN response_id TEXT", _TABLES[2]),
    2: ("ALTER TABLE calls ADD COLUMN until INTEGER NOT NULL DEFAULT 0",),
}
_COLUMNS: Final = {"day": "strftime('%Y-%m-%d', at, 'unixepoch')", "tool": "tool", "model": "model", "client": "client"}
BY: Final = tuple(_COLUMNS)
_AMOUNTS: Final = """SELECT NOT settled AND until > :now AS runs, count(*), 0, total(coalesce(usd, 0) + held)
  FROM calls WHERE at >= :day AND at < :day + 86400 AND id != :id GROUP BY runs"""
_INSERT: Final = """INSERT OR IGNORE INTO calls
  VALUES (:id, :at, :tool, :model, :client, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, :guess, 0, NULL, :until)"""
_TWIN: Final = "SELECT 1 FROM calls WHERE response_id = ? AND id != ? AND settled = 1"
_UPDATE: Final = """UPDATE OR REPLACE calls SET tier = :service_tier, attempts = :attempts, input = :input_tokens,
  cached = :cached_tokens, output = :output_tokens, reasoning = :reasoning_tokens, total = :total_tokens,
  searches = :web_searches, usd = :usd, held = held * :unknown, settled = :state,
  response_id = coalesce(:response_id, response_id)
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
    """The ledger in a folder, which is made by the first row. `in_thread` runs a function elsewhere."""

    def __init__(self, folder: str, in_thread: InThread | None = None) -> None:
        self._file = StateFile(
            path=Path(folder) / FILE,
            name="the ledger",
            tables=_TABLES,
            application_id=_APPLICATION_ID,
            version=_VERSION,
            patience=_BUSY,
            upgrades=_UPGRADES,
        )
        self._limiter = trio.CapacityLimiter(1)
        self._in_thread = in_thread or partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=self._limiter)
        self._database: sqlite3.Connection | None = None
        self._found: tuple[int, int] | None = None  # the file that it is of
        self._hangs = False
        self._warned = False

    async def admit(self, call: Call, guess: Amount, limits: Mapping[str, float]) -> bool:
        """Write the row of a call with its guess; return False if the ledger cannot be used.

        Raises `LimitReached` if the limits of the day leave no room. A call that is cancelled meanwhile may have a row.
        """
        return await self._use(partial(self._write, partial(_admit, call=call, guess=guess, limits=limits)))

    async def settle(self, call: Call, usage: Usage, guess: Amount, response_id: str | None) -> None:
        """Write what a call used. `guess` is for a call that has no row yet."""
        with trio.CancelScope(shield=True):  # which `_use` bounds
            work = partial(_settle, call=call, usage=usage, guess=guess, response_id=response_id)
            await self._use(partial(self._write, work))

    async def aclose(self) -> None:
        """Close the file, which later writes open again."""
        if self._database is not None:
            with trio.CancelScope(shield=True):  # as above
                await self._use(self._close)

    async def _use(self, work: Callable[[], Any]) -> bool:
        if self._hangs and self._limiter.borrowed_tokens:
            return False
        with trio.move_on_after(_PATIENCE) as patience:
            try:
                return bool(await self._in_thread(work))
            except RuntimeError:
                self._warn("there is no thread left")
        self._hangs = patience.cancelled_caught
        if self._hangs:
            self._warn("the disk is too slow")
        return False

    def _write(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Do `work` in one transaction, in the file that is at the path by now."""
        try:
            found = identity(self._file.path)
            if found is None or found != self._found:  # it was moved aside, or deleted
                self._close()
            if self._database is None:
                self._database, self._found = self._file.opened(), found
            self._database.execute("BEGIN IMMEDIATE")
            with self._database:  # which commits, or rolls back
                work(self._database)
        except LimitReached:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is, the next rows may fare better
            self._close()
            reason = getattr(error, "strerror", None) or type(error).__name__
            self._warn(str(error) if isinstance(error, sqlite3.Error) else reason)
            self._file.failed(error)
            return False
        return True

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            with suppress(sqlite3.Error):
                database.close()

    def __del__(self) -> None:
        """Close what a host has not closed, or what was opened again behind that."""
        self._close()

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("usage: the ledger %s cannot be used (%s); calls are not recorded.", self._file.path, why)


def read_ledger(folder: str, *, days: int, by: str, now: float | None = None) -> list[Row] | None:
    """Return what the calls of the last `days` used and cost, by one of `BY`; None if there is no table yet.

    Raises `sqlite3.Error` or `OSError` if the file cannot be read or is of a newer version.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return None
    today = int(time.time() if now is None else now) // DAY * DAY
    order = "1" if by == "day" else "7 DESC, 2 DESC, 1"
    with closing(open_to_read(path, _BUSY)) as database:
        [(program, version, tables)] = database.execute(OF_FILE)
        if not tables:
            return None
        if program != _APPLICATION_ID:
            raise sqlite3.DatabaseError("it belongs to another program")
        if version > _VERSION:
            raise sqlite3.DatabaseError("it is of a newer version of this program")
        oldest = today - (days - 1) * DAY
        found = database.execute(_ROWS.format(_COLUMNS[by], order), (oldest,)).fetchall()
    return [Row(*row) for row in found]


def _admit(database: sqlite3.Connection, *, call: Call, guess: Amount, limits: Mapping[str, float]) -> None:
    if limits:
        day = {"day": int(call.at) // DAY * DAY, "now": call.at, "id": call.id}
        amounts = {runs: Amount(*rest) for runs, *rest in database.execute(_AMOUNTS, day)}
        require_room(limits, guess, spent=amounts.get(0, NOTHING), held=amounts.get(1, NOTHING))
    database.execute(_INSERT, _row(call, guess))


def _settle(database: sqlite3.Connection, *, call: Call, usage: Usage, guess: Amount, response_id: str | None) -> None:
    if not usage.attempts:
        database.execute("DELETE FROM calls WHERE id = ? AND settled != 1", (call.id,))
        return
    if response_id is not None and database.execute(_TWIN, (response_id, call.id)).fetchone():
        database.execute("DELETE FROM calls WHERE id = ?", (call.id,))
        return
    database.execute(_INSERT, _row(call, guess))
    is_free = not usage.counted and not usage.unknown  # it was refused
    known = {"usd": 0.0 if is_free else usage.cost_usd, "unknown": usage.unknown, "state": 2 if usage.unknown else 1}
    database.execute(_UPDATE, {**usage._asdict(), **known, "response_id": response_id, "id": call.id})
    database.execute("DELETE FROM calls WHERE at < ?", (int(call.at) - KEPT_DAYS * DAY,))


def _row(call: Call, guess: Amount) -> dict[str, object]:
    return {**call._asdict(), "at": int(call.at), "until": int(call.at + call.may_take) + 1, "guess": guess.usd}
