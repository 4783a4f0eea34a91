"""Files as people have them, as a client sees them: each format is found, read at the place found, and listed."""

import io
import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.files import documents
from responses_mcp.manuals.files.documents import document_of
from tests.toolsets.manuals_harness import Desk, book, desk, settings_for


def word(body: str, head: str = "", styles: str = "") -> bytes:
    """Return a Word document of a German Word: the ids of its styles are its own, their names are not."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    names = "".join(
        f'<w:style w:type="paragraph" w:styleId="berschrift{level}"><w:name w:val="heading {level}"/></w:style>'
        for level in (1, 2)
    )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/styles.xml", styles or f"<w:styles {space}>{names}</w:styles>")
        archive.writestr("word/document.xml", f"{head}<w:document {space}><w:body>{body}</w:body></w:document>")
    return packed.getvalue()


def paragraph(text: str, style: str = "", kind: str = "") -> str:
    properties = (f'<w:pStyle w:val="{style}"/>' if style else "") + kind
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


WORD = word(
    paragraph("Pumps", "berschrift1")
    + paragraph("Intro.")
    + paragraph("Running dry", "berschrift2")
    + "<w:p><w:r><w:t>Ten </w:t></w:r><w:r><w:instrText>PAGE</w:instrText><w:t>seconds.</w:t></w:r>"
    "<w:del><w:r><w:delText>Nine.</w:delText></w:r></w:del></w:p>"
    + paragraph("ふとんの出し方", "", "<w:numPr/>")
    + f"<w:tbl><w:tr><w:tc>{paragraph('a')}</w:tc><w:tc>{paragraph('b &amp; c')}{paragraph('d')}</w:tc></w:tr></w:tbl>"
)


async def first(here: Desk, query: str) -> dict[str, Any]:
    """Return the best row for a question."""
    row: dict[str, Any] = (await here.call("manual_search", query=query))["results"][0]
    return row


NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": ["# Pumps\n", "\n", "Intro."]},
        {"cell_type": "markdown", "source": "## Running dry\n\nTen seconds."},
        {"cell_type": "code", "source": "# no heading\nrun()", "outputs": [{"text": ["It ran.\n"]}]},
    ],
    "metadata": {"kernelspec": {"name": "Intro."}},
}
RST = """\
.. _pumps:

Pumps
=====

Intro.

.. comment of the author
.. toctree::
   :maxdepth: 2

   other

Running dry
-----------

.. note:: Ten seconds.

See :ref:`the valves <valves>` and ``dry()`` in `the book <https://example.org/>`_.
"""
ADOC = """\
= Pumps
:toc: left
// a comment

Intro.

[[dry]]
== Running dry

----
== no heading
----
Ten seconds. See link:https://example.org[the book] and <<dry,above>>.
"""
ORG = """\
#+TITLE: Pumps
* Pumps
Intro.
** TODO Running dry :pumps:
:PROPERTIES:
:ID: 12
:END:
Ten seconds. See [[https://example.org][the book]].
#+begin_src sh
* no heading
#+end_src
"""
HTML = """\
<!DOCTYPE html><html><head><title>All about it</title><style>h1 { color: red }</style></head>
<body><nav><h2>Menu</h2><ul><li>Home</li></ul></nav>
<!-- <h2>no heading</h2> -->
<h1>Pumps</h1><p>Intro.</p>
<script>if (a < b) { "</p><h2>no heading</h2>" }</script>
<h2 id="dry">Running <em>dry</em><a href="#dry">¶</a></h2>
<p>Ten&nbsp;seconds.<br>See <a href="x">the book</a>.</p><table><tr><td>a</td><td>b</td></tr></table>
</body></html>
"""
MAN = """\
.TH PUMPS 1 2026-01-01
.SH PUMPS
Intro.
.SS "Running dry"
.TP
.BR \\-\\-dry =\\fIN\\fR
Ten seconds.
"""
MDOC = """\
.Dd January 1, 2026
.Dt PUMPS 1
.Sh PUMPS
Intro.
.Ss Running dry
.Nm pump
.Op Fl n Ar seconds
Ten seconds.
"""
MDX = """\
import Tabs from '@theme/Tabs'
export const meta = {
  title: 'x'
}

# Pumps

Intro. {/* hidden */}

## Running dry

Ten seconds.
"""


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.md", "Pumps\n=====\n\nIntro.\n\nRunning dry\n-----------\n\nTen seconds.\n", 6),
        ("a.md", "<h1>Pumps</h1>\n\nIntro.\n\n<h2 id='x'>Running dry</h2>\n\nTen seconds.\n", 5),
        ("a.markdown", "# Pumps\n\nIntro.\n\n## Running dry\n\nTen seconds.\n", 5),
        ("a.mdx", MDX, 10),
        ("a.rst", RST, 14),
        ("a.adoc", ADOC, 8),
        ("a.org", ORG, 4),
        ("a.html", HTML, 4),
        ("a.ipynb", json.dumps(NOTEBOOK), 5),
        ("a.docx", WORD, 5),
        ("pumps.1", MAN, 4),
        ("pumps.8", MDOC, 5),
    ],
)
async def test_a_section_of_each_format_is_found_by_its_heading_and_read(
    tmp_path: Path, path: str, text: str | bytes, line: int
) -> None:
    book(tmp_path, {f"m/{path}": text})
    async with desk(settings_for(tmp_path)) as here:
        row = await first(here, "running dry")
        assert (row["title"], row["above"].lower(), row["line"]) == ("Running dry", "pumps", line)
        assert "Ten seconds." in row["snippet"].replace("\xa0", " ")
        read = (await here.call("manual_read", ref=row["ref"]))["text"].replace("\xa0", " ")
        assert "Ten seconds." in read
        assert "Intro." not in read
        scanned = await here.call("manual_scan", manual_id="m", path=path, start_line=line)
        assert scanned["text"].partition("\n")[0].strip("# ").endswith(read.partition("\n")[0].strip("# "))
        for noise in [
            "no heading",
            "comment of",
            "toctree",
            "<a ",
            "Menu",
            "hidden",
            ":toc:",
            "\\f",
            "PROPERTIES",
            "import",
        ]:
            assert noise not in (await here.call("manual_scan", manual_id="m", path=path))["text"] or noise in read
        toc = await here.call("manual_toc", manual_id="m", depth="deep", path_prefix=path)
        assert [each["title"].lower() for each in toc["items"][0]["headings"]] == ["pumps", "running dry"]


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("a.rst", RST, "See `the valves` and `dry()` in the book."),
        ("a.rst", RST, "Note: Ten seconds."),
        ("a.rst", "|Pumps| run.\n\n+---+\n||a|b||\n", "Pumps run."),
        (
            "a.rst",
            ".. only:: html\n\n   Ten seconds.\n\n.. container:: a\n\n   More.\n",
            "\n   Ten seconds.\n\n\n\n   More.",
        ),
        ("a.rst", ".. figure:: a.png\n   :alt: b\n\n   A pump.\n", "\n\n\n   A pump.\n"),
        ("a.org", "#+begin_comment\nhidden\n#+end_comment\nshown\n", "\n\n\nshown\n"),
        ("a.adoc", ADOC, "Ten seconds. See the book and above."),
        ("a.adoc", ":url: https://example.org\n\nSee {url}/a[the book^] and {other}.\n", "See the book and {other}."),
        ("a.org", ORG, "Ten seconds. See the book."),
        ("a.html", HTML, "See the book.\n\na | b"),
        ("a.ipynb", json.dumps(NOTEBOOK), "```\n# no heading\nrun()\n```\n\n```\nIt ran.\n```"),
        ("a.docx", WORD, "Running dry\n\nTen seconds.\n\n- ふとんの出し方\n\na | b & c d\n"),
        ("pumps.1", MAN, "--dry=N\nTen seconds."),
        ("pumps.8", MDOC, "pump\n[-n seconds]\nTen seconds."),
    ],
)
async def test_markup_becomes_the_text_in_it(tmp_path: Path, path: str, text: str | bytes, shown: str) -> None:
    book(tmp_path, {f"m/{path}": text})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        assert shown in (await here.call("manual_scan", manual_id="m", path=path))["text"]


async def test_what_is_no_file_of_its_type_is_told_and_other_files_are_found(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.ipynb": "{" * 100_000})
    book(tmp_path, {"m/release.1": "Running dry\n===========\n\nTen seconds.\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="running dry")
        assert [row["ref"]["path"] for row in found["results"]] == ["release.1"]
        assert (found["complete"], found["reason"]) == (False, "m: 1 file not searched (not_a_notebook)")
        failed = await here.fail("manual_scan", manual_id="m", path="a.ipynb")
        assert failed["code"] == "conflict"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04 cut off", "not_a_word_document"),
        (word(""), "no_text"),
        (word("<w:p>"), "not_a_word_document"),
        (word("&a;", '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">]>'), "not_a_word_document"),
        (word(paragraph(" " * 33 * 1024 * 1024)), "unpacks_to_too_much"),
    ],
)
async def test_a_word_document_that_is_none_or_unpacks_to_too_much_is_named(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    book(tmp_path, {"m/a.docx": content})
    book(tmp_path, {"m/b.md": "# Seals\n\nTwo seconds.\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
    assert (found["complete"], found["reason"]) == (False, f"m: 1 file not searched ({reason})")


@pytest.mark.parametrize("front", ["search:\n  exclude: true\n", "search: {exclude: true}\n"])
async def test_a_page_that_its_author_excludes_is_read_and_not_found(tmp_path: Path, front: str) -> None:
    book(tmp_path, {"m/a.md": f"---\ntitle: Old\n{front}---\n\n# Seals\n\nTen seconds.\n"})
    book(tmp_path, {"m/b.md": "---\nsearch:\n  boost: 2\nexclude: true\n---\n\n# Seals of today\n\nTwo seconds.\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals seconds")
        assert [row["ref"]["path"] for row in found["results"]] == ["b.md"]
        assert found["complete"] is True
        read = await here.call("manual_read", ref={"manual_id": "m", "path": "a.md"})
        assert "Ten seconds." in read["text"]


OPEN_API = {
    "openapi": "3.0.0",
    "paths": {
        "/repos/{owner}/{repo}/issues": {
            "get": {"summary": "List issues", "parameters": [{"name": "labels", "in": "query"}]},
            "post": {"summary": "Create an issue", "description": "Opens a ticket with a title and a body."},
        },
        "/repos/{owner}/{repo}/pulls": {
            "post": {"operationId": "pulls/create", "description": "Opens a pull request."}
        },
    },
    "components": {"schemas": {"Issue": {"properties": {"milestone": {"type": "string"}}}}},
    "x": "設定 😀 \\n",
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(OPEN_API, indent=2, ensure_ascii=False),
        json.dumps(OPEN_API),
    ],
    ids=["as it is", "on one line and escaped"],
)
async def test_json_is_cut_at_keys_and_served_with_lines_and_characters(tmp_path: Path, text: str) -> None:
    book(tmp_path, {"m/api.json": text})
    async with desk(settings_for(tmp_path)) as here:
        row = await first(here, "open a ticket")
        assert row["title"] == "Create an issue"
        assert row["above"] == "paths > /repos/{owner}/{repo}/issues > post"
        ref = row["ref"]
        assert ref.pop("tool") == "manual_scan"
        page = (await here.call("manual_scan", **ref))["text"]
        assert "Opens a ticket" in page.partition("}")[0]
        assert "List issues" not in page
        assert (await first(here, "pulls/create"))["above"] == "paths > /repos/{owner}/{repo}/pulls > post"
        assert (await first(here, "milestone"))["above"].startswith("components")
        whole = (await here.call("manual_scan", manual_id="m", path="api.json"))["text"]
    assert whole == json.dumps(OPEN_API, indent=2, ensure_ascii=False)


async def test_escapes_of_json_that_stand_for_a_shown_character_are_that(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.json": r'{"title": "Seals", "text": "\u003cb\u003e tank \u0026 hose\u0022 \ud800 \u0007"}'})
    async with desk(settings_for(tmp_path)) as here:
        row = await first(here, "tank hose")
        assert "<b> tank & hose" in row["snippet"]
        text = (await here.call("manual_scan", manual_id="m", path="a.json"))["text"]
    assert text == r'{"title": "Seals", "text": "<b> tank & hose\u0022 \ud800 \u0007"}'


async def test_a_file_that_takes_too_long_is_named_and_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "SECONDS", -1.0)
    book(tmp_path, {"m/a.html": "<p>Seals.</p>" * 2000})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert found["reason"] == "m: 1 file not searched (takes_too_long)"


@pytest.mark.parametrize("member", ["1,", "[],", '{"a":1},', "[[a][b]]"])
def test_json_takes_memory_in_proportion_to_its_text(member: str) -> None:
    text = f"[{member * (200_000 // len(member))}1]".encode()
    tracemalloc.start()
    document_of("a.json", text, unchecked)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(text)


async def test_json_that_is_none_is_found_and_read(tmp_path: Path) -> None:
    texts = {
        "a": '{"seals": ["one", {',
        "b": "seals]]}}",
        "c": '"seals',
        "d": "",
        "e": "[" * 9000,
        "f": '{}\n{"a": "seals"}',
    }
    book(tmp_path, {f"m/{name}.json": text for name, text in texts.items()})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert {row["ref"]["path"] for row in found["results"]} == {"a.json", "b.json", "c.json", "f.json"}
        assert found["complete"]
        assert (await here.call("manual_scan", manual_id="m", path="e.json"))["text"] == "[" * 9000


async def test_settings_say_which_formats_are_served(tmp_path: Path) -> None:
    for name in ("a.md", "b.rst", "c.json"):
        book(tmp_path, {f"m/{name}": "seals"})
    settings = settings_for(tmp_path)
    chosen = replace(settings, manuals=replace(settings.manuals, formats=("md", "json")))
    async with desk(chosen) as here:
        assert [item["name"] for item in (await here.call("manual_ls", id="m"))["items"]] == ["a.md", "c.json"]
        assert (await here.fail("manual_scan", manual_id="m", path="b.rst"))["code"] == "forbidden"
        found = await here.call("manual_search", query="gaskets")
        assert (found["complete"], found["reason"]) == (False, "1 file of another format is not served (1 .rst)")


# Any folder


async def test_files_in_the_root_itself_are_found_and_read(tmp_path: Path) -> None:
    book(tmp_path, {"guide/care.md": "# Care\n\nThe gasket lasts ten years.\n"})
    book(tmp_path, {"guide/sub/more.md": "# More\n\nThe impeller lasts two years.\n"})
    async with desk(settings_for(tmp_path / "guide")) as here:
        assert [item["id"] for item in (await here.call("manual_ls"))["items"]] == ["guide", "sub"]
        row = await first(here, "gasket")
        assert (row["ref"]["manual_id"], row["ref"]["path"]) == ("guide", "care.md")
        assert "ten years" in (await here.call("manual_read", ref=row["ref"]))["text"]
        assert (await first(here, "impeller"))["ref"]["manual_id"] == "sub"
        listed = await here.call("manual_ls", id="guide")
        assert [item["name"] for item in listed["items"]] == ["care.md"]
        assert (await here.call("manual_toc", manual_id="guide"))["total_files"] == 1


# What is not read


async def test_what_is_not_served_is_counted_and_named_where_little_is_found(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.MD": "# Seals\n\nTwo seconds.\n", "m/sub/b.xyz": "gaskets", "m/c.png": b"\x89PNG"})
    told = "1 file of another format is not served (1 .xyz)"
    async with desk(settings_for(tmp_path)) as here:
        nothing = await here.call("manual_search", query="gaskets")
        assert (nothing["results"], nothing["complete"], nothing["reason"]) == ([], False, told)
        found = await here.call("manual_search", query="seals")
        assert (found["complete"], "reason" in found) == (True, False)
        file, folder = (await here.call("manual_ls", id="m"))["items"]
        assert (folder["name"], file["path"], file["file_type"]) == ("sub", "a.MD", "md")
        found = await here.call("manual_find", query="gaskets", manual_id="m", required_terms=["gaskets"])
        assert found["note"] == f"{told}."
        listed = await here.call("manual_ls", id=folder["id"])
        assert (listed["items"], listed["note"]) == ([], f"No file has a format that can be searched. {told}.")


async def test_a_document_that_is_not_served_leaves_a_search_incomplete(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": "# Seals\n\nTwo seconds.\n"})
    book(tmp_path, {"m/sub/old.doc": b"\xd0\xcf"})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert (found["complete"], found["reason"]) == (False, "m: 1 file not searched (format_not_served)")
        await here.call("manual_ls")
        find = await here.call("manual_find", query="seals", manual_id="m", required_terms=["gaskets"])
        hits = await here.call("manual_hits", trace_id=find["trace_id"], kind="unscanned")
        assert [(item["path"], item["reason"]) for item in hits["items"]] == [("sub/old.doc", "format_not_served")]
        assert find["failure_reason"].startswith("incomplete:1_files_not_searched")


# Encodings


@pytest.mark.parametrize(
    ("encoding", "text", "word"),
    [
        ("cp949", "# 설치\n\n프린터의 토너를 교체하려면 먼저 전원을 끄고 덮개를 여십시오.\n", "토너를"),
        ("gb18030", "# 语言\n\n阿富汗语\n阿塞拜疆语\n保加利亚语\n白俄罗斯语\n布列塔尼语\n加泰罗尼亚语\n", "保加利亚语"),
        ("cp1252", "# Gr\u00f6\u00dfe\n\nDie H\u00f6he der T\u00fcr betr\u00e4gt zwei Meter.\n", "T\u00fcr"),
    ],
)
async def test_texts_of_other_countries_are_found_and_their_encoding_is_named_as_guessed(
    tmp_path: Path, encoding: str, text: str, word: str
) -> None:
    book(tmp_path, {"m/a.md": text.encode(encoding)})
    async with desk(settings_for(tmp_path)) as here:
        assert word in (await first(here, word))["snippet"]
        page = await here.call("manual_scan", manual_id="m", path="a.md")
    assert (page["text"], page["guessed_encoding"]) == (text, encoding)


# Lines and headings


@pytest.mark.parametrize("path", ["a.md", "a.txt", "a.rst", "a.json"])
async def test_a_file_has_as_many_lines_as_end_in_it(tmp_path: Path, path: str) -> None:
    book(tmp_path, {f"m/{path}": "one\n\ntwo\n"})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        whole = await here.call("manual_scan", manual_id="m", path=path)
        end = await here.call("manual_scan", manual_id="m", path=path, cursor=len(whole["text"]))
        assert whole["applied_range"] == {"start_line": 1, "end_line": 3}
        assert end["applied_range"] == {"start_line": 3, "end_line": 3}
        failed = await here.fail("manual_scan", manual_id="m", path=path, start_line=4)
        assert failed["message"] == "start_line 4 is outside the file; pass a line from 1 to 3, its last."
        assert failed["details"] == {"lines": 3}


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("1. Open the lid\n\n2. Close the lid\n\nThen wait.\n", []),
        ("Do this:\n\n1. Open the lid\n\nThen wait.\n", []),
        ("3 apples\n\nThen wait.\n", []),
        ("1.  Opening\n\n   Lift the lid.\n\n1.1.  Locks\n\n   Turn.\n", ["1. Opening", "1.1. Locks"]),
        ("1. Opening\n\n1.1 Locks\n\nTurn.\n", ["1. Opening", "1.1 Locks"]),
        ("第1章 開け方\n\n上げる。\n", ["第1章 開け方"]),
        ("=======\nOpening\n=======\n\nLift.\n\nLocks\n=====\n\nTurn.\n", ["Opening", "Locks"]),
    ],
)
async def test_an_item_of_a_list_in_plain_text_is_no_heading(tmp_path: Path, text: str, titles: list[str]) -> None:
    book(tmp_path, {"m/a.txt": text})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        toc = await here.call("manual_toc", manual_id="m", depth="deep", path_prefix="a.txt")
        listed = [" ".join(each["title"].split()) for each in toc["items"][0]["headings"]]
        assert listed == (titles or ["a"])


async def test_the_contents_of_json_are_its_rows(tmp_path: Path) -> None:
    book(tmp_path, {"m/api.json": json.dumps(OPEN_API, indent=2)})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        toc = await here.call("manual_toc", manual_id="m", depth="deep", path_prefix="api.json")
        rows = toc["items"][0]["headings"]
        assert rows[0] == {"title": "api.json", "line_start": 1}
        assert "Create an issue" in [each["title"] for each in rows]
        line = next(each["line_start"] for each in rows if each["title"] == "Create an issue")
        page = await here.call("manual_scan", manual_id="m", path="api.json", start_line=line)
        assert page["text"].startswith('      "post": {\n        "summary": "Create an issue"')


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "<!--\n# Old\n-->\n\n# Seals\n\nTen seconds.\n"),
        ("a.md", f"<!-- {'x' * 3000}\n# Old\n-->\n\n# Seals\n\nTen seconds.\n"),
        ("a.html", "<!-- <h1>Old</h1> --><h1>Seals</h1>Ten seconds."),
        ("a.mdx", "{/* # Old */}\n\n{/*\n# Old\n*/}\n\n# Seals\n\nTen seconds.\n"),
        ("a.rst", ".. comment\n\n   Old\n   ===\n\nSeals\n=====\n\nTen seconds.\n"),
        ("a.adoc", "////\n== Old\n////\n\n== Seals\n\nTen seconds.\n"),
        ("a.org", "#+begin_comment\n* Old\n#+end_comment\n* Seals\nTen seconds.\n"),
    ],
)
async def test_headings_in_comments_are_none(tmp_path: Path, path: str, text: str) -> None:
    book(tmp_path, {f"m/{path}": text})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        toc = await here.call("manual_toc", manual_id="m", depth="deep", path_prefix=path)
        assert [each["title"] for each in toc["items"][0]["headings"]] == ["Seals"]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.md", b"# Seals\n\nTen \0 seconds.\n" + b"x " * 300),
        ("a.txt", b"SEALS\n\nTen \x1b[1mseconds.\n"),
        ("a.ipynb", json.dumps(NOTEBOOK).replace("Running dry", "Seals \1 \t").encode() + b"\n"),
        ("a.html", b"<h1>Seals</h1><p>Ten \xff\1 seconds."),
        ("a.md", "# Seals\n\nTen seconds.\n".encode("utf-16")[:-2] + b"\x00\xd8"),
    ],
)
async def test_one_odd_byte_drops_no_file_of_any_kind(tmp_path: Path, path: str, content: bytes) -> None:
    book(tmp_path, {f"m/{path}": content})
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals ten seconds")
        assert ([row["ref"]["path"] for row in found["results"]][:1], found["complete"]) == ([path], True)


async def test_letters_that_grow_when_folded_do_not_move_what_is_read_of_html(tmp_path: Path) -> None:
    head = f"<title>{'İ' * 30}</title>"
    book(tmp_path, {"m/a.html": f"{head}<main><h1>Seals</h1>{'İ' * 30}</main><footer>Imprint of ours</footer>"})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        text = (await here.call("manual_scan", manual_id="m", path="a.html"))["text"]
    assert text == f"Seals\n{'İ' * 30}"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.md", "# T\n\ngasket\0 ring\n"),
        ("a.html", "<title>T<body><p>gasket</p>"),
        ("a.html", "<h1>T</h1><nav><ul><li>x</ul><p>gasket</p>"),
        ("a.html", '<h1>T</h1><div role="navigation">x<p>gasket</p>'),
        ("a.org", "* T\n:PROPERTIES:\n:ID: 1\n\n* U\ngasket\n"),
        ("a.adoc", "= T\n\n////\ngasket\n"),
        ("a.mdx", "# T\n\n{/* open\n\ngasket\n"),
        ("a.ipynb", json.dumps({"cells": [None, {"cell_type": "markdown", "source": "gasket"}]})),
        ("a.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": "gasket", "outputs": [{"data": None}, 5]}]})),
        ("a.docx", word(paragraph("gasket"), styles="<w:styles")),
        ("a.md", "# T\n" + "\n" * 20_000 + "gasket\n"),
    ],
)
async def test_what_is_odd_in_a_file_hides_none_of_its_text(tmp_path: Path, path: str, content: str | bytes) -> None:
    book(tmp_path, {f"m/{path}": content})
    async with desk(settings_for(tmp_path)) as here:
        row = await first(here, "gasket")
        assert "gasket" in (await here.call("manual_read", ref=row["ref"]))["text"]
