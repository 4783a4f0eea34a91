"""Queries in, lists of pages out, without MCP: profile, retries, time, and what goes to the log."""

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.errors import (
    AuthenticationFailed,
    BadArgument,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.settings.model import OpenAISettings, Profile, SearchDefaults, SearchSettings, Settings
from responses_mcp.testing import Json, Sse, Truncated, as_stream, bodies, open_fake_api
from responses_mcp.websearch import WebSearch, open_search
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.network import gone
from tests.responses_api.search_bodies import PEP, found
from tests.responses_api.stub import KEY, Play, Reply, StubConnections, ok, refused, stub_api

TODAY = "2026-11-22"
NO_TLS = ConnectionFailed("Not trusted.")
PAGES = found([{"title": "PEP 745", "url": PEP, "snippet": "s"}], sources=[PEP])


async def lost() -> Reply:
    await trio.lowlevel.checkpoint()
    raise ConnectionFailed("Lost.", maybe_paid=True)


async def never_sent() -> Reply:
    await trio.lowlevel.checkpoint()
    raise ConnectionFailed("No route.", retryable=True)


def searching(
    *script: Play, settings: Settings | None = None, timeout_ms: int = 300_000
) -> tuple[WebSearch, StubConnections]:
    api, stub = stub_api(*(script or [ok(PAGES)]), timeout_ms=timeout_ms)
    return WebSearch(settings or Settings(), api=api, today=lambda: TODAY), stub


def sent(stub: StubConnections) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(stub.sent[-1].body)
    return body


def tries(attempts: int = 3, timeout_ms: int = 30_000) -> Settings:
    return Settings(search=SearchSettings(max_attempts=attempts, timeout_ms=timeout_ms))


async def test_a_query_gets_the_pages_that_were_found() -> None:
    search, stub = searching()
    results = await search.search(" Python 3.14 ", limit=5, language="ja", timeframe="past_week")
    assert [(result.title, result.url) for result in results.results] == [("PEP 745", PEP)]
    assert results.total_count == 1
    assert sent(stub)["input"] == "Python 3.14"
    assert "at most 5 pages" in sent(stub)["instructions"]
    assert "the language ja" in sent(stub)["instructions"]
    assert "from 2026-11-15 to 2026-11-22" in sent(stub)["instructions"]


async def test_open_search_asks_a_server_and_closes_its_connections() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(PAGES)) as fake:
            settings = Settings(openai=OpenAISettings(base_url=fake.base_url))
            async with open_search(settings) as search:
                assert (await search.search("q")).total_count == 1
            await gone(fake)


async def test_who_watches_is_told_the_phases_and_nothing_else_changes() -> None:
    phases: list[str] = []
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(PAGES)) as fake:
            async with open_search(Settings(openai=OpenAISettings(base_url=fake.base_url))) as search:
                results = await search.search("canary", on_phase=phases.append)
            assert fake.requests[0].json["stream"] is True
    assert results.total_count == 1
    assert phases == ["asking gpt-5.2", "searching", "searched: q", "writing"]


# Profile and configuration


@pytest.mark.parametrize(
    ("profiles", "asked"),
    [
        ({"answer": Profile(model="gpt-5.4", reasoning_effort="high", verbosity="high")}, ("gpt-5.4", "low", "high")),
        (
            {"answer": Profile(), "search": Profile(model="gpt-5.5", reasoning_effort="medium")},
            ("gpt-5.5", "medium", "medium"),
        ),
        ({"search": Profile(model="gpt-5.5")}, ("gpt-5.5", "medium", "medium")),
    ],
)
async def test_the_profile_is_search_or_else_answer_with_low_effort(
    profiles: dict[str, Profile], asked: tuple[str, ...]
) -> None:
    search, stub = searching(settings=Settings(model_profiles=MappingProxyType(profiles)))
    await search.search("q")
    body = sent(stub)
    assert (body["model"], body["reasoning"]["effort"], body["text"]["verbosity"]) == asked


async def test_the_domains_of_the_settings_hold_here_too() -> None:
    defaults = SearchDefaults(domains=("a.jp",))
    search, stub = searching(settings=Settings(search=SearchSettings(defaults=defaults, strict_domains=True)))
    await search.search("q")
    assert sent(stub)["tools"][0]["filters"] == {"allowed_domains": ["a.jp"]}


@pytest.mark.parametrize(
    "settings", [Settings(problems=("a is wrong; mend a.",)), Settings(model_profiles=MappingProxyType({}))]
)
async def test_a_wrong_configuration_fails_the_call_before_anything_is_sent(settings: Settings) -> None:
    search, stub = searching(settings=settings)
    with pytest.raises(ConfigError):
        await search.search("q")
    assert stub.sent == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": " "},
        {"query": "q", "limit": 51},
        {"query": "q", "language": "日本語"},
        {"query": "q", "timeframe": "x"},
    ],
)
async def test_wrong_arguments_are_refused_before_anything_is_sent(arguments: dict[str, Any]) -> None:
    search, stub = searching()
    with pytest.raises(BadArgument):
        await search.search(**arguments)
    assert stub.sent == []


# Retries


@pytest.mark.parametrize(
    "again", [refused(429), never_sent, lost, refused(408), refused(504), ok(bodies.rate_limited())]
)
@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
async def test_rate_limits_lost_connections_and_time_outs_have_so_many_tries_in_all(
    autojump_clock: MockClock, again: Any, attempts: int
) -> None:
    search, stub = searching(again, settings=tries(attempts))
    with pytest.raises(UpstreamError) as caught:
        await search.search("q")
    assert len(stub.sent) == attempts
    assert ("requests were made" in str(caught.value)) is (attempts > 1)
    assert "not repeated" not in str(caught.value)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (refused(400), RequestRefused),
        (refused(401), AuthenticationFailed),
        (refused(403), RequestRefused),
        (refused(404), RequestRefused),
        (refused(409), ServiceFailed),
        (refused(429, "insufficient_quota"), QuotaExhausted),
        (refused(429, x_should_retry="false"), RateLimited),
        (refused(500), ServiceFailed),
        (refused(503), ServiceFailed),
        (ok(bodies.failed()), ServiceFailed),
        (ok(bodies.failed("invalid_prompt", "No.")), RequestRefused),
        (Reply(200, {}, [b"<html>"]), UnusableReply),
        (NO_TLS, ConnectionFailed),
    ],
)
async def test_other_failures_have_one(autojump_clock: MockClock, reply: Any, error: type[UpstreamError]) -> None:
    search, stub = searching(reply)
    with pytest.raises(UpstreamError) as caught:
        await search.search("q")
    assert type(caught.value) is error
    assert len(stub.sent) == 1


@pytest.mark.parametrize("again", [refused(429), never_sent, lost])
async def test_the_waits_are_1_2_and_4_seconds(autojump_clock: MockClock, again: Any) -> None:
    search, stub = searching(again, settings=tries(4))
    with pytest.raises(UpstreamError):
        await search.search("q")
    assert stub.times == [0, 1, 3, 7]


async def test_the_wait_that_the_api_asks_for_is_kept(autojump_clock: MockClock) -> None:
    search, stub = searching(refused(429, retry_after="7"), refused(429, retry_after_ms="250"), ok(PAGES))
    assert (await search.search("q")).total_count == 1
    assert stub.times == [0, 7, 7.25]


@pytest.mark.parametrize("wait", ["61", "86400"])
async def test_a_wait_above_a_minute_ends_the_call_at_once(autojump_clock: MockClock, wait: str) -> None:
    search, stub = searching(refused(429, retry_after=wait))
    with pytest.raises(RateLimited) as caught:
        await search.search("q")
    assert len(stub.sent) == 1
    assert caught.value.retry_after == int(wait)


async def test_a_try_that_takes_too_long_is_given_up_and_repeated(autojump_clock: MockClock) -> None:
    search, stub = searching(trio.sleep_forever, trio.sleep_forever, ok(PAGES))
    assert (await search.search("q")).total_count == 1
    assert stub.times == [0, 31, 63]


async def test_when_every_try_takes_too_long_the_error_names_the_setting(autojump_clock: MockClock) -> None:
    search, stub = searching(trio.sleep_forever, settings=tries(2, 1_500))
    began = trio.current_time()
    with pytest.raises(DeadlineExceeded) as caught:
        await search.search("q")
    assert trio.current_time() - began == 4
    assert len(stub.sent) == 2
    assert str(caught.value) == (
        "No answer within 1.5 s; raise search.timeout_ms (SEARCH_TIMEOUT_MS), or lower reasoning_effort in the profile. "
        "(2 requests were made.)"
    )


@pytest.mark.parametrize(("timeout_ms", "requests"), [(20_000, 1), (45_000, 2)])
async def test_the_limit_of_a_whole_call_holds_over_all_tries(
    autojump_clock: MockClock, timeout_ms: int, requests: int
) -> None:
    search, stub = searching(trio.sleep_forever, timeout_ms=timeout_ms)
    began = trio.current_time()
    with pytest.raises(DeadlineExceeded, match=r"request\.timeout_ms"):
        await search.search("q")
    assert trio.current_time() - began == timeout_ms / 1000
    assert len(stub.sent) == requests


async def test_who_watches_is_told_of_every_retry(autojump_clock: MockClock) -> None:
    phases: list[str] = []
    search, _ = searching(
        refused(429, retry_after="9"), lost, never_sent, trio.sleep_forever, ok(PAGES), settings=tries(5)
    )
    await search.search("q", on_phase=phases.append)
    assert phases == [
        "asking gpt-5.2",
        "rate limited, retry in 9 s (1/4)",
        "connection lost, retry in 2 s (2/4)",
        "not connected, retry in 4 s (3/4)",
        "no answer in time, retry in 8 s (4/4)",
    ]


async def test_a_real_connection_that_breaks_amid_the_reply_is_tried_again() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Truncated(), as_stream_cut(PAGES), Json(PAGES)) as fake:
            async with open_search(Settings(openai=OpenAISettings(base_url=fake.base_url))) as search:
                search._policy = replace(search._policy, wait=lambda *_: 0.0)
                assert (await search.search("q", on_phase=lambda _: None)).total_count == 1
            assert len(fake.requests) == 3


def as_stream_cut(body: dict[str, Any]) -> Sse:
    return replace(Sse(as_stream(body).events[:-1]), ending="cut")


async def test_an_api_that_takes_no_tool_choice_is_asked_without_it() -> None:
    refusal = {"error": {"message": "Unsupported parameter.", "type": None, "param": "tool_choice", "code": None}}
    search, stub = searching(Reply(400, {}, [json.dumps(refusal).encode()]), ok(PAGES))
    assert (await search.search("q")).total_count == 1
    assert "tool_choice" not in sent(stub)
    assert sent(stub)["tools"] == [{"type": "web_search"}]


# Cancelling


@pytest.mark.parametrize(("after", "requests"), [(0.5, 1), (1.0, 1), (1.5, 2), (3.0, 2)])
async def test_a_cancel_during_or_at_the_end_of_a_wait_costs_no_further_request(
    autojump_clock: MockClock, after: float, requests: int
) -> None:
    search, stub = searching(refused(429))
    with trio.move_on_after(after) as scope:
        await search.search("q")
    assert scope.cancelled_caught
    assert len(stub.sent) == requests


async def test_a_cancel_at_the_moment_of_a_time_out_is_a_cancel(autojump_clock: MockClock) -> None:
    search, stub = searching(trio.sleep_forever, settings=tries(3, 1_000))
    with trio.move_on_after(1) as scope:
        await search.search("q")
    assert scope.cancelled_caught
    assert len(stub.sent) == 1


async def test_answers_keep_their_own_policy() -> None:
    api, stub = stub_api(lost)
    with pytest.raises(ConnectionFailed, match=r"^Lost\. It was not repeated, as it may have been paid for\.$"):
        await api.create({}, dict)
    assert len(stub.sent) == 1


# The log


async def test_the_log_counts_the_links_that_were_dropped_and_tells_neither_query_nor_pages(
    capfd: pytest.CaptureFixture[str],
) -> None:
    invented = {"title": "canary", "url": "https://canary.example/", "snippet": "canary"}
    search, _ = searching(ok(found([invented, {"url": PEP}], sources=[PEP])))
    with configured():
        await search.search("canary", limit=3, language="ja", timeframe="recent")
    err = capfd.readouterr().err
    lines = [line.partition(" DEBUG ")[2] for line in err.splitlines()]
    assert [line for line in lines if line.startswith("search:")] == [
        "search: model=gpt-5.2 limit=3 language=ja timeframe=recent",
        "search: results=1 total=1 dropped=1",
    ]
    assert "canary" not in err
    assert KEY not in err
