"""What a profile passes on to the API: in the body, left out where it is refused, and taken out of what comes back."""

from dataclasses import fields, replace
from typing import Any

import pytest
import trio
from openai.types import responses as official
from pydantic import TypeAdapter

from responses_mcp.asking import open_answers
from responses_mcp.errors import RequestRefused
from responses_mcp.research.inquiry import Narrowing, run_body
from responses_mcp.responses_api.request.arguments import Question, SearchQuery
from responses_mcp.responses_api.request.payload import bare_hosts, request_body, search_body
from responses_mcp.responses_api.response.parser import Answer, read_answer
from responses_mcp.responses_api.response.search_results import read_results
from responses_mcp.settings import OpenAISettings, Profile, Settings
from responses_mcp.testing import Error, FakeApi, as_stream, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.stub import KEY
from tests.testing import samples

TODAY = "2026-11-22"
FILTERS = {"type": "eq", "key": "language", "value": "ja"}
REQUEST = {
    "max_output_tokens": 9000,
    "max_tool_calls": 4,
    "service_tier": "flex",
    "store": False,
    "prompt_cache_key": "team",
    "safety_identifier": "user-1",
}
WEB_SEARCH = {
    "search_context_size": "low",
    "external_web_access": False,
    "user_location": {"type": "approximate", "country": "JP", "city": "Minato", "timezone": "Asia/Tokyo"},
}
EVERYTHING = Profile(
    blocked_domains=("https://www.Evil.example/page", "bad.test"),
    file_search={
        "vector_store_ids": ["vs_1"],
        "max_num_results": 3,
        "ranking_options": {"score_threshold": 0.5},
        "filters": FILTERS,
    },
    request=REQUEST,
    web_search=WEB_SEARCH,
)


def body(profile: Profile, *domains: str) -> dict[str, Any]:
    question = Question(query="q", recency_days=60, max_results=5, domains=domains)
    return request_body(question, profile, instructions="i", today=TODAY, strict_domains=bool(domains))


def test_everything_that_is_set_is_in_the_body_and_in_its_place() -> None:
    plain, full = body(Profile()), body(EVERYTHING)
    assert {name: full[name] for name in full.keys() - plain.keys()} == REQUEST
    assert full["tools"] == [
        {"type": "web_search", "filters": {"blocked_domains": ["www.evil.example", "bad.test"]}, **WEB_SEARCH},
        {
            "type": "file_search",
            "vector_store_ids": ["vs_1"],
            "max_num_results": 3,
            "ranking_options": {"score_threshold": 0.5},
            "filters": FILTERS,
        },
    ]
    assert {name: full[name] for name in plain.keys() - {"tools"}} == {
        name: value for name, value in plain.items() if name != "tools"
    }


# `background` is for whoever sends the body.
@pytest.mark.parametrize(
    "name", sorted({field.name for field in fields(Profile)} - {"model", "reasoning_effort", "verbosity", "background"})
)
def test_what_is_not_set_leaves_the_body_as_it_was(name: str) -> None:
    assert body(replace(Profile(), **{name: getattr(EVERYTHING, name)})) != body(Profile())
    assert body(Profile(file_search={"filters": FILTERS})) == body(Profile())


def test_what_one_question_narrows_is_as_it_was_for_the_next() -> None:
    plain = body(EVERYTHING), body(Profile())
    for profile in (EVERYTHING, Profile()):
        body(profile, "a.jp")
        plain_one: Narrowing = {"domains": ["a.jp"], "blocked_domains": ["b.jp"], "location": {"country": "FR"}}
        with_schema: Narrowing = {**plain_one, "output_schema": {"type": "object"}, "stores": ["vs_2"]}
        for each in (plain_one, with_schema):
            run_body("q", each, profile, instructions="i", today=TODAY, time_zone="Asia/Tokyo", store=False)
        search_body(SearchQuery(query="q"), profile, today=TODAY, domains=["a.jp"], strict_domains=True)
    assert (body(EVERYTHING), body(Profile())) == plain


def test_the_tools_are_what_the_official_types_describe() -> None:
    web, files = body(EVERYTHING, "a.jp")["tools"]
    assert web["filters"].pop("blocked_domains")  # which the types do not have yet
    assert TypeAdapter(official.WebSearchToolParam).validate_python(web, extra="forbid") == web
    assert TypeAdapter(official.FileSearchToolParam).validate_python(files) == files


def test_a_member_that_the_server_has_too_is_merged_with_its_own_and_wins() -> None:
    request = {"text": {"format": {"type": "text"}}, "reasoning": {"effort": "max", "summary": "auto"}, "new": [1]}
    web_search = {"filters": {"allowed_domains": ["a.jp"], "x": 1}}
    profile = Profile(blocked_domains=("bad.test",), request=request, web_search=web_search)
    sent = body(profile)
    assert sent["text"] == {"verbosity": "medium", "format": {"type": "text"}}
    assert sent["reasoning"] == {"effort": "max", "summary": "auto"}
    assert sent["new"] == [1]
    assert sent["tools"][0]["filters"] == {"blocked_domains": ["bad.test"], "allowed_domains": ["a.jp"], "x": 1}
    narrowed = body(profile, "b.jp")["tools"][0]["filters"]
    assert narrowed == {"blocked_domains": ["bad.test"], "allowed_domains": ["b.jp"], "x": 1}


def test_what_is_read_of_a_request_is_so_whatever_it_holds() -> None:
    def read(profile: Profile) -> tuple[object, ...]:
        bounds = profile.most("max_output_tokens", 10_000), profile.most("max_tool_calls", 5)
        return profile.store, profile.service_tier, *bounds

    assert read(EVERYTHING) == (False, "flex", 9000, 4)
    odd = Profile(request={"store": "no", "service_tier": 5, "max_output_tokens": True, "max_tool_calls": -1})
    assert read(odd) == (True, None, 10_000, 5)


def test_a_search_for_pages_looks_into_no_files() -> None:
    found = search_body(SearchQuery(query="q"), EVERYTHING, today=TODAY)
    assert [tool["type"] for tool in found["tools"]] == ["web_search"]
    assert found["max_tool_calls"] == 4


# What the API refuses


def settings(fake: FakeApi, profile: Profile = EVERYTHING) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=fake.base_url, api_key=KEY),
        model_profiles={"answer": profile, "search": profile},
    )


def names_in(sent: dict[str, Any]) -> set[str]:
    return {*sent, *(name for tool in sent["tools"] for name in tool)}


@pytest.mark.parametrize(("refusal", "gone"), [
    *(
        (Error(400, f"Unsupported parameter: '{name}'", param=name), name)
        for name in (
            *("max_output_tokens", "max_tool_calls", "service_tier"),
            *("store", "prompt_cache_key", "safety_identifier"),
        )
    ),
    *(
        (Error(400, "Not with this model.", param=f"tools[0].{name}"), name)
        for name in ("search_context_size", "external_web_access", "user_location")
    ),
    (Error(400, "Unknown parameter: 'tools[0].external_web_access'."), "external_web_access"),
    (Error(400, "search_context_size is not supported with this model"), "search_context_size"),
    (Error(422, "Unknown field service_tier"), "service_tier"),
])  # fmt: skip
async def test_what_is_refused_by_name_is_left_out_from_then_on(refusal: Error, gone: str) -> None:
    async with open_fake_api(refusal, as_stream(bodies.unsearched()), as_stream(bodies.unsearched())) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(settings(fake)) as answers:
                await answers.answer("q")
                await answers.answer("q")
        first, second, third = (request.json for request in fake.requests)
    assert names_in(first) - names_in(second) == {gone}
    assert second == third
    assert [tool["type"] for tool in second["tools"]] == ["web_search", "file_search"]


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (
            Error(400, "Unknown parameter: 'tools[0].filters.blocked_domains'.", param="tools[0].filters"),
            "or blocked_domains",
        ),
        (Error(400, "Vector store vs_1 not found.", param="tools[1].vector_store_ids"), "Vector store vs_1 not found"),
        (Error(404, "Vector store with id vs_1 not found."), "not found"),
    ],
)
async def test_neither_blocked_domains_nor_a_search_of_files_is_left_out(refusal: Error, said: str) -> None:
    async with open_fake_api(refusal) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(settings(fake)) as answers:
                with pytest.raises(RequestRefused, match=said):
                    await answers.answer("q")
        assert len(fake.requests) == 1


# What comes back


BLOCKED = bare_hosts(["evil.example", "日本.example"])
EVIL = "https://www.evil.example/a"


def read(response: dict[str, Any], **options: Any) -> Answer:
    return read_answer(response, model="m", max_citations=3, date=TODAY, redact=str, **options)


def answering(text: str, *urls: str, sources: tuple[str, ...] = ()) -> dict[str, Any]:
    cited = [bodies.url_citation(url, "", 0, 0) for url in urls]
    return bodies.answer(text, annotations=cited, searches=[bodies.web_search_call(["q"], sources)])


@pytest.mark.parametrize("url", [
    EVIL, "http://EVIL.example./", "https://evil.example:8443/x", "https://日本.example/", "https://evil%2Eexample/",
])  # fmt: skip
def test_a_page_of_a_blocked_domain_is_not_cited_be_it_cited_or_consulted(url: str) -> None:
    found = read(answering("Yes.", url, bodies.PEP), blocked=BLOCKED)
    assert [citation.url for citation in found.citations] == [bodies.PEP]
    found = read(answering("Yes.", sources=(url, bodies.NEWS)), blocked=BLOCKED)
    assert [citation.url for citation in found.citations] == [bodies.NEWS]
    found = read(answering("Yes.", url, sources=(url,)), blocked=BLOCKED)
    assert (found.citations, found.used_search) == ((), True)
    assert found.text == f"Yes.\n\nSources:\n- web_search ({TODAY})"


@pytest.mark.parametrize("url", ["https://notevil.example/", "https://evil.example.org/", "https://a.jp/evil.example"])
def test_another_domain_that_looks_alike_is_cited(url: str) -> None:
    assert [citation.url for citation in read(answering("Yes.", url), blocked=BLOCKED).citations] == [url]


def test_the_block_of_the_model_loses_its_lines_about_blocked_pages() -> None:
    text = f"Yes, see {EVIL}.\n\nSources:\n- {bodies.PEP} (2026-01-02)\n- {EVIL} (2026-01-03)"
    found = read(answering(text, bodies.PEP, EVIL), blocked=BLOCKED)
    assert found.text == f"Yes, see {EVIL}.\n\nSources:\n- {bodies.PEP} (2026-01-02)"
    text = f"Yes.\n\nSources:\n- {EVIL} (2026-01-03)\n"
    found = read(answering(text, bodies.PEP, EVIL), blocked=BLOCKED)
    assert found.text == f"Yes.\n\nSources:\n- {bodies.PEP} ({TODAY})"
    assert read(answering(text, EVIL)).text == text.rstrip(), "without a list of blocked domains nothing changes"


async def test_a_list_of_pages_has_none_of_a_blocked_domain() -> None:
    listed = f'[{{"title": "A", "url": "{bodies.PEP}"}}, {{"title": "B", "url": "https://bad.test/x"}}]'
    response = answering(listed, bodies.PEP, "https://bad.test/x", sources=("https://a.bad.test/", bodies.NEWS))
    async with open_fake_api(as_stream(response)) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(settings(fake)) as search:
                found = await search.search("q")
    assert [page.url for page in found.results] == [bodies.PEP, bodies.NEWS]
    assert (found.total_count, found.dropped) == (2, 0)
    assert len(read_results(response, limit=9, today=TODAY, redact=str).results) == 4


async def test_files_that_an_answer_cites_are_citations_by_their_names() -> None:
    async with open_fake_api(as_stream(samples.searched_files())) as fake:
        with trio.fail_after(WAIT):
            async with open_answers(settings(fake)) as answers:
                found = await answers.answer("q")
    assert [(citation.url, citation.title) for citation in found.citations] == [
        (bodies.PEP, None),
        ("guide.md", "file"),
        ("予定.pdf", "file"),
    ]
    assert found.text.endswith(
        f"- guide.md ({found.citations[1].published_at})\n- 予定.pdf ({found.citations[2].published_at})"
    )
    assert found.usage is not None
    assert found.usage.as_json()["file_searches"] == 1


def test_an_answer_from_files_alone_used_a_search() -> None:
    response = bodies.answer("Nine.", annotations=[bodies.file_citation("file-1", "", 3)], searches=[])
    found = read(response, files=True)
    assert (found.used_search, [citation.url for citation in found.citations]) == (True, ["file-1"])
    assert read(response).citations == ()
