"""Which tests hold which rule: `python -m tests.promises` writes it into the pages that have the rules.

A test names its rules by their numbers, as in `@pytest.mark.rule("M4.2", "spec 6.1")`; `pytestmark` does so for a file. A
rule of docs/spec.md is a section, named by its first number, or `spec A`, an appendix; the page names the files of its
tests. Where rules are rows of a table, the row names the tests.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
_ROW = re.compile(r"^(\| (?P<rule>[MP]\d[\d.]*) \| .* \| )[^|\n]*\|$", re.MULTILINE)
_SECTION = re.compile(
    r"^(#{2,3} (?:Appendix )?(?P<rule>[A-Z]\b|\d+(?:\.\d)?)[^\n]*\n\n(?!#).+?)(?:\n\nHeld by:.+?)?(?=\n\n##|\Z)",
    re.MULTILINE | re.DOTALL,
)
PAGES = {"docs/internals/manuals-contract.md": _ROW, "docs/spec.md": _SECTION, "docs/verification.md": _ROW}


def marks() -> dict[str, dict[str, list[str]]]:
    """Return the files that hold each rule, with the names of their tests, or none where all tests of the file do."""
    held: dict[str, dict[str, list[str]]] = {}
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if "mark.rule(" in text else []:
            match node:
                case ast.FunctionDef(name=test) | ast.AsyncFunctionDef(name=test):
                    marked, names = node.decorator_list, [test.removeprefix("test_")]
                case ast.Assign(targets=[ast.Name(id="pytestmark")]):
                    marked, names = [node.value], []
                case _:
                    continue
            for call in (part for mark in marked for part in ast.walk(mark)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.rule":
                    for rule in map(ast.literal_eval, call.args):
                        held.setdefault(rule, {}).setdefault(path.relative_to(ROOT).as_posix(), []).extend(names)
    return held


def rules(page: str) -> list[str]:
    """Return the names of the rules of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [_name(match) for match in PAGES[page].finditer(text)]


def written(page: str, held: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Return the text of a page with the tests of each of its rules."""

    def with_tests(match: re.Match[str]) -> str:
        if PAGES[page] is _ROW:
            tests = [
                f"`{file}`{': ' if names else ''}{'; '.join(names).replace('_', ' ')}"
                for file, names in held.get(_name(match), {}).items()
            ]
            return f"{match[1]}{'. '.join(tests)}. |"
        files = ", ".join(f"`{file}`" for file in held.get(_name(match), {}))
        return f"{match[1]}\n\n{textwrap.fill(f'Held by: {files}', 120, break_on_hyphens=False)}"

    return PAGES[page].sub(with_tests, (ROOT / page).read_text(encoding="utf-8"))


def _name(match: re.Match[str]) -> str:
    return match["rule"] if match.re is _ROW else f"spec {match['rule']}"


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / name).write_text(written(name, marks()), encoding="utf-8", newline="\n")
