"""Filling an index: requests of a bounded size, a few at once, and nothing lost when it ends early."""

from collections.abc import Sequence
from functools import partial

import pytest
import trio

from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.filling import MOST_CHARACTERS, MOST_TEXTS, Filled, Vectors, batch, fill
from responses_mcp.manuals.embeddings.pieces import Section
from tests.manuals.embeddings.stub import StubEmbedder, fail

pytestmark = pytest.mark.clock("virtual")


def section(number: int, size: int = 10) -> Section:
    return Section(number, f"title{number}", "", "x" * size)


class Shelf:
    """Sections with ids from 0, and the vectors that were kept."""

    def __init__(self, count: int, size: int = 10) -> None:
        self.sections = [section(number, size) for number in range(count)]
        self.kept: list[int] = []
        self.reports: list[int] = []

    async def following(self, after: int) -> Sequence[Section]:
        await trio.lowlevel.checkpoint()
        return [each for each in self.sections if each.id > after and each.id not in self.kept][:32]

    async def keep(self, found: Sequence[tuple[Section, Vectors]]) -> int:
        await trio.lowlevel.checkpoint()
        self.kept += [each.id for each, _ in found]
        return len(found)

    async def fill(self, embedder: StubEmbedder, most: int | None = None) -> Filled:
        return await fill(embedder, self.following, self.keep, self.reports.append, most)


async def test_every_section_is_embedded_once_and_each_batch_reported() -> None:
    shelf, stub = Shelf(200), StubEmbedder()
    assert (await shelf.fill(stub)).kept == 200
    assert sorted(shelf.kept) == list(range(200))
    assert sorted(stub.texts) == sorted(text for each in shelf.sections for text in each.texts)
    assert shelf.reports[-1] == max(shelf.reports) == 200


@pytest.mark.parametrize("most", [0, 1, 33, 70, 200])
async def test_no_more_sections_are_sent_than_were_agreed_to(most: int) -> None:
    shelf, stub = Shelf(100), StubEmbedder()
    assert (await shelf.fill(stub, most)).kept == len(stub.texts) == min(most, 100)


async def test_some_requests_are_under_way_at_once_and_not_more() -> None:
    shelf, stub = Shelf(32 * 8), StubEmbedder()
    stub.before = partial(trio.sleep, 1)
    began = trio.current_time()
    await shelf.fill(stub)
    assert trio.current_time() - began == 2


@pytest.mark.parametrize("size", [0, 10, 1400, 5000, 20_000])
def test_a_request_has_a_bounded_number_of_texts_and_characters(size: int) -> None:
    first = batch([section(number, size) for number in range(100)])
    texts = [text for each in first for text in each.texts]
    assert 0 < len(texts) <= MOST_TEXTS
    assert sum(map(len, texts)) <= MOST_CHARACTERS


def test_a_batch_of_nothing_is_nothing() -> None:
    assert batch([]) == []


async def test_a_failure_ends_all_of_it_and_the_next_run_goes_on() -> None:
    shelf, stub = Shelf(200), StubEmbedder()

    async def fail_later() -> None:
        await trio.sleep(len(stub.asked))
        if len(stub.asked) > 5:
            await fail()

    stub.before = fail_later
    with pytest.raises(EmbeddingFailed, match="It is down"):
        await shelf.fill(stub)
    done = len(shelf.kept)
    assert 0 < done < 200
    again = StubEmbedder()
    assert (await shelf.fill(again)).kept == len(again.texts) == 200 - done


async def test_what_is_under_way_at_a_failure_is_kept_and_no_more_is_begun() -> None:
    shelf, stub = Shelf(32 * 8), StubEmbedder()

    async def fail_first() -> None:
        if len(stub.asked) == 1:
            await fail()
        await trio.sleep(1)

    stub.before = fail_first
    with pytest.raises(EmbeddingFailed, match="It is down"):
        await shelf.fill(stub)
    assert (len(shelf.kept), len(stub.asked)) == (32 * 3, 4)


async def test_vectors_of_another_length_than_those_before_end_it_before_they_take_the_place_of_these() -> None:
    shelf, stub = Shelf(200), StubEmbedder()

    async def shorten_later() -> None:
        number = len(stub.asked)
        await trio.sleep(number)
        stub.dimensions = 64 if number < 4 else 32

    stub.before = shorten_later
    with pytest.raises(EmbeddingFailed, match="vectors of 32 and of 64 numbers"):
        await shelf.fill(stub)
    assert len(shelf.kept) == 32 * 3


async def test_a_failure_to_keep_comes_out_as_it_is() -> None:
    shelf = Shelf(10)

    async def keep(_: object) -> int:
        await trio.lowlevel.checkpoint()
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        await fill(StubEmbedder(), shelf.following, keep, shelf.reports.append)


async def test_a_cancel_ends_it_and_what_is_kept_stays() -> None:
    shelf, stub = Shelf(32 * 8), StubEmbedder()
    stub.before = partial(trio.sleep, 1)
    with trio.move_on_after(1.5) as scope:
        await shelf.fill(stub)
    assert scope.cancelled_caught
    assert len(shelf.kept) == 32 * 4
