"""Lists without end in a Response: what is looked at of them is bounded, whatever is in them and however they lie."""

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import pytest

from responses_mcp.responses_api.reading import MOST_ITEMS, MOST_SOURCES, read_answer
from responses_mcp.responses_api.search_results import read_results
from responses_mcp.responses_api.shapes import line_at, objects
from responses_mcp.testing import bodies


class Counted(list[Any]):
    """A list that counts, over all of its kind, how many members were taken out of it."""

    looked_at = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            Counted.looked_at += 1
            yield each


@pytest.fixture(autouse=True)
def _count_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "looked_at", 0)


LISTS = 5
# What several lists hold, and the most of it that an answer and a search look at; a search goes through parts twice.
PLACES: dict[str, tuple[Callable[[Callable[[], list[Any]]], list[Any]], int, int]] = {
    "parts": (
        lambda many: [{"type": "message", "content": many()} for _ in range(LISTS)],
        MOST_ITEMS,
        2 * MOST_ITEMS,
    ),
    "annotations": (
        lambda many: [{"type": "message", "content": [{"annotations": many()} for _ in range(LISTS)]}],
        MOST_SOURCES,
        2_000,
    ),
    "sources": (
        lambda many: [{"type": "web_search_call", "action": {"sources": many()}} for _ in range(LISTS)],
        MOST_SOURCES,
        2_000,
    ),
}
MEMBERS = [1, {}, {"type": "url_citation", "url": "https://a.jp/"}]


def read_both(body: dict[str, Any]) -> tuple[int, int]:
    """Read a response as an answer and as results, and return how many counted members each looked at."""
    read_answer(body, model="m", max_citations=3, date="2026-11-22", redact=str)
    by_answer = Counted.looked_at
    read_results(body, limit=10, today="2026-11-22", redact=str)
    return by_answer, Counted.looked_at - by_answer


@pytest.mark.parametrize("member", MEMBERS, ids=["number", "nothing", "url"])
@pytest.mark.parametrize("place", PLACES)
def test_of_lists_without_end_so_many_members_are_looked_at(place: str, member: Any) -> None:
    many, by_answer, by_search = PLACES[place]
    body = bodies.answer("Yes.")
    body["output"] += many(lambda: Counted([member] * (by_search - 1)))
    looked_at = read_both(body)
    # One more of each list may be taken before it is seen that no more may.
    assert by_answer <= looked_at[0] <= by_answer + LISTS
    assert by_search - 1 <= looked_at[1] <= by_search + 2 * LISTS


@pytest.mark.parametrize("member", MEMBERS, ids=["number", "nothing", "url"])
def test_of_an_output_without_end_so_many_items_are_looked_at(member: Any) -> None:
    body = bodies.answer("Yes.")
    body["output"] = Counted([*body["output"], *[member] * 3 * MOST_ITEMS])
    assert read_both(body) == (MOST_ITEMS + 1, MOST_ITEMS + 1)


def test_members_that_are_no_objects_count_and_short_lists_cost_no_more_than_they_hold() -> None:
    looks = repeat(None, 5)
    assert list(objects([{"n": 1}, 2], looks)) == [{"n": 1}]
    assert list(objects({}, looks)) == []
    assert list(objects([], looks)) == []
    assert list(objects([3, {"n": 4}, {"n": 5}, {"n": 6}], looks)) == [{"n": 4}, {"n": 5}]
    assert list(objects([{"n": 7}], looks)) == []


def test_a_line_out_of_a_response_is_cut_before_it_is_split_into_words() -> None:
    assert line_at({"url": "ab\n " * 1_000_000}, "url", str) == " ".join(["ab"] * 2048)
