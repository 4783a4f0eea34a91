"""What a process leaves behind when it is killed while it builds, and two processes at one index."""

import subprocess
import sys
from pathlib import Path

from responses_mcp.manuals.index.store import Store
from tests.manuals.index.killed import kill_builds, lay_out
from tests.manuals.indexed import Shelf, seen, updated

WAIT = 60.0  # seconds; a bound for a stuck machine


def anew(shelf: Shelf):
    store = Store(None)
    updated(store, shelf)
    try:
        return seen(store)
    finally:
        store.close()


def assert_next_build_completes(index: Path, shelf: Shelf) -> None:
    store = Store(index)
    assert updated(store, shelf).finished
    assert seen(store) == anew(shelf)
    store.close()


def test_builds_that_are_killed_leave_an_index_that_the_next_one_goes_on_with(tmp_path: Path) -> None:
    shelf = lay_out(tmp_path / "root", 150)
    index = tmp_path / "index" / "a.sqlite3"
    kill_builds(shelf, index, 5, seed=5)
    assert_next_build_completes(index, shelf)


def test_two_processes_that_build_at_once_build_one_index(tmp_path: Path) -> None:
    shelf = lay_out(tmp_path / "root", 150)
    index = tmp_path / "index" / "a.sqlite3"
    command = [sys.executable, "-m", "tests.manuals.index.killed", str(shelf.place.parent), str(index)]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=WAIT)
        assert (process.returncode, errors) == (0, b"")
    assert_next_build_completes(index, shelf)


def test_a_reader_finds_more_and_more_while_another_process_builds(tmp_path: Path) -> None:
    shelf = lay_out(tmp_path / "root", 200)
    index = tmp_path / "index" / "a.sqlite3"
    command = [sys.executable, "-m", "tests.manuals.index.killed", str(shelf.place.parent), str(index)]
    store = Store(index)
    counts = [0]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with store.reading(lambda: None) as connection:
                for number, sections in connection.execute("SELECT id, sections FROM manual").fetchall():
                    counts.append(sections)
                    assert connection.execute(f"SELECT count(*) FROM words_{number}").fetchone()[0] == sections
    assert process.returncode == 0
    assert counts == sorted(counts)
    assert seen(store)["counts"][0] == 200
    store.close()
