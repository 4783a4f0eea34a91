"""The vectors in the index go with their sections: what stays as it was keeps them, nothing else gets them."""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.index import vectors
from responses_mcp.manuals.index.store import Store
from responses_mcp.manuals.index.update import manual_of
from tests.manuals.indexed import NAME, Shelf, after, apply, compared, updated

MODEL = "stub 1"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "index.sqlite3")) as store:
        yield store


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "root", versions=True)


def pending(store: Store, model: str = MODEL, above: int = -1, most: int = 100) -> dict[int, str]:
    """Return the sections without vectors: their ids, with their texts."""
    with store.reading(unchecked) as connection:
        manual = manual_of(connection, NAME)
        assert manual is not None
        rows = vectors.pending(connection, model, manual.number, above, most)
        counted, *_ = vectors.count_pending(connection, model, manual.number, 100)
        assert above >= 0 or counted == len(rows) or len(rows) == most
        return {row[0]: row[3] for row in rows}


def write(store: Store, found: dict[int, str], model: str = MODEL, *, replacing: bool = True) -> None:
    """Give sections vectors, which are here the texts that they are of."""
    data = [(number, text.encode()) for number, text in found.items()]
    with store.writing(unchecked) as connection:
        vectors.write(connection, model, 2, data, replacing=replacing)


def kept(store: Store, model: str = MODEL) -> dict[str, str]:
    """Return which text has the vectors of which."""
    with store.reading(unchecked) as connection:
        [(number,)] = connection.execute("SELECT id FROM manual").fetchall()
        rows = connection.execute(f"SELECT rowid, text FROM words_{number}").fetchall()
        found = dict(vectors.vectors(connection, model, 2, [number for number, _ in rows]))
        with_vectors = {section for (section,) in connection.execute("SELECT section FROM vector")}
        assert with_vectors <= {number for number, _ in rows}
        return {body: found[number].decode() for number, body in rows if number in found}


def fill(store: Store) -> None:
    write(store, pending(store))


def test_sections_without_vectors_come_in_order_and_in_parts(store: Store, shelf: Shelf) -> None:
    shelf.write("a.md", "# A\n\none\n\n## B\n\ntwo\n")
    updated(store, shelf)
    every = pending(store)
    assert list(every.values()) == ["one", "two"]
    [first] = pending(store, most=1)
    assert list(pending(store, above=first).values()) == ["two"]
    write(store, {first: "one"})
    assert list(pending(store).values()) == ["two"]
    assert kept(store) == {"one": "one"}


def test_a_section_that_changes_loses_its_vectors_and_the_others_of_its_file_keep_theirs(
    store: Store, shelf: Shelf
) -> None:
    shelf.write("a.md", "# A\n\none\n\n## B\n\ntwo\n\n## C\n\nthree\n")
    shelf.write("b.md", "# A\n\nother\n")
    updated(store, shelf)
    fill(store)
    shelf.write("a.md", "# A\n\none\n\n## New\n\nfour\n\n## B\n\nTWO!\n\n## C\n\nthree\n")
    updated(store, shelf)
    assert kept(store) == {"one": "one", "three": "three", "other": "other"}
    assert list(pending(store).values()) == ["four", "TWO!"]


def test_another_title_or_other_headings_above_are_a_change(store: Store, shelf: Shelf) -> None:
    shelf.write("a.md", "# A\n\none\n\n## B\n\ntwo\n")
    updated(store, shelf)
    fill(store)
    shelf.write("a.md", "# Z\n\none\n\n## B\n\ntwo\n")
    updated(store, shelf)
    assert kept(store) == {}


def test_a_file_that_goes_or_becomes_no_text_takes_its_vectors_along(store: Store, shelf: Shelf) -> None:
    shelf.write("a.md", "# A\n\none\n")
    shelf.write("b.md", "# B\n\ntwo\n")
    updated(store, shelf)
    fill(store)
    (shelf.place / "a.md").unlink()
    shelf.write("b.md", "\0\0\0")
    updated(store, shelf)
    assert kept(store) == {}
    shelf.write("c.md", "# C\n\nthree\n")  # which may get the number of one that is gone
    updated(store, shelf)
    assert kept(store) == {}


def test_an_update_that_is_broken_off_keeps_the_vectors_as_they_were(store: Store, shelf: Shelf) -> None:
    shelf.write("a.md", "# A\n\none\n")
    updated(store, shelf)
    fill(store)
    shelf.write("a.md", "# A\n\ntwo\n")

    changes = compared(store, shelf)
    broken_off = 0
    while changes.changed:
        with suppress(OutOfTime):
            apply(store, shelf, changes, after(broken_off))
        if changes.changed:
            assert kept(store) == {"one": "one"}
            broken_off += 1
    assert broken_off > 3
    assert kept(store) == {}


def test_vectors_of_another_model_do_not_count_and_are_replaced_only_where_that_is_wanted(
    store: Store, shelf: Shelf
) -> None:
    shelf.write("a.md", "# A\n\none\n")
    updated(store, shelf)
    fill(store)
    found = pending(store, "other 1")
    assert list(found.values()) == ["one"]
    write(store, found, "other 1", replacing=False)
    assert kept(store) == {"one": "one"}
    assert kept(store, "other 1") == {}
    write(store, found, "other 1")
    assert kept(store, "other 1") == {"one": "one"}
    assert list(pending(store).values()) == ["one"]


def test_equal_texts_share_no_row_but_may_share_vectors(store: Store, shelf: Shelf) -> None:
    shelf.write("a.md", "# A\n\nsame\n\n# A\n\nsame\n")
    updated(store, shelf)
    fill(store)
    shelf.write("a.md", "# A\n\nsame\n\n# A\n\nsame\n\n# A\n\nsame\n")
    updated(store, shelf)
    assert pending(store) == {}


def test_a_batch_of_a_large_manual_costs_no_more_than_one_of_a_small(store: Store, shelf: Shelf) -> None:
    def steps_of(batch: int) -> int:
        steps = 0

        def count() -> bool:
            nonlocal steps
            steps += 1
            return False

        with store.reading(unchecked) as connection:
            manual = manual_of(connection, NAME)
            assert manual is not None
            connection.set_progress_handler(count, 10)
            vectors.pending(connection, MODEL, manual.number, -1, batch)
            connection.set_progress_handler(None, 0)
        return steps

    shelf.write("0.md", "# A\n\ntext\n" * 100)
    updated(store, shelf)
    small = steps_of(32)
    for number in range(1, 20):
        shelf.write(f"{number}.md", "# A\n\ntext\n" * 100)
    updated(store, shelf)
    assert steps_of(32) < 1.5 * small
