"""What commands print on a terminal: lines fit it, and what is copied stays whole; a pipe gets lines as they are."""

import contextlib
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp import cli
from responses_mcp.commands.terminal import columns, remark, say
from responses_mcp.testing import Error, FakeApi
from tests.commands.online import Command, Terminal, api, command

__all__ = ["api", "command"]

URL = "https://example.com/a/very/long/address?of=a-page"
COMMAND = "openai-responses-mcp manuals read 'my guide/a.md:57' --root /hb"


def on_terminal(patch: pytest.MonkeyPatch, write: Callable[[], object], width: int) -> str:
    """Return what is written to a terminal of that width."""
    terminal = Terminal()
    for name in ("stdout", "stderr"):
        patch.setattr(sys, name, terminal)
    patch.setenv("COLUMNS", str(width))
    write()
    return terminal.text


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("one two three four five six seven", ["one two three four five six", "seven"]),
        ("  3. one two three four five six seven", ["  3. one two three four five", "     six seven"]),
        ("   - one two three four five six seven", ["   - one two three four five", "     six seven"]),
        (f"See {URL} for more about it.", ["See", URL, "for more about it."]),
        (f"Read it: {COMMAND}", ["Read it:", COMMAND]),
        (f'Run "{COMMAND}" again, here.', ["Run", f'"{COMMAND}"', "again, here."]),
        (
            "Pass it (openai-responses-mcp install codex --write), or",
            ["Pass it", "(openai-responses-mcp install codex --write),", "or"],
        ),
        ("`export A_LONG_NAME=…` in your shell, then", ["`export A_LONG_NAME=…` in your", "shell, then"]),
        (
            "点検は毎月、はじめの日に行うことになっている。次は",
            ["点検は毎月、はじめの日に行うこ", "とになっている。次は"],
        ),
        ("A folder is /手引き/設備の点検/予備電源の点検.md", ["A folder is", "/手引き/設備の点検/予備電源の点検.md"]),
    ],
)
def test_a_line_is_broken_between_words_and_never_in_what_is_copied(
    monkeypatch: pytest.MonkeyPatch, line: str, shown: list[str]
) -> None:
    for write in (say, remark):
        assert on_terminal(monkeypatch, partial(write, line), 30).splitlines() == shown


def test_a_path_with_blanks_that_the_environment_names_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path("/home/ann/my own manuals").absolute())
    monkeypatch.setenv("MANUALS_ROOT", root)
    shown = on_terminal(monkeypatch, lambda: remark(f"It is kept in {root}/the guide, and so on."), 40)
    assert shown.splitlines()[1].startswith(f"{root}/the ")


@given(st.lists(st.sampled_from(["a", "word", "予備電源は", "（点検）", "e\u0301", URL, f'"{COMMAND}"']), max_size=30))
def test_nothing_is_lost_and_lines_fit_but_for_what_stays_whole(words: list[str]) -> None:
    line = " ".join(words)
    with pytest.MonkeyPatch.context() as patch:
        shown = on_terminal(patch, lambda: remark(line), 40)
    assert shown.replace("\n", "").replace(" ", "") == line.replace(" ", "")
    assert [each for each in shown.splitlines() if columns(each) > 40 and each not in {URL, f'"{COMMAND}"'}] == []


def test_a_pipe_gets_each_line_as_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    say("word " * 30)
    remark("word " * 30)
    assert capsys.readouterr() == ("word " * 30 + "\n",) * 2


@pytest.mark.parametrize(
    "line", ["install --list", "install codex", "ask --profile x why", "ask --domian x", "demo", "--debug"]
)
def test_the_lines_of_a_command_fit_a_terminal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini/settings.json").write_text(
        '{"mcpServers": {"openai-responses": {"command": "/gone"}}}', encoding="utf-8"
    )

    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            with contextlib.suppress(SystemExit):
                cli.run(line.split())

    shown = on_terminal(monkeypatch, run, 80).splitlines()
    assert shown
    whole = re.compile(r"""['"`/\\]|://""")  # a command, a path or a URL
    assert [each for each in shown if columns(each) > 80 and " " in each.strip() and not whole.search(each)] == []


async def test_an_error_of_the_api_fits_a_terminal(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.script(Error(500, "Something went wrong with the machine that should have answered this request of yours."))
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "60")
    assert (await command("ask", "Why?"))[0] == 1
    lines = terminal.text.rpartition("\r")[2].splitlines()
    assert len(lines) > 1
    assert lines[0].startswith("openai-responses-mcp: ")
    assert max(map(columns, lines)) <= 60
