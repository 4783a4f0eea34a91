"""The responses that the fake API makes: what it keeps, in which state, and what goes wrong on request."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest
import trio
from openai.types import responses as official
from trio.testing import MockClock

from responses_mcp.testing import Error, Faults, Json, StoredResponses
from responses_mcp.testing.replies import Ending, Pause, Reply
from tests.testing.bare_client import Client, Received, connected, fake
from tests.testing.official_types import check_types
from tests.testing.test_event_stream import EVENTS

THINKING: dict[str, Any] = {"model": "gpt-5.4", "reasoning": {"effort": "medium"}}
ASKED: dict[str, Any] = {**THINKING, "input": "why?", "background": True, "store": True, "stream": True}
PLAIN: list[dict[str, Any]] = [{}, {"stream": True}]
ANY_WAY = [*PLAIN, {"background": True}, {"background": True, "stream": True}]


async def written(reply: Reply) -> tuple[list[dict[str, Any]], Ending]:
    """Play a reply in Trio's time and return the events in it, and how it ends."""
    data, ending = b"", Ending.KEEP_ALIVE
    for step in reply.steps("req_1"):
        if isinstance(step, bytes):
            data += step
        elif isinstance(step, Pause):
            await trio.sleep(step.seconds)
        else:
            ending = step
    lines = data.split(b"\n")
    return [json.loads(line.removeprefix(b"data: ")) for line in lines if line.startswith(b"data: ")], ending


def body_of(reply: Reply) -> Any:
    assert isinstance(reply, Json)
    return reply.body


def the_id(stored: StoredResponses) -> str:
    (name,) = stored.responses
    return name


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[StoredResponses, Client]]:
    async with fake() as api, connected(api) as client:
        yield api.stored, client


async def get(client: Client, target: str, method: str = "GET") -> Received:
    await client.send(f"{method} /v1/responses/{target} HTTP/1.1\r\nHost: fake\r\nContent-Length: 0\r\n\r\n".encode())
    return await client.receive()


def response_in(received: Received) -> Any:
    """Return the response of a reply, also of one that is a stream."""
    assert received.status == 200
    if received.headers["content-type"] == "application/json":
        return received.json
    return json.loads(received.body.rstrip().rpartition(b"data: ")[2])["response"]


@pytest.mark.parametrize("way", ANY_WAY)
async def test_a_response_is_found_and_continued_whichever_way_it_was_asked_for(way: dict[str, Any]) -> None:
    async with serving() as (_, client):
        made = response_in(await client.ask("why?", **way))
        check_types(official.Response.model_validate(made))
        assert (made["store"], made["background"]) == (True, way.get("background", False))
        assert response_in(await get(client, made["id"])) == made
        for then in ANY_WAY:
            second = response_in(await client.ask("and then?", previous_response_id=made["id"], **then))
            assert second["previous_response_id"] == made["id"]


@pytest.mark.parametrize("way", PLAIN)
async def test_a_response_that_is_not_to_be_stored_is_neither_found_nor_continued(way: dict[str, Any]) -> None:
    async with serving() as (stored, client):
        refused = await client.ask("why?", background=True, store=False)
        assert (refused.status, refused.json["error"]["param"], stored.responses) == (400, "store", {})
        made = response_in(await client.ask("why?", store=False, **way))
        assert made["store"] is False
        assert (await get(client, made["id"])).status == 404
        assert (await client.ask("and then?", previous_response_id=made["id"], **way)).status == 400


@pytest.mark.parametrize("way", ANY_WAY)
async def test_what_follows_a_response_that_is_not_known_is_refused_as_the_api_words_it(way: dict[str, Any]) -> None:
    async with serving() as (stored, client):
        refused = await client.ask("why?", previous_response_id="resp_unknown", **way)
        assert refused.status == 400
        assert refused.json["error"] == {
            "message": "Previous response with id 'resp_unknown' not found.",
            "type": "invalid_request_error",
            "param": "previous_response_id",
            "code": "previous_response_not_found",
        }
        assert not stored.responses


@pytest.mark.parametrize("way", PLAIN)
async def test_a_response_that_is_not_of_the_background_is_neither_cancelled_nor_streamed_again(
    way: dict[str, Any],
) -> None:
    async with serving() as (_, client):
        name = response_in(await client.ask("why?", **way))["id"]
        cancel, stream = await get(client, f"{name}/cancel", "POST"), await get(client, f"{name}?stream=true")
        assert (cancel.status, stream.status) == (400, 400)
        assert cancel.json["error"]["message"] == "Cannot cancel a synchronous response."
        assert (stream.json["error"]["param"], "background=true" in stream.json["error"]["message"]) == ("stream", True)


async def test_interval_and_faults_are_of_the_background() -> None:
    stored = StoredResponses()
    stored.interval, stored.faults = 9.0, Faults(id_never_sent=True, cut_after=0, stuck=True)
    asked = {**ASKED, "background": False}
    made = body_of(stored.create({**asked, "stream": False}))
    events, ending = await written(stored.create(asked))
    assert (made["status"], events[-1]["type"], ending) == ("completed", "response.completed", Ending.KEEP_ALIVE)
    assert "response.queued" not in [event["type"] for event in events]


async def test_the_last_thousand_responses_are_kept() -> None:
    stored = StoredResponses()
    first, *others = [body_of(stored.create({"input": "why?"}))["id"] for _ in range(1001)]
    assert list(stored.responses) == others
    assert isinstance(stored.create({"input": "why?", "previous_response_id": first}), Error)


async def test_a_response_grows_with_its_age_and_each_state_is_of_the_official_types(mock_clock: MockClock) -> None:
    stored = StoredResponses()
    stored.interval = 1.0
    first = body_of(stored.create({**ASKED, "stream": False}))
    seen = [first]
    while seen[-1]["status"] not in ("completed", "failed"):
        mock_clock.jump(1.0)
        seen.append(body_of(stored.answer("GET", first["id"])))
    for body in seen:
        check_types(official.Response.model_validate(body))
    assert list(dict.fromkeys(body["status"] for body in seen)) == ["queued", "in_progress", "completed"]
    assert [len(body["output"]) for body in seen] == sorted(len(body["output"]) for body in seen)
    assert seen[-2]["usage"] is None
    assert seen[-1]["usage"]["total_tokens"] > 0


async def test_its_events_are_of_the_official_types_numbered_and_begin_in_the_queue() -> None:
    stored = StoredResponses()
    events, ending = await written(stored.create(ASKED))
    assert ending is Ending.KEEP_ALIVE
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = [event["type"] for event in events]
    assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    for event in events:
        if event["type"] == "response.output_item.added" and event["item"]["type"] == "web_search_call":
            event["item"]["action"] = {"type": "search"}
        check_types(EVENTS[event["type"]].model_validate(event))


@pytest.mark.clock("virtual")
async def test_a_stream_waits_for_events_to_come_and_a_cursor_leaves_out_those_before_it() -> None:
    stored = StoredResponses()
    stored.interval = 2.0
    whole, _ = await written(stored.create(ASKED))
    assert trio.current_time() >= 2.0 * (len(whole) - 1)
    rest, _ = await written(stored.answer("GET", f"{the_id(stored)}?stream=true&starting_after=5"))
    assert rest == whole[6:]


async def test_a_cancel_stops_a_response_once_and_for_all_and_its_stream_ends_without_a_last_event(
    mock_clock: MockClock,
) -> None:
    stored = StoredResponses()
    stored.interval = 1.0
    stored.create(ASKED)
    mock_clock.jump(4.5)
    first = body_of(stored.answer("POST", f"{the_id(stored)}/cancel"))
    mock_clock.jump(100)
    assert first["status"] == "cancelled"
    check_types(official.Response.model_validate(first))
    assert body_of(stored.answer("POST", f"{the_id(stored)}/cancel")) == first
    events, _ = await written(stored.answer("GET", f"{the_id(stored)}?stream=true"))
    assert [event["sequence_number"] for event in events] == [0, 1, 2, 3, 4]


async def test_a_stream_is_cut_behind_the_event_that_is_named_and_goes_on_for_who_comes_back() -> None:
    stored = StoredResponses()
    stored.faults = Faults(cut_after=4)
    events, ending = await written(stored.create(ASKED))
    assert (events[-1]["sequence_number"], ending) == (4, Ending.CLOSE)
    rest, ending = await written(stored.answer("GET", f"{the_id(stored)}?stream=true&starting_after=4"))
    assert (rest[0]["sequence_number"], rest[-1]["type"], ending) == (5, "response.completed", Ending.KEEP_ALIVE)


async def test_on_request_ids_and_cancels_are_lost_and_responses_stuck_or_forgotten(mock_clock: MockClock) -> None:
    stored = StoredResponses()
    stored.interval, stored.faults = 1.0, Faults(id_never_sent=True)
    assert await written(stored.create(ASKED)) == ([], Ending.CLOSE)
    for faults in (Faults(cancels_lost=1), Faults(stuck=True), Faults(gone_after=50.0)):
        stored.faults = faults
        stored.create(ASKED)
    _, cancelled, stuck, gone = stored.responses
    assert await written(stored.answer("POST", f"{cancelled}/cancel")) == ([], Ending.CLOSE)
    assert body_of(stored.answer("GET", cancelled))["status"] == "queued"
    assert body_of(stored.answer("POST", f"{cancelled}/cancel"))["status"] == "cancelled"
    mock_clock.jump(49)
    assert [body_of(stored.answer("GET", name))["status"] for name in (stuck, gone)] == ["in_progress", "completed"]
    mock_clock.jump(1)
    assert [body_of(stored.answer("GET", name)).get("status") for name in (stuck, gone)] == ["in_progress", None]


async def test_with_a_schema_the_text_is_a_value_of_it_and_has_no_annotations() -> None:
    schema = {
        "type": "object",
        "properties": {
            "what": {"type": "string"},
            "size": {"enum": ["s", "l"]},
            "more": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
            "left out": {"type": "array"},
            "perhaps": {"type": ["null", "string"]},
        },
        "required": ["what", "size", "more", "perhaps"],
    }
    text = {"format": {"type": "json_schema", "name": "a", "schema": schema}}
    async with serving() as (_, client):
        for way in ANY_WAY:
            part = response_in(await client.ask("why?", **way, text=text))["output"][-1]["content"][0]
            assert json.loads(part["text"]) == {"what": "why?", "size": "s", "more": {"n": 0}, "perhaps": None}
            assert part["annotations"] == []


@pytest.mark.parametrize("wrong", ["x", [], {"format": "x", "effort": []}, {"format": {"type": "json_schema"}}])
async def test_a_request_whose_fields_are_of_other_kinds_is_answered_all_the_same(wrong: Any) -> None:
    async with serving() as (_, client):
        response_in(await client.ask("why?", model=wrong, text=wrong, reasoning=wrong, include=wrong, tools=wrong))


@pytest.mark.parametrize("after", ["abc", "-5", "1.5", "²", "9" * 5000])
async def test_a_cursor_that_is_no_number_of_an_event_is_refused(after: str) -> None:
    async with serving() as (_, client):
        name = (await client.ask("why?", background=True)).json["id"]
        refused = await get(client, f"{name}?stream=true&starting_after={quote(after)}")
        assert (refused.status, refused.json["error"]["param"]) == (400, "starting_after")
