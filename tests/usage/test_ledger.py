"""The ledger: what is written, for how long somebody waits, and that no answer depends on it."""

import logging
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from responses_mcp.usage import ledger as module
from responses_mcp.usage.bill import Usage
from responses_mcp.usage.ledger import APPLICATION_ID, DAY, FILE, KEPT_DAYS, Entry, Ledger, read_ledger
from tests.processes import WAIT

NOW = 20_000 * DAY + 3600
USED = Usage(
    input_tokens=100, output_tokens=20, total_tokens=120, web_searches=2, attempts=1, counted=True, cost_usd=0.25
)


def entry(name: str, *, at: int = NOW, tool: str = "answer", client: str | None = "claude-code") -> Entry:
    return Entry(id=name, at=at, tool=tool, model="gpt-5.2", client=client)


async def written() -> None:
    """Wait until all ledgers have written what they have."""
    for thread in threading.enumerate():
        if thread.name == "ledger":
            await trio.to_thread.run_sync(thread.join, WAIT)


async def test_a_call_is_a_row_without_any_text_that_only_its_owner_can_read(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "state"))
    ledger.settle(entry("a"), USED, 0.0)
    await written()
    path = tmp_path / "state" / FILE
    with closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(calls)")]
        [row] = database.execute("SELECT * FROM calls").fetchall()
    assert columns[:5] == ["id", "at", "tool", "model", "client"]
    assert row == ("a", NOW, "answer", "gpt-5.2", "claude-code", None, 1, 100, 0, 20, 0, 120, 2, 0.25, 0.0, 1)
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_the_table_is_by_day_tool_model_or_client(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.settle(entry("a"), USED, 0.0)
    unpriced = Usage(attempts=1, counted=True, total_tokens=9)
    ledger.settle(entry("b", tool="answer_quick", client=None), unpriced, 0.0)
    ledger.settle(entry("d", tool="answer_quick"), Usage(attempts=1, uncounted=1), 0.0)
    ledger.settle(entry("c", at=NOW - DAY), USED, 0.5)
    ledger.settle(entry("old", at=NOW - 31 * DAY), USED, 0.0)
    await written()
    rows = read_ledger(str(tmp_path), days=30, by="tool", now=NOW)
    assert [(row.name, row.calls, row.usd, row.held, row.unpriced) for row in rows] == [
        ("answer", 2, 0.5, 0.5, 0),
        ("answer_quick", 2, 0, 0, 1),
    ]
    assert [row.name for row in read_ledger(str(tmp_path), days=30, by="day", now=NOW)] == ["2024-10-03", "2024-10-04"]
    assert [row.name for row in read_ledger(str(tmp_path), days=1, by="client", now=NOW)] == ["claude-code", ""]
    assert len(read_ledger(str(tmp_path), days=60, by="day", now=NOW)) == 3
    assert read_ledger(str(tmp_path / "none"), days=1, by="day") == []


async def test_rows_go_after_more_than_a_year(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    ledger.settle(entry("old"), USED, 0.0)
    ledger.settle(entry("new", at=NOW + (KEPT_DAYS + 1) * DAY), USED, 0.0)
    await written()
    assert [row.calls for row in read_ledger(str(tmp_path), days=9999, by="tool", now=NOW + 401 * DAY)] == [1]


async def test_a_limit_of_the_day_is_kept_by_two_servers_together(tmp_path: Path) -> None:
    one, other = Ledger(str(tmp_path)), Ledger(str(tmp_path))
    admitted = 0
    for number in range(8):
        today = await (one, other)[number % 2].reserve(entry(str(number)), 0.3, 1.0, may_be_alone=False)
        assert today is not None
        admitted += today.admitted
    assert admitted == 3
    one.settle(entry("0"), None, 0.0)
    await written()
    again = await other.reserve(entry("9"), 0.3, 1.0, may_be_alone=False)
    assert again is not None
    assert again.admitted


async def test_a_row_of_a_server_that_was_killed_counts_as_spent(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    await ledger.reserve(entry("killed"), 0.9, 1.0, may_be_alone=True)
    today = await ledger.reserve(entry("next", at=NOW + 7200), 0.2, 1.0, may_be_alone=True)
    assert today is not None
    assert (today.spent, today.held) == (0.9, 0)
    assert today.admitted, "it may be alone"
    assert not (await ledger.reserve(entry("third", at=NOW + 7200), 0.2, 1.0, may_be_alone=False)).admitted  # type: ignore[union-attr]
    tomorrow = await ledger.reserve(entry("later", at=NOW + DAY), 1.0, 1.0, may_be_alone=False)
    assert tomorrow is not None
    assert tomorrow.admitted


def spoilt_by_a_folder(folder: Path) -> None:
    (folder / FILE).mkdir()


def of_a_newer_version(folder: Path) -> None:
    with closing(sqlite3.connect(folder / FILE)) as database:
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute("PRAGMA user_version = 99")


async def test_what_a_call_held_counts_where_what_it_used_has_no_price_and_its_server_is_gone(tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path))
    await ledger.reserve(entry("a"), 0.28, 5.0, may_be_alone=True)
    ledger.settle_left(entry("a"), USED._replace(cost_usd=None))
    await written()
    (row,) = read_ledger(str(tmp_path), days=1, by="day", now=NOW)
    assert (row.input_tokens, row.held, row.unpriced) == (100, 0.28, 1)


@pytest.mark.parametrize("spoil", [spoilt_by_a_folder, of_a_newer_version])
async def test_a_file_that_is_no_ledger_costs_one_warning_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None]
) -> None:
    spoil(tmp_path)
    ledger = Ledger(str(tmp_path))
    for number in range(3):
        ledger.settle(entry(str(number)), USED, 0.0)
        assert await ledger.reserve(entry("r"), 0.1, 1.0, may_be_alone=True) is None
    await written()
    [record] = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "cannot be used" in record.getMessage()


@pytest.mark.skipif(sys.platform != "linux", reason="has no device that is full")
async def test_a_folder_that_cannot_be_made_costs_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    for folder in ("/dev/full/x", "/proc/none", "a\0b"):
        caplog.clear()
        ledger = Ledger(folder)
        ledger.settle(entry("a"), USED, 0.0)
        ledger.settle(entry("b"), USED, 0.0)
        await written()
        assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_disk_that_hangs_is_waited_for_no_longer_than_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def hang(*_: object) -> None:
        go_on.wait(WAIT)
        raise OSError

    monkeypatch.setattr(os, "open", hang)
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    monkeypatch.setattr(module, "_LAST_PATIENCE", 0.01)
    ledger = Ledger(str(tmp_path))
    with trio.fail_after(WAIT):
        assert await ledger.reserve(entry("a"), 0.1, 1.0, may_be_alone=True) is None
        await ledger.aclose()
    with trio.move_on_after(0.01) as scope:  # and it can be cancelled
        monkeypatch.setattr(module, "_PATIENCE", 60)
        await ledger.reserve(entry("b"), 0.1, 1.0, may_be_alone=True)
    assert scope.cancelled_caught
    monkeypatch.undo()
    go_on.set()


def test_more_than_can_wait_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 3)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    ledger = Ledger(str(tmp_path))
    for number in range(9):
        ledger.settle(entry(str(number)), USED, 0.0)
    assert len(ledger._jobs) == 3
    assert [record.getMessage() for record in caplog.records if "too slow" in record.getMessage()]


async def test_a_ledger_that_is_broken_within_is_moved_aside_and_a_new_one_begun(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger(str(tmp_path))
    for number in range(300):
        ledger.settle(entry(str(number)), USED, 0.0)
    await written()
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = other.execute("PRAGMA page_size").fetchone()
    data = path.read_bytes()
    path.write_bytes(data[:size] + b"\xff" * (len(data) - size))
    ledger = Ledger(str(tmp_path))
    for name in ("a", "b"):
        ledger.settle(entry(name), USED, 0.0)
        await written()
    assert sum(name.startswith(f"{FILE}.broken-") for name in os.listdir(tmp_path)) == 1
    with closing(sqlite3.connect(path)) as database:
        assert [row[0] for row in database.execute("SELECT id FROM calls")] == ["b"]
