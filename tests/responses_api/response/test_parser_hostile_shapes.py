"""Responses of shapes that no server should send: an answer or an `UpstreamError`, after a bounded amount of work."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.errors import UnusableReply, UpstreamError
from responses_mcp.protocol.jsonrpc import encode
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.response.parser import MOST_ITEMS, MOST_SOURCES, Answer, read_answer
from responses_mcp.responses_api.response.search_results import read_results
from responses_mcp.sanitization import line_at
from responses_mcp.testing.bodies import PEP, answer, web_search_call
from responses_mcp.testing.items import url_citation


def read(body: dict[str, Any]) -> Answer:
    if (error := response_error(body, str)) is not None:
        raise error
    return read_answer(body, model="gpt-5.2", max_citations=3, date="2026-11-22", redact=str)


def check(body: dict[str, Any]) -> Answer | None:
    """Return the answer, if there is one, after a look at what must be true of it or of the error."""
    try:
        result = read(body)
    except UpstreamError as caught:
        error = caught
    else:
        return checked(result)
    assert len(str(error)) < 400
    return None


def checked(result: Answer) -> Answer:
    shown = result.as_json()
    assert list(shown) == ["answer", "used_search", "citations", "model"]
    assert result.text.strip()
    assert ("Sources" in result.text) >= result.used_search
    assert result.used_search >= bool(result.citations)
    assert len(result.citations) <= 3
    for citation in shown["citations"]:
        assert citation.keys() - {"title"} == {"url", "published_at"}
        assert all(isinstance(value, str) and value for value in citation.values())
    assert encode(shown).decode()
    return result


NOTHING: list[Any] = [None, 0, 1.5, True, "", "text", [], {}, [None], [[]], [[{}]], {"a": {}}]


def deep(levels: int = 900) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


SPOILT: list[Callable[[dict[str, Any], Any], None]] = [
    lambda body, value: body["output"].__setitem__(0, value),
    lambda body, value: body["output"][0].update(type=value),
    lambda body, value: body["output"][0].update(status=value),
    lambda body, value: body["output"][0].update(action=value),
    lambda body, value: body["output"][0]["action"].update(sources=value),
    lambda body, value: body["output"][0]["action"]["sources"][0].update(url=value),
    lambda body, value: body["output"][0]["action"]["sources"][0].update(url="", name=value),
    lambda body, value: body["output"][0]["action"]["sources"][0].update(type=value),
    lambda body, value: body["output"][1]["content"][0].update(annotations=value),
    lambda body, value: body["output"][1]["content"][0]["annotations"].__setitem__(0, value),
    lambda body, value: body["output"][1]["content"][0]["annotations"][0].update(url=value),
    lambda body, value: body["output"][1]["content"][0]["annotations"][0].update(title=value),
    lambda body, value: body["output"][1]["content"][0]["annotations"][0].update(start_index=value),
    lambda body, value: body["output"][1].update(phase=value),
]


@pytest.mark.parametrize("spoil", range(len(SPOILT)))
@pytest.mark.parametrize("value", [*NOTHING, deep()], ids=lambda value: repr(value)[:20])
def test_a_wrong_value_within_the_output_costs_no_more_than_itself(spoil: int, value: Any) -> None:
    body = answer("Yes.", annotations=[url_citation(PEP, "PEP", 0, 1)], searches=[web_search_call(["q"], [PEP])])
    SPOILT[spoil](body, value)
    result = check(body)
    assert result is not None
    assert result.text.startswith("Yes.")


@pytest.mark.parametrize(
    "status", ["sk-canary-0123456789", "x" * 10_000, 5, deep()], ids=["secret", "long", "5", "deep"]
)
def test_an_unknown_status_is_not_repeated_word_for_word(status: Any) -> None:
    with pytest.raises(UnusableReply, match="unknown status") as caught:
        read(answer("Yes.", status=status))
    assert "canary" not in str(caught.value)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()))
MEMBERS = "type text url name title status action sources annotations content output phase refusal error code message"
VALUES = "completed incomplete failed web_search_call url_citation output_text final_answer reason server_error"
words = st.sampled_from(f"{MEMBERS} {VALUES}".split())
json_values = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words | st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)


@pytest.mark.rule("P1")
@given(st.dictionaries(words, json_values))
def test_any_json_object_is_an_answer_or_an_upstream_error(body: dict[str, Any]) -> None:
    check(body)


# Lists without end: what is looked at of them is bounded, whatever is in them and however they lie


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
# What several lists hold, and the most of it that an answer and a search look at.
PLACES: dict[str, tuple[Callable[[Callable[[], list[Any]]], list[Any]], int]] = {
    "parts": (lambda many: [{"type": "message", "content": many()} for _ in range(LISTS)], MOST_ITEMS),
    "annotations": (
        lambda many: [{"type": "message", "content": [{"annotations": many()} for _ in range(LISTS)]}],
        MOST_SOURCES,
    ),
    "sources": (
        lambda many: [{"type": "web_search_call", "action": {"sources": many()}} for _ in range(LISTS)],
        MOST_SOURCES,
    ),
}
LISTED = [1, {}, {"type": "url_citation", "url": "https://a.jp/"}]


def read_both(body: dict[str, Any]) -> tuple[int, int]:
    """Read a response as an answer and as results, and return how many counted members each looked at."""
    read_answer(body, model="m", max_citations=3, date="2026-11-22", redact=str)
    by_answer = Counted.looked_at
    read_results(body, limit=10, today="2026-11-22", redact=str)
    return by_answer, Counted.looked_at - by_answer


@pytest.mark.parametrize("member", LISTED, ids=["number", "nothing", "url"])
@pytest.mark.parametrize("place", PLACES)
def test_of_lists_without_end_so_many_members_are_looked_at(place: str, member: Any) -> None:
    many, most = PLACES[place]
    body = answer("Yes.")
    body["output"] += many(lambda: Counted([member] * (most - 1)))
    # One more of each list may be taken before it is seen that no more may.
    assert all(most <= looked_at <= most + LISTS for looked_at in read_both(body))


@pytest.mark.parametrize("member", LISTED, ids=["number", "nothing", "url"])
def test_of_an_output_without_end_so_many_items_are_looked_at(member: Any) -> None:
    body = answer("Yes.")
    body["output"] = Counted([*body["output"], *[member] * 3 * MOST_ITEMS])
    assert read_both(body) == (MOST_ITEMS + 1, MOST_ITEMS + 1)


def test_a_line_out_of_a_response_is_cut_before_it_is_split_into_words() -> None:
    assert line_at({"url": "ab\n " * 1_000_000}, "url", str) == " ".join(["ab"] * 2048)
