"""The events of a stream agree with the official types, and the official client reads what the fake sends."""

from typing import Any, get_args

import openai
import pytest
import trio
from openai.types import responses as official

from responses_mcp.testing import Json, as_stream, bodies, open_fake_api, stream_events
from tests.processes import WAIT
from tests.testing.official_types import check_types
from tests.testing.samples import DEVIATIONS, WELL_FORMED

EVENTS: dict[str, Any] = {
    name: event
    for event in get_args(get_args(official.ResponseStreamEvent)[0])
    for name in get_args(event.model_fields["type"].annotation)
}


def streamable() -> list[str]:
    ended = ("completed", "incomplete", "failed")
    return [name for name, sample in WELL_FORMED.items() if sample()["status"] in ended]


@pytest.mark.parametrize("name", streamable())
def test_every_event_of_a_stream_is_what_the_official_types_describe(name: str) -> None:
    for event in stream_events(WELL_FORMED[name]()):
        if event["type"] == "response.output_item.added" and event["item"]["type"] == "web_search_call":
            # The one deviation, and the API's own: its type requires the action, which is known only later.
            assert "action" not in event["item"]
            event["item"]["action"] = {"type": "search"}
        check_types(EVENTS[event["type"]].model_validate(event))


@pytest.mark.parametrize("name", streamable())
def test_a_stream_is_numbered_and_its_deltas_add_up_to_the_body_that_ends_it(name: str) -> None:
    body = WELL_FORMED[name]()
    events = stream_events(body)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[-1]["response"] == body
    assert events[-1]["type"] == f"response.{body['status']}"
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == body["output"]
    texts = [part["text"] for item in done for part in item.get("content", []) if "text" in part]
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert "".join(deltas) == "".join(texts)
    noted = [e["annotation"] for e in events if e["type"] == "response.output_text.annotation.added"]
    parts = [part for item in done for part in item.get("content", [])]
    assert noted == [note for part in parts for note in part.get("annotations", [])]


def test_the_events_come_in_the_order_of_the_api() -> None:
    body = bodies.answer("one two three", searches=[bodies.web_search_call(["q"])])
    assert [event["type"].removeprefix("response.") for event in stream_events(body)] == [
        *("created", "in_progress"),
        *("output_item.added", "web_search_call.in_progress", "web_search_call.searching"),
        *("web_search_call.completed", "output_item.done"),
        *("output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.delta", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        "completed",
    ]


def test_reasoning_streams_its_summaries_and_its_content() -> None:
    body = bodies.response([bodies.reasoning(["A summary."], content=["A thought."])])
    events = stream_events(body)
    for event in events:
        check_types(EVENTS[event["type"]].model_validate(event))
    deltas = [event["delta"] for event in events if event["type"].endswith(".delta")]
    assert "".join(deltas) == "A summary.A thought."


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviant_body_can_be_streamed_too(name: str) -> None:
    body = DEVIATIONS[name]()
    assert stream_events(body)[-1]["response"] == body


def test_a_stream_may_end_with_an_empty_output_as_some_servers_end_it() -> None:
    events = stream_events(bodies.searched(), empty_terminal=True)
    assert events[-1]["response"]["output"] == []
    assert events[-2]["item"]["content"][0]["text"] == bodies.SEARCHED_TEXT


@pytest.mark.parametrize("name", ["in_progress", "cancelled"])
def test_a_response_that_has_no_last_event_cannot_be_streamed(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        as_stream(WELL_FORMED[name]())


@pytest.mark.parametrize("name", ["unsearched", "searched", "astral", "refusal", "big"])
async def test_the_official_client_reads_a_body_and_its_stream_alike(name: str) -> None:
    body = WELL_FORMED[name]()

    def call(base_url: str) -> None:
        with openai.OpenAI(base_url=base_url, api_key="test", max_retries=0, timeout=WAIT) as client:
            response = client.responses.create(model="gpt-5.2", input="q")
            check_types(response)
            assert response.id == body["id"]
            with client.responses.stream(model="gpt-5.2", input="q") as stream:
                names = [event.type for event in stream]
                final = stream.get_final_response()
            assert names[-1] == "response.completed"
            assert (final.id, final.output_text) == (body["id"], response.output_text)

    with trio.fail_after(WAIT):
        async with open_fake_api(Json(body), as_stream(body)) as api:
            await trio.to_thread.run_sync(call, api.base_url)
