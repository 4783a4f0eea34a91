"""The text of an answer while it is written: whole lines, no secret, and in the end what the answer has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.json_types import replace_lone_surrogates
from responses_mcp.responses_api.response.sources import WrittenText
from responses_mcp.responses_api.response.web_pages import without_markers, without_tracking
from responses_mcp.secrets import Redactor
from tests.growth import Hostile, superlinear
from tests.written_text import in_pieces

KEY = "sk-canary-0123456789abcdef"
REDACT = Redactor([KEY, "Basic abc def"]).known
PIECES = st.lists(
    st.sampled_from(
        [
            *("word ", "two\n", "日本", "語。", "https://a.jp/?q=1&utm_source=openai", " ", ")", "\ue200cite", "\ue202turn0 x"),
            *("\ue201", KEY, KEY[:9], KEY[9:], "é", "\ud83d", "\ude00", "utm_source=openai&b", "http", "\n\n", "。", "x" * 99),
            *("Basic", " abc", " def\n"),
        ]
    ),
    max_size=40,
)  # fmt: skip


def told(deltas: list[str]) -> list[str]:
    pieces: list[str] = []
    written = WrittenText(pieces.append, REDACT)
    for delta in ["", *deltas]:
        written.take(delta)
    assert pieces[:1] == [""]
    return pieces[1:]


@given(PIECES)
def test_what_is_told_is_how_the_whole_text_begins_wherever_it_was_cut(deltas: list[str]) -> None:
    pieces = told(deltas)
    assert all(piece.endswith("\n") for piece in pieces)  # an empty one would say that the answer begins anew
    text = "".join(pieces)
    whole = REDACT(without_tracking(without_markers(REDACT(replace_lone_surrogates("".join(deltas))))))
    assert whole.startswith(text)
    assert "canary" not in text.replace(KEY[:9], "")
    assert "Basic abc def" not in text


def test_a_secret_with_marks_of_the_model_inside_is_not_told() -> None:
    for mark in ("\ue200cite\ue202turn0\ue201", "\ue203"):
        assert told([*f"It is {KEY[:9]}{mark}{KEY[9:]} then. \n"]) == ["It is [redacted] then. \n"]


def test_an_address_with_a_mark_behind_it_is_told_as_the_answer_has_it() -> None:
    deltas = ["See https://a.jp/?utm_source=openai", "\ue200cite", "\ue202a b ", "\ue201", "c d ", "\n"]
    assert told(deltas) == ["See https://a.jp/?utm_source=openaic d \n"]


def test_lines_are_told_as_they_are_finished() -> None:
    assert told(["It ra", "ins.\n\nIn T", "okyo", " too.\n", "More"]) == ["It rains.\n\n", "In Tokyo too.\n"]


def test_an_answer_that_begins_once_more_takes_nothing_along() -> None:
    assert told(["half a wo", "", "new line\n"]) == ["", "new line\n"]


BLOCK = "Sources:\n- https://a.jp/ (2026-11-20)\n\n1. [b](https://b.jp/)\n"


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("block", [BLOCK, BLOCK.replace("Sources:", "## 出典"), f"Source: https://c.jp/\n{BLOCK}"])
def test_from_what_may_be_the_last_block_of_sources_nothing_is_told(block: str, step: int) -> None:
    for behind in ("", "Ask me for more.\n\nOr do not.\n"):
        assert in_pieces(f"It rains.\n\n{block}{behind}", step) == "It rains.\n\n"


def test_a_text_costs_no_more_than_its_length() -> None:
    def work(text: str) -> None:
        in_pieces(text, 20)

    lines = [
        Hostile("Sources:\n", "- https://a.jp/ (2026-11-20)\n", ""),
        Hostile("- ", "x ", "\n"),
        Hostile("", "x\n", ""),
    ]
    assert superlinear(work, lines) is None
