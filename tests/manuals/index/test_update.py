"""Bringing an index up to date: whatever happened to the files, it is as one that was made anew."""

import io
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import UNREADABLE, Stamp
from responses_mcp.manuals.files.texts import NOT_TEXT
from responses_mcp.manuals.index import update as index
from responses_mcp.manuals.index.store import Store
from responses_mcp.manuals.index.update import TOO_LARGE, Vanished, begin, manual_of
from tests.manuals.indexed import CAP, NAME, Shelf, after, apply, compared, generation, seen, updated

# Edits


Edit = Callable[[Shelf], None]
PATHS = ["a.md", "b.json", "d.md/c.md", "d.md/e/f.md", "e/g.md", "ガ.md"]
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            "# Alpha\n\nbeta gamma",
            "# Alpha\n\ngamma beta",
            "## 設定\nサーバーの設定を行う\n# B\n",
            '{"a": "\\u3042"}',
        ]
    ),
    st.lists(st.sampled_from(["# a", "## b", "word", "設定 する", "```", "---", "title: x", ""]), max_size=12).map(
        "\n".join
    ),
)


def write(shelf: Shelf, path: str, text: str) -> None:
    file = shelf.place / path
    for parent in reversed(file.relative_to(shelf.place).parents[:-1]):
        if (shelf.place / parent).is_file():
            (shelf.place / parent).unlink()
    if file.is_dir():
        shutil.rmtree(file)
    shelf.write(path, text)


def edit_of(kind: str, path: str, other: str, text: str) -> Edit:
    """Return an edit; it does nothing where it makes no sense."""

    def edit(shelf: Shelf) -> None:
        file, second = shelf.place / path, shelf.place / other
        if kind == "write":
            write(shelf, path, text)
        elif kind == "grow over the cap":
            write(shelf, path, text + "x" * CAP)
        elif kind == "make unreadable":
            shelf.unreadable ^= {path}
        elif kind == "replace a folder by a file":
            write(shelf, "d.md", text)
        elif kind == "rename a folder" and (shelf.place / "e").is_dir() and not second.exists():
            with suppress(OSError):  # a file is in the way, or it is the folder itself
                second.parent.mkdir(parents=True, exist_ok=True)
                (shelf.place / "e").rename(second)
        elif kind == "delete a folder" and file.parent != shelf.place and file.parent.is_dir():
            shutil.rmtree(file.parent)
        elif file.is_file():
            if kind == "append":
                file.write_text(file.read_text(encoding="utf-8") + "\n" + text, encoding="utf-8")
            elif kind == "shrink":
                file.write_text(file.read_text(encoding="utf-8")[: len(text)], encoding="utf-8")
            elif kind == "touch":
                os.utime(file, ns=(len(text), 10**9 * len(text)))
            elif kind == "delete":
                file.unlink()
            elif kind == "rename" and second.parent.is_dir() and not second.is_dir():
                file.replace(second)
            elif kind == "swap" and second.is_file():
                first = file.read_bytes()
                file.write_bytes(second.read_bytes())
                second.write_bytes(first)
            elif kind == "same size, same time":
                before = file.stat()
                file.write_text(file.read_text(encoding="utf-8").swapcase(), encoding="utf-8")
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    return edit


KINDS = [
    "write", "write", "write", "append", "shrink", "touch", "rename", "delete", "swap", "same size, same time",
    "make unreadable", "grow over the cap", "rename a folder", "delete a folder", "replace a folder by a file",
]  # fmt: skip
EDITS = st.builds(edit_of, st.sampled_from(KINDS), st.sampled_from(PATHS), st.sampled_from(PATHS), TEXTS)
ROUNDS = st.lists(
    st.tuples(st.lists(EDITS, min_size=1, max_size=6), st.none() | st.integers(0, 60)), min_size=1, max_size=6
)


@given(rounds=ROUNDS, versions=st.booleans())
def test_an_index_kept_up_to_date_is_as_one_made_anew(
    rounds: list[tuple[list[Edit], int | None]], versions: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder), versions=versions)
        kept = Store(None)
        updated(kept, shelf)
        for edits, calls in rounds:
            before, number = seen(kept), generation(kept)
            for edit in edits:
                edit(shelf)
            if calls is not None:  # first one that is stopped somewhere
                try:
                    updated(kept, shelf, after(calls))
                except OutOfTime:
                    assert "rows" in seen(kept)
                before, number = seen(kept), generation(kept)
            changes = updated(kept, shelf)
            assert changes.finished
            anew = Store(None)
            assert updated(anew, shelf).unindexed == changes.unindexed
            assert seen(kept) == seen(anew)
            assert (generation(kept) != number) == (seen(kept) != before)
            anew.close()
        kept.close()


# Times and stamps


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "index" / "a.sqlite3")
    yield store
    store.close()


def titles(store: Store) -> list[str]:
    return [row[2] for row in seen(store)["rows"]]


def test_a_change_within_a_tick_of_the_clock_is_found_though_size_and_times_are_the_same(store, shelf) -> None:
    for number in range(20):
        file = shelf.write("a.md", f"# one {number:02}")
        times = file.stat()
        updated(store, shelf)
        file.write_text(f"# two {number:02}", encoding="utf-8")
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        shelf.stamps["a.md"] = Stamp.of(times)  # as if it had come in the same tick
        updated(store, shelf)
        assert titles(store) == [f"two {number:02}"]
        del shelf.stamps["a.md"]


@pytest.mark.parametrize("modified", [0, 2 * 10**18])  # long ago, and in the future
def test_a_file_that_has_not_changed_for_long_is_not_read_again(store, shelf, monkeypatch, modified) -> None:
    file = shelf.write("a.md", "# a")
    os.utime(file, ns=(0, modified))
    monkeypatch.setattr(time, "time_ns", lambda: file.stat().st_ctime_ns + 3 * 10**9)
    updated(store, shelf)
    assert compared(store, shelf).finished
    assert shelf.opened == ["a.md"]


@pytest.mark.parametrize(
    "stamp",
    [
        Stamp(3, 1, 1, 2**64 - 1),  # a file system that uses all bits
        Stamp(3, 13_569_465_600 * 10**9, 1, 1),  # 2400
        Stamp(3, -(10**18), 1, 1),  # 1938
    ],
)
def test_any_number_that_a_file_system_gives_can_be_kept(store, shelf, stamp) -> None:
    shelf.write("a.md", "# a")
    shelf.stamps["a.md"] = stamp
    updated(store, shelf)
    assert compared(store, shelf).finished
    shelf.stamps["a.md"] = stamp._replace(inode=stamp.inode - 1)
    assert list(compared(store, shelf).changed) == ["a.md"]


def test_another_limit_of_size_is_noticed_without_a_change_of_the_file(store, shelf) -> None:
    shelf.write("a.md", "# a\n\nlong")
    shelf.stamps["a.md"] = Stamp(9, 1, 1, 1)
    assert updated(store, shelf).unindexed == {}
    assert updated(store, shelf, largest=5).unindexed == {"a.md": TOO_LARGE}
    assert titles(store) == []
    assert compared(store, shelf, largest=5).unindexed == {"a.md": TOO_LARGE}
    assert updated(store, shelf).unindexed == {}
    assert titles(store) == ["a"]


# Files that change while they are read


class Hooked(io.BytesIO):
    """A file that does something after the first piece."""

    name = "a.md"

    def __init__(self, content: bytes, then: Callable[["Hooked"], None]) -> None:
        super().__init__(content)
        self._then = then
        self._reads = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self._reads += 1
        if self._reads == 1:
            self._then(self)
        return data


def test_a_file_that_changes_while_it_is_read_is_read_again(store, shelf) -> None:
    big = "# old\n\n" + "word\n" * 100_000
    file = shelf.write("a.md", big)
    shelf.stamps["a.md"] = Stamp(len(big), 1, 1, 1)

    def open_hooked(_: str, handle: BinaryIO) -> BinaryIO:
        def change(_: Any) -> None:
            file.write_text("# new\n", encoding="utf-8")
            shelf.stamps["a.md"] = Stamp(6, 2, 2, 1)

        with handle:
            return Hooked(handle.read(), change)

    shelf.on_open = open_hooked
    updated(store, shelf, largest=10**6)
    shelf.on_open = lambda _, handle: handle
    updated(store, shelf, largest=10**6)
    assert titles(store) == ["new"]
    assert compared(store, shelf, largest=10**6).finished


def test_a_file_that_grows_over_the_limit_while_it_is_read_is_read_up_to_it(store, shelf) -> None:
    shelf.write("a.md", "# a\n")
    content = b"# a\n" + b"x" * 10 * CAP
    shelf.on_open = lambda _, handle: handle.close() or Hooked(content, lambda _: None)
    updated(store, shelf)
    assert len(seen(store)["rows"][0][-1]) <= CAP


def test_a_file_that_vanishes_before_it_is_read_is_not_told_as_unreadable(store, shelf) -> None:
    shelf.write("a.md", "# a\n")
    changes = compared(store, shelf)
    (shelf.place / "a.md").unlink()
    apply(store, shelf, changes)
    assert (changes.unindexed, changes.finished) == ({}, True)
    assert seen(store)["files"] == []


def test_a_file_that_fails_half_way_leaves_no_rows(store, shelf) -> None:
    shelf.write("a.md", "# a\n")
    shelf.write("b.md", "# b\n")
    updated(store, shelf)

    def fail(hooked: Hooked) -> None:
        raise ManualsError("conflict", "The disk is broken.")

    shelf.write("a.md", "# other\n")
    shelf.on_open = lambda path, handle: (handle.close() or Hooked(b"#", fail)) if path == "a.md" else handle
    for _ in range(2):  # the second time it was known to be unreadable
        assert updated(store, shelf).unindexed == {"a.md": UNREADABLE}
        assert [row[::2] for row in seen(store)["files"]] == [("a.md", UNREADABLE), ("b.md", None)]
        assert titles(store) == ["b"]
    shelf.on_open = lambda _, handle: handle
    assert updated(store, shelf).unindexed == {}
    assert titles(store) == ["other", "b"]


def test_what_lies_in_a_folder_that_cannot_be_entered_is_kept_and_told(store, shelf) -> None:
    shelf.write("a/x.md", "# x\n")
    shelf.write("ab.md", "# ab\n")
    updated(store, shelf)
    shelf.lost_folders = {"a"}
    (shelf.place / "ab.md").unlink()  # begins like the folder, but is not in it
    changes = updated(store, shelf)
    assert changes.unindexed == {"a": UNREADABLE}
    assert titles(store) == ["x"]


# Little time


def test_a_walk_without_time_to_end_gets_on_and_forgets_nothing(store, shelf) -> None:
    for number in range(3):
        for each in range(3):
            shelf.write(f"{number}/{each}.md", f"# {number}{each}\n")
    shelf.write("old.md", "# old\n")
    updated(store, shelf)
    (shelf.place / "old.md").unlink()
    shelf.write("new/new.md", "# new\n")
    whole = False
    calls = 0
    while not whole:
        calls += 1
        try:
            changes = compared(store, shelf, after(calls))
        except OutOfTime:
            continue
        whole = changes.whole
        assert changes.finished is False
        if not whole:
            assert changes.gone == set()
            apply(store, shelf, changes)
            assert "old" in titles(store)
    apply(store, shelf, changes)
    assert titles(store) == ["00", "01", "02", "10", "11", "12", "20", "21", "22", "new"]


def test_small_budgets_get_on_with_forgetting_as_well_as_with_reading(store, shelf) -> None:
    for number in range(100):
        shelf.write(f"{number}.md", f"# {number}\n")
    updated(store, shelf)
    shutil.rmtree(shelf.place)
    shelf.place.mkdir()
    left: list[int] = []
    while len(left) < 30 and not (changes := compared(store, shelf)).finished:
        left.append(len(changes.gone))
        with suppress(OutOfTime):
            apply(store, shelf, changes, after(60))
    assert left[0] == 100
    assert left == sorted(set(left), reverse=True)
    assert seen(store)["counts"] == (0, 0, 0)


def test_large_files_come_last(store, shelf) -> None:
    for name in "abcdef":
        shelf.write(f"{name}.md", "# a\n" + "x" * (300_000 if name in "be" else 0))
    updated(store, shelf, largest=10**6)
    assert set(shelf.opened[-2:]) == {"b.md", "e.md"}


def test_what_a_stopped_batch_found_out_is_forgotten_with_it(store, shelf) -> None:
    shelf.write("large.md", "x" * 2 * CAP)
    changes = compared(store, shelf)
    calls = 0
    while True:
        calls += 1
        try:
            apply(store, shelf, changes, after(calls))
        except OutOfTime:
            assert not set(changes.changed) & set(changes.unindexed)
        else:
            break
    assert changes.unindexed == {"large.md": TOO_LARGE}


# Other processes


def test_what_another_process_has_indexed_is_not_read_again(store, shelf) -> None:
    for number in range(20):
        shelf.write(f"{number}.md", f"# {number}\n")
        shelf.stamps[f"{number}.md"] = Stamp(5, 1, 1, 1)
    changes = compared(store, shelf)
    other = Store(store.path)
    updated(other, shelf)
    shelf.opened.clear()
    before = generation(store)
    apply(store, shelf, changes)
    assert (shelf.opened, generation(store)) == ([], before)
    other.close()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be deleted there")
def test_a_manual_begun_anew_by_another_process_is_not_written_to_with_old_numbers(store, shelf) -> None:
    shelf.write("a.md", "# a\n")
    changes = compared(store, shelf)
    Store(store.path).discard()
    with pytest.raises(Vanished):
        apply(store, shelf, changes)
    updated(store, shelf)
    assert titles(store) == ["a"]
    with store.reading(unchecked) as connection:
        manual = manual_of(connection, NAME)
        assert manual is not None
        assert manual.number != changes.number


def test_two_that_work_at_the_same_come_to_one_result(store, shelf) -> None:
    for number in range(40):
        shelf.write(f"{number}.md", f"# {number}\n")
    other = Store(store.path)
    one, two = compared(store, shelf), compared(other, shelf)
    turns = [
        index.update(each, shelf, changes, unchecked, largest=CAP) for each, changes in ((store, one), (other, two))
    ]
    while turns:
        turns = [turn for turn in turns if next(turn, "over") != "over"]
    assert sorted(titles(store), key=int) == [str(number) for number in range(40)]
    other.close()


def test_forgetting_a_large_file_can_be_stopped(store, shelf) -> None:
    shelf.write("a.md", "".join(f"# {number}\n" for number in range(150)))
    updated(store, shelf)
    before = seen(store)
    (shelf.place / "a.md").unlink()
    changes = compared(store, shelf)
    with pytest.raises(OutOfTime):
        apply(store, shelf, changes, after(40))
    assert seen(store) == before
    apply(store, shelf, changes)
    assert seen(store)["counts"] == (0, 0, 0)


def test_what_is_no_text_is_left_out_with_the_reason_until_it_is_text(store: Store, shelf: Shelf) -> None:
    shelf.write("good.md", "# A\n")
    (shelf.place / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (shelf.place / "torn.md").write_bytes("日本語".encode() + b"\0")
    (shelf.place / "old.md").write_bytes("# 見出し\n設定".encode("cp932"))
    assert updated(store, shelf).unindexed == {"picture.md": NOT_TEXT, "torn.md": NOT_TEXT}
    assert [row[2:] for row in seen(store)["rows"]] == [("A", "", ""), ("見出し", "", "設定")]
    assert updated(store, shelf).unindexed == {"picture.md": NOT_TEXT, "torn.md": NOT_TEXT}
    shelf.write("torn.md", "# B\n")
    assert updated(store, shelf).unindexed == {"picture.md": NOT_TEXT}
    assert [row[2] for row in seen(store)["rows"]] == ["A", "見出し", "B"]


def test_manuals_made_in_one_tick_of_the_clock_are_two(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1)
    one, two = begin(store, "one", unchecked), begin(store, "two", unchecked)
    assert one.number != two.number
    assert one.generation != two.generation
