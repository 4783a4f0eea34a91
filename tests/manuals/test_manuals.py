"""`Manuals`: requests in threads that share an index, are cancelled, run out of time, and survive a broken index."""

import gc
import logging
import os
import shutil
import sqlite3
import threading
import time
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.manuals import index
from responses_mcp.manuals import manuals as module
from responses_mcp.manuals import store as store_module
from responses_mcp.manuals.checks import Check, OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.library import Library
from responses_mcp.manuals.manuals import Manuals
from responses_mcp.manuals.requests import FindRequest, HitsRequest, LsRequest, ReadRequest
from responses_mcp.settings.model import ManualsSettings

WAIT = 20.0  # seconds; a bound for a stuck machine, not an expectation
POSIX = pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "root" / "shop", 30)
    return tmp_path / "root"


def write(folder: Path, files: int, start: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, start + files):
        (folder / f"{number}.md").write_text(f"# Title {number}\n\napples number{number}\n\n## Part\n\npears\n")


@asynccontextmanager
async def opened(root: Path, index: Path | None = None, **given: Any) -> AsyncGenerator[Manuals]:
    where = str(index) if index is not None else None
    manuals = Manuals(ManualsSettings(root=str(root), index_dir=where, **given))
    try:
        with trio.fail_after(WAIT):  # noqa: ASYNC100  # over what the test does
            yield manuals
    finally:
        with trio.CancelScope(shield=True):
            await manuals.aclose()


def asked(word: str = "apples", **given: Any) -> FindRequest:
    return FindRequest(**{"query": word, "manual_id": "shop", "required_terms": (word,), "use_cache": False, **given})


async def found(manuals: Manuals, word: str = "apples", **given: Any) -> list[str]:
    answer = await manuals.find(asked(word, **given))
    items = manuals.hits(HitsRequest(answer["trace_id"]), compact=True)["items"]
    return list(dict.fromkeys(item["ref"]["path"] for item in items))


async def unscanned(manuals: Manuals, **given: Any) -> dict[str, str]:
    answer = await manuals.find(asked(**given))
    rows = manuals.hits(HitsRequest(answer["trace_id"], "unscanned", 0, 1000))["items"]
    return {row["path"]: row["reason"] for row in rows}


class Gate:
    """Holds threads at a check until it is opened."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.open = threading.Event()

    def hold(self, check: Check) -> None:
        self.reached.set()
        until = time.monotonic() + WAIT
        while not self.open.wait(0.002):
            check()
            assert time.monotonic() < until

    async def wait(self) -> None:
        await trio.to_thread.run_sync(self.reached.wait, WAIT)


def held(monkeypatch: pytest.MonkeyPatch, method: str) -> Gate:
    """Hold the next call of a method of `Library`; later ones pass."""
    gate, real = Gate(), getattr(Library, method)
    first = iter([True])

    def holding(self: Library, *given: Any, **more: Any) -> Any:
        if next(first, False):
            gate.hold(next(each for each in given if callable(each)))
        return real(self, *given, **more)

    monkeypatch.setattr(Library, method, holding)
    return gate


async def idle(manuals: Manuals) -> None:
    """Wait until no thread is at work."""
    with trio.fail_after(WAIT):
        while manuals._limiter.borrowed_tokens or manuals._indexing.borrowed_tokens:  # noqa: ASYNC110  # there is no event
            await trio.sleep(0.001)


def open_transactions(manuals: Manuals) -> int:
    assert manuals._library is not None
    assert manuals._library._store is not None
    return sum(connection.in_transaction for connection, _ in manuals._library._store._idle)


@pytest.fixture(autouse=True)
def a_busy_machine_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the steps that have little time in earnest end, however slow the machine is."""
    for name in ("_LEAST_LOOK", "_LEAST_SEARCH", "_CLOSING"):
        monkeypatch.setattr(module, name, WAIT / 2)


@pytest.fixture
def no_freshness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FRESH", 0.0)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files count as unchanged for long, so that they are not read again."""
    monkeypatch.setattr(index, "_FRESH_NS", -(10**18))


# Finding


async def test_a_find_indexes_what_it_needs_and_the_next_finds_more(root, tmp_path, no_freshness) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        write(root / "shop", 1, 99)
        assert await found(manuals, "number99") == ["99.md"]
        (root / "shop" / "99.md").unlink()
        assert await found(manuals, "number99") == []
    async with opened(root, tmp_path / "index") as again:
        assert await found(again, "number7") == ["7.md"]


async def test_a_look_at_the_files_is_good_for_two_seconds(root, monkeypatch) -> None:
    assert module.FRESH == 2
    monkeypatch.setattr(module, "FRESH", WAIT)  # the machine may be busy
    async with opened(root) as manuals:
        assert await found(manuals, "number99") == []
        write(root / "shop", 1, 99)
        assert await found(manuals, "number99") == []
        manuals._states["shop"].looked -= module.FRESH
        assert await found(manuals, "number99") == ["99.md"]


async def test_an_answer_has_its_trace_and_its_diagnostics(root) -> None:
    async with opened(root) as manuals:
        answer = await manuals.find(asked(include_claim_graph=True))
        assert answer.keys() == {"trace_id", "applied", "summary", "next_actions", "claim_graph"}
        graph = answer["claim_graph"]
        for kind in ("claims", "evidences", "edges"):
            page = manuals.hits(HitsRequest(answer["trace_id"], kind, 0, 1000))
            assert page["items"] == graph[kind]
        assert answer["summary"]["scanned_files"] == 30
        for kind in ("candidates", "integrated_top", "gaps", "conflicts", "gate_runs", "fusion_debug", "unscanned"):
            assert manuals.hits(HitsRequest(answer["trace_id"], kind))["kind"] == kind


async def test_the_same_question_is_answered_from_the_cache_until_something_changes(root, no_freshness) -> None:
    async with opened(root) as manuals:
        modes = []
        for _ in range(2):
            answer = await manuals.find(asked(use_cache=True))
            modes.append(answer["applied"]["sem_cache_mode"])
        write(root / "shop", 1, 50)
        answer = await manuals.find(asked(use_cache=True))
        assert [*modes, answer["applied"]["sem_cache_mode"]] == ["miss", "exact", "miss"]
        assert manuals.hits(HitsRequest(answer["trace_id"]))["total"] > 0


async def test_what_is_kept_of_finds_is_small(root) -> None:
    async with opened(root) as manuals:
        answer = await manuals.find(asked(use_cache=True, include_claim_graph=False))
        for payload in (
            manuals._traces.get(answer["trace_id"]),
            *(entry.payload for entry in manuals._cache._entries.values()),
        ):
            assert isinstance(payload["packed"], bytes)
            assert not {"candidates", "fusion_debug", "gate_runs", "claim_graph"} & payload.keys()


async def test_a_manual_that_does_not_exist_is_told(root) -> None:
    async with opened(root) as manuals:
        with pytest.raises(ManualsError) as caught:
            await manuals.find(asked(manual_id="nothing"))
        assert caught.value.code == "not_found"
        assert manuals._states == {}


async def test_a_find_finds_text_that_fts5_takes_for_syntax(root) -> None:
    async with opened(root) as manuals:
        await manuals.find(asked())
        assert manuals._library is not None
        for text in ('"', "NEAR(", "a AND", "*", "a\0b", "^a", "{a}:b", "-", "ー"):
            with suppress(sqlite3.OperationalError):
                await manuals.find(asked(text))
        assert manuals._library.age == 0
        assert await found(manuals, "number7") == ["7.md"]


# Little time


async def test_finds_with_the_smallest_budget_answer_and_get_on(root, settled) -> None:
    write(root / "shop", 600)
    async with opened(root, max_file_bytes=10_000) as manuals:
        left = [await unscanned(manuals, time_ms=1)]
        for _ in range(100):
            left.append(await unscanned(manuals, time_ms=1))
            if not left[-1]:
                break
        assert left[-1] == {}
        counts = [len(each) for each in left]
        assert counts == sorted(counts, reverse=True)


async def test_files_are_told_that_are_not_searched_and_why(root, monkeypatch) -> None:
    (root / "shop" / "large.md").write_text("x" * 5000)
    gate = held(monkeypatch, "bring_up")
    async with opened(root, max_file_bytes=1000) as manuals, trio.open_nursery() as nursery:
        nursery.start_soon(manuals.find, asked())
        await gate.wait()
        waiting = await unscanned(manuals, time_ms=5)  # another one is at it
        assert set(waiting.values()) == {"time_budget"}
        assert len(waiting) == 31
        gate.open.set()
        assert await unscanned(manuals) == {"large.md": "too_large"}


async def test_what_was_not_searched_comes_first_when_it_is_asked_for(root, monkeypatch, settled) -> None:
    orders: list[list[str]] = []
    real = Library.bring_up

    def noting(self: Library, refresh: Any, check: Check, **given: Any) -> Any:
        orders.append(sorted(given["first"].paths()) if given["first"] is not None else [])
        return real(self, refresh, check, **given)

    def out_of_time(*_: Any, **__: Any) -> Any:
        raise OutOfTime

    async with opened(root) as manuals:
        await manuals.find(asked())
        (root / "shop" / "0.md").write_text("# changed\n")
        manuals._states["shop"].looked -= module.FRESH
        monkeypatch.setattr(Library, "bring_up", out_of_time)
        answer = await manuals.find(asked())
        monkeypatch.setattr(Library, "bring_up", noting)
        await manuals.find(asked(only_unscanned_from_trace_id=answer["trace_id"]))
        assert orders == [["0.md"]]


async def test_an_answer_that_misses_something_is_not_kept_for_the_same_question(root, monkeypatch) -> None:
    gate = held(monkeypatch, "bring_up")
    real = Library.search

    def searching(self: Library, request: Any, refresh: Any, check: Check) -> Any:
        result = real(self, request, refresh, check)
        refresh.stale.clear()  # the other one ends while this one comes back from its search
        return result

    async with opened(root) as manuals, trio.open_nursery() as nursery:
        nursery.start_soon(manuals.find, asked())
        await gate.wait()
        modes = []
        for search in (real, searching, real):
            monkeypatch.setattr(Library, "search", search)
            answer = await manuals.find(asked(time_ms=5, use_cache=True))
            modes.append(answer["applied"]["sem_cache_mode"])
        assert modes == ["miss"] * 3
        gate.open.set()


async def test_a_thread_that_hangs_keeps_nobody_waiting_longer_than_its_budget(root, monkeypatch) -> None:
    monkeypatch.setattr(module, "_GRACE", 0.05)
    monkeypatch.setattr(module, "_LEAST_LOOK", 0.05)
    release = threading.Event()
    real, first = Library.compare, iter([True])
    monkeypatch.setattr(
        Library, "compare", lambda self, *given: release.wait(WAIT) if next(first, False) else real(self, *given)
    )
    try:
        async with opened(root) as manuals:
            await manuals.find(asked(time_ms=10))
            assert await found(manuals, "number7") == ["7.md"]
            release.set()
    finally:
        release.set()


# Cancelling


@pytest.mark.parametrize("stage", ["compare", "bring_up", "generation", "search"])
async def test_a_find_cancelled_at_any_stage_ends_at_once_and_leaves_nothing(root, monkeypatch, stage) -> None:
    gate = held(monkeypatch, stage)
    async with opened(root) as manuals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manuals.find, asked(use_cache=True))
            await gate.wait()
            nursery.cancel_scope.cancel()
        await idle(manuals)
        assert manuals._library is None or manuals._library._store is None or open_transactions(manuals) == 0
        assert await found(manuals, "number7") == ["7.md"]


async def test_a_find_cancelled_while_another_process_writes_lets_its_thread_go(root, tmp_path, settled) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        [file] = (tmp_path / "index").glob("*.sqlite3")
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        write(root / "shop", 1, 99)
        manuals._states["shop"].looked -= module.FRESH
        with trio.move_on_after(0.1):
            await manuals.find(asked())
            pytest.fail("it wrote at the same time")
        await idle(manuals)
        assert (await unscanned(manuals, time_ms=20)) == {"99.md": "time_budget"}
        other.execute("ROLLBACK")
        other.close()
        assert await found(manuals, "number99") == ["99.md"]


async def test_the_find_that_waits_goes_on_when_the_one_that_builds_is_cancelled(root, monkeypatch) -> None:
    gate = held(monkeypatch, "bring_up")
    async with opened(root) as manuals, trio.open_nursery() as nursery:
        builder = trio.CancelScope()

        async def build() -> None:
            with builder:
                await manuals.find(asked())

        nursery.start_soon(build)
        await gate.wait()
        paths: list[str] = []
        done = trio.Event()

        async def wait() -> None:
            paths.extend(await found(manuals, "number7"))
            done.set()

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        builder.cancel()
        await done.wait()
        assert paths == ["7.md"]


async def test_many_cancelled_finds_leave_no_connection_and_no_transaction_open(root, tmp_path, monkeypatch) -> None:
    write(root / "shop", 200)
    opened_now: set[int] = set()
    real = store_module._opened

    class Counted(sqlite3.Connection):
        def close(self) -> None:
            opened_now.discard(id(self))
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, **more, factory=Counted))

    def counting(*given: Any) -> sqlite3.Connection:
        connection = real(*given)
        opened_now.add(id(connection))
        return connection

    monkeypatch.setattr(store_module, "_opened", counting)
    async with opened(root, tmp_path / "index") as manuals:
        for number in range(30):
            with trio.move_on_after(0.002 * number):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(manuals.find, asked())
                    nursery.start_soon(manuals.find, asked("pears"))
        await idle(manuals)
        assert open_transactions(manuals) == 0
        assert len(opened_now) <= 4
        assert await found(manuals, "number7") == ["7.md"]
    assert opened_now == set()


# Others meanwhile


@pytest.mark.parametrize("stage", ["compare", "bring_up"])
async def test_reading_goes_on_while_many_manuals_are_indexed(root, monkeypatch, stage) -> None:
    for number in range(8):
        write(root / f"manual{number}", 1)
    gate, real = Gate(), getattr(Library, stage)

    def holding(self: Library, what: Any, check: Check, **given: Any) -> Any:
        gate.hold(check)
        return real(self, what, check, **given)

    monkeypatch.setattr(Library, stage, holding)
    async with opened(root) as manuals, trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(manuals.find, asked(manual_id=f"manual{number}"))
        await gate.wait()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert len((await manuals.ls(LsRequest()))["items"]) == 9
        assert (await manuals.read(ReadRequest("shop", "1.md")))[0]["text"]
        gate.open.set()


async def test_progress_is_told_while_an_index_is_built(root, settled) -> None:
    phases: list[str] = []
    async with opened(root) as manuals:
        await manuals.find(asked(), on_phase=phases.append)
        assert phases[0] == "indexing shop: 0 of 30 files"
        progress: list[tuple[int, int]] = []
        write(root / "shop", 3, 100)
        report = await manuals.index("shop", on_progress=lambda done, every: progress.append((done, every)))
        assert (report.files, report.changed, report.unindexed, report.in_memory) == (33, 3, {}, None)
        assert progress[0] == (0, 3)


# A broken index


def spoil_header(file: Path) -> None:
    file.write_bytes(b"junk" * 1000)


def spoil_pages(file: Path) -> None:
    content = bytearray(file.read_bytes())
    for at in range(8192, len(content) - 500, 4096):
        content[at : at + 400] = os.urandom(400)
    file.write_bytes(content)


def drop_words(file: Path) -> None:
    connection = sqlite3.connect(file)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%fts5%'").fetchall():
        connection.execute(f"DROP TABLE {name}")
    connection.commit()
    connection.close()


def empty(file: Path) -> None:
    connection = sqlite3.connect(file)
    connection.execute("DELETE FROM manual")
    connection.commit()
    connection.close()


@POSIX
@pytest.mark.parametrize("spoil", [spoil_header, spoil_pages, drop_words, empty, Path.unlink])
@pytest.mark.parametrize("when", ["before a start", "while it runs", "just after a look"])
async def test_a_spoilt_index_is_made_anew_within_the_find_that_meets_it(root, tmp_path, spoil, when) -> None:
    folder = tmp_path / "index"
    async with opened(root, folder) as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        [file] = folder.glob("*.sqlite3")
        if when != "before a start":
            for connection, _ in manuals._library._store._idle:  # type: ignore[union-attr]
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.execute("PRAGMA shrink_memory")
            spoil(file)
            if when == "while it runs":
                manuals._states["shop"].looked -= module.FRESH
            assert await found(manuals, "number7") == ["7.md"]
            assert await found(manuals, "number8") == ["8.md"]
    if when == "before a start":
        spoil(file)
    async with opened(root, folder) as again:
        assert await found(again, "number7") == ["7.md"]
        assert (await again.find(asked()))["summary"]["scanned_files"] == 30


async def test_two_finds_that_meet_a_broken_index_throw_it_away_once(root, tmp_path) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        assert manuals._library is not None
        assert manuals._library._store is not None
        with manuals._library._store.writing(lambda: None) as connection:
            connection.execute("DROP TABLE section")
        results: list[list[str]] = []

        async def find() -> None:
            results.append(await found(manuals, "number7"))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(find)
        assert results == [["7.md"]] * 4
        assert manuals._library.age == 1


async def test_an_index_that_breaks_again_and_again_is_told(root, monkeypatch) -> None:
    def broken(*_: Any) -> Any:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    async with opened(root) as manuals:
        await manuals.find(asked())
        monkeypatch.setattr(Library, "search", broken)
        with pytest.raises(ManualsError, match="again and again") as caught:
            await manuals.find(asked())
        assert caught.value.code == "conflict"


async def test_a_full_disk_is_told_and_finds_go_on_when_there_is_room(root, tmp_path) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        assert manuals._library is not None
        assert manuals._library._store is not None

        def limit(pages: int) -> None:
            for connection, _ in manuals._library._store._idle:  # type: ignore[union-attr]
                connection.execute(f"PRAGMA max_page_count = {pages}")

        limit(1)
        (root / "shop" / "big.md").write_text("word " * 100_000)
        manuals._states["shop"].looked -= module.FRESH
        with pytest.raises(ManualsError, match=r"full.*make room") as caught:
            await manuals.find(asked())
        assert caught.value.code == "conflict"
        assert open_transactions(manuals) == 0
        limit(10**6)
        assert await found(manuals, "number7") == ["7.md"]
        assert await found(manuals, "word") == ["big.md"]


@pytest.mark.parametrize("kind", ["file", "below a file"])
async def test_without_a_folder_for_it_the_index_is_kept_in_memory(root, tmp_path, caplog, kind) -> None:
    (tmp_path / "file").write_text("x")
    place = tmp_path / "file" if kind == "file" else tmp_path / "file" / "below"
    with caplog.at_level(logging.WARNING):
        async with opened(root, place) as manuals:
            assert await found(manuals, "number7") == ["7.md"]
            assert (await manuals.index("shop")).in_memory
    [line] = [record.getMessage() for record in caplog.records if "in memory" in record.getMessage()]
    assert str(tmp_path) not in line
    assert (tmp_path / "file").read_text() == "x"


async def test_an_index_in_the_folder_of_manuals_is_no_manual_page(root) -> None:
    async with opened(root, root / "shop" / "index") as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        manuals._states["shop"].looked -= module.FRESH
        assert (await manuals.find(asked()))["summary"]["scanned_files"] == 30


# Closing


async def test_closing_ends_a_build_at_once_and_leaves_nothing_open(root, tmp_path, monkeypatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate = held(monkeypatch, "bring_up")
        ended: list[str] = []

        async def find(manuals: Manuals) -> None:
            try:
                await manuals.find(asked())
            except ManualsError as error:
                ended.append(error.code)

        async with opened(root, tmp_path / "index") as manuals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(find, manuals)
                nursery.start_soon(find, manuals)  # waits for the first
                await gate.wait()
                await manuals.aclose()
            assert ended == ["conflict", "conflict"]
            assert manuals._library is not None
            assert manuals._library._store is not None
            assert manuals._library._store._idle == []
            for request in (manuals.find(asked()), manuals.ls(LsRequest())):
                with pytest.raises(ManualsError, match="closed"):
                    await request
            await manuals.aclose()  # a second time does nothing
        assert not list((tmp_path / "index").glob("*-wal"))
        gc.collect()


async def test_closing_does_not_wait_long_for_a_thread_that_hangs(root, monkeypatch) -> None:
    monkeypatch.setattr(module, "_CLOSING", 0.05)
    release, reached = threading.Event(), threading.Event()

    def hang(*_: Any) -> list[str]:
        reached.set()
        release.wait(WAIT)
        return []

    monkeypatch.setattr(Folder, "manuals", hang)
    try:
        async with opened(root) as manuals, trio.open_nursery() as nursery:
            nursery.start_soon(manuals.ls, LsRequest())
            await trio.to_thread.run_sync(reached.wait, WAIT)
            await manuals.aclose()
            nursery.cancel_scope.cancel()
    finally:
        release.set()


async def test_a_manual_that_is_deleted_and_comes_back_is_searched_as_it_is(root, no_freshness) -> None:
    async with opened(root) as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        shutil.rmtree(root / "shop")
        with pytest.raises(ManualsError) as caught:
            await manuals.find(asked())
        assert caught.value.code == "not_found"
        write(root / "shop", 1, 8)
        assert await found(manuals, "number7") == []
        assert await found(manuals, "number8") == ["8.md"]
