"""Queries in, lists of pages out, without MCP: profile, retries, time, and what goes to the log."""

import json
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.asking import Asker, Watcher, open_answers
from responses_mcp.errors import (
    BadArgument,
    ConfigError,
    ConnectionFailed,
)
from responses_mcp.settings.model import (
    LocaleSettings,
    OpenAISettings,
    Profile,
    SearchDefaults,
    SearchSettings,
    Settings,
)
from responses_mcp.testing import Json, as_stream, open_fake_api
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.http.network import gone
from tests.responses_api.response.search_bodies import PEP, found
from tests.responses_api.stub import KEY, Play, Reply, StubConnections, ok, stub_api

TODAY = "2026-11-22"
NO_TLS = ConnectionFailed("Not trusted.")
PAGES = found([{"title": "PEP 745", "url": PEP, "snippet": "s"}], sources=[PEP])


def searching(
    *script: Play, settings: Settings | None = None, timeout_ms: int = 300_000
) -> tuple[Asker, StubConnections]:
    api, stub = stub_api(*(script or [ok(PAGES)]), timeout_ms=timeout_ms)
    return Asker(settings or Settings(), api=api, today=lambda: TODAY), stub


def sent(stub: StubConnections) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(stub.sent[-1].body)
    return body


async def test_a_query_gets_the_pages_that_were_found() -> None:
    search, stub = searching()
    results = await search.search(" Python 3.14 ", limit=5, language="ja", timeframe="past_week")
    assert [(result.title, result.url) for result in results.results] == [("PEP 745", PEP)]
    assert results.total_count == 1
    assert sent(stub)["input"] == "Python 3.14"
    assert "at most 5 pages" in sent(stub)["instructions"]
    assert "the language ja" in sent(stub)["instructions"]
    assert "from 2026-11-15 to 2026-11-22" in sent(stub)["instructions"]


async def test_the_day_is_that_of_the_time_zone_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.asking.today_in", {"UTC": TODAY}.__getitem__)
    api, stub = stub_api(ok(PAGES))
    await Asker(Settings(locale=LocaleSettings(time_zone="UTC")), api=api).search("q", timeframe="past_week")
    assert f"Today is {TODAY} (UTC)." in sent(stub)["instructions"]


async def test_open_search_asks_a_server_and_closes_its_connections() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(PAGES)) as fake:
            settings = Settings(openai=OpenAISettings(base_url=fake.base_url))
            async with open_answers(settings) as search:
                assert (await search.search("q")).total_count == 1
            await gone(fake)


async def test_who_watches_is_told_the_phases_and_nothing_else_changes() -> None:
    phases: list[str] = []
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(PAGES)) as fake:
            async with open_answers(Settings(openai=OpenAISettings(base_url=fake.base_url))) as search:
                results = await search.search("canary", watcher=Watcher(phases.append))
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


BOUNDS = ("query", "limit", "language", "timeframe")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"limit": 51}, "limit is 51; it must be a whole number from 1 to 50."),
        *(({name: 10**5000}, f"{name} is a number of too many digits; it must be ") for name in BOUNDS),
        ({"timeframe": "\ud800"}, 'timeframe is "\ufffd"; it must be one of'),
        ({"watcher": Watcher(3)}, "on_phase is not a plain function"),  # type: ignore[arg-type]
    ],
)
async def test_wrong_arguments_are_refused_before_anything_is_sent(asked: dict[str, Any], told: str) -> None:
    search, stub = searching()
    with pytest.raises(BadArgument) as caught:
        await search.search(**{"query": "q", **asked})
    assert str(caught.value).startswith(told)
    assert stub.sent == []


# Retries


async def test_an_api_that_takes_no_tool_choice_is_asked_without_it() -> None:
    refusal = {"error": {"message": "Unsupported parameter.", "type": None, "param": "tool_choice", "code": None}}
    search, stub = searching(Reply(400, {}, [json.dumps(refusal).encode()]), ok(PAGES))
    assert (await search.search("q")).total_count == 1
    assert "tool_choice" not in sent(stub)
    assert sent(stub)["tools"] == [{"type": "web_search"}]


# Cancelling


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
