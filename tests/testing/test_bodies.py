"""The sample bodies agree with the official types, or deviate from them just where they say."""

import json
from collections.abc import Callable
from typing import Any

import pydantic
import pytest
from openai.types import responses as official

from responses_mcp.testing import bodies
from tests.testing.official_types import check_types
from tests.testing.samples import DEVIATIONS, WELL_FORMED


@pytest.mark.parametrize("name", WELL_FORMED)
def test_a_well_formed_body_is_what_the_official_types_describe(name: str) -> None:
    response = official.Response.model_validate(WELL_FORMED[name]())
    check_types(response)


@pytest.mark.parametrize("name", WELL_FORMED)
def test_ids_are_unique_and_a_sample_is_new_at_every_call(name: str) -> None:
    first, second = WELL_FORMED[name](), WELL_FORMED[name]()
    ids = [thing["id"] for body in (first, second) for thing in (body, *body["output"])]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", WELL_FORMED)
def test_a_citation_points_at_the_link_that_names_its_page(name: str) -> None:
    for item in WELL_FORMED[name]()["output"]:
        for part in item.get("content", []):
            for citation in part.get("annotations", []):
                if citation["type"] == "url_citation":
                    marker = part["text"][citation["start_index"] : citation["end_index"]]
                    assert marker.startswith("([")
                    assert marker.endswith(f"]({citation['url']}))")


# Deviations: what is wrong with each, where, and the repair after which nothing else is.


def name_the_url(body: Any) -> None:
    body["output"][0]["action"]["sources"][0] = {"type": "url", "url": "https://example.com/"}


def add_the_action(body: Any) -> None:
    body["output"][0]["action"] = {"type": "search", "queries": []}


def add_the_annotations(body: Any) -> None:
    body["output"][0]["content"][0]["annotations"] = []


def fill_in_the_envelope(body: Any) -> None:
    add_the_annotations(body)
    body["output"][0] |= {"id": "msg_1", "status": "completed"}
    body |= {"object": "response", "created_at": 0, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}


def drop_the_first_item(body: Any) -> None:
    del body["output"][0]


def drop_the_annotation(body: Any) -> None:
    body["output"][0]["content"][0]["annotations"].clear()


def use_a_listed_code(body: Any) -> None:
    body["error"]["code"] = "rate_limit_exceeded"


def count_cache_writes(body: Any) -> None:
    body["usage"]["input_tokens_details"]["cache_write_tokens"] = 0


DEVIANT: dict[str, tuple[tuple[str | int, ...], Callable[[Any], None]]] = {
    "api_source": (("output", 0, "action", "sources", 0, "url"), name_the_url),
    "missing_action": (("output", 0, "action"), add_the_action),
    "missing_annotations": (("output", 0, "content", 0, "annotations"), add_the_annotations),
    "bare": (("object",), fill_in_the_envelope),
    "unknown_item": (("output", 0, "type"), drop_the_first_item),
    "unknown_annotation": (("output", 0, "content", 0, "annotations", 0, "type"), drop_the_annotation),
    "unknown_error_code": (("error", "code"), use_a_listed_code),
    "usage_without_cache_writes": (("usage", "input_tokens_details", "cache_write_tokens"), count_cache_writes),
}


def places(error: pydantic.ValidationError) -> set[tuple[str | int, ...]]:
    """Where the errors are, without the names of the classes that were tried."""
    return {tuple(step for step in one["loc"] if isinstance(step, int) or step.islower()) for one in error.errors()}


def test_every_deviation_is_explained() -> None:
    assert DEVIATIONS.keys() == DEVIANT.keys()
    assert not DEVIATIONS.keys() & WELL_FORMED.keys()


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_deviates_where_it_says_and_nowhere_else(name: str) -> None:
    place, repair = DEVIANT[name]
    body = DEVIATIONS[name]()
    with pytest.raises(pydantic.ValidationError) as caught:
        official.Response.model_validate(body)
    assert place in places(caught.value)
    repair(body)
    check_types(official.Response.model_validate(body))


# The echo


def text_of(body: Any) -> str:
    return official.Response.model_validate(body).output_text


@pytest.mark.parametrize("given", [
    "the query\n\n[Hints] today=2026-11-21", [{"role": "user", "content": "the query"}],
    [{"role": "system", "content": "no"}, {"role": "user", "content": [{"type": "input_text", "text": "the query"}]}],
])  # fmt: skip
def test_the_echo_repeats_the_first_line_of_the_query_and_searched_for_it(given: Any) -> None:
    body = bodies.echo({"model": "gpt-5.4", "input": given})
    assert "The answer to: the query (" in text_of(body)
    assert (body["model"], body["output"][0]["action"]["queries"]) == ("gpt-5.4", ["the query"])
    assert "Hints" not in json.dumps(body)


def test_a_query_with_404_in_it_gets_an_unsearched_answer() -> None:
    body = bodies.echo({"input": "what is 404?"})
    assert "what is 404?" in text_of(body)
    assert [item["type"] for item in body["output"]] == ["message"]


@pytest.mark.parametrize("given", [None, 3, [], [None, {"role": "user"}, 5], "", [{"role": "user", "content": [1]}]])
def test_the_echo_of_an_unusable_input_is_still_an_answer(given: Any) -> None:
    check_types(official.Response.model_validate(bodies.echo({"model": 7, "input": given})))
