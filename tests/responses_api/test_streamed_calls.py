"""Streamed calls over real sockets: the same answer as without a stream, phases on the way, and every way to break it."""

import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.responses_api import api as api_module
from responses_mcp.responses_api import client as client_module
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.testing import Error, FakeApi, Json, Raw, Reply, Sse, as_stream, bodies, open_fake_api
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.network import bare_environment, cancel_when_asked, gone, jump_when_asked, real_api

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")
BODY = {"model": "gpt-5.2", "input": "hello"}
STREAMED = {"stream": True, "stream_options": {"include_obfuscation": False}}


@pytest.fixture(autouse=True)
def _quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "backoff", lambda *_: 0.001)


@asynccontextmanager
async def streaming(
    *replies: Reply, limit: float = WAIT, **options: Any
) -> AsyncGenerator[tuple[FakeApi, ResponsesApi, list[str]]]:
    """Give a fake, an API that talks to it, and a list for the phases."""
    with trio.fail_after(limit):
        async with open_fake_api(*replies) as fake, real_api(fake.base_url, **options) as api:
            yield fake, api, []


async def test_a_streamed_call_gives_the_response_and_tells_its_phases() -> None:
    body = bodies.searched()
    async with streaming(as_stream(body)) as (fake, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append) == body
        assert phases == ["thinking", "searching", "searched: python 3.14 release date", "writing"]
        assert fake.requests[0].json == {**BODY, **STREAMED}
        assert fake.requests[0].headers["accept"].startswith("text/event-stream")


async def test_a_call_that_nobody_watches_is_streamed_as_well() -> None:
    body = bodies.searched()
    async with streaming(as_stream(body)) as (fake, api, _):
        assert await api.create(BODY, dict) == body
        assert fake.requests[0].json == {**BODY, **STREAMED}
        assert fake.requests[0].headers["accept"].startswith("text/event-stream")


@pytest.mark.parametrize("chunk_bytes", [1, 7, None])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_chunks_and_line_ends_do_not_matter(chunk_bytes: int | None, line_end: str) -> None:
    body = bodies.answer("日本語🐍 " * 5)
    reply = replace(as_stream(body), chunk_bytes=chunk_bytes, line_end=line_end, done_marker=True)
    async with streaming(reply) as (_, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append) == body
        assert phases == ["writing"]


async def test_a_connection_whose_stream_has_ended_is_used_again() -> None:
    async with streaming(*[as_stream(bodies.unsearched())] * 3) as (fake, api, phases):
        for _ in range(3):
            await api.create(BODY, dict, on_phase=phases.append)
        assert (len(fake.requests), fake.connections) == (3, 1)


async def test_a_stream_that_goes_on_after_its_last_event_is_left_and_its_connection_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "LAST_BYTES", 0.01)
    body = bodies.unsearched()
    async with streaming(replace(as_stream(body), ending="hang"), as_stream(body)) as (fake, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append) == body
        await gone(fake)
        assert await api.create(BODY, dict, on_phase=phases.append) == body


async def test_a_connection_that_breaks_right_after_the_last_event_costs_nothing() -> None:
    body = bodies.unsearched()
    async with streaming(replace(as_stream(body), ending="cut")) as (fake, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append) == body
        assert len(fake.requests) == 1


@pytest.mark.parametrize("kept", [0, 1, 2, 5, -1])
async def test_a_stream_that_is_cut_before_its_last_event_is_an_error_and_not_repeated(kept: int) -> None:
    whole = as_stream(bodies.searched())
    for ending in ("cut", "complete"):
        reply = replace(whole, events=whole.events[:kept], ending=ending)
        async with streaming(reply, max_retries=3) as (fake, api, phases):
            with pytest.raises(ConnectionFailed, match="ask again") as caught:
                await api.create(BODY, dict, on_phase=phases.append)
            assert not caught.value.retryable
            assert len(fake.requests) == 1


@pytest.mark.parametrize("kept", [0, 3])
async def test_the_deadline_closes_the_socket_of_a_silent_stream(mock_clock: MockClock, kept: int) -> None:
    mock_clock.rate = 1
    whole = as_stream(bodies.searched())
    silent = replace(whole, events=whole.events[:kept], ending="hang")
    async with streaming(silent, timeout_ms=60_000, limit=60 + WAIT) as (fake, api, phases):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(jump_when_asked, mock_clock, fake)
            with pytest.raises(DeadlineExceeded):
                await api.create(BODY, dict, on_phase=phases.append)
        await fake.wait_hang_ups(1)
        await gone(fake)


@pytest.mark.parametrize("kept", [0, 3])
async def test_a_cancel_closes_the_socket_of_a_silent_stream(kept: int) -> None:
    whole = as_stream(bodies.searched())
    silent = replace(whole, events=whole.events[:kept], ending="hang")
    async with streaming(silent) as (fake, api, phases):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(api.create, BODY, dict, on_phase=phases.append))
            await cancel_when_asked(nursery.cancel_scope, fake)
        await fake.wait_hang_ups(1)
        await gone(fake)


async def test_json_where_a_stream_was_asked_for_is_read_as_json() -> None:
    body = bodies.searched()
    async with streaming(Json(body)) as (_, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append) == body
        assert phases == []


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize("packed", [True, False])
async def test_events_under_another_name_or_compressed_are_read_as_events(watched: bool, packed: bool) -> None:
    body = bodies.searched()
    events = b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in as_stream(body).events)
    headers = {"content-encoding": "gzip"} if packed else {}
    reply = Raw(gzip.compress(events) if packed else events, headers=headers)
    async with streaming(reply) as (_, api, phases):
        assert await api.create(BODY, dict, on_phase=phases.append if watched else None) == body


@pytest.mark.parametrize(
    ("events", "error", "words"),
    [
        ([{"type": "error", "code": "server_error", "message": "Boom."}], ServiceFailed, "Boom."),
        ([{"error": {"code": "server_error", "message": "Boom."}}], ServiceFailed, "Boom."),
        (
            [{"type": "error", "error": {"type": "x", "code": "invalid_prompt", "message": "No."}}],
            RequestRefused,
            "No.",
        ),
        ([{"type": "response.failed", "response": bodies.failed()}], ServiceFailed, "could not finish"),
        ([{"type": "response.cancelled", "response": {}}], UnusableReply, "cancelled"),
        ([{"type": "response.incomplete", "response": bodies.content_filter()}], RequestRefused, "content filter"),
    ],
)
async def test_a_failure_within_the_stream_is_the_same_error_as_without_one(
    events: list[dict[str, Any]], error: type[UpstreamError], words: str
) -> None:
    data = [f"data: {json.dumps(event)}\n\n" for event in events]
    async with streaming(Sse(data)) as (_, api, phases):
        with pytest.raises(UpstreamError, match=words) as caught:
            await api.create(BODY, dict, on_phase=phases.append)
        assert type(caught.value) is error


@pytest.mark.parametrize("output", [None, 0, 5, "text", True, {"a": 1}, [], [5], [[]]])
async def test_a_last_event_with_an_output_of_any_kind_is_completed_from_the_events_before(output: Any) -> None:
    *before, last = as_stream(bodies.unsearched()).events
    assert isinstance(last, dict)
    ended = {**last, "response": {**last["response"], "output": output}}
    async with streaming(Sse([*before, ended])) as (_, api, phases):
        response = await api.create(BODY, dict, on_phase=phases.append)
        assert [item["content"][0]["text"] for item in response["output"] if isinstance(item, dict)] == [
            "A nursery owns the tasks that were started in it."
        ]


async def test_retries_are_told_before_they_are_waited_for() -> None:
    async with streaming(Error(429), Error(503), as_stream(bodies.unsearched()), max_retries=3) as (fake, api, phases):
        await api.create(BODY, dict, on_phase=phases.append)
        assert phases == ["rate limited, retry in 0 s (1/3)", "the API failed, retry in 0 s (2/3)", "writing"]
        assert len(fake.requests) == 3


async def test_no_secret_leaves_a_failing_stream() -> None:
    secret = "canary-key-0123456789"
    events = [{"type": "error", "code": secret, "message": "x" * 250 + secret, "param": secret}]
    async with streaming(Sse([f"data: {json.dumps(event)}\n\n" for event in events]), api_key=secret) as (
        _,
        api,
        phases,
    ):
        with pytest.raises(UpstreamError) as caught:
            await api.create(BODY, dict, on_phase=phases.append)
        assert "canary" not in f"{caught.value!r} {caught.value} {caught.value.__dict__}"


# What a server does not take


async def test_an_optional_parameter_that_is_refused_is_left_out_remembered_and_told_once(
    capfd: pytest.CaptureFixture[str],
) -> None:
    refusal = Error(400, "Unknown parameter: 'include'.", param="include")
    body = {**BODY, "include": ["web_search_call.action.sources"], "tools": [{"type": "web_search"}]}
    with configured(debug=False):
        async with streaming(refusal, max_retries=1) as (fake, api, _):
            assert (await api.create(body, dict))["status"] == "completed"
            assert (await api.create(body, dict))["status"] == "completed"
            assert [sorted(request.json) for request in fake.requests] == [
                ["include", "input", "model", *STREAMED, "tools"],
                ["input", "model", *STREAMED, "tools"],
                ["input", "model", *STREAMED, "tools"],
            ]
    (line,) = capfd.readouterr().err.splitlines()
    assert "gpt-5.2" in line
    assert "include" in line


async def test_tools_are_never_left_out() -> None:
    refusal = Error(400, "Unknown parameter: 'tools'.", param="tools")
    async with streaming(refusal, max_retries=3) as (fake, api, _):
        with pytest.raises(RequestRefused):
            await api.create({**BODY, "tools": [{"type": "web_search"}]}, dict)
        assert len(fake.requests) == 1
