"""A long run of one server under mixed load: `python -m tests.lab.soak [--minutes N] [--calls N] [--seed S]`."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping

import trio

from tests.lab.soak.run import Soak
from tests.lab.soak.samples import Sample, after_warm_up, for_memory, memory_slope

SHOWN = 20  # violations told in full
HEAD = "   time    calls  in flight  memory (most) MiB  descriptors (sockets)  threads  upstream open  slowest ping  CPU/call"


def show(sample: Sample) -> None:
    print(
        f"{sample.at:6.0f} s {sample.calls:8} {sample.in_flight:10} {sample.memory:9.1f} ({sample.most:5.1f})"
        f" {sample.descriptors:14} ({sample.sockets:3}) {sample.threads:13} {sample.connections:14}"
        f" {1000 * sample.slowest_ping:9.1f} ms {1000 * sample.cpu / max(1, sample.calls):6.2f} ms",
        flush=True,
    )


def counted(title: str, counts: Mapping[str, int]) -> None:
    print(f"\n{title}", *(f"{count:>9}  {what}" for what, count in sorted(counts.items())), sep="\n")


def summary(soak: Soak) -> None:
    counted("answers", {**soak.ledger.outcomes, "progress": soak.ledger.progress})
    if figures := soak.figures:
        counted("requests, as the upstream treated them", figures["treated"])
        print(
            f"{figures['requests']:>9}  in all, on {figures['connections']} connections; {figures['hung_up']} hung up"
        )
    if soak.quiet:
        last, kept = soak.quiet[-1], for_memory(soak.quiet)
        first = (kept or after_warm_up(soak.quiet))[0]
        slope = f"{memory_slope(kept):+.3f} MiB per 10,000 calls" if kept else "too short a run to tell if it grows"
        print(
            f"\n{last.calls} calls in {soak.elapsed:.0f} s, {last.calls / soak.elapsed:.0f} a second; slowest ping "
            f"{1000 * soak.slowest_ping:.1f} ms\nmemory (MiB) and descriptors after the warm-up, at last, and at most: "
            f"{first.memory:.1f}, {last.memory:.1f}, {soak.most_memory:.1f} ({slope}); "
            f"{first.descriptors}, {last.descriptors}, {soak.most_descriptors}"
        )


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
    print(*(f"VIOLATED: {violation}" for violation in violations[:SHOWN]), sep="\n")
    print(f"seed {options.seed}: {f'{len(violations)} violations' if violations else 'all is well'}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
