"""What of a section is embedded, and what that costs."""

import pytest

from responses_mcp.manuals.embeddings.pieces import MOST_PIECES, PIECE, Outstanding, Section, outstanding


def test_a_short_section_is_one_text_with_its_title_and_the_headings_above() -> None:
    assert Section(1, "Rotation", "Guide > Keys", "rotate monthly.").texts == [
        "Guide > Keys > Rotation\nrotate monthly."
    ]


def test_a_section_without_text_or_title_still_has_a_text() -> None:
    assert Section(1, "", "", "").texts == ["\n"]


def test_a_long_section_is_cut_into_pieces_of_which_the_first_few_count() -> None:
    texts = Section(1, "T" * 1000, "", "x" * (PIECE * MOST_PIECES + 1)).texts
    assert [len(text) for text in texts] == [200 + 1 + PIECE] * MOST_PIECES


def test_tokens_are_a_quarter_of_an_alphabet_and_all_of_japanese() -> None:
    text = "abcd" * 10 + "鍵の更新"
    assert outstanding(1, len(text), len(text.encode()), 0) == Outstanding(1, 14, 0)


@pytest.mark.parametrize(("model", "cost"), [("text-embedding-3-small", 0.02), ("nomic-embed-text", None)])
def test_the_cost_is_told_where_the_price_is_known(model: str, cost: float | None) -> None:
    assert Outstanding(10, 1_000_000, 0).dollars(model) == cost
