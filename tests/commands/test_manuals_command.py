"""`openai-responses-mcp manuals index|find|read` as a person uses it: what is shown where, and how it ends."""

import errno
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp import cli
from responses_mcp.commands.terminal import StatusLine, columns
from responses_mcp.settings.schema import SETTINGS
from tests.commands.online import Terminal, output
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
    monkeypatch.setattr(
        "responses_mcp.manuals.files.folder._FRESH_NS", 0
    )  # otherwise what was written just now is read again
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


# index


def test_index_says_for_each_manual_what_was_done_and_where_it_is_kept(manuals: Command, tmp_path: Path) -> None:
    first, second, where = output(manuals("index")).splitlines()
    assert re.fullmatch(r"guide: 3 files, 3 of them new or changed, \d+\.\d s", first)
    assert re.fullmatch(r"plant: 1 file, 1 of them new or changed, \d+\.\d s", second)
    [file] = (tmp_path / "index").glob("*.sqlite3")
    assert where == f"The index is in {file}."


def test_index_and_find_say_what_is_not_indexed_and_why(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("responses_mcp.manuals.files.folder.LARGEST", 2000)
    write(root / "guide/large.md", "word " * 1000)
    (root / "guide/jis.md").write_bytes("# 見出し\n\n予備電源\n".encode("iso-2022-jp"))
    why = "not text in UTF-8, UTF-16 with a mark, EUC-JP, Shift_JIS, EUC-KR, GB18030 or Windows-1252; save it as UTF-8"
    lines = output(manuals("index", "guide")).splitlines()
    assert lines[0].endswith("; 2 not indexed:")
    assert lines[1:3] == [f"  jis.md ({why})", "  large.md (larger than 16 MiB)"]
    out = output(manuals("find", "token", "--manual", "guide"))
    assert "Not searched in guide: 1 file (larger than 16 MiB).\n" in out
    assert f"Not searched in guide: 1 file ({why}).\n" in out
    assert "To see the files: openai-responses-mcp manuals index\n" in out


def test_index_says_when_it_is_in_memory(manuals: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "file", "in the way")
    monkeypatch.setenv("MANUALS_INDEX_DIR", str(tmp_path / "file"))
    code, out, err = manuals("index")
    assert code == 0
    assert out.endswith("The index was in memory only and was not saved.\n")
    assert err.startswith("manuals: the index is kept in memory")


def test_index_as_json_is_one_document(manuals: Command, tmp_path: Path) -> None:
    shown = json.loads(output(manuals("index", "--json")))
    guide, plant = shown["manuals"]
    assert guide.keys() == {"manual_id", "files", "changed", "seconds", "unindexed", "not_served"}
    assert guide["seconds"] == round(guide["seconds"], 3)
    assert (guide["manual_id"], guide["files"], plant["changed"]) == ("guide", 3, 1)
    assert Path(shown["index"]).parent == tmp_path / "index"


# What is not served


def test_what_is_not_served_is_counted_by_kind_and_links_are_named(manuals: Command, root: Path) -> None:
    for name in ("a.odt", "b.ODT", "auth/c.png", "Makefile", ".hidden.odt", ".git/d.odt"):
        write(root / "guide" / name, "x")
    told = "4 files of other formats are not served (2 .odt, 1 .png, 1 without an ending)"
    assert output(manuals("index")).splitlines()[0].endswith(f" s; {told}")
    shown = json.loads(output(manuals("index", "--json")))
    assert [each["not_served"] for each in shown["manuals"]] == [{".odt": 2, ".png": 1, "": 1}, {}]
    (root / "linked").symlink_to(root / "guide", target_is_directory=True)
    code, out, err = manuals("ls")
    assert (code, out) == (0, f"guide  3 files; {told}\nplant  1 file\n")
    assert err == "linked is a symbolic link, and so not served; move or copy the folder itself there.\n"
    code, _, err = manuals("ls", "linked")
    assert (code, err[-65:]) == (1, "not followed; see what there is: openai-responses-mcp manuals ls\n")


def test_a_find_of_nothing_says_what_else_lies_in_the_manuals(manuals: Command, root: Path) -> None:
    write(root / "guide/wifi.abc", "<p>unicorns</p>")
    write(root / "plant/old.xyz", "unicorns")
    nothing = "Nothing matches; try other words.\n"
    cure = "; convert those to search to .md.\n"
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


# ls


def test_ls_lists_the_manuals_and_what_is_in_one(manuals: Command, root: Path) -> None:
    write(root / "plant/a.odt", "x")
    assert output(manuals("ls")) == "guide  3 files\nplant  1 file; 1 file of another format is not served (1 .odt)\n"
    assert output(manuals("ls", "guide/")) == "auth/\nerrors.json\nlogs.md\n"
    assert output(manuals("ls", "guide", "auth")) == "tokens.md\n"


def test_ls_as_json_is_one_document(manuals: Command, root: Path) -> None:
    write(root / "plant/a.odt", "x")
    write(root / "loose.md", "x")
    [guide, loose, plant] = json.loads(output(manuals("ls", "--json")))["manuals"]
    assert guide == {"manual_id": "guide", "files": 3, "not_served": {}}
    assert (loose["manual_id"], plant["not_served"]) == ("manual::manuals", {".odt": 1})
    items = {"auth": "dir", "errors.json": "file", "logs.md": "file"}
    listed = [{"name": name, "kind": kind} for name, kind in items.items()]
    assert json.loads(output(manuals("ls", "guide", "--json"))) == {"manual_id": "guide", "path": "", "items": listed}


# index --forget


def test_forget_removes_the_index_of_these_manuals_also_that_of_an_earlier_version(
    manuals: Command, tmp_path: Path
) -> None:
    manuals("index")
    [file] = (tmp_path / "index").glob("*.sqlite3")
    earlier = file.with_name(re.sub(r"-\d+\.", "-1001.", file.name))
    write(earlier, "old")
    journals = [Path(f"{file}{end}") for end in ("-wal", "-shm")]  # what a server that was killed leaves
    for each in journals:
        write(each, "")
    removed = json.loads(output(manuals("index", "--forget", "--json")))["removed"]
    assert sorted(removed) == sorted(map(str, [file, earlier, *journals]))
    assert output(manuals("index", "--forget")) == "Removed nothing: there is no index of these manuals.\n"
    assert output(manuals("index", "guide")).startswith("guide: 3 files, 3 of them new")


def test_an_index_that_a_server_holds_is_told_with_cause_and_cure(
    manuals: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(_: Path, **__: object) -> None:
        raise PermissionError(errno.EACCES, "The process cannot access the file")

    manuals("index")
    monkeypatch.setattr(Path, "unlink", held)
    code, out, err = manuals("index", "--forget")
    assert (code, out) == (1, "")
    assert err.endswith("cannot be removed (The process cannot access the file); end the clients that use it.\n")


def test_forget_leaves_what_is_not_the_index_of_these_manuals(manuals: Command, tmp_path: Path) -> None:
    def kept() -> list[str]:
        return sorted(file.name for file in (tmp_path / "index").rglob("*"))

    write(tmp_path / "other/manual/a.md", "# A\n")
    manuals("index", "--root", str(tmp_path / "other"))
    write(tmp_path / "index/notes.txt", "mine")
    before = kept()
    manuals("index")
    code, _, err = manuals("index", "guide", "--forget")
    assert (code, "--forget removes the index of all manuals" in err) == (2, True)
    assert kept() != before
    output(manuals("index", "--forget"))
    assert kept() == before


# Progress


def test_a_find_that_has_to_index_says_so_on_a_terminal(manuals: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    manuals("find", "token", "--manual", "guide")
    assert "indexing guide: 0 of 3 files" in terminal.text


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
    assert lines[-2:] == ["", "Read it: openai-responses-mcp manuals read guide/auth/tokens.md:5"]


def test_a_terminal_of_24_lines_shows_the_best_of_many_hits_with_the_words_in_bold(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write(root / f"book/{number}.md", f"# Widgets {number}\n\n{'A widget is a part of a machine. ' * 20}\n")
    find = ("find", "what is a widget?", "--manual", "book")
    everything = output(manuals(*find)).splitlines()
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    for name, value in {"COLUMNS": "80", "TERM": "xterm", "NO_COLOR": "", "WT_SESSION": "1"}.items():
        monkeypatch.setenv(name, value)
    assert manuals(*find)[0] == 0
    plain = re.sub(r"\x1b\[[01]m", "", terminal.text).splitlines()
    assert "\x1b[1mwidget\x1b[0m is a part" in terminal.text
    assert plain[0] == everything[0]
    assert [line[:4] for line in plain if re.match(r" +\d\. ", line)] == [f"{rank:3}." for rank in range(1, 6)]
    assert len(plain) < 24
    assert max(map(columns, plain)) <= 80
    assert plain[3].endswith("…")
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert manuals(*find)[0] == 0
    assert terminal.text.splitlines() == plain


@pytest.mark.parametrize("name", ["the file.md", "-rf.md"])
def test_what_find_tells_to_read_can_be_read_as_it_stands(manuals: Command, tmp_path: Path, name: str) -> None:
    write(tmp_path / "my library/a b" / name, "# One\n\nSomething about widgets.\n")
    library = ["--root", str(tmp_path / "my library")]
    last = output(manuals("find", "widgets", *library)).splitlines()[-1]
    command = shlex.split(last.removeprefix("Read it: "))
    assert command[:2] == ["openai-responses-mcp", "manuals"]
    assert output(manuals(*command[2:])) == "# One\n\nSomething about widgets.\n"


def test_find_ranks_what_all_manuals_have_or_those_that_are_named(manuals: Command, root: Path) -> None:
    write(root / "plant/token.md", "# 鍵\n\ntoken\n")
    both = output(manuals("find", "token rotation", "--limit", "10"))
    assert "guide/auth/tokens.md" in both
    assert "plant/token.md" in both
    assert "guide/" not in output(manuals("find", "token rotation", "--manual", "plant/"))
    assert "plant/" not in output(manuals("find", "token rotation", "--manual", "guide", "--limit", "1"))
    assert "logs.md" not in output(manuals("find", "token rotation", "--path", "auth"))
    japanese = output(manuals("find", "予備電源の点検"))
    quote = "" if sys.platform == "win32" else "'"  # as the shell there wants it
    assert japanese.splitlines()[-1].endswith(f"manuals read {quote}plant/電源.md:3{quote}")


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


def test_find_without_a_hit_is_no_failure_and_says_so(manuals: Command) -> None:
    assert output(manuals("find", "unicorns")) == "Nothing matches; try other words.\n"
    assert output(manuals("find", "?!")) == "Nothing matches; try other words.\n"


@pytest.mark.parametrize("path", ["nowhere", "auth/x.md", "日本/x.md"])
def test_a_path_that_no_manual_has_is_told_and_not_blamed_on_the_words(manuals: Command, path: str) -> None:
    told = f"Nothing is at or below {path!r}; check the path."
    assert manuals("find", "token", "--path", path) == (1, "", f"openai-responses-mcp: {told}\n")
    assert "check the path" not in output(manuals("find", "token", "--path", "auth"))
    assert output(manuals("find", "unicorns", "--path", "auth")) == "Nothing matches; try other words.\n"


def test_find_shows_the_line_of_json_on_which_the_match_is(manuals: Command) -> None:
    lines = output(manuals("find", "表示できない")).splitlines()
    assert lines[1].startswith("     guide/errors.json:3  ")
    assert lines[-1].endswith("manuals read guide/errors.json:3")


def test_find_as_json_has_the_rows_that_an_agent_gets_and_what_was_not_searched(
    manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("responses_mcp.manuals.files.folder.LARGEST", 2000)
    write(root / "guide/large.md", "word " * 1000)
    shown = json.loads(output(manuals("find", "予備電源", "--json", "--limit", "2")))
    assert (shown["query"], shown["complete"]) == ("予備電源", False)
    assert shown["results"][0]["ref"] == {"manual_id": "plant", "path": "電源.md", "start_line": 3}
    assert shown["results"][0]["snippet"] == "予備電源は毎月点検する。"
    assert shown["unsearched"] == [{"manual_id": "guide", "reason": "too_large", "files": 1}]


# read


LIFETIME = TOKENS[TOKENS.index("## Lifetime") : TOKENS.index("\n## Rotation")]


def test_read_shows_the_section_of_a_place_with_its_sub_sections(manuals: Command, root: Path) -> None:
    write(root / "guide/late.md", "first\nsecond\n\n# Heading\n\nthird\n")
    write(root / "guide/none.md", "first\nsecond\n")
    whole = (root / "guide/errors.json").read_text(encoding="utf-8")
    for place, text in (
        ("auth/tokens.md", TOKENS),
        ("auth/tokens.md:5", LIFETIME),
        ("auth\\tokens.md:5", LIFETIME),
        ("errors.json", whole),
        ("errors.json:3", '  "E43": "表示できない"\n}\n'),
    ):
        assert output(manuals("read", f"guide/{place}")) == output(manuals("read", "guide", place)) == text
    said = "line 8 is not a heading; this is the section that begins before it, on line 5.\n"
    assert manuals("read", "guide/auth/tokens.md:8") == (0, LIFETIME, said)
    said = "line 2 is not a heading; this is the section that begins before it, on line 1.\n"
    for name in ("none.md", "late.md"):
        assert manuals("read", f"guide/{name}:2") == (0, "first\nsecond\n", said)
    place = output(manuals("find", "rotate signing keys")).splitlines()[1].split()[0]
    assert place == "guide/auth/tokens.md:10"
    for alone in ("guide", "guide/"):
        code, out, err = manuals("read", alone)
        assert (code, out) == (2, "")
        assert err.endswith(": PATH is missing; see what there is: openai-responses-mcp manuals ls guide\n")


def test_read_all_gives_the_file_however_long(manuals: Command, root: Path) -> None:
    text = "# Long\n\n" + "".join(f"{number} 行目です。\n" for number in range(20_000))
    write(root / "guide/long.md", text)
    assert output(manuals("read", "guide", "long.md", "--all")) == text
    after_the_title = text.removeprefix("# Long\n\n")
    assert output(manuals("read", "guide", "long.md:3", "--all")) == after_the_title
    shown = json.loads(output(manuals("read", "guide", "long.md", "--all", "--json")))
    assert (shown["text"], shown["eof"]) == (text, True)


def test_read_as_json_says_what_was_read(manuals: Command, root: Path) -> None:
    shown = json.loads(output(manuals("read", "guide", "auth/tokens.md:10", "--json")))
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
        assert err == "the file has invalid UTF-8, which was replaced in 1 place.\n"


def test_nothing_in_a_manual_steers_the_terminal(manuals: Command, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# Red \x1b[2J title\n\n\x1b[31mred\x1b[0m\twizard\n"
    write(root / "guide/red.md", text)
    found = output(manuals("find", "wizard"))
    assert ("Red" in found, "\x1b" in found) == (True, False)
    assert output(manuals("read", "guide", "red.md")) == text.replace("\x1b", "␛")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    manuals("read", "guide", "red.md")
    assert terminal.text == text.replace("\x1b", "␛")


def test_a_line_behind_the_end_of_a_file_is_refused_with_the_last_line(manuals: Command) -> None:
    for place, last in (("auth/tokens.md:6000", 12), ("errors.json:0", 4), ("errors.json:999999999", 4)):
        said = f"openai-responses-mcp: The line is outside the file, whose last line is {last}.\n"
        assert manuals("read", f"guide/{place}") == (2, "", said)


# Failures

LISTING = "see what there is: openai-responses-mcp manuals ls"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["ls", "nowhere"], 1, "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["index", "nowhere"], 1, "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["find", "x", "--manual", "nowhere"], 1, "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["read", "nowhere", "x.md"], 1, "There is no manual 'nowhere'; the manuals are guide, plant."),
        (["read", "guide", "x.md"], 1, f"Manual 'guide' has no 'x.md'; {LISTING} guide"),
        (["read", "guide", "auth"], 1, f"'auth' is a folder, not a file; {LISTING} guide"),
        (["ls", "guide", "x"], 1, f"Manual 'guide' has no 'x'; {LISTING} guide"),
        (["ls", "guide", "logs.md"], 1, f"'logs.md' is a file, not a folder; {LISTING} guide"),
        (["read", "guide/logs.md/x.md"], 1, f"'logs.md' is a file, not a folder; {LISTING} guide"),
        (["read", "guide", "../x.md"], 1, f"The path holds '..'; {LISTING}"),
        (["find", "a", "--path", "../b"], 1, "The path holds '..'; "),
        (["find", " "], 2, "QUERY is blank; say what to look for."),
        (["find", "x" * 20_000], 2, "query must be the question"),
    ],
)
def test_what_is_not_there_is_told_with_a_cure_for_people(
    manuals: Command, arguments: list[str], code: int, said: str
) -> None:
    ended, out, err = manuals(*arguments)
    assert (ended, out, err.startswith(f"openai-responses-mcp: {said}")) == (code, "", True)
    ended, out, err = manuals(*arguments, "--json")
    document = json.loads(out)
    message = document["error"]["message"]
    assert (ended, message.startswith(said), err) == (code, True, f"openai-responses-mcp: {message}\n")


def test_an_empty_file_is_told(manuals: Command, root: Path) -> None:
    write(root / "guide/empty.md", "")
    write(root / "guide/empty.json", "")
    for name in ("empty.md", "empty.json"):
        assert manuals("read", "guide", name) == (0, "", "the file is empty.\n")
    assert json.loads(output(manuals("read", "guide", "empty.md", "--json")))["text"] == ""


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
    assert (code, "There is no manual 'a'; see what there is: " in err) == (1, True)


@pytest.mark.parametrize(
    ("option", "variable", "said"),
    [
        ("nowhere", None, "--root: there is no folder 'nowhere'; correct the path."),
        (r"C:\Users\me", None, r"--root: there is no folder 'C:\Users\me'; correct the path."),
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
    write(tmp_path / "config.yaml", "manuals: {search_tool: false}\nmanualz: 1\n")
    code, out, err = manuals("index", "--config", str(tmp_path / "config.yaml"), "--root", str(tmp_path / "library"))
    assert code == 0
    assert out.startswith("other: 1 file")
    assert not err.startswith("openai-responses-mcp: ")  # a warning
    assert "manualz" in err
    write(tmp_path / "config.yaml", "manuals: {search_tool: many}\npolicy: {max_citations: 99}\n")
    code, out, err = manuals("index", "--config", str(tmp_path / "config.yaml"))
    assert (code, out) == (2, "")
    assert [line.startswith("openai-responses-mcp: ") for line in err.splitlines()] == [True, True]


# The command line


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_output_that_cannot_carry_japanese_has_escapes_in_its_place(
    manuals: Command, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    def written(*arguments: str) -> str:
        buffer = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding=encoding))
        code, _, err = manuals(*arguments)
        assert (code, err) == (0, "")
        return buffer.getvalue().decode("ascii")

    assert written("read", "plant", "電源.md", "--all").splitlines()[0] == r"# \u53d6\u6271\u8aac\u660e\u66f8"
    assert json.loads(written("find", "予備電源", "--json"))["query"] == "予備電源"
    assert written("read", "guide", "logs.md", "--all") == LOGS.replace("\n", os.linesep)


# Real processes


def process(tmp_path: Path, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, "manuals", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, **settings_for(tmp_path), **env),
    )


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
from responses_mcp.manuals.files import folder
from responses_mcp.manuals.index import update as index
read, seen = index.entries, set()
def stuck(path, *arguments, **options):
    seen.add(path)
    if len(seen) == 12:  # the first transaction is smaller
        print("stuck", file=sys.stderr, flush=True)
        time.sleep(600)
    return read(path, *arguments, **options)
index.entries, folder._FRESH_NS = stuck, 0
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
