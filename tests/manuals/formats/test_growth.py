"""Every format is read in time in proportion to its text, whatever marks it repeats."""

from contextlib import suppress

import pytest

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.files.documents import document_of
from responses_mcp.manuals.formats.document import Unserved
from tests.growth import Hostile, superlinear

pytestmark = pytest.mark.once

MARKS = (
    *("* a\n", "= a\n", "- a\n", "a\n==\n\n", "# a\n", "1. a\n\n", "A\n\n", "a\n", "\n", " ", "\t", "\u3000", "é"),
    *("```\n", "~~~\n", "<!--", "-->", "{/*", "*/}\n", "import a\n", "<h1>a</h1>", "<div>", "</div>", "<pre>\n", "<title>"),
    *("<td>a</td>", "<td></td>", "<li>", "<script>", "</script", "<main>", "</main>", "&amp;", "<a href='x'>", "<", "&"),
    *(":a: {a}\n{a}", "[[a][b]]", "<<a,b>>", "link:a[b] ", "----\n", "[a]\n", "a::\n", "#+a: b\n", ":A:\n", ":END:\n"),
    *("`a <b>`_ ", ":r:`a` ", "|a| ", ".. a::\n", ".. _a:\n", "====\na\n====\n", "..\n  a\n", "`", "``", "|", ":"),
    *(".SH a\n", ".BR a b\n", ".Op Fl a Ar b\n", ".Nm\n", "\\(bu", "\\f[B]", "\\", '"', "'", "\\u3042", "\\ud83d"),
    *('{"a":{"b":1}},', '{"title":"a","b":[1,2,3]},', "[", "]", "{", "}", '"a":', ","),
)  # fmt: skip
HEADS = {
    "html": ("", "<table><tr>", "<pre>", "<main>", "<h1>"),
    "ipynb": ('{"cells":[{"cell_type":"markdown","source":"', '{"cells":['),
    "man": (".TH a 1\n",),
    "md": ("", "a\n", "---\n"),
    "json": ("", '{"a":['),
}


@pytest.mark.parametrize("kind", ["md", "mdx", "txt", "rst", "adoc", "org", "html", "ipynb", "man", "json"])
def test_a_format_is_read_in_time_in_proportion_to_the_text(kind: str) -> None:
    def read(text: str) -> None:
        with suppress(Unserved):
            document_of(f"a.{kind}", text.encode("utf-8", "replace"), unchecked)

    texts = [Hostile(head, mark, '"}]}') for head in HEADS.get(kind, ("",)) for mark in MARKS]
    # One by one: beside others, a text may not be slow enough to be looked at again.
    assert list(filter(None, (superlinear(read, [text], shortest=4096, longest=2**16) for text in texts))) == []
