"""Many random schedules on all cores, and planted bugs: `python -m tests.lab.simulation [WORLD] [OPTIONS]`.

A world is `calls` (client, host and upstream of one server) or `runs` (servers that share runs of research). Without
one, both are simulated, and then each bug that is planted in them must be caught.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from tests.lab.simulation.planted import CALLS, RUNS, Bugs, Patch
from tests.simulation import runs
from tests.simulation.model import check
from tests.simulation.run import simulate
from tests.simulation.situations import SITUATIONS

SHARE = 50  # schedules given to a process at a time
SHOWN = 20  # failures told in full
ENOUGH = 50_000  # schedules in which every situation must come up


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


Found = tuple[Counter[str], dict[int, list[str]]]


def share(name: str, seeds: range) -> Found:
    """Run some schedules; return their situations, and the seeds that failed with the reasons."""
    situations: Counter[str] = Counter()
    failures: dict[int, list[str]] = {}
    for seed in seeds:
        seen, wrong = WORLDS[name].judge(seed)
        situations += seen
        if wrong:
            failures[seed] = wrong
    return situations, failures


def simulated(name: str, first: int, count: int) -> bool:
    """Run schedules of a world on all cores, print what came up, and return whether all is well."""
    last = first + count
    print(f"{name}: {count} schedules, seeds {first} to {last - 1}", flush=True)
    began = time.monotonic()
    situations: Counter[str] = Counter(dict.fromkeys(WORLDS[name].situations, 0))
    failures: dict[int, list[str]] = {}
    shares = [range(start, min(start + SHARE, last)) for start in range(first, last, SHARE)]
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seen, failed in pool.imap_unordered(partial(share, name), shares):
            situations.update(seen)
            failures |= failed
    print(*(f"{times:>9}  {situation}" for situation, times in sorted(situations.items())), sep="\n")
    for seed, wrong in sorted(failures.items())[:SHOWN]:
        print(f"\nseed {seed}; see it with {name} --replay {seed}", *(f"    {each}" for each in wrong), sep="\n")
    never = [situation for situation, times in situations.items() if not times]
    if never:
        print(f"never reached: {', '.join(never)}")
    print(f"{len(failures)} of {count} schedules failed, {time.monotonic() - began:.0f} s\n", flush=True)
    return not failures and not (never and count >= ENOUGH)


def caught(name: str, world: World) -> bool:
    """Plant each bug of a world, print after how many schedules it was caught, and return whether all were."""
    missed = 0
    for what, bug in world.bugs.items():
        found = catch(world, bug)
        missed += found is None
        print(f"{what:<72.72} " + (f"after {found[0]:>3}: {found[1]:.100}" if found else "MISSED"), flush=True)
    print(f"{name}: {len(world.bugs) - missed} of {len(world.bugs)} planted bugs caught\n", flush=True)
    return not missed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.simulation", description=__doc__)
    parser.add_argument("world", nargs="?", choices=[*WORLDS, "planted"], help="one of them, or only the planted bugs")
    parser.add_argument("--schedules", type=int, help="100,000 of calls and 20,000 of runs unless you say otherwise")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of the first one")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show one schedule of a world, event by event")
    options = parser.parse_args()
    if options.replay is not None:
        world = WORLDS[options.world or "calls"]
        print(*world.show(options.replay), sep="\n")
        return 1 if world.judge(options.replay)[1] else 0
    good = True
    for name, world in WORLDS.items():
        if options.world in (None, name):
            good &= simulated(name, options.seed, options.schedules or world.schedules)
    for name, world in WORLDS.items():
        if options.world in (None, "planted"):
            good &= caught(name, world)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
