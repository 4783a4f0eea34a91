"""manual_scan and manual_read: pages that join to the file, sections, and going on after them."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.reading import read, scan
from responses_mcp.manuals.files.texts import decode
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from tests.manuals.files.test_texts import AWKWARD
from tests.manuals.indexed import after
from tests.manuals.written import headings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    return tmp_path


def put(root: Path, data: bytes | str, name: str = "a.md") -> Folder:
    (root / "docs" / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return Folder(root)


def page(folder: Folder, *, check=unchecked, name: str = "a.md", **request):
    return scan(folder, ScanRequest("docs", name, **request), check)


def section(folder: Folder, start_line: int | None = None, *, max_chars: int = 12_000, **given: Any):
    return read(folder, ReadRequest("docs", "a.md", start_line, max_chars), unchecked, **given)


def refusal(call, *arguments, **options) -> ManualsError:
    with pytest.raises(ManualsError) as caught:
        call(*arguments, **options)
    assert re.search("[;,] ", caught.value.message), "a cause and a cure"
    return caught.value


# Scanning.


def test_a_page_has_all_that_the_contract_names(root: Path) -> None:
    folder = put(root, "one\ntwo\nthree\n")
    assert page(folder, max_chars=6) == {
        "manual_id": "docs",
        "path": "a.md",
        "text": "one\ntw",
        "applied_range": {"start_line": 1, "end_line": 2},
        "next_cursor": {"char_offset": 6},
        "eof": False,
        "truncated": True,
        "truncated_reason": "max_chars",
        "applied": {"max_chars": 6},
    }
    assert page(folder, start_line=3) == {
        "manual_id": "docs",
        "path": "a.md",
        "text": "three\n",
        "applied_range": {"start_line": 3, "end_line": 3},
        "next_cursor": {"char_offset": None},
        "eof": True,
        "truncated": False,
        "truncated_reason": "none",
        "applied": {"max_chars": 12000},
    }


@pytest.mark.rule("M7.7")
@given(AWKWARD | st.text().map(str.encode), st.integers(1, 20), st.integers(0, 1000))
def test_pages_join_to_the_file_from_any_place_on(root: Path, data: bytes, most: int, start: int) -> None:
    folder, text = put(root, data), decode(data).text
    offset: int | None = min(start, len(text))
    joined = text[:offset]
    while offset is not None:
        found = page(folder, char_offset=offset, max_chars=most)
        assert len(found["text"]) <= most
        first, last = found["applied_range"]["start_line"], found["applied_range"]["end_line"]
        assert first == text.count("\n", 0, min(offset, len(text) - 1)) + 1  # behind the last line end there is no line
        assert last == first + found["text"][:-1].count("\n")
        assert found["eof"] is not found["truncated"]
        assert found["eof"] or found["text"]
        joined += found["text"]
        offset = found["next_cursor"]["char_offset"]
        assert offset in (None, len(joined))
    assert joined == text


@given(AWKWARD | st.lists(st.sampled_from([b"\n", b"a" * 9, b"\r\n"]), max_size=12).map(b"".join))
def test_a_line_begins_where_the_text_says(root: Path, data: bytes) -> None:
    text = decode(data).text
    folder, listed = put(root, data), text.split("\n")
    if len(listed) > 1 and not listed[-1]:
        listed[-2:] = [f"{listed[-2]}\n"]
    for line in (*range(1, len(listed) + 1), 1):  # more and more places are known
        found = page(folder, start_line=line)
        assert found["text"] == "\n".join(listed[line - 1 :])
        assert found["applied_range"]["start_line"] == line
    for line in (-1, 0, len(listed) + 1, 10**12):
        error = refusal(page, folder, start_line=line)
        assert error.code == "invalid_parameter"
        assert f" {len(listed)}," in error.message
        assert error.details == {"lines": len(listed)}


def test_the_end_is_an_empty_page_and_beyond_it_there_is_none(root: Path) -> None:
    for data in (b"", b"\xef\xbb\xbf"):
        found = page(put(root, data))
        assert (found["text"], found["eof"], found["applied_range"]) == ("", True, {"start_line": 1, "end_line": 1})
    folder = put(root, "one\n")
    found = page(folder, char_offset=4)
    assert (found["text"], found["eof"], found["applied_range"]) == ("", True, {"start_line": 1, "end_line": 1})
    error = refusal(page, folder, char_offset=5)
    assert error.code == "invalid_parameter"
    assert "4 characters" in error.message


def test_replaced_bytes_are_said_on_the_page_that_has_them(root: Path) -> None:
    folder = put(root, b"fine \xef\xbf\xbd" * 100 + b"\xff\xfe caf\xe9\n")
    assert page(folder)["decoding_replacements"] == 3
    assert page(folder, start_line=1)["text"].endswith("\ufffd\ufffd caf\ufffd\n")
    assert "decoding_replacements" not in page(put(root, "fine \ufffd\n"))
    assert section(put(root, b"# A\n\xff\n# B\nfine"), 1)[0]["decoding_replacements"] == 1
    assert "decoding_replacements" not in section(Folder(root), 3)[0]


def test_a_file_over_the_limit_is_not_read_and_the_refusal_names_the_limit(root: Path) -> None:
    put(root, b"0123456789abcde\n" * 100)
    error = refusal(page, Folder(root, largest=1599))
    assert (error.code, error.details) == ("conflict", {"path": "a.md"})
    assert "larger than 1599 bytes" in error.message
    assert page(Folder(root, largest=1600))["eof"] is True


def test_the_work_can_be_interrupted(root: Path) -> None:
    folder = put(root, "x")
    with pytest.raises(OutOfTime):
        page(folder, check=after(0))
    with pytest.raises(OutOfTime):
        read(folder, ReadRequest("docs", "a.md"), after(0))


@pytest.mark.parametrize("encoding", ["utf-16", "shift_jis", "euc_jp"])
def test_pages_and_sections_are_in_the_encoding_of_the_file(root: Path, encoding: str) -> None:
    text = "# 一\n" + "二要素認証\n" * 50 + "# 三\n終わり"
    folder = put(root, text.encode(encoding))
    for offset in (0, 100, 250, 250, 100):  # also from places that are known
        found = page(folder, char_offset=offset, max_chars=60)
        assert found["text"] == text[offset : offset + 60]
        assert "decoding_replacements" not in found
    assert section(folder, 52)[0]["text"] == "# 三\n終わり"


# Files that change.


def changing(path: Path, times: int):
    """Return a check that changes a file at its first calls."""
    count = 0

    def check() -> None:
        nonlocal count
        if count < times:
            count += 1
            path.write_bytes(b"# changed\n" * 11)
            os.utime(path, ns=(1000 * count, 1000 * count))  # Windows counts in tenths of a microsecond

    return check


def test_a_file_that_changed_while_it_was_read_is_read_again(root: Path) -> None:
    folder = put(root, "# old\n" * 1000)
    found = page(folder, check=changing(root / "docs/a.md", 1))
    assert found["text"] == "# changed\n" * 11


def test_a_file_that_does_not_stay_the_same_is_a_conflict(root: Path) -> None:
    folder = put(root, "# old\n")
    error = refusal(page, folder, check=changing(root / "docs/a.md", 1000))
    assert error.code == "conflict"
    assert "'a.md'" in error.message
    error = refusal(read, folder, ReadRequest("docs", "a.md", 999), changing(root / "docs/a.md", 1000))
    assert error.code == "conflict", "what is not found in a torn text may be there"


@pytest.mark.skipif(os.name == "nt", reason="an open file stays there")
def test_a_file_that_vanishes_while_it_is_read_is_not_found(root: Path) -> None:
    folder = put(root, "# old\n")
    error = refusal(page, folder, check=lambda: (root / "docs/a.md").unlink(missing_ok=True))
    assert error.code == "not_found"


# Sections.

TEXT = """# One
first

## One A
in A
# not in a fence
```
# fenced
```
### Deep
deep

## One B
in B
# Two
last
"""


def test_a_section_has_its_sub_sections_and_no_last_newline(root: Path) -> None:
    folder = put(root, "---\nx: 1\n---\n\n" + TEXT.replace("# not in a fence\n", ""))
    lines = {each.title: each.line for each in headings((root / "docs/a.md").read_text(encoding="utf-8").split("\n"))}
    found, end = section(folder, lines["One A"])
    assert found == {
        "text": "## One A\nin A\n```\n# fenced\n```\n### Deep\ndeep\n",
        "truncated": False,
        "applied": {"scope": "section", "max_sections": None, "max_chars": 12000, "mode": "read"},
    }
    assert (end.manual_id, end.path, end.line, end.eof) == ("docs", "a.md", lines["One A"], False)
    assert section(folder, lines["One"])[0]["text"].startswith("# One\n")
    assert section(folder, lines["One"])[0]["text"].endswith("in B")
    assert section(folder, lines["Two"])[0]["text"] == "# Two\nlast"
    assert section(folder, lines["Two"])[1].eof is True


@pytest.mark.rule("M6.6")
@pytest.mark.parametrize(
    ("text", "first", "line"),
    [
        ("# A\nx\n# B", "# A\nx", 1),
        ("\n\n# A\nx\n# B", "# A\nx", 3),
        ("\n" * 20_000 + "# A\nx", "# A\nx", 20_001),
        ("intro\n# A\nx", "# A\nx", 2),
        ("---\ntitle: T\n---\n# A", "# A", 4),
        ("---\ntitle: T\n---\n\nintro\n\n# A\nx\n# B", "# A\nx", 7),
        ("+++\na = 1\n+++\nno heading\n", "no heading", 1),
        ("no heading\nat all\n", "no heading\nat all", 1),
        ("```\n# x\n```\n# A", "# A", 4),
        ("---\na: b\n---\n", "---\na: b\n---", 1),
        ("---\na: b\n", "---\na: b", 1),
        ("", "", 1),
        ("\n", "", 1),
    ],
)
def test_without_a_line_the_first_section_is_read(root: Path, text: str, first: str, line: int) -> None:
    found, end = section(put(root, text))
    assert found["text"].strip("\n") == first
    assert end.line == line
    assert ("start_line 1" in found.get("note", "")) is ("intro" in text or "```" in text)


@pytest.mark.rule("M6.6")
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("intro\n\n## A\nx", "intro\n"),
        ("# A\nx", "# A\nx"),
        ("\n## A\nx\n# B\n# C\ny", None),
        ("---\na: b\n---\nintro\n# A", "intro"),
        ("---\na: b\n---\n\n# A\nx", "# A\nx"),
        ("---\n\nintro\n# A", "---\n\nintro"),
        ("---\n" + "a: b\n" * 300 + "---\n# A", "---\n" + "a: b\n" * 300 + "---"),
    ],
)
def test_line_one_is_the_preamble_if_there_is_one(root: Path, text: str, first: str | None) -> None:
    folder = put(root, text)
    if first is not None:
        assert section(folder, 1)[0]["text"] == first
    else:
        assert refusal(section, folder, 1).details["nearest"][0] == {"start_line": 2, "title": "A"}


@pytest.mark.parametrize("line", [2, 8, 99, 0, -1])
def test_a_line_that_is_no_heading_is_answered_with_the_nearest_ones(root: Path, line: int) -> None:
    folder = put(root, TEXT.replace("# not in a fence\n", ""))
    error = refusal(section, folder, line)
    assert error.code == "not_found"
    assert "manual_scan" in error.message
    lines = [each["start_line"] for each in error.details["nearest"]]
    assert lines
    assert all(str(each) in error.message for each in lines)
    assert "leave start_line out" in refusal(section, put(root, "plain\ntext"), 2).message
    if line == 8:
        assert lines == [1, 4, 9, 12, 14]
        assert "Deep" not in error.message


@pytest.mark.rule("M6.1")
@pytest.mark.parametrize("path", ["a.json", "a.JSON ", "missing.json"])
def test_json_has_no_sections(root: Path, path: str) -> None:
    error = refusal(read, put(root, "{}", "a.json"), ReadRequest("docs", path), unchecked)
    assert error.code == "invalid_scope"
    assert "manual_scan" in error.message


@pytest.mark.rule("M6.5")
@pytest.mark.parametrize("size", range(250, 260))
def test_a_section_is_cut_exactly_at_max_chars(root: Path, size: int) -> None:
    body = "# A\n" + "x" * (size - 4)
    for rest in ("", "\n", "\n# B", "\n\n# B"):
        found, end = section(put(root, body + rest), max_chars=255)
        whole = body + ("\n" if rest == "\n\n# B" else "")
        assert found["text"] == whole[:255]
        assert found["truncated"] is (len(whole) > 255)
        left = (body + rest)[end.char_offset :]
        assert left == (
            (body + rest)[256 if size == 255 else 4 :] if found["truncated"] else rest.strip("\n")
        )  # the line that was cut
        assert end.eof is (not left)


def test_a_section_read_again_goes_on_after_it_until_the_end_and_starts_again(root: Path) -> None:
    folder = put(root, "# A\nx\n# B\n" + "y\n" * 200)
    found, end = section(folder, 1)
    assert found["text"] == "# A\nx"
    found, end = section(folder, 1, max_chars=256, after=end)
    assert found == {
        "text": "# B\n" + "y\n" * 126,
        "truncated": True,
        "applied": {"scope": "section", "max_sections": None, "max_chars": 256, "mode": "scan_fallback"},
        "applied_range": {"start_line": 3, "end_line": 129},
        "next_cursor": {"char_offset": 262},
        "eof": False,
        "note": "This section was already read on this connection; this is the text after it. "
        "manual_scan with start_line 1 shows it again.",
    }
    assert end.line == 1
    found, end = section(folder, 1, max_chars=256, after=end)
    assert (found["eof"], found["truncated"], found["next_cursor"]) == (True, False, {"char_offset": None})
    assert end.eof is True
    for beyond in (end, replace(end, char_offset=end.char_offset + 1)):
        assert section(folder, 1, after=beyond)[0]["applied"]["mode"] == "read"


MARKDOWN = st.lists(
    st.sampled_from(
        ["# A", "## B", "### C #", "text", "", "```", "~~~", "    # code", "#no", "---", "title: t", "あ" * 9]
    ),
    max_size=25,
)


@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]), st.integers(1, 60))
def test_every_section_is_what_its_lines_say_and_reading_on_gives_all_the_rest(
    root: Path, written: list[str], line_end: str, most: int
) -> None:
    folder = put(root, line_end.join(written))
    text = "\n".join(written)
    found = list(headings(written or [""]))
    for index, heading in enumerate(found):
        following = [each.line for each in found[index + 1 :] if each.level <= heading.level]
        lines = written[heading.line - 1 : following[0] - 1 if following else None]
        expected = "\n".join(lines)
        if not following:
            expected = expected.removesuffix("\n")
        shown, end = section(folder, heading.line, max_chars=most)
        assert shown["text"] == expected[:most]
        assert shown["truncated"] is (len(expected) > most)
        start = len("\n".join([*written[: heading.line - 1], ""]))
        given = start + len(shown["text"])
        if not shown["truncated"]:
            assert given <= end.char_offset <= given + 1
        elif end.char_offset != given:  # else the first line goes on
            assert text[end.char_offset - 1] == "\n"
            assert "\n" not in text[end.char_offset : given]
        joined = text[: end.char_offset]
        while not end.eof:
            shown, end = section(folder, heading.line, max_chars=most, after=end)
            assert shown["applied"]["mode"] == "scan_fallback"
            joined += shown["text"]
        assert joined == text
    for line in range(2, len(written) + 2):
        if line not in [each.line for each in found]:
            assert refusal(section, folder, line).code == "not_found"
