"""The list in a model's answer, whatever has become of it on the way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response.search_results import SearchResult, listed_items, read_results
from responses_mcp.secrets import Redact, Redactor
from responses_mcp.testing import bodies

TODAY = "2026-11-22"
A = {"title": "A", "url": "https://a.jp/", "snippet": "About a.", "publishedDate": "2026-01-02", "relevanceScore": 0.9}
B = {"title": "B", "url": "https://b.jp/", "snippet": "About b."}
READ_A = SearchResult("A", "https://a.jp/", "About a.", "2026-01-02", 0.9)
READ_B = SearchResult("B", "https://b.jp/", "About b.", None, None)
LIST = json.dumps([A, B], indent=1)


def read(text: str, redact: Redact = str) -> list[SearchResult]:
    """Return the results of an answer whose search has seen both pages; one that is not listed has its host as title."""
    body = bodies.answer(text, searches=[bodies.web_search_call(["q"], ["https://a.jp/", "https://b.jp/"])])
    found = read_results(body, limit=50, today=TODAY, redact=redact).results
    return [page for page in found if page.title not in {"a.jp", "b.jp"}]


def only(**members: Any) -> SearchResult:
    [page] = read(json.dumps([{"url": "https://a.jp/", "title": "A", **members}]))
    return page


@pytest.mark.parametrize("text", [
    LIST, json.dumps([A, B]), f"```json\n{LIST}\n```", f"```\n{LIST}\n```\nThat is all.",
    f'Here is the "list" of 5" things {{as asked}}:\n\n{LIST}\n\nAsk me for more!',
    json.dumps({"results": [A, B], "totalCount": 2}), json.dumps({"query": "q", "data": {"items": [A, B]}}),
    f"{json.dumps(A)}\n{json.dumps(B)}", LIST.replace("}", ",}").replace("\n]", ",\n]"),
    LIST.replace("About a.", "About\ta."), LIST + LIST[:40], LIST[:-2],
    LIST.rstrip("]\n ") + ', {"title": "C", "url": "https://c.jp/", "snippet": "cut',
    LIST.rstrip("]\n ") + ', {"title": "C", "url": "https://c.jp/", "snippet": "cut\\',
    LIST.rstrip("]\n ") + ', {"title": "C", "url"', LIST.replace('"About a."', '"About a\\."'),
])  # fmt: skip
def test_a_list_is_found_in_every_form(text: str) -> None:
    assert read(text) == [READ_A, READ_B]


@pytest.mark.parametrize("between", ["\ue203", "\ue200cite\ue201", "\u202e", "[](https://a.jp/)", "\ufeff"])
def test_a_secret_that_is_whole_when_what_stands_in_it_is_taken_out_is_not_shown(between: str) -> None:
    said = json.dumps([{**A, "title": f"sk-canary-{between}0123456789"}])
    [page] = read(said, Redactor(["sk-canary-0123456789"]).known)
    assert page.title == "[redacted]"


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("url", "https://a.jp/"), ("URL", "https://a.jp/"), ("link", "https://a.jp/"),
        ("url", " https://a.jp/ "), ("url", "<https://a.jp/>"), ("url", "[a](https://a.jp/)"),
    ],
)  # fmt: skip
def test_the_address_may_have_other_names_and_wrappings(member: str, value: str) -> None:
    assert read(json.dumps([{"title": "A", member: value}])) == [SearchResult("A", "https://a.jp/", "")]


@pytest.mark.parametrize("item", [{"title": "A"}, {"url": ""}, {"url": None}, {"url": 5}, {"url": ["https://a.jp/"]}])
def test_an_object_without_an_address_is_no_item(item: dict[str, Any]) -> None:
    assert read(json.dumps([item, B])) == [READ_B]


def test_a_broken_item_costs_itself_only() -> None:
    broken = '{"title": "A "quoted" title", "url": "https://x.jp/"}'
    assert read(f"[{broken}, {json.dumps(B)}]") == [READ_B]


def test_braces_quotes_and_commas_within_texts_are_text() -> None:
    title = 'a } b { "c" , [] \\ d'
    assert only(title=title).title == title
    assert read(json.dumps([{**B, "title": title}])[:-2] + ",}]")[0].title == title


@pytest.mark.parametrize(
    ("value", "date"),
    [
        ("2026-01-02", "2026-01-02"), ("2026-1-2", "2026-01-02"), ("2026/01/02", "2026-01-02"),
        ("2026年1月2日", "2026-01-02"), ("2026-01-02T03:04:05Z", "2026-01-02"), ("2026-01-02 03:04", "2026-01-02"),
        ("2024-02-29", "2024-02-29"), (TODAY, TODAY), ("2026-11-23", "2026-11-23"),
        ("2026-11-24", None), ("2026-02-29", None), ("2026-13-01", None), ("0001-01-01", None), ("2026-01", None),
        ("2026", None), ("yesterday", None), ("Jan. 2, 2026", "2026-01-02"), ("on 2026-01-02", None), ("YYYY-MM-DD", None), ("", None), (20260102, None), (None, None),
        ("２０２６-01-02", None), ("x2026-01-02", None),
    ],
)  # fmt: skip
def test_a_date_is_a_day_of_the_calendar_up_to_today_or_absent(value: Any, date: str | None) -> None:
    assert only(publishedDate=value).published_date == date
    assert only(date=value).published_date == date


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (0, 0.0), (1, 1.0), (0.5, 0.5), ("0.85", 0.85), ("1.0", 1.0), (".5", 0.5),
        (1.01, None), (-0.1, None), (85, None), ("85%", None), ("high", None), (True, None), (None, None),
        (10**400, None), (float("nan"), None), (float("inf"), None), ("nan", None), ([0.5], None),
    ],
)  # fmt: skip
def test_a_score_is_from_0_to_1_or_absent(value: Any, score: float | None) -> None:
    assert only(relevanceScore=value).relevance_score == score


def test_a_comma_before_a_bracket_in_a_text_stays_and_one_between_members_goes() -> None:
    snippet = 'A tuple is (1,), a list [1, 2,] and an object {"a": 1,}.'
    assert only(snippet=snippet).snippet == snippet
    assert read(json.dumps([A, B])[:-1] + ",]") == [READ_A, READ_B]


@pytest.mark.parametrize("name", ["snippet", "description"])
def test_texts_are_made_fit_to_be_shown_and_cut(name: str) -> None:
    assert only(**{name: " a\u0000b\n<i>c</i> ([a.jp](https://a.jp/))"}).snippet == "ab <i>c</i>"
    assert len(only(**{name: "x" * 5000}).snippet) == 1000
    assert only(**{name: 5}).snippet == ""


@given(st.integers(0, len(LIST)))
def test_a_list_cut_anywhere_keeps_its_whole_items(length: int) -> None:
    text = LIST[:length]
    assert read(text) == [READ_A, READ_B][: text.count("}")]


def test_so_many_items_are_read_and_no_more() -> None:
    assert len(listed_items('{"url": "https://a.jp/"}' * 20_000)) == 500
