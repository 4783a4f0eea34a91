"""What the server process costs, looked at from outside, and what its figures must do over a long run."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.processes import memory, processor_time

KEPT_IDLE = 16  # connections that the server keeps for the next call
STEEPEST = 1.0  # MiB per 10,000 calls
FEW = 5  # quiet moments
GROWTH = 1.10  # of the first quiet moments after the warm-up
MOST_INDEX = 12  # descriptors of SQLite: four idle connections with their logs
MOST_THREADS = 64
WARM_UP = 0.2  # of all calls
WARM_MEMORY = 30_000  # calls after which the memory has seen everything, at the least
LEAST_QUIET = 5  # quiet moments after the warm-up that make a slope
LEAST_CALLS = 5_000  # between the first and the last of them


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the process. `memory` is resident, in MiB; `connections` are those the upstream has open."""

    at: float
    calls: int
    memory: float
    descriptors: int
    sockets: int  # among them
    index: int  # among them, those of SQLite
    threads: int
    cpu: float  # seconds so far
    connections: int = 0
    most: float = 0.0  # the largest memory since the moment before
    in_flight: int = 0
    slowest_ping: float = 0.0

    @property
    def others(self) -> int:
        """Descriptors that are always the same: pipes, the null device, what Trio waits with."""
        return self.descriptors - self.sockets - self.index


def look(pid: int, at: float, calls: int) -> Sample | None:
    """Look at a process; None when it has ended, and where the system has no /proc."""
    resident, cpu = memory(pid), processor_time(pid)
    if resident is None or cpu is None:
        return None
    names: list[str] = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            names.append(str(entry.readlink()))
    sockets = sum(name.startswith("socket:") for name in names)
    index = sum(".sqlite3" in name for name in names)
    return Sample(at, calls, resident[0], len(names), sockets, index, len(os.listdir(f"/proc/{pid}/task")), cpu)


def after_warm_up(quiet: Sequence[Sample], least: int = 0) -> list[Sample]:
    """Return the quiet moments behind the first fifth of all calls, and behind so many at the least."""
    return [sample for sample in quiet if sample.calls >= max(least, WARM_UP * quiet[-1].calls)]


def for_memory(quiet: Sequence[Sample]) -> list[Sample]:
    """Return the quiet moments that tell whether memory grows; none when the run was too short."""
    kept = after_warm_up(quiet, WARM_MEMORY)
    return kept if len(kept) >= LEAST_QUIET and kept[-1].calls - kept[0].calls >= LEAST_CALLS else []


def memory_slope(samples: Sequence[Sample]) -> float:
    """Return the growth of the memory in MiB per 10,000 calls, by the line that fits the samples best."""
    calls = [sample.calls / 10_000 for sample in samples]
    return statistics.linear_regression(calls, [sample.memory for sample in samples]).slope


def growth(quiet: Sequence[Sample]) -> list[str]:
    """Say what must not have grown between the quiet moments of a run, and has."""
    wrong: list[str] = []
    for sample in quiet:
        for what, count, most in (
            ("upstream connections", sample.connections, KEPT_IDLE),
            ("descriptors of the index", sample.index, MOST_INDEX),
            ("threads", sample.threads, MOST_THREADS),
        ):
            if count > most:
                wrong.append(f"{count} {what} after {sample.calls} calls")
    for first, sample in product(after_warm_up(quiet)[:1], after_warm_up(quiet)):
        if sample.sockets - first.sockets > KEPT_IDLE:
            wrong.append(f"{first.sockets} sockets became {sample.sockets} after {sample.calls} calls")
        if sample.others != first.others:
            wrong.append(f"{first.others} open files became {sample.others} after {sample.calls} calls")
    if kept := for_memory(quiet):
        if (steepness := memory_slope(kept)) > STEEPEST:
            wrong.append(f"memory grows by {steepness:.2f} MiB per 10,000 calls")
        # A single moment is some MiB off, as the heap happens to lie.
        first_few, last_few = (statistics.median(each.memory for each in few) for few in (kept[:FEW], kept[-FEW:]))
        if last_few > first_few * GROWTH:
            wrong.append(f"memory grew from {first_few:.1f} to {last_few:.1f} MiB")
    return wrong
