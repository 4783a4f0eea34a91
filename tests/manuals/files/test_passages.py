"""The place of a match in a file: found by folded words, told in characters and lines of the text as it is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.files import passages as module
from responses_mcp.manuals.files import texts
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.passages import Passage, Wanted, passages
from responses_mcp.manuals.words import normalise
from tests.manuals.indexed import after

FILLER = "Nothing of note happens on this line.\n"


def look(
    root: Path, text: str, words: Mapping[str, int], *, line: int = 1, title: str = "A", path: str = "a.md"
) -> Passage | None:
    file = root / "m" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    found: list[Passage | None] = [None]
    passages(Folder(root), [Wanted("m", path, line, title, words)], found, unchecked)
    return found[0]


def seen(root: Path, text: str, *words: str, **more: Any) -> Passage:
    found = look(root, text, dict.fromkeys(map(normalise, words), 1), **more)
    assert found is not None
    return found


def marked(passage: Passage) -> str:
    snippet = passage.snippet
    return snippet.text[snippet.begin : snippet.end]


def test_the_place_is_where_most_of_the_words_stand_together(tmp_path: Path) -> None:
    text = f"# A\n\nA pump.\n{FILLER * 100}Dry is dry.\n{FILLER * 100}The pump runs dry.\n{FILLER * 100}A pump.\n"
    found = seen(tmp_path, text, "pump", "dry")
    assert found.match_line == text[: text.index("The pump")].count("\n") + 1
    assert marked(found) == "pump runs dry"


def test_a_rare_word_decides_against_common_ones(tmp_path: Path) -> None:
    text = f"# A\n\n{'pump dry ' * 5}\n{FILLER * 100}The impeller.\n"
    found = look(tmp_path, text, {"impeller": 1, "pump": 900})
    assert found is not None
    assert marked(found) == "impeller"


def test_a_word_of_its_own_goes_before_a_part_of_one_and_a_part_before_nothing(tmp_path: Path) -> None:
    assert marked(seen(tmp_path, "# A\n\nA pumpkin and a pump.\n", "pump")) == "pump"
    assert seen(tmp_path, "# A\n\nA pumpkin and a pump.\n", "pump").snippet.begin > 10
    assert marked(seen(tmp_path, "# A\n\nOnly a pumpkin.\n", "pump")) == "pump"
    assert marked(seen(tmp_path, "# A\n\nこのpumpを使う。\n", "pump")) == "pump"


def test_forms_of_one_word_count_once(tmp_path: Path) -> None:
    text = f"# A\n\nLog logs logged logging.\n{FILLER * 100}Rotate the logs.\n"
    assert marked(seen(tmp_path, text, "log", "logs", "logged", "rotate")) == "Rotate the logs"


def test_of_the_forms_of_a_word_the_first_is_the_place_and_not_the_shortest(tmp_path: Path) -> None:
    text = f"# A\n\nSettings are written into a file.\n{FILLER * 100}A setting sun.\n{FILLER * 2}"
    found = seen(tmp_path, text, "setting", "settings")
    assert (found.match_line, marked(found)) == (3, "Settings")


@pytest.mark.parametrize(
    ("written", "word"),
    [("ＰＵＭＰ", "pump"), ("ﾎﾟﾝﾌﾟ", "ポンプ"), ("ポンプ", "ポンプ"), ("Straße", "strasse"), ("ﬁlter", "filter"),
     ("co\u00adop", "coop"), ("e\u0301tude", "étude"), ("か\u3099く", "がく"), ("e‐mail", "e-mail"), ("㍿", "株式会社")],
)  # fmt: skip
def test_a_word_is_found_as_it_is_written(tmp_path: Path, written: str, word: str) -> None:
    text = f"# A\n\n{'ﾎﾞﾙﾄ と ナット㌔。' * 400}\n\n{written} here\n"
    found = seen(tmp_path, text, word)
    assert found.match_line == 5
    assert marked(found) == normalise(written) if written == "co\u00adop" else marked(found) == written


def test_a_section_ends_before_the_next_heading_and_has_those_above_it(tmp_path: Path) -> None:
    text = "# A\n\none\n\n## B\n\ntwo\n\n### C\n\nthree pumps\n\n# D\n\npump\n"
    found = seen(tmp_path, text, "pump", line=5, title="B")
    assert (found.above, found.snippet.text) == ("A", "two")
    assert seen(tmp_path, text, "pumps", line=9, title="C").above == "A > B"
    assert seen(tmp_path, text, "pump", line=13, title="D").above == ""


@pytest.mark.parametrize(("line", "title"), [(2, "A"), (1, "B"), (9, "A")])
def test_of_what_is_no_such_section_nothing_is_said(tmp_path: Path, line: int, title: str) -> None:
    assert look(tmp_path, "# A\n\npump\n", {"pump": 1}, line=line, title=title) is None


def test_of_what_is_no_such_file_nothing_is_said_and_the_others_are_looked_at(tmp_path: Path) -> None:
    seen(tmp_path, "# A\n\npump\n", "pump")
    wanted = [Wanted("m", path, 1, "A", {"pump": 1}) for path in ("gone.md", "a.md", "../x.md")]
    found: list[Passage | None] = [None] * 3
    passages(Folder(tmp_path), wanted, found, unchecked)
    assert [each is None for each in found] == [True, False, True]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Boiler\n\n## Fire\n\nLight it.\n\n## Gas\n\nClose it.\n\n# Other\n\nNo.\n", "Light it"),
        ("# Boiler\n## Fire\n### Pilot\nLight it.\n# Other\nNo.\n", "Light it"),
        ("# Boiler\n## Fire\nLight it.\n", "Light it"),
        ("# Boiler\n\n# Other\n\nNo.\n", ""),
        ("# Boiler\n", ""),
    ],
)
def test_of_a_heading_with_nothing_but_headings_under_it_these_are_shown(tmp_path: Path, text: str, shown: str) -> None:
    snippet = seen(tmp_path, text, "boiler", title="Boiler").snippet.text
    assert shown in snippet
    assert bool(snippet) == bool(shown)
    assert "No." not in snippet


def test_many_sections_of_one_file_are_found_in_one_reading(tmp_path: Path) -> None:
    text = "".join(f"# T{number}\n\npump {number}\n" for number in range(50))
    seen(tmp_path, text, "pump", title="T0")
    wanted = [Wanted("m", "a.md", 3 * number + 1, f"T{number}", {"pump": 1}) for number in reversed(range(50))]
    found: list[Passage | None] = [None] * 50
    passages(Folder(tmp_path), wanted, found, unchecked)
    assert [each and each.snippet.text for each in found] == [f"pump {number}" for number in reversed(range(50))]


def test_half_a_character_in_json_is_not_shown(tmp_path: Path) -> None:
    assert (
        seen(tmp_path, r'{"a": "\ud83d pump \ude00"}', "pump", path="a.json").snippet.text
        == '{"a": "\ufffd pump \ufffd"}'
    )


def test_a_row_of_json_is_looked_for_from_its_line_on(tmp_path: Path) -> None:
    text = json.dumps([{"pump": number} for number in range(4000)], indent=1)
    found = seen(tmp_path, text, "pump", line=3001, path="a.json")
    assert found.match_line is not None
    assert 3001 <= found.match_line < 3010
    assert look(tmp_path, text, {"pump": 1}, line=10**6, path="a.json") is None


@given(
    st.lists(st.sampled_from(["a ", "é", "ﾎﾞ", "㌔", "\n", "か\u3099", "ー", "\\u8a2d", "\\ud83d\\ude00", "😀", "x" * 300]), max_size=80),
    st.sampled_from(["歯車", "impeller"]),
    st.integers(0, 79),
    st.tuples(st.sampled_from(["a.md", "a.json"]), st.integers(50, 900)),
)  # fmt: skip
def test_a_word_is_found_wherever_pieces_of_the_text_end(
    tmp_path: Path, pieces: list[str], word: str, at: int, file: tuple[str, int]
) -> None:
    path, size = file
    head = "# A\n" if path == "a.md" else ""
    text = head + "".join(pieces[:at]) + f" {word} " + "".join(pieces[at:])
    place = text.index(word)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "_SIZE", size)
        patch.setattr(module, "_LONG", 0)
        patch.setattr(module, "_LONG_LINE", -1)
        found = seen(tmp_path, text, word, path=path)
    assert found.match_line == text.count("\n", 0, place) + 1
    assert found.char_offset is not None
    assert max(place - 111, 0) <= found.char_offset <= max(place - 100, len(head))
    assert marked(found) == word


def test_looking_ends_when_it_is_told_to(tmp_path: Path) -> None:
    seen(tmp_path, f"# A\n\n{FILLER * 50_000}pump\n", "pump")
    for calls in range(12):
        with pytest.raises(OutOfTime):
            passages(Folder(tmp_path), [Wanted("m", "a.md", 1, "A", {"pump": 1})], [None], after(calls))


def test_a_large_file_takes_the_time_of_no_smaller_one(tmp_path: Path) -> None:
    seen(tmp_path, f"# A\n\n{FILLER * 50_000}pump\n", "pump", path="large.md")
    seen(tmp_path, "# A\n\nThe pump.\n", "pump", path="small.md")
    wanted = [Wanted("m", f"{name}.md", 1, "A", {"pump": 1}) for name in ("large", "small")]
    found: list[Passage | None] = [None, None]
    with pytest.raises(OutOfTime):
        passages(Folder(tmp_path), wanted, found, after(10))
    assert [each is not None for each in found] == [False, True]
