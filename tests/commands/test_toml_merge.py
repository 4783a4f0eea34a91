"""An entry in a TOML file of somebody else: only its table changes, whatever the file looks like."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.text_edits import Unmergeable, edited
from responses_mcp.commands.toml_merge import TomlDocument

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
note = '''
[mcp_servers.ours]
not a table''''
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


def document(text: str) -> TomlDocument:
    return TomlDocument(text, container="mcp_servers", name="ours")


def merged(text: str, entry: dict[str, Any] = ENTRY) -> str:
    return edited(text, document(text).edits(entry))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", BLOCK),
        ("a = 1", f"a = 1\n\n{BLOCK}"),
        ("a = 1\n\n", f"a = 1\n\n\n{BLOCK}"),
        ("a = 1\r\n", f"a = 1\r\n\r\n{BLOCK}".replace("\r\n", "\n").replace("\n", "\r\n")),
        (OTHERS, f"{OTHERS}\n{BLOCK}"),
        ("[mcp_servers]\na.command = 'x'\n", f"[mcp_servers]\na.command = 'x'\n\n{BLOCK}"),
    ],
)
def test_a_table_is_added_at_the_end(before: str, after: str) -> None:
    assert merged(before) == after


@pytest.mark.parametrize(
    "table",
    [
        "[mcp_servers.ours]\ncommand = 'old'",
        "  [ mcp_servers . \"ours\" ] # ] [\ncommand = 'old'\n# inside\nenv.B = '''\n[other]\n''' # last",
        "[mcp_servers.ours] # alone",
        "[mcp_servers.'ours'.env]\nA = 'old'",
    ],
)
def test_a_table_is_replaced_where_it_stands(table: str) -> None:
    before = f"{OTHERS}\n# before\n{table}\n\n# after\n[next]\na = 1\n"
    indent = table[: len(table) - len(table.lstrip())]
    assert merged(before) == f"{OTHERS}\n# before\n{indent}{BLOCK}\n# after\n[next]\na = 1\n"


def test_tables_below_it_go_with_it() -> None:
    before = (
        "[mcp_servers.ours]\ncommand = 'old'\n\n[mcp_servers.ours.env]\nA = '1'\n# b\n"
        "[c]\n\n[mcp_servers.ours.tools.answer]\nx = 1"
    )
    assert merged(before) == f"{BLOCK}\n# b\n[c]\n\n"


def test_every_kind_of_value_is_written_so_that_it_reads_the_same() -> None:
    text = (
        "[mcp_servers.ours]\na = 1.5\nb = [1, {c = 'd\\e'}]\nf = 2026-11-22\ng = 07:32:00\nh = -inf\n"
        "i = {}\nj = []\n'k l' = \"\\u007f\\n\"\nm = 1979-05-27T07:32:00-08:00\n"
    )
    entry = tomllib.loads(text)["mcp_servers"]["ours"]
    assert document(merged("", entry)).entry == entry


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "not valid TOML (invalid value (at end of document))"),
        ("a = 1\nb = [\n", "not valid TOML"),
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
    ],
)
def test_an_entry_that_is_no_table_of_its_own_is_left_alone(text: str) -> None:
    with pytest.raises(Unmergeable, match="write each entry as a table of its own"):
        document(text).edits(ENTRY)


pieces = st.sampled_from(
    [
        "# [mcp_servers.ours]\n",
        "\n",
        "[a]\nb = [ # ]\n  '[mcp_servers.ours]',\n]\n",
        '[c]\nd = """"q""""\ne = \'\'\'\n[mcp_servers.ours]\n\'\'\'\n',
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
    others = [part.replace("\n", "\r\n") if crlf else part for part in parts if "[mcp_servers.ours" not in part[:18]]
    at = 0
    for part in others:
        at = after.index(part, at) + len(part)
