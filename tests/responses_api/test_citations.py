"""Citations, and the `Sources:` block that every searched answer ends in (contract 3.2)."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api import citations
from responses_mcp.responses_api.citations import (
    Citation,
    Source,
    choose_citations,
    with_sources,
    without_markers,
    without_tracking,
)

DATE = "2026-11-22"
A, B, C = "https://a.jp/", "https://b.jp/", "https://c.jp/"
WEATHER, SPORTS = Source("oai-weather", "api", is_url=False), Source("oai-sports", "api", is_url=False)
KNOWN = (Citation(A, "A", DATE), Citation("oai-weather", "api", DATE))
OURS = f"- {A} ({DATE})\n- oai-weather ({DATE})"


def urls(*names: str) -> list[Source]:
    return [Source(name, "url", is_url=True) for name in names]


def chosen(cited: list[tuple[str, str | None]], sources: list[Source], limit: int = 3) -> list[str]:
    return [citation.url for citation in choose_citations(cited, sources, limit=limit, date=DATE)]


# Which citations


def test_cited_pages_come_in_order_of_appearance_with_title_and_access_date() -> None:
    cited = [(B, "Page B"), (A, None)]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(B, "Page B", DATE), Citation(A, None, DATE))


def test_a_citation_without_a_title_has_no_title_member() -> None:
    assert Citation(A, None, DATE).as_json() == {"url": A, "published_at": DATE}
    assert Citation(A, "T", DATE).as_json() == {"url": A, "title": "T", "published_at": DATE}


def test_consulted_pages_stand_in_only_when_no_page_is_cited() -> None:
    assert chosen([], urls(A, B)) == [A, B]
    assert chosen([(C, None)], urls(A, B)) == [C]


def test_named_sources_follow_the_pages_in_either_case() -> None:
    assert chosen([(A, None)], [WEATHER, *urls(B)]) == [A, "oai-weather"]
    assert chosen([], [WEATHER, *urls(B)]) == [B, "oai-weather"]
    assert chosen([], [WEATHER, SPORTS, WEATHER]) == ["oai-weather", "oai-sports"]


def test_a_named_source_is_titled_with_its_kind() -> None:
    assert choose_citations([], [WEATHER], limit=3, date=DATE) == (Citation("oai-weather", "api", DATE),)


@pytest.mark.parametrize("limit", range(1, 11))
def test_no_more_than_the_limit_are_chosen(limit: int) -> None:
    pages = [(f"https://a.jp/{number}", None) for number in range(12)]
    assert chosen(list(pages), [], limit) == [url for url, _ in pages[:limit]]


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        (1, ["oai-weather"]),
        (2, [A, "oai-weather"]),
        (3, [A, B, "oai-weather"]),
        (4, [A, B, C, "oai-weather"]),
        (5, [A, B, C, "oai-weather", "oai-sports"]),
    ],
)
def test_the_last_place_goes_to_the_first_named_source_when_the_cut_would_drop_them_all(
    limit: int, kept: list[str]
) -> None:
    assert chosen([(A, None), (B, None), (C, None)], [WEATHER, SPORTS], limit) == kept


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_counts_as_one(limit: int) -> None:
    assert chosen([(A, None), (B, None)], [], limit) == [A]
    assert chosen([(A, None), (B, None)], [WEATHER], limit) == ["oai-weather"]


def test_one_page_cited_several_ways_is_one_citation_under_its_first_form() -> None:
    cited = [(f"{A}#top", None), (f"{A}?utm_source=openai", ""), (A, "The title"), (f"{A}#end", "Another title")]
    assert choose_citations(cited, [], limit=3, date=DATE) == (Citation(f"{A}#top", "The title", DATE),)


def test_pages_that_differ_in_their_query_are_different() -> None:
    assert chosen([(f"{A}?p=1", None), (f"{A}?p=2", None)], []) == [f"{A}?p=1", f"{A}?p=2"]


def test_named_sources_are_different_whatever_stands_behind_a_hash() -> None:
    feeds = [Source(f"feed#{number}", "api", is_url=False) for number in (1, 2)]
    assert chosen([], feeds) == ["feed#1", "feed#2"]


# Tracking


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


# The Sources: block


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Rain.", f"Rain.\n\nSources:\n{OURS}"),
        ("Rain.\n\n", f"Rain.\n\nSources:\n{OURS}"),
        ("雨。", f"雨。\n\nSources:\n{OURS}"),
        ("Data Sources: many.", f"Data Sources: many.\n\nSources:\n{OURS}"),
        ("Sources of the Nile", f"Sources of the Nile\n\nSources:\n{OURS}"),
    ],
)
def test_a_missing_block_is_added_at_the_end(text: str, whole: str) -> None:
    assert with_sources(text, KNOWN, DATE) == whole


@pytest.mark.parametrize(
    "text",
    [
        "Rain.\n\nSources:\n- https://x.jp/ (2026-11-20)",
        "Rain.\n\n**Sources:**\n- https://x.jp/ (2026-11-20)",
        "Rain.\n\n## Sources:\n\n- https://x.jp/\n\n- https://y.jp/ (2026-11-20)",
        "雨。\n\nSources：\n・https://x.jp/（2026-11-20）",
        "雨。\n\nSources:\n- 気象庁 2026-11-20の発表",
        "Rain.\n\nSources: [x](https://x.jp/)(2026-11-20)",
        "Rain.\n\n> Sources: x, 2026-11-20\n\nAsk me for more.",
    ],
)
def test_a_block_of_the_model_with_dates_stays(text: str) -> None:
    assert with_sources(text, KNOWN, DATE) == text


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Rain.\n\nSources:\n- x", f"Rain.\n\nSources:\n- x\n{OURS}"),
        ("Rain.\n\nSources:\n- x\n\n", f"Rain.\n\nSources:\n- x\n{OURS}"),
        ("Rain.\n\nSources:", f"Rain.\n\nSources:\n{OURS}"),
        ("雨。\n\nSources：\n・x", f"雨。\n\nSources：\n・x\n{OURS}"),
        ("Rain.\n\n**Sources:** x", f"Rain.\n\n**Sources:** x\n{OURS}"),
        ("On 2026-11-20 it rained.\n\nSources:\n- x", f"On 2026-11-20 it rained.\n\nSources:\n- x\n{OURS}"),
        # A date within an address says when nothing was read.
        (
            "Rain.\n\nSources:\n- https://x.jp/2026-11-20/rain",
            f"Rain.\n\nSources:\n- https://x.jp/2026-11-20/rain\n{OURS}",
        ),
        ("Rain.\n\nSources:\n- x 12026-11-201", f"Rain.\n\nSources:\n- x 12026-11-201\n{OURS}"),
        # What follows a block is not part of it.
        (
            "Rain.\n\nSources:\n- x\n- y\n\nSee you on 2026-11-23.",
            f"Rain.\n\nSources:\n- x\n- y\n{OURS}\n\nSee you on 2026-11-23.",
        ),
        ("Sources:\n- x \n \n\n 1. y\t\n \nRain.", f"Sources:\n- x \n \n\n 1. y\n{OURS}\n \nRain."),
        ("Sources: the short list.\n\nRain.\n\nSources:\n- x", f"Sources: the short list.\n\nRain.\n\nSources:\n- x\n{OURS}"),
    ],
)  # fmt: skip
def test_a_block_of_the_model_without_dates_gets_our_lines_under_the_same_header(text: str, whole: str) -> None:
    assert with_sources(text, KNOWN, DATE) == whole


def test_a_search_without_any_known_source_is_named_itself() -> None:
    assert with_sources("Rain.", (), DATE) == f"Rain.\n\nSources:\n- web_search ({DATE})"
    assert with_sources("Rain.\n\nSources:\n- x", (), DATE) == f"Rain.\n\nSources:\n- x\n- web_search ({DATE})"


def test_an_empty_text_gets_a_block_without_an_empty_line_in_front() -> None:
    assert with_sources("", KNOWN, DATE) == f"Sources:\n{OURS}"


@given(st.lists(st.sampled_from([*"a:： \n-*>#.(/)", "Sources:", "2026-11-20", "\n\n", "- x"])).map("".join))
def test_a_block_is_there_afterwards_and_a_second_pass_adds_nothing(text: str) -> None:
    once = with_sources(text, KNOWN, DATE)
    assert "Sources" in once
    assert with_sources(once, KNOWN, DATE) == once


@pytest.mark.parametrize(
    "text",
    ["Sources:" + "\n\n- x" * 20_000, "> " * 60_000, "\n" * 100_000, "Sources:\n" * 20_000, "\ue200" * 100_000,
     "https://" * 20_000, "https://a?" + "utm_source=openai&" * 10_000],
    ids=["long list", "quotes", "blank lines", "headers", "markers", "schemes", "tracking"],
)  # fmt: skip
def test_long_texts_that_tempt_a_pattern_to_look_again_and_again_come_through(text: str) -> None:
    # Work in proportion to the square of the length would take minutes here.
    assert with_sources(without_tracking(without_markers(text)), KNOWN, DATE).endswith(OURS)


def repetitions(parsed: Any) -> Iterator[Any]:
    """Yield the kinds of item that each repetition in a parsed pattern repeats."""
    for each in parsed if isinstance(parsed, list | tuple) or hasattr(parsed, "data") else ():
        if isinstance(each, tuple) and str(each[0]).endswith("_REPEAT"):
            yield [str(kind) for kind, _ in each[1][2]]
        yield from repetitions(each)


@pytest.mark.parametrize("name", [name for name, each in vars(citations).items() if isinstance(each, re.Pattern)])
def test_no_pattern_that_meets_a_whole_answer_repeats_more_than_one_character(name: str) -> None:
    # For each turn of a repeated group the engine keeps a hundred bytes or more: gigabytes for an answer of many lines.
    # A possessive group would need none, but Python before 3.11.5 (Debian 12 has 3.11.2) finds wrong ends for them.
    pattern = vars(citations)[name]
    for repeated in repetitions(import_module("re._parser").parse(pattern.pattern, pattern.flags)):
        assert repeated in (["IN"], ["ANY"], ["LITERAL"], ["NOT_LITERAL"])


def test_a_block_is_looked_for_at_the_end_of_the_text_only() -> None:
    block, rest = f"Sources:\n- x ({DATE})", "\n\n" + "And so on. " * 30_000
    assert with_sources(f"{rest}\n{block}", KNOWN, DATE) == f"{rest}\n{block}"
    assert with_sources(block + rest, KNOWN, DATE) == f"{block}{rest.rstrip()}\n\nSources:\n{OURS}"


def test_the_end_of_the_text_that_is_looked_at_begins_no_line() -> None:
    words = "Data Sources: many. "
    text = words * 30_000
    for cut in range(len(words)):
        assert with_sources(text + "x" * cut, KNOWN, DATE).endswith(f"\n\nSources:\n{OURS}")
