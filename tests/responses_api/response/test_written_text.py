"""The text of an answer while it is written: no half of anything, no secret, and in the end what the answer has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.json_types import replace_lone_surrogates
from responses_mcp.responses_api.response.sources import WrittenText
from responses_mcp.responses_api.response.web_pages import without_markers, without_tracking
from responses_mcp.secrets import Redactor
from tests.growth import Hostile, superlinear
from tests.written_text import in_pieces

PROSE = (
    "It is a line that is too long for the header of a block of sources, so each of the texts below may go on in it: "
)
KEY = "sk-canary-0123456789abcdef"
REDACT = Redactor([KEY]).known
PIECES = st.lists(
    st.sampled_from(
        [
            *("word ", "two\n", "日本", "語。", "https://a.jp/?q=1&utm_source=openai", " ", ")", "\ue200cite", "\ue202turn0 x"),
            *("\ue201", KEY, KEY[:9], KEY[9:], "é", "\ud83d", "\ude00", "utm_source=openai&b", "http", "\n\n", "。", "x" * 99),
        ]
    ),
    max_size=40,
)  # fmt: skip


def told(deltas: list[str], *, lines: bool = False) -> list[str]:
    pieces: list[str] = []
    written = WrittenText(pieces.append, REDACT, lines=lines)
    begin = [""] if lines else ["", PROSE]
    for delta in [*begin, *deltas]:
        written.take(delta)
    assert pieces[: len(begin)] == begin
    return pieces[len(begin) :]


@given(PIECES, st.booleans())
def test_what_is_told_is_how_the_whole_text_begins_wherever_it_was_cut(deltas: list[str], lines: bool) -> None:
    pieces = told([each for each in deltas if each], lines=lines)
    assert all(pieces)  # an empty one would say that the answer begins anew
    text = "".join(pieces)
    whole = REDACT(without_tracking(without_markers(REDACT(replace_lone_surrogates("".join(deltas))))))
    assert whole.startswith(text)
    assert "canary" not in text.replace(KEY[:9], "")


def test_a_secret_with_marks_of_the_model_inside_is_not_told() -> None:
    for mark in ("\ue200cite\ue202turn0\ue201", "\ue203"):
        assert "".join(told([*f"It is {KEY[:9]}{mark}{KEY[9:]} then. \n"])) == "It is [redacted] then. \n"


def test_an_address_with_a_mark_behind_it_is_told_as_the_answer_has_it() -> None:
    deltas = ["See https://a.jp/?utm_source=openai", "\ue200cite", "\ue202a b ", "\ue201", "c d ", "\n"]
    assert told(deltas) == ["See ", "https://a.jp/?utm_source=openaic d \n"]
    assert told(["雨です。\ue200cite", " x "]) == ["雨です。"]
    assert told(["\ue200cite x https://a.jp/1\ue201", "日本", " ", "\n"]) == ["日本 \n"]


def test_words_are_told_as_they_are_finished() -> None:
    assert told(["It ra", "ins in T", "okyo."]) == ["It ", "rains in "]
    assert told(["東京は", "雨です。", "See https://a.jp/雨", " x"]) == ["東京は雨です。", "See ", "https://a.jp/雨 "]


def test_a_secret_that_has_blanks_is_held_back_with_its_line() -> None:
    pieces: list[str] = []
    written = WrittenText(pieces.append, Redactor(["Basic abc def"]).known, lines=True)
    for delta in ("", "It is Basic", " abc", " def\n", "More "):
        written.take(delta)
    assert pieces == ["", "It is [redacted]\n"]


def test_an_answer_that_begins_once_more_takes_nothing_along() -> None:
    assert told(["half a wo", "", PROSE, "new word "]) == ["half a ", "", PROSE, "new word "]


@pytest.mark.parametrize("delta", ["x", "é", "\ue200 ", "https://é"])
def test_a_word_without_an_end_costs_no_more_than_its_length(delta: str) -> None:
    def work(text: str) -> None:
        pieces = told(["\ue200https://", *[delta] * len(text)])
        assert sum(map(len, pieces)) < 10

    assert superlinear(work, [Hostile("", "x", "")], shortest=4096) is None  # a word is looked at up to there


BLOCK = "Sources:\n- https://a.jp/ (2026-11-20)\n\n1. [b](https://b.jp/)\n"


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("block", [
    BLOCK, BLOCK.replace("Sources:", "## 出典"), f"Source: https://c.jp/\n{BLOCK}",
    "Sources: [a](https://a.jp/) (2026-11-20), and one more of them in a line that is longer than any header is\n",
])  # fmt: skip
def test_from_what_may_be_the_last_block_of_sources_nothing_is_told(block: str, step: int) -> None:
    for behind in ("", "Ask me for more.\n\nOr do not.\n"):
        assert in_pieces(f"It rains.\n\n{block}{behind}", step) == "It rains.\n\n"


def test_a_block_of_sources_without_an_end_costs_no_more_than_its_length() -> None:
    def work(text: str) -> None:
        assert in_pieces(f"Sources:\n{text}", 20) == ""

    assert superlinear(work, [Hostile("", "- https://a.jp/ (2026-11-20)\n", ""), Hostile("- ", "x ", "")]) is None
