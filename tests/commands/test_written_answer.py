"""An answer on a terminal while it is written: what is there when, and that in the end it is the whole one."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.terminal import columns, for_reading
from responses_mcp.commands.written_answer import WrittenAnswer
from responses_mcp.responses_api.response.sources import WrittenText
from tests.commands.online import Terminal

PROSE = "Python 3.14 came out on 7 October 2025, as its release schedule says.\n\n"
ITEMS = "- a point that is long enough to be broken twice, as I think it should be\n- 次の項目\n"
BLOCK = "\nSources:\n- https://a.jp/ (2026-01-01)"
FINAL = PROSE + ITEMS + BLOCK
CODE = "```\n" + "x " * 40 + "\n```\n| " + "cell | " * 20 + "\n" + "長い 文 " * 20 + "end"


def narrow_screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    return terminal


def write(text: str, cuts: list[int]) -> WrittenAnswer:
    """Take a text as the API writes it, cut where `cuts` say."""
    written = WrittenAnswer()
    api = WrittenText(written.take, str)
    api.take("")
    for start, end in pairwise([0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]):
        if start < end:
            api.take(text[start:end])
    return written


@pytest.mark.parametrize(
    "raw",
    [
        FINAL,
        f"\n\n{FINAL}\n\n",
        PROSE + ITEMS,
        PROSE + ITEMS.rstrip(),
        PROSE + ITEMS + "\n**Sources:**\n- https://a.jp/",
        PROSE + ITEMS + "\n## 出典\n- https://a.jp/",
        PROSE + ITEMS + "\nSources: https://a.jp/ and more, in a line that is longer than it is known by",
        "",
    ],
)
def test_in_the_end_the_terminal_has_the_whole_answer_once(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    screen = narrow_screen(monkeypatch)
    write(raw, list(range(0, 200, 7))).end(FINAL)
    assert screen.text == for_reading(FINAL)


@pytest.mark.parametrize("header", ["Sources:", "## 出典", "<summary>Sources</summary>"])
def test_what_is_known_is_there_before_the_end_and_the_sources_are_not(
    monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    screen = narrow_screen(monkeypatch)
    written = write(f"{PROSE}{header}\n- https://b.jp/\n", [20, 30])
    assert screen.text == for_reading(PROSE)[:-1]
    written.end(FINAL)
    assert "b.jp" not in screen.text


@given(st.lists(st.integers(0, 500)))
def test_code_and_tables_stay_as_they_are_and_japanese_is_wrapped_wherever_the_text_was_cut(cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        terminal = narrow_screen(patch)
        write(CODE, cuts).end(CODE)
        code, _, prose = CODE.rpartition("\n")
        shown = terminal.text
        assert shown.startswith(f"{code}\n")
        lines = shown.removeprefix(f"{code}\n").splitlines()
        assert " ".join(lines) == prose
        assert max(map(columns, lines)) <= 40


def test_a_text_that_turns_out_another_is_shown_whole_below_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = narrow_screen(monkeypatch)
    write(
        "Something else, in a line that is long enough to be shown before it has an end, as no header is. ", [90]
    ).end(FINAL)
    assert screen.text.endswith("\n\n--- in its final form: ---\n\n" + for_reading(FINAL))


def test_an_answer_that_broke_off_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = narrow_screen(monkeypatch)
    written = write(PROSE, [5])
    written.take("")
    written.take(PROSE)
    written.end(PROSE.rstrip())
    assert screen.text.count("Python 3.14") == 2
    assert screen.text.endswith(for_reading(PROSE)[:-1])
    assert "--- it broke off; once more: ---" in screen.text


def test_nothing_in_it_steers_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = narrow_screen(monkeypatch)
    write("\x1b[2J\x07 gone" + "\n" * 3, [3]).end("\x1b[2J\x07 gone")
    assert "\x1b" not in screen.text
    assert "\x07" not in screen.text
