"""Snippets: what is shown around a place, and where it is cut."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.files.snippets import LONGEST, Snippet, around

PIECES = st.lists(
    st.sampled_from(["word ", "pump", " ", "\n", "文章。", "設定、", "か\u3099", "é", "e\u0301", "😀", "\x1b", "\u202e", "\u2028", "…", "\ud800"]),
    max_size=60,
).map("".join)  # fmt: skip


def shown(before: str, match: str, after: str, most: int = LONGEST) -> str:
    return around(before, match, after, most).text


def test_a_short_text_is_shown_whole_on_one_line() -> None:
    assert around("A pump\n\nmay run ", "dry", "\tfor ten\r\nseconds.\n") == Snippet(
        "A pump may run dry for ten seconds.", 15, 18
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("one two three four five six ", " seven eight nine ten eleven", "…six DRY seven eight nine…"),
        (
            "長い前置きが続きます。次の文で",
            "を説明します。そして後置きが長く続きます。",
            "…次の文でDRYを説明します。そして後置きが長く続きま…",
        ),
        ("", " seven eight nine ten eleven twelve", "DRY seven eight nine ten…"),
        ("one two three four five six seven ", "", "…four five six seven DRY"),
        ("x" * 50, "y" * 50, "…xxxxxxxDRYyyyyyyyyyyyyyyyy…"),
    ],
)
def test_what_is_cut_is_cut_between_words_or_sentences(before: str, after: str, expected: str) -> None:
    assert shown(before, "DRY", after, 28) == expected


@given(PIECES, PIECES, PIECES, st.integers(0, 200))
def test_any_text_becomes_one_line_of_no_more_than_it_may_have(before: str, match: str, after: str, most: int) -> None:
    found = around(before, match, after, most)
    assert len(found.text) <= most
    assert 0 <= found.begin <= found.end <= len(found.text)
    assert not any(
        unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in found.text.replace("\u200d", "")
    )
    shorter = found.cut(most // 2)
    assert len(shorter.text) <= most // 2


@pytest.mark.parametrize("most", range(2, 70))
def test_a_match_that_is_longer_than_may_be_shown_is_cut_and_nothing_follows_it(most: int) -> None:
    match = "the settings of the family 👩‍👩‍👧‍👦 plan and of the others in the house"
    found = around("network ", match, ", and applications", most)
    if most < len(match):
        assert found.text.endswith("…")
        assert match.startswith(found.text.removesuffix("…"))


@given(PIECES, st.sampled_from(["dry", "乾燥", "が"]), PIECES)
def test_the_match_is_in_it_and_marks_stay_with_their_letters(before: str, match: str, after: str) -> None:
    found = around(before, match, after, 40)
    assert found.text[found.begin : found.end].strip() == match
    inner = found.text.strip("…")
    cut_at_start = found.text.startswith("…") and not before.lstrip().startswith("…")
    assert not (cut_at_start and inner and unicodedata.category(inner[0]).startswith("M"))


@pytest.mark.parametrize("cluster", ["ｶ\uff9e", "👩\u200d💻", "👍🏽", "👩🏽\u200d🔬"])
@pytest.mark.parametrize("most", range(20, 40))
def test_emoji_of_several_characters_are_shown_whole(cluster: str, most: int) -> None:
    found = around(f"x{cluster}" * 30, "dry", f"{cluster}y" * 30, most)
    rest = found.text.replace(cluster, "")
    assert set(rest) <= set("xydr…")
    assert cluster in found.text
