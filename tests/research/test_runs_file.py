"""The file of runs: one step a statement, and what becomes of a file that is broken, foreign, locked or out of reach."""

import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.research import runs_file
from responses_mcp.research.runs_file import FILE, Row, RunsFile, RunsFileUnusable
from responses_mcp.state_file import StateFile

NOW = 1e9


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path, clock: Clock) -> RunsFile:
    return RunsFile(tmp_path / "deep" / "state", clock)


def row(name: str = "run_1", **changes: Any) -> Row:
    given: dict[str, Any] = {
        "id": name,
        "account": "mine",
        "digest": "d",
        "model": "m",
        "created": NOW,
        "may_take": 3600.0,
    }
    return Row(**{**given, **changes})


def add(file: RunsFile, new: Row, *, join: bool = True) -> Row:
    added = file.add(new, may_join=lambda _: join, most=None)
    assert added is not None
    return added


def sent(found: Row) -> Row | None:
    return replace(found, sent=NOW) if found.is_open and found.sent is None else None


def test_a_row_comes_back_as_it_was_written_to_its_account_alone(file: RunsFile) -> None:
    whole = row(
        sent=NOW + 0.5,
        ended=NOW + 1,
        status="failed",
        reason="why — 理由",
        maybe_paid=True,
        confirmed=True,
        has_schema=True,
        response_id="resp_1",
        cancel_asked=True,
        usage={"total_tokens": 3},
        label="q",
        effort="deep",
        tool="answer_deep",
        client="クライアント",
    )
    assert add(file, whole) == whole
    assert [file.get("run_1", "mine"), *file.recent("mine", 10)] == [whole, whole]
    assert [file.get("run_1", "theirs"), *file.recent("theirs", 10)] == [None]
    assert add(file, row("run_2", account="theirs")).id == "run_2"


def test_the_same_request_joins_a_run_that_goes_on_if_it_may(file: RunsFile) -> None:
    add(file, row())
    assert add(file, row("run_2")).id == "run_1"
    assert add(file, row("run_3", digest="other")).id == "run_3"
    assert add(file, row("run_4"), join=False).id == "run_4"
    for name in ("run_1", "run_4"):
        assert file.change(row(name), lambda found: replace(found, status="completed"))
    assert add(file, row("run_5")).id == "run_5"


def test_only_so_many_runs_of_research_go_on(file: RunsFile) -> None:
    add(file, row(tool="answer"), join=False)
    added = [file.add(row(f"run_{most}"), may_join=lambda _: False, most=most) for most in (2, 1, None)]
    assert [None if each is None else each.id for each in added] == ["run_2", None, "run_None"]


def test_a_step_is_done_where_the_row_allows_it_also_to_one_that_was_sent_and_has_gone(file: RunsFile) -> None:
    add(file, row())
    assert file.change(row(), sent) == file.get("run_1", "mine") == row(sent=NOW)
    assert file.change(row(), sent) is None
    assert file.change(row("run_2"), sent) is None
    known = row("run_3", sent=NOW)
    assert file.change(known, lambda found: replace(found, response_id="resp_1")) is not None
    assert [(each.id, each.response_id) for each in file.recent("mine", 5)] == [("run_1", None), ("run_3", "resp_1")]


def test_old_runs_are_forgotten_unless_they_go_on_and_so_are_files_moved_aside(file: RunsFile, clock: Clock) -> None:
    add(file, row())
    add(file, row("run_2", status="completed"), join=False)
    clock.now += 86_401
    add(file, row("run_3", created=clock.now), join=False)
    asides = [file.path.with_name(f"{FILE}.broken-{number}") for number in range(2)]
    for path, age in zip(asides, (90_000, 0), strict=True):
        path.touch()
        os.utime(path, (clock.now - age, clock.now - age))
    file.forget(1)
    assert {each.id for each in file.recent("mine", 10)} == {"run_1", "run_3"}
    assert [path.exists() for path in asides] == [False, True]


def test_nothing_of_a_forgotten_run_stays_in_the_file(file: RunsFile, clock: Clock) -> None:
    add(file, row(status="completed", label="a label that nobody else has"))
    clock.now += 86_401
    assert b"nobody else has" in file.path.read_bytes()
    file.forget(1)
    assert b"nobody else has" not in b"".join(each.read_bytes() for each in file.path.parent.iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0 or sys.platform == "darwin", reason="modes must count")
def test_a_file_that_cannot_be_written_is_read(file: RunsFile) -> None:
    add(file, row())
    file.path.chmod(0o400)
    file.path.parent.chmod(0o500)
    try:
        assert file.get("run_1", "mine") == row()
        with pytest.raises(RunsFileUnusable):
            add(file, row("run_2"), join=False)
    finally:
        file.path.parent.chmod(0o700)


def test_a_file_that_can_be_opened_for_reading_alone_is_read(file: RunsFile, monkeypatch: pytest.MonkeyPatch) -> None:
    add(file, row())

    def fails(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(StateFile, "opened", fails)
    assert file.get("run_1", "mine") == row()


@pytest.mark.parametrize(
    "use", [lambda file: file.change(row(), sent) is not None, lambda file: add(file, row(os.urandom(4).hex())).id]
)
def test_many_at_once_agree_on_one(use: Callable[[RunsFile], object], file: RunsFile) -> None:
    if "change" in use.__code__.co_names:
        add(file, row())
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: use(file), range(16)))
    assert found.count(True) == 1 or len(set(found)) == 1


def test_a_new_file_waits_for_another_process_that_makes_it(file: RunsFile) -> None:
    file.path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.rollback)
        ending.start()
        add(file, row())
        ending.join()
    assert [each.id for each in file.recent("mine", 10)] == ["run_1"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_their_owner_can_read_folder_and_file(file: RunsFile) -> None:
    add(file, row())
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file.path.parent, file.path)]
    assert modes == [0o700, 0o600]


def spoilt(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"nothing of the kind" * 400)


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE theirs (x)")


def of_another_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {runs_file.APPLICATION_ID}")
        other.execute("PRAGMA user_version = 0")
        other.execute("CREATE TABLE run (x)")


def without_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA application_id = {runs_file.APPLICATION_ID}")
        other.execute(f"PRAGMA user_version = {runs_file.VERSION}")


@pytest.mark.parametrize(
    "damage",
    [
        spoilt,
        foreign,
        of_another_version,
        without_tables,
        lambda path: path.write_text("text" * 2000, encoding="utf-8"),
    ],
)
def test_a_file_that_is_not_ours_is_moved_aside_whole_and_told_of(
    damage: Callable[[Path], Any], file: RunsFile, caplog: pytest.LogCaptureFixture
) -> None:
    file.path.parent.mkdir(parents=True)
    damage(file.path)
    before = file.path.read_bytes()
    add(file, row())
    assert file.get("run_1", "mine") == row()
    (aside,) = file.path.parent.glob(f"{FILE}.broken-*")
    assert aside.read_bytes() == before
    assert aside.name in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there, and // begins a share")
@pytest.mark.parametrize("kind", ["two slashes", "a link to what is not there yet"])
def test_a_file_may_be_behind_two_slashes_or_a_link(tmp_path: Path, kind: str) -> None:
    if kind == "two slashes":
        file = RunsFile(Path(f"/{tmp_path}"))
        assert str(file.path).startswith("//")
    else:
        (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
        file = RunsFile(tmp_path)
    add(file, row())
    assert file.get("run_1", "mine") == row()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_file_of_a_newer_version_is_left_alone_and_told(file: RunsFile) -> None:
    add(file, row())
    with closing(sqlite3.connect(file.path)) as other:
        other.execute("PRAGMA user_version = 999")
    with pytest.raises(RunsFileUnusable, match="of a newer version of this program"):
        file.get("run_1", "mine")
    assert not list(file.path.parent.glob(f"{FILE}.broken-*"))


def test_a_path_that_no_system_has_is_told_and_not_blamed_for_a_text_that_cannot_be_written(file: RunsFile) -> None:
    with pytest.raises(RunsFileUnusable, match="null"):
        RunsFile(Path("a\0b")).get("run_1", "mine")
    with pytest.raises(RunsFileUnusable, match="surrogates not allowed"):
        add(file, row(model="gpt-\udcff"), join=False)


def test_a_lock_that_another_process_keeps_is_waited_for_and_then_told(
    file: RunsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_file, "_PATIENCE", 0.05)
    file = RunsFile(file.path.parent)
    add(file, row())
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunsFileUnusable, match="locked"):
            file.change(row(), sent)
        other.execute("ROLLBACK")
    assert file.change(row(), sent)


def test_a_file_that_is_deleted_meanwhile_is_made_anew(file: RunsFile) -> None:
    add(file, row())
    for path in file.path.parent.iterdir():
        path.unlink()
    assert add(file, row("run_2")).id == "run_2"
    assert [each.id for each in file.recent("mine", 5)] == ["run_2"]
