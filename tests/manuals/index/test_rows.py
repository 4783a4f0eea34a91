"""From a file to rows of the index."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.files.documents import document_of
from responses_mcp.manuals.index import rows as module
from responses_mcp.manuals.index.rows import Entry, entries, indexed
from responses_mcp.manuals.words import foldable, normalise
from tests.manuals.indexed import after


def rows(path: str, content: str) -> list[Entry]:
    return list(entries(path, document_of(path, content.encode(), unchecked), unchecked))


def test_markdown_has_a_row_a_section_with_its_place_and_what_is_above_it() -> None:
    assert rows("a.md", "# Ａ\n\nText ONE\n## B\n\ntwo\n") == [
        Entry(1, "Ａ", "", "text one", ""),
        Entry(4, "B", "Ａ", "two", ""),
    ]


def test_json_has_rows_of_its_text_under_its_name() -> None:
    assert rows("x/a.json", '{"a": "B"}') == [Entry(1, "a.json", "", '{"a": "b"}', "")]
    assert rows("a.json", "") == [Entry(1, "a.json", "", "", "")]


def test_a_row_has_the_parts_of_the_names_in_its_title_and_text() -> None:
    [row] = rows("a.md", "# HTTPServer\n\ngetElementById, 0x80070005 and plain Words\n")
    assert row.names.split() == ["http", "server", "get", "element", "by", "id", "80070005"]


@pytest.mark.parametrize("text", ["設定", "😀 ok", "a\\u", "é"])
def test_json_is_searched_for_the_characters_that_it_writes_as_numbers(text) -> None:
    [row] = rows("a.json", json.dumps({"a": text}))
    assert foldable(normalise(text.replace("\\", " "))) in row.body


def test_half_a_character_in_json_does_no_harm() -> None:
    [row] = rows("a.json", r'{"a": "\ud83d", "b": "\ude00x"}')
    assert row.body.encode()


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what sets how many characters a row may have."""
    return lambda most: monkeypatch.setattr(module, "_LONGEST_BODY", most)


@given(st.text("ab \n", max_size=200), st.integers(1, 20))
def test_rows_have_all_the_text_and_tell_the_line_they_begin_on(longest, text, most) -> None:
    longest(most)
    found = rows("a.json", text)
    assert "".join("".join(row.body.split()) for row in found) == "".join(text.split())
    lines = [row.line for row in found]
    assert lines == sorted(lines)
    assert lines[0] == 1
    assert lines[-1] <= text.count("\n") + 1
    assert all(len(row.body) <= most for row in found)


def test_a_long_section_has_several_rows_on_its_line() -> None:
    found = rows("a.md", "# A\n" + "word " * 16_000)
    assert {(row.line, row.title) for row in found} == {(1, "A")}
    assert len(found) > 4
    assert sum(row.body.count("word") for row in found) == 16_000


def test_breadcrumbs_are_cut_at_the_far_end() -> None:
    deep = "".join(f"{'#' * level} {level}{'h' * 290}\n" for level in range(1, 6)) + "###### x\n"
    crumbs = rows("a.md", deep)[-1].crumbs
    assert len(crumbs) <= 400
    assert crumbs.endswith("5" + "h" * 290)


def test_the_index_is_given_title_place_and_text_as_words() -> None:
    given = indexed("x/設定.md", "Ｔitle", "A > B", "本体 text", "get element")
    title, place, text, _ = (set(each.split()) for each in given)
    assert (title, place >= {"a", ">", "b", "x/", "設定"}, text >= {"本体", "text"}) == ({"title"}, True, True)
    assert (
        indexed("x/設定.md", "Ｔitle", "A > B", "本体 text", "get element") == given
    )  # or the row could not be deleted


@pytest.mark.parametrize("content", ["# a\n" * 5000, "x" * 10**6, "x\n" * 500_000])
@pytest.mark.parametrize("path", ["a.md", "a.json"])
def test_a_large_file_is_stopped_on_the_way(path, content) -> None:
    with pytest.raises(OutOfTime):
        document_of(path, content.encode(), after(2))
    document = document_of(path, content.encode(), unchecked)
    with pytest.raises(OutOfTime):
        list(entries(path, document, after(0)))
