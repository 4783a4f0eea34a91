"""An entry in a TOML file of somebody else: only its table changes, whatever the file looks like."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.clients.codex_table import CodexTable
from responses_mcp.commands.clients.files import Unmergeable

ENTRY = {"command": "C:\\x.exe", "args": ["--stdio"], "env": {"A": "1"}, "required": True, "tool_timeout_sec": 330}
BLOCK = """\
[mcp_servers.ours]
command = "C:\\\\x.exe"
args = ["--stdio"]
env = { A = "1" }
required = true
tool_timeout_sec = 330
"""
OTHERS = """\
# my settings
model = "gpt-5"   # this one
list = [
  "[mcp_servers.ours]",
  ["nested"],
]
when = 2026-11-22T01:02:03Z
odd = nan

[mcp_servers."other server"]
command = 'it is'
env.A = "b"
[[rows]]
n = 1
[[rows]]
n = 2
"""


def document(text: str) -> CodexTable:
    return CodexTable(text, container="mcp_servers", name="ours")


def merged(text: str, entry: dict[str, Any] = ENTRY) -> str:
    return document(text).changed(entry)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("a = 1", f"a = 1\n\n{BLOCK}"),
        ("a = 1\n\n", f"a = 1\n\n\n{BLOCK}"),
        ("a = 1\r\n", f"a = 1\n\n{BLOCK}".replace("\n", "\r\n")),
        (OTHERS, f"{OTHERS}\n{BLOCK}"),
        ("[mcp_servers]\na.command = 'x'\n", f"[mcp_servers]\na.command = 'x'\n\n{BLOCK}"),
        ("note = '''\n[mcp_servers.ours]\n'''\n", f"note = '''\n[mcp_servers.ours]\n'''\n\n{BLOCK}"),
        (
            "[mcp_servers.ours]\ncommand = 'old'\n\n[mcp_servers.ours.env]\nA = '1'\n# b\n"
            "[c]\n\n[mcp_servers.ours.tools.answer]\nx = 1",
            f"# b\n[c]\n\n{BLOCK}",
        ),
        ("[a]\r\nb = 1\r\n[mcp_servers.ours]", f"[a]\nb = 1\n\n{BLOCK}".replace("\n", "\r\n")),
    ],
)
def test_a_table_is_added_at_the_end_and_an_old_one_goes_with_those_below_it(before: str, after: str) -> None:
    assert merged(before) == after


@pytest.mark.parametrize(
    "table",
    [
        "[mcp_servers.ours]\ncommand = 'old'",
        "  [ mcp_servers . \"ours\" ] # ] [\ncommand = 'old'\n# inside\nenv.B = '[other]' # last",
        "[mcp_servers.ours] # alone",
        "[mcp_servers.'ours'.env]\nA = 'old'",
    ],
)
def test_an_old_table_is_cut_and_the_new_one_is_the_last(table: str) -> None:
    before = f"{OTHERS}\n# before\n{table}\n\n# after\n[next]\na = 1\n"
    assert merged(before) == f"{OTHERS}\n# before\n\n# after\n[next]\na = 1\n\n{BLOCK}"


def test_every_kind_of_value_is_written_so_that_it_reads_the_same() -> None:
    text = "[mcp_servers.ours]\na = 1.5\nb = [1, {c = 'd\\e'}]\nh = -inf\ni = {}\nj = []\n'k l' = \"\\u007f\\n\"\n"
    entry = tomllib.loads(text)["mcp_servers"]["ours"]
    assert document(merged("", entry)).entry == entry


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "it is not valid TOML 1.0 (invalid value (at end of document))"),
        ("a = {\n  b = 1\n}", "it is not valid TOML 1.0"),
        ("a = 1\na = 2\n", "line 2"),
        ("mcp_servers = 1", "mcp_servers in it is not a table"),
    ],
)
def test_a_file_that_is_no_toml_is_refused(text: str, words: str) -> None:
    with pytest.raises(Unmergeable, match=re.escape(words)):
        document(text)


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { a = { command = 'x' } }",
        "mcp_servers = { ours = { command = 'x' } }",
        "[mcp_servers]\nours = { command = 'x' }",
        "[mcp_servers]\nours.command = 'x'",
        "mcp_servers.ours.command = 'x'",
        "[mcp_servers.ours]\nnote = '''\n[other]\n'''",  # not beside, but as safe
        "a = '''\n[mcp_servers.ours]\n'''\n\n[mcp_servers.ours]\ncommand = 'a'\n",
    ],
)
def test_an_entry_that_is_no_table_of_its_own_is_left_alone(text: str) -> None:
    found = document(text)
    for change in (lambda: found.changed(ENTRY), *([found.removed] if found.entry is not None else [])):
        with pytest.raises(Unmergeable, match="is not a separate table; change the entry by hand"):
            change()


pieces = st.sampled_from(
    [
        "# [mcp_servers.ours]\n",
        "\n",
        "[a]\nb = [ # ]\n  '[mcp_servers.ours]',\n]\n",
        '[c]\nd = """"q""""\ne = \'\'\'\n[other]\n\'\'\'\n',
        "[mcp_servers.x]\ncommand = 'y'\n",
        "[mcp_servers.x.env]\nA = \"#\"\n",
        "[mcp_servers.ours]\ncommand = \"old\" # x\n",
        "[mcp_servers.ours.env]\nA = '['\n",
        "[[f]]\ng = {h = [1, 2]}\n",
    ]
)  # fmt: skip


@given(st.lists(pieces, max_size=8, unique=True), st.booleans())
def test_in_any_file_only_the_table_changes(parts: list[str], crlf: bool) -> None:
    text = "top = 1\n" + "".join(parts)
    text = text.replace("\n", "\r\n") if crlf else text
    root, after = tomllib.loads(text), merged(text)
    assert tomllib.loads(after) == {**root, "mcp_servers": {**root.get("mcp_servers", {}), "ours": ENTRY}}
    assert merged(after) == after
    if document(text).entry is None:
        assert after.startswith(text)
    assert crlf or "\r" not in after
    assert not crlf or after.count("\n") == after.count("\r\n")


def test_tables_below_it_go_too_and_comments_above_the_next_one_stay() -> None:
    text = "x = 1\n\n[mcp_servers.ours]\ncommand = 'a' # why\n[mcp_servers.ours.env]\nA = '1'\n\n# next\n[b]\n"
    assert document(text).removed() == "x = 1\n\n# next\n[b]\n"


@given(st.lists(pieces, max_size=8, unique=True), st.booleans())
def test_in_any_file_only_the_table_is_removed(parts: list[str], crlf: bool) -> None:
    text = "top = 1\n" + "".join(parts)
    text = text.replace("\n", "\r\n") if crlf else text
    root, with_it = tomllib.loads(text), document(merged(text))
    after = with_it.removed()
    others = {name: each for name, each in root.get("mcp_servers", {}).items() if name != "ours"}
    assert {"mcp_servers": {}, **tomllib.loads(after)} == {**root, "mcp_servers": others}
    if document(text).entry is None:
        assert after == text
