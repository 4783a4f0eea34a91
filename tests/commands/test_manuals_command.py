"""`openai-responses-mcp manuals index|find|read` as a person uses it: what is shown where, and how it ends."""

import errno
import io
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp import cli
from responses_mcp.commands.terminal import StatusLine, columns, run_command
from responses_mcp.commands.terminal import write as write_out
from responses_mcp.manuals.files.directories import DirectoryByDescriptor, DirectoryByPath
from responses_mcp.manuals.index import update as index
from responses_mcp.settings.schema import SETTINGS
from tests.file_names import possible
from tests.processes import COMMAND, WAIT, environment

TOKENS = """\
# Tokens

A token opens the door.

## Lifetime

A token is valid for 3600 seconds.
After that it must be refreshed.

## Rotation

Rotate the signing keys each month.
"""
LOGS = """\
# Logs

Logs are kept for 30 days. The rotation of logs is daily.
"""
BACKUP = """\
# 取扱説明書

## 予備電源の点検

予備電源は毎月点検する。
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of two manuals, which the configuration names."""
    root = tmp_path / "manuals"
    write(root / "guide/auth/tokens.md", TOKENS)
    write(root / "guide/logs.md", LOGS)
    write(root / "guide/errors.json", '{\n  "E42": "the token has expired",\n  "E43": "表示できない"\n}\n')
    write(root / "plant/電源.md", BACKUP)
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)
    for name, value in settings_for(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(index, "_FRESH_NS", 0)  # otherwise what was written just now is read again
    return root


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="\n")


def settings_for(tmp_path: Path) -> dict[str, str]:
    return {"MANUALS_ROOT": str(tmp_path / "manuals"), "MANUALS_INDEX_DIR": str(tmp_path / "index")}


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def manuals(root: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs the command and returns exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.run(["manuals", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def output(done: tuple[int, str, str]) -> str:
    code, out, err = done
    assert (code, err) == (0, "")
    return out


# index


def test_index_says_for_each_manual_what_was_done_and_where_it_is_kept(manuals: Command, tmp_path: Path) -> None:
    first, second, where = output(manuals("index")).splitlines()
    assert re.fullmatch(r"guide: 3 files, 3 of them new or changed, \d+\.\d s", first)
    assert re.fullmatch(r"plant: 1 file, 1 of them new or changed, \d+\.\d s", second)
    [file] = (tmp_path / "index").glob("*.sqlite3")
    assert where == f"The index is in {file}."


def test_a_second_index_has_only_the_changes_to_do_and_takes_a_name_that_a_shell_completed(
    manuals: Command, root: Path
) -> None:
    manuals("index")
    write(root / "guide/new.md", "# New\n\nNew.\n")
    assert output(manuals("index", "guide/")).startswith("guide: 4 files, 1 of them new or changed")


def test_index_and_find_say_what_is_not_indexed_and_why(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANUALS_MAX_FILE_BYTES", "2000")
    write(root / "guide/large.md", "word " * 1000)
    lines = output(manuals("index", "guide")).splitlines()
    assert lines[0].endswith("; 1 not indexed:")
    assert lines[1] == "  large.md (larger than manuals.max_file_bytes)"
    out = output(manuals("find", "token", "--manual", "guide"))
    assert "Not searched in guide: 1 file (larger than manuals.max_file_bytes).\n" in out


def test_find_tells_of_so_many_manuals_at_most_that_they_were_not_searched(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANUALS_MAX_FILE_BYTES", "20")
    for number in range(25):
        write(root / f"m{number:02}/a.md", "word " * 10)
    out = output(manuals("find", "token"))
    assert out.count("Not searched in ") == 20
    assert "Nor, for such reasons, in 7 more.\n" in out
    assert "Which they are: openai-responses-mcp manuals index\n" in out


def test_a_file_in_another_encoding_is_told_with_those_that_are_known(manuals: Command, root: Path) -> None:
    why = "not text in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, GB18030 or Windows-1252; save it as UTF-8"
    (root / "guide/jis.md").write_bytes("# 見出し\n\n予備電源\n".encode("iso-2022-jp"))
    (root / "guide/unmarked.md").write_bytes("# Unmarked\n".encode("utf-16-le"))
    lines = output(manuals("index", "guide")).splitlines()
    assert lines[1:3] == [f"  jis.md ({why})", f"  unmarked.md ({why})"]
    out = output(manuals("find", "token", "--manual", "guide"))
    assert f"Not searched in guide: 2 files ({why}).\nWhich they are: openai-responses-mcp manuals index guide\n" in out


def test_index_says_why_it_is_in_memory(manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "file", "in the way")
    monkeypatch.setenv("MANUALS_INDEX_DIR", str(tmp_path / "file"))
    code, out, err = manuals("index")
    assert code == 0
    assert "in memory only, and is gone (" in out
    assert err.startswith("manuals: the index is kept in memory")
    monkeypatch.setenv("MANUALS_IN_MEMORY", "true")
    assert output(manuals("index")).endswith("and is gone (manuals.in_memory is on).\n")


def test_index_as_json_is_one_document(manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = json.loads(output(manuals("index", "--json")))
    guide, plant = shown["manuals"]
    assert guide.keys() == {"manual_id", "files", "changed", "seconds", "unindexed", "not_served"}
    assert guide["seconds"] == round(guide["seconds"], 3)
    assert (guide["manual_id"], guide["files"], plant["changed"]) == ("guide", 3, 1)
    assert Path(shown["index"]["path"]).parent == tmp_path / "index"
    assert shown["index"]["in_memory"] is None
    monkeypatch.setenv("MANUALS_IN_MEMORY", "true")
    shown = json.loads(output(manuals("index", "--json")))
    assert shown["index"] == {"path": None, "in_memory": "manuals.in_memory is on"}


# What is not served


def test_index_counts_files_of_other_kinds_and_names_the_kinds(manuals: Command, root: Path) -> None:
    for name in ("a.odt", "b.ODT", "auth/c.png", "Makefile", ".hidden.odt", ".git/d.odt"):
        write(root / "guide" / name, "x")
    first, second, _ = output(manuals("index")).splitlines()
    assert first.endswith(" s; 4 files of other formats are not served (2 .odt, 1 .png, 1 without an ending)")
    assert second.endswith(" s")
    shown = json.loads(output(manuals("index", "--json")))
    assert [each["not_served"] for each in shown["manuals"]] == [{".odt": 2, ".png": 1, "": 1}, {}]


def test_a_find_of_nothing_says_what_else_lies_in_the_manuals(manuals: Command, root: Path) -> None:
    write(root / "guide/wifi.abc", "<p>unicorns</p>")
    write(root / "plant/old.xyz", "unicorns")
    nothing = "Nothing that was searched matches; try other words.\n"
    cure = "; convert what is to be searched to .md.\n"
    told = f"{nothing}2 files of other formats are not served (1 .abc, 1 .xyz){cure}"
    assert output(manuals("find", "unicorns")) == told
    told = f"{nothing}1 file of another format is not served (1 .xyz){cure}"
    assert output(manuals("find", "unicorns", "--manual", "plant")) == told
    assert "not served" not in output(manuals("find", "token"))


def test_files_in_the_root_are_a_manual_with_its_name(manuals: Command, root: Path) -> None:
    guide = ["--root", str(root / "guide")]
    assert output(manuals("ls", *guide)) == "auth   1 file\nguide  2 files\n"
    assert output(manuals("ls", "guide", *guide)) == "errors.json\nlogs.md\n"
    assert "guide/logs.md:" in output(manuals("find", "rotated", *guide))
    assert output(manuals("read", "guide", "logs.md", *guide)) == output(manuals("read", "guide", "logs.md"))


@pytest.fixture
def no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system refuse the folder of the manual guide."""
    for kind in (DirectoryByDescriptor, DirectoryByPath):

        def enter(self: Any, name: str, of_it: Callable[..., Any] = kind.enter) -> Any:
            if name == "guide":
                raise PermissionError(errno.EACCES, "Permission denied")
            return of_it(self, name)

        monkeypatch.setattr(kind, "enter", enter)


@pytest.mark.usefixtures("no_entry")
def test_a_manual_that_cannot_be_read_keeps_index_and_ls_from_no_other(manuals: Command) -> None:
    why = "Manual 'guide' cannot be read (Permission denied); give the server permission or mend the disk"
    code, out, err = manuals("index")
    assert (code, out.splitlines()[:2]) == (1, ["guide: 0 files; 1 not indexed:", "  guide (not readable)"])
    assert out.splitlines()[2].startswith("plant: 1 file, 1 of them new or changed, ")
    assert why in err
    code, out, err = manuals("ls")
    assert (code, out) == (1, "guide  not readable\nplant  1 file\n")
    assert why in err


@pytest.mark.usefixtures("no_entry")
def test_a_manual_that_cannot_be_read_is_in_the_json_of_all(manuals: Command) -> None:
    code, out, _ = manuals("index", "--json")
    first, second = json.loads(out)["manuals"]
    assert (code, first["unindexed"], second["files"]) == (1, {"": "unreadable"}, 1)
    code, out, _ = manuals("ls", "--json")
    assert (code, [each["files"] for each in json.loads(out)["manuals"]]) == (1, [None, 1])


# ls


def test_ls_lists_the_manuals_and_what_is_in_one(manuals: Command, root: Path) -> None:
    write(root / "plant/a.odt", "x")
    assert output(manuals("ls")) == "guide  3 files\nplant  1 file; 1 file of another format is not served (1 .odt)\n"
    assert output(manuals("ls", "guide/")) == "auth/\nerrors.json\nlogs.md\n"
    assert output(manuals("ls", "guide", "auth")) == "tokens.md\n"
    code, out, err = manuals("ls", "nowhere")
    assert (code, out) == (1, "")
    assert err == "openai-responses-mcp: There is no manual 'nowhere'; the manuals are guide, plant.\n"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("fnd", "there is no command fnd; did you mean find?"),
        ("list", "there is no command list; did you mean ls?"),
        ("xyz", "there is no command xyz; there are index, find, read, ls"),
        ("", "there is no command ''; there are index, find, read, ls"),
    ],
)
def test_a_wrong_command_is_told_with_what_was_meant(manuals: Command, word: str, told: str) -> None:
    code, out, err = manuals(word, "oil")
    assert (code, out) == (2, "")
    assert err.endswith(f"openai-responses-mcp manuals: error: {told}\n")


def test_ls_as_json_is_one_document(manuals: Command, root: Path) -> None:
    write(root / "plant/a.odt", "x")
    write(root / "loose.md", "x")
    assert json.loads(output(manuals("ls", "--json"))) == {
        "manuals": [
            {"manual_id": "guide", "files": 3, "not_served": {}},
            {"manual_id": "manual::manuals", "files": 1, "not_served": {}},
            {"manual_id": "plant", "files": 1, "not_served": {".odt": 1}},
        ]
    }
    assert json.loads(output(manuals("ls", "guide", "--json"))) == {
        "manual_id": "guide",
        "path": "",
        "items": [
            {"name": "auth", "kind": "dir"}, {"name": "errors.json", "kind": "file"}, {"name": "logs.md", "kind": "file"}
        ],
    }  # fmt: skip


# index --forget


def kept_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("*"))


def test_forget_removes_the_index_and_the_folder_that_is_empty_then(manuals: Command, tmp_path: Path) -> None:
    manuals("index")
    [file] = (tmp_path / "index").glob("*.sqlite3")
    for end in ("-wal", "-shm"):  # what a server that was killed leaves
        write(Path(f"{file}{end}"), "")
    assert output(manuals("index", "--forget")) == f"Removed {file}.\n"
    assert not (tmp_path / "index").exists()
    assert output(manuals("index", "--forget")) == "There is no index of these manuals.\n"
    assert output(manuals("index", "guide")).startswith("guide: 3 files, 3 of them new")


def test_forget_leaves_what_is_not_the_index_of_these_manuals(manuals: Command, tmp_path: Path) -> None:
    write(tmp_path / "other/manual/a.md", "# A\n")
    manuals("index", "--root", str(tmp_path / "other"))
    write(tmp_path / "index/notes.txt", "mine")
    before = kept_in(tmp_path / "index")
    manuals("index")
    output(manuals("index", "--forget"))
    assert kept_in(tmp_path / "index") == before


def test_forget_removes_what_an_earlier_version_kept_of_the_same_manuals(manuals: Command, tmp_path: Path) -> None:
    manuals("index")
    [file] = (tmp_path / "index").glob("*.sqlite3")
    earlier = file.with_name(re.sub(r"-\d+\.", "-1001.", file.name))
    write(earlier, "old")
    assert output(manuals("index", "--forget")).splitlines() == [f"Removed {earlier}.", f"Removed {file}."]


def test_forget_needs_no_manuals_any_more(manuals: Command, root: Path, tmp_path: Path) -> None:
    manuals("index")
    root.rename(tmp_path / "elsewhere")
    code, out, err = manuals("index", "--forget", "--root", str(root))
    assert (code, out[:8], err) == (0, "Removed ", "")
    assert not (tmp_path / "index").exists()


def test_forget_as_json_names_what_was_removed(
    manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manuals("index")
    [file] = (tmp_path / "index").glob("*.sqlite3")
    assert json.loads(output(manuals("index", "--forget", "--json"))) == {"removed": [str(file)]}
    monkeypatch.setenv("MANUALS_IN_MEMORY", "true")
    assert json.loads(output(manuals("index", "--forget", "--json"))) == {"removed": []}


def test_an_index_that_a_server_holds_is_told_with_cause_and_cure(
    manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manuals("index")
    [file] = (tmp_path / "index").glob("*.sqlite3")
    with closing(sqlite3.connect(file)) as held:
        held.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if sys.platform != "win32":  # where any file can be deleted
            monkeypatch.setattr(Path, "unlink", held_there)
        code, out, err = manuals("index", "--forget")
    assert (code, out) == (1, "")
    assert err == (
        f"openai-responses-mcp: The index in {file.parent} cannot be removed: a server that is open holds it. "
        "End the clients that have it, then run this again.\n"
    )
    assert file.exists()


def held_there(path: Path, *, missing_ok: bool = False) -> None:
    """Fail as on Windows, where this is what another process does to a file by having it open."""
    error = PermissionError(errno.EACCES, "Sharing violation", str(path))
    setattr(error, "winerror", 32)  # noqa: B010  # only there it is a member
    raise error


def test_forget_takes_no_manual_because_all_share_one_index(manuals: Command, tmp_path: Path) -> None:
    manuals("index")
    code, out, err = manuals("index", "guide", "--forget")
    assert (code, out) == (2, "")
    assert "--forget removes the index of all manuals" in err
    assert list((tmp_path / "index").glob("*.sqlite3"))


# Progress


class Terminal(io.TextIOWrapper):
    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="", write_through=True)

    def isatty(self) -> bool:
        return True

    @property
    def text(self) -> str:
        buffer: Any = self.buffer
        return str(buffer.getvalue().decode(self.encoding))


@pytest.mark.parametrize(
    ("encoding", "full", "empty"), [("utf-8", "█", "░"), ("ascii", "#", "-"), ("cp1252", "#", "-")]
)
def test_a_terminal_sees_a_bar_that_is_gone_at_the_end(
    manuals: Command, monkeypatch: pytest.MonkeyPatch, encoding: str, full: str, empty: str
) -> None:
    terminal = Terminal(encoding)
    monkeypatch.setattr(sys, "stderr", terminal)
    assert manuals("index", "guide")[0] == 0
    assert f"\r{empty * 24} 0 of 3 files of guide" in terminal.text
    assert terminal.text.endswith(" \r")
    with StatusLine() as status:
        status.show_progress("guide", 1, 2)
    assert f"\r{full * 12}{empty * 12} 1 of 2 files of guide" in terminal.text


def test_a_find_that_has_to_index_says_so_on_a_terminal(manuals: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    manuals("find", "token", "--manual", "guide")
    assert "indexing guide: 0 of 3 files" in terminal.text


def test_characters_of_japanese_are_two_columns_wide() -> None:
    assert [columns(text) for text in ("", "abc", "電源", "ｱ", "e\u0301")] == [0, 3, 4, 1, 1]


@given(
    st.lists(
        st.builds(str.__mul__, st.sampled_from(["a", "電", "é\n", "e\u0301"]), st.integers(0, 50)),
        min_size=1,
        max_size=4,
    )
)
def test_a_status_line_fits_its_terminal_and_covers_the_one_before(texts: list[str]) -> None:
    terminal = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setenv("COLUMNS", "40")
        with StatusLine() as status:
            for text in texts:
                status.show(text)
    shown = terminal.text.split("\r")
    widths = [columns(each) for each in shown]
    assert max(widths) < 40
    assert widths[1:] == sorted(widths[1:-1]) + widths[-1:]
    assert "\n" not in terminal.text


# find


def test_find_shows_rank_title_place_and_text_and_how_to_read_on(manuals: Command) -> None:
    lines = output(manuals("find", "How long is a token valid?", "--manual", "guide")).splitlines()
    assert lines[0] == "  1. Tokens > Lifetime"
    assert re.fullmatch(r"     guide/auth/tokens\.md:5  score \d\.\d\d", lines[1])
    assert lines[2] == "     A token is valid for 3600 seconds. After that it must be refreshed."
    assert lines[-2:] == ["", "Read it: openai-responses-mcp manuals read guide auth/tokens.md --line 5"]


def test_a_terminal_of_24_lines_shows_the_best_of_many_hits_with_the_words_in_bold(
    manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write(
            tmp_path / f"shelf/book/{number}.md", f"# Widgets {number}\n\n{'A widget is a part of a machine. ' * 20}\n"
        )
    find = ("find", "what is a widget?", "--root", str(tmp_path / "shelf"))
    everything = output(manuals(*find))
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "", "WT_SESSION": "1"}.items():
        monkeypatch.setenv(name, value)
    assert manuals(*find)[0] == 0
    plain = re.sub(r"\x1b\[[01]m", "", terminal.text).splitlines()
    assert "\x1b[1mwidget\x1b[0m is a part" in terminal.text
    assert plain[0] == everything.splitlines()[0]
    assert [line[:4] for line in plain if re.match(r" +\d\. ", line)] == [f"{rank:3}." for rank in range(1, 6)]
    assert len(plain) < 24
    assert max(map(columns, plain[:-1])) <= 80
    assert plain[3].endswith("…")


@pytest.mark.parametrize("name", ["the file.md", "-rf.md"])
def test_what_find_tells_to_read_can_be_read_as_it_stands(manuals: Command, tmp_path: Path, name: str) -> None:
    write(tmp_path / "my library/a b" / name, "# One\n\nSomething about widgets.\n")
    library = ["--root", str(tmp_path / "my library")]
    last = output(manuals("find", "widgets", *library)).splitlines()[-1]
    command = shlex.split(last.removeprefix("Read it: "))
    assert command[:2] == ["openai-responses-mcp", "manuals"]
    assert output(manuals(*command[2:])) == "# One\n\nSomething about widgets.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="quotation marks differ there")
@pytest.mark.parametrize(
    ("on_path", "called", "advised"),
    [
        (False, ".venv/bin/openai-responses-mcp", ".venv/bin/openai-responses-mcp"),
        (False, "my venv/bin/openai-responses-mcp", "'my venv/bin/openai-responses-mcp'"),
        (True, ".venv/bin/openai-responses-mcp", "openai-responses-mcp"),
        (False, "responses_mcp/__main__.py", "openai-responses-mcp"),
    ],
)
def test_what_find_tells_to_read_begins_with_what_starts_this_program_here(
    manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, on_path: bool, called: str, advised: str
) -> None:
    other = tmp_path / "other/bin"
    for place in (tmp_path / called, other / "openai-responses-mcp"):
        write(place, "#!/bin/sh\n")
        place.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str((tmp_path / called).parent if on_path else other))
    monkeypatch.setattr(sys, "argv", [called])
    last = output(manuals("find", "how long is a token valid?")).splitlines()[-1]
    assert last == f"Read it: {advised} manuals read guide auth/tokens.md --line 5"
    assert f"see what there is: {advised} manuals ls guide" in manuals("read", "guide", "nowhere.md")[2]


def test_find_ranks_what_all_manuals_have_or_those_that_are_named(manuals: Command, root: Path) -> None:
    write(root / "plant/token.md", "# 鍵\n\ntoken\n")
    both = output(manuals("find", "token rotation"))
    assert "guide/auth/tokens.md" in both
    assert "plant/token.md" in both
    assert "guide/" not in output(manuals("find", "token rotation", "--manual", "plant/"))
    assert "plant/" not in output(manuals("find", "token rotation", "--manual", "guide", "--limit", "1"))
    assert "logs.md" not in output(manuals("find", "token rotation", "--path", "auth"))
    japanese = output(manuals("find", "予備電源の点検"))
    quote = "" if sys.platform == "win32" else "'"  # as the shell there wants it
    assert japanese.splitlines()[-1].endswith(f"manuals read plant {quote}電源.md{quote} --line 3")


def test_the_words_of_a_query_need_no_quotation_marks_and_options_may_stand_anywhere(manuals: Command) -> None:
    quoted = output(manuals("find", "token rotation", "--manual", "guide"))
    for words in (
        ["token", "rotation", "--manual", "guide"],
        ["--manual", "guide", "token", "rotation"],
        ["token", "--manual", "guide", "rotation"],
        ["--manual", "guide", "--", "token", "rotation"],
    ):
        assert output(manuals("find", *words)) == quoted
    assert (
        json.loads(output(manuals("find", "--json", "--", "what", "--strict", "does")))["query"] == "what --strict does"
    )


def test_a_word_that_looks_like_an_option_is_refused_with_the_way_out(manuals: Command) -> None:
    code, out, err = manuals("find", "what", "does", "--strict", "do")
    assert (code, out) == (2, "")
    assert "there is no option --strict; put -- before words that begin with -" in err
    assert "unrecognized arguments: more\n" in manuals("read", "guide", "logs.md", "more")[2]


def test_hits_without_a_word_of_the_question_come_after_a_rule_that_says_so(manuals: Command, root: Path) -> None:
    write(root / "guide/names.md", "# Names\n\nThe AsyncGate opens.\n")
    write(root / "guide/gate.md", "# Gate\n\n" + "All the ways that lead to a place, and one gate on them. " * 9)
    lines = output(manuals("find", "gate")).splitlines()
    rule = lines.index("In these, the words are only parts of others, or written otherwise:")
    assert [line for line in lines[:rule] if re.match(r" +\d+\. ", line)] == ["  1. Gate"]
    assert [line for line in lines[rule:] if re.match(r" +\d+\. ", line)] == ["  2. Names"]
    assert lines[rule - 1] == lines[rule + 1] == ""
    assert lines[-1].endswith("read guide gate.md --line 1")
    only = output(manuals("find", "async"))
    assert only.splitlines()[:2] == ["In these, the words are only parts of others, or written otherwise:", ""]


def test_find_without_a_hit_is_no_failure_and_says_so(manuals: Command) -> None:
    assert output(manuals("find", "unicorns")) == "Nothing that was searched matches; try other words.\n"
    assert output(manuals("find", "?!")) == "Nothing that was searched matches; try other words.\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["find", "x", "--manual", "gatway"], "There is no manual 'gatway'"),
        (["read", "guide", "nowhere.md"], "nowhere.md"),
        (["ls", "nowhere"], "There is no manual 'nowhere'"),
        (["find", " "], "QUERY is blank"),
    ],
)
def test_what_stops_a_command_is_a_json_document_too(manuals: Command, command: list[str], said: str) -> None:
    code, out, err = manuals(*command, "--json")
    assert code in (1, 2)
    message = json.loads(out)["error"]["message"]
    assert said in message
    assert err == f"openai-responses-mcp: {message}\n"


def test_a_search_where_there_is_no_file_to_search_does_not_blame_the_words(manuals: Command, root: Path) -> None:
    for path in sorted(root.rglob("*.*")):
        path.rename(path.with_suffix(".xyz"))
    for more in ([], ["--manual", "guide"]):
        assert output(manuals("find", "token", *more)).startswith("There is no file of a served format to search.")
    for command in (["ls"], ["index"], ["index", "guide"]):
        code, _, err = manuals(*command)
        assert (code, err) == (
            0,
            "There is no file of a served format to search.\n",
        )


def test_an_empty_folder_of_manuals_is_named(manuals: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for command in (["ls"], ["index"], ["find", "x"]):
        code, _, err = manuals(*command, "--root", str(tmp_path / "empty"))
        assert (code, f"There are no manuals in {tmp_path / 'empty'};" in err) == (1, True)


def test_a_folder_with_nothing_but_a_document_that_is_not_served_names_it(manuals: Command, tmp_path: Path) -> None:
    write(tmp_path / "scans/old.doc", "x")
    told = "1 file of another format is not served (1 .doc)"
    assert told in manuals("ls", "--root", str(tmp_path / "scans"))[1]
    found = json.loads(output(manuals("find", "x", "--json", "--root", str(tmp_path / "scans"))))
    assert (found["complete"], told in found["reason"]) == (False, True)


def test_ls_takes_a_manual_and_a_folder_in_one_word(manuals: Command) -> None:
    assert output(manuals("ls", "guide/auth")) == output(manuals("ls", "guide", "auth"))


def test_a_place_may_have_backslashes_and_is_told_with_as_many_as_were_given(manuals: Command) -> None:
    expected = output(manuals("read", "guide/auth/tokens.md"))
    for place in (["guide\\auth\\tokens.md"], ["guide\\auth\\tokens.md:1"], ["guide", "auth\\tokens.md"]):
        assert output(manuals("read", *place)) == expected
    assert output(manuals("ls", "guide\\auth")) == output(manuals("ls", "guide/auth"))


@pytest.mark.parametrize("place", ["/somewhere/guide/auth/tokens.md", "loose.md"])
def test_a_place_that_is_no_manual_and_path_is_told_as_it_was_given(manuals: Command, place: str) -> None:
    code, out, err = manuals("read", place)
    assert (code, out) == (2, "")
    assert f"pass MANUAL and PATH, or a place as 'manuals find' shows it, not {place!r} alone" in err


@pytest.mark.parametrize("path", ["nowhere", "auth/x.md", "日本/x.md"])
def test_a_path_that_no_manual_has_is_told_and_not_blamed_on_the_words(manuals: Command, path: str) -> None:
    told = f"Nothing is at or below {path!r}; check the path."
    assert manuals("find", "token", "--path", path) == (1, "", f"openai-responses-mcp: {told}\n")
    code, out, err = manuals("find", "token", "--path", path, "--json")
    assert (code, json.loads(out)["note"], err) == (1, told, f"openai-responses-mcp: {told}\n")
    assert "check the path" not in output(manuals("find", "token", "--path", "auth"))
    assert manuals("find", "token", "--path", "guide/auth")[2].endswith("Did you mean --manual guide --path auth?\n")
    assert (
        output(manuals("find", "unicorns", "--path", "auth")) == "Nothing that was searched matches; try other words.\n"
    )


def test_a_file_that_should_be_listed_is_told_to_be_read(manuals: Command) -> None:
    told = "auth/tokens.md is a file, not a folder; show it: openai-responses-mcp manuals read guide auth/tokens.md"
    assert manuals("ls", "guide", "auth/tokens.md") == (2, "", f"openai-responses-mcp: {told}\n")


def test_a_line_behind_the_end_of_a_file_is_refused_with_the_last_line(manuals: Command) -> None:
    code, out, err = manuals("read", "guide", "auth/tokens.md", "--line", "6000")
    assert (code, out) == (2, "")
    assert "--line 6000 is outside the file; pass a line from 1 to 12, its last." in err


def test_find_shows_the_line_of_json_on_which_the_match_is(manuals: Command) -> None:
    lines = output(manuals("find", "表示できない")).splitlines()
    assert lines[1].startswith("     guide/errors.json:3  ")
    assert lines[-1].endswith("manuals read guide errors.json --line 3")


def test_find_as_json_has_the_rows_that_an_agent_gets_and_what_was_not_searched(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANUALS_MAX_FILE_BYTES", "2000")
    write(root / "guide/large.md", "word " * 1000)
    shown = json.loads(output(manuals("find", "予備電源", "--json", "--limit", "2")))
    assert (shown["query"], shown["complete"]) == ("予備電源", False)
    assert shown["results"][0]["ref"] == {"manual_id": "plant", "path": "電源.md", "start_line": 3}
    assert shown["results"][0]["snippet"] == "予備電源は毎月点検する。"
    assert shown["unsearched"] == [{"manual_id": "guide", "reason": "too_large", "files": 1}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["find", " "], "QUERY is blank"),
        (["find", "x" * 20_000], "query must be the question"),
        (["find", "a", "--path", "../b"], "The path holds '..'"),
    ],
)
def test_a_find_that_cannot_be_meant_fails(manuals: Command, arguments: list[str], said: str) -> None:
    code, out, err = manuals(*arguments)
    assert (code, out) == (2 if "query" in said.lower() else 1, "")
    assert err.startswith("openai-responses-mcp: ")
    assert said in err


def test_titles_and_names_cannot_steer_the_terminal(manuals: Command, root: Path) -> None:
    write(root / "guide/evil.md", "# Evil \x1b[2J title\n\nA wizard.\n")
    out = output(manuals("find", "wizard"))
    assert "Evil" in out
    assert "\x1b" not in out


# read


def test_read_shows_a_section_with_its_sub_sections(manuals: Command) -> None:
    [section] = re.findall(r"^## Lifetime\n.*\n(?=## )", TOKENS, re.MULTILINE | re.DOTALL)
    assert output(manuals("read", "guide", "auth/tokens.md", "--line", "5")) == section.removesuffix("\n")
    assert output(manuals("read", "guide", "auth/tokens.md")) == TOKENS


def test_a_place_is_read_as_find_shows_it(manuals: Command) -> None:
    place = output(manuals("find", "rotate signing keys")).splitlines()[1].split()[0]
    assert place == "guide/auth/tokens.md:10"
    by_line = output(manuals("read", "guide", "auth/tokens.md", "--line", "10"))
    assert output(manuals("read", place)) == output(manuals("read", "guide", "auth/tokens.md:10")) == by_line
    assert output(manuals("read", "guide/auth/tokens.md")) == TOKENS
    assert manuals("read", place, "--line", "5")[1].startswith("## Lifetime")
    for alone in ("guide", "guide/"):
        code, out, err = manuals("read", alone)
        assert (code, out) == (2, "")
        assert err.endswith("error: PATH is missing; 'manuals ls guide' lists the files of guide\n")


@pytest.mark.parametrize("place", ["guide/error codes.md:17", "guide/my error codes.md", "guide/a b/c d.json:3"])
def test_a_place_with_blanks_is_told_to_need_quotation_marks(manuals: Command, place: str) -> None:
    code, out, err = manuals("read", *place.split(" "))
    assert (code, out) == (2, "")
    assert f'put a place with blanks into quotation marks: "{place}"\n' in err


@pytest.mark.parametrize("command", [("read", "gui/de", "x"), ("index", "gui/de"), ("find", "x", "--manual", "gui/de")])
def test_a_name_that_no_manual_can_have_is_shown_as_it_was_given(manuals: Command, command: tuple[str, ...]) -> None:
    code, _, err = manuals(*command)
    assert code == 2
    assert "openai-responses-mcp: 'gui/de' is not the name of a manual; see what there is: " in err


def test_a_link_is_told_with_a_command_that_shows_what_there_is(manuals: Command, root: Path) -> None:
    (root / "linked").symlink_to(root / "guide", target_is_directory=True)
    code, _, err = manuals("ls", "linked")
    assert code != 0
    assert err.endswith("which is not followed; see what there is: openai-responses-mcp manuals ls\n")
    said = "linked is a symbolic link, and so not served; move or copy the folder itself there.\n"
    assert [manuals(command)[2] for command in ("ls", "index")] == [said, said]
    (root / "more").symlink_to(root / "guide", target_is_directory=True)
    assert "linked and more are symbolic links, and so not served; move or copy the" in manuals("ls")[2]


@pytest.mark.skipif(not possible("odd.md:7.md"), reason="no file can have such a name there")
def test_a_name_that_ends_like_a_line_is_read_if_there_is_such_a_file(manuals: Command, root: Path) -> None:
    write(root / "guide/odd.md:7.md", "# Odd\n")
    assert output(manuals("read", "guide", "odd.md:7.md")) == "# Odd\n"


def test_any_line_of_a_section_will_do(manuals: Command) -> None:
    code, out, err = manuals("read", "guide", "auth/tokens.md", "--line", "8")
    assert code == 0
    assert out.startswith("## Lifetime\n")
    assert err == ("line 8 is no heading; this is the section that begins before it, on line 5.\n")


@pytest.mark.parametrize("line", [4, 9, 12])
def test_a_blank_line_at_the_end_of_a_section_is_not_past_the_end_of_the_file(
    manuals: Command, root: Path, line: int
) -> None:
    write(root / "guide/auth/tokens.md", TOKENS + "\n\n")
    code, out, err = manuals("read", "guide", "auth/tokens.md", "--line", str(line))
    assert (code, out != "") == (0, True)
    assert f"line {line} is no heading; this is the section that begins before it" in err


def test_the_command_that_find_prints_begins_at_the_match_of_a_long_section(manuals: Command, root: Path) -> None:
    lines = [f"Line {number} says nothing of it.\n" for number in range(3, 400)]
    lines[241] = "Here is the zorgblat.\n"  # on line 244
    write(root / "guide/long.md", "# Long\n\n" + "".join(lines) + "\n# Next\n")
    command = shlex.split(output(manuals("find", "zorgblat")).splitlines()[-1].partition(": ")[2])
    assert command[command.index("--line") + 1] == "244"
    code, out, err = manuals(*command[2:])
    assert (code, out) == (0, "".join(lines[238:]))
    assert err == ("line 244 is no heading; this is the section that begins before it, on line 1, from line 241 on.\n")


def test_a_line_above_the_first_heading_is_in_the_preamble(manuals: Command, root: Path) -> None:
    write(root / "guide/late.md", "first\nsecond\n\n# Heading\n\nthird\n")
    assert manuals("read", "guide", "late.md", "--line", "2")[1] == "first\nsecond\n"
    write(root / "guide/none.md", "first\nsecond\n")
    assert manuals("read", "guide", "none.md", "--line", "2")[1] == "first\nsecond\n"


def test_read_all_gives_the_file_however_long(manuals: Command, root: Path) -> None:
    text = "# Long\n\n" + "".join(f"{number} 行目です。\n" for number in range(20_000))
    write(root / "guide/long.md", text)
    assert output(manuals("read", "guide", "long.md", "--all")) == text
    after_the_title = text.removeprefix("# Long\n\n")
    assert output(manuals("read", "guide", "long.md", "--all", "--line", "3")) == after_the_title
    shown = json.loads(output(manuals("read", "guide", "long.md", "--all", "--json")))
    assert (shown["text"], shown["eof"]) == (text, True)


def test_json_is_read_from_a_line_on(manuals: Command, root: Path) -> None:
    whole = (root / "guide/errors.json").read_text(encoding="utf-8")
    assert output(manuals("read", "guide", "errors.json")) == whole
    assert output(manuals("read", "guide", "errors.json", "--line", "3")) == '  "E43": "表示できない"\n}\n'


def test_json_on_one_line_is_read_in_lines_from_the_match_on(manuals: Command, root: Path) -> None:
    parts = [f"part {number}" for number in range(9_000)] + ["zorgblat"] + ["screw"] * 900
    write(root / "guide/parts.json", json.dumps(parts))
    command = shlex.split(output(manuals("find", "zorgblat")).splitlines()[-1].partition(": ")[2])
    assert command[2:] == ["read", "guide", "parts.json", "--line", "9002"]
    code, out, _ = manuals(*command[2:])
    assert (code, out.startswith('  "zorgblat",\n  "screw",\n')) == (0, True)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--line", "9"), "--line 9 is outside the file; pass a line from 1 to 4, its last."),
        (("--char", "999"), "--char 999 is outside the text, which has 56 characters."),
        (("--char", "5", "--line", "1"), "pass --line or --char, not both"),
    ],
)
def test_a_place_outside_a_file_is_told_in_the_words_of_the_command(
    manuals: Command, option: tuple[str, ...], said: str
) -> None:
    code, out, err = manuals("read", "guide", "errors.json", *option)
    assert (code, out) == (2, "")
    assert said in err


def test_read_as_json_says_what_was_read(manuals: Command, root: Path) -> None:
    shown = json.loads(output(manuals("read", "guide", "auth/tokens.md", "--line", "10", "--json")))
    assert shown["ref"] == {"manual_id": "guide", "path": "auth/tokens.md", "start_line": 10}
    assert shown["text"].startswith("## Rotation\n")
    assert shown["truncated"] is False
    whole = (root / "guide/errors.json").read_text(encoding="utf-8")
    assert json.loads(output(manuals("read", "guide", "errors.json", "--json")))["text"] == whole


def test_read_says_when_bytes_were_replaced(manuals: Command, root: Path) -> None:
    (root / "guide/latin.md").write_bytes("# ふとんの出し方\n".encode() + b"Caf\xe9\n")
    for more in ([], ["--all"]):
        code, out, err = manuals("read", "guide", "latin.md", *more)
        assert (code, out) == (0, "# ふとんの出し方\nCaf\ufffd\n")
        assert err == "the file is not all valid UTF-8; 1 place of it had to be replaced.\n"


def test_text_of_a_manual_steers_no_terminal(manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# Red\n\n\x1b[31mred\x1b[0m\tend\n"
    write(root / "guide/red.md", text)
    assert output(manuals("read", "guide", "red.md")) == text.replace("\x1b", "␛")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    manuals("read", "guide", "red.md")
    assert terminal.text == text.replace("\x1b", "␛")


# Failures

LISTING = "see what there is: openai-responses-mcp manuals ls"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["index", "nowhere"], "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["find", "x", "--manual", "nowhere"], "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["read", "nowhere", "x.md"], "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["read", "guide", "x.md"], f"Manual 'guide' has no 'x.md'; {LISTING} guide"),
        (["read", "guide", "auth"], f"'auth' is a folder, not a file; {LISTING} guide auth"),
        (["ls", "guide", "x"], f"Manual 'guide' has no 'x'; {LISTING} guide"),
        (["read", "guide", "Tokens.md"], "Manual 'guide' has no 'Tokens.md'; did you mean auth/tokens.md?"),
        (["read", "guide", "../x.md"], f"The path holds '..'; {LISTING}"),
    ],
)
def test_what_is_not_there_exits_1_with_a_cure_for_people(manuals: Command, arguments: list[str], said: str) -> None:
    assert manuals(*arguments) == (1, "", f"openai-responses-mcp: {said}\n")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("read", "guide", "auth/token.md"), "auth/tokens.md"),
        (("read", "guide", "auth/tokens"), "auth/tokens.md"),
        (("read", "guide", "Auht/Tokens.md"), "auth/tokens.md"),
        (("ls", "guide", "auth/token.md"), "auth/tokens.md"),
        (("ls", "guide", "Aut"), "auth"),
        (("ls", "giude"), "guide"),
        (("read", "Giude", "logs.md"), "guide"),
        (("index", "guid"), "guide"),
        (("find", "token", "--manual", "plannt"), "plant"),
    ],
)
def test_a_name_with_a_slip_is_told_with_the_one_that_was_meant(
    manuals: Command, arguments: tuple[str, ...], meant: str
) -> None:
    code, out, err = manuals(*arguments)
    assert (code, out) == (1, "")
    assert err.endswith(f"; did you mean {meant}?\n")


def test_an_empty_file_is_told(manuals: Command, root: Path) -> None:
    write(root / "guide/empty.md", "")
    write(root / "guide/empty.json", "")
    for name in ("empty.md", "empty.json"):
        assert manuals("read", "guide", name) == (0, "", "the file is empty.\n")
    assert json.loads(output(manuals("read", "guide", "empty.md", "--json")))["text"] == ""


def test_a_command_in_a_message_is_about_the_same_folder(manuals: Command, root: Path) -> None:
    _, _, err = manuals("read", "guide", "x.md", "--root", str(root))
    assert err.endswith(f"; {LISTING} guide --root {root}\n")


@pytest.mark.parametrize("path", ["../secret.md", "/etc/passwd.md", ".hidden.md", "x.xyz"])
def test_nothing_outside_is_read_and_no_message_names_a_tool(manuals: Command, root: Path, path: str) -> None:
    write(root / "secret.md", "secret")
    write(root / "guide/.hidden.md", "secret")
    write(root / "guide/x.xyz", "secret")
    code, out, err = manuals("read", "guide", path)
    assert (code, out) == (1, "")
    assert "manual_" not in err


def test_a_root_without_manuals_is_a_failure(manuals: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments in (["index"], ["find", "x"]):
        code, out, err = manuals(*arguments, "--root", str(tmp_path / "empty"))
        assert (code, out) == (1, "")
        assert "There are no manuals" in err
    code, out, err = manuals("read", "a", "b.md", "--root", str(tmp_path / "empty"))
    assert (code, err) == (1, "openai-responses-mcp: There is no manual 'a'; the folder of manuals has none.\n")


@pytest.mark.parametrize(
    ("option", "variable", "said"),
    [
        ("nowhere", None, "--root: there is no folder 'nowhere'; correct the path."),
        (r"C:\Users\me", None, r"--root: there is no folder 'C:\Users\me'; correct the path."),
        ("", None, "--root: there is no folder"),
        (" ", None, "--root: there is no folder"),
        (None, "nowhere", "manuals.root: there is no such folder"),
        (None, "", "pass --root DIR"),
    ],
)
def test_a_root_that_is_not_there_exits_2(
    manuals: Command, monkeypatch: pytest.MonkeyPatch, option: str | None, variable: str | None, said: str
) -> None:
    if variable is not None:
        monkeypatch.setenv("MANUALS_ROOT", variable)
    code, out, err = manuals("index", *(["--root", option] if option is not None else []))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_the_configuration_is_that_of_the_server(manuals: Command, root: Path, tmp_path: Path) -> None:
    write(tmp_path / "library/other/a.md", "# A\n\nA.\n")
    write(tmp_path / "config.yaml", "manuals: {in_memory: true}\nmanualz: 1\n")
    code, out, err = manuals("index", "--config", str(tmp_path / "config.yaml"), "--root", str(tmp_path / "library"))
    assert code == 0
    assert out.startswith("other: 1 file")
    assert "manuals.in_memory is on" in out
    assert not err.startswith("openai-responses-mcp: ")  # a warning
    assert "manualz" in err
    write(tmp_path / "config.yaml", "manuals: {max_file_bytes: many}\npolicy: {max_citations: 99}\n")
    code, out, err = manuals("index", "--config", str(tmp_path / "config.yaml"))
    assert (code, out) == (2, "")
    assert [line.startswith("openai-responses-mcp: ") for line in err.splitlines()] == [True, True]


# The command line


@pytest.mark.parametrize("command", [[], ["index"], ["find"], ["read"]])
def test_each_help_fits_a_terminal_and_has_an_example(
    manuals: Command, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = output(manuals(*command, "--help"))
    assert out.count("\n") <= 24
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"^examples?:\n  openai-responses-mcp manuals " + "".join(command), out, re.MULTILINE)
    assert out.isascii()


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"], ["index", "--nonsense"], ["find"], ["read", "guide"], ["read", "guide", "a.md", "--line", "0"],
        ["find", "x", "--limit", "-1"], ["find", "x", "--budget-ms", "soon"], ["find", "x", "--lim", "3"],
    ],
)  # fmt: skip
def test_a_wrong_command_line_exits_2_with_the_usage(manuals: Command, arguments: list[str]) -> None:
    code, out, err = manuals(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("usage: openai-responses-mcp manuals")


# Real processes


def process(tmp_path: Path, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "manuals", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, **settings_for(tmp_path), **env),
    )


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_that_cannot_carry_japanese_does_not_fail_and_that_is_told_once(
    manuals: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    def written(*arguments: str) -> tuple[int, str, str]:
        buffer = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding=encoding))
        code, _, err = manuals(*arguments)
        return code, buffer.getvalue().decode("ascii"), err

    monkeypatch.delenv("PYTHONIOENCODING", raising=False)
    lost = f"some characters cannot be written in {encoding} and are shown as ?; set PYTHONUTF8=1 to have UTF-8.\n"
    code, out, err = written("read", "plant", "電源.md", "--all")
    assert (code, out.splitlines()[0], err) == (0, "# ?????", lost)
    monkeypatch.setenv("PYTHONIOENCODING", encoding)  # which counts before the other
    assert "set PYTHONIOENCODING=utf-8 to have UTF-8.\n" in written("read", "plant", "電源.md")[2]
    code, out, err = written("read", "plant", "無い.md")
    assert (code, out, lost in err) == (1, "", False)
    assert json.loads(output(written("find", "予備電源", "--json")))["query"] == "予備電源"
    assert output(written("read", "guide", "logs.md", "--all")) == LOGS.replace("\n", os.linesep)


def test_what_no_text_can_hold_is_told_without_a_cure_that_is_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="utf-8"))
    assert run_command(lambda: write_out("a\ud800b")) == 0
    assert buffer.getvalue() == b"a?b"
    told = "some characters cannot be written in utf-8 and are shown as ?.\n"
    assert capsys.readouterr().err == told


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
def test_a_reader_that_has_seen_enough_is_no_failure(root: Path, tmp_path: Path) -> None:
    write(root / "guide/long.md", "# Long\n" + "line\n" * 200_000)
    with process(tmp_path, "read", "guide", "long.md", "--all") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"# Long\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(WAIT) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="needs a device that is always full")
def test_an_output_that_takes_nothing_is_a_failure(root: Path, tmp_path: Path) -> None:
    shell = f"exec {shlex.join(COMMAND)} manuals read guide logs.md"
    for redirection in (">/dev/full", ">&-"):
        done = subprocess.run(
            ["/bin/sh", "-c", f"{shell} {redirection}"],
            env=environment(tmp_path, **settings_for(tmp_path)),
            stderr=subprocess.PIPE,
            timeout=WAIT,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith(b"openai-responses-mcp: stdout ")
        assert done.stderr.count(b"\n") == 1


STUCK = """
import sys, time
from responses_mcp.manuals.index import update as index
read, seen = index.entries, set()
def stuck(path, *arguments, **options):
    seen.add(path)
    if len(seen) == 12:  # the first transaction is smaller
        print("stuck", file=sys.stderr, flush=True)
        time.sleep(600)
    return read(path, *arguments, **options)
index.entries, index._FRESH_NS = stuck, 0
sys.argv = ["openai-responses-mcp", "manuals", "index", "guide"]
from responses_mcp.__main__ import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_ends_a_build_at_once_and_what_is_done_is_kept(root: Path, tmp_path: Path, manuals: Command) -> None:
    for number in range(11):
        write(root / f"guide/a{number}.md", f"# A{number}\n\nWizard {number}.\n")
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, **settings_for(tmp_path)),
    ) as running:
        assert running.stderr is not None
        assert running.stderr.readline() == b"stuck\n"
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=WAIT)
    assert (running.returncode, out, err) == (130, b"", b"openai-responses-mcp: interrupted.\n")
    again = re.match(r"guide: 14 files, (\d+) of them", output(manuals("index", "guide")))
    assert again is not None
    assert 0 < int(again[1]) < 14
    found = json.loads(output(manuals("find", "wizard", "--manual", "guide", "--limit", "20", "--json")))
    assert (len(found["results"]), found["complete"]) == (11, True)
