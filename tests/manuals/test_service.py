"""`Manuals`: requests in threads that share an index, are cancelled, run out of time, and survive a broken index."""

import asyncio
import gc
import re
import shutil
import sqlite3
import threading
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.errors import NotUnderTrio
from responses_mcp.manuals.cancellation import CancellationCheck, OutOfTime
from responses_mcp.manuals.embeddings.embedder import Embedder
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.index import store
from responses_mcp.manuals.library import Library
from responses_mcp.manuals.requests import FindRequest, HitsRequest, LsRequest, ReadRequest, SearchRequest
from responses_mcp.manuals.service import Manuals, open_manuals
from responses_mcp.manuals.threads import INDEXING, Times
from responses_mcp.settings.model import ManualsSettings, Settings

WAIT = 20.0  # seconds; a bound for a stuck machine, not an expectation


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "root" / "shop", 30)
    return tmp_path / "root"


def write(folder: Path, files: int, start: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(start, start + files):
        (folder / f"{number}.md").write_text(
            f"# Title {number}\n\napples number{number}\n\n## Part\n\npears\n", encoding="utf-8"
        )


# No find believes an earlier look at the files, and steps with little time in earnest end on a busy machine, too.
TIMES = Times(fresh=0.0, looks_apart=0.0, least_look=WAIT / 2, least_search=WAIT / 2, closing=WAIT / 2)


@asynccontextmanager
async def opened(
    root: Path, index: Path | None = None, times: Times = TIMES, embedder: Embedder | None = None, **given: Any
) -> AsyncGenerator[Manuals]:
    where = str(index) if index is not None else None
    manuals = Manuals(ManualsSettings(root=str(root), index_dir=where, **given), embedder=embedder, times=times)
    try:
        with trio.fail_after(WAIT):  # noqa: ASYNC100  # over what the test does
            yield manuals
    finally:
        with trio.CancelScope(shield=True):
            await manuals.aclose()


@contextmanager
def locked_elsewhere(folder: Path) -> Generator[sqlite3.Connection]:
    """Hold the lock of the index in a folder, as another process that writes, and does nothing."""
    [file] = folder.glob("*.sqlite3")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other


def asked(word: str = "apples", **given: Any) -> FindRequest:
    return FindRequest(**{"query": word, "manual_id": "shop", "required_terms": (word,), "use_cache": False, **given})


EVERYWHERE = SearchRequest("apples", limit=30)


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

    def hold(self, check: CancellationCheck) -> None:
        self.reached.set()
        until = time.monotonic() + WAIT
        while not self.open.wait(0.002):
            check()
            assert time.monotonic() < until

    async def wait(self) -> None:
        await trio.to_thread.run_sync(self.reached.wait, WAIT)


def held(monkeypatch: pytest.MonkeyPatch, method: str, *, every: bool = False) -> Gate:
    """Hold the next call of a method of `Library`, or every one, until the gate is open."""
    gate, real = Gate(), getattr(Library, method)
    first = iter([True])

    def holding(self: Library, *given: Any, **more: Any) -> Any:
        if next(first, every):
            gate.hold(next(each for each in given if callable(each)))
        return real(self, *given, **more)

    monkeypatch.setattr(Library, method, holding)
    return gate


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files count as unchanged for long, so that they are not read again."""
    monkeypatch.setattr("responses_mcp.manuals.files.folder._FRESH_NS", -(10**18))


# Finding


async def test_a_find_indexes_what_it_needs_and_the_next_finds_more(root, tmp_path) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        write(root / "shop", 1, 99)
        assert await found(manuals, "number99") == ["99.md"]
        (root / "shop" / "99.md").unlink()
        assert await found(manuals, "number99") == []
    async with opened(root, tmp_path / "index") as again:
        assert await found(again, "number7") == ["7.md"]


async def test_a_look_at_the_files_is_good_for_a_while(root) -> None:
    assert Times().fresh == 2
    async with opened(root, times=replace(TIMES, fresh=0.5)) as manuals:
        assert await found(manuals, "number99") == []
        began = trio.current_time()
        write(root / "shop", 1, 99)
        first = await found(manuals, "number99")
        assert first == [] or trio.current_time() > began + 0.5, "the machine is busy"
        await trio.sleep(0.5)
        assert await found(manuals, "number99") == ["99.md"]


async def test_a_look_that_takes_long_is_good_for_longer_until_the_index_is_made(root) -> None:
    assert Times().looks_apart == 20
    async with opened(root, times=replace(TIMES, looks_apart=10**9)) as manuals:  # any look takes some time
        assert await found(manuals, "number99") == []
        write(root / "shop", 1, 99)
        assert await found(manuals, "number99") == []
        await manuals.index("shop")
        assert await found(manuals, "number99") == ["99.md"]


async def test_the_same_question_is_answered_from_the_cache_until_something_changes(root) -> None:
    async with opened(root) as manuals:
        modes = []
        for _ in range(2):
            answer = await manuals.find(asked(use_cache=True))
            modes.append(answer["applied"]["sem_cache_mode"])
        write(root / "shop", 1, 50)
        answer = await manuals.find(asked(use_cache=True))
        assert [*modes, answer["applied"]["sem_cache_mode"]] == ["miss", "exact", "miss"]
        assert manuals.hits(HitsRequest(answer["trace_id"]))["total"] > 0


async def test_a_manual_that_does_not_exist_is_told(root) -> None:
    async with opened(root) as manuals:
        with pytest.raises(ManualsError) as caught:
            await manuals.find(asked(manual_id="nothing"))
        assert caught.value.code == "not_found"


async def test_a_find_finds_text_that_fts5_takes_for_syntax(root, caplog) -> None:
    async with opened(root) as manuals:
        for text in ('"', "NEAR(", "a AND", "*", "a\0b", "^a", "{a}:b", "-", "ー"):
            with suppress(sqlite3.OperationalError):
                await manuals.find(asked(text))
        assert await found(manuals, "number7") == ["7.md"]
    assert caplog.records == [], "no index was thrown away"


# Little time


async def test_finds_with_the_smallest_budget_answer_and_get_on(root, settled) -> None:
    write(root / "shop", 600)
    async with opened(root) as manuals:
        left = [await unscanned(manuals, time_ms=1)]
        for _ in range(100):
            left.append(await unscanned(manuals, time_ms=1))
            if not left[-1]:
                break
        assert left[-1] == {}
        counts = [len(each) for each in left]
        assert counts == sorted(counts, reverse=True)


async def test_files_are_told_that_are_not_searched_and_why(root, monkeypatch) -> None:
    (root / "shop" / "large.md").write_text("x" * 5000, encoding="utf-8")
    gate = held(monkeypatch, "update")
    monkeypatch.setattr("responses_mcp.manuals.files.folder.LARGEST", 1000)
    async with opened(root) as manuals, trio.open_nursery() as nursery:
        nursery.start_soon(manuals.find, asked())
        await gate.wait()
        waiting = await unscanned(manuals, time_ms=5)  # another one is at it
        assert set(waiting.values()) == {"time_budget"}
        assert len(waiting) == 31
        gate.open.set()
        assert await unscanned(manuals) == {"large.md": "too_large"}


async def test_files_that_are_wanted_most_are_read_first(root, monkeypatch, settled) -> None:
    read: list[str] = []
    real = Folder.open

    def noting(self: Folder, manual_id: str, path: str, **how: Any) -> Any:
        read.append(path)
        return real(self, manual_id, path, **how)

    def out_of_time(*_: Any, **__: Any) -> Any:
        raise OutOfTime

    monkeypatch.setattr(Folder, "open", noting)
    async with opened(root) as manuals:
        await manuals.find(asked("17"))
        assert read[0] == "17.md", "a word of the question is in its path"
        (root / "shop" / "5.md").write_text("# changed\n", encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(Library, "update", out_of_time)
            answer = await manuals.find(asked())
        write(root / "shop", 30)
        read.clear()
        await manuals.find(asked(only_unscanned_from_trace_id=answer["trace_id"]))
        assert read[0] == "5.md", "it was not searched the last time"


async def test_an_answer_that_misses_something_is_not_kept_for_the_same_question(root, monkeypatch) -> None:
    gate = held(monkeypatch, "update")
    real = Library.search

    def searching(self: Library, request: Any, changes: Any, *more: Any) -> Any:
        result = real(self, request, changes, *more)
        changes.changed.clear()  # the other one ends while this one comes back from its search
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
    release = threading.Event()
    real, first = Library.compare, iter([True])
    monkeypatch.setattr(
        Library, "compare", lambda self, *given: release.wait(WAIT) if next(first, False) else real(self, *given)
    )
    try:
        async with opened(root, times=replace(TIMES, grace=0.05, least_look=0.05)) as manuals:
            await manuals.find(asked(time_ms=10))
            assert await found(manuals, "number7") == ["7.md"]
            release.set()
    finally:
        release.set()


# Cancelling


@pytest.mark.parametrize(
    ("way", "stage"),
    [
        *(("find", stage) for stage in ("compare", "update", "generation", "search")),
        *(("search", stage) for stage in ("compare", "update", "search_everywhere")),
    ],
)
async def test_a_request_cancelled_at_any_stage_ends_at_once_and_is_in_nobodys_way(
    root, tmp_path, monkeypatch, way, stage
) -> None:
    gate = held(monkeypatch, stage)
    async with opened(root, tmp_path / "index") as manuals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(getattr(manuals, way), asked(use_cache=True) if way == "find" else EVERYWHERE)
            await gate.wait()
            nursery.cancel_scope.cancel()
        write(root / "shop", 1, 99)
        assert await found(manuals, "number99") == ["99.md"]


async def test_a_find_cancelled_while_another_process_writes_releases_its_thread(root, tmp_path, settled) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        with locked_elsewhere(tmp_path / "index") as other:
            write(root / "shop", 1, 99)
            for _ in range(INDEXING + 1):  # more than there are threads
                with trio.move_on_after(0.1):
                    await manuals.find(asked())
                    pytest.fail("it wrote at the same time")
            assert (await unscanned(manuals, time_ms=20)) == {"99.md": "time_budget"}
            other.execute("ROLLBACK")
        assert await found(manuals, "number99") == ["99.md"]


async def test_the_find_that_waits_goes_on_when_the_one_that_builds_is_cancelled(root, monkeypatch) -> None:
    gate = held(monkeypatch, "update")
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


async def test_many_cancelled_finds_leave_no_connection_open(root, tmp_path, monkeypatch) -> None:
    write(root / "shop", 200)
    open_now: set[int] = set()

    class Counted(sqlite3.Connection):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            open_now.add(id(self))

        def close(self) -> None:
            open_now.discard(id(self))
            super().close()

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Counted))
    async with opened(root, tmp_path / "index") as manuals:
        for number in range(30):
            with trio.move_on_after(0.002 * number):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(manuals.find, asked())
                    nursery.start_soon(manuals.find, asked("pears"))
        assert await found(manuals, "number7") == ["7.md"]
        assert open_now
    assert open_now == set()


# Others meanwhile


@pytest.mark.parametrize("stage", ["compare", "update"])
async def test_reading_goes_on_while_many_manuals_are_indexed(root, monkeypatch, stage) -> None:
    for number in range(8):
        write(root / f"manual{number}", 1)
    gate = held(monkeypatch, stage, every=True)
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
        write(root / "shop", 1, 99)
        await manuals.search(EVERYWHERE, on_phase=phases.append)
        assert (phases[0], phases[-1]) == ("indexing shop: 0 of 30 files", "indexing shop: 1 of 1 files")
        progress: list[tuple[int, int]] = []
        write(root / "shop", 3, 100)
        report = await manuals.index("shop", on_progress=lambda done, every: progress.append((done, every)))
        assert (report.files, report.changed, report.unindexed, report.in_memory) == (34, 3, {}, None)
        assert (progress[0], progress[-1]) == ((0, 3), (3, 3))


# A broken index


@pytest.mark.parametrize(("way", "work"), [("find", "search"), ("search", "search_everywhere")])
async def test_an_index_that_breaks_again_and_again_is_told(root, monkeypatch, way, work) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        error = sqlite3.DatabaseError("database disk image is malformed")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error

    request = asked() if way == "find" else EVERYWHERE
    async with opened(root) as manuals:
        await getattr(manuals, way)(request)
        monkeypatch.setattr(Library, work, broken)
        with pytest.raises(ManualsError, match="again and again") as caught:
            await getattr(manuals, way)(request)
        assert caught.value.code == "conflict"


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what sets how many pages the index may have; more are like a full disk."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(path: str, **more: Any) -> sqlite3.Connection:
        connection = connect(path, **more)
        if path != ":memory:":
            connections.append(connection)
        return connection

    def set_limit(pages: int) -> None:
        for connection in connections:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                connection.execute(f"PRAGMA max_page_count = {pages}")

    monkeypatch.setattr(sqlite3, "connect", noted)
    return set_limit


async def test_a_disk_that_fills_in_an_update_leaves_what_is_indexed_and_the_rest_is_said(
    root, tmp_path, settled, limit
) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        assert await unscanned(manuals) == {}
        limit(1)
        (root / "shop" / "big.md").write_text("word " * 100_000, encoding="utf-8")
        assert await found(manuals, "number7") == ["7.md"]
        assert await unscanned(manuals) == {"big.md": "disk_full"}
        for journal in (tmp_path / "index").glob("*-wal"):
            assert journal.stat().st_size == 0
        report = await manuals.index("shop")
        assert (report.unindexed, report.in_memory) == ({"big.md": "disk_full"}, None)
        limit(10**6)
        assert await found(manuals, "word") == ["big.md"]
        assert await unscanned(manuals) == {}


async def test_a_disk_that_fills_in_a_build_makes_the_index_move_into_memory(root, tmp_path, limit) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        write(root / "other", 40)
        (root / "other" / "big.md").write_text("word " * 100_000, encoding="utf-8")
        limit(1)
        assert await found(manuals, "number7", manual_id="other") == ["7.md"]
        assert await found(manuals, "word", manual_id="other") == ["big.md"]
        assert await found(manuals, "number7") == ["7.md"]
        assert not [*(tmp_path / "index").iterdir()]  # the room it took is given back
        report = await manuals.index("shop")
        assert "full" in (report.in_memory or "")


async def test_a_writer_that_does_nothing_costs_three_seconds_and_then_nothing(
    root, tmp_path, settled, monkeypatch
) -> None:
    assert store._PATIENCE == 3
    monkeypatch.setattr(store, "_PATIENCE", 0.2)
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        write(root / "shop", 1, 99)
        write(root / "new", 1)
        with locked_elsewhere(tmp_path / "index") as other:
            assert await unscanned(manuals) == {"99.md": "locked"}
            monkeypatch.setattr(store, "_PATIENCE", float("inf"))  # nobody waits a second time
            assert await found(manuals, "number7") == ["7.md"]
            other.execute("ROLLBACK")
        assert await found(manuals, "number99") == ["99.md"]
        assert await unscanned(manuals) == {}


async def test_a_manual_that_is_new_is_searched_in_memory_while_a_writer_does_nothing(
    root, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(store, "_PATIENCE", 0.2)
    async with opened(root, tmp_path / "index") as manuals:
        await manuals.find(asked())
        write(root / "new", 5)
        with locked_elsewhere(tmp_path / "index"):
            assert await found(manuals, "number3", manual_id="new") == ["3.md"]


async def test_an_index_in_the_folder_of_manuals_is_no_manual_page(root) -> None:
    async with opened(root, root / "shop" / "index") as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        assert (await manuals.find(asked()))["summary"]["scanned_files"] == 30


# Closing


@pytest.mark.parametrize("stage", ["compare", "update", "generation", "search", "rebuild"])
async def test_a_call_cancelled_together_with_the_manuals_it_asks_is_cancelled(root, monkeypatch, stage) -> None:
    """A scope around both ends the call and closes the manuals; which of them comes first must not be seen."""
    ended: list[str] = []
    gate = held(monkeypatch, stage) if stage != "rebuild" else None

    async def find(manuals: Manuals) -> None:
        try:
            await manuals.find(asked(use_cache=True))
            await manuals.find(asked(use_cache=True))  # whose generation matters, now that the question is in the cache
        except ManualsError as error:
            ended.append(error.message)
            raise
        except trio.Cancelled:
            ended.append("cancelled")
            raise

    for _ in range(5):
        async with trio.open_nursery() as outside, opened(root) as manuals:
            outside.start_soon(find, manuals)  # noqa: ASYNC111  # one scope around both is what is tried
            if gate is not None:
                await gate.wait()
            else:
                await trio.testing.wait_all_tasks_blocked()
            manuals._threads._closed = True  # as far as another task has come that was cancelled before
            outside.cancel_scope.cancel()
            if gate is not None:
                gate.open.set()
        manuals._threads._closed = False
        await manuals.aclose()  # which that task would have done
    assert set(ended) == {"cancelled"}


async def test_closing_ends_a_build_at_once_and_leaves_nothing_open(root, tmp_path, monkeypatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate = held(monkeypatch, "update")
        ended: list[str] = []

        async def find(manuals: Manuals, *, everywhere: bool = False) -> None:
            try:
                await (manuals.search(EVERYWHERE) if everywhere else manuals.find(asked()))
            except ManualsError as error:
                ended.append(error.code)

        async with opened(root, tmp_path / "index") as manuals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(find, manuals)
                nursery.start_soon(find, manuals)  # waits for the first
                nursery.start_soon(partial(find, manuals, everywhere=True))
                await gate.wait()
                await manuals.aclose()
            assert ended == ["conflict"] * 3
            for request in (manuals.find(asked()), manuals.ls(LsRequest())):
                with pytest.raises(ManualsError, match="closed"):
                    await request
            await manuals.aclose()  # a second time does nothing
        assert not list((tmp_path / "index").glob("*-wal"))
        gc.collect()


async def test_the_hits_of_a_find_are_gone_when_the_manuals_are_closed(root) -> None:
    async with opened(root) as manuals:
        answer = await manuals.find(asked())
    for kind in ("candidates", "unscanned"):
        with pytest.raises(ManualsError, match="manuals are closed"):
            manuals.hits(HitsRequest(answer["trace_id"], kind))
        with pytest.raises(ManualsError, match="manuals are closed"):
            await manuals.hits_with_passages(HitsRequest(answer["trace_id"], kind))


async def test_closing_does_not_wait_long_for_a_thread_that_hangs(root, monkeypatch) -> None:
    release, reached = threading.Event(), threading.Event()

    def hang(*_: Any) -> list[str]:
        reached.set()
        release.wait(WAIT)
        return []

    monkeypatch.setattr(Folder, "manuals", hang)
    try:
        async with opened(root, times=replace(TIMES, closing=0.05)) as manuals, trio.open_nursery() as nursery:
            nursery.start_soon(manuals.ls, LsRequest())
            await trio.to_thread.run_sync(reached.wait, WAIT)
            await manuals.aclose()
            nursery.cancel_scope.cancel()
    finally:
        release.set()


async def test_a_manual_that_is_deleted_and_comes_back_is_searched_as_it_is(root) -> None:
    async with opened(root) as manuals:
        assert await found(manuals, "number7") == ["7.md"]
        shutil.rmtree(root / "shop")
        with pytest.raises(ManualsError) as caught:
            await manuals.find(asked())
        assert caught.value.code == "not_found"
        write(root / "shop", 1, 8)
        assert await found(manuals, "number7") == []
        assert await found(manuals, "number8") == ["8.md"]


async def test_a_root_that_is_a_file_is_told_as_that(tmp_path: Path) -> None:
    file = tmp_path / "book.md"
    file.write_text("# Book\n", encoding="utf-8")
    said = "The folder of manuals is a file, not a folder; set manuals.root (MANUALS_ROOT) to the folder"
    with trio.fail_after(WAIT):
        async with open_manuals(ManualsSettings(root=str(file))) as manuals:
            for ask in (lambda: manuals.ls(LsRequest()), lambda: manuals.search(SearchRequest("q"))):
                with pytest.raises(ManualsError, match=re.escape(said)):
                    await ask()
            with pytest.raises(ManualsError, match=re.escape(said)):
                await manuals.read(ReadRequest("shop", "a.md"))


async def test_all_settings_will_do_to_open_the_manuals(root: Path) -> None:
    settings = Settings(manuals=ManualsSettings(root=str(root)))
    with trio.fail_after(WAIT):
        async with open_manuals(settings) as manuals:
            assert [each["id"] for each in (await manuals.ls(LsRequest()))["items"]] == ["shop"]


def test_a_search_under_asyncio_is_told_how_it_can_be_done(root: Path) -> None:
    manuals = Manuals(ManualsSettings(root=str(root)))
    find = FindRequest("q", "shop", ["q"])
    for ask in (lambda: manuals.search(SearchRequest("q")), lambda: manuals.find(find), lambda: manuals.index("shop")):
        with pytest.raises(NotUnderTrio, match="was called under asyncio"):
            asyncio.run(ask())
