"""Calls under the API's rate limit: they wait in order instead of being refused, and nobody waits for nothing."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.errors import DeadlineExceeded, RateLimited
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.rate_limit import duration
from responses_mcp.settings.model import OpenAISettings, RequestSettings
from responses_mcp.testing import open_fake_api
from responses_mcp.testing.rate_limit import RequestLimit
from tests.processes import WAIT
from tests.responses_api.stub import Reply, ok, refused, stub_api

BODY = {"model": "gpt-5.2", "input": "Why?"}


def told(remaining: object, reset: object, limit: object = 60, of: str = "requests") -> dict[str, str]:
    named = {"remaining": remaining, "reset": reset, "limit": limit}
    return {f"x-ratelimit-{name}-{of}": str(value) for name, value in named.items()}


async def ask(api: ResponsesApi, on_phase: Any = None, **more: Any) -> dict[str, Any]:
    return await api.create({**BODY, **more}, lambda response: response, on_phase=on_phase)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("6m0s", 360),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("12", 12),
        ("0.25", 0.25),
        ("0s", 0),
        ("1d", 86_400),
        ("99999d", 86_400),
        *((text, None) for text in ("", "s", "soon", "-1s", "1e9s", "nan", "inf", "１s", "1s1h", "1 s", "9" * 5_000)),
    ],
)
def test_durations_are_read_as_the_api_writes_them_and_bounded(text: str, seconds: float | None) -> None:
    assert duration(text) == seconds


class Limited:
    """An API with a limit: requests take a while to be counted, and replies to come back."""

    def __init__(self, limit: RequestLimit, latency: float, *, tells: Callable[[dict[str, str]], Any] = dict) -> None:
        self.limit, self._latency, self._tells = limit, latency, tells
        self._draw = random.Random(latency)

    async def __call__(self) -> Reply:
        await trio.sleep(self._latency * self._draw.random())
        fits, headers = self.limit.take(trio.current_time())
        await trio.sleep(self._latency * self._draw.random())
        headers = self._tells(headers)
        if fits:
            return Reply(200, headers, ok().pieces)
        return refused(429, **{name.replace("-", "_"): value for name, value in headers.items()})


def next_one(headers: dict[str, str]) -> dict[str, str]:
    """Tell when the next request fits, and not when all do."""
    return {**headers, "x-ratelimit-reset-requests": "1s"}


@pytest.mark.parametrize("latency", [0.0, 0.3, 3.0])
@pytest.mark.parametrize(
    ("at_once", "tells"), [(False, dict), (True, dict), (False, next_one)], ids=["bucket", "window", "next one"]
)
async def test_two_hundred_calls_against_sixty_a_minute_are_each_answered_once_and_none_is_refused(
    latency: float, at_once: bool, tells: Any, autojump_clock: MockClock
) -> None:
    limit = RequestLimit(60, at_once=at_once)
    api, stub = stub_api(Limited(limit, latency, tells=tells), timeout_ms=900_000)
    answered: list[float] = []

    async def one() -> None:
        await ask(api)
        answered.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(one)
    assert (len(answered), len(stub.sent), limit.refused) == (200, 200, 0)
    if tells is dict:
        # No faster than the limit, and hardly slower.
        assert max(stub.times) < (180 if at_once else 140) * 1.15 + 8 * latency


@pytest.mark.parametrize("latency", [0.0, 0.3])
async def test_calls_that_come_one_by_one_above_the_limit_wait_for_the_next_one_and_not_for_all_of_it(
    latency: float, autojump_clock: MockClock
) -> None:
    limit = RequestLimit(60)
    api, _ = stub_api(Limited(limit, latency), timeout_ms=900_000)
    waits: list[float] = []

    async def one() -> None:
        begun = trio.current_time()
        await ask(api)
        waits.append(trio.current_time() - begun)

    async with trio.open_nursery() as nursery:
        for _ in range(300):
            nursery.start_soon(one)
            await trio.sleep(0.75)
    assert limit.refused == 0
    assert max(waits) < 300 * 0.25 * 1.2


async def test_a_call_that_others_keep_from_its_turn_until_its_deadline_is_sent_and_not_left_to_wait(
    autojump_clock: MockClock,
) -> None:
    api, stub = stub_api(Reply(200, told(0, "100s"), ok().pieces), ok(), timeout_ms=300_000)
    await ask(api)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, api)  # may wait
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(1):
            await api.begin_run(BODY, on_place=lambda _: None, on_send=trio.lowlevel.checkpoint, seconds=30)
        assert stub.times == [0, 0]
    assert len(stub.sent) == 3


async def test_calls_whose_turn_comes_too_late_are_sent_one_after_the_other_and_not_all_at_once(
    autojump_clock: MockClock,
) -> None:
    async def late() -> Reply:
        await trio.sleep(0.5)
        return refused(429, **{n.replace("-", "_"): v for n, v in told(0, "1h").items()}, retry_after="3600")

    api, stub = stub_api(Reply(200, told(0, "1h"), ok().pieces), late, timeout_ms=60_000)
    await ask(api)
    failed: list[str] = []

    async def one() -> None:
        with pytest.raises(RateLimited) as caught:
            await ask(api)
        failed.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one)
    assert stub.times == [0, *(0.5 * number for number in range(10))]
    assert len(failed) == 10


async def test_a_time_limit_that_ends_in_the_line_names_the_rate_limit(autojump_clock: MockClock) -> None:
    async def never() -> Reply:
        await trio.sleep_forever()
        raise AssertionError

    api, stub = stub_api(Reply(200, told(0, "1s"), ok().pieces), never, timeout_ms=10_000)
    await ask(api)
    failed: list[str] = []

    async def one() -> None:
        with pytest.raises(DeadlineExceeded) as caught:
            await ask(api)
        failed.append(str(caught.value))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    assert [int(at) for at in stub.times] == [0, 1, 3, 5, 7, 9]
    assert sum("waiting for the API's rate limit for gpt-5.2" in message for message in failed) == 3


async def test_calls_go_in_the_order_in_which_they_came_and_are_told_that_they_wait(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(0, "30s"), ok().pieces), Reply(200, told(50, "10s"), ok().pieces))
    phases: list[str] = []
    await ask(api)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(partial(ask, api, phases.append, input=str(number)))
            await trio.testing.wait_all_tasks_blocked()
    assert [b'"' + str(n).encode() + b'"' in sent.body for n, sent in enumerate(stub.sent[1:])] == [True] * 3
    assert 30 <= stub.times[1] < 30.1
    assert phases.count("waiting for the API's rate limit, 30 s or more") == 3


async def test_a_waiting_call_can_be_cancelled_and_the_next_one_gets_its_turn(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(0, "30s"), ok().pieces), Reply(200, told(9, "1s"), ok().pieces))
    await ask(api)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(5) as first:
            nursery.start_soon(ask, api)
            await ask(api, input="never")
    assert first.cancelled_caught
    assert [int(at) for at in stub.times] == [0, 30]
    assert not any(b"never" in sent.body for sent in stub.sent)


async def test_a_wait_beyond_the_deadline_is_not_made_because_the_api_may_think_otherwise(
    autojump_clock: MockClock,
) -> None:
    api, stub = stub_api(Reply(200, told(0, "1h"), ok().pieces), timeout_ms=60_000)
    await ask(api)
    await ask(api)
    assert stub.times == [0, 0]


async def test_tokens_are_waited_for_as_requests_are_and_models_have_limits_of_their_own(
    autojump_clock: MockClock,
) -> None:
    spent = Reply(200, {**told(50, "10s"), **told(100, "20s", 30_000, "tokens")}, ok().pieces)
    api, stub = stub_api(spent, ok())
    await ask(api)
    await ask(api, model="gpt-5.4-mini", input="x" * 4_000)
    await ask(api)
    assert stub.times == [0, 0, 0]
    await ask(api, input="x" * 4_000)
    assert 20 <= stub.times[-1] < 20.1


@pytest.mark.parametrize("more", [{"input": "x" * 40_000}, {"max_output_tokens": 5_000}])
async def test_requests_above_the_whole_limit_are_left_to_the_api_and_do_not_wait_for_each_other(
    more: dict[str, Any], autojump_clock: MockClock
) -> None:
    api, stub = stub_api(Reply(200, told(10, "5s", 1_000, "tokens"), ok().pieces))
    await ask(api)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(partial(ask, api, **more))
    assert stub.times == [0] * 4


async def test_what_a_request_may_answer_counts_as_much_as_its_text_and_not_besides(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(1_000, "5s", 2_000, "tokens"), ok().pieces))
    await ask(api)
    await ask(api, input="x" * 3_600, max_output_tokens=900)
    assert stub.times == [0, 0]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        told("none", "soon"),
        told("", ""),
        told("-1", "1s"),
        told(10**40, "1s"),
        {"x-ratelimit-remaining-requests": "0"},
        told(60, "999999999d", "x"),
    ],
)
async def test_headers_that_tell_nothing_hold_nobody_up(headers: dict[str, str], autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, headers, ok().pieces))
    for _ in range(30):
        await ask(api)
    assert stub.times == [0] * 30


async def test_the_first_calls_of_a_burst_find_out_and_an_api_that_says_nothing_lets_eight_more_through_every_two_seconds(
    autojump_clock: MockClock,
) -> None:
    async def never() -> Reply:
        await trio.sleep_forever()
        raise AssertionError

    api, stub = stub_api(never)
    with trio.move_on_after(20):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(ask, api)
    assert [stub.times.count(2 * number) for number in range(8)] == [8, 8, 8, 8, 8, 8, 2, 0]


async def test_lost_connections_give_their_place_back(autojump_clock: MockClock) -> None:
    api, stub = stub_api(
        Reply(200, told(2, "30s"), ok().pieces),
        OSError("lost"),
        OSError("lost"),
        Reply(200, told(1, "30s"), ok().pieces),
    )
    await ask(api)
    for _ in range(2):
        with pytest.raises(OSError, match="lost"):
            await ask(api)
    await ask(api)
    assert [int(at) for at in stub.times] == [0, 0, 0, 30]


@pytest.mark.parametrize("at_once", [False, True])
async def test_nothing_is_refused_whatever_the_limit_the_pace_and_the_latency_are(
    at_once: bool, autojump_clock: MockClock
) -> None:
    for seed in range(60):
        draw = random.Random(seed)
        limit = RequestLimit(draw.choice((10, 20, 100)), draw.choice((1.0, 10.0, 60.0)), at_once=at_once)
        api, stub = stub_api(Limited(limit, draw.choice((0.0, 0.05, 1.0))), timeout_ms=3_600_000)
        pace = draw.choice((0.0, 0.5, 2.0)) * limit.seconds / limit.most
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(ask, api)
                await trio.sleep(pace * draw.random())
        assert (len(stub.sent), limit.refused) == (60, 0), seed


@pytest.mark.parametrize("at_once", [False, True])
async def test_the_fake_api_keeps_a_limit_and_a_burst_at_it_has_no_refusal_but_answers_all(at_once: bool) -> None:
    limit = RequestLimit(30, seconds=0.5, at_once=at_once)
    async with open_fake_api() as fake:
        fake.default = limit
        api = ResponsesApi(OpenAISettings(api_key="sk-x", base_url=fake.base_url), RequestSettings())
        with trio.fail_after(WAIT):
            async with trio.open_nursery() as nursery:
                for _ in range(70):
                    nursery.start_soon(ask, api)
        await api.aclose()
    assert (len(fake.requests), limit.refused) == (70, 0)
