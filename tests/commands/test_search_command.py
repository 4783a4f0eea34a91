"""`openai-responses-mcp search` as a person or a script uses it: what is sent, what is shown where, and how it ends."""

import json
from typing import Any

import pytest
import trio

from responses_mcp.asking import Asker, SearchResult, SearchResults, Watcher
from responses_mcp.commands.asking import COMMAND_LINE
from responses_mcp.secrets import MASK
from responses_mcp.testing import FakeApi, as_stream, bodies
from tests.commands.online import Command, api, command, output

__all__ = ["api", "command"]

FOUND = SearchResults(
    (
        SearchResult("Trio", "https://trio.dev/", "A library for structured concurrency.", "2026-11-02", 0.9),
        SearchResult("予備電源", "https://a.jp/電源", "", None, None),
    ),
    total_count=7,
    dropped=2,
)


@pytest.fixture
def finding(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let every search find the same; return what it is asked."""
    asked: dict[str, Any] = {}

    async def search(_: Asker, query: str, **more: Any) -> SearchResults:
        await trio.lowlevel.checkpoint()
        watcher: Watcher = more.pop("watcher")
        assert watcher.on_phase is not None
        watcher.on_phase("asking")
        asked.update(more, query=query, client=watcher.client)
        return FOUND

    monkeypatch.setattr(Asker, "search", search)
    return asked


async def test_each_page_is_listed_with_title_address_date_and_what_it_says(
    api: FakeApi, command: Command, finding: dict[str, Any]
) -> None:
    code, out, err = await command("search", "structured", "concurrency")
    assert code == 0
    assert out == (
        "  1. Trio\n"
        "     https://trio.dev/  2026-11-02\n"
        "     A library for structured concurrency.\n"
        "  2. 予備電源\n"
        "     https://a.jp/電源\n"
        "Showing 2 of 7 pages; list more with --limit.\n"
    )
    assert err == "Left out 2 links that the web search had not found.\n"
    assert finding == {
        "query": "structured concurrency",
        "limit": 10,
        "language": "auto",
        "timeframe": None,
        "client": COMMAND_LINE,
    }


async def test_the_options_are_the_arguments_of_the_tool(
    api: FakeApi, command: Command, finding: dict[str, Any]
) -> None:
    await command("search", "--limit", "3", "q", "--language", "ja", "--timeframe", "past_week")
    assert finding == {"query": "q", "limit": 3, "language": "ja", "timeframe": "past_week", "client": COMMAND_LINE}


async def test_a_search_asks_the_api_once_and_needs_no_toolset(api: FakeApi, command: Command) -> None:
    api.script(*[as_stream(bodies.searched())] * 2)
    lines = output(await command("search", "python")).splitlines()
    assert lines[1].strip() == bodies.PEP
    [request] = api.requests
    assert request.json["input"] == "python"
    found = json.loads(output(await command("search", "python", "--json")))
    assert (list(found), found["usage"]["web_searches"]) == (["results", "totalCount", "usage"], 1)


async def test_finding_nothing_is_no_failure(api: FakeApi, command: Command) -> None:
    api.script(as_stream(bodies.answer("[]")))
    assert output(await command("search", "unicorns")) == "Nothing found.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["q", "--language", "??"], 'language is "??"; it must be a language tag'),
        (["x" * 4001], "query is a text of 4001 characters"),
        ([], "There is nothing to ask"),
    ],
)
async def test_a_search_that_cannot_be_meant_exits_2_and_sends_nothing(
    api: FakeApi, command: Command, arguments: list[str], said: str
) -> None:
    code, out, err = await command("search", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert api.requests == []


@pytest.mark.parametrize("options", [[], ["--json"]], ids=str)
@pytest.mark.parametrize("name", ["ask", "search"])
async def test_a_key_that_the_api_echoes_is_masked(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, name: str, options: list[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-no-known-kind")
    cited = bodies.url_citation("https://ex.jp/?of-no-known-kind", "of-no-known-kind", 0, 4)
    call = bodies.web_search_call(["of-no-known-kind"])
    api.script(as_stream(bodies.answer("Said of-no-known-kind.", annotations=[cited], searches=[call])))
    out = output(await command(name, "q", *options))
    assert f"https://ex.jp/?{MASK}" in out
    assert "kind" not in out
