"""Citations: which sources an answer names, whether two addresses mean one page, and text as a reader sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response.sources import Citation, choose_citations
from responses_mcp.responses_api.response.web_pages import address, page_key, shown, without_markers, without_tracking

DATE = "2026-11-22"
A, B, C = "https://a.jp/", "https://b.jp/", "https://c.jp/"
WEATHER, SPORTS = Citation("oai-weather", "api"), Citation("oai-sports", "api")
PAGES = [Citation(A), Citation(B)]
PAGE = "https://example.com/a/b?x=1&y=2"


@pytest.mark.rule("P1", "spec 3.3", "spec 6")
@pytest.mark.parametrize(("cited", "sources", "limit", "kept"), [
    ([B, A], PAGES[:1], 3, [B, A]), ([], PAGES, 3, [A, B]), ([A], [WEATHER, *PAGES], 3, [A, "oai-weather"]),
    ([], [WEATHER, SPORTS, WEATHER], 3, ["oai-weather", "oai-sports"]), ([], [WEATHER, *PAGES], 3, [A, B, "oai-weather"]),
    ([A, B, C], [WEATHER, SPORTS], 1, [A]), ([A, B, C], [WEATHER, SPORTS], 2, [A, "oai-weather"]),
    ([A, B, C], [WEATHER, SPORTS], 4, [A, B, C, "oai-weather"]), ([A, B], [WEATHER], 0, [A]),
    ([f"{A}?p=1", f"{A}?p=2"], [], 3, [f"{A}?p=1", f"{A}?p=2"]),
    ([], [Citation(f"feed#{number}", "api") for number in (1, 2)], 3, ["feed#1", "feed#2"]),
])  # fmt: skip
def test_cited_pages_come_first_then_named_sources_of_which_one_has_a_place(
    cited: list[str], sources: list[Citation], limit: int, kept: list[str]
) -> None:
    found = choose_citations(list(map(Citation, cited)), sources, limit=limit)
    assert [citation.url for citation in found.values()] == kept


@pytest.mark.rule("spec 3.3")
def test_one_page_cited_several_ways_is_one_citation_with_the_first_form_title_and_date() -> None:
    cited = [Citation(f"{A}#top"), Citation("http://A.jp:80?gclid=1", ""), Citation(A, "The title", "2026-11-20")]
    cited += [Citation(B), Citation(f"{A}#end", "Other", "2026-11-19")]
    found = Citation(f"{A}#top", "The title", "2026-11-20"), Citation(B)
    assert tuple(choose_citations(cited, [], limit=3).values()) == found
    assert choose_citations([], [WEATHER], limit=3) == {"oai-weather": WEATHER}


# Addresses


@pytest.mark.parametrize(("one", "other"), [
    (PAGE, "HTTP://EXAMPLE.com.:80/a/b/?x=1&&y=2#top"), (PAGE, "https://example.com:443/%61/b?x=1&y=2"),
    (PAGE, "https://example.com/a/b?utm_source=chatgpt.com&x=1&utm_medium=m&y=2&gclid=3&fbclid=4"),
    ("https://日本語.jp/", "https://xn--wgv71a119e.jp"), ("https://example.jp/日本", "https://example.jp/%e6%97%a5%E6%9C%AC"),
    ("https://example.jp/?q=あ", "https://example.jp?q=%E3%81%82"), ("https://example.jp/~me", "https://example.jp/%7Eme/"),
])  # fmt: skip
def test_spellings_of_one_page_are_one_page(one: str, other: str) -> None:
    assert page_key(one) == page_key(other) is not None


@pytest.mark.parametrize("other", [
    "https://www.example.com/a/b?x=1&y=2", "https://example.com:8443/a/b?x=1&y=2", "https://example.com/a/B?x=1&y=2",
    "https://example.com/a?x=1&y=2", "https://example.com/a/b?x=1&y=3", "https://example.com/a%2Fb?x=1&y=2",
])  # fmt: skip
def test_other_pages_are_other_pages(other: str) -> None:
    assert page_key(PAGE) != page_key(other) is not None


@pytest.mark.parametrize("text", [
    "", "example.com", "//example.com/", "ftp://example.com/", "javascript:alert(1)", "data:text/html,x", "https://",
    "https:///a", "https://example.com:x/", "https://[::1/", "https://a b.com/", "https://good.com@evil.com/",
    "https://evil.com\\@good.com/", "oai-weather", "https://.", "HTTP://./a", "https://..:80/",
])  # fmt: skip
def test_what_is_no_address_of_a_page_has_no_key(text: str) -> None:
    assert (page_key(text), address(text)) == (None, None)


@given(st.text(max_size=60) | st.from_regex(r"https?://[^\s]{1,40}", fullmatch=True))
def test_what_has_a_key_has_an_address_of_the_same_key(text: str) -> None:
    fit = address(text)
    assert (fit is None) == (page_key(text) is None)
    assert fit is None or page_key(fit) == page_key(text)


# Text


@pytest.mark.rule("spec 3.3")
@pytest.mark.parametrize(("url", "clean"), [
    ("?utm_source=openai", ""), ("?utm_source=openai&b=2", "?b=2"),
    ("?a=1&utm_source=openai&utm_source=chatgpt.com&b=2#top", "?a=1&b=2#top"),
    ("?utm_source=openai#top", "#top"), ("?utm_medium=x&utm_source=chatgpt.com", "?utm_medium=x"),
    *((other, other) for other in ("?utm_source=openai.com", "?utm_source=openai-blog", "?my_utm_source=openai")),
])  # fmt: skip
@pytest.mark.parametrize("text", ["See {}.", "([link]({})).", "前{}。"])
def test_tracking_parameters_go_from_urls_wherever_they_stand(text: str, url: str, clean: str) -> None:
    assert without_tracking(text.format(A + url)) == text.format(A + clean)


def test_text_about_the_parameter_stays() -> None:
    text = "ChatGPT appends ?utm_source=chatgpt.com to links; filter on ?a=1&utm_source=openai in your logs."
    assert without_tracking(text) == text


@pytest.mark.parametrize(("text", "clean"), [
    ("One\ue200cite\ue202turn0search0\ue202a\ue201\ue200cite\ue202b\ue201 two", "One two"),
    ("A stray\ue204 one, \ue20f two\ue201", "A stray one,  two"), ("Open\ue200cite\ue202turn0sea", "Open"),
    ("Open\ue200cite\nNext\ue201 line", "Open\nNext line"), ("絵文字🐍 and \ue210 stay", "絵文字🐍 and \ue210 stay"),
])  # fmt: skip
def test_private_citation_marks_are_removed(text: str, clean: str) -> None:
    assert without_markers(text) == clean


@pytest.mark.parametrize(("text", "seen"), [
    ("  two\n a\x00b\x1b[31mc\x7f\x85d\t", "two abc d"), ("vector<int> &amp; <b>a</b>", "vector<int> &amp; <b>a</b>"),
    ("a\u202eb\ufeffc\U000e0041", "abc"), ("said \ue200cite\ue202turn0search0\ue201.", "said ."),
    ("It is out. ([python.org](https://python.org/a_(b)?utm_source=openai))", "It is out."),
    ("Two. ([a.jp](https://a.jp), [b.jp](https://b.jp))", "Two."), ("See [the page](https://a.jp/) there.", "See the page there."),
    ("half \ud83d", "half \ufffd"), ("👩‍👩‍👧 日本", "👩‍👩‍👧 日本"), ("word " * 100, "word word w…"),
])  # fmt: skip
def test_text_is_shown_on_one_line_without_marks_and_without_what_cannot_be_seen(text: str, seen: str) -> None:
    assert shown(text, 12 if "word" in text else 100, str) == seen


@given(st.text(), st.integers(1, 20))
def test_any_text_can_be_shown(text: str, longest: int) -> None:
    seen = shown(text, longest, str)
    assert len(seen) <= longest
    seen.encode()
    assert not any(character < " " for character in seen)
