"""Each planted bug is caught, one that makes a server hang is given up, and none leaves anything behind."""

import pytest

from tests.lab.simulation.__main__ import WORLDS, catch
from tests.lab.simulation.planted import CALLS
from tests.simulation.model import check
from tests.simulation.run import simulate
from tests.simulation.transcript import Kind


@pytest.mark.parametrize(("world", "bug"), [(name, bug) for name, world in WORLDS.items() for bug in world.bugs])
def test_a_planted_bug_is_caught(world: str, bug: str) -> None:
    assert catch(WORLDS[world], WORLDS[world].bugs[bug]) is not None
    assert WORLDS[world].judge(0)[1] == []


def test_a_run_that_hangs_is_noticed_and_given_up() -> None:
    with CALLS["what was written counts as unsent for ever"]():
        runs = [simulate(seed) for seed in range(60)]
    hung = [run for run in runs if any(event.kind is Kind.HUNG for event in run.events)]
    assert hung
    assert all(check(run).violations for run in hung)
