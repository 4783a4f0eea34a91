"""An entry in a YAML file of somebody else: only its lines change, whatever the file looks like."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.clients.files import Unmergeable
from responses_mcp.commands.clients.yaml_merge import YamlDocument

ENTRY = {"cmd": "C:\\x.exe", "args": ["--stdio"], "envs": {"A": "1"}, "enabled": True, "timeout": 330}
BLOCK = """\
  ours:
    cmd: C:\\x.exe
    args:
    - --stdio
    envs:
      A: '1'
    enabled: true
    timeout: 330
"""
OTHERS = """\
# my settings
GOOSE_MODEL: gpt-5   # this one
list: [a, 'extensions:', [b]]
extensions:
  # the first
  other:
    cmd: 'it is'
    note: |
      ours:
        # no comment

  last: {type: builtin} # mine

# the end
z: 1.50
"""


def document(text: str) -> YamlDocument:
    return YamlDocument(text, container="extensions", name="ours")


def merged(text: str, entry: dict[str, Any] = ENTRY) -> str:
    return document(text).changed(entry).text


def deeper(block: str) -> str:
    return re.sub("^", "  ", block, flags=re.MULTILINE).removesuffix("  ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"extensions:\n{BLOCK}"),
        ("# only\n", f"# only\nextensions:\n{BLOCK}"),
        ("a: 1", f"a: 1\nextensions:\n{BLOCK}"),
        ("---\na: 1\r\n", f"---\na: 1\r\nextensions:\n{BLOCK}".replace("\r\n", "\n").replace("\n", "\r\n")),
        ("extensions:", f"extensions:\n{BLOCK}"),
        ("extensions: ~  # none\nb: 1\n", f"extensions:  # none\n{BLOCK}b: 1\n"),
        ("b: 1\nextensions: {}\n", f"b: 1\nextensions:\n{BLOCK}"),
        (OTHERS, OTHERS.replace("extensions:\n", f"extensions:\n{BLOCK}")),
        ("extensions: # here\n    b: {}\n", f"extensions: # here\n{deeper(BLOCK)}    b: {{}}\n"),
        ('"extensions" :\n  b: {}\n', f'"extensions" :\n{BLOCK}  b: {{}}\n'),
    ],
)
def test_an_entry_is_added_before_the_others(before: str, after: str) -> None:
    before = before.replace("\r\n", "\n").replace("\n", "\r\n") if "\r" in before else before
    assert merged(before) == after


@pytest.mark.parametrize(
    "old",
    [
        "  ours:\n    cmd: old\n",
        "  'ours' : {cmd: old, # why\n    args: []}\n",
        "  ours:\n    cmd: old # why\n    # inside\n    args:\n    - a\n",
        "  ours: # nothing\n",
        "  ours:\n    note: >-\n      a\n\n      b\n",
    ],
)
@pytest.mark.parametrize("behind", ["", "  # of the next\n  next: {}\n", "\n# end\nz: 1\n"])
def test_an_entry_is_replaced_where_it_stands(old: str, behind: str) -> None:
    before = f"extensions:\n  b: {{}}\n  # ours\n{old}{behind}"
    change = document(before).changed(ENTRY)
    assert change.text == f"extensions:\n  b: {{}}\n  # ours\n{BLOCK}{behind}"
    assert change.drops_comments is ("#" in old)


def test_a_last_line_without_an_end_stays_without() -> None:
    assert merged("extensions:\n  ours:\n    cmd: old") == f"extensions:\n{BLOCK}".rstrip("\n")


@pytest.mark.parametrize(
    "value",
    [
        "yes",
        "1e3",
        "0o17",
        "07",
        "null",
        "",
        "~",
        "# a",
        "a: b",
        "- a",
        "a\nb",
        "日本 🦆",
        "\t",
        "1:30",
        "2026-11-22",
        "*a",
        "0123",
        "0891234",
        "-00",
    ],
)
def test_a_text_stays_a_text_for_a_reader_of_version_1_2(value: str) -> None:
    text = merged("", {"cmd": "x", "envs": {"A": value}})
    assert document(text).entry == {"cmd": "x", "envs": {"A": value}}
    written = text.partition("A: ")[2].strip()
    numbers = re.compile(r"[-+]?[0-9.]+(e[0-9]+)?|0o[0-7]+|null|~|")
    assert (written[0] in "'\"") or not numbers.fullmatch(written)


def test_what_the_owner_of_an_entry_wrote_is_read_as_version_1_2_has_it() -> None:
    text = "extensions:\n  ours:\n    a: yes\n    b: 1e3\n    c: 2026-11-22\n    d: 1_0\n    e: .inf\n    f: True\n    g: 0x10\n"
    entry = {"a": "yes", "b": 1000.0, "c": "2026-11-22", "d": "1_0", "e": float("inf"), "f": True, "g": 16, "h": None}
    assert document(f"{text}    h:\n").entry == entry
    again = document(merged(f"{text}    h:\n", entry)).entry
    assert again == entry


def test_digits_behind_a_zero_are_a_text_in_our_entry_and_in_that_of_another() -> None:
    text = "extensions:\n  ours:\n    envs: {A: 0123, B: -007, C: 0}\n    d: 01.5\n  b:\n    envs: {PHONE: 0891234}\n"
    entry = {"envs": {"A": "0123", "B": "-007", "C": 0}, "d": 1.5}
    assert document(text).entry == entry
    again = merged(text, entry)
    assert document(again).entries == {"ours": entry, "b": {"envs": {"PHONE": "0891234"}}}
    assert "PHONE: 0891234}" in again
    assert "A: '0123'" in again  # a number to other readers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [\nb: 1\n", "not valid YAML (line 3, column 1: expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", "not valid YAML (line 2, column 1: found a tab, not blanks)"),
        ("a: 1\nb: \x07\n", "not valid YAML (line 2: a character"),
        ("a: 1\n---\nb: 1\n", "not valid YAML"),
        ("- a\n", "something other than one mapping"),
        ("just words", "something other than one mapping"),
        ("extensions: [a]", "extensions in it is not a mapping"),
        ("extensions: a", "extensions in it is not a mapping"),
        ("extensions: {}\nextensions: {}\n", "extensions stands there twice"),
        ("extensions:\n  ours: {}\n  ours: {}\n", "ours stands there twice"),
        ("a: &x 1\nb: *x\n", "refers to parts of itself"),
        ("a: &x [*x]", "refers to parts of itself"),
        ("extensions:\n  b: !mine {}\n", "a value that cannot be read"),
        (f"extensions:\n  b: {'9' * 5000}\n", "a value that cannot be read"),
        (f"extensions:\n  ours:\n    b: 0x{'f' * 500}\n", "a number that is too long"),
        (f"extensions:\n  ours: {'[' * 70}{']' * 70}\n", "nested too deeply"),
        ("a: " + "[" * 5000, "nested too deeply"),
        (f"# {'x' * 2**20}", "more than 1 MiB"),
    ],
    ids=lambda text: text[:24],
)
def test_a_file_that_is_no_such_yaml_is_refused(text: str, words: str) -> None:
    with pytest.raises(Unmergeable, match=re.escape(words)):
        document(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("extensions: {b: {}}", "written in braces"),
        ("{a: 1}", "add the entry by hand"),
        ("a: 1\n...\n", "add the entry by hand"),
        ("? extensions\n: b: {}\n", "add the entry by hand"),
        ("a: |\n  b", "add the entry by hand"),
        ("extensions: {ours: {}, b: {}}", "add the entry by hand"),
    ],
)
def test_an_entry_that_has_no_lines_of_its_own_is_left_alone(text: str, words: str) -> None:
    with pytest.raises(Unmergeable, match=words):
        document(text).changed(ENTRY)


pieces = st.sampled_from(
    [
        "# extensions:\n",
        "\n",
        "a:\n  - b: |\n      extensions:\n       ours: 1\n  - 'c # d'\n",
        'e: "\\\n  f"\n',
        "g: {h: [1, 2], # i\n  j: ~}\n",
        "extensions:\n  b:\n    cmd: y # z\n\n  # c\n  c: {}\n",
        "extensions:\n  ours:\n    cmd: old # x\n  # c\n  c:\n  - 1\n",
        "extensions:\n      ours: {}\n",
        "extensions: {} # none\n",
    ]
)  # fmt: skip
files = st.lists(pieces, max_size=6, unique=True).filter(lambda parts: sum(p.startswith("ext") for p in parts) < 2)


@given(files, st.booleans())
def test_in_any_file_only_the_entry_changes_and_it_can_be_removed(parts: list[str], crlf: bool) -> None:
    text = "top: 1\n" + "".join(parts)
    text = text.replace("\n", "\r\n") if crlf else text
    root, after = yaml.safe_load(text), merged(text)
    others = {name: each for name, each in (root.get("extensions") or {}).items() if name != "ours"}
    assert yaml.safe_load(after) == {**root, "extensions": {**others, "ours": ENTRY}}
    assert merged(after) == after
    assert not crlf or after.count("\n") == after.count("\r\n")
    without = document(after).removed().text
    assert yaml.safe_load(without) == {**root, "extensions": others}
    if document(text).entry is None and root.get("extensions"):
        assert without == text


def test_removing_the_only_entry_leaves_an_empty_mapping() -> None:
    change = document("a: 1\nextensions: # mine\n  ours:\n    cmd: x # why\n\n# z\nz: 1\n").removed()
    assert (change.text, change.drops_comments) == ("a: 1\nextensions: {} # mine\n\n# z\nz: 1\n", True)


def test_an_entry_in_braces_is_left_to_its_owner() -> None:
    with pytest.raises(Unmergeable, match="remove the entry by hand"):
        document("extensions: {ours: {}, b: {}}\n").removed()
