"""Whether two URLs mean one page, and text as a reader sees it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response.web_pages import host_of, page_key, shown

PAGE = "https://example.com/a/b?x=1&y=2"


@pytest.mark.parametrize(
    "other",
    [
        "http://example.com/a/b?x=1&y=2",
        "HTTPS://EXAMPLE.com/a/b?x=1&y=2",
        "https://example.com./a/b?x=1&y=2",
        "https://example.com:443/a/b?x=1&y=2",
        "http://example.com:80/a/b?x=1&y=2",
        "https://example.com/a/b/?x=1&y=2",
        "https://example.com/a/b?x=1&y=2#top",
        "https://example.com/a/b?x=1&y=2&utm_source=openai",
        "https://example.com/a/b?utm_source=chatgpt.com&x=1&utm_medium=m&y=2&gclid=3&fbclid=4",
        "https://example.com/%61/b?x=1&y=2",
        "https://example.com/a/b?x=1&&y=2",
    ],
)
def test_spellings_of_one_page_are_one_page(other: str) -> None:
    assert page_key(other) == page_key(PAGE)


@pytest.mark.parametrize(
    "other",
    [
        "https://example.org/a/b?x=1&y=2",
        "https://www.example.com/a/b?x=1&y=2",
        "https://example.com:8443/a/b?x=1&y=2",
        "https://example.com/a/B?x=1&y=2",
        "https://example.com/a?x=1&y=2",
        "https://example.com/a/b?x=1",
        "https://example.com/a/b?x=1&y=3",
        "https://example.com/a%2Fb?x=1&y=2",
    ],
)
def test_other_pages_are_other_pages(other: str) -> None:
    assert page_key(other) is not None
    assert page_key(other) != page_key(PAGE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://日本語.jp/", "https://xn--wgv71a119e.jp"),
        ("https://example.jp/日本", "https://example.jp/%e6%97%a5%E6%9C%AC"),
        ("https://example.jp/?q=あ", "https://example.jp?q=%E3%81%82"),
        ("https://example.jp/~me", "https://example.jp/%7Eme/"),
    ],
)
def test_international_names_and_paths_are_compared_in_one_spelling(one: str, other: str) -> None:
    assert page_key(one) == page_key(other) is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "example.com", "//example.com/", "ftp://example.com/", "javascript:alert(1)", "data:text/html,x", "https://",
        "https:///a", "https://example.com:99999/", "https://example.com:x/", "https://[::1/", "https://a b.com/",
        "https://example.com/a b", "https://example.com/\n", "https://example.com/\x00", "https://example.com/\u202e",
        "https://good.com@evil.com/", "https://evil.com\\@good.com/", "https://example.com/<b>", 'https://example.com/"',
        "https://example.com/" + "a" * 5000, "https://" + "あ" * 300 + ".jp/", "oai-weather",
        "https://.", "HTTP://./a", "https://。/", "https://..:80/",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_page_has_no_key(text: str) -> None:
    assert page_key(text) is None


@given(st.text(max_size=60) | st.from_regex(r"https?://[^\s]{1,40}", fullmatch=True))
def test_any_text_has_a_key_with_a_host_or_none(text: str) -> None:
    key = page_key(text)
    assert key is None or (host_of(text) and not key.startswith(("/", "?", ":")))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("  two\n words\t", "two words"),
        ("a\x00b\x1b[31mc\x7f\x85d", "abc d"),
        ("<b>1 & 2</b>", "<b>1 & 2</b>"),
        ("vector<int> &amp; a < b", "vector<int> &amp; a < b"),
        ("a\u202eb\ufeffc\U000e0041", "abc"),
        ("said \ue200cite\ue202turn0search0\ue201.", "said ."),
        ("It is out. ([python.org](https://python.org/a_(b)?utm_source=openai))", "It is out."),
        ("Two. ([a.jp](https://a.jp), [b.jp](https://b.jp))", "Two."),
        ("See [the page](https://a.jp/) there.", "See the page there."),
        ("array[0](x", "array[0](x"),
        ("half \ud83d", "half \ufffd"),
        ("👩‍👩‍👧 日本", "👩‍👩‍👧 日本"),
        ("", ""),
    ],
)
def test_text_is_shown_on_one_line_without_marks_and_without_what_cannot_be_seen(text: str, seen: str) -> None:
    assert shown(text, 100, str) == seen


def test_long_text_is_cut_with_a_sign() -> None:
    assert shown("word " * 100, 12, str) == "word word w…"
    assert shown("x" * 12, 12, str) == "x" * 12


@given(st.text(), st.integers(1, 20))
def test_any_text_can_be_shown(text: str, longest: int) -> None:
    seen = shown(text, longest, str)
    assert len(seen) <= longest
    seen.encode()
    assert not any(character < " " for character in seen)
