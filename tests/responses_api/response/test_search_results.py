"""What the model lists, held against what its search has seen."""

from typing import Any

import pytest

from responses_mcp.errors import RequestRefused, ServiceFailed, UnusableReply
from responses_mcp.responses_api.response.search_results import SearchResult, SearchResults, read_results
from responses_mcp.testing import bodies, items
from tests.responses_api.response.search_bodies import NEWS, PEP, found
from tests.testing import samples

TODAY = "2026-11-22"
INVENTED = "https://invented.example/page"


def read(body: dict[str, Any], limit: int = 10) -> SearchResults:
    return read_results(body, limit=limit, today=TODAY, redact=str)


def urls(body: dict[str, Any], limit: int = 10) -> list[str]:
    return [result.url for result in read(body, limit).results]


def item(url: str, **more: Any) -> dict[str, Any]:
    return {"title": f"Title of {url}", "url": url, "snippet": "What it says.", **more}


# Only what was seen


def test_a_listed_page_that_was_a_source_is_a_result_with_all_that_is_said_of_it() -> None:
    body = found([item(PEP, publishedDate="2024-05-24", relevanceScore=0.9)], sources=[PEP])
    expected = SearchResult(f"Title of {PEP}", PEP, "What it says.", "2024-05-24", 0.9)
    assert read(body) == SearchResults((expected,), 1)
    assert read(body).as_json() == {
        "results": [
            {
                "title": f"Title of {PEP}",
                "url": PEP,
                "snippet": "What it says.",
                "publishedDate": "2024-05-24",
                "relevanceScore": 0.9,
            }
        ],
        "totalCount": 1,
    }


@pytest.mark.parametrize("seen", [
    {"sources": [PEP]}, {"cited": [(PEP, "PEP")]}, {"searches": [items.open_page(PEP)]},
    {"searches": [items.find_in_page(PEP, "x")]},
])  # fmt: skip
def test_a_page_was_seen_if_it_is_cited_a_source_or_was_opened(seen: dict[str, Any]) -> None:
    result = read(found([item(PEP), item(INVENTED)], **seen))
    assert [each.url for each in result.results] == [PEP]
    assert (result.total_count, result.dropped) == (1, 1)


@pytest.mark.parametrize("link", [
    INVENTED, f"{PEP}made-up", "javascript:alert(1)", "ftp://peps.python.org/pep-0745/", "not a link",
    "https://peps.python.org@evil.example/pep-0745/",
])  # fmt: skip
def test_an_invented_link_is_dropped_and_counted(link: str) -> None:
    result = read(found([item(link), item(PEP)], sources=[PEP]))
    assert [each.url for each in result.results] == [PEP]
    assert (result.total_count, result.dropped) == (1, 1)
    assert set(result.as_json()) == {"results", "totalCount"}


def test_what_a_failed_search_names_was_not_seen() -> None:
    failed = bodies.web_search_call(["q"], [INVENTED], status="failed")
    assert urls(found([item(INVENTED)], searches=[failed, bodies.web_search_call(["q"], [PEP])])) == [PEP]


def test_the_address_is_returned_as_it_was_seen_without_tracking() -> None:
    body = found([item("HTTP://Peps.Python.org/pep-0745#x")], sources=[f"{PEP}?utm_source=openai"])
    assert urls(body) == [PEP]


def test_a_source_that_is_no_page_is_no_result() -> None:
    body = samples.api_source()
    assert all(url.startswith("https://") for url in urls(body))
    assert urls(found("Nothing.", sources=["ftp://a.jp/", "https://", "x y"])) == []


# What is missing is filled in


def test_the_models_list_comes_first_then_what_is_cited_then_sources() -> None:
    sources = [f"https://s.example/{number}" for number in range(3)]
    body = found(
        [item(sources[2]), item(NEWS)], sources=[*sources, NEWS], cited=[(PEP, "PEP 745"), (sources[1], "One")]
    )
    assert urls(body) == [sources[2], NEWS, PEP, sources[1], sources[0]]


def test_a_cited_page_has_its_title() -> None:
    body = found(
        [{"url": PEP, "snippet": "s"}], cited=[(PEP, ""), (PEP, "PEP 745"), (NEWS, "What’s new")], sources=[NEWS]
    )
    assert [result.title for result in read(body).results] == ["PEP 745", "What’s new"]


def test_a_page_is_listed_once_however_often_it_is_named() -> None:
    body = found([item(PEP, title="First"), item(f"{PEP}#x")], sources=[PEP, PEP], cited=[(PEP, "Third")])
    assert [result.title for result in read(body).results] == ["First"]
    assert read(body).dropped == 0


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (3, 3), (50, 7)])
def test_the_limit_cuts_and_the_total_counts_before_it(limit: int, count: int) -> None:
    sources = [f"https://s.example/{number}" for number in range(7)]
    result = read(found([item(sources[0])], sources=sources), limit)
    assert (len(result.results), result.total_count) == (count, 7)


def test_prose_is_read_by_its_citations_with_the_words_before_them_as_snippets() -> None:
    first, second = read(bodies.searched()).results
    snippet = "Python 3.14 came out on 7 October 2025"
    assert first == SearchResult("PEP 745 – Python 3.14 Release Schedule", PEP, snippet)
    assert (second.url, second.snippet) == (NEWS, "It brought template strings")


@pytest.mark.parametrize(("text", "covered"), [
    ("- The sky too.\n- The sea is blue.", "The sea is blue."),
    ("The sea is blue. ([a.jp](https://a.jp/x_(y)))", "([a.jp](https://a.jp/x_(y)))"),
    ("The sea is blue. [a.jp](https://a.jp), [b.jp](https://b.jp)", "[a.jp](https://a.jp), [b.jp](https://b.jp)"),
    ("The sea is blue. https://a.jp", "https://a.jp"),
])  # fmt: skip
def test_the_words_of_an_annotation_or_those_before_its_links_are_the_snippet(text: str, covered: str) -> None:
    annotation = bodies.url_citation(PEP, "Colours", text.index(covered), len(text))
    assert read(bodies.answer(text, annotations=[annotation])).results[0].snippet == "The sea is blue."


@pytest.mark.parametrize(("start", "end"), [(0, -1), (0, 10**9), (None, None), ("0", "3"), (2**70, 2**70)])
def test_places_that_are_none_give_no_snippet(start: Any, end: Any) -> None:
    annotation = {"type": "url_citation", "url": PEP, "title": "T", "start_index": start, "end_index": end}
    assert read(bodies.answer("Some text.", annotations=[annotation])).results == (SearchResult("T", PEP, ""),)


# Nothing


@pytest.mark.parametrize("text", ["[]", "```json\n[]\n```", '{"results": [], "totalCount": 0}'])
def test_an_empty_list_means_that_nothing_fits_whatever_was_consulted(text: str) -> None:
    assert read(found(text, sources=[PEP])) == SearchResults((), 0)


@pytest.mark.parametrize("searches", [[], [bodies.web_search_call(["q"])]])
@pytest.mark.parametrize("text", ["[]", "I found nothing."])
def test_finding_nothing_is_no_error(text: str, searches: list[dict[str, Any]]) -> None:
    assert read(found(text, searches=searches)).as_json() == {"results": [], "totalCount": 0}


def test_a_list_that_was_cut_off_keeps_its_whole_items_and_the_rest_comes_from_the_sources() -> None:
    cut: dict[str, Any] = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    text = '[{"title": "A", "url": "%s", "snippet": "s"}, {"title": "B", "url": "%s", "sni' % (PEP, NEWS)  # noqa: UP031
    assert read(found(text, sources=[PEP, NEWS], **cut)).results == (
        SearchResult("A", PEP, "s"),
        SearchResult("docs.python.org", NEWS, ""),
    )


def test_a_model_that_declines_is_an_error_with_its_words() -> None:
    with pytest.raises(RequestRefused, match="declined to search: I can’t help with that"):
        read(bodies.refusal())


def test_a_search_that_failed_is_not_taken_for_one_that_found_nothing() -> None:
    with pytest.raises(ServiceFailed, match="web search failed"):
        read(samples.failed_search())


@pytest.mark.parametrize(
    "output", [None, 5, {}, [None, 5, "x"], [{"type": "message", "content": [{"annotations": 5}]}]]
)
def test_a_response_of_any_shape_is_no_bug(output: Any) -> None:
    with pytest.raises(UnusableReply):
        read({"status": "completed", "output": output})
