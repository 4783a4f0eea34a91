"""An entry in a JSON file of somebody else: only the entry changes, whatever the file looks like."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.clients.files import Unmergeable
from responses_mcp.commands.clients.json_merge import Dialect, JsonDocument

ENTRY = {"command": "C:\\Programs\\x.exe", "args": ["--stdio"], "env": {"KEY": "${KEY}"}}


def document(text: str, dialect: Dialect = "jsonc") -> JsonDocument:
    return JsonDocument(text, container="mcpServers", name="ours", dialect=dialect)


def merged(text: str, dialect: Dialect = "jsonc", entry: dict[str, Any] = ENTRY) -> str:
    return document(text, dialect).changed(entry)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}'),
        ("{}\r\n", '{\r\n  "mcpServers": {\r\n    "ours": ENTRY4\r\n  }\r\n}\r\n'),
        ('{"a": 1}', '{\n  "mcpServers": {\n    "ours": ENTRY4\n  },\n  "a": 1}'),
        ('{\n  "mcpServers": { // all\n  }\n}', '{\n  "mcpServers": { // all\n    "ours": ENTRY4\n  }\n}'),
        (
            '{\n  "a": "mcpServers",\n  "mcpServers": { /* b */ // c, }\n    // d\n    "e": {},\n  },\n}',
            '{\n  "a": "mcpServers",\n  "mcpServers": { /* b */ // c, }\n    "ours": ENTRY4,\n    // d\n    "e": {},\n  },\n}',
        ),
        ('{\n  "mcpServers": {"b": {}}, // c\n}', '{\n  "mcpServers": {\n    "ours": ENTRY4,\n    "b": {}}, // c\n}'),
        (
            '{\n  "mcpServers": {\n    "ours": {\n      "command": "old" // x\n    }, // y\n    "b": {},\n  },\n}',
            '{\n  "mcpServers": {\n    "ours": ENTRY4, // y\n    "b": {},\n  },\n}',
        ),
        ('{"mcpServers": {"ours": 1, "ours": 2}}', '{"mcpServers": {"ours": 1, "ours": ENTRY0}}'),
        ('{"mcp\\u0053ervers": {"our\\u0073": {}}}', '{"mcp\\u0053ervers": {"our\\u0073": ENTRY0}}'),
    ],
)
def test_an_entry_is_the_first_or_stays_where_it_stands(before: str, after: str) -> None:
    newline = "\r\n" if "\r\n" in before else "\n"
    for width in (0, 4):
        block = json.dumps(ENTRY, indent=2).replace("\n", newline + " " * width)
        after = after.replace(f"ENTRY{width}", block)
    assert merged(before) == after


def test_tabs_stay_tabs() -> None:
    block = json.dumps(ENTRY, indent="\t").replace("\n", "\n\t\t")
    before = '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}'
    assert merged(before) == before.replace('"a": {}', f'"ours": {block},\n\t\t"a": {{}}')


@pytest.mark.parametrize(
    ("text", "dialect", "words"),
    [
        (
            '{\n  "a": 1,\n}',
            "json",
            "(line 3, column 1: Expecting property name enclosed in double quotes); correct that",
        ),
        ('{\n  // a\n  "b": 1\n}', "json", "(line 2, column 3: "),
        ('{"a": {"b": 1}\n', "jsonc", "(line 2, column 1: "),
        ('{"a": 1 /* }', "jsonc", "not valid JSON (line 1"),
        ('{"a": NaN}', "jsonc", "not valid JSON"),
        ('{"a": ' + "[" * 100_000, "jsonc", "nested too deeply"),
        ("[]", "jsonc", "one JSON object"),
        ('{"mcpServers": []}', "jsonc", '"mcpServers" in it is not an object'),
        ('{"a": "\n"}', "jsonc", "not valid JSON (line 1"),
    ],
)
def test_what_the_client_could_not_read_is_refused(text: str, dialect: Dialect, words: str) -> None:
    with pytest.raises(Unmergeable, match=re.escape(words)):
        document(text, dialect)


# Any document, written in any style

blanks = st.text(" \t\r\n", max_size=3)
comments = st.sampled_from(["// a, }\n", "/* b: [ */", '/* "c" \n */', '//"\r\n'])
names = st.sampled_from(["mcpServers", "ours", "a", 'q"', "日本語", "\\", "//"])
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("/* no comment */, ]")
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=8)  # fmt: skip
entries = st.fixed_dictionaries({"command": st.text(max_size=5), "args": st.lists(st.text(max_size=3), max_size=2)})


def written(draw: st.DrawFn, value: object, dialect: Dialect) -> str:
    """Write a value with blanks, comments and trailing commas wherever the dialect allows."""

    def gap() -> str:
        text = draw(blanks)
        if dialect != "json" and draw(st.integers(0, 5)) == 0:
            text += draw(comments) + draw(blanks)
        return text

    def joined(parts: list[str], opening: str, closing: str) -> str:
        comma = "," + gap() if parts and dialect == "jsonc" and draw(st.booleans()) else ""
        return opening + gap() + f",{gap()}".join(parts) + gap() + comma + closing

    if isinstance(value, dict):
        style = draw(st.sampled_from(["free", "lines", "line"]))
        if style != "free":
            indent = draw(st.sampled_from(["", " ", "    ", "\t"]))
            return json.dumps(value, indent=indent if style == "lines" else None)
        members = [
            json.dumps(key, ensure_ascii=draw(st.booleans())) + gap() + ":" + gap() + written(draw, each, dialect)
            for key, each in value.items()
        ]
        return joined(members, "{", "}")
    if isinstance(value, list):
        return joined([written(draw, each, dialect) for each in value], "[", "]")
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[str, Any], str, Dialect]:
    dialect: Dialect = draw(st.sampled_from(["json", "json with comments", "jsonc"]))
    root = draw(st.dictionaries(names, values, max_size=4))
    if draw(st.booleans()) or not isinstance(root.get("mcpServers", {}), dict):
        root["mcpServers"] = draw(st.dictionaries(names, values, max_size=3))
    return root, draw(blanks) + written(draw, root, dialect) + draw(blanks), dialect


@given(files(), entries)
def test_in_any_file_only_the_entry_changes_and_merging_again_changes_nothing(
    file: tuple[dict[str, Any], str, Dialect], entry: dict[str, Any]
) -> None:
    root, text, dialect = file
    before = document(text, dialect)
    after = before.changed(entry)
    assert before.entry == root.get("mcpServers", {}).get("ours")
    assert document(after, dialect).entry == entry
    assert merged(after, dialect, entry) == after
    if before.entry is None and "ours" not in root.get("mcpServers", {}):
        begin = next((at for at, (a, b) in enumerate(zip(text, after, strict=False)) if a != b), len(text))
        assert after.endswith(text[begin:]), "something of the owner's was replaced"
    if dialect == "json":
        assert json.loads(after) == {**root, "mcpServers": {**root.get("mcpServers", {}), "ours": entry}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"mcpServers": {"ours": {},}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"a": 1, "ours": {}}}', '{"mcpServers": {"a": 1 }}'),
        ('{"mcpServers": {"a": 1, "ours": {}, "b": 2}}', '{"mcpServers": {"a": 1,  "b": 2}}'),
        (
            '{\r\n  "mcpServers": {\r\n    "a": 1, // one\r\n    "ours": {} // two\r\n    // three\r\n  }\r\n}',
            '{\r\n  "mcpServers": {\r\n    "a": 1 // one\r\n    // three\r\n  }\r\n}',
        ),
        (
            '{\n  "mcpServers": {\n    // zero\n    "ours": {\n      "x": 1\n    },\n    "b": 2\n  }\n}',
            '{\n  "mcpServers": {\n    // zero\n    "b": 2\n  }\n}',
        ),
    ],
)
def test_an_entry_goes_with_its_comma_and_its_lines(before: str, after: str) -> None:
    assert document(before).removed() == after


def test_removing_one_of_two_entries_of_the_name_is_refused_because_the_other_would_count() -> None:
    with pytest.raises(Unmergeable, match="change the entry by hand"):
        document('{"mcpServers": {"ours": 1, "ours": 2}}').removed()


@given(files(), entries)
def test_in_any_file_only_the_entry_is_removed(
    file: tuple[dict[str, Any], str, Dialect], entry: dict[str, Any]
) -> None:
    root, text, dialect = file
    with_it = text if document(text, dialect).entry is not None else merged(text, dialect, entry)
    after = document(with_it, dialect).removed()
    others = {name: each for name, each in root.get("mcpServers", {}).items() if name != "ours"}
    found = document(after, dialect)
    assert (found.entry, found.entries) == (None, others)
    if dialect == "json":
        assert json.loads(after) == {**root, "mcpServers": others}
