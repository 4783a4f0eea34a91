"""The page of the contract: every rule has its number and its tests, and every example of an error is what happens."""

import json
import re
from pathlib import Path

import pytest

from tests.promises import cells, defined_in
from tests.toolsets.manuals_harness import desk, fill, settings_for

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/manuals-contract.md").read_text(encoding="utf-8")

# Rules, inputs and outputs of each section of the contract.
IN_SECTION = {2: 7 + 2, 3: 7 + 2, 4: 54 + 3, 5: 11 + 2, 6: 7 + 2, 7: 5 + 2}


def rows(pattern: str) -> list[list[str]]:
    """Return the cells of the rows whose first cell fits."""
    every = [cells(line) for line in PAGE.splitlines() if line.startswith("|")]
    return [row for row in every if re.fullmatch(pattern, row[0])]


RULES = rows(r"M\d\.\d+")
EXAMPLES = rows(r"`manual_\w+`")


def test_every_line_of_the_contract_has_its_number_in_order() -> None:
    numbers = [f"M{section}.{number}" for section, most in IN_SECTION.items() for number in range(1, most + 1)]
    assert [row[0] for row in RULES] == numbers


@pytest.mark.parametrize("row", RULES, ids=lambda row: row[0])
def test_a_rule_has_words_and_tests_that_exist(row: list[str]) -> None:
    _, rule, held_by = row
    assert rule.endswith(".")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", held_by)
    assert len(named) == held_by.count("`") / 2 > 0
    assert [f"{file}::{name}" for file, name in named if name not in defined_in(file)] == []


async def test_each_example_of_an_error_is_what_happens(tmp_path: Path) -> None:
    wide = fill(tmp_path) / "wide"
    wide.mkdir()
    for number in range(201):
        (wide / f"{number}.md").touch()
    seen = set[str]()
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        for tool, arguments, code, message in EXAMPLES:
            error = await here.fail(tool.strip("`"), **json.loads(arguments.strip("`")))
            assert [f"`{error['code']}`", error["message"]] == [code, message.replace("\\|", "|")]
            assert str(tmp_path) not in json.dumps(error)
            seen.add(error["code"])
    assert seen >= {
        "invalid_parameter",
        "invalid_path",
        "needs_narrow_scope",
        "not_found",
        "forbidden",
        "invalid_scope",
    }
