"""An entry in a JSON file of somebody else: only the entry changes, whatever the file looks like."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.json_merge import Dialect, JsonDocument
from responses_mcp.commands.text_edits import Edit, Unmergeable, edited

ENTRY = {"command": "C:\\Programs\\x.exe", "args": ["--stdio"], "env": {"KEY": "${KEY}"}}
IN_LINE = '{"command": "C:\\\\Programs\\\\x.exe", "args": ["--stdio"], "env": {"KEY": "${KEY}"}}'


def document(text: str, dialect: Dialect = "jsonc") -> JsonDocument:
    return JsonDocument(text, container="mcpServers", name="ours", dialect=dialect)


def merged(text: str, dialect: Dialect = "jsonc", entry: dict[str, Any] = ENTRY) -> str:
    return edited(text, document(text, dialect).edits(entry))


def shown(entry: dict[str, Any], indent: str, unit: str = "  ") -> str:
    return json.dumps(entry, indent=unit).replace("\n", "\n" + indent)


def test_an_empty_file_gets_the_whole_document() -> None:
    assert merged("") == json.dumps({"mcpServers": {"ours": ENTRY}}, indent=2) + "\n"


def test_a_file_of_comments_keeps_them() -> None:
    assert merged("// mine").startswith('// mine\n{\n  "mcpServers": {')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}'),
        ("{}\r\n", '{\r\n  "mcpServers": {\r\n    "ours": ENTRY4\r\n  }\r\n}\r\n'),
        ('{"mcpServers": {}}', '{"mcpServers": {"ours": LINE}}'),
        ('{"a": 1}', '{"a": 1, "mcpServers": {"ours": LINE}}'),
        ('{"a": {"b": 1,},}', '{"a": {"b": 1,}, "mcpServers": {"ours": LINE},}'),
        ('{\n  "mcpServers": {}\n}\n', '{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}\n'),
        ('{\n  "mcpServers": {\n  }\n}\n\n', '{\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}\n\n'),
        ('{\n  "mcpServers": { // all\n  }\n}', '{\n  "mcpServers": { // all\n    "ours": ENTRY4\n  }\n}'),
        (
            '{\n  "mcpServers": {\n    "a": {} // first\n    // end\n  }\n}',
            '{\n  "mcpServers": {\n    "a": {}, // first\n    "ours": ENTRY4\n    // end\n  }\n}',
        ),
        (
            '{\n  "mcpServers": {\n    "a": {}, /* b */ // c, }\n  },\n}',
            '{\n  "mcpServers": {\n    "a": {}, /* b */ // c, }\n    "ours": ENTRY4,\n  },\n}',
        ),
        (
            '{\n  "a": 1,\n  "mcpServers": {"b": {}}, // c\n}',
            '{\n  "a": 1,\n  "mcpServers": {"b": {}, "ours": LINE}, // c\n}',
        ),
        ('{\n  "a": "mcpServers"\n}', '{\n  "a": "mcpServers",\n  "mcpServers": {\n    "ours": ENTRY4\n  }\n}'),
        ('{"a": 1 // b\n}', '{"a": 1, "mcpServers": {"ours": LINE} // b\n}'),
    ],
)
def test_an_entry_is_added_in_the_style_of_the_file(before: str, after: str) -> None:
    newline = "\r\n" if "\r\n" in before else "\n"
    block = shown(ENTRY, "    ").replace("\n", newline)
    assert merged(before) == after.replace("ENTRY4", block).replace("LINE", IN_LINE)


def test_tabs_stay_tabs() -> None:
    before = '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}'
    assert merged(before) == before.replace('"a": {}', '"a": {},\n\t\t"ours": ' + shown(ENTRY, "\t\t", "\t"))


def test_a_tight_file_stays_tight() -> None:
    tight = json.dumps(ENTRY, separators=(",", ":"))
    assert merged('{"mcpServers":{"a":{}}}') == '{"mcpServers":{"a":{},"ours":' + tight + "}}"


def test_an_entry_is_replaced_where_it_stands() -> None:
    before = '{\n  "mcpServers": {\n    "ours": {\n      "command": "old" // x\n    }, // y\n    "b": {},\n  },\n}'
    assert document(before).entry == {"command": "old"}
    after = '{\n  "mcpServers": {\n    "ours": ' + shown(ENTRY, "    ") + ', // y\n    "b": {},\n  },\n}'
    assert merged(before) == after


def test_an_entry_over_several_lines_stays_so_whatever_is_around_it() -> None:
    before = '{"mcpServers": {"ours": {\n  "command": "old"\n}}}'
    assert merged(before) == '{"mcpServers": {"ours": ' + shown(ENTRY, "") + "}}"


def test_the_last_of_several_members_of_the_same_name_counts() -> None:
    assert merged('{"mcpServers": {"ours": 1, "ours": 2}}') == '{"mcpServers": {"ours": 1, "ours": ' + IN_LINE + "}}"


def test_a_name_that_is_written_with_escapes_is_found() -> None:
    assert merged('{"mcp\\u0053ervers": {"our\\u0073": {}}}') == (
        '{"mcp\\u0053ervers": {"our\\u0073": ' + IN_LINE + "}}"
    )


@pytest.mark.parametrize(
    ("text", "dialect", "words"),
    [
        ('{\n  "a": 1,\n}', "json", "not valid JSON (line"),
        ('{\n  // a\n  "b": 1\n}', "json", "line 2, column 3"),
        ('{\n  "a": 1, // b\n}', "json with comments", "not valid JSON (line"),
        ('{"a": 1 /* }', "jsonc", "not valid JSON (line 1"),
        ('{"a": NaN}', "jsonc", "no JSON"),
        ('{"a": ' + "[" * 100_000, "jsonc", "nested too deeply"),
        ("[]", "jsonc", "one JSON object"),
        ('{"mcpServers": []}', "jsonc", '"mcpServers" in it is not an object'),
        ('{"mcpServers": null}', "jsonc", '"mcpServers" in it is not an object'),
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


def written(draw: st.DrawFn, value: object, dialect: Dialect, depth: int = 0) -> str:
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
            indent = draw(st.sampled_from(["", " ", "  ", "    ", "\t"]))
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
    if draw(st.booleans()):
        root["mcpServers"] = draw(st.dictionaries(names, values, max_size=3))
    elif not isinstance(root.get("mcpServers", {}), dict):
        del root["mcpServers"]
    return root, draw(blanks) + written(draw, root, dialect) + draw(blanks), dialect


@given(files(), entries)
def test_in_any_file_only_the_entry_changes_and_merging_again_changes_nothing(
    file: tuple[dict[str, Any], str, Dialect], entry: dict[str, Any]
) -> None:
    root, text, dialect = file
    before = document(text, dialect)
    edits = before.edits(entry)
    after = edited(text, edits)
    assert before.entry == root.get("mcpServers", {}).get("ours")
    assert document(after, dialect).entry == entry
    assert merged(after, dialect, entry) == after
    kept = edited(after, undone(edits, text))
    assert kept == text
    if "ours" not in root.get("mcpServers", {}):
        assert all(edit.start == edit.end for edit in edits), "something of the owner's was replaced"
    if dialect == "json":
        assert json.loads(after) == {**root, "mcpServers": {**root.get("mcpServers", {}), "ours": entry}}


def undone(edits: tuple[Edit, ...], text: str) -> list[Edit]:
    """Return the edits that lead back: what was put in goes, what was there comes."""
    back, shift = [], 0
    for edit in edits:
        start = edit.start + shift
        back.append(Edit(start, start + len(edit.text), text[edit.start : edit.end]))
        shift += len(edit.text) - (edit.end - edit.start)
    return back
