"""The search tool: how it is listed, what it returns, and how it fails, in both revisions (contract, and design 3.3)."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from responses_mcp.asking import Asker
from responses_mcp.errors import ConfigError, ConnectionFailed
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.serving import configured_toolsets
from responses_mcp.settings.model import (
    ManualsSettings,
    OpenAISettings,
    RequestSettings,
    SearchDefaults,
    SearchSettings,
    ServerSettings,
    Settings,
)
from responses_mcp.testing import Error, FakeApi, Json, bodies, open_fake_api
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolFailure, ToolSuccess
from responses_mcp.toolsets.search import SearchToolset
from tests.hostile.corpus import ENVELOPE
from tests.responses_api.response.search_bodies import NEWS, PEP, found
from tests.responses_api.stub import KEY, Play, ok, refused, stub_api
from tests.testing import samples

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
NAME = "chatgpt_o3_search"
TODAY = "2026-11-22"
PAGE = {
    "title": "PEP 745 – 日本語",
    "url": PEP,
    "snippet": "<b>s</b>",
    "publishedDate": "2024-05-24",
    "relevanceScore": 0.9,
}
INVENTED = {"title": "Invented", "url": "https://invented.example/", "snippet": "s"}
PAGES = found([PAGE, INVENTED], sources=[PEP, NEWS])
RESULT = {"results": [PAGE, {"title": "docs.python.org", "url": NEWS, "snippet": ""}], "totalCount": 2}

# The definition of the contract, section 2, as JSON.
CONTRACT = json.loads(
    """{"name":"chatgpt_o3_search","description":"ChatGPT o3の検索機能を使用してWeb検索を実行します","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"検索クエリ"},"limit":{"type":"number","description":"返す結果の最大数","default":10,"minimum":1,"maximum":50},"language":{"type":"string","description":"結果の言語（例: ja, en）","default":"auto"},"timeframe":{"type":"string","description":"時間範囲フィルタ","enum":["recent","past_week","past_month","past_year"]}},"required":["query"]}}"""
)

ALLOWED = {
    "query": "the question, as a text of 1 to 4000 characters",
    "limit": "a whole number from 1 to 50",
    "language": 'a language tag such as "ja" or "en", or "auto"',
    "timeframe": "one of recent, past_week, past_month, past_year",
}


class Harness:
    """The toolset over a stub, called as the server calls it."""

    def __init__(self, *script: Play, settings: Settings | None = None) -> None:
        settings = settings or Settings(openai=OpenAISettings(api_key=KEY), search=SearchSettings(max_attempts=1))
        api, self.stub = stub_api(*(script or [ok(PAGES)]), openai=settings.openai)
        self.toolset = SearchToolset(lambda: Asker(settings, api=api, today=lambda: TODAY))
        [self.tool] = self.toolset.tools

    async def asked(self, **arguments: Any) -> dict[str, Any]:
        """Return the body of the request that a call makes."""
        await self.tool.handler(CallContext(1), arguments)
        body: dict[str, Any] = json.loads(self.stub.sent[-1].body)
        return body

    async def fail(self, **arguments: Any) -> RpcError:
        """Return the error of a call, after a look at what is the same in all of them."""
        with pytest.raises(ToolError) as caught:
            await self.tool.handler(CallContext(1), arguments or {"query": "q"})
        failure = caught.value.failure
        assert isinstance(failure.error, RpcError)
        assert failure.error.data is not None
        assert failure.error.data["details"]
        assert failure.error.data["details"] in failure.text
        assert failure.text.startswith(failure.error.message)
        return failure.error


# How it is listed


def test_name_description_and_input_schema_are_those_of_the_contract() -> None:
    shown = Harness().tool.definition
    assert {key: shown[key] for key in ("name", "description", "inputSchema")} == CONTRACT


def test_beyond_the_contract_it_has_a_title_an_output_schema_and_annotations() -> None:
    shown = Harness().tool.definition
    assert shown.keys() == {"name", "title", "description", "inputSchema", "outputSchema", "annotations"}
    assert shown["annotations"] == {"readOnlyHint": True, "openWorldHint": True}
    Draft202012Validator.check_schema(shown["inputSchema"])
    Draft202012Validator.check_schema(shown["outputSchema"])


def tools(toolsets: tuple[str, ...] | None, root: str | None = None) -> list[Tool]:
    settings = Settings(server=ServerSettings(toolsets=toolsets), manuals=ManualsSettings(root=root))
    return [tool for toolset in configured_toolsets(settings) for tool in toolset.tools]


def test_it_is_offered_only_where_it_is_asked_for() -> None:
    assert NAME not in [tool.name for tool in tools(None, root="manuals")]
    assert [tool.name for tool in tools(("answer", "search"))] == ["answer", "answer_detailed", "answer_quick", NAME]


# What it returns


async def test_the_result_is_the_same_object_as_text_and_as_structure_and_fits_its_schema() -> None:
    harness = Harness()
    success = await harness.tool.handler(CallContext(1), {"query": "q"})
    assert isinstance(success, ToolSuccess)
    assert success.structured == json.loads(success.text) == RESULT
    assert "日本語" in success.text
    Draft202012Validator(harness.tool.definition["outputSchema"]).validate(success.structured)


# What it takes, and what it asks


@pytest.mark.parametrize("given", [
    {"limit": None, "language": None, "timeframe": None, "domains": ["a.jp"], "Query": "x"},
    *({"limit": limit} for limit in (10, 10.0, "10", " 010 ", "10.0", "")), {"timeframe": ""},
    *({"language": any_} for any_ in ("", "AUTO")),
])  # fmt: skip
async def test_what_is_left_out_is_as_the_contract_has_it(given: dict[str, Any]) -> None:
    sent = await Harness().asked(query="Trio は?", **given)
    assert sent.pop("instructions").endswith(f"Today is {TODAY} (Asia/Tokyo).")
    assert sent == {
        "model": "gpt-5.2",
        "input": "Trio は?",
        "tools": [{"type": "web_search"}],
        "tool_choice": "required",
        "include": ["web_search_call.action.sources"],
        "text": {"verbosity": "medium"},
        "reasoning": {"effort": "low"},
        "stream": True,
        "stream_options": {"include_obfuscation": False},
    }


@pytest.mark.parametrize(("query", "text"), [
    (" q\n", "q"), (5, "5"), ("\u3000日本\u3000", "日本"), ("a\nb", "a\nb"), ("\ud83d", "\ufffd"), ("{limit} {0} %s", "{limit} {0} %s"),
    (" " + "🐍" * 4000 + " ", "🐍" * 4000),
])  # fmt: skip
async def test_a_query_is_trimmed_and_nothing_else(query: str, text: str) -> None:
    assert (await Harness().asked(query=query))["input"] == text


@pytest.mark.parametrize(("given", "rule"), [
    ({"limit": 1}, "7. List each page once, at most 1 pages."), ({"limit": "50"}, "at most 50 pages."),
    *(
        ({"language": tag}, f"List only pages in the language {tag.strip()}, and write the snippets in it.")
        for tag in ("ja", "en-US", "zh_Hant_TW", " en ", "Japanese")
    ),
    (
        {"timeframe": "recent"},
        "Prefer pages published or updated from 2026-11-15 to 2026-11-22; where there are none, the newest ones.",
    ),
    ({"timeframe": "past_week"}, "List only pages published or updated from 2026-11-15 to 2026-11-22."),
    ({"timeframe": "past_month"}, "List only pages published or updated from 2026-10-23 to 2026-11-22."),
    ({"timeframe": "past_year"}, "List only pages published or updated from 2025-11-22 to 2026-11-22."),
])  # fmt: skip
async def test_an_argument_becomes_a_rule(given: dict[str, Any], rule: str) -> None:
    assert rule in (await Harness().asked(query="q", **given))["instructions"]


@pytest.mark.parametrize("strict", [False, True])
async def test_domains_of_the_settings_are_preferred_or_are_the_only_ones(strict: bool) -> None:
    search = SearchSettings(defaults=SearchDefaults(domains=("https://a.jp/x", "b.jp")), strict_domains=strict)
    sent = await Harness(settings=Settings(openai=OpenAISettings(api_key=KEY), search=search)).asked(query="q")
    assert ("\nPrefer pages of https://a.jp/x, b.jp." in sent["instructions"]) is not strict
    filters = {"filters": {"allowed_domains": ["a.jp", "b.jp"]}} if strict else {}
    assert sent["tools"] == [{"type": "web_search", **filters}]


@pytest.mark.parametrize(("name", "value", "details"), [
    ("query", None, "is missing"), ("query", True, "is true"), ("query", ["a"], "is a list"),
    ("query", {}, "is an object"), ("query", "x" * 4001, "is a text of 4001 characters"),
    *(("query", blank, "is empty") for blank in ("", " ", "\n\t\u3000")),
    ("limit", 0, "is 0"), ("limit", 51, "is 51"), ("limit", 50.6, "is 50.6"),
    ("limit", 1e300, "is 1e+300"), ("limit", float("inf"), "is Infinity"), ("limit", float("nan"), "is NaN"),
    ("limit", True, "is true"), ("limit", [5], "is a list"), ("limit", {"a": 1}, "is an object"),
    ("limit", 10**1000, "is a number of too many digits"),
    *(("limit", text, f'is "{text}"') for text in ("ten", "51", "nan")),
    ("limit", "x" * 100, "is a text of 100 characters"),
    *(("language", value, "is ") for value in (5, True, ["ja"], "j", "日本語", "ja; ignore", "en\nus", "x" * 50)),
    *(("timeframe", value, "is ") for value in ("today", "Recent", "past week", 7, True, ["recent"])),
    ("timeframe", "\ud83d", 'is "\ufffd"'),
])  # fmt: skip
async def test_a_wrong_argument_is_refused_and_nothing_is_sent(name: str, value: object, details: str) -> None:
    harness = Harness()
    error = await harness.fail(**{"query": "q", name: value})
    assert error.data is not None
    told = error.data["details"]
    assert error == RpcError(-32602, f"Invalid params: {told}", {"details": told})
    assert told.startswith(f"{name} {details}")
    assert told.endswith(f"; it must be {ALLOWED[name]}.")
    assert harness.stub.sent == []


# How it fails


@pytest.mark.parametrize(("play", "code", "message"), [
    (refused(401, "invalid_api_key"), -32001, "Authentication Error"), (refused(429), -32003, "Rate Limit Exceeded"),
    (ok(samples.rate_limited()), -32003, "Rate Limit Exceeded"), (refused(403), -32002, "Search Error"),
    (refused(429, "insufficient_quota"), -32002, "Search Error"), (ok(bodies.refusal()), -32002, "Search Error"),
    (ConnectionFailed("No route to the API."), -32002, "Search Error"), (ConfigError(["x"]), -32002, "Search Error"),
])  # fmt: skip
async def test_a_failure_is_told_by_its_class(play: Any, code: int, message: str) -> None:
    error = await Harness(play).fail()
    assert (error.code, error.message) == (code, message)
    assert error.data is not None
    assert error.data.keys() == {"details"}


@pytest.mark.parametrize(("key", "says"), [
    (None, "OPENAI_API_KEY is not set"), ("sk-abc\nsk-abc", "white space or a line break"),
])  # fmt: skip
async def test_a_key_that_cannot_work_is_refused_with_the_cure_and_nothing_is_sent(key: str | None, says: str) -> None:
    harness = Harness(settings=Settings(openai=OpenAISettings(api_key=key)))
    error = await harness.fail()
    assert (error.code, error.message) == (-32001, "Authentication Error")
    assert error.data is not None
    assert says in error.data["details"]
    assert "restart the client" in error.data["details"]
    assert harness.stub.sent == []


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7), ({"retry_after": "3600"}, 3600), ({"retry_after_ms": "1500"}, 2),
        ({"retry_after": "0.2"}, 1), ({}, None), ({"retry_after": "soon"}, None), ({"retry_after": "9" * 400}, 86_400),
    ],
)  # fmt: skip
async def test_a_rate_limit_tells_the_whole_seconds_to_wait_where_they_are_known(
    headers: dict[str, str], wait: int | None
) -> None:
    error = await Harness(refused(429, **headers)).fail()
    assert error.data is not None
    assert error.data.get("retryAfter") == wait
    assert ("retryAfter" in error.data) is (wait is not None)


def test_a_failure_that_is_not_the_tools_own_is_a_search_error() -> None:
    expected = RpcError(-32002, "Search Error", {"details": "The server is full."})
    assert Harness().tool.failure("The server is full.") == ToolFailure("Search Error: The server is full.", expected)


# Served, in both revisions


@asynccontextmanager
async def served(
    *script: Any, revision: str = "legacy", tool_errors: Any = "error"
) -> AsyncGenerator[tuple[McpClient, FakeApi]]:
    with trio.fail_after(WAIT):
        async with open_fake_api(*script) as fake:
            settings = Settings(
                openai=OpenAISettings(base_url=fake.base_url, api_key=KEY),
                request=RequestSettings(max_connections=4),
                search=SearchSettings(max_attempts=1),
                server=ServerSettings(toolsets=("answer", "search"), tool_errors=tool_errors),
            )
            async with connected_client(settings, initialize=revision == "legacy") as client:
                yield client, fake


def params(revision: str, **more: Any) -> dict[str, Any]:
    meta = {"_meta": ENVELOPE} if revision == "modern" else {}
    return {"name": NAME, "arguments": {"query": "q"}, **meta, **more}


@pytest.mark.parametrize(("revision", "tool_errors"), [("legacy", "error"), ("legacy", "result"), ("modern", "error")])
async def test_an_error_of_the_contract_is_a_result_that_says_the_same_for_all_others(
    revision: str, tool_errors: str
) -> None:
    async with served(Error(429, retry_after="7"), revision=revision, tool_errors=tool_errors) as (client, fake):
        limited = await client.ask("tools/call", params(revision))
        wrong = await client.ask("tools/call", params(revision, arguments={"query": "q", "limit": 0}))
        assert len(fake.requests) == 1
    why = "limit is 0; it must be a whole number from 1 to 50."
    if (revision, tool_errors) == ("legacy", "error"):
        error = limited["error"]
        assert (error["code"], error["message"], error["data"]["retryAfter"]) == (-32003, "Rate Limit Exceeded", 7)
        assert error["data"]["details"].endswith(")"), "the request id is told"
        assert wrong["error"] == {"code": -32602, "message": f"Invalid params: {why}", "data": {"details": why}}
        return
    for answer in (limited, wrong):
        assert answer["result"]["isError"] is True
        assert "structuredContent" not in answer["result"]
    text = limited["result"]["content"][0]["text"]
    assert text.startswith("Rate Limit Exceeded: The API limits the rate of requests (429")
    assert "It asks to wait 7 s." in text
    assert wrong["result"]["content"][0]["text"] == f"Invalid params: {why}"


@pytest.mark.parametrize("revision", ["legacy", "modern"])
async def test_a_bug_of_a_search_is_the_error_of_the_contract_and_says_no_more(
    revision: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("sk-canary")

    monkeypatch.setattr("responses_mcp.asking.search_body", broken)
    async with served(revision=revision) as (client, _):
        told = (await client.ask("tools/call", params(revision)))["error"]
    assert told == {
        "code": -32603,
        "message": "Internal Error",
        "data": {"details": "An unexpected error occurred"},
    }
    assert f"server: {NAME} crashed with ZeroDivisionError" in caplog.text


async def test_a_search_is_answered_and_shares_its_connection_with_answers() -> None:
    async with served(Json(PAGES), Json(bodies.unsearched())) as (client, fake):
        result = (await client.ask("tools/call", params("legacy")))["result"]
        assert (result["structuredContent"], json.loads(result["content"][0]["text"])) == (RESULT, RESULT)
        await client.call("answer", {"query": "q"})
        assert fake.connections == 1
