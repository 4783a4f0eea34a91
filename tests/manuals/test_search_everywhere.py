"""A search of all manuals: one budget for all of them, cancelled as one, and stopped by none that is broken or busy."""

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.manuals import library
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.library import Library
from responses_mcp.manuals.requests import SearchRequest
from responses_mcp.manuals.results.search_results import SearchResults
from responses_mcp.manuals.search import reader
from responses_mcp.manuals.search.query import query
from responses_mcp.manuals.search.reader import Counts
from responses_mcp.manuals.service import Manuals
from tests.manuals.indexed import after
from tests.manuals.test_service import TIMES, WAIT, asked, held, opened, write


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("garage", "shop", "yard"):
        write(tmp_path / "root" / name, 10)
    return tmp_path / "root"


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files count as unchanged for long, so that they are not read again."""
    monkeypatch.setattr("responses_mcp.manuals.files.folder._FRESH_NS", -(10**18))


async def searched(manuals: Manuals, query: str = "apples", **given: Any) -> SearchResults:
    return await manuals.search(SearchRequest(query, **{"limit": 30, **given}))


def places(found: SearchResults) -> set[str]:
    return {row.manual_id for row in found.rows}


def reasons(found: SearchResults) -> dict[str, str]:
    return {each.manual_id: each.reason for each in found.unsearched}


async def test_a_common_word_is_found_below_a_path_where_none_of_the_rarest_are(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reader, "_POSTINGS", 5)
    monkeypatch.setattr(reader, "_ALL_POSTINGS", 5)
    for folder, words in (("small", "apples"), ("large", "apples"), ("other", "zebra")):
        for number in range(3):
            (tmp_path / f"root/zoo/{folder}").mkdir(parents=True, exist_ok=True)
            (tmp_path / f"root/zoo/{folder}/{number}.md").write_text(
                f"# Page {number}\n\nThere are {words}.\n", "utf-8"
            )
    async with opened(tmp_path / "root") as manuals:
        found = await searched(manuals, "zebra apples", path_prefix="small")
        assert {row.path for row in found.rows} == {f"small/{number}.md" for number in range(3)}


async def test_what_has_changed_is_found_and_rows_come_best_first(root) -> None:
    async with opened(root) as manuals:
        assert places(await searched(manuals)) == {"garage", "shop", "yard"}
        write(root / "shop", 1, 99)
        found = await searched(manuals, "number99")
        assert [(row.manual_id, row.path, row.line, row.title) for row in found.rows] == [
            ("shop", "99.md", 1, "Title 99")
        ]
        assert found.rows[0].as_json()["ref"] == {"manual_id": "shop", "path": "99.md", "start_line": 1}
        snippet = found.rows[0].snippet
        assert snippet is not None
        assert (snippet.text, snippet.text[snippet.begin : snippet.end]) == ("apples number99", "number99")
        assert found.complete
        scores = [row.score for row in (await searched(manuals)).rows]
        assert scores == sorted(scores, reverse=True)
        again = [(row.manual_id, row.path, row.line) for row in (await searched(manuals)).rows]
        assert again == [(row.manual_id, row.path, row.line) for row in (await searched(manuals)).rows]


async def test_further_sections_of_a_file_make_room_for_other_files(root) -> None:
    (root / "shop" / "many.md").write_text("".join(f"# Plums\n\nplums {n}\n\n" for n in range(9)), encoding="utf-8")
    (root / "shop" / "one.md").write_text("# Plums\n\nplums 9\n", encoding="utf-8")
    async with opened(root) as manuals:
        paths = [row.path for row in (await searched(manuals, "plums", limit=5)).rows]
    assert "one.md" in paths


@pytest.mark.parametrize(
    ("heading", "asked"),
    [("E-104", "E-104"), ("E-104", "E104"), ("T4100", "T-4100"), ("getUserById", "getUserById"), ("C-203", "C-203")],
)
async def test_parts_of_a_name_that_the_heading_has_are_no_match_in_its_text(tmp_path, heading, asked) -> None:
    text = [
        f"# {heading}",
        "Open the valve.",
        *["Some words."] * 500,
        "A vitamin c, e. g. by t, or user 203 4100 by id.",
    ]
    (tmp_path / "root/office").mkdir(parents=True)
    (tmp_path / "root/office/page.md").write_text("\n\n".join(text), "utf-8")
    async with opened(tmp_path / "root") as manuals:
        [best, *_] = (await searched(manuals, asked)).rows
    assert best.match_line is None
    assert best.snippet is not None
    assert best.snippet.text.startswith("Open the valve.")


async def test_parts_of_a_name_draw_no_place_away_from_other_words(tmp_path) -> None:
    text = ["# Page", "Some fluids, e. g. brine.", *["Some words."] * 500, "Pump pressure is set with the red screw."]
    (tmp_path / "root/office").mkdir(parents=True)
    (tmp_path / "root/office/page.md").write_text("\n\n".join(text), "utf-8")
    async with opened(tmp_path / "root") as manuals:
        [best, *_] = (await searched(manuals, "E-104 pump pressure")).rows
    assert best.match_line == 1005


async def test_manuals_are_named_as_on_disk_and_once(root) -> None:
    async with opened(root) as manuals:
        found = await searched(manuals, manual_ids=("shop", "shop", "yard"))
        assert places(found) == {"shop", "yard"}
        with pytest.raises(ManualsError, match="There is no manual 'attic'"):
            await searched(manuals, manual_ids=("attic",))


async def test_one_budget_serves_all_and_the_next_search_goes_on(root, settled) -> None:
    for name in ("garage", "shop", "yard"):
        write(root / name, 200)
    async with opened(root, times=replace(TIMES, least_indexing=0.01)) as manuals:
        first = await searched(manuals, time_ms=1)
        assert not first.complete
        assert set(reasons(first).values()) == {"time_budget"}
        assert first.reason is not None
        assert first.reason.endswith("; search again to continue")
        for _ in range(100):
            if (await searched(manuals, time_ms=1)).complete:
                break
        assert (await searched(manuals)).complete


async def test_a_manual_that_another_is_indexing_is_told_and_the_others_are_searched(root, monkeypatch) -> None:
    gate = held(monkeypatch, "update")
    async with opened(root) as manuals, trio.open_nursery() as nursery:
        nursery.start_soon(manuals.find, asked())
        await gate.wait()
        found = await searched(manuals, time_ms=300)
        assert places(found) == {"garage", "yard"}
        assert {each.manual_id: (each.reason, each.files) for each in found.unsearched} == {"shop": ("time_budget", 10)}
        gate.open.set()
        assert places(await searched(manuals)) == {"garage", "shop", "yard"}


async def test_a_manual_that_cannot_be_read_is_told_and_the_others_are_searched(root, monkeypatch) -> None:
    real = Library.compare

    def failing(self: Library, name: str, check: Any) -> Any:
        if name == "shop":
            raise ManualsError("conflict", "It cannot be read.")
        if name == "yard":
            raise ManualsError("not_found", "It has gone since it was listed.")
        return real(self, name, check)

    monkeypatch.setattr(Library, "compare", failing)
    async with opened(root) as manuals:
        found = await searched(manuals)
    assert places(found) == {"garage"}
    assert reasons(found) == {"shop": "unreadable"}


async def test_a_thread_that_hangs_over_one_manual_costs_its_time_and_no_more(root, monkeypatch) -> None:
    release = threading.Event()
    real = Library.compare

    def hanging(self: Library, name: str, check: Any) -> Any:
        return release.wait(WAIT) if name == "shop" else real(self, name, check)

    monkeypatch.setattr(Library, "compare", hanging)
    try:
        async with opened(root, times=replace(TIMES, grace=0.05, least_look=0.05)) as manuals:
            found = await searched(manuals, time_ms=500)
            assert places(found) == {"garage", "yard"}
            assert reasons(found) == {"shop": "time_budget"}
            release.set()
    finally:
        release.set()


async def test_time_that_runs_out_while_manuals_are_ranked_leaves_those_that_were(root, settled) -> None:
    async with opened(root) as manuals:
        await searched(manuals)
        library = manuals._threads._opened()
        request = SearchRequest("apples", limit=30)
        every = {name: library.compare(name, unchecked) for name in ("garage", "shop", "yard")}
        parts: set[tuple[str, ...]] = set()
        for calls in range(150):
            found = library.search_everywhere(request, every, after(calls))
            assert places(found).isdisjoint(reasons(found))
            assert places(found) | reasons(found).keys() == set(every)
            parts.add(tuple(sorted(places(found))))
    assert parts == {(), ("garage",), ("garage", "shop"), ("garage", "shop", "yard")}


async def test_many_manuals_are_asked_for_a_word_once_each_and_the_question_is_taken_apart_once(
    root, monkeypatch
) -> None:
    for number in range(20):
        write(root / f"more{number}", 2)
    counted: list[tuple[Any, ...]] = []
    taken: list[str] = []

    class Remembered(Counts):
        def __setitem__(self, key: Any, number: int) -> None:
            counted.append(key)
            super().__setitem__(key, number)

    def taking(question: str) -> Any:
        taken.append(question)
        return query(question)

    monkeypatch.setattr(library, "Counts", Remembered)
    monkeypatch.setattr(library, "query", taking)
    async with opened(root) as manuals:
        found = await searched(manuals, "which apples have a number")
    assert found.complete
    assert len(counted) > 40
    assert len(counted) == len(set(counted))
    assert taken == ["which apples have a number"]


async def test_an_index_that_breaks_is_made_anew_and_all_is_found(root, tmp_path) -> None:
    async with opened(root, tmp_path / "index") as manuals:
        await searched(manuals)
        [file] = (tmp_path / "index").glob("*.sqlite3")
        with closing(sqlite3.connect(file)) as other, other:
            for (number,) in other.execute("SELECT id FROM manual").fetchall():
                other.execute(f"DELETE FROM words_{number}_content WHERE id % 2")
        assert len((await searched(manuals, limit=60)).rows) == 30


async def test_what_a_host_s_on_phase_raises_ends_the_search_as_it_is_and_in_no_group(root) -> None:
    def fail(_: str) -> None:
        raise KeyError("x")

    async with opened(root) as manuals:
        with pytest.raises(KeyError):
            await manuals.search(SearchRequest("apples"), on_phase=fail)
