"""The picture of the demo in the README: it shows what the demo prints, and can be read anywhere."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.picture import COLUMNS, FILE, draw, lines, printed

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def picture() -> str:
    return FILE.read_text(encoding="utf-8")


def shown(picture: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(picture).iter(f"{SVG}text")]


def words(text: str) -> list[str]:
    """Return the words of `text` without figures, which differ from run to run, and without what only marks lines."""
    return re.sub(r"[0-9]+", "0", text).replace(" | ", " ").replace("\n| ", "\n").split()


def test_the_picture_shows_the_command_and_every_word_that_it_prints() -> None:
    prompt, *rest = shown(FILE.read_text(encoding="utf-8"))
    assert prompt == "$ openai-responses-mcp demo"
    assert words(" \n".join(["", *rest])) == words("\n".join(line.lstrip() for line in ["", *printed().splitlines()]))


def test_drawing_the_same_text_twice_gives_the_same_file() -> None:
    assert draw("1. Begin\n   | quoted <&>\n\nend\n") == draw("1. Begin\n   | quoted <&>\n\nend\n")


def test_what_the_program_prints_cannot_become_markup() -> None:
    assert shown(draw("<script>&amp;</script>"))[1:] == ["<script>&amp;</script>"]


def test_long_lines_go_on_below_with_the_mark_of_a_quotation() -> None:
    rows = list(lines("   | " + "word " * 40))
    assert len(rows) > 1
    assert all(kind == "quoted" and row.startswith("   | ") and len(row) <= COLUMNS for kind, row in rows)


def test_the_picture_needs_nothing_from_elsewhere_and_runs_nothing(picture: str) -> None:
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)[^<]*[\"')]", re.sub(r">[^<]*<", "><", picture))
    assert {element.tag.removeprefix(SVG) for element in ET.fromstring(picture).iter()} == {
        *("svg", "title", "style", "rect", "text")
    }
    assert "@import" not in picture
    assert "url(" not in picture


def test_the_picture_has_colours_for_light_and_for_dark_pages_and_brings_its_own_background(picture: str) -> None:
    light, dark = picture.split("@media (prefers-color-scheme: dark)")
    for part in (light, dark):
        background, text = re.findall(r"fill: #([0-9a-f]{6})", part)[:2]
        assert abs(brightness(background) - brightness(text)) > 180


def brightness(colour: str) -> float:
    return sum(int(colour[place : place + 2], 16) for place in (0, 2, 4)) / 3


def test_the_readme_shows_the_picture_before_anything_has_to_be_installed() -> None:
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert "](docs/demo.svg)" in first_screen
