"""Pages in Japanese say what the English ones say: the same commands, settings and tables, section by section.

A page `X.ja.md` lies beside `X.md`. Each of its sections names the English one that it is of: `<!-- of: Set up -->` in the
line behind its heading. It may leave sections out.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.ja.md")), *sorted((ROOT / "docs").rglob("*.ja.md"))]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Section(NamedTuple):
    """What is not words of a section: blocks that run, code in the rows of tables, and code elsewhere."""

    commands: list[str]
    rows: list[list[str]]
    code: set[str]


def section(text: str) -> Section:
    # A drawing, or an output with words of its own, may be translated.
    commands = [block for language, block in FENCED.findall(text) if language != "text"]
    plain = FENCED.sub("", text)
    lines = [line for line in plain.splitlines() if line.startswith("|") and not re.fullmatch(r"[| -]+", line)]
    return Section(commands, [code_in(line) for line in lines], set(code_in(plain)))


def code_in(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", text)


def pairs() -> list[tuple[str, str, Section, Section]]:
    """Return page and title of each Japanese section, with what it has and what the English one has."""
    found = []
    for page in PAGES:
        english = page.with_name(page.name.replace(".ja.md", ".md")).read_text(encoding="utf-8")
        for part in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            mark = re.match(r"[^\n]*\n<!-- of: ([^\n]+) -->\n", part)
            assert mark is not None, (
                f"{page.name}: the section {part.partition(chr(10))[0]!r} does not say what it is of"
            )
            theirs = re.search(rf"^## {re.escape(mark[1])}\n(.*?)(?=^## |\Z)", english, re.MULTILINE | re.DOTALL)
            assert theirs is not None, f"{page.name}: there is no English section {mark[1]!r}"
            found.append((page.name, mark[1], section(part), section(theirs[1])))
    return found


PAIRS = pairs()
every_section = pytest.mark.parametrize(
    ("japanese", "english"), [pair[2:] for pair in PAIRS], ids=[f"{page}: {title}" for page, title, *_ in PAIRS]
)


def test_there_are_pages_in_japanese() -> None:
    assert "manuals.ja.md" in {page for page, *_ in PAIRS}


@every_section
def test_a_japanese_section_has_the_commands_of_the_english_one(japanese: Section, english: Section) -> None:
    assert japanese.commands == english.commands


@every_section
def test_a_japanese_section_has_the_tables_of_the_english_one(japanese: Section, english: Section) -> None:
    assert japanese.rows == english.rows


@every_section
def test_a_japanese_section_names_nothing_that_the_english_one_does_not(japanese: Section, english: Section) -> None:
    assert japanese.code - english.code == set()
