"""The ledger: what is written, for how long a call waits, and that no answer depends on it."""

import logging
import os
import sqlite3
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.errors import LimitReached
from responses_mcp.usage import ledger as module
from responses_mcp.usage.bill import MAYBE_PAID, UNSENT, Call
from responses_mcp.usage.ledger import DAY, FILE, KEPT_DAYS, InThread, Ledger, Row, read_ledger
from responses_mcp.usage.limits import Amount
from responses_mcp.usage.meter import Meter
from responses_mcp.usage.models import Usage
from tests.processes import WAIT

NOW = 20_000 * DAY + 3600
TAKES = 300.0  # seconds, at most, for a call
USED = Usage(
    input_tokens=100, output_tokens=20, total_tokens=120, web_searches=2, attempts=1, counted=True, cost_usd=0.25
)
GUESS = Amount(1, 60_000, 0.3)


def a_call(name: str, *, at: float = NOW, tool: str = "answer", client: str | None = "claude-code") -> Call:
    return Call(name, at, tool, "gpt-5.2", client, TAKES, "deep")


async def settle(ledger: Ledger, call: Call, usage: Usage = USED, response_id: str | None = None) -> None:
    await ledger.settle(call, usage, response_id)


async def call(ledger: Ledger, call: Call, usage: Usage = USED) -> None:
    await ledger.admit(call, GUESS)
    await settle(ledger, call, usage)


def rows(folder: Path, by: str = "tool", days: int = 30, now: float | None = NOW) -> list[Row]:
    found = read_ledger(str(folder), days=days, by=by, now=now)
    assert found is not None
    return found


def counted(meter: Meter) -> tuple[Amount, Amount]:
    """Return what a session has spent, and what its running calls hold."""
    if meter._ledger is None:
        return Amount(), Amount()
    return meter._ledger._session.spent, meter._ledger._session.held


def total(folder: Path) -> tuple[int, float, float]:
    """Return the calls of the day, what they cost, and how much of it is guessed."""
    found = rows(folder, "day", 1)
    return (found[0].calls, round(found[0].usd, 6), round(found[0].guessed, 6)) if found else (0, 0.0, 0.0)


def ledger_in(folder: Path | str, in_thread: InThread | None = None, **limits: float) -> Ledger:
    return Ledger(str(folder), limits, in_thread)


async def is_recorded(ledger: Ledger, name: str, folder: Path) -> bool:
    await settle(ledger, a_call(name))
    return bool(read_ledger(str(folder), days=1, by="day", now=NOW))


async def test_a_call_is_a_row_without_any_text_that_only_its_owner_can_read(tmp_path: Path) -> None:
    ledger, path = ledger_in(tmp_path / "state"), tmp_path / "state" / FILE
    await ledger.admit(a_call("a", at=NOW + 0.7), GUESS)
    with closing(sqlite3.connect(path)) as database:
        before = database.execute("SELECT * FROM calls").fetchall()
        await settle(ledger, a_call("a"), USED, "resp_1")
        after = database.execute("SELECT * FROM calls").fetchall()
    who = ("a", NOW, "answer", "gpt-5.2", "claude-code", "deep", NOW + 301)
    assert before == [(*who, 0.3, 60_000, 0, None, None, None, 0, 0, 0, 0, 0, 0, 0)]
    assert after == [(*who, 0, 0, 1, 0.25, None, "resp_1", 1, 2, 100, 0, 20, 0, 120)]
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_table_is_by_day_tool_model_or_client(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await call(ledger, a_call("a"))
    await call(
        ledger,
        a_call("b", tool="answer_quick", client=None),
        Usage(attempts=1, counted=True, total_tokens=9, cost_usd=None),
    )
    await call(ledger, a_call("d", tool="answer_quick"), MAYBE_PAID)
    await call(ledger, a_call("e", tool="answer_quick"), Usage(attempts=1))
    await ledger.admit(a_call("c", at=NOW - DAY), GUESS)
    await call(ledger, a_call("old", at=NOW - 31 * DAY))
    assert [(row.name, row.calls, row.usd, row.guessed, row.unsettled, row.unpriced) for row in rows(tmp_path)] == [
        ("answer_quick", 3, 0.6, 0.6, 2, 0),
        ("answer", 2, 0.55, 0.3, 1, 0),
    ]
    assert [row.name for row in rows(tmp_path, "day")] == ["2024-10-03", "2024-10-04"]
    assert [row.name for row in rows(tmp_path, "client", 1)] == ["claude-code", ""]
    assert len(rows(tmp_path, "day", 60)) == 3
    assert read_ledger(str(tmp_path / "none"), days=1, by="day") is None


async def test_rows_go_after_more_than_a_year(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    await settle(ledger, a_call("old"))
    await settle(ledger, a_call("new", at=NOW + (KEPT_DAYS + 1) * DAY))
    assert [row.calls for row in rows(tmp_path, days=9999, now=NOW + 401 * DAY)] == [1]


async def test_a_call_of_a_killed_server_holds_the_day_only_for_as_long_as_it_may_take(tmp_path: Path) -> None:
    dear = Amount(1, 60_000, 5.0)
    await ledger_in(tmp_path).admit(a_call("killed"), GUESS)
    next_one = ledger_in(tmp_path, day_cost_usd=1.0)
    with pytest.raises(LimitReached, match=r"\$0\.00 spent today, \$0\.30 held by running calls"):
        await next_one.admit(a_call("next", at=NOW + TAKES), dear)
    await next_one.admit(a_call("next", at=NOW + TAKES + 1), dear)  # it goes alone
    with pytest.raises(LimitReached, match=r"\$0\.30 spent today, \$5\.00 held by running calls"):
        await next_one.admit(a_call("third", at=NOW + TAKES + 2), GUESS)


async def test_servers_that_see_the_end_of_a_call_write_it_once(tmp_path: Path) -> None:
    one, other = ledger_in(tmp_path), ledger_in(tmp_path)
    run = a_call("run_1")
    await one.admit(run, GUESS)
    await settle(one, run, MAYBE_PAID)
    assert total(tmp_path) == (1, 0.3, 0.3)
    for ledger, usage in ((other, USED), (one, USED._replace(cost_usd=9.0)), (other, MAYBE_PAID), (one, UNSENT)):
        await settle(ledger, run, usage, "resp_1")
        assert total(tmp_path) == (1, 0.25, 0)
    await other.admit(a_call("run_2"), GUESS)
    await settle(
        other, a_call("run_2"), USED, "resp_1"
    )  # the same response, seen by a server with another file of runs
    assert total(tmp_path) == (1, 0.25, 0)


async def test_what_may_have_been_paid_counts_its_guess_until_something_else_is_known(tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    for name, later in (("a", UNSENT), ("b", USED)):
        await ledger.admit(a_call(name), GUESS)
        for _ in range(2):
            await settle(ledger, a_call(name), Usage(attempts=2, uncounted=2))
        assert total(tmp_path) == (1, 0.6, 0.6)
        await settle(ledger, a_call(name), later)
    assert total(tmp_path) == (1, 0.25, 0)
    unpriced = USED._replace(cost_usd=None)
    await ledger.admit(a_call("c"), GUESS)
    await settle(ledger, a_call("c"), unpriced)
    assert total(tmp_path) == (2, 0.55, 0.3)


def spoilt_by_a_folder(folder: Path) -> None:
    (folder / FILE).mkdir()


def of_a_newer_version(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.executescript(
            f"PRAGMA application_id = {0x6F726D74}; PRAGMA user_version = 99; CREATE TABLE calls (new)"
        )


@pytest.mark.skipif(sys.platform != "linux", reason="modes must count, and root must be able to be somebody else")
def test_a_ledger_in_a_folder_that_cannot_be_written_is_read() -> None:
    async def write(folder: str) -> None:
        ledger = ledger_in(folder)
        await settle(ledger, a_call("a"))
        await ledger.aclose()

    with tempfile.TemporaryDirectory() as folder:
        trio.run(write, folder)
        Path(folder, FILE).chmod(0o444)
        Path(folder).chmod(0o555)
        somebody = os.geteuid()
        os.seteuid(somebody or 65534)
        try:
            assert total(Path(folder)) == (1, 0.25, 0)
        finally:
            os.seteuid(somebody)
            Path(folder).chmod(0o755)


def test_a_file_of_another_program_is_not_taken_for_one_of_a_newer_version(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.executescript("CREATE TABLE calls (other); PRAGMA user_version = 7")
    with pytest.raises(sqlite3.Error, match="another program"):
        read_ledger(str(tmp_path), days=1, by="day")


@pytest.mark.parametrize("spoil", [spoilt_by_a_folder, of_a_newer_version])
async def test_a_file_that_is_no_ledger_costs_one_warning_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path)
    ledger = ledger_in(tmp_path, day_cost_usd=1.0)
    for number in range(3):
        await ledger.admit(a_call(str(number)), GUESS)
        await settle(ledger, a_call(str(number)))
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "cannot be used" in record.getMessage()
    assert os.listdir(tmp_path) == [FILE], "it is left alone"
    with pytest.raises(sqlite3.Error):
        read_ledger(str(tmp_path), days=1, by="day")


@pytest.mark.skipif(sys.platform != "linux", reason="has no device that is full")
async def test_a_folder_that_cannot_be_made_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for folder in ("/dev/full/x", "/proc/none", "a\0b"):
        caplog.clear()
        ledger = ledger_in(folder)
        await settle(ledger, a_call("a"))
        await settle(ledger, a_call("b"))
        assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_disk_that_hangs_is_waited_for_no_longer_than_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    go_on, hung = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        hung.set()
        go_on.wait(WAIT)
        raise OSError

    monkeypatch.setattr(os, "open", hang)
    ledger = ledger_in(tmp_path)
    with trio.fail_after(WAIT):
        with trio.move_on_after(0.01) as scope:  # it can be cancelled
            monkeypatch.setattr(module, "_PATIENCE", 0.01)
            await ledger.admit(a_call("a"), GUESS)
            await trio.sleep_forever()
        assert scope.cancelled_caught
        await ledger.admit(a_call("b"), GUESS)
        await settle(ledger, a_call("b"))
    assert hung.is_set()
    assert "too slow" in caplog.text
    monkeypatch.undo()
    go_on.set()
    assert await is_recorded(ledger, "c", tmp_path)


async def test_a_machine_without_threads_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def without_threads(_: object) -> None:
        raise RuntimeError("can't start new thread")

    await ledger_in(tmp_path, without_threads).admit(a_call("a"), GUESS)
    assert "can't start new thread" in caplog.text


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """All connections that are opened during a test."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*args: Any, **options: Any) -> sqlite3.Connection:
        made.append(connect(*args, **options))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return made


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_calls_of_a_server_share_one_connection_which_makes_no_disk_wait(
    tmp_path: Path, connections: list[sqlite3.Connection], *, at_once: bool
) -> None:
    ledger = ledger_in(tmp_path, day_cost_usd=100.0)
    async with trio.open_nursery() as nursery:
        for number in range(50):
            if at_once:
                nursery.start_soon(ledger.admit, a_call(str(number)), GUESS)
            else:
                await ledger.admit(a_call(str(number)), GUESS)
    assert len(connections) <= 2, "one is in memory"
    assert total(tmp_path) == (50, 15.0, 15.0)
    await ledger.aclose()
    assert not any(map(is_open, connections[1:]))


@pytest.mark.clock("virtual")
async def test_a_write_that_loses_patience_behind_another_leaves_no_connection_open(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    seconds = [0.1, 9.0, 0.0]  # the second waits behind a disk that is slow for a moment

    async def in_thread(work: Callable[[], Any]) -> Any:
        await trio.sleep(seconds.pop(0))
        return work()

    ledger = ledger_in(tmp_path, in_thread)
    async with trio.open_nursery() as nursery:
        for name in ("a", "b"):
            nursery.start_soon(settle, ledger, a_call(name))
    await ledger.aclose()
    del ledger
    assert connections
    assert not any(map(is_open, connections))


async def test_a_file_that_is_deleted_under_a_server_begins_again(tmp_path: Path) -> None:
    ledger, other = ledger_in(tmp_path), ledger_in(tmp_path)
    for each in (ledger, other):
        await settle(each, a_call(str(id(each))))
    if sys.platform == "win32":
        await other.aclose()
        await ledger.aclose()
    (tmp_path / FILE).unlink()
    for number, each in enumerate((ledger, other, ledger)):
        await settle(each, a_call(str(number)))
        assert total(tmp_path)[0] == number + 1
    assert not [name for name in os.listdir(tmp_path) if "broken" in name]
    await ledger.aclose()
    await other.aclose()
