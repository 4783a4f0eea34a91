"""From a file to rows of the index."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.files.documents import document_of
from responses_mcp.manuals.index import rows as module
from responses_mcp.manuals.index.rows import Entry, entries
from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.words import prepared
from tests.manuals.indexed import after


def rows(path: str, content: str) -> list[Entry]:
    return list(entries(path, document_of(path, content.encode(), unchecked), unchecked))


def test_markdown_has_a_row_a_section_with_its_place_and_what_is_above_it() -> None:
    content = "# Ａ\n\nText ONE\n## B\n\ntwo\n"
    found = rows("x/a.md", content)
    assert [(row.line, row.title, row.crumbs, row.text) for row in found] == [
        (1, "Ａ", "", "Text ONE"),
        (4, "B", "Ａ", "two"),
    ]
    assert [(row.title_tokens, row.above_tokens, row.text_tokens) for row in found] == [
        ("a", "x a", "text one"),
        ("b", "a x a", "two"),
    ]
    for row in found:
        assert content[row.begin :].startswith(row.text)
        assert content[: row.begin].count("\n") + 1 == row.text_line
        assert row.length == len(row.text)


def test_front_matter_is_found_by_and_is_no_text_of_the_section() -> None:
    content = "---\ntitle: Lamps\ntags: brass\n---\nBefore.\n# One\nText.\n"
    preamble, one = rows("a.md", content)
    assert "brass" in preamble.text_tokens.split()
    assert (preamble.text, preamble.text_line, one.text_line) == ("Before.", 5, 7)
    assert content[preamble.begin :].startswith("Before.")


def test_json_has_rows_of_its_text_as_written_under_its_name() -> None:
    [row] = rows("x/a.json", '{"a": "B"}')
    assert (row.line, row.title, row.text, row.text_tokens) == (1, "a.json", '{"a": "B"}', "a b")
    assert [row.text for row in rows("a.json", "")] == [""]


@pytest.mark.parametrize("text", ["設定", "😀 ok", "a\\u", "é"])
def test_json_is_searched_for_the_characters_that_it_writes_as_numbers(text) -> None:
    [row] = rows("a.json", json.dumps({"a": text}))
    assert row.text_tokens.split() == ["a", *tokens(prepared(text.replace("\\", " "))).split()]


def test_half_a_character_in_json_does_no_harm() -> None:
    [row] = rows("a.json", r'{"a": "\ud83d", "b": "\ude00x"}')
    assert row.text_tokens.encode()


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what sets how many characters a row may have."""
    return lambda most: monkeypatch.setattr(module, "_LONGEST_TEXT", most)


@given(st.text("ab \n", max_size=200), st.integers(1, 20))
def test_rows_have_all_the_text_and_tell_the_line_they_begin_on(longest, text, most) -> None:
    longest(most)
    found = rows("a.json", text)
    assert "".join("".join(row.text.split()) for row in found) == "".join(text.split())
    assert all(text[row.begin :].startswith(row.text) for row in found)
    lines = [row.line for row in found]
    assert lines == sorted(lines)
    assert lines[0] == 1
    assert lines[-1] <= text.count("\n") + 1
    assert all(row.length <= most for row in found)


def test_a_long_section_has_several_rows_on_its_line() -> None:
    found = rows("a.md", "# A\n" + "word " * 16_000)
    assert {(row.line, row.title) for row in found} == {(1, "A")}
    assert len(found) > 4
    assert sum(row.text.count("word") for row in found) == 16_000


def test_breadcrumbs_are_cut_at_the_far_end() -> None:
    deep = "".join(f"{'#' * level} {level}{'h' * 290}\n" for level in range(1, 6)) + "###### x\n"
    crumbs = rows("a.md", deep)[-1].crumbs
    assert len(crumbs) <= 400
    assert crumbs.endswith("5" + "h" * 290)


@pytest.mark.parametrize("content", ["# a\n" * 5000, "x" * 10**6, "x\n" * 500_000])
@pytest.mark.parametrize("path", ["a.md", "a.json"])
def test_a_large_file_is_stopped_on_the_way(path, content) -> None:
    with pytest.raises(OutOfTime):
        document_of(path, content.encode(), after(0))
    document = document_of(path, content.encode(), unchecked)
    with pytest.raises(OutOfTime):
        list(entries(path, document, after(0)))
