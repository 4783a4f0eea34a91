"""The ledger: a row for each paid call in an SQLite file, written by a thread of its own, never with any text.

Whoever writes does not wait, and whoever reserves waits for two seconds at most: a disk that is full, hangs or holds
something else costs the ledger and a warning, and no answer. The thread is there while there is something to write. A
row of a call that runs holds what the call reserves, so that servers of one user keep a cap of the day together.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import trio

from responses_mcp.state_file import StateFile
from responses_mcp.usage.bill import Usage

log = logging.getLogger(__name__)

FILE: Final = "ledger.sqlite3"
KEPT_DAYS: Final = 400
DAY: Final = 86_400  # seconds; days are those of UTC, as on the bill
_ABANDONED: Final = 3_600  # seconds after which a row that nobody settled belongs to nobody
_PATIENCE: Final = 2.0  # seconds for a reservation
_LAST_PATIENCE: Final = 0.5  # seconds for what is still to be written at the end
_BUSY: Final = 1.5  # seconds, while another server writes
_MOST_WAITING: Final = 10_000
APPLICATION_ID: Final = 0x6F726D75  # "ormu"
_VERSION: Final = 1
_TABLES: Final = (
    """CREATE TABLE calls (
  id TEXT PRIMARY KEY, at INTEGER NOT NULL, tool TEXT NOT NULL, model TEXT NOT NULL, client TEXT,
  tier TEXT, attempts INTEGER NOT NULL, input INTEGER NOT NULL, cached INTEGER NOT NULL, output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL, total INTEGER NOT NULL, searches INTEGER NOT NULL,
  usd REAL,            -- NULL where the price is not known
  held REAL NOT NULL,  -- what may have been spent besides
  settled INTEGER NOT NULL
)""",
    "CREATE INDEX calls_at ON calls (at)",
)
_COLUMNS: Final = {"day": "strftime('%Y-%m-%d', at, 'unixepoch')", "tool": "tool", "model": "model", "client": "client"}
BY: Final = tuple(_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Who made a call, and for what: the tool, the model that was configured, and the client as it names itself."""

    id: str
    at: int
    tool: str
    model: str
    client: str | None = None


class Today(NamedTuple):
    """What a day has seen: spent in US dollars, and held by calls that run. `admitted` tells of the one that asked."""

    admitted: bool
    spent: float
    held: float


class Row(NamedTuple):
    """A line of the table: a day, tool, model or client, and the calls of it; `unpriced` have no price."""

    name: str
    calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    searches: int
    usd: float
    held: float
    unpriced: int


Job: TypeAlias = Callable[[Callable[[], sqlite3.Connection]], None]
"""What the thread does. It gets a function that opens the database, once for all that is waiting."""


class Ledger:
    """The ledger in a folder. Nothing is opened before the first row."""

    def __init__(self, folder: str) -> None:
        self._file = StateFile(
            path=Path(folder) / FILE,
            name="the ledger",
            tables=_TABLES,
            application_id=APPLICATION_ID,
            version=_VERSION,
            patience=_BUSY,
        )
        self._lock = threading.Lock()
        self._jobs: deque[Job] = deque()
        self._working = False
        self._warned = False

    async def reserve(self, entry: Entry, usd: float, limit: float, *, may_be_alone: bool) -> Today | None:
        """Hold `usd` for a call, if the day's `limit` leaves so much; None where the ledger cannot tell.

        `may_be_alone` lets it through also where it is more than what is left, if there is anything and no call runs.
        A call that was cancelled meanwhile may hold it, until it is settled.
        """
        answers: list[Today] = []
        there = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def ask(database: Callable[[], sqlite3.Connection]) -> None:
            with suppress(trio.RunFinishedError):
                try:
                    answers.append(_hold(database(), entry, usd, limit, may_be_alone=may_be_alone))
                finally:
                    token.run_sync_soon(there.set)

        self._put(ask)
        with trio.move_on_after(_PATIENCE):
            await there.wait()
        return answers[0] if answers else None

    def settle(self, entry: Entry, usage: Usage | None, held: float) -> None:
        """Write what a call used, in the place of what it held; None where it made no request. Does not wait.

        `held` is what it may have cost besides, in US dollars.
        """
        self._put(lambda database: _write(database(), entry, usage, held))

    def settle_left(self, entry: Entry, usage: Usage | None) -> None:
        """Write what a call used whose process has left it; None where it made no request.

        Where that is not known, what the call holds stays. `entry` is for one that was killed before it wrote any.
        """
        self._put(lambda database: _write_left(database(), entry, usage))

    async def aclose(self) -> None:
        """Wait for what is still to be written, for half a second at most. The ledger can be used again."""
        written = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def tell(_: Callable[[], sqlite3.Connection]) -> None:
            with suppress(trio.RunFinishedError):
                token.run_sync_soon(written.set)

        with trio.move_on_after(_LAST_PATIENCE, shield=True):
            if self._working:
                self._put(tell)
                await written.wait()  # noqa: ASYNC102  # bounded

    def _put(self, job: Job) -> None:
        with self._lock:
            if len(self._jobs) >= _MOST_WAITING:
                self._warn("the disk is too slow")
                return
            self._jobs.append(job)
            if self._working:
                return
            self._working = True
        try:
            threading.Thread(target=self._work, name="ledger", daemon=True).start()
        except RuntimeError:  # no thread is left
            with self._lock:
                self._working = False
                self._jobs.clear()
            self._warn("there is no thread left")

    def _work(self) -> None:
        opened: list[sqlite3.Connection] = []

        def database() -> sqlite3.Connection:
            if not opened:
                opened.append(self._file.opened())
            return opened[0]

        def close() -> None:
            while opened:
                with suppress(sqlite3.Error):
                    opened.pop().close()

        while True:
            with self._lock:
                job = self._jobs.popleft() if self._jobs else None
                self._working = job is not None
            if job is None:
                close()
                return
            try:
                job(database)
            except Exception as error:  # noqa: BLE001  # whatever it is, the next rows may fare better
                reason = getattr(error, "strerror", None) or type(error).__name__
                self._warn(str(error) if isinstance(error, sqlite3.Error) else reason)
                close()
                self._file.failed(error)

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            log.warning("usage: the ledger %s cannot be used (%s); calls are not recorded.", self._file.path, why)


def read_ledger(folder: str, *, days: int, by: str, now: float | None = None) -> list[Row]:
    """Return what the last `days` days (UTC) have seen, by `day`, `tool`, `model` or `client`; the greatest cost first.

    Days come in their order. Nothing where there is no ledger. Raises `sqlite3.Error` or `OSError` for one that cannot
    be read.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return []
    today = int(time.time() if now is None else now) // DAY * DAY
    order = "1" if by == "day" else "7 DESC, 2 DESC, 1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY)) as database:
        found = database.execute(
            f"SELECT coalesce({_COLUMNS[by]}, ''), count(*), sum(input), sum(cached), sum(output), sum(searches), "  # noqa: S608  # of a table
            "total(usd), total(held), sum(settled AND usd IS NULL AND total > 0) "
            f"FROM calls WHERE at >= ? GROUP BY 1 ORDER BY {order}",
            (today - (days - 1) * DAY,),
        ).fetchall()
    return [Row(*row) for row in found]


def _hold(database: sqlite3.Connection, entry: Entry, usd: float, limit: float, *, may_be_alone: bool) -> Today:
    with _transaction(database):
        day = entry.at - entry.at % DAY
        [(spent, held)] = database.execute(
            "SELECT total(CASE WHEN settled OR at < :gone THEN coalesce(usd, 0) + held END), "
            "total(CASE WHEN NOT settled AND at >= :gone THEN held END) "
            "FROM calls WHERE at >= :day AND at < :day + 86400 AND id != :id",
            {"day": day, "gone": entry.at - _ABANDONED, "id": entry.id},
        )
        fits = spent + held + usd <= limit + 1e-9 or (may_be_alone and not held and spent < limit)
        if fits:
            _insert(database, entry, Usage(), held=usd, settled=False)
    return Today(fits, spent, held)


def _write(database: sqlite3.Connection, entry: Entry, usage: Usage | None, held: float) -> None:
    with _transaction(database):
        # Whoever took over a run may have known what it used before its first owner, which was stopped, wakes up.
        known = database.execute("SELECT 1 FROM calls WHERE id = ? AND settled AND total > 0", (entry.id,)).fetchone()
        if known and not (usage is not None and usage.counted):
            return
        if usage is None:
            database.execute("DELETE FROM calls WHERE id = ?", (entry.id,))
        else:
            _insert(database, entry, usage, held=held, settled=True)
        database.execute("DELETE FROM calls WHERE at < ?", (entry.at - KEPT_DAYS * DAY,))


def _write_left(database: sqlite3.Connection, entry: Entry, usage: Usage | None) -> None:
    asked, held = "SELECT at, tool, model, client, held FROM calls WHERE id = ?", 0.0
    if (row := database.execute(asked, (entry.id,)).fetchone()) is not None:
        at, tool, model, client, held = row
        entry = Entry(id=entry.id, at=at, tool=tool, model=model, client=client)
    unknown = usage is not None and (usage.uncounted or (usage.counted and usage.cost_usd is None))
    _write(database, entry, usage, held if unknown else 0.0)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Generator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _insert(database: sqlite3.Connection, entry: Entry, usage: Usage, *, held: float, settled: bool) -> None:
    row = (
        *(entry.id, entry.at, entry.tool, entry.model, entry.client, usage.service_tier, usage.attempts),
        *(usage.input_tokens, usage.cached_tokens, usage.output_tokens, usage.reasoning_tokens, usage.total_tokens),
        *(usage.web_searches, usage.cost_usd, held, settled),
    )
    database.execute(f"INSERT OR REPLACE INTO calls VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
