"""The simulation of runs in small: a few schedules, the same each time. `nox -s lab -- simulation` runs more, and others."""

from collections import Counter

from tests.simulation.runs import simulate

SCHEDULES = 32
SITUATIONS = (
    *("a server was lost", "a run was cancelled", "a run was cancelled as it began", "a call was given up"),
    *("asked: ask", "asked: stream", "asked: look", "asked: cancel"),
    *("a call was handed off", "a call had its answer"),
    "runs were listed",
    *("ended: a limit was reached", "a run was refused, since others go on"),
    *("told: completed", "told: failed", "told: cancelled", "ended: may have been paid for, without an id"),
)


def test_whatever_becomes_of_servers_each_run_is_paid_once_and_ends_the_same_for_all() -> None:
    situations: Counter[str] = Counter()
    failures = {}
    for seed in range(SCHEDULES):
        record = simulate(seed)
        situations += record.situations
        if record.wrong:
            failures[seed] = record.wrong
    assert failures == {}  # python -m tests.lab.simulation runs --replay SEED
    assert set(SITUATIONS) <= set(situations)
