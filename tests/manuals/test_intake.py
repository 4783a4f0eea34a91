"""From a file to rows of the index."""

import io
import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals import intake
from responses_mcp.manuals.checks import OutOfTime, unchecked
from responses_mcp.manuals.intake import Entry, Hashed, entries, indexed
from responses_mcp.manuals.words import foldable, normalise
from tests.manuals.indexed import after

LONGEST = intake._LONGEST_BODY


class File(io.BytesIO):
    name = "a.md"


def rows(path: str, content: bytes | str, *, largest: int = 10**9) -> list[Entry]:
    content = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return list(entries(path, Hashed(File(content), largest), unchecked))


def words_of(found: list[Entry]) -> str:
    return " ".join(" ".join(entry.body for entry in found).split())


def test_markdown_has_a_row_a_section_with_its_place_and_what_is_above_it() -> None:
    assert rows("a.md", "# Ａ\n\nText ONE\n## B\n\ntwo\n") == [
        Entry(1, "Ａ", "", "text one"),
        Entry(4, "B", "Ａ", "two"),
    ]


def test_json_has_rows_of_its_text_under_its_name() -> None:
    assert rows("x/a.json", '{"a": "B"}') == [Entry(1, "a.json", "", '{"a": "b"}')]
    assert rows("a.json", "") == [Entry(1, "a.json", "", "")]


@pytest.mark.parametrize("text", ["設定", "😀 ok", "a\\u", "é"])
def test_json_is_searched_for_the_characters_that_it_writes_as_numbers(text) -> None:
    [row] = rows("a.json", json.dumps({"a": text}))
    assert foldable(normalise(text)).replace("\\", "") in row.body.replace("\\", "")


def test_half_a_character_in_json_does_no_harm() -> None:
    [row] = rows("a.json", r'{"a": "\ud83d", "b": "\ude00x"}')
    assert row.body.encode()


@given(st.text("aé設😀\n \\u{}0", max_size=60), st.integers(1, 7), st.integers(2, 9))
def test_json_is_the_same_in_whatever_pieces_it_is_read(text, piece, longest) -> None:
    written = json.dumps(text)
    pieces = [written[at : at + piece] for at in range(0, len(written), piece)]
    assert "".join(intake._unescaped(pieces)) == "".join(intake._unescaped([written]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "_LONGEST_BODY", longest)
        cut = list(intake._parts(intake._unescaped(pieces), unchecked))
        assert cut == list(intake._parts(intake._unescaped([written]), unchecked))
    assert all(part.encode() is not None and len(part) <= 18 * longest for _, part in cut)


@given(st.text("ab \n", max_size=200), st.integers(1, 20))
def test_parts_have_all_the_text_and_tell_the_line_they_begin_on(text, longest) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "_LONGEST_BODY", longest)
        parts = list(intake._parts([text], unchecked))
    assert "".join("".join(part.split()) for _, part in parts) == "".join(text.split())
    numbers = [line for line, _ in parts]
    assert numbers == sorted(numbers)
    assert numbers[0] == 1
    assert numbers[-1] <= text.count("\n") + 1
    assert all(len(part) <= longest for _, part in parts)


def test_a_long_section_has_several_rows_on_its_line() -> None:
    found = rows("a.md", "# A\n" + "word " * LONGEST)
    assert {(row.line, row.title) for row in found} == {(1, "A")}
    assert len(found) > 4
    assert sum(row.body.count("word") for row in found) == LONGEST


def test_breadcrumbs_are_cut_at_the_far_end() -> None:
    deep = "".join(f"{'#' * level} {level}{'h' * 290}\n" for level in range(1, 6)) + "###### x\n"
    crumbs = rows("a.md", deep)[-1].crumbs
    assert len(crumbs) <= 400
    assert crumbs.endswith("5" + "h" * 290)


def test_the_index_is_given_title_place_and_text_as_words() -> None:
    given = indexed("x/設定.md", "Ｔitle", "A > B", "本体 text")
    title, place, text = (set(each.split()) for each in given)
    assert (title, place >= {"a", ">", "b", "x/", "設定"}, text >= {"本体", "text"}) == ({"title"}, True, True)
    assert indexed("x/設定.md", "Ｔitle", "A > B", "本体 text") == given  # or the row could not be deleted


def test_a_file_ends_at_the_limit_and_its_digest_tells_what_was_read() -> None:
    assert rows("a.md", "0123456789", largest=4)[0].body == "0123"
    long, short = Hashed(File(b"0123456789"), 4), Hashed(File(b"0123"), 100)
    assert long.digest_of_all(unchecked) == short.digest_of_all(unchecked)
    assert Hashed(File(b"0124"), 4).digest_of_all(unchecked) != short.digest()


@pytest.mark.parametrize("content", ["# a\n" * 5000, "x" * 10**6, "x\n" * 500_000])
@pytest.mark.parametrize("path", ["a.md", "a.json"])
def test_a_large_file_is_stopped_on_the_way(path, content) -> None:
    with pytest.raises(OutOfTime):
        list(entries(path, Hashed(cast("Any", File(content.encode())), 10**9), after(2)))
    with pytest.raises(OutOfTime):
        Hashed(cast("Any", File(content.encode())), 10**9).digest_of_all(after(0))
