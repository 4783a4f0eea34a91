"""Many schedules on all cores: `python -m tests.simulation [--schedules N] [--seed S] [--replay SEED]`."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections import Counter

from tests.simulation.invariants import Violation
from tests.simulation.model import check
from tests.simulation.run import simulate
from tests.simulation.situations import SITUATIONS

SHARE = 250  # schedules given to a process at a time
SHOWN = 20  # failures told in full
ENOUGH = 50_000  # schedules in which every situation must come up

Found = tuple[Counter[str], list[tuple[int, list[Violation]]], float]


def share(seeds: range) -> Found:
    """Run some schedules; return their situations, the seeds that failed and why, and the seconds of CPU."""
    began = time.process_time()
    situations: Counter[str] = Counter()
    failures: list[tuple[int, list[Violation]]] = []
    for seed in seeds:
        verdict = check(simulate(seed))
        situations += verdict.situations
        if verdict.violations:
            failures.append((seed, verdict.violations))
    return situations, failures, time.process_time() - began


def replay(seed: int) -> int:
    """Show what happens in one schedule, and what is wrong with it."""
    run = simulate(seed)
    steps, triggers, plays = (vars(run.schedule).pop(name) for name in ("steps", "triggers", "plays"))
    print(vars(run.schedule))
    for title, things in (("steps", steps), ("triggers left", triggers.items()), ("upstream", plays.items())):
        print(f"\n{title}")
        for thing in things:
            print(f"    {thing}")
    print("\nwhat happened")
    for event in run.events:
        print(f"  {event}")
    violations = check(run).violations
    for violation in violations:
        print(f"\nVIOLATED: {violation.invariant}\n    {violation.what}")
    return 1 if violations else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32), help="of the first one")
    parser.add_argument("--replay", type=int, metavar="SEED", help="show one schedule, event by event")
    options = parser.parse_args()
    if options.replay is not None:
        return replay(options.replay)
    first, last = options.seed, options.seed + options.schedules
    print(f"{options.schedules} schedules, seeds {first} to {last - 1}", flush=True)
    began = time.monotonic()
    situations: Counter[str] = Counter(dict.fromkeys(SITUATIONS, 0))
    failures: list[tuple[int, list[Violation]]] = []
    cpu = 0.0
    shares = [range(start, min(start + SHARE, last)) for start in range(first, last, SHARE)]
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for seen, failed, seconds in pool.imap_unordered(share, shares):
            situations.update(seen)
            failures += failed
            cpu += seconds
    for situation, count in sorted(situations.items()):
        print(f"{count:>9}  {situation}")
    for seed, violations in sorted(failures)[:SHOWN]:
        print(f"\nseed {seed}; see it with --replay {seed}")
        for violation in violations:
            print(f"    {violation.invariant}: {violation.what}")
    never = [situation for situation, count in situations.items() if not count]
    print(f"\n{len(failures)} of {options.schedules} schedules failed")
    if never:
        print(f"never reached: {', '.join(never)}")
    wall = time.monotonic() - began
    print(f"{wall:.0f} s, {cpu:.0f} s of CPU, {1000 * cpu / max(1, options.schedules):.2f} ms each")
    return 1 if failures or (never and options.schedules >= ENOUGH) else 0


if __name__ == "__main__":
    sys.exit(main())
