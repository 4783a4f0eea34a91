"""An answer on a terminal while it is written: what is there when, and that in the end it is the whole one."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.ask import WrittenAnswer
from responses_mcp.responses_api.response.sources import WrittenText
from tests.commands.online import Terminal

PROSE = "Python 3.14 came out on 7 October 2025, as its release schedule says.\n\n- 次の項目\n"
FINAL = PROSE + "\nSources:\n- https://a.jp/ (2026-01-01)"


def written(patch: pytest.MonkeyPatch, text: str, cuts: list[int]) -> tuple[WrittenAnswer, Terminal]:
    """Show a text as the API writes it, cut where `cuts` say."""
    terminal = Terminal()
    patch.setattr(sys, "stdout", terminal)
    answer = WrittenAnswer()
    api = WrittenText(answer.take, str)
    api.take("")
    for start, end in pairwise([0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]):
        if start < end:
            api.take(text[start:end])
    return answer, terminal


@pytest.mark.parametrize(
    "raw",
    [
        FINAL,
        f"\n\n{FINAL}\n\n",
        PROSE,
        PROSE.rstrip(),
        PROSE + "\n**Sources:**\n- https://a.jp/",
        PROSE + "\n## 出典\n- https://a.jp/",
        PROSE + "\nSources: https://a.jp/ and more, in a line that is longer than it is known by",
        "",
    ],
)
@given(cuts=st.lists(st.integers(0, 200)))
def test_in_the_end_the_terminal_has_the_whole_answer_once(raw: str, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        answer, screen = written(patch, raw, cuts)
        answer.end(FINAL)
        assert screen.text == FINAL + "\n"


@pytest.mark.parametrize("header", ["Sources:", "## 出典", "<summary>Sources</summary>"])
def test_what_is_known_is_there_before_the_end_and_the_sources_are_not(
    monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    answer, screen = written(monkeypatch, f"{PROSE}{header}\n- https://b.jp/\n", [20, 30])
    assert screen.text == PROSE
    answer.end(FINAL)
    assert "b.jp" not in screen.text


def test_a_text_that_turns_out_another_is_shown_whole_below_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, screen = written(monkeypatch, "Something else.\n\nIt goes on.", [90])
    answer.end(FINAL)
    assert screen.text.endswith(f"\n\n--- the answer in its final form: ---\n\n{FINAL}\n")


def test_an_answer_that_broke_off_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, screen = written(monkeypatch, PROSE, [5])
    answer.take("")
    answer.take(PROSE)
    answer.end(PROSE.rstrip())
    assert screen.text.count("Python 3.14") == 2
    assert screen.text.endswith(f"--- the answer broke off; starting again: ---\n\n{PROSE}")


def test_nothing_in_it_steers_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, screen = written(monkeypatch, "\x1b[2J\x07 gone" + "\n" * 3, [3])
    answer.end("\x1b[2J\x07 gone")
    assert "\x1b" not in screen.text
    assert "\x07" not in screen.text
