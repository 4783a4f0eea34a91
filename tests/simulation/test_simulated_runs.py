"""The simulation of runs in small: a few schedules, the same each time. `nox -s simulate` runs more, and others."""

from collections import Counter

import pytest

from tests.simulation.runs import simulate
from tests.simulation.runs_planted import BUGS, catch

pytestmark = pytest.mark.once

SCHEDULES = 20
SITUATIONS = (
    *("a server was lost", "a run was cancelled", "a run was cancelled as it began", "a call was given up"),
    *("asked: ask", "asked: stream", "asked: look", "asked: cancel"),
    *("a call was handed off", "a call had its answer"),
    "ended: a limit was reached",
    *("told: completed", "told: failed", "told: cancelled", "ended: may have been paid for, without an id"),
)
QUICK = (
    "what a run used is not counted",
    "a 500 is asked again",
    "what may have been paid for is not written",
    "an id that never came is called free",
)


def test_whatever_becomes_of_servers_each_run_is_paid_once_and_ends_the_same_for_all() -> None:
    situations: Counter[str] = Counter()
    failures = {}
    for seed in range(SCHEDULES):
        record = simulate(seed)
        situations += record.situations
        if record.wrong:
            failures[seed] = record.wrong
    assert failures == {}  # python -m tests.simulation.runs --replay SEED
    assert set(SITUATIONS) <= set(situations)


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_caught_at_once(name: str) -> None:
    caught = catch(BUGS[name])
    assert caught is not None
    assert caught[0] < 40
