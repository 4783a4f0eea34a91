"""Long JSON read in slices: the same values as `json.loads` gives, and other tasks run in between."""

import json
import math
from collections.abc import Generator
from itertools import pairwise
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from responses_mcp.responses_api.json_slices import (
    MEMBERS,
    RUN,
    WINDOW,
    let_go,
    let_go_in_slices,
    parse,
    parse_in_slices,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)
WINDOWS = st.integers(4, 80)


def drive(slices: Generator[None, None, Any]) -> tuple[Any, int]:
    """Return what the slices come to, and how many they were."""
    count = 1
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value, count
        count += 1


def outcome(data: bytes, window: int | None) -> Any:
    try:
        return json.loads(data) if window is None else drive(parse_in_slices([data], window=window))[0]
    except ValueError:
        return "no JSON"
    except RecursionError:
        return "too deep"


def same(one: Any, other: Any) -> bool:
    """Compare as JSON texts do, where 1 and 1.0 and true are three things."""
    return json.dumps(one) == json.dumps(other)


@given(VALUES, WINDOWS, st.sampled_from([None, 1]), st.booleans())
@example("日本" * 100, 4, None, False)
@example([10**40, -1.5e300, "\ud800"], 4, None, True)
def test_slices_come_to_what_loads_returns(value: Any, window: int, indent: int | None, escaped: bool) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    assert same(outcome(data, window), json.loads(data))


@given(VALUES, WINDOWS, st.data())
def test_broken_documents_are_refused_like_loads_refuses_them(value: Any, window: int, data: st.DataObject) -> None:
    text = bytearray(json.dumps(value, ensure_ascii=False).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b",", b"]", b'"', b"1", b"\xff"])
        )
    assert same(outcome(bytes(text), window), outcome(bytes(text), None))


@pytest.mark.parametrize("window", [4, 7, 64, WINDOW])
@pytest.mark.parametrize(
    "text",
    ["", " ", "[", "[1", "[1,", "[1,]", "[,1]", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{1:2}", "{a:1}",
     "[1 2]", '{"a" 1}', "[1}", '{"a":1]', "1 2", "[] x", '"', '"\\', '"\\u12', "nul", "nulll", "-", "1e", "[1]]", "01"],
)  # fmt: skip
def test_what_is_no_json_is_refused_at_every_window(text: str, window: int) -> None:
    padded = text.encode() + b" " * 200
    assert outcome(text.encode(), window) == outcome(text.encode(), None) == "no JSON"
    assert outcome(padded, window) == "no JSON"


def test_a_number_is_never_cut_by_a_window() -> None:
    numbers = list(range(10_000)) + [math.pi] * 50
    for window in range(4, 40):
        assert outcome(json.dumps(numbers).encode(), window) == numbers


def test_the_last_of_equal_names_counts() -> None:
    assert outcome(b'{"a": 1, "b": [1, 2, 3, 4], "a": 2}', 4) == {"a": 2, "b": [1, 2, 3, 4]}


def test_what_is_nested_too_deeply_says_so() -> None:
    assert outcome(b"[" * 200_000, WINDOW) == "too deep"
    assert outcome(b'{"a":' * 200_000, 100) == "too deep"


def test_invalid_utf_8_is_replaced_on_demand_wherever_the_windows_cut() -> None:
    data = b'["' + "日本".encode() * 30 + b"\xe6\x97" + b'", "b\xff"]'
    expected = json.loads(data.decode("utf-8", "replace"))
    for window in range(4, 60):
        assert drive(parse_in_slices([data], errors="replace", window=window))[0] == expected


@given(VALUES, WINDOWS, st.lists(st.integers(0, 400), max_size=6))
def test_it_does_not_matter_into_which_pieces_a_document_is_cut(value: Any, window: int, cuts: list[int]) -> None:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(places)]
    assert same(drive(parse_in_slices(pieces, window=window))[0], json.loads(data))


async def test_a_byte_order_mark_is_passed_over() -> None:
    assert await parse([b"\xef\xbb\xbf[1]"]) == [1]
    assert await parse([b"\xef", b"\xbb\xbf" + json.dumps("x" * 2 * WINDOW).encode()]) == "x" * 2 * WINDOW


@pytest.mark.parametrize(
    "value",
    [
        [{"url": f"https://example.com/{number}", "type": "url"} for number in range(20_000)],
        {f"name {number}": [number, None, True] for number in range(20_000)},
        [[{"sources": ["x" * 100] * 1_000}] for _ in range(20)],
        list(range(100_000)),
    ],
    ids=["objects", "members", "items longer than a window", "numbers"],
)
def test_no_slice_reads_more_than_a_window_and_a_run(value: Any) -> None:
    data = json.dumps(value).encode()
    parsed, slices = drive(parse_in_slices([data]))
    assert parsed == value
    assert slices >= len(data) // WINDOW
    _, pieces = drive(let_go_in_slices(parsed))
    assert pieces >= sum(isinstance(each, dict | list) for each in value) // RUN


def test_many_members_of_one_object_are_read_in_slices() -> None:
    data = json.dumps({str(number): 0 for number in range(20_000)}).encode()
    assert drive(parse_in_slices([data]))[1] >= 20_000 // MEMBERS


def test_a_long_string_does_not_lengthen_the_slices_behind_it() -> None:
    rest = [[0] * 100] * 5_000
    parsed, slices = drive(parse_in_slices([json.dumps({"image": "\\x" * 1_000_000, "rest": rest}).encode()]))
    assert parsed["rest"] == rest
    assert slices >= len(json.dumps(rest)) // WINDOW + 3_000_000 // WINDOW


def test_nesting_costs_a_slice_or_two_a_level_and_no_more_text() -> None:
    flat = json.dumps([1] * 500_000)
    once = drive(parse_in_slices([flat.encode()]))[1]
    parsed, slices = drive(parse_in_slices([("[" * 200 + flat + "]" * 200).encode()]))
    assert slices <= once + 2 * 200
    for _ in range(200):
        [parsed] = parsed
    assert len(parsed) == 500_000


def test_a_number_too_long_for_an_integer_is_what_loads_makes_of_it() -> None:
    data = b"[" + b"9" * 5_000 + b".5, 1]"
    assert outcome(data, 100) == outcome(data, None) == [math.inf, 1]
    assert outcome(b"[" + b"9" * 5_000 + b"]", 100) == outcome(b"[" + b"9" * 5_000 + b"]", None) == "no JSON"


def test_a_flat_object_or_array_is_let_go_of_in_slices() -> None:
    for value in (list(range(50_000)), {str(number): number for number in range(50_000)}):
        assert drive(let_go_in_slices(value))[1] >= 50_000 // RUN
        assert not value


async def test_other_tasks_run_while_a_long_document_is_read_and_let_go_of() -> None:
    turns = 0
    over = False

    async def other() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await trio.lowlevel.checkpoint()

    document = json.dumps({"all": [{"n": number} for number in range(50_000)]}).encode()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            value = await parse([document])
            while_reading = turns
            assert len(value["all"]) == 50_000
            await let_go(value)
            over = True
    assert while_reading >= len(document) // WINDOW // 2
    assert turns - while_reading >= 50_000 // RUN // 2
    assert value == {}


async def test_a_cancel_ends_the_reading_of_a_long_document() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await parse([json.dumps(["x" * 1_000] * 1_000).encode()])
        pytest.fail("it was read to its end")  # pragma: no cover
    assert scope.cancelled_caught


async def test_a_short_document_is_read_without_giving_up_its_turn() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        value = await parse([b'{"a"', b": [1, 2]}"])
        await let_go(value)
        assert value == {"a": [1, 2]}, "small ones are left as they are"
    assert not scope.cancelled_caught
