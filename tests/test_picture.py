"""The picture of the demo in the README shows what the demo prints, and can be read anywhere."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.picture import FILE, draw, printed
from tests.processes import ROOT

pytestmark = pytest.mark.once

SVG = "{http://www.w3.org/2000/svg}"


def words(text: str) -> list[str]:
    """Return the words of `text` without figures, which differ from run to run, and without what only marks lines."""
    return re.sub(r"[0-9]+", "0", text).replace(" | ", " ").replace("\n| ", "\n").split()


def test_the_readme_shows_a_picture_of_the_command_and_every_word_that_it_prints() -> None:
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    picture = FILE.read_text(encoding="utf-8")
    prompt, *rest = ["".join(text.itertext()) for text in ET.fromstring(picture).iter(f"{SVG}text")]
    assert prompt == "$ openai-responses-mcp demo"
    assert words(" \n".join(["", *rest])) == words("\n".join(line.lstrip() for line in ["", *printed().splitlines()]))


def test_what_the_program_prints_cannot_become_markup() -> None:
    [_, shown] = ET.fromstring(draw("<script>&amp;</script>")).iter(f"{SVG}text")
    assert shown.text == "<script>&amp;</script>"
