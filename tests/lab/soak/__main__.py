"""A long run of one server under mixed load: `python -m tests.lab.soak [--minutes N] [--calls N] [--seed S]`."""

from __future__ import annotations

import argparse
import random
import sys

import trio

from tests.lab.soak.run import Row, Soak
from tests.lab.soak.samples import after_warm_up, for_memory, memory_slope

SHOWN = 20  # violations told in full
HEAD = "   time    calls  in flight  memory (most) MiB  descriptors (sockets)  threads  upstream open  slowest ping  CPU/call"


def show(row: Row) -> None:
    sample = row.sample
    print(
        f"{sample.at:6.0f} s {sample.calls:8} {row.in_flight:10} {sample.memory:9.1f} ({row.most:5.1f})"
        f" {sample.descriptors:14} ({sample.sockets:3}) {sample.threads:13} {sample.connections:14}"
        f" {1000 * row.slowest_ping:9.1f} ms {1000 * sample.cpu / max(1, sample.calls):6.2f} ms",
        flush=True,
    )


def summary(soak: Soak) -> None:
    outcomes, figures = soak.ledger.outcomes, soak.figures
    print("\nanswers")
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:>9}  {outcome}")
    print(f"{soak.ledger.progress:>9}  progress")
    if figures:
        print("\nrequests, as the upstream treated them")
        for kind, count in sorted(figures["treated"].items()):
            print(f"{count:>9}  {kind}")
        print(
            f"{figures['requests']:>9}  in all, on {figures['connections']} connections; {figures['hung_up']} hung up"
        )
    quiet = [row.sample for row in soak.rows]
    if quiet:
        last = quiet[-1]
        kept = for_memory(quiet)
        grows = (
            f"{memory_slope(kept):+.3f} MiB per 10,000 calls" if kept else "too short a run to tell whether it grows"
        )
        first = (kept or after_warm_up(quiet))[0]
        print(f"\ncalls         {last.calls} in {soak.elapsed:.0f} s, {last.calls / soak.elapsed:.0f} a second")
        print(
            f"memory        {first.memory:.1f} MiB after the warm-up, {last.memory:.1f} at last, "
            f"{soak.most_memory:.1f} at most; {grows}"
        )
        print(
            f"descriptors   {first.descriptors} after the warm-up, {last.descriptors} at last, "
            f"{soak.most_descriptors} at most"
        )
        print(f"slowest ping  {1000 * soak.slowest_ping:.1f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.calls} calls or {options.minutes:g} minutes\n{HEAD}", flush=True)
    soak = Soak(options.seed, options.calls, options.minutes * 60, show)
    trio.run(soak.run)
    summary(soak)
    violations = soak.ledger.violations
    for violation in violations[:SHOWN]:
        print(f"VIOLATED: {violation}")
    print(f"seed {options.seed}: {f'{len(violations)} violations' if violations else 'all is well'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
