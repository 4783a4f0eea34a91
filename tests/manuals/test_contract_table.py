"""The page of the contract: every rule has its number, and every example of an error is what happens."""

import json
import re
from pathlib import Path

import pytest

from tests.promises import rules
from tests.toolsets.manuals_harness import desk, fill, settings_for

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/internals/manuals-contract.md").read_text(encoding="utf-8")

# Rules, inputs and outputs of each section of the contract.
IN_SECTION = {2: 7 + 2, 3: 7 + 2, 4: 54 + 3, 5: 11 + 2, 6: 7 + 2, 7: 5 + 2}

EXAMPLES = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in PAGE.splitlines() if line.startswith("| `manual_")]


def test_every_line_of_the_contract_has_its_number_in_order() -> None:
    numbers = [f"M{section}.{number}" for section, most in IN_SECTION.items() for number in range(1, most + 1)]
    assert rules("docs/internals/manuals-contract.md") == numbers


@pytest.mark.rule("M2.7", "M6.1", "M7.4")
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
