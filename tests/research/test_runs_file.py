"""The file of runs: leases, joins, and what becomes of a file that is broken, foreign, locked or out of reach."""

import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.research import runs_file
from responses_mcp.research.runs_file import FILE, LEASE_SECONDS, Row, RunsFile, RunsFileUnusable, shortened
from responses_mcp.research.states import State

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
        "state": State.QUEUED,
        "model": "m",
        "created": NOW,
        "may_take": 3600.0,
        "owner": "one",
        "leased_until": NOW + LEASE_SECONDS,
    }
    return Row(**{**given, **changes})


def test_a_row_comes_back_as_it_was_written(file: RunsFile) -> None:
    whole = row(
        state=State.POLLING,
        began=NOW + 0.5,
        ended=NOW + 1,
        reason="why — 理由",
        maybe_paid=True,
        confirmed=True,
        has_schema=True,
        response_id="resp_1",
        cursor=7,
        cancel_asked=True,
        usage={"total_tokens": 3},
        question="q",
        tool="answer_deep",
        client="クライアント",
    )
    assert file.add(whole, join=True) == whole
    assert file.get("run_1", "mine") == whole
    assert file.recent("mine", 10) == [whole]


def test_runs_of_another_account_are_not_seen(file: RunsFile) -> None:
    file.add(row(), join=True)
    assert file.get("run_1", "theirs") is None
    assert file.recent("theirs", 10) == []
    assert file.add(row("run_2", account="theirs"), join=True).id == "run_2"


def test_the_same_question_joins_a_run_that_goes_on_unless_it_is_cancelled_ended_or_not_wanted(file: RunsFile) -> None:
    file.add(row(), join=True)
    assert file.add(row("run_2"), join=True).id == "run_1"
    assert file.add(row("run_3", digest="other"), join=True).id == "run_3"
    assert file.add(row("run_4"), join=False).id == "run_4"
    file.ask_cancel("run_1")
    file.keep(row("run_4", status="completed"))
    assert file.add(row("run_5"), join=True).id == "run_5"


@pytest.mark.parametrize("state", [State.QUEUED, State.ASKING, State.POLLING])
def test_a_question_joins_no_run_that_was_taken_over_before_it_was_asked_and_its_first_owner_asks_no_more(
    file: RunsFile, clock: Clock, state: State
) -> None:
    first = row(state=state, response_id="resp_1" if state is State.POLLING else None)
    file.add(first, join=True)
    clock.now += LEASE_SECONDS + 1
    assert file.add(row("run_2", owner="two"), join=True).id == "run_1"  # its owner may have been suspended
    assert file.claim("run_1", "two") is not None
    assert file.add(row("run_3", owner="three"), join=True).id == ("run_3" if state is State.QUEUED else "run_1")
    assert file.keep(first) is None


def test_a_run_that_the_api_does_not_keep_is_joined_by_its_owner_alone(file: RunsFile) -> None:
    file.add(row(durable=False), join=True)
    assert file.add(row("run_2"), join=True).id == "run_1"
    assert file.add(row("run_3", owner="two"), join=True).id == "run_3"


def test_a_run_is_claimed_once_its_lease_is_over_and_by_one_alone(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    assert (file.orphans("mine"), file.claim("run_1", "two")) == ([], None)
    clock.now += LEASE_SECONDS
    assert [each.id for each in file.orphans("mine")] == ["run_1"]
    claimed = file.claim("run_1", "two")
    assert claimed is not None
    assert (claimed.owner, claimed.leased_until) == ("two", clock.now + LEASE_SECONDS)
    assert file.claim("run_1", "three") is None


def test_who_has_lost_a_run_can_write_nothing_more(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    clock.now += LEASE_SECONDS
    file.claim("run_1", "two")
    assert file.keep(row(state=State.ASKING)) is None
    assert file.keep(row(owner="two", state=State.FOLLOWING, response_id="resp_1")) is False
    kept = file.get("run_1", "mine")
    assert kept is not None
    assert (kept.state, kept.response_id) == (State.FOLLOWING, "resp_1")


def test_writing_keeps_the_lease_and_tells_of_a_cancel(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    clock.now += LEASE_SECONDS - 1
    file.ask_cancel("run_1")
    assert file.keep(row()) is True
    kept = file.get("run_1", "mine")
    assert kept is not None
    assert (kept.cancel_asked, kept.leased_until) == (True, clock.now + LEASE_SECONDS)


def test_what_has_ended_stays_as_it_is(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    file.keep(row(status="completed", state=State.ENDED))
    file.ask_cancel("run_1")
    assert file.keep(row(status="failed")) is None
    clock.now += 1000
    assert (file.orphans("mine"), file.claim("run_1", "two")) == ([], None)
    found = file.get("run_1", "mine")
    assert found is not None
    assert (found.status, found.cancel_asked) == ("completed", False)


def test_runs_that_are_released_can_be_claimed_at_once(file: RunsFile) -> None:
    file.add(row(), join=True)
    file.add(row("run_2", owner="two"), join=False)
    file.release("one")
    assert [each.id for each in file.orphans("mine")] == ["run_1"]


def test_a_clock_that_was_set_back_leaves_no_run_owned_for_ever(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    clock.now -= 86_400
    assert [each.id for each in file.orphans("mine")] == ["run_1"]


def test_old_runs_are_forgotten_unless_somebody_owns_them(file: RunsFile, clock: Clock) -> None:
    file.add(row(), join=True)
    file.add(row("run_2", owner=None), join=False)
    clock.now += 86_401
    file.add(row("run_3", created=clock.now), join=False)
    file.claim("run_1", "two")
    file.forget(1)
    assert {each.id for each in file.recent("mine", 10)} == {"run_1", "run_3"}


@pytest.mark.parametrize(
    "use",
    [lambda file: file.claim("run_1", os.urandom(4).hex()), lambda file: file.add(row(os.urandom(4).hex()), join=True)],
)
def test_many_at_once_agree_on_one(use: Callable[[RunsFile], Row | None], file: RunsFile) -> None:
    if "claim" in use.__code__.co_names:
        file.add(row(owner=None, leased_until=0.0), join=True)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: use(file), range(16)))
    assert len({each.owner if each.id == "run_1" else each.id for each in found if each is not None}) == 1


def test_a_new_file_waits_for_another_process_that_makes_it(file: RunsFile) -> None:
    file.path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(file.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        ending = threading.Timer(0.3, other.rollback)
        ending.start()
        file.add(row(), join=True)
        ending.join()
    assert [each.id for each in file.recent("mine", 10)] == ["run_1"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_their_owner_can_read_folder_and_file(file: RunsFile) -> None:
    file.add(row(), join=True)
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
    file.add(row(), join=True)
    assert file.get("run_1", "mine") == row()
    (aside,) = file.path.parent.glob(f"{FILE}.broken-*")
    assert aside.read_bytes() == before
    assert aside.name in caplog.text


def test_a_broken_file_that_another_process_moves_aside_first_is_made_anew(
    file: RunsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.path.parent.mkdir(parents=True)
    spoilt(file.path)
    move = os.replace

    def late(old: Any, new: Any) -> None:
        if old == file.path:
            move(old, f"{old}.moved")
        move(old, new)

    monkeypatch.setattr(os, "replace", late)
    file.add(row(), join=True)
    assert file.get("run_1", "mine") == row()


def test_a_file_that_is_broken_within_is_moved_aside_when_that_is_found_out(
    file: RunsFile, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(300):
        file.add(row(f"run_{number}", digest=str(number)), join=True)
    with closing(sqlite3.connect(file.path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = other.execute("PRAGMA page_size").fetchone()
    data = file.path.read_bytes()
    file.path.write_bytes(data[: 2 * size] + b"\xff" * (len(data) - 2 * size))
    with pytest.raises(RunsFileUnusable, match="malformed"):
        file.recent("mine", 100)
    file.add(row(), join=True)
    assert file.get("run_1", "mine") == row()
    assert len(list(file.path.parent.glob(f"{FILE}.broken-*"))) == 1
    assert "was broken" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there, and // begins a share")
@pytest.mark.parametrize("kind", ["two slashes", "a link to what is not there yet"])
def test_a_file_may_be_behind_two_slashes_or_a_link(tmp_path: Path, kind: str) -> None:
    if kind == "two slashes":
        file = RunsFile(Path(f"/{tmp_path}"))
        assert str(file.path).startswith("//")
    else:
        (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
        file = RunsFile(tmp_path)
    file.add(row(), join=True)
    assert file.get("run_1", "mine") == row()
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="permissions as POSIX has them")
@pytest.mark.parametrize("when", ["as it is opened", "when it has failed"])
def test_a_file_that_is_made_as_another_process_moves_one_aside_is_its_owners_alone(
    file: RunsFile, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    file.add(row(), join=True)
    if when == "when it has failed":
        with closing(sqlite3.connect(file.path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        data = file.path.read_bytes()
        file.path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    before, connect, calls = os.umask(0o022), sqlite3.connect, iter((1, 2, 3))

    def moved_aside(*given: Any, **options: Any) -> sqlite3.Connection:
        if next(calls, 0) == (1 if when == "as it is opened" else 2):
            for each in file.path.parent.iterdir():
                each.rename(each.with_name(f"{each.name}.aside"))
        return connect(*given, **options)

    monkeypatch.setattr(sqlite3, "connect", moved_aside)
    try:
        with suppress(RunsFileUnusable):
            file.recent("mine", 100)
        file.add(row("run_2"), join=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert file.get("run_2", "mine") is not None


def test_a_name_in_the_file_that_is_no_text_is_a_broken_file_too(file: RunsFile) -> None:
    file.add(row(), join=True)
    with closing(sqlite3.connect(file.path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(file.path.read_bytes())
    at = data.find(b"run_created")
    data[at] = 0x86
    data[data.find(b"CREATE") + 1] = 0x86
    file.path.write_bytes(data)
    with suppress(RunsFileUnusable):
        file.recent("mine", 1)
    file.add(row("run_2"), join=True)
    assert file.get("run_2", "mine") is not None


def test_a_file_of_a_newer_version_is_left_alone_and_told(file: RunsFile) -> None:
    file.add(row(), join=True)
    with closing(sqlite3.connect(file.path)) as other:
        other.execute("PRAGMA user_version = 999")
    with pytest.raises(RunsFileUnusable, match="of a newer version of this program"):
        file.get("run_1", "mine")
    assert not list(file.path.parent.glob(f"{FILE}.broken-*"))


@pytest.mark.parametrize(
    ("version", "lacking"), [(1, ("may_take", "tool", "client", "began")), (2, ("tool", "client", "began"))]
)
def test_the_runs_in_a_file_of_a_version_before_are_kept(
    file: RunsFile, version: int, lacking: tuple[str, ...]
) -> None:
    file.add(row(), join=True)
    with closing(sqlite3.connect(file.path)) as other:
        for name in lacking:
            other.execute(f"ALTER TABLE run DROP COLUMN {name}")
        other.execute(f"PRAGMA user_version = {version}")
    assert file.get("run_1", "mine") == row(may_take=3600.0)
    file.add(row("run_2", digest="other"), join=True)
    assert {each.id for each in file.recent("mine", 10)} == {"run_1", "run_2"}
    assert not list(file.path.parent.glob(f"{FILE}.broken-*"))


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(RunsFileUnusable, match=r"research\.state_dir"):
        RunsFile(tmp_path / "taken").get("run_1", "mine")


def test_a_path_that_no_system_has_is_told_and_not_blamed_for_a_text_that_cannot_be_written(file: RunsFile) -> None:
    with pytest.raises(RunsFileUnusable, match="its path is none that this system has"):
        RunsFile(Path("a\0b")).get("run_1", "mine")
    with pytest.raises(RunsFileUnusable, match="surrogates not allowed"):
        file.add(row(model="gpt-\udcff"), join=False)


def test_what_sqlite_cannot_do_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(RunsFileUnusable, match="cannot be opened, or its folder is read-only"):
        RunsFile(tmp_path).get("run_1", "mine")


def test_a_lock_that_another_process_keeps_is_waited_for_and_then_told(
    file: RunsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_file, "_PATIENCE", 0.05)
    file = RunsFile(file.path.parent)
    file.add(row(), join=True)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunsFileUnusable, match="another process holds its lock"):
            file.keep(row())
        other.execute("ROLLBACK")
    assert file.keep(row()) is not None


def test_a_file_that_is_deleted_meanwhile_is_made_anew(file: RunsFile) -> None:
    file.add(row(), join=True)
    for path in file.path.parent.iterdir():
        path.unlink()
    assert file.keep(row()) is False
    assert file.add(row("run_2"), join=True).id == "run_1"
    assert [each.id for each in file.recent("mine", 5)] == ["run_1"]


def test_a_question_is_kept_on_one_line_and_short() -> None:
    assert shortened("what\n  is\tthis?") == "what is this?"
    assert len(shortened("word " * 1000)) == 200
