"""What can be simulated: how a schedule is judged and shown, and the bugs that its simulation must catch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tests.lab.simulation.planted import CALLS, RUNS, Bugs, Patch
from tests.simulation import runs
from tests.simulation.model import check
from tests.simulation.run import simulate
from tests.simulation.situations import SITUATIONS


class World(NamedTuple):
    """`judge` returns the situations of the schedule of a seed and what is wrong with it; `show` its lines."""

    judge: Callable[[int], tuple[Counter[str], list[str]]]
    show: Callable[[int], Iterable[str]]
    schedules: int
    situations: tuple[str, ...]  # that must come up
    bugs: Bugs
    within: int  # schedules in which each bug must have been caught


def _judge_calls(seed: int) -> tuple[Counter[str], list[str]]:
    verdict = check(simulate(seed))
    return verdict.situations, [f"{each.invariant}: {each.what}" for each in verdict.violations]


def _show_calls(seed: int) -> Iterator[str]:
    run = simulate(seed)
    for name, value in vars(run.schedule).items():
        yield f"{name}: {value}" if not isinstance(value, tuple | list | dict) else name
        if isinstance(value, tuple | list | dict):
            yield from (f"    {each}" for each in (value.items() if isinstance(value, dict) else value))
    yield from ("", *(f"  {event}" for event in run.events), "", *_judge_calls(seed)[1])


def _judge_runs(seed: int) -> tuple[Counter[str], list[str]]:
    record = runs.simulate(seed)
    return record.situations, [f"{rule}: {what}" for rule, what in record.wrong]


def _show_runs(seed: int) -> Iterator[str]:
    yield from (*runs.simulate(seed).log, "", *_judge_runs(seed)[1])


WORLDS = {
    "calls": World(_judge_calls, _show_calls, 100_000, SITUATIONS, CALLS, 600),
    "runs": World(_judge_runs, _show_runs, 20_000, (), RUNS, 400),
}


def catch(world: World, bug: Patch) -> tuple[int, str] | None:
    """Return after how many schedules a planted bug is caught, and by what; None if it is not."""
    with bug():
        for seed in range(world.within):
            if wrong := world.judge(seed)[1]:
                return seed + 1, wrong[0]
    return None
