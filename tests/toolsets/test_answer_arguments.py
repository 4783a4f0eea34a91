"""What the answer tools forgive in their arguments, and what they refuse (design 3.2)."""

import json
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.protocol.jsonrpc import encode
from responses_mcp.toolsets.base import ToolError
from tests.toolsets.answer_harness import Harness


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (5, 5), (5.0, 5), (5.4, 5), (5.6, 6), ("5", 5), (" 5 ", 5), ("5.6", 6), ("1e1", 10), (None, 60), ("", 60), ("  ", 60),
        (0, 0), (-3, 0), (10**9, 36_500), (1e300, 36_500), ("-1", 0),
    ],
)  # fmt: skip
async def test_days_are_read_as_a_whole_number_within_bounds(value: Any, sent: int) -> None:
    assert await Harness().hints({"recency_days": value}) == f"recency_days={sent}, max_results=5"


@pytest.mark.parametrize(("value", "sent"), [(3, 3), ("3", 3), (0, 1), (-1, 1), (1000, 100), (None, 5)])
async def test_results_are_read_as_a_whole_number_within_bounds(value: Any, sent: int) -> None:
    assert await Harness().hints({"max_results": value}) == f"recency_days=60, max_results={sent}"


@pytest.mark.parametrize("name", ["recency_days", "max_results"])
@pytest.mark.parametrize(
    "value", ["soon", "5 days", "nan", "inf", True, False, [5], {"days": 5}, float("nan"), float("inf"), 10**400, "９x"]
)
async def test_what_is_no_number_is_refused_by_name_and_not_sent(name: str, value: Any) -> None:
    harness = Harness()
    assert (
        f"{name} is not a number; pass a whole number" in (await harness.fail({"query": "q", name: value}))["message"]
    )
    assert harness.stub.sent == []


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (["a.jp", "b.jp"], ", domains=a.jp b.jp"),
        (["a.jp", "a.jp"], ", domains=a.jp"),
        ([" a.jp ", "", None, "b.jp c.jp"], ", domains=a.jp b.jp c.jp"),
        ('["a.jp", "b.jp"]', ", domains=a.jp b.jp"),
        ('"a.jp"', ", domains=a.jp"),
        ("a.jp", ", domains=a.jp"),
        ("a.jp, b.jp c.jp", ", domains=a.jp b.jp c.jp"),
        ("2026.jp", ", domains=2026.jp"),
        ("null", ", domains=null"),
        ("[a.jp", ", domains=[a.jp"),
        (["日本語.jp"], ", domains=日本語.jp"),
        ("", ""), ("  ", ""), ("[]", ""), ([], ""), ([None], ""), ([""], ""), (None, ""),
    ],
)  # fmt: skip
async def test_domains_are_read_from_lists_and_from_text(value: Any, sent: str) -> None:
    assert await Harness().hints({"domains": value}) == f"recency_days=60, max_results=5{sent}"


@pytest.mark.parametrize("value", [5, True, {"a": "b"}, [5], [["a.jp"]], ["a.jp", {}], "[5]", float("nan")])
async def test_domains_that_are_no_texts_are_refused_and_not_sent(value: Any) -> None:
    harness = Harness()
    assert "domains is not a list of strings" in (await harness.fail({"query": "q", "domains": value}))["message"]
    assert harness.stub.sent == []


@pytest.mark.parametrize(
    ("value", "sent"), [(404, "404"), (1.5, "1.5"), ("  spaced  ", "  spaced  "), ("a\ud800", "a\ufffd")]
)
async def test_a_query_is_sent_as_the_text_that_it_is(value: Any, sent: str) -> None:
    harness = Harness()
    await harness.call({"query": value})
    assert json.loads(harness.stub.sent[0].body)["input"].startswith(f"{sent}\n\n")


@pytest.mark.parametrize(
    "arguments", [{}, *({"query": value} for value in (None, "", "  \n", True, [], ["q"], {}, {"text": "q"}))]
)
@pytest.mark.parametrize("tool", ["answer", "answer_detailed", "answer_quick"])
async def test_a_missing_or_empty_query_is_refused_and_not_sent(tool: str, arguments: dict[str, Any]) -> None:
    harness = Harness()
    assert "query is" in (await harness.fail(arguments, tool))["message"]
    assert harness.stub.sent == []


async def test_the_query_is_complained_about_first() -> None:
    assert "query is missing" in (await Harness().fail({"recency_days": "soon"}))["message"]


async def test_unknown_arguments_are_ignored() -> None:
    assert await Harness().hints({"verbosity": "high", "Query": "x", "": None}) == "recency_days=60, max_results=5"


async def test_the_quick_tool_has_no_hints_of_its_own() -> None:
    odd = {"recency_days": "soon", "max_results": [], "domains": 5}
    assert await Harness().hints(odd, "answer_quick") == "recency_days=60, max_results=5"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {"query": st.text() | json_values},
        optional=dict.fromkeys(("recency_days", "max_results", "domains", "x"), json_values),
    )
)
def test_any_arguments_are_answered_or_refused(arguments: dict[str, Any]) -> None:
    async def call() -> None:
        harness = Harness()
        try:
            success = await harness.call(arguments)
        except ToolError as caught:
            failure = caught.failure
        else:
            assert encode(success.structured or {}).decode()
            return
        assert failure.error is not None
        assert encode({"text": failure.text, "data": failure.error.data}).decode()
        assert harness.stub.sent == []

    trio.run(call)
