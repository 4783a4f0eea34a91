"""Calls under the API's rate limit: they wait in order instead of being refused, and nobody waits for nothing."""

import random
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.rate_limit import RateLimit, duration
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


@pytest.mark.parametrize("latency", [0.0, 0.3, 3.0])
async def test_two_hundred_calls_against_sixty_a_minute_are_each_answered_once_and_none_is_refused(
    latency: float, autojump_clock: MockClock
) -> None:
    limit, draw = RequestLimit(60), random.Random(latency)

    async def reply() -> Reply:
        fits, headers = limit.take(trio.current_time())
        await trio.sleep(latency * draw.random())
        return (
            Reply(200, headers, ok().pieces)
            if fits
            else refused(429, **{n.replace("-", "_"): v for n, v in headers.items()})
        )

    api, stub = stub_api(reply, timeout_ms=600_000)
    answered: list[float] = []

    async def one() -> None:
        await ask(api)
        answered.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(one)
    assert (len(answered), len(stub.sent), limit.refused) == (200, 200, 0)
    assert max(stub.times) < 60 * 4 + 10


async def test_calls_go_in_the_order_in_which_they_came_and_are_told_that_they_wait(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(0, "30s"), ok().pieces), Reply(200, told(50, "10s"), ok().pieces))
    phases: list[str] = []
    await ask(api)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(partial(ask, api, phases.append, input=str(number)))
            await trio.testing.wait_all_tasks_blocked()
    assert [b'"' + str(n).encode() + b'"' in sent.body for n, sent in enumerate(stub.sent[1:])] == [True] * 3
    assert stub.times[1] == 30
    assert phases.count("waiting for the API's rate limit, 30 s or more") == 3


async def test_a_waiting_call_can_be_cancelled_and_the_next_one_gets_its_turn(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(0, "30s"), ok().pieces), Reply(200, told(9, "1s"), ok().pieces))
    await ask(api)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(5) as first:
            nursery.start_soon(ask, api)
            await ask(api, input="never")
    assert first.cancelled_caught
    assert stub.times == [0, 30]
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
    assert stub.times[-1] == 20


async def test_a_request_above_the_whole_limit_is_sent_alone(autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, told(10, "5s", 1_000, "tokens"), ok().pieces))
    await ask(api)
    await ask(api, input="x" * 40_000)
    assert stub.times == [0, 5]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        told("none", "soon"),
        told("", ""),
        told("-1", "1s"),
        told(10**40, "1s"),
        {"x-ratelimit-remaining-requests": "0"},
        told(0, "0s"),
        told(60, "999999999d", "x"),
    ],
)
async def test_headers_that_tell_nothing_hold_nobody_up(headers: dict[str, str], autojump_clock: MockClock) -> None:
    api, stub = stub_api(Reply(200, headers, ok().pieces))
    for _ in range(30):
        await ask(api)
    assert stub.times == [0] * 30


async def test_the_first_calls_of_a_burst_find_out_and_an_api_that_says_nothing_delays_the_others_two_seconds(
    autojump_clock: MockClock,
) -> None:
    async def never() -> Reply:
        await trio.sleep_forever()
        raise AssertionError

    api, stub = stub_api(never)
    with trio.move_on_after(10):
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(ask, api)
    assert (stub.times.count(0), stub.times.count(2)) == (8, 42)
    with trio.move_on_after(1):
        await ask(api)
    assert stub.times[-1] == 10


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
    assert stub.times == [0, 0, 0, 30]


def test_what_is_left_is_never_taken_for_more_than_it_is() -> None:
    """Requests are sent, counted and told of in any order; nothing is let through that the API would refuse."""
    for seed in range(300):
        draw, limit, most = random.Random(seed), RateLimit(), 20
        window, counted, now = 0.0, 0, 0.0
        begun = False
        on_way: list[Any] = []
        replies: list[Any] = []
        for _ in range(200):
            now += draw.random() * 0.2
            act = draw.choice(("send", "count", "reply"))
            if act == "send" and limit.wait(0, now) <= 0 and (begun or not on_way):
                on_way.append(limit.send(0, now))
            elif act == "count" and on_way:
                if now >= window + 10:
                    window, counted = now, 0
                counted += 1
                assert counted <= most, seed
                request = on_way.pop(draw.randrange(len(on_way)))
                replies.append((request, told(most - counted, f"{window + 10 - now:.3f}s", most)))
            elif act == "reply" and replies:
                request, headers = replies.pop(draw.randrange(len(replies)))
                limit.read(request, headers, now)
                limit.end()
                begun = True


async def test_the_fake_api_keeps_a_limit_and_a_burst_at_it_has_no_refusal_but_answers_all() -> None:
    limit = RequestLimit(30, seconds=0.5)
    async with open_fake_api() as fake:
        fake.default = limit
        from responses_mcp.responses_api.api import ResponsesApi
        from responses_mcp.settings.model import OpenAISettings, RequestSettings

        api = ResponsesApi(OpenAISettings(api_key="sk-x", base_url=fake.base_url), RequestSettings())
        with trio.fail_after(WAIT):
            async with trio.open_nursery() as nursery:
                for _ in range(70):
                    nursery.start_soon(ask, api)
        await api.aclose()
    assert (len(fake.requests), limit.refused) == (70, 0)
