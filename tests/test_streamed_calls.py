"""Calls with a progress token, end to end: real sockets up, in-memory streams down."""

import json
from typing import Any

import pytest
import trio

from responses_mcp.settings.model import OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import Error, Json, Raw, Sse, as_stream, bodies, open_fake_api, stream_events
from responses_mcp.testing.client import McpClient, connected_client
from tests.both_ways import way

__all__ = ["way"]

WAIT = 30.0


def pointing_at(base_url: str, **request: Any) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=base_url, api_key="sk-test-0123456789"), request=RequestSettings(**request)
    )


async def ask(client: McpClient, *, token: object = "p") -> dict:
    params: dict = {"name": "answer", "arguments": {"query": "Why?"}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    with trio.fail_after(WAIT):
        return await client.response(await client.request("tools/call", params))


def messages(client: McpClient) -> list[str]:
    progress = [m["params"] for m in client.heard if m.get("method") == "notifications/progress"]
    values = [p["progress"] for p in progress]
    assert values == sorted(set(values))
    return [p["message"] for p in progress]


async def test_a_token_makes_the_call_stream_and_its_first_phase_is_told() -> None:
    async with open_fake_api() as api, connected_client(pointing_at(api.base_url)) as client:
        answer = await ask(client)
        assert api.requests[0].json is not None
        assert api.requests[0].json["stream"] is True
        assert "Why?" in answer["result"]["structuredContent"]["answer"]
        assert messages(client)[0] == "asking gpt-5.2"
        assert client.heard[-1] == answer


async def test_without_a_token_the_call_is_streamed_and_nothing_is_told() -> None:
    async with open_fake_api() as api, connected_client(pointing_at(api.base_url)) as client:
        await ask(client, token=None)
        assert api.requests[0].json is not None
        assert api.requests[0].json["stream"] is True
        assert messages(client) == []


async def test_phases_of_a_slow_stream_are_told_while_it_runs() -> None:
    events = [
        event for event in stream_events(bodies.searched()) if event["type"] != "response.output_text.annotation.added"
    ]
    async with open_fake_api(Sse(events, interval=0.08)) as api, connected_client(pointing_at(api.base_url)) as client:
        answer = await ask(client)
        told = messages(client)
        assert told[0] == "asking gpt-5.2"
        assert "writing" in told or any(message.startswith("searched") for message in told)
        assert answer["result"]["structuredContent"]["used_search"]


async def test_a_stream_and_a_plain_reply_give_the_same_answer() -> None:
    body = bodies.searched()
    async with open_fake_api(as_stream(body), Json(body)) as api, connected_client(pointing_at(api.base_url)) as client:
        streamed = await ask(client)
        plain = await ask(client, token=None)
        assert streamed["result"] == plain["result"]


async def test_json_where_a_stream_was_asked_for_is_read() -> None:
    body = bodies.searched()
    async with open_fake_api(Json(body)) as api, connected_client(pointing_at(api.base_url)) as client:
        assert (await ask(client))["result"]["structuredContent"]["used_search"]


@pytest.mark.parametrize("content_type", ["text/event-stream; charset=utf-8", "application/json", "text/plain"])
@pytest.mark.parametrize("token", ["p", None])
async def test_a_stream_is_read_where_json_was_asked_for_and_whatever_it_is_called(content_type: str, token) -> None:
    events = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in stream_events(bodies.searched()))
    reply = Raw(events, content_type=content_type)
    async with open_fake_api(reply) as api, connected_client(pointing_at(api.base_url)) as client:
        assert (await ask(client, token=token))["result"]["structuredContent"]["used_search"]


async def test_a_cut_stream_is_an_error_and_is_not_paid_for_twice() -> None:
    reply = Sse(stream_events(bodies.searched())[:-1], ending="cut")
    async with open_fake_api(reply) as api, connected_client(pointing_at(api.base_url)) as client:
        failed = await ask(client)
        assert failed["error"]["code"] == -32001
        assert len(api.requests) == 1


async def test_a_stream_that_ends_politely_without_an_answer_is_an_error() -> None:
    reply = Sse(stream_events(bodies.searched())[:-1])
    async with open_fake_api(reply) as api, connected_client(pointing_at(api.base_url)) as client:
        failed = await ask(client)
        assert "ended before the answer was complete" in failed["error"]["data"]["message"]
        assert len(api.requests) == 1


async def test_a_cancel_in_the_middle_of_a_stream_closes_the_socket() -> None:
    reply = Sse(stream_events(bodies.searched())[:6], ending="hang")
    async with open_fake_api(reply) as api, connected_client(pointing_at(api.base_url)) as client:
        call = await client.request(
            "tools/call", {"name": "answer", "arguments": {"query": "Why?"}, "_meta": {"progressToken": 1}}
        )
        with trio.fail_after(WAIT):
            while len(messages(client)) < 2:  # the first comes before the request is sent
                await client.news()
            await client.cancel(call)
            await api.wait_hang_ups(1)
            await client.ask("ping")
        assert not [m for m in client.heard if m.get("id") == call]


async def test_a_retry_is_told_with_its_wait_and_number() -> None:
    limited = Error(429, retry_after_ms="10")
    async with open_fake_api(limited, limited) as api, connected_client(pointing_at(api.base_url)) as client:
        answer = await ask(client)
        assert "result" in answer
        assert len(api.requests) == 3
        assert messages(client)[0] == "asking gpt-5.2"


# Servers that do not take everything


async def test_a_parameter_that_is_refused_is_left_out_once_and_for_all(caplog: pytest.LogCaptureFixture) -> None:
    refusal = Error(400, message="Unknown parameter: 'include'.", param="include", code="unknown_parameter")
    async with open_fake_api(refusal) as api, connected_client(pointing_at(api.base_url)) as client:
        assert "result" in await ask(client, token=None)
        assert "result" in await ask(client, token=None)
        assert ["include" in (request.json or {}) for request in api.requests] == [True, False, False]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["the model gpt-5.2 is asked without include, which is not taken"]


async def test_an_effort_that_is_refused_moves_to_one_that_is_taken() -> None:
    message = "Unsupported value: 'medium' is not supported with this model. Supported values are: 'low' and 'xhigh'."
    refusal = Error(400, message=message, param="reasoning.effort", code="unsupported_value")
    async with open_fake_api(refusal) as api, connected_client(pointing_at(api.base_url)) as client:
        assert "result" in await ask(client, token=None)
        assert [request.json["reasoning"]["effort"] for request in api.requests if request.json] == ["medium", "low"]


async def test_the_search_tool_is_never_left_out() -> None:
    refusal = Error(400, message="Tool web_search is not supported.", param="tools", code="unsupported_value")
    async with open_fake_api(refusal, refusal) as api, connected_client(pointing_at(api.base_url)) as client:
        failed = await ask(client, token=None)
        assert "web_search is not supported" in failed["error"]["data"]["message"]
        assert len(api.requests) == 1


async def test_lessons_count_as_retries() -> None:
    refusal = Error(400, message="Unknown parameter: 'include'.", param="include")
    async with open_fake_api(refusal) as api, connected_client(pointing_at(api.base_url, max_retries=0)) as client:
        assert "error" in await ask(client, token=None)
        assert len(api.requests) == 1
