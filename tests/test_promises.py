"""What protects what: each promise of the README and each section of the specification names tests that exist."""

import re

import pytest

from tests.promises import Promise, missing, of_the_readme, of_the_specification, page

pytestmark = pytest.mark.once

SECTIONS_OF_PROMISES = (
    "## What you can rely on",
    "## When a call is cancelled",
    "## How errors look",
    "## Privacy and logging",
)
README = of_the_readme()
SPECIFICATION = of_the_specification()


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("promise", README + SPECIFICATION, ids=lambda promise: promise.words[:60])
def test_a_promise_is_held_by_tests_and_sessions_that_exist(promise: Promise) -> None:
    assert promise.tests
    assert missing(promise) == []


def test_every_promise_of_the_readme_has_its_row() -> None:
    text = page("README.md")
    assert [row.words for row in README if plain(row.words) not in plain(text)] == []
    items = []
    for heading in SECTIONS_OF_PROMISES:
        said = re.split(r"\n## ", text.partition(heading)[2], maxsplit=1)[0]
        items += [plain(item) for item in re.findall(r"^- (.+(?:\n  .+)*)", said, re.MULTILINE)]
    held = [plain(row.words) for row in README]
    assert [item for item in items if not any(words in item for words in held)] == []
    assert len(items) >= 12


def test_every_section_of_the_specification_has_its_line() -> None:
    numbers = re.findall(r"^#{2,3} (\d+(?:\.\d+)?)", page("docs/spec.md"), re.MULTILINE)
    told = {row.words.split()[0].rstrip(".") for row in SPECIFICATION}
    assert {number for number in numbers if number not in told} <= {"2", "3", "5"}
    assert len(told) > 25
