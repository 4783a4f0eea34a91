"""The retry layer in virtual time: how many requests, when, and within which deadline (contract 7)."""

import json
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.settings.model import OpenAISettings
from responses_mcp.testing import bodies
from tests.responses_api.stub import KEY, Reply, ok, refused, stub_api

NEVER_SENT = ConnectionFailed("No route.", retryable=True)
STREAMED = {"stream": True, "stream_options": {"include_obfuscation": False}}
LOST = ConnectionFailed("Lost.")


# What is sent


async def test_a_request_carries_the_body_and_the_key() -> None:
    api, stub = stub_api(ok({"id": "resp_1"}))
    assert await api.create({"model": "gpt-5.2", "input": "日本語"}, dict) == {"id": "resp_1"}
    (sent,) = stub.sent
    assert sent.url == "https://api.openai.com/v1/responses"
    assert json.loads(sent.body) == {"model": "gpt-5.2", "input": "日本語", **STREAMED}
    assert "日本語".encode() in sent.body
    agent = sent.headers["user-agent"]
    assert agent.startswith("openai-responses-mcp/")
    assert dict(sent.headers) == {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "user-agent": agent,
        "authorization": f"Bearer {KEY}",
    }


@pytest.mark.parametrize("base_url", ["https://gateway.example/openai/v1", "https://gateway.example/openai/v1/"])
async def test_the_path_of_the_base_url_is_kept(base_url: str) -> None:
    api, stub = stub_api(openai=OpenAISettings(api_key=KEY, base_url=base_url))
    await api.create({}, dict)
    assert stub.sent[0].url == "https://gateway.example/openai/v1/responses"


async def test_lone_surrogates_anywhere_in_the_body_are_replaced() -> None:
    api, stub = stub_api()
    await api.create({"model": "m\udcff", "instructions": "i\ud800", "tools": [{"k\ud800": "🐍"}]}, dict)
    assert json.loads(stub.sent[0].body) == {
        "model": "m\ufffd",
        "instructions": "i\ufffd",
        "tools": [{"k\ufffd": "🐍"}],
        **STREAMED,
    }


async def test_connections_are_opened_by_the_first_call_and_once(autojump_clock: MockClock) -> None:
    api, stub = stub_api()
    assert stub.connected == []
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(api.create, {}, dict)
    assert len(stub.connected) == 1
    assert len(stub.sent) == 20
    await api.aclose()
    assert stub.closed == 1


async def test_closing_what_was_never_opened_is_nothing() -> None:
    api, stub = stub_api()
    await api.aclose()
    assert stub.closed == 0


async def test_a_failure_to_connect_is_told_and_the_next_call_tries_again() -> None:
    api, stub = stub_api()
    connect, outcomes = stub.connect, [ConnectionFailed("No certificates.")]

    async def failing_once(url: str, limit: int) -> Any:
        if outcomes:
            raise outcomes.pop()
        return await connect(url, limit)

    api._connect = failing_once
    with pytest.raises(ConnectionFailed, match="No certificates"):
        await api.create({}, dict)
    assert await api.create({}, dict)


# How often


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
@pytest.mark.parametrize("max_retries", [0, 1, 3, 5])
async def test_what_may_pass_is_asked_again_max_retries_times(
    autojump_clock: MockClock, status: int, max_retries: int
) -> None:
    api, stub = stub_api(refused(status), max_retries=max_retries)
    with pytest.raises(UpstreamError) as caught:
        await api.create({}, dict)
    assert len(stub.sent) == 1 + max_retries
    assert caught.value.status == status
    assert caught.value.message.endswith(f"({1 + max_retries} requests were made.)") is (max_retries > 0)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(400), RequestRefused),
        (refused(401), AuthenticationFailed),
        (refused(403), RequestRefused),
        (refused(404), RequestRefused),
        (refused(422), RequestRefused),
        (refused(307), RequestRefused),
        (refused(429, "insufficient_quota"), QuotaExhausted),
        (refused(429, "insufficient_quota", retry_after="1"), QuotaExhausted),
        (refused(429, "billing_hard_limit_reached"), QuotaExhausted),
        (refused(503, x_should_retry="false"), ServiceFailed),
        (Reply(200, {}, [b"[]"]), UnusableReply),
        (Reply(200, {}, [b"<html>"]), UnusableReply),
        (ok(bodies.failed("invalid_prompt", "No.")), RequestRefused),
        (ok(bodies.failed("rate_limit_exceeded", "You exceeded your current quota.")), QuotaExhausted),
        (ok(bodies.content_filter()), RequestRefused),
        (ok(bodies.cancelled()), UnusableReply),
        (LOST, ConnectionFailed),
    ],
)
async def test_what_cannot_get_better_is_asked_once(
    autojump_clock: MockClock, reply: Any, error: type[UpstreamError]
) -> None:
    api, stub = stub_api(reply)
    with pytest.raises(UpstreamError) as caught:
        await api.create({}, dict)
    assert type(caught.value) is error
    assert len(stub.sent) == 1
    assert "requests were made" not in str(caught.value)


@pytest.mark.parametrize("again", [NEVER_SENT, refused(503), ok(bodies.failed()), ok(bodies.rate_limited())])
async def test_an_answer_after_failures_is_the_answer(autojump_clock: MockClock, again: Any) -> None:
    api, stub = stub_api(again, again, ok({"id": "resp_3"}))
    assert (await api.create({}, dict))["id"] == "resp_3"
    assert len(stub.sent) == 3
    assert len({sent.body for sent in stub.sent}) == 1


async def test_an_incomplete_response_is_handed_on() -> None:
    api, _ = stub_api(ok(bodies.incomplete_with_text()))
    assert (await api.create({}, dict))["status"] == "incomplete"


async def test_an_error_is_not_its_own_cause(autojump_clock: MockClock) -> None:
    api, _ = stub_api(refused(503))
    with pytest.raises(ServiceFailed) as caught:
        await api.create({}, dict)
    assert caught.value.__cause__ is None
    assert "direct cause" not in "".join(traceback.format_exception(caught.value))


# When


async def test_waits_double_from_half_a_second(autojump_clock: MockClock) -> None:
    api, stub = stub_api(refused(503), max_retries=6)
    with pytest.raises(ServiceFailed):
        await api.create({}, dict)
    assert stub.times == [0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5]


async def test_up_to_a_quarter_is_taken_off_the_waits(autojump_clock: MockClock) -> None:
    api, stub = stub_api(refused(503), random=0.999_999_9)
    with pytest.raises(ServiceFailed):
        await api.create({}, dict)
    assert stub.times == pytest.approx([0, 0.375, 1.125, 2.625], abs=1e-4)


@pytest.mark.parametrize(
    ("headers", "gap"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.25"}, 0.25),
        ({"retry_after": "60"}, 60),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after_ms": "200", "retry_after": "9"}, 0.2),
        ({"retry_after": "soon"}, 0.5),
        ({"retry_after": "nan"}, 0.5),
        ({"retry_after": "-5"}, 0.5),
        ({"retry_after": "0"}, 0.5),
        ({"retry_after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0.5),
    ],
)
async def test_the_wait_that_the_api_asks_for_is_kept_and_nonsense_is_backed_off_from(
    autojump_clock: MockClock, headers: dict[str, str], gap: float
) -> None:
    api, stub = stub_api(refused(429, **headers), max_retries=1, random=0.0)
    with pytest.raises(RateLimited):
        await api.create({}, dict)
    assert stub.times == [0, gap]


async def test_a_date_to_wait_for_is_waited_for(autojump_clock: MockClock) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    api, stub = stub_api(refused(503, retry_after=date), max_retries=1)
    with pytest.raises(ServiceFailed):
        await api.create({}, dict)
    assert 30 < stub.times[1] <= 40


@pytest.mark.parametrize("wait", ["61", "86400", "9" * 400])
async def test_a_wait_above_a_minute_ends_the_call_at_once_and_is_told(autojump_clock: MockClock, wait: str) -> None:
    api, stub = stub_api(refused(429, retry_after=wait))
    began = trio.current_time()
    with pytest.raises(RateLimited, match=r"It asks to wait (61 s|a day or longer)\."):
        await api.create({}, dict)
    assert len(stub.sent) == 1
    assert trio.current_time() == began


async def test_a_wait_above_the_time_left_ends_the_call_at_once(autojump_clock: MockClock) -> None:
    api, stub = stub_api(refused(429, retry_after="20"), timeout_ms=30_000)
    began = trio.current_time()
    with pytest.raises(RateLimited, match=r"It asks to wait 20 s\. \(2 requests were made\.\)"):
        await api.create({}, dict)
    assert stub.times == [0, 20]
    assert trio.current_time() - began == 20


async def test_a_backoff_above_the_time_left_ends_the_call_with_what_the_api_said(autojump_clock: MockClock) -> None:
    api, stub = stub_api(refused(503), timeout_ms=1_000)
    with pytest.raises(ServiceFailed, match="Said so"):
        await api.create({}, dict)
    assert stub.times == [0, 0.5]


# The deadline


async def test_the_deadline_ends_a_silent_request_and_is_not_retried(autojump_clock: MockClock) -> None:
    api, stub = stub_api(trio.sleep_forever, timeout_ms=1_500)
    began = trio.current_time()
    with pytest.raises(DeadlineExceeded, match=r"within 1\.5 s; raise request\.timeout_ms \(OPENAI_API_TIMEOUT\)"):
        await api.create({}, dict)
    assert trio.current_time() - began == 1.5
    assert len(stub.sent) == 1


async def test_the_deadline_covers_requests_and_waits_together(autojump_clock: MockClock) -> None:
    async def slow() -> Reply:
        await trio.sleep(2)
        return refused(503)

    api, stub = stub_api(slow, timeout_ms=6_000)
    began = trio.current_time()
    with pytest.raises(DeadlineExceeded):
        await api.create({}, dict)
    assert trio.current_time() - began == 6
    assert stub.times == [0, 2.5, 5.5]


async def test_an_answer_just_before_the_deadline_counts(autojump_clock: MockClock) -> None:
    async def slow() -> Reply:
        await trio.sleep(5.999)
        return ok()

    api, _ = stub_api(slow, timeout_ms=6_000)
    assert (await api.create({}, dict))["status"] == "completed"


async def test_waiting_for_the_connections_counts_too(autojump_clock: MockClock) -> None:
    async def never(url: str, limit: int) -> Any:
        await trio.sleep_forever()

    api, _ = stub_api(timeout_ms=2_000)
    api._connect = never
    with pytest.raises(DeadlineExceeded):
        await api.create({}, dict)


# Cancelling


@pytest.mark.parametrize(("after", "requests"), [(0.2, 1), (0.5, 1), (0.7, 2), (1.5, 2), (1.6, 3), (3.5, 3)])
async def test_a_cancel_during_or_right_at_the_end_of_a_wait_costs_no_further_request(
    autojump_clock: MockClock, after: float, requests: int
) -> None:
    api, stub = stub_api(refused(503))
    with trio.move_on_after(after) as scope:
        await api.create({}, dict)
    assert scope.cancelled_caught
    assert len(stub.sent) == requests


async def test_a_call_in_a_cancelled_scope_sends_nothing() -> None:
    api, stub = stub_api()
    await api.create({}, dict)
    with trio.CancelScope() as scope:
        scope.cancel()
        await api.create({}, dict)
    assert scope.cancelled_caught
    assert len(stub.sent) == 1


async def test_a_cancel_while_a_retryable_failure_is_under_way_costs_no_further_request(
    autojump_clock: MockClock,
) -> None:
    with trio.CancelScope() as scope:

        async def failing_as_the_cancel_comes() -> Reply:
            await trio.lowlevel.checkpoint()
            scope.cancel()
            return refused(503)

        api, stub = stub_api(failing_as_the_cancel_comes)
        await api.create({}, dict)
    assert scope.cancelled_caught
    assert len(stub.sent) == 1


async def test_a_cancel_is_not_taken_for_the_deadline(autojump_clock: MockClock) -> None:
    api, _ = stub_api(trio.sleep_forever, timeout_ms=1_000)
    with trio.move_on_after(1) as scope:
        scope.cancel()
        await api.create({}, dict)
    assert scope.cancelled_caught
