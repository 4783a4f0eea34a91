"""`python -m tests.lab.mutants` itself: what it breaks, and that it tells a test that notices from one that does not."""

import ast
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests.lab import mutants

MODULE = '''
"""A module."""
import logging

log = logging.getLogger(__name__)


def least(numbers: list[int]) -> int:
    """Return the least that is over one."""
    log.debug("of %d", len(numbers))
    if not numbers:
        raise ValueError("none of " + "them")
    return min(number for number in numbers if number > 1)
'''


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "responses_mcp").mkdir()
    (tmp_path / "responses_mcp/__init__.py").touch()
    (tmp_path / "responses_mcp/least.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path


def test_each_mutant_has_one_fault_where_behaviour_is(project: Path) -> None:
    found = list(mutants.mutants(project / "responses_mcp/least.py"))
    assert sorted((mutant.line, mutant.fault) for mutant in found) == [
        (11, "condition turned round"),
        (11, "not dropped"),
        (12, "dropped: raise ValueError('none of ' + 'them')"),
        (13, "1 -> 2"),
        (13, "Gt -> GtE"),
        (13, "returned: min((number for number in numbers if number > 1)) -> None"),
    ]
    lines = ast.unparse(ast.parse(MODULE)).splitlines()
    for mutant in found:
        changed = mutant.source.splitlines()
        assert len(changed) == len(lines)
        assert sum(one != other for one, other in zip(lines, changed, strict=True)) == 1


def test_a_mutant_survives_the_tests_that_do_not_notice_it(project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests/test_least.py").write_text(
        "from responses_mcp.least import least\n\ndef test_least():\n    assert least([3, 1, 0]) == 3\n",
        encoding="utf-8",
    )
    folders: SimpleQueue[Path] = SimpleQueue()
    folders.put(project)
    every = [
        each for each in mutants.mutants(project / "responses_mcp/least.py") if each.fault in ("1 -> 2", "Gt -> GtE")
    ]
    left = list(mutants.survivors(every, ["tests/test_least.py"], folders, 1))
    assert [mutant.fault for mutant in left] == ["1 -> 2"]
    assert (project / "responses_mcp/least.py").read_text(encoding="utf-8") == MODULE


@pytest.mark.parametrize("room", [*mutants.GUARDED, "protocol.framing"])
def test_a_room_has_modules_and_tests(room: str) -> None:
    modules, tests = mutants.of_room(room)
    assert modules
    assert [path for path in [*modules, *(mutants.ROOT / test for test in tests)] if not path.exists()] == []
    assert next(mutants.mutants(modules[-1])).line > 0
