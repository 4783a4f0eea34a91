"""The gate of a model's rate limit: after a refusal or an empty limit, calls go in order and nobody overtakes."""

import math
import random
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from responses_mcp.asking import Watcher
from responses_mcp.errors import DeadlineExceeded, RateLimited, RequestRefused
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.retry import Gate, seconds_until
from tests.responses_api.stub import Play, Reply, StubConnections, ok, refused, stub_api

BODY = {"model": "gpt-5.2", "input": "Why?"}


def limits(remaining: object, reset: object, limit: object = 60, of: str = "requests") -> dict[str, str]:
    named = {"remaining": remaining, "reset": reset, "limit": limit}
    return {f"x-ratelimit-{name}-{of}": str(value) for name, value in named.items()}


def answered(remaining: object, reset: object) -> Reply:
    return Reply(200, limits(remaining, reset), ok().pieces)


def limited(wait: str | None = None, said: str = "Too many.") -> Reply:
    body = f'{{"error": {{"message": "{said}", "code": "rate_limit_exceeded"}}}}'.encode()
    return Reply(429, {} if wait is None else {"retry-after": wait}, [body])


def after(seconds: float, reply: Reply) -> Play:
    async def play() -> Reply:
        await trio.sleep(seconds)
        return reply

    return play


async def ask(api: ResponsesApi, on_phase: Any = None, **more: Any) -> dict[str, Any]:
    return await api.create({**BODY, **more}, lambda response: response, watcher=Watcher(on_phase))


async def ask_in_turn(api: ResponsesApi, nursery: trio.Nursery, count: int) -> None:
    for number in range(count):
        nursery.start_soon(partial(ask, api, input=f"call {number}"))
        await wait_all_tasks_blocked()


def order(stub: StubConnections) -> list[int]:
    return [number for sent in stub.sent for number in range(20) if f'"call {number}"'.encode() in sent.body]


@pytest.mark.parametrize(("text", "seconds"), [
    ("1s", 1), ("6m0s", 360), ("20ms", 0.02), ("1h2m3.5s", 3723.5), ("12", 12), ("0.25", 0.25), ("0s", 0),
    ("1d", 86_400), ("99999d", 86_400), ("3h 2m", 10_920), ("1 h 5 min", 3_900), ("2 hours and 3 minutes", 7_380),
    ("2001-01-01T00:00:00Z", 0), ("2999-01-01T09:00:00+09:00", 86_400), ("2999-01-01", 86_400),
    *((text, None) for text in ("", "s", "soon", "-1s", "1e9s", "nan", "inf", "１s", "6s ago")),
])  # fmt: skip
def test_durations_are_read_as_the_api_writes_them_and_bounded(text: str, seconds: float | None) -> None:
    assert seconds_until(text) == seconds


async def test_behind_an_empty_limit_nobody_sends_before_the_time_that_the_reply_names(
    autojump_clock: MockClock,
) -> None:
    api, stub = stub_api(answered(0, "30s"), answered(50, "10s"))
    phases: list[str] = []
    await ask(api)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(partial(ask, api, phases.append, input=f"call {number}"))
            await wait_all_tasks_blocked()
    assert order(stub) == [0, 1, 2]
    assert 30 <= stub.times[1] == stub.times[3] < 30.1
    assert phases.count("waiting for the API's rate limit, 30 s or more") == 3


@pytest.mark.parametrize("name", ["x-ratelimit", "ratelimit"])
async def test_an_empty_limit_is_kept_also_where_its_headers_name_no_kind(name: str, autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, {f"{name}-remaining": "0", f"{name}-reset": "30"}, ok().pieces), ok())
    await ask(api)
    await ask(api)
    assert 30 <= stub.times[1] < 30.1


@pytest.mark.parametrize("words", [
    "Rate limit reached for gpt-5.2. Please try again in 6s. Visit the page of limits.", "Try again in about 6 seconds.",
    "Please try again in 5 seconds, 1000ms.", "Retry-After: 6", "Please retry after: 6s.", "retryAfter=6.0",
    "Wait for at least 5 s 1000 ms.", "Your limit resets in ~6s", "Request was throttled. Expected available in 6 seconds.",
    "Limit: 20 requests in 60 s; wait 0.1 minutes and try again.", "In 6 seconds you may try again.",
    "60 per 60 s are allowed, 5m tokens too. Back off for 6 sec", "Wait time: 6 seconds", "Quota is replenished in 6s",
    "6秒後に再試行してください", "请在 6 秒后重试", "Bitte in 6 Sekunden erneut versuchen", "Réessayez dans 6 secondes",
])  # fmt: skip
async def test_a_time_is_found_in_the_words_of_a_refusal(words: str, autojump_clock: MockClock) -> None:
    api, stub = stub_api(limited(said=words), ok())
    await ask(api)
    assert stub.times == [0, 6]


@pytest.mark.parametrize("words", [
    "Try again in a minute.", "Wait 1 Minute.", "1分後にもう一度お試しください", "Warten Sie 1 Minute", "Reintente en 1 minuto"
])  # fmt: skip
async def test_a_minute_is_one_in_every_language(words: str, autojump_clock: MockClock) -> None:
    api, stub = stub_api(limited(said=words), ok())
    await ask(api)
    assert stub.times == [0, 60]


@pytest.mark.parametrize("words", ["The limit resets at: 2999-11-30 13:00:00 UTC", "Retry at 2999-11-30T13:00:00Z."])
async def test_a_date_in_the_words_of_a_refusal_is_told(words: str) -> None:
    api, _ = stub_api(limited(said=words), ok())
    with pytest.raises(RateLimited, match="It asks to wait a day or longer"):
        await ask(api)


@pytest.mark.parametrize("refusal", [
    limited("6"), Reply(429, limits(0, "6s"), limited().pieces), Reply(429, limits(0, "6s", of="tokens-minute"), limited().pieces),
    Reply(429, {"anthropic-ratelimit-tokens-remaining": "0", "anthropic-ratelimit-tokens-reset": "6"}, limited().pieces),
], ids=["Retry-After", "limit", "of a minute", "other name"])  # fmt: skip
async def test_behind_a_refusal_one_request_goes_at_the_time_it_names_and_all_in_order_behind_it(
    refusal: Reply, autojump_clock: MockClock
) -> None:
    api, stub = stub_api(refusal, after(0.5, ok()), ok())
    async with trio.open_nursery() as nursery:
        await ask_in_turn(api, nursery, 5)
    assert order(stub) == [0, 0, 1, 2, 3, 4]
    assert stub.times == [0, 6, *[6.5] * 4]


async def test_a_call_that_is_refused_keeps_its_place_before_the_calls_behind_it(autojump_clock: MockClock) -> None:
    last, first = after(2, limited("5")), after(1, limited("5"))
    api, stub = stub_api(last, first, first, first, ok())
    async with trio.open_nursery() as nursery:
        await ask_in_turn(api, nursery, 4)
    assert order(stub) == [0, 1, 2, 3] * 2
    assert stub.times[4:] == [7, 7, 7, 7]


async def test_the_next_call_goes_where_the_one_that_goes_is_cancelled(autojump_clock: MockClock) -> None:
    api, stub = stub_api(answered(0, "30s"), after(100, ok()), ok())
    await ask(api)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(31) as first:
            nursery.start_soon(ask_in_turn, api, nursery, 2)
            await ask(api)
    assert first.cancelled_caught
    assert [int(at) for at in stub.times] == [0, 30, 31, 31]


async def test_a_call_that_is_cancelled_in_the_line_sends_nothing(autojump_clock: MockClock) -> None:
    api, stub = stub_api(answered(0, "30s"), answered(9, "1s"))
    await ask(api)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(5) as first:
            nursery.start_soon(ask, api)
            await ask(api, input="never")
    assert first.cancelled_caught
    assert [int(at) for at in stub.times] == [0, 30]
    assert not any(b"never" in sent.body for sent in stub.sent)


@pytest.mark.parametrize("wait", ["61", "40"], ids=["above a minute", "beyond the deadline"])
async def test_a_wait_that_no_call_makes_ends_the_call_that_got_it_and_the_next_may_ask(
    wait: str, autojump_clock: MockClock
) -> None:
    api, stub = stub_api(limited(wait), ok(), timeout_ms=30_000)
    with pytest.raises(RateLimited, match=f"wait {wait} s"):
        await ask(api)
    await ask(api)
    assert stub.times == [0, 0]


async def test_a_request_that_is_too_large_for_the_limit_ends_its_call_and_no_other(autojump_clock: MockClock) -> None:
    too_large = limited(said="Request too large for gpt-5.2 on tokens per min (TPM): Limit 30000, Requested 50000.")
    api, stub = stub_api(too_large, ok())
    async with trio.open_nursery() as nursery:
        with pytest.raises(RequestRefused):
            await ask(api)
        await ask_in_turn(api, nursery, 2)
    assert stub.times == [0, 0, 0]


async def test_a_call_whose_deadline_is_before_the_gate_opens_ends_at_once_with_the_time(
    autojump_clock: MockClock,
) -> None:
    api, stub = stub_api(answered(0, "50s"), ok(), timeout_ms=30_000)
    await ask(api)
    with pytest.raises(RateLimited, match="used up for 50 s") as caught:
        await ask(api)
    assert (trio.current_time() - stub.sent[0].at, caught.value.maybe_paid) == (0, False)


async def test_a_time_limit_that_ends_in_the_line_names_the_rate_limit(autojump_clock: MockClock) -> None:
    api, stub = stub_api(answered(0, "1s"), after(60, ok()), timeout_ms=10_000)
    await ask(api)
    messages: list[str] = []

    async def one() -> None:
        with pytest.raises(DeadlineExceeded) as caught:
            await ask(api)
        messages.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    assert [int(at) for at in stub.times] == [0, 1, 3, 5, 7, 9]
    assert sum("waiting for the API's rate limit for gpt-5.2" in message for message in messages) == 3


async def test_tokens_close_the_gate_as_requests_do_and_each_model_has_its_own(autojump_clock: MockClock) -> None:
    empty = Reply(200, {**limits(50, "10s"), **limits(0, "20s", 30_000, "tokens")}, ok().pieces)
    api, stub = stub_api(empty, ok())
    await ask(api)
    await ask(api, model="gpt-5.4-mini")
    await ask(api)
    assert [int(at) for at in stub.times] == [0, 0, 20]


@pytest.mark.parametrize("headers", [
    {}, limits("none", "soon"), limits("", ""), limits("-1", "1s"), limits(10**40, "1s"), limits(0, "1h"), limits(5, "10s"),
    {"x-ratelimit-remaining-requests": "0"}, limits(60, "999999999d", "x"),
])  # fmt: skip
async def test_headers_that_name_no_time_to_wait_hold_nobody_up(
    headers: dict[str, str], autojump_clock: MockClock
) -> None:
    api, stub = stub_api(Reply(200, headers, ok().pieces))
    for _ in range(30):
        await ask(api)
    assert stub.times == [0] * 30


class Limited:
    """An API that takes `MOST` requests in a minute: each is counted after a while, and replies take as long.

    What was taken comes back little by little, or, with `at_once`, all of it a minute after the first request.
    """

    MOST = 60

    def __init__(self, latency: float, *, at_once: bool) -> None:
        self.refused = 0
        self._latency, self._at_once = latency, at_once
        self._draw = random.Random(latency)
        self._taken, self._since = 0.0, -math.inf

    async def __call__(self) -> Reply:
        await trio.sleep(self._latency * self._draw.random())
        fits, headers = self._count(trio.current_time())
        await trio.sleep(self._latency * self._draw.random())
        return Reply(200, headers, ok().pieces) if fits else Reply(429, headers, refused(429).pieces)

    def _count(self, now: float) -> tuple[bool, dict[str, str]]:
        if not self._at_once:
            self._taken, self._since = max(0.0, self._taken - (now - self._since) * self.MOST / 60), now
        elif now >= self._since + 60:
            self._taken, self._since = 0.0, now
        fits = self._taken + 1 <= self.MOST + 1e-9
        self._taken += fits
        self.refused += not fits
        back = self._since + 60 - now if self._at_once else self._taken * 60 / self.MOST
        return fits, limits(int(self.MOST - self._taken + 1e-9), f"{back * 1000:.0f}ms", self.MOST)


@pytest.mark.parametrize("latency", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("at_once", [False, True], ids=["bucket", "window"])
async def test_of_a_burst_above_the_limit_all_are_answered_and_only_the_first_wave_is_refused(
    latency: float, at_once: bool, autojump_clock: MockClock
) -> None:
    limit = Limited(latency, at_once=at_once)
    api, stub = stub_api(limit, timeout_ms=900_000)
    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(ask, api)
    assert limit.refused <= 140
    assert len(stub.sent) == 200 + limit.refused
    assert max(stub.times) < 190 + 10 * latency


async def test_the_head_of_a_reply_opens_the_gate_while_its_body_is_still_to_come(autojump_clock: MockClock) -> None:
    gate = Gate()
    await gate.enter(1, math.inf, None)
    gate.read(1, 200, limits(0, "5s"))
    await gate.enter(2, math.inf, None)
    opened = trio.current_time()
    async with trio.open_nursery() as nursery:
        for ticket in (3, 4, 5):
            nursery.start_soon(gate.enter, ticket, math.inf, None)
        await wait_all_tasks_blocked()
        gate.read(2, 200, {})
    assert trio.current_time() == opened


async def test_a_request_that_leaves_without_a_reply_opens_the_gate_for_the_next_alone(
    autojump_clock: MockClock,
) -> None:
    gate = Gate()
    await gate.enter(1, math.inf, None)
    gate.close(1, 5)
    began = trio.current_time()
    times: list[float] = []

    async def lost(ticket: int) -> None:
        await gate.enter(ticket, math.inf, None)
        times.append(trio.current_time() - began)
        await trio.sleep(1)
        gate.leave(ticket)

    async with trio.open_nursery() as nursery:
        for ticket in (2, 3, 4):
            nursery.start_soon(lost, ticket)
    assert times == [5, 6, 7]


async def test_a_refusal_that_comes_late_does_not_open_the_gate_earlier(autojump_clock: MockClock) -> None:
    gate = Gate()
    for ticket in (1, 2):
        await gate.enter(ticket, math.inf, None)
    gate.close(1, 10)
    gate.close(2, 3)
    began = trio.current_time()
    await gate.enter(3, math.inf, None)
    assert trio.current_time() - began == 10
