"""What the server has to reach, judged on the medians of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from tests.lab.bench.results import Results

OURS = "ours"
ORIGINAL = "original"
BEFORE = "before"
EVERY = "every"  # in place of a case: the worst value of every case and round, which no median may hide
SDKS = {"python-sdk": "the Python SDK", "typescript-sdk": "the TypeScript SDK"}

ELSEWHERE = "The original was not measured in this run: its figure is from another quiet machine with two cores."
HOLDS: dict[str, Callable[[float, float], bool]] = {
    "≤": operator.le,
    "≥": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class Bound(NamedTuple):
    """A figure to reach: `factor` times the median of a sample (measure, case, subject), or `factor` itself."""

    factor: float
    of: tuple[str, str, str] | None = None
    note: str = ""  # what a reader must know of where the figure comes from


class Verdict(NamedTuple):
    """What became of a target in a run. `bound` is None if the run lacks what it needs."""

    figure: float = 0.0
    unit: str = ""
    bound: float | None = None
    met: bool = False
    note: str = ""


class Target:
    """One thing to reach: the figure is `sign` the bound. The first bound for which the run has a sample counts."""

    def __init__(self, what: tuple[str, str], wording: str, *bounds: Bound, sign: str = "≤") -> None:
        self.measure, self.case = what
        self.wording = wording
        self.bounds = bounds
        self.sign = sign

    def judge(self, results: Results) -> Verdict | None:
        """Return the verdict, or None if the run has no subject that this can be judged by."""
        if not any(bound.of is None or bound.of[2] in results.subjects for bound in self.bounds):
            return None
        mine = [one for one in results.samples if (one.subject, one.measure) == (OURS, self.measure)]
        samples = [one for one in mine if self.case in (one.case, EVERY)]
        medians = [(bound, 1.0 if bound.of is None else results.median(*bound.of)) for bound in self.bounds]
        found = [(bound.factor * median, bound.note) for bound, median in medians if median is not None]
        if not samples or not found:
            return Verdict()
        (bound, note), worst = found[0], max(value for one in samples for value in one.values)
        figure = worst if self.case == EVERY else samples[0].median
        return Verdict(figure, samples[0].unit, bound, HOLDS[self.sign](figure, bound), note)


def of_original(what: tuple[str, str], wording: str, factor: float, elsewhere: float) -> Target:
    """Return a target by this run's original, or by the original's figure on another machine."""
    return Target(what, wording, Bound(factor, (*what, ORIGINAL)), Bound(factor * elsewhere, note=ELSEWHERE))


def no_worse(what: tuple[str, str], wording: str, factor: float) -> Target:
    """Return a target by the state before, which counts only where a run has that."""
    return Target(what, f"{wording}: no more than {factor:g} times the state before", Bound(factor, (*what, BEFORE)))


TRIO = ("start", "exit", "trio")
START, PINGS, LISTS = ("start", "initialize"), ("messages", "ping"), ("messages", "tools/list")
IDLE, LATE = ("memory", "idle"), ("memory", "1000")
CALLS, LIMITED, CPU = ("calls", "1000"), ("calls", "1000/1024 files"), ("call_cpu", "1000 at once")
CANCEL, CANCELS = ("cancel", "one"), ("cancel", "500 at once")
SUBJECTS = {
    START: "Start",
    PINGS: "Pings a second",
    LISTS: "Lists of tools a second",
    IDLE: "Memory after the start",
    CALLS: "1000 calls at once",
    CPU: "Processor time a call, 1000 at once",
    CANCEL: "Cancelling one call",
    CANCELS: "Cancelling 500 calls at once",
}
TARGETS = (
    Target(START, "Start: no more than 1.2 times a bare `import trio`", Bound(1.2, TRIO)),
    Target(
        *(START, "Start: sooner than the original", Bound(1, (*START, ORIGINAL))),
        Bound(211 / 236, TRIO, ELSEWHERE),  # its share of that import
        sign="<",
    ),
    Target(IDLE, "Memory after the start: no more than 40 MiB", Bound(40)),
    Target(LATE, "Memory after 1000 calls: no more than 1.1 times that after 100", Bound(1.1, ("memory", "100", OURS))),
    Target(PINGS, "Pings a second: at least 40,000", Bound(40_000), sign="≥"),
    of_original(CALLS, "1000 calls at once: no more than 0.8 times the original's time", 0.8, 2.1),
    of_original(LIMITED, "The same with no more than 1024 open files", 0.8, 2.1),
    Target(("calls_failed", EVERY), "However many calls at once: none fails, each gets its own answer", Bound(0)),
    of_original(CPU, "Processor time a call, 1000 at once: no more than 0.6 times the original's", 0.6, 2.6),
    of_original(CANCELS, "Cancelling 500 calls at once: no slower than the original", 1, 140),
    Target(
        ("body_ping", "100 of 1 MB"),
        "The slowest ping while 100 replies of 1 MB are read: no more than 30 ms",
        Bound(30),
    ),
    Target(("overhead_cpu", "stream"), "Processor time of a call with 300 deltas: no more than 3 ms", Bound(3)),
    Target(
        ("calls", "100"),
        "100 calls at once: no more than 0.75 times the original's time",
        Bound(0.75, ("calls", "100", ORIGINAL)),
    ),
    no_worse(("overhead_cpu", "call"), "Processor time of a call", 1.15),
    no_worse(CANCELS, "Cancelling 500 calls at once", 1.1),
    no_worse(START, "Start", 1.1),
    no_worse(LATE, "Memory after 1000 calls", 1.1),
    *(
        Target(what, f"{subject}: ahead of {name}", Bound(1, (*what, sdk)), sign=">" if what[0] == "messages" else "<")
        for what, subject in SUBJECTS.items()
        for sdk, name in SDKS.items()
    ),
)
