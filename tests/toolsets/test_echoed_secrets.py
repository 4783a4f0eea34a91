"""A key that the API echoes in a success: in no place and no form does it reach the client."""

import html
import json
import logging
import re
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import pytest
import trio

from responses_mcp.asking import Watcher, open_answers
from responses_mcp.errors import UnusableReply
from responses_mcp.responses_api.response.parser import LONGEST_ANSWER
from responses_mcp.secrets import MASK
from responses_mcp.settings.model import OpenAISettings, ServerSettings, Settings
from responses_mcp.testing import Json, Sse, as_stream, bodies, open_fake_api, stream_events
from responses_mcp.testing.client import connected_client
from responses_mcp.testing.items import open_page
from tests.processes import WAIT

pytestmark = pytest.mark.rule("P4", "P11", "spec 8")

KEY = 'Zqxjw+vkpyb/=&"<gmhuz>\\tfnwo'
TOKEN = "ydzkr-qbvtn"
HEADER = f"Custom {TOKEN}"
# Of no word may three letters be seen together, in capitals or not: half a key is still half a key.
PIECES = {word[at : at + 3] for word in re.findall("[a-z]+", f"{KEY} {TOKEN}".lower()) for at in range(len(word) - 2)}
PAGE = "https://ex.jp/"

ESCAPED = {
    "escaped": quote(KEY, safe=""),
    "in lower case": re.sub("%..", lambda escape: escape[0].lower(), quote(KEY, safe="")),
    "but for slashes": quote(KEY),
    "as a browser does": quote(KEY, safe="+/=&"),
    "twice": quote(quote(KEY, safe=""), safe=""),
    "of a header": TOKEN,
}
WRITTEN = {"plain": KEY, "html": html.escape(KEY), "json": json.dumps(KEY)[1:-1], "header": HEADER, **ESCAPED}

Body = dict[str, Any]
Echo = Callable[[str], Body]


def search(**action: Any) -> Body:
    call = bodies.web_search_call(["q"], [PAGE])
    return {**call, "action": {**call["action"], **action}}


def consulted(**source: str) -> Body:
    return bodies.answer("A.", searches=[search(sources=[source])])


def cited(*texts: str, url: str = PAGE, title: str = "A page") -> Body:
    """Return an answer in parts, which cites a page for its first part."""
    parts = [bodies.output_text(text) for text in texts or ("Said.",)]
    parts[0]["annotations"] = [bodies.url_citation(url, title, 0, len(parts[0]["text"]))]
    return bodies.response([search(), bodies.message(parts)])


def messages(*texts: str) -> Body:
    return bodies.response([bodies.message([bodies.output_text(text)]) for text in texts])


def refused(*texts: str) -> Body:
    return bodies.response([bodies.message([bodies.refusal_part(text) for text in texts])])


def listed(**item: str) -> Body:
    page = {"url": PAGE, "title": "A title", "snippet": "A snippet", **item}
    return bodies.answer(json.dumps([page]), searches=[search(sources=[{"type": "url", "url": page["url"]}])])


def halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04X}" for character in text)


# Where an echo would be seen.
ANSWERS: dict[str, Echo] = {
    "text": lambda said: cited(f"日本語 {said} です"),
    "whole text": bodies.answer,
    "two parts": lambda said: cited(*halves(said)),
    "two messages": lambda said: messages(*halves(said)),
    "text where it is cut": lambda said: bodies.answer("a" * (LONGEST_ANSWER - 4) + said),
    "refusal": lambda said: refused(f"I do not know {said}."),
    "refusal in two parts": lambda said: refused(*halves(said)),
    "url": lambda said: cited(url=f"{PAGE}?key={said}"),
    "block of sources": lambda said: cited(f"A.\n\nSources: {PAGE}?key={said} (2026-11-20)", url=f"{PAGE}?key={said}"),
    "text around a block": lambda said: cited(f"A {said}\n\nSources:\n- {said} {PAGE}\n\n{said} B."),
    "url where it is cut": lambda said: cited(url=f"{PAGE}{'a' * (8 * 1024 - len(PAGE) - 4)}{said}"),
    "title": lambda said: cited(title=f"About {said}"),
    "title where it is cut": lambda said: cited(title="あ" * (8 * 1024 - 4) + said),
    "url of a source": lambda said: consulted(type="url", url=PAGE + said),
    "name of a source": lambda said: consulted(type="api", name=said),
    "id of a source": lambda said: consulted(type="api", id=said),
    "kind of a source": lambda said: consulted(type=said, name="oai"),
}
PHASES: dict[str, Echo] = {
    "query": lambda said: bodies.answer("A.", searches=[search(queries=[f"what is {said}"])]),
    "host": lambda said: bodies.answer("A.", searches=[open_page(f"https://www.{said}.ex.jp/")]),
    "long host": lambda said: bodies.answer("A.", searches=[open_page(f"https://{'a' * (8 * 1024 - 12)}{said}/")]),
}
SEARCHES: dict[str, Echo] = {
    "title": lambda said: listed(title=f"About {said}"),
    "snippet": lambda said: listed(snippet=f"About {said}"),
    "snippet where it is cut": lambda said: listed(snippet="あ" * 995 + said),
    "snippet where it is cut first": lambda said: listed(snippet=" " * 7_995 + said),
    "escaped title": lambda said: bodies.answer(
        f'[{{"url": "{PAGE}", "title": "{escaped(said)}"}}]', searches=[search()]
    ),
    "cited title": lambda said: cited(title=f"About {said}"),
    "cited title where it is cut": lambda said: cited(title="あ" * 295 + said),
    "cited words": lambda said: cited(f"{said} was said"),
    "cited words in two parts": lambda said: cited(*halves(said)),
    "cited words where they are cut": lambda said: cited("あ" * 995 + said),
    "refusal where it is cut": lambda said: refused("No. " * 48 + said),
    "refusal in two parts": lambda said: refused(*halves(said)),
}
URLS: dict[str, Echo] = {
    "listed": lambda said: listed(url=f"{PAGE}?key={said}"),
    "cited": lambda said: cited(url=f"{PAGE}?key={said}"),
    "opened": lambda said: bodies.answer("A.", searches=[open_page(f"{PAGE}?key={said}")]),
}


def settings(base_url: str, key: str = KEY) -> Settings:
    openai = OpenAISettings(base_url=base_url, api_key=key, headers=MappingProxyType({"x-custom": HEADER}))
    return Settings(openai=openai, server=ServerSettings(toolsets=("answer", "search")))


async def heard(tool: str, replies: Iterable[Any], *, token: str | None = None) -> list[str]:
    """Return what a client hears of each call, as one text a call."""
    params: Body = {"name": tool, "arguments": {"query": "q"}, **({"_meta": {"progressToken": token}} if token else {})}
    told: list[str] = []
    with trio.fail_after(WAIT):
        async with open_fake_api() as api, connected_client(settings(api.base_url)) as client:
            for reply in replies:
                api.script(reply)
                client.heard.clear()
                await client.response(await client.request("tools/call", params))
                told.append(json.dumps(client.heard, ensure_ascii=False))
    return told


def seen(text: str) -> set[str]:
    """Return what is seen of the secrets."""
    return {piece for piece in PIECES if piece in text.lower()}


@pytest.mark.parametrize("place", ANSWERS)
async def test_an_echoed_secret_is_masked_in_an_answer(place: str) -> None:
    told = await heard("answer", [Json(ANSWERS[place](written)) for written in WRITTEN.values()])
    assert [seen(text) for text in told] == [set()] * len(WRITTEN)
    if "cut" not in place:
        assert all(MASK in text for text in told)


@pytest.mark.parametrize("place", [*PHASES, "text", "two parts", "title"])
async def test_an_echoed_secret_is_masked_in_a_stream_and_in_its_phases(place: str) -> None:
    phases: list[str] = []
    echo = {**ANSWERS, **PHASES}[place]
    with trio.fail_after(WAIT):
        async with open_fake_api() as api, open_answers(settings(api.base_url)) as answers:
            for written in WRITTEN.values():
                api.script(as_stream(echo(written)))
                answer = await answers.answer("q", watcher=Watcher(phases.append))
                assert seen(f"{answer} {phases}") == set()
    if place == "query":
        assert phases.count(f"searched: what is {MASK}") == len(WRITTEN)


async def test_the_progress_that_tells_a_query_has_no_secret() -> None:
    events = stream_events(PHASES["query"](KEY))
    told = next(at for at, event in enumerate(events) if event["type"] == "response.output_item.done") + 1
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Sse(events[:told], ending="hang")) as api,
            connected_client(settings(api.base_url)) as client,
        ):
            params = {"name": "answer", "arguments": {"query": "q"}, "_meta": {"progressToken": "p"}}
            await client.request("tools/call", params)
            while "searched:" not in str(client.heard):
                await client.news()
            assert seen(str(client.heard)) == set()
            assert f"searched: what is {MASK}" in str(client.heard)


async def test_a_secret_that_two_texts_of_a_stream_share_is_masked() -> None:
    done = {"type": "response.output_text.done", "output_index": 0}
    end = {"type": "response.completed", "response": {**bodies.answer(""), "output": []}}
    streams = [
        Sse([*({**done, "content_index": at, "text": half} for at, half in enumerate(halves(written))), end])
        for written in WRITTEN.values()
    ]
    for text in await heard("answer", streams, token="p"):
        assert seen(text) == set()
        assert MASK in text


@pytest.mark.parametrize("place", SEARCHES)
async def test_an_echoed_secret_is_masked_in_a_search(place: str) -> None:
    told = await heard("chatgpt_o3_search", [Json(SEARCHES[place](written)) for written in WRITTEN.values()])
    assert [seen(text) for text in told] == [set()] * len(WRITTEN)
    if "cut" not in place and "words" not in place:
        assert all(MASK in text for text in told)


@pytest.mark.parametrize("place", URLS)
async def test_an_echoed_secret_is_masked_in_the_urls_of_a_search(place: str) -> None:
    for text in await heard("chatgpt_o3_search", [Json(URLS[place](written)) for written in ESCAPED.values()]):
        assert seen(text) == set()
        assert f"{PAGE}?key={MASK}" in text


async def test_pages_that_differ_only_in_how_a_secret_is_written_are_one() -> None:
    cites = [bodies.url_citation(f"{PAGE}?key={written}", "", 0, 5) for written in ESCAPED.values()]
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Json(bodies.answer("Said.", annotations=cites))) as api,
            open_answers(settings(api.base_url)) as answers,
        ):
            answer = await answers.answer("q")
    assert [citation.url for citation in answer.citations] == [f"{PAGE}?key={MASK}"]


async def test_hosts_and_their_logs_get_no_secret_either(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    replies = [Json({**body, "model": KEY, "id": f"resp {TOKEN}"}) for body in (cited(title=KEY), listed(title=KEY))]
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(*replies) as api,
            open_answers(settings(api.base_url)) as answers,
            open_answers(settings(api.base_url)) as searches,
        ):
            results = f"{await answers.answer('q')} {await searches.search('q')}"
    assert seen(results + caplog.text) == set()
    assert results.count(MASK) == 2
    assert f"model={MASK} id=resp {MASK}" in caplog.text


async def test_a_kind_of_output_that_is_a_secret_is_not_named() -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Json(bodies.response([{"type": "zqxjw_vkpyb"}]))) as api,
            open_answers(settings(api.base_url, "zqxjw_vkpyb")) as answers,
        ):
            with pytest.raises(UnusableReply) as caught:
                await answers.answer("q")
    assert seen(str(caught.value)) == set()


async def test_what_an_answer_says_of_keys_in_general_stays() -> None:
    said = "Set `Authorization: Bearer abcdefgh12345678`, sk-proj-abcDEF_0123456789-xyz or https://user:password@host/."
    [text] = await heard("answer", [Json(bodies.answer(said))])
    assert said in text
