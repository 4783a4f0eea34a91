"""Citations: which sources an answer names, and texts without the marks of the search (spec 3.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response.citations import (
    Citation,
    Cited,
    Source,
    choose_citations,
)
from responses_mcp.responses_api.response.web_pages import page_key, without_markers, without_tracking

DATE = "2026-11-22"
A, B, C = "https://a.jp/", "https://b.jp/", "https://c.jp/"
WEATHER, SPORTS = Source("oai-weather", "api", is_url=False), Source("oai-sports", "api", is_url=False)


def urls(*names: str) -> list[Source]:
    return [Source(name, "url", is_url=True) for name in names]


def chosen(cited: list[tuple[str, str | None]], sources: list[Source], limit: int = 3) -> list[str]:
    mentions = [Cited(*each) for each in cited]
    return [citation.url for citation in choose_citations(mentions, sources, limit=limit, date=DATE)]


# Which citations


@pytest.mark.rule("spec 6")
def test_cited_pages_come_in_order_of_appearance_with_title_and_access_date() -> None:
    cited = [Cited(B, "Page B"), Cited(A)]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(B, "Page B", DATE), Citation(A, None, DATE))


def test_a_citation_without_a_title_has_no_title_member() -> None:
    assert Citation(A, None, DATE).as_json() == {"url": A, "published_at": DATE}
    assert Citation(A, "T", DATE).as_json() == {"url": A, "title": "T", "published_at": DATE}


@pytest.mark.rule("spec 6")
def test_consulted_pages_stand_in_only_when_no_page_is_cited() -> None:
    assert chosen([], urls(A, B)) == [A, B]
    assert chosen([(C, None)], urls(A, B)) == [C]


def test_named_sources_follow_the_pages_in_either_case() -> None:
    assert chosen([(A, None)], [WEATHER, *urls(B)]) == [A, "oai-weather"]
    assert chosen([], [WEATHER, *urls(B)]) == [B, "oai-weather"]
    assert chosen([], [WEATHER, SPORTS, WEATHER]) == ["oai-weather", "oai-sports"]


def test_a_named_source_is_titled_with_its_kind() -> None:
    assert choose_citations([], [WEATHER], limit=3, date=DATE) == (Citation("oai-weather", "api", DATE),)


@pytest.mark.rule("P1", "spec 3.3")
@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (1, [A]),
        (2, [A, "oai-weather"]),
        (3, [A, B, "oai-weather"]),
        (4, [A, B, C, "oai-weather"]),
        (5, [A, B, C, "oai-weather", "oai-sports"]),
    ],
)
def test_the_last_of_several_places_goes_to_the_first_named_source_when_the_cut_would_drop_them_all(
    limit: int, kept: list[str]
) -> None:
    assert chosen([(A, None), (B, None), (C, None)], [WEATHER, SPORTS], limit) == kept


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_counts_as_one(limit: int) -> None:
    assert chosen([(A, None), (B, None)], [], limit) == [A]
    assert chosen([(A, None), (B, None)], [WEATHER], limit) == [A]
    assert chosen([], [WEATHER, SPORTS], limit) == ["oai-weather"]


@pytest.mark.rule("spec 3.3")
def test_one_page_cited_several_ways_is_one_citation_under_its_first_form() -> None:
    cited = [Cited(f"{A}#top"), Cited(f"{A}?utm_source=openai", ""), Cited(A, "The title"), Cited(f"{A}#end", "Other")]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(f"{A}#top", "The title", DATE),)


@pytest.mark.rule("spec 3.3")
@pytest.mark.parametrize(
    "other",
    ["https://A.jp/", "HTTPS://a.jp", "http://a.jp/", "https://a.jp/?utm_medium=mail&gclid=1", "https://a.jp:443/"],
)
def test_pages_are_joined_by_the_rule_of_the_search_tool(other: str) -> None:
    assert page_key(other) == page_key(A)
    cited = [Cited(other), Cited(A, "The title")]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(other, "The title", DATE),)
    assert chosen([], urls(other, A)) == [other]


def test_what_is_no_address_of_a_page_is_joined_with_itself_only() -> None:
    assert chosen([("https://a b/", None), ("https://a b/#x", None), ("nowhere", None)], []) == [
        "https://a b/",
        "nowhere",
    ]


def test_a_citation_has_the_first_date_that_an_annotation_of_its_page_tells() -> None:
    cited = [Cited(A), Cited(f"{A}#x", None, "2026-11-20"), Cited(A, None, "2026-11-19"), Cited(B)]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(A, None, "2026-11-20"), Citation(B, None, DATE))


def test_pages_that_differ_in_their_query_are_different() -> None:
    assert chosen([(f"{A}?p=1", None), (f"{A}?p=2", None)], []) == [f"{A}?p=1", f"{A}?p=2"]


def test_named_sources_are_different_whatever_stands_behind_a_hash() -> None:
    feeds = [Source(f"feed#{number}", "api", is_url=False) for number in (1, 2)]
    assert chosen([], feeds) == ["feed#1", "feed#2"]


# Tracking


@pytest.mark.rule("spec 3.3")
@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("https://a.jp/?utm_source=openai", "https://a.jp/"),
        ("https://a.jp/?utm_source=chatgpt.com", "https://a.jp/"),
        ("https://a.jp/?utm_source=openai&b=2", "https://a.jp/?b=2"),
        ("https://a.jp/?a=1&utm_source=openai", "https://a.jp/?a=1"),
        ("https://a.jp/?a=1&utm_source=openai&b=2", "https://a.jp/?a=1&b=2"),
        ("https://a.jp/?a=1&utm_source=openai&b=2#top", "https://a.jp/?a=1&b=2#top"),
        ("https://a.jp/?utm_source=openai#top", "https://a.jp/#top"),
        ("https://a.jp/?utm_source=openai&utm_source=chatgpt.com", "https://a.jp/"),
        ("https://a.jp/?a=1&utm_source=openai&utm_source=chatgpt.com&b=2", "https://a.jp/?a=1&b=2"),
        ("https://a.jp/?utm_source=openai.com", "https://a.jp/?utm_source=openai.com"),
        ("https://a.jp/?utm_source=openai-blog", "https://a.jp/?utm_source=openai-blog"),
        ("https://a.jp/?utm_source=newsletter", "https://a.jp/?utm_source=newsletter"),
        ("https://a.jp/?my_utm_source=openai", "https://a.jp/?my_utm_source=openai"),
        ("https://a.jp/?utm_medium=x&utm_source=openai", "https://a.jp/?utm_medium=x"),
    ],
)
@pytest.mark.parametrize("text", ["{}", "See {}.", "([link]({})).", "<{}>", "前{}。", "- {}\n- next", "{}を見て"])
def test_tracking_parameters_go_from_urls_wherever_they_stand(text: str, url: str, clean: str) -> None:
    assert without_tracking(text.format(url)) == text.format(clean)


def test_text_about_the_parameter_stays() -> None:
    text = "ChatGPT appends ?utm_source=chatgpt.com to links; filter on ?a=1&utm_source=openai in your logs."
    assert without_tracking(text) == text


# Markers


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("One\ue200cite\ue202turn0search0\ue201 two", "One two"),
        ("One\ue200cite\ue202turn0search0\ue202turn0search1\ue201.", "One."),
        ("One\ue200cite\ue202a\ue201\ue200cite\ue202b\ue201 two", "One two"),
        ("A stray\ue204 one, \ue20f two\ue201", "A stray one,  two"),
        ("Open\ue200cite\ue202turn0sea", "Open"),
        ("Open\ue200cite\ue202turn0sea\nNext line", "Open\nNext line"),
        ("Open\ue200cite\nNext\ue201 line", "Open\nNext line"),
        ("絵文字🐍 and \ue210 stay", "絵文字🐍 and \ue210 stay"),
        ("", ""),
    ],
)
def test_private_citation_marks_are_removed(text: str, clean: str) -> None:
    assert without_markers(text) == clean


@given(st.text(st.sampled_from("ab\n\ue200\ue201\ue202\ue204")))
def test_no_private_mark_survives(text: str) -> None:
    assert not set(without_markers(text)) & {chr(code) for code in range(0xE200, 0xE210)}
