"""Questions in, answers out, without MCP: profiles, defaults, dates, and what goes to the log (spec 6, 8.1)."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.asking import Asker, Watcher, open_answers
from responses_mcp.errors import AuthenticationFailed, BadArgument, ConfigError, RequestRefused, UnusableReply
from responses_mcp.settings import time_zone
from responses_mcp.settings.model import (
    LocaleSettings,
    OpenAISettings,
    PolicySettings,
    Profile,
    SearchDefaults,
    SearchSettings,
    Settings,
)
from responses_mcp.settings.system_policy import SYSTEM_POLICY
from responses_mcp.settings.time_zone import today_in
from responses_mcp.testing import Json, as_stream, bodies, open_fake_api
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.http.network import gone
from tests.responses_api.response.search_bodies import PEP, found
from tests.responses_api.stub import KEY, Play, Reply, StubConnections, ok, refused, stub_api

TODAY = "2026-11-22"


def asking(settings: Settings | None = None, *script: Play) -> tuple[Asker, StubConnections]:
    settings = settings or Settings()
    api, stub = stub_api(*script, openai=replace(settings.openai, api_key=KEY), profiles=settings.model_profiles)
    return Asker(settings, api=api, today=lambda: TODAY), stub


def sent(stub: StubConnections) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(stub.sent[-1].body)
    return body


def profiles(**named: Profile) -> Settings:
    return Settings(model_profiles=MappingProxyType(named))


@pytest.mark.rule("P14", "spec 0", "spec 6")
async def test_a_question_is_sent_with_the_defaults_of_the_contract() -> None:
    answers, stub = asking()
    await answers.answer("HTTP 404 の意味は？")
    assert sent(stub) == {
        "model": "gpt-5.2",
        "instructions": SYSTEM_POLICY,
        "input": f"HTTP 404 の意味は？\n\n[Hints] today={TODAY} (Asia/Tokyo), recency_days=60, max_results=5",
        "tools": [{"type": "web_search"}],
        "include": ["web_search_call.action.sources"],
        "text": {"verbosity": "medium"},
        "reasoning": {"effort": "medium"},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    }


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(("asked", "hints"), [
    ({}, "recency_days=7, max_results=2, domains=a.jp b.jp"),
    ({"recency_days": 0}, "recency_days=0, max_results=2, domains=a.jp b.jp"),
    ({"max_results": 9}, "recency_days=7, max_results=9, domains=a.jp b.jp"),
    ({"domains": ["c.jp"]}, "recency_days=7, max_results=2, domains=c.jp"),
    ({"domains": []}, "recency_days=7, max_results=2"),
    ({"domains": "python.org"}, "recency_days=7, max_results=2, domains=python.org"),
    ({"domains": "c.jp, d.jp"}, "recency_days=7, max_results=2, domains=c.jp d.jp"),
    ({"domains": ("c.jp", "c.jp")}, "recency_days=7, max_results=2, domains=c.jp"),
    ({"domains": ()}, "recency_days=7, max_results=2"),
    ({"max_results": 1000, "recency_days": -3}, "recency_days=0, max_results=100, domains=a.jp b.jp"),
    ({"recency_days": "5"}, "recency_days=5, max_results=2, domains=a.jp b.jp"),
])  # fmt: skip
async def test_hints_left_out_come_from_the_settings(asked: dict[str, Any], hints: str) -> None:
    defaults = SearchDefaults(recency_days=7, max_results=2, domains=("a.jp", "b.jp"))
    answers, stub = asking(Settings(search=SearchSettings(defaults=defaults)))
    await answers.answer("q", **asked)
    assert sent(stub)["input"] == f"q\n\n[Hints] today={TODAY} (Asia/Tokyo), {hints}"
    assert sent(stub)["tools"] == [{"type": "web_search"}]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"query": b"q"}, "query is "),
        ({"query": float("nan")}, "query is NaN; it must be the question, as a text."),
        ({"query": 10**5000}, "query is a number of too many digits"),
        ({"query": " \n"}, "query is empty"),
        ({"profile": "quick"}, "profile is 'quick'; it must be one of answer, answer_detailed, answer_quick"),
        ({"profile": "x" * 1_000_000}, "profile is 'xxxx"),
        ({"profile": "search"}, "profile is 'search'"),
        ({"profile": ["answer"]}, "profile is "),
        ({"profile": 10**5000}, "profile is not a text"),
    ],
)
async def test_an_argument_that_makes_no_sense_is_refused_with_its_name_and_nothing_is_sent(
    asked: dict[str, Any], told: str
) -> None:
    answers, stub = asking()
    with pytest.raises(BadArgument) as caught:
        await answers.answer(**{"query": "q", **asked})
    assert str(caught.value).startswith(told)
    assert len(str(caught.value)) < 300
    assert stub.sent == []


@pytest.mark.parametrize(("status", "code", "message"), [
    (404, "model_not_found", "The model `gpt-5` has been deprecated, learn more here."),
    (400, "model_not_found", "The model `gpt-5` has been deprecated."),
    (400, None, "gpt-5 was shut down on 2026-10-01." + " More of it." * 40),
    (403, "model_not_found", "Project `p` does not have access to that model."),
    (410, "model_deprecated", "It has been shut down."), (410, None, "gpt-5 is gone."),
])  # fmt: skip
async def test_a_call_whose_model_has_ended_says_which_settings_to_change(
    status: int, code: str | None, message: str
) -> None:
    settings = profiles(answer=Profile(model="gpt-5"), answer_quick=Profile(model="q"), search=Profile(model="gpt-5"))
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    answers, _ = asking(settings, Reply(status, {}, [json.dumps(body).encode()]))
    with pytest.raises(RequestRefused) as caught:
        await answers.answer("q")
    told = "from model_profiles.answer.model (MODEL_ANSWER) and model_profiles.search.model (MODEL_SEARCH)."
    assert str(caught.value).endswith(told)
    assert len(str(caught.value)) <= 400


@pytest.mark.parametrize(("openai", "cure"), [
    ({"api_key": KEY}, "Put a valid key into OPENAI_API_KEY."),
    ({"api_key": KEY, "api_key_env": "MY_KEY"}, "Put a valid key into MY_KEY, which openai.api_key_env names."),
    (
        {"headers": {"x-key": KEY}, "headers_env": {"x-key": "GATEWAY_KEY"}},
        "Put a valid key into GATEWAY_KEY, which openai.headers_env names.",
    ),
    ({"base_url": "http://127.0.0.1:1/v1"}, "Put a valid key into OPENAI_API_KEY."),
])  # fmt: skip
async def test_a_refused_key_is_told_with_the_variable_that_it_comes_from(openai: dict[str, Any], cure: str) -> None:
    api, _ = stub_api(refused(401), openai=OpenAISettings(**openai))
    answers = Asker(Settings(), api=api)
    with pytest.raises(AuthenticationFailed) as caught:
        await answers.answer("q")
    assert str(caught.value).endswith(cure)


async def test_an_error_about_something_else_names_no_model() -> None:
    answers, _ = asking(Settings(), refused(400, "invalid_value"))
    with pytest.raises(RequestRefused) as caught:
        await answers.answer("q")
    assert "MODEL_ANSWER" not in str(caught.value)


async def test_strict_domains_filter_whichever_way_the_domains_came() -> None:
    settings = Settings(
        search=SearchSettings(defaults=SearchDefaults(domains=("https://a.jp/x",)), strict_domains=True)
    )
    answers, stub = asking(settings)
    await answers.answer("q")
    assert sent(stub)["tools"] == [{"type": "web_search", "filters": {"allowed_domains": ["a.jp"]}}]
    await answers.answer("q", domains=["b.jp"])
    assert sent(stub)["tools"] == [{"type": "web_search", "filters": {"allowed_domains": ["b.jp"]}}]


async def test_more_domains_than_can_restrict_the_search_are_refused() -> None:
    answers, stub = asking(Settings(search=SearchSettings(strict_domains=True)))
    with pytest.raises(BadArgument, match=r"^domains has "):
        await answers.answer("q", domains=[f"a{number}.example" for number in range(101)])
    assert not stub.sent


async def test_an_answer_without_text_was_paid_for_and_says_so() -> None:
    answers, stub = asking(None, ok(bodies.answer("")))
    with pytest.raises(UnusableReply) as caught:
        await answers.answer("q")
    assert (caught.value.maybe_paid, len(stub.sent)) == (True, 1)


@pytest.mark.rule("spec 4")
async def test_the_policy_text_of_the_settings_is_the_instructions_and_nothing_else() -> None:
    answers, stub = asking(Settings(policy=PolicySettings(instructions="Be brief.")))
    await answers.answer("q")
    assert sent(stub)["instructions"] == "Be brief."


# Profiles


async def test_each_profile_is_used_under_its_name() -> None:
    settings = profiles(
        answer=Profile(),
        answer_detailed=Profile(model="gpt-5.5", reasoning_effort="high", verbosity="high"),
        answer_quick=Profile(model="gpt-4.1-mini", reasoning_effort="low", verbosity="low"),
    )
    answers, stub = asking(settings)
    assert (await answers.answer("q", profile="answer_detailed")).model == "gpt-5.5"
    assert (sent(stub)["model"], sent(stub)["reasoning"], sent(stub)["text"]) == (
        "gpt-5.5",
        {"effort": "high"},
        {"verbosity": "high"},
    )
    assert (await answers.answer("q", profile="answer_quick")).model == "gpt-4.1-mini"
    assert sent(stub).keys() == {"model", "instructions", "input", "tools", "include", "stream", "stream_options"}


@pytest.mark.rule("spec 3.0")
@pytest.mark.parametrize(("profile", "settings"), [
    *((name, profiles()) for name in ("answer", "answer_detailed", "answer_quick")),
    *((name, profiles(answer_detailed=Profile())) for name in ("answer", "answer_quick")),
])  # fmt: skip
async def test_without_the_answer_profile_calls_that_need_it_fail_and_name_it(profile: str, settings: Settings) -> None:
    answers, stub = asking(settings)
    with pytest.raises(ConfigError, match=r"model_profiles\.answer .*MODEL_ANSWER"):
        await answers.answer("q", profile=profile)
    assert stub.sent == []


async def test_a_tool_with_a_profile_of_its_own_needs_no_answer_profile() -> None:
    answers, _ = asking(profiles(answer_detailed=Profile(model="gpt-5.5")))
    assert (await answers.answer("q", profile="answer_detailed")).model == "gpt-5.5"


# What is not sent


async def test_who_watches_is_told_the_model_the_phases_and_nothing_of_the_question() -> None:
    phases: list[str] = []
    with trio.fail_after(WAIT):
        async with open_fake_api(as_stream(bodies.searched())) as fake:
            async with open_answers(Settings(openai=OpenAISettings(base_url=fake.base_url))) as answers:
                result = await answers.answer("canary", watcher=Watcher(phases.append))
            assert fake.requests[0].json["stream"] is True
    assert result.used_search
    assert phases == ["asking gpt-5.2", "thinking", "searching", "searched: python 3.14 release date", "writing"]


# Opening and closing


async def test_open_answers_asks_a_server_and_closes_its_connections() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(bodies.searched())) as fake:
            settings = Settings(openai=OpenAISettings(base_url=fake.base_url))
            async with open_answers(settings) as answers:
                result = await answers.answer("When?")
                assert result.used_search
                assert fake.open_connections == 1
            await gone(fake)


# Dates


@pytest.mark.rule("spec 9")
@pytest.mark.parametrize(("utc", "date"), [
    (datetime(2026, 11, 21, 14, 59, 59, tzinfo=UTC), "2026-11-21"),
    (datetime(2026, 11, 21, 15, 0, 0, tzinfo=UTC), "2026-11-22"),
    (datetime(2026, 12, 31, 15, 0, 0, tzinfo=UTC), "2027-01-01"),
])  # fmt: skip
def test_today_is_the_date_in_tokyo(monkeypatch: pytest.MonkeyPatch, utc: datetime, date: str) -> None:
    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            return utc.astimezone(zone)

    monkeypatch.setattr(time_zone, "datetime", Clock)
    assert today_in("Asia/Tokyo") == date


@pytest.mark.rule("spec 9")
async def test_the_day_is_that_of_the_time_zone_in_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        @staticmethod
        def now(zone: Any) -> datetime:
            return datetime(2026, 11, 21, 20, 0, tzinfo=UTC).astimezone(zone)

    monkeypatch.setattr(time_zone, "datetime", Clock)
    api, stub = stub_api(ok(bodies.searched()))
    result = await Asker(Settings(locale=LocaleSettings(time_zone="UTC")), api=api).answer("When?")
    assert "[Hints] today=2026-11-21 (UTC), " in sent(stub)["input"]
    assert sent(stub)["instructions"] == SYSTEM_POLICY.replace("Asia/Tokyo", "UTC")
    assert result.citations[0].published_at == "2026-11-21"
    assert result.text.endswith(" (2026-11-21)")


async def test_a_time_zone_that_there_is_not_fails_before_anything_is_sent() -> None:
    api, stub = stub_api(ok(bodies.searched()))
    for name in ("Mars/Base", "Europe", "", "../../etc/passwd", "a\0b"):
        with pytest.raises(ConfigError, match=r"locale\.time_zone"):
            await Asker(Settings(locale=LocaleSettings(time_zone=name)), api=api).answer("When?")
    assert stub.sent == []


# The log


async def test_the_log_tells_the_profile_and_what_it_takes_in_the_words_of_the_contract(
    capfd: pytest.CaptureFixture[str],
) -> None:
    answers, _ = asking(
        profiles(answer=Profile(), answer_quick=Profile(model="gpt-4.1"), answer_detailed=Profile(model="o3"))
    )
    with configured():
        for profile in ("answer", "answer_quick", "answer_detailed"):
            await answers.answer("q", profile=profile)
    lines = [line.partition(" DEBUG ")[2] for line in capfd.readouterr().err.splitlines()]
    assert [line for line in lines if line.startswith("answer:")] == [
        "answer: profile=answer model=gpt-5.2 supports={verbosity:true, reasoning:true}",
        "answer: request summary tools=web_search(on) reasoning=on text.verbosity=on",
        "answer: profile=answer_quick model=gpt-4.1 supports={verbosity:false, reasoning:false}",
        "answer: request summary tools=web_search(on) reasoning=off text.verbosity=off",
        "answer: profile=answer_detailed model=o3 supports={verbosity:false, reasoning:true}",
        "answer: request summary tools=web_search(on) reasoning=on text.verbosity=off",
    ]


@pytest.mark.rule("P12", "spec 8")
@pytest.mark.parametrize("debug", [True, False])
async def test_neither_question_nor_policy_nor_key_is_logged_here_and_nothing_at_all_without_debug(
    capfd: pytest.CaptureFixture[str], debug: bool
) -> None:
    settings = Settings(policy=PolicySettings(instructions="canary-policy"))
    answers, _ = asking(settings, refused(503), ok(bodies.answer("canary-answer")))
    with configured(debug=debug):
        await answers.answer("canary-question", domains=["canary-domain"])
    err = capfd.readouterr().err
    assert "canary" not in err
    assert KEY not in err
    assert bool(err) is debug


# Searches


PAGES = found([{"title": "PEP 745", "url": PEP, "snippet": "s"}], sources=[PEP])


@pytest.mark.parametrize(("named", "asked"), [
    ({"answer": Profile(model="gpt-5.4", reasoning_effort="high", verbosity="high")}, ("gpt-5.4", "low", "high")),
    (
        {"answer": Profile(), "search": Profile(model="gpt-5.5", reasoning_effort="medium")},
        ("gpt-5.5", "medium", "medium"),
    ),
    ({"search": Profile(model="gpt-5.5")}, ("gpt-5.5", "medium", "medium")),
])  # fmt: skip
async def test_the_profile_is_search_or_else_answer_with_low_effort(
    named: dict[str, Profile], asked: tuple[str, ...]
) -> None:
    search, stub = asking(Settings(model_profiles=MappingProxyType(named)), ok(PAGES))
    await search.search("q")
    body = sent(stub)
    assert (body["model"], body["reasoning"]["effort"], body["text"]["verbosity"]) == asked


async def test_the_log_counts_the_links_that_were_dropped_and_tells_neither_query_nor_pages(
    capfd: pytest.CaptureFixture[str],
) -> None:
    invented = {"title": "canary", "url": "https://canary.example/", "snippet": "canary"}
    search, _ = asking(None, ok(found([invented, {"url": PEP}], sources=[PEP])))
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
