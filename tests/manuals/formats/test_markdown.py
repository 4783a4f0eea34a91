"""Markdown as headings and flat sections."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.formats.markdown import Markdown
from tests.manuals.written import headings, sections


def titles(text: str) -> list[tuple[int, int, str]]:
    return [(each.line, each.level, each.title) for each in headings(text.split("\n"))]


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# One", "One"),
        ("#\tTab", "Tab"),
        ("   ### Three spaces", "Three spaces"),
        ("# Closed #", "Closed"),
        ("## Closed by others ######  ", "Closed by others"),
        ("# C#", "C#"),
        ("# C # D", "C # D"),
        ("# \\# not closed\\#", "\\# not closed\\#"),
        ("# *Marks* and `code` stay", "*Marks* and `code` stay"),
        ("# Windows\r", "Windows"),
    ],
)
def test_a_heading_is_one_to_six_marks_and_its_title(line: str, title: str) -> None:
    assert [each[2] for each in titles(line)] == [title]


@pytest.mark.parametrize(
    "line",
    [
        "#hashtag",
        "####### seven",
        "    # code",
        "\t# code",
        "text # no",
        "> # quoted",
        "\\# no",
        "#" * 3000,
        "#",
        "# #",
        "### ###",
    ],
)
def test_other_lines_with_marks_are_text(line: str) -> None:
    assert titles(line) == []


def test_an_underlined_line_is_a_heading_and_its_text_is_without_the_underline() -> None:
    text = "Title\n=====\none\n\nOther\n-----\ntwo"
    assert titles(text) == [(1, 1, "Title"), (5, 2, "Other")]
    assert [each.text for each in sections(text.split("\n"))] == ["one\n", "two"]


@pytest.mark.parametrize(
    "text",
    [
        "- item\n---",
        "> quoted\n---",
        "| a | b |\n---",
        "\n---",
        "text\n-",
        "text\n- - -",
        "two\nlines\n---",
        "# One\n---\ntext",
    ],
)
def test_other_lines_above_a_line_of_dashes_are_no_headings(text: str) -> None:
    assert [each[2] for each in titles(text)] == ["One"] * text.count("# One")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<h1>One</h1>", (1, 1, "One")),
        ('<h2 id="two">Two &amp; <em>more</em></h2>', (1, 2, "Two & more")),
        ('<h1 align="center">\n  <img src="a.png">\n  Three\n</h1>', (1, 1, "Three")),
    ],
)
def test_headings_of_html_are_headings(text: str, found: tuple[int, int, str]) -> None:
    assert titles(text) == [found]
    assert [each.text for each in sections([*text.split("\n"), "text"])] == ["text"]


@pytest.mark.parametrize(
    "text", ["<!--\n# no\n\nNo\n===\n-->", "<!-- # no -->", "<pre>\n# no\n</pre>", "<script>\n# no\n\n# no\n</script>"]
)
def test_what_html_hides_has_no_headings(text: str) -> None:
    assert titles(f"{text}\n# Yes") == [(text.count("\n") + 2, 1, "Yes")]


@pytest.mark.parametrize(
    "text",
    [
        "```\n# no\n```",
        "```sh\n# no\n``\n# no\n`````",
        "~~~ a ` b\n# no\n```\n# no\n~~~",
        "  ````\n# no\n```\n# no\n   ````  ",
        "```\r\n# no\r\n```\r",
        "````\n# no\n```` no\n# no\n````",
    ],
)
def test_lines_in_a_code_fence_are_text_and_a_fence_closes_with_as_many_marks(text: str) -> None:
    assert titles(f"{text}\n# Yes") == [(text.count("\n") + 2, 1, "Yes")]


def test_a_fence_that_is_not_closed_goes_to_the_end() -> None:
    assert titles("# Yes\n```\n# no") == [(1, 1, "Yes")]


def test_code_between_single_marks_is_no_fence() -> None:
    assert titles("``` a ` b\n# Yes") == [(2, 1, "Yes")]


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Guide\n---", "Guide"),
        ("---\n# comment\ndraft: true\ntitle: 'Quoted'\nlist:\n  - a\n...", "Quoted"),
        ('+++\ntitle = "Hugo"\n[params]\ny = 2\n+++', "Hugo"),
        ("---\r\ntitle: Windows\r\n---\r", "Windows"),
        ("---\ntitle: >-\n  Folded\n---", ""),
        ("---\nTitle : A: B\n---", "A: B"),
        ("---\na: b\n\nc: d\n---", ""),
    ],
)
def test_front_matter_has_no_headings_and_names_the_preamble(front: str, title: str) -> None:
    first, second = sections(f"{front}\nintro\n# One\ntext".split("\n"))
    assert (first.line, first.title, first.text) == (1, title, f"{front}\nintro")
    assert (second.title, second.text) == ("One", "text")


def test_front_matter_counts_for_the_first_section_and_is_none_itself() -> None:
    front = "---\ntitle: Guide\n---"
    [one, two] = sections(f"{front}\n\n# One\ntext\n# Two".split("\n"))
    assert (one.line, one.title, one.text) == (5, "One", f"{front}\ntext")
    assert (two.title, two.text) == ("Two", "")
    [alone] = sections(front.split("\n"))
    assert (alone.line, alone.title, alone.text) == (1, "Guide", front)


@pytest.mark.parametrize(
    "text",
    ["---\n\n# One", "---\nJust a line above.\n# One", "---\nhttps://example.com/a\n# One", "--- \n**Bold**\n\n# One"],
)
def test_a_line_of_dashes_above_text_is_no_front_matter(text: str) -> None:
    assert [each[2] for each in titles(text)] == ["One"]


def test_front_matter_is_at_most_200_lines() -> None:
    for lines, front in ((198, 200), (199, 0)):
        text = "---\n" + "a: b\n" * lines + "---\n# One"
        assert Markdown.convert(text, unchecked).front_lines == front
        assert titles(text) == [(lines + 3, 1, "One")]


def test_text_before_the_first_heading_is_a_section_unless_it_is_blank() -> None:
    assert [each.line for each in sections(["", "text", "# One"])] == [1, 3]
    assert [each.line for each in sections(["", " ", "# One"])] == [3]
    assert list(sections([""])) == []
    assert list(sections([])) == []


def test_a_section_knows_the_headings_above_it() -> None:
    found = list(sections(["# A", "### B", "## C", "#### D", "# E"]))
    assert [each.crumbs for each in found] == [(), ("A",), ("A",), ("A", "C"), ()]


def test_a_title_of_spaces_and_marks_is_read_in_time() -> None:
    assert len(titles("\n".join(["# a" + " #" * 900 + "b"] * 300))) == 300


LINES = st.lists(
    st.one_of(
        st.sampled_from(["# A", "## B #", "### C", "```", "~~~", "````", "---", "+++", "title: x", "", "text", "#no"]),
        st.text(st.characters(exclude_characters="\n"), max_size=8),
    ),
    max_size=30,
)


@given(LINES)
def test_every_line_is_in_one_section_in_order(lines: list[str]) -> None:
    found = list(sections(lines))
    heads = {each.line: each.lines for each in headings(lines)}
    ends = [*(each.line - 1 for each in found), len(lines)]
    outline = Markdown.convert("\n".join(lines), unchecked)
    for each, end in zip(found, ends[1:], strict=True):
        if each is found[0] and each.line in heads:  # it has the front matter, too
            assert each.text == "\n".join(lines[: outline.front_lines] + lines[each.line - 1 + heads[each.line] : end])
            continue
        assert each.text == "\n".join(lines[each.line - 1 + heads.get(each.line, 0) : end])
    assert all(not line.strip() for line in lines[outline.front_lines : ends[0]])
