"""When a request is repeated: how often, after which wait, and within which deadline (spec 7, docs/search.md).

- What may pass is asked again, `request.max_retries` times at most: 408, 409, 429, 5xx, a connection that never came
  about, and a Response that failed with `server_error` or `rate_limit_exceeded`.
- What cannot get better is asked once: other 4xx, redirects, an exhausted quota, a reply that is no answer, content that
  was refused, and whatever the API says not to repeat (`x-should-retry: false`).
- What may have been billed is asked once, and says so: a connection, or a stream, that broke before its end.
- Waits double from 0.5 s to 8 s, less up to a quarter. `retry-after-ms` and `retry-after` replace them where they make
  sense. A wait above a minute, or above the time left, ends the call with what the API said.
- `request.timeout_ms` holds over all requests and waits of a call. A reply that was read in time counts.
- A search has `search.max_attempts` tries of `search.timeout_ms` each and waits 1, 2, 4 s. It repeats rate limits, lost
  connections and time-outs, even if they may have been billed, and nothing else.
- Whoever watches is told of each retry before the wait.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.asking import Asker, Watcher
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
from responses_mcp.responses_api.retry import asked_wait, backoff
from responses_mcp.settings.model import SearchSettings, Settings
from responses_mcp.testing import Error, Garbage, Html, Json, Raw, Reset, Truncated, as_stream, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.http.network import bare_environment, real_api
from tests.responses_api.response.search_bodies import PEP, found
from tests.responses_api.stub import Play, Reply, StubConnections, ok, refused, stub_api
from tests.testing import samples

__all__ = ["bare_environment"]
pytestmark = [
    pytest.mark.usefixtures("bare_environment"),
    pytest.mark.rule("P3", "spec 7"),
    pytest.mark.clock("virtual"),
]
NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)
PAGES = found([{"title": "PEP 745", "url": PEP, "snippet": "s"}], sources=[PEP])


async def never_sent() -> Reply:
    await trio.lowlevel.checkpoint()
    raise ConnectionFailed("No route.", retryable=True)


async def lost() -> Reply:
    await trio.lowlevel.checkpoint()
    raise ConnectionFailed("Lost.", maybe_paid=True)


def taking(seconds: float, reply: Reply) -> Play:
    async def slow() -> Reply:
        await trio.sleep(seconds)
        return reply

    return slow


def searching(
    *script: Play, attempts: int = 3, try_ms: int = 30_000, timeout_ms: int = 300_000
) -> tuple[Asker, StubConnections]:
    api, stub = stub_api(*script, timeout_ms=timeout_ms)
    settings = Settings(search=SearchSettings(max_attempts=attempts, timeout_ms=try_ms))
    return Asker(settings, api=api), stub


# How often


@pytest.mark.parametrize("again", [never_sent, *map(refused, [408, 409, 429, 500, 502, 503, 504, 529])])
@pytest.mark.parametrize("max_retries", [0, 1, 3, 5])
async def test_what_may_pass_is_asked_again_max_retries_times(again: Any, max_retries: int) -> None:
    api, stub = stub_api(again, max_retries=max_retries)
    with pytest.raises(UpstreamError) as caught:
        await api.create({}, dict)
    assert len(stub.sent) == 1 + max_retries
    assert (f"({1 + max_retries} attempts were made.)" in str(caught.value)) is (max_retries > 0)


@pytest.mark.parametrize(("reply", "error"), [
    *((refused(status), RequestRefused) for status in (307, 400, 403, 404, 422)), (refused(401), AuthenticationFailed),
    (refused(429, "insufficient_quota"), QuotaExhausted),
    (refused(429, "insufficient_quota", retry_after="1"), QuotaExhausted),
    (refused(429, "billing_hard_limit_reached"), QuotaExhausted), (refused(503, x_should_retry="false"), ServiceFailed),
    (Reply(200, {}, [b"[]"]), UnusableReply), (Reply(200, {}, [b"<html>"]), UnusableReply),
    (ok(bodies.failed("invalid_prompt", "No.")), RequestRefused),
    (ok(bodies.failed("rate_limit_exceeded", "You exceeded your current quota.")), QuotaExhausted),
    (ok(samples.content_filter()), RequestRefused), (ok(samples.cancelled()), UnusableReply),
    (ConnectionFailed("Not trusted."), ConnectionFailed), (lost, ConnectionFailed),
])  # fmt: skip
async def test_what_cannot_get_better_or_may_have_been_billed_is_asked_once(
    reply: Any, error: type[UpstreamError]
) -> None:
    api, stub = stub_api(reply)
    with pytest.raises(UpstreamError) as caught:
        await api.create({}, dict)
    assert type(caught.value) is error
    assert len(stub.sent) == 1
    assert " were made" not in str(caught.value)
    paid = reply is lost or caught.value.code == "content_filter"  # which had begun to answer
    assert ("It was not repeated, as it may have been paid for." in str(caught.value)) is paid
    assert caught.value.__cause__ is None, "an error is not its own cause"


@pytest.mark.parametrize("again", [never_sent, refused(503), ok(bodies.failed()), ok(samples.rate_limited())])
async def test_an_answer_after_failures_is_the_answer(again: Any) -> None:
    api, stub = stub_api(again, again, ok({"id": "resp_3"}))
    assert (await api.create({}, dict))["id"] == "resp_3"
    assert len(stub.sent) == 3
    assert len({sent.body for sent in stub.sent}) == 1


STREAM = as_stream(bodies.searched())


@pytest.mark.clock("real")
@pytest.mark.parametrize(("reply", "error", "requests"), [
    (Error(503), ServiceFailed, 2), (Html(502), ServiceFailed, 2), (Json(bodies.failed()), ServiceFailed, 2),
    (Json({**bodies.failed(), "usage": {"total_tokens": 0}}), ServiceFailed, 2), (Error(400), RequestRefused, 1),
    (Raw(b"", 302, {"location": "https://elsewhere.example/"}), RequestRefused, 1), (Raw(b""), UnusableReply, 1),
    *((broken, ConnectionFailed, 1) for broken in (Reset(), Reset("headers"), Reset("half_body"), Garbage())),
    (Truncated(), ConnectionFailed, 1),
    *((replace(STREAM, events=STREAM.events[:kept], ending="cut"), ConnectionFailed, 1) for kept in (0, 2, -1)),
    *((replace(STREAM, events=STREAM.events[:kept]), ConnectionFailed, 1) for kept in (0, -1)),
], ids=lambda value: repr(value)[:40])  # fmt: skip
async def test_over_sockets_as_many_requests_are_made_as_a_failure_is_worth(
    reply: Any, error: type[UpstreamError], requests: int
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(reply, reply) as fake, real_api(fake.base_url, max_retries=1) as api:
            with pytest.raises(UpstreamError) as caught:
                await api.create({}, dict)
            assert (type(caught.value), len(fake.requests)) == (error, requests)
            assert caught.value.maybe_paid is (error is ConnectionFailed)
            if caught.value.status is not None:
                assert caught.value.request_id == fake.requests[-1].request_id
                assert fake.requests[-1].request_id in str(caught.value)


@pytest.mark.clock("real")
async def test_a_connection_that_is_refused_at_first_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    open_tcp_stream, refusals = trio.open_tcp_stream, [ConnectionRefusedError(111, "Connection refused")]

    async def refusing_once(*args: Any, **options: Any) -> trio.SocketStream:
        if refusals:
            raise refusals.pop()
        return await open_tcp_stream(*args, **options)

    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, real_api(fake.base_url, max_retries=1) as api:
            monkeypatch.setattr(trio, "open_tcp_stream", refusing_once)
            assert (await api.create({}, dict))["status"] == "completed"
            assert (refusals, len(fake.requests)) == ([], 1)


# When


@pytest.mark.parametrize(
    ("random", "times"), [(0, [0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5]), (0.999_999_9, [0, 0.375, 1.125, 2.625])]
)
async def test_waits_double_from_half_a_second_less_up_to_a_quarter(random: float, times: list[float]) -> None:
    api, stub = stub_api(refused(503), max_retries=len(times) - 1, random=random)
    with pytest.raises(ServiceFailed):
        await api.create({}, dict)
    assert stub.times == pytest.approx(times, abs=1e-4)


@given(st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_backoff_stays_within_its_bounds(retries_done: int, random: float) -> None:
    assert 0.375 <= backoff(retries_done, random) <= 8


@pytest.mark.parametrize(("headers", "gap"), [
    ({"retry_after": "7"}, 7), ({"retry_after": "60"}, 60), ({"retry_after_ms": "200", "retry_after": "9"}, 0.2),
    ({"retry_after": "soon"}, 0.5), ({"retry_after": "0"}, 0.5),
    ({"retry_after": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0.5),
])  # fmt: skip
async def test_the_wait_that_the_api_asks_for_is_kept_and_nonsense_is_backed_off_from(
    headers: dict[str, str], gap: float
) -> None:
    api, stub = stub_api(refused(429, **headers), max_retries=1)
    with pytest.raises(RateLimited):
        await api.create({}, dict)
    assert stub.times == [0, gap]


@pytest.mark.parametrize(("headers", "seconds"), [
    ({"retry-after": " 7 "}, 7), ({"retry-after": "0.25"}, 0.25), ({"retry-after": ".5"}, 0.5),
    ({"retry-after": "9" * 400}, 86_400), ({"retry-after-ms": "0.5"}, 0.0005), ({"retry-after": "5 s"}, 5),
    ({"retry-after-ms": "soon", "retry-after": "9"}, 9), ({"retry-after-ms": "0", "retry-after": "9"}, 9),
    ({"retry-after": "1795348830"}, 30), ({"retry-after": "1795348830000"}, 30), ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30), ({"retry-after": "Sunday, 22-Nov-26 12:00:30 GMT"}, 30),
    ({"retry-after": "Sun, 22 Nov 2026 21:00:30 +0900"}, 30), ({"retry-after": "Sun, 22 Nov 2026 12:00:30 -0000"}, 30),
])  # fmt: skip
def test_a_wait_that_the_api_asks_for_is_read_in_every_form(
    headers: dict[str, str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("responses_mcp.responses_api.retry.time.time", NOW.timestamp)
    assert asked_wait(headers) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    ["", "soon", "nan", "inf", "-inf", "-5", "0", "0.0", "1_000", "0x10", "1e3", "５", "--1", "1000000000000",
     "Sun, 22 Nov 2026 11:59:00 GMT", "Sun, 99 Nov 2026 12:00:30 GMT", "22 Nov", ",,,,", "Mon, 1 Jan 0000 00:00:00 GMT"],
)  # fmt: skip
def test_a_wait_that_makes_no_sense_or_lies_in_the_past_is_none(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.responses_api.retry.time.time", NOW.timestamp)
    assert asked_wait({"retry-after": value}) is None
    assert asked_wait({"retry-after-ms": value}) is None


DATES = r"(Mon, )?[0-9]{1,3} (Jan|Feb|Foo) [0-9]{1,5} [0-9]{1,3}:[0-9]{1,3}(:[0-9]{1,3})? [A-Z+-]?[0-9]{0,6}"


@given(st.text() | st.from_regex(DATES), st.text())
def test_no_header_value_raises_or_gives_a_wait_that_is_no_wait(seconds: str, milliseconds: str) -> None:
    wait = asked_wait({"retry-after": seconds, "retry-after-ms": milliseconds})
    assert wait is None or wait > 0


@pytest.mark.parametrize("wait", ["61", "86400", "9" * 400])
async def test_a_wait_above_a_minute_ends_the_call_at_once_and_is_told(wait: str) -> None:
    api, stub = stub_api(refused(429, retry_after=wait))
    search, stub_of_search = searching(refused(429, retry_after=wait))
    began = trio.current_time()
    for call in (lambda: api.create({}, dict), lambda: search.search("q")):
        with pytest.raises(RateLimited, match=r"It asks to wait (61 s|a day or longer)\.") as caught:
            await call()
        assert caught.value.retry_after == min(float(wait), 86_400)
    assert (len(stub.sent), len(stub_of_search.sent)) == (1, 1)
    assert trio.current_time() == began


@pytest.mark.parametrize(("reply", "timeout_ms", "words", "times"), [
    (refused(429, retry_after="20"), 30_000, r"It asks to wait 20 s\. \(2 attempts were made\.\)", [0, 20]),
    (refused(503), 1_000, "Said so", [0, 0.5]),
])  # fmt: skip
async def test_a_wait_above_the_time_left_ends_the_call_at_once_with_what_the_api_said(
    reply: Reply, timeout_ms: int, words: str, times: list[float]
) -> None:
    api, stub = stub_api(reply, timeout_ms=timeout_ms)
    began = trio.current_time()
    with pytest.raises(UpstreamError, match=words):
        await api.create({}, dict)
    assert stub.times == times
    assert trio.current_time() - began == times[-1]


# The deadline


@pytest.mark.parametrize(
    ("play", "timeout_ms", "times"), [(trio.sleep_forever, 1_500, [0]), (taking(2, refused(503)), 6_000, [0, 2.5, 5.5])]
)
async def test_the_deadline_covers_requests_and_waits_together_and_is_not_retried(
    play: Play, timeout_ms: int, times: list[float]
) -> None:
    api, stub = stub_api(play, timeout_ms=timeout_ms)
    began = trio.current_time()
    words = rf"within {timeout_ms / 1000:g} s; raise request\.timeout_ms \(OPENAI_API_TIMEOUT\)"
    with pytest.raises(DeadlineExceeded, match=words) as caught:
        await api.create({}, dict)
    assert not caught.value.maybe_paid, "to ask again would run into the same deadline"
    assert trio.current_time() - began == timeout_ms / 1000
    assert stub.times == times


async def test_an_answer_just_before_the_deadline_counts() -> None:
    api, _ = stub_api(taking(5.999, ok()), timeout_ms=6_000)
    assert (await api.create({}, dict))["status"] == "completed"


# Searches


USED_AND_LIMITED = {**samples.rate_limited(), "usage": bodies.searched()["usage"]}


@pytest.mark.parametrize("again", [
    *(refused(429), never_sent, lost, refused(408), refused(504)),
    *(ok(samples.rate_limited()), ok(USED_AND_LIMITED), trio.sleep_forever),
])  # fmt: skip
@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
async def test_a_search_repeats_rate_limits_lost_connections_and_time_outs(again: Any, attempts: int) -> None:
    search, stub = searching(again, attempts=attempts)
    with pytest.raises(UpstreamError) as caught:
        await search.search("q")
    a_try = 30 if again is trio.sleep_forever else 0
    starts = [2**number - 1 + number * a_try for number in range(attempts)]
    assert stub.times == starts
    assert (" were made" in str(caught.value)) is (attempts > 1)
    assert "not repeated" not in str(caught.value)


@pytest.mark.parametrize(("reply", "error"), [
    *((refused(status), RequestRefused) for status in (400, 403, 404)), (refused(401), AuthenticationFailed),
    *((refused(status), ServiceFailed) for status in (409, 500, 503)),
    (refused(429, "insufficient_quota"), QuotaExhausted), (refused(429, x_should_retry="false"), RateLimited),
    (ok(bodies.failed()), ServiceFailed),
    (ok(bodies.failed("invalid_prompt", "No.")), RequestRefused),
    (ok({**bodies.failed(), "usage": bodies.searched()["usage"]}), ServiceFailed),
    (ok({**bodies.failed("invalid_prompt", "No."), "usage": {"total_tokens": 9.0}}), RequestRefused),
    (Reply(200, {}, [b"<html>"]), UnusableReply), (ConnectionFailed("Not trusted."), ConnectionFailed),
])  # fmt: skip
async def test_a_search_repeats_nothing_else(reply: Any, error: type[UpstreamError]) -> None:
    search, stub = searching(reply)
    with pytest.raises(UpstreamError) as caught:
        await search.search("q")
    assert type(caught.value) is error
    assert len(stub.sent) == 1


async def test_a_search_keeps_the_wait_that_the_api_asks_for() -> None:
    search, stub = searching(refused(429, retry_after="7"), refused(429, retry_after_ms="250"), ok(PAGES))
    assert (await search.search("q")).total_count == 1
    assert stub.times == [0, 7, 7.25]


async def test_when_every_try_takes_too_long_the_error_names_the_setting() -> None:
    search, _ = searching(trio.sleep_forever, attempts=2, try_ms=1_500)
    with pytest.raises(DeadlineExceeded) as caught:
        await search.search("q")
    assert str(caught.value) == (
        "No answer within 1.5 s; raise search.timeout_ms (SEARCH_TIMEOUT_MS, in milliseconds), or lower reasoning_effort in the "
        "profile. (2 attempts were made.)"
    )


@pytest.mark.parametrize(("timeout_ms", "requests"), [(20_000, 1), (45_000, 2)])
async def test_the_deadline_of_a_call_holds_over_all_tries_of_a_search(timeout_ms: int, requests: int) -> None:
    search, stub = searching(trio.sleep_forever, timeout_ms=timeout_ms)
    began = trio.current_time()
    with pytest.raises(DeadlineExceeded, match=r"request\.timeout_ms"):
        await search.search("q")
    assert trio.current_time() - began == timeout_ms / 1000
    assert len(stub.sent) == requests


# Who watches


async def test_whoever_watches_is_told_of_every_retry_before_the_wait() -> None:
    told: list[tuple[float, str]] = []
    began = trio.current_time()

    def tell(phase: str) -> None:
        told.append((trio.current_time() - began, phase))

    script = refused(429, retry_after="9"), lost, never_sent, trio.sleep_forever, ok(PAGES)
    search, _ = searching(*script, attempts=5)
    await search.search("q", watcher=Watcher(tell))
    assert told == [
        (0, "asking gpt-5.2"),
        (0, "waiting for the API's rate limit, 9 s or more"),
        (9, "connection failed, retry in 2 s (2/4)"),
        (11, "connection failed, retry in 4 s (3/4)"),
        (45, "no answer in time, retry in 8 s (4/4)"),
    ]
