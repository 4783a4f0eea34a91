"""The index file: several connections and processes, files that are broken, foreign, deleted or replaced."""

import os
import random
import sqlite3
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

import pytest

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.index.store import APPLICATION_ID, VERSION, Store, Unusable, index_path, is_broken
from tests.manuals.indexed import Shelf, after, seen, updated

pytestmark = pytest.mark.rule("P17")

POSIX = pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index" / "a.sqlite3"


@pytest.fixture
def opened() -> Iterator[Callable[[Path | None], Store]]:
    """Return what opens stores that are closed in the end."""
    with ExitStack() as stores:

        def open_store(path: Path | None) -> Store:
            store = Store(path)
            stores.callback(store.close)
            return store

        yield open_store


@pytest.fixture
def store(path: Path, opened) -> Store:
    return opened(path)


@pytest.fixture
def other(path: Path, opened) -> Store:
    """Return the store of another process, as good as."""
    return opened(path)


def put(store: Store, name: str) -> None:
    with store.writing(unchecked) as connection:
        connection.execute(
            "INSERT INTO manual (name, generation, files, sections, characters) VALUES (?,1,0,0,0)", (name,)
        )


def names(store: Store) -> list[str]:
    with store.reading(unchecked) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM manual ORDER BY name")]


# One file


@pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
def test_nobody_else_may_read_the_file(store, path) -> None:
    put(store, "a")
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_every_root_and_every_edition_of_unicode_has_a_file_of_its_own(monkeypatch) -> None:
    here = index_path(Path("x"), Path("/a"))
    assert here == index_path(Path("x"), Path("/a"))
    monkeypatch.setattr(unicodedata, "unidata_version", "0.1")
    assert len({here, index_path(Path("x"), Path("/a")), index_path(Path("x"), Path("/b"))}) == 3


# Waiting and stopping


@pytest.mark.parametrize("swallowed", [(), (sqlite3.OperationalError,)], ids=["", "as if a query had failed"])
def test_a_query_is_stopped_and_its_connection_can_be_used_again(store, swallowed) -> None:
    forever = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(OutOfTime), store.reading(after(50)) as connection, suppress(*swallowed):
        connection.execute(forever).fetchone()
    assert names(store) == []


def test_opening_waits_for_another_process_that_makes_the_tables(store, path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OutOfTime), store.writing(after(3)):
            pytest.fail("not while another is at it")
        other.execute("COMMIT")
    put(store, "a")


def test_threads_that_open_a_new_index_at_once_open_the_same(path, opened) -> None:
    stores = [opened(path) for _ in range(6)]
    start = threading.Barrier(len(stores))

    def work(number: int) -> None:
        start.wait(5)
        put(stores[number], str(number))

    with ThreadPoolExecutor(len(stores)) as threads:
        list(threads.map(work, range(len(stores))))
    assert [names(store) for store in stores] == [list("012345")] * len(stores)


# In memory


# Closing


def test_a_connection_in_use_is_closed_when_it_comes_back(store) -> None:
    with store.reading(unchecked) as connection:
        store.close()
        connection.execute("SELECT * FROM manual")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    with pytest.raises(Unusable, match="closed"):
        put(store, "a")


# Broken and foreign files


def written(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def foreign(path: Path) -> None:
    written(path, "CREATE TABLE precious (a)")


def marked(path: Path, application_id: int, version: int) -> None:
    written(path, f"PRAGMA application_id = {application_id}", f"PRAGMA user_version = {version}")


BROKEN = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("Dear diary, " * 500, encoding="utf-8"),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
    "only a header": lambda path: path.write_bytes(b"SQLite format 3\0"),
    "another program's": foreign,
    "without tables": lambda path: marked(path, APPLICATION_ID, VERSION),
    "another version": lambda path: marked(path, APPLICATION_ID, VERSION + 1),
    "another program's without tables": lambda path: marked(path, 7, VERSION),
    "a log without its database": lambda path: Path(f"{path}-wal").write_bytes(b"\x37\x7f\x06\x82" + b"\0" * 5000),
    "left-overs": lambda path: [
        Path(f"{path}{end}").write_bytes(b"x" * 999) for end in ("", "-wal", "-shm", "-journal")
    ],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_stands_in_the_place_of_the_index_and_is_none_is_replaced(path, kind, opened) -> None:
    path.parent.mkdir()
    neighbour = path.with_name("other.sqlite3")
    foreign(neighbour)
    BROKEN[kind](path)
    before = neighbour.read_bytes()
    store = opened(path)
    put(store, "a")
    assert names(store) == ["a"]
    store.close()
    assert names(opened(path)) == ["a"]
    assert neighbour.read_bytes() == before


def test_a_file_cut_short_or_overwritten_anywhere_is_noticed_or_harmless(tmp_path) -> None:
    shelf = Shelf(tmp_path / "root")
    for number in range(30):
        shelf.write(f"{number}.md", f"# title {number}\n\n" + "some words of it " * 20)
    whole = tmp_path / "whole.sqlite3"
    store = Store(whole)
    updated(store, shelf)
    expected = seen(store)
    store.close()
    content = whole.read_bytes()
    dice = random.Random(7)
    for number in range(40):
        broken = bytearray(content)
        at = dice.randrange(len(content)) if number % 4 else dice.randrange(100)
        if number % 3:
            broken[at : at + 300] = dice.randbytes(300)
        else:
            del broken[at:]
        path = tmp_path / f"{number}.sqlite3"
        path.write_bytes(broken)
        store = Store(path)
        try:
            for _ in range(3):
                try:
                    updated(store, shelf)
                    found = seen(store)
                    break
                except sqlite3.DatabaseError as error:
                    if not is_broken(error):
                        raise
                    store.discard()
                except AssertionError:  # what `seen` checks
                    store.discard()
            assert found["rows"] == expected["rows"] or number % 3
        except Unusable:
            assert at < 100  # a header that says read-only: the index moves into memory
        finally:
            store.close()


@POSIX
def test_all_processes_move_to_the_index_that_replaces_another(store, other) -> None:
    put(store, "a")
    assert names(other) == ["a"]
    assert not store.is_replaced()
    other.discard()
    assert store.is_replaced()
    put(other, "b")
    assert store.is_replaced()
    with other.reading(unchecked):
        assert names(store) == ["b"]
        put(store, "c")
    assert not store.is_replaced()
    assert names(other) == ["b", "c"]


@POSIX
def test_an_old_connection_that_closes_late_does_no_harm_to_the_new_index(store, other, path, opened) -> None:
    put(store, "a")
    with store.reading(unchecked):
        other.discard()
        put(other, "b")
        assert Path(f"{path}-wal").exists()
    store.close()  # the last one of the old file, which would delete its log by name
    assert Path(f"{path}-wal").exists()
    assert names(opened(path)) == ["b"]


@POSIX
def test_an_index_that_another_process_made_in_place_of_the_broken_one_is_kept(store, other) -> None:
    put(store, "a")
    other.discard()
    put(other, "b")
    store.discard()  # it found the same file broken, and is late
    assert names(store) == names(other) == ["b"]


@POSIX
def test_a_foreign_file_that_another_process_replaces_meanwhile_is_not_replaced_again(
    store, other, path, monkeypatch
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"broken" * 100)
    real = sqlite3.connect

    class Slow(sqlite3.Connection):
        def close(self) -> None:  # as soon as it has seen what is there
            monkeypatch.setattr(sqlite3, "connect", real)
            put(other, "a")
            super().close()

    monkeypatch.setattr(sqlite3, "connect", partial(real, factory=Slow))
    assert names(store) == ["a"]


# Places that cannot be used


@pytest.mark.parametrize(
    ("sql", "broken"),
    [
        ("SELECT * FROM words_1", True),
        ("SELECT missing FROM manual", True),
        ("SELECT rowid FROM w WHERE w MATCH '\"'", False),
        ("SELECT rowid FROM w WHERE w MATCH 'AND'", False),
        ("SELEC", False),
    ],
)
def test_a_query_that_makes_no_sense_is_no_reason_to_throw_the_index_away(store, sql, broken) -> None:
    put(store, "a")
    with store.writing(unchecked) as connection:
        connection.execute("CREATE VIRTUAL TABLE w USING fts5(a)")
    with pytest.raises(sqlite3.OperationalError) as caught, store.reading(unchecked) as connection:
        connection.execute(sql).fetchall()
    assert is_broken(caught.value) is broken


def test_text_that_is_no_text_means_a_broken_file(store) -> None:
    put(store, "a")
    with store.writing(unchecked) as connection:
        connection.execute("UPDATE manual SET name = CAST(x'ff' AS TEXT)")
    with pytest.raises(sqlite3.OperationalError) as caught:
        names(store)
    assert is_broken(caught.value)
    assert not is_broken(sqlite3.ProgrammingError("Cannot operate on a closed database."))
    assert not is_broken(ValueError("decode"))
