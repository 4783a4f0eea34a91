"""What the server has to reach, judged on the medians of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.lab.bench.results import Results, Sample

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


@dataclass(frozen=True)
class Bound:
    """A figure to reach: `factor` times the median of a sample (measure, case, subject), or `factor` itself."""

    factor: float
    of: tuple[str, str, str] | None = None
    note: str = ""  # what a reader must know of where the figure comes from

    def value(self, results: Results) -> float | None:
        """Return the figure in the unit of the measure, or None if the run lacks the sample."""
        if self.of is None:
            return self.factor
        median = results.median(*self.of)
        return None if median is None else self.factor * median


@dataclass(frozen=True)
class Verdict:
    """What became of a target in a run."""

    figure: float
    sign: str  # how the figure should relate to the bound
    bound: float
    unit: str
    met: bool
    note: str


@dataclass(frozen=True)
class Target:
    """One thing to reach. Of several bounds, the first for which the run has a sample counts."""

    measure: str
    case: str
    wording: str
    bounds: tuple[Bound, ...]
    sign: str = "≤"

    def samples(self, results: Results) -> list[Sample]:
        """Return what the run found of this for this server."""
        mine = [one for one in results.samples if one.subject == OURS and one.measure == self.measure]
        return [one for one in mine if self.case in (one.case, EVERY)]

    def judge(self, results: Results) -> Verdict | None:
        """Return the verdict, or None if the run lacks what it needs."""
        samples = self.samples(results)
        found = ((bound.value(results), bound.note) for bound in self.bounds)
        bound, note = next((one for one in found if one[0] is not None), (None, ""))
        if not samples or bound is None:
            return None
        worst = max(value for one in samples for value in one.values)
        figure = worst if self.case == EVERY else samples[0].median
        return Verdict(figure, self.sign, bound, samples[0].unit, HOLDS[self.sign](figure, bound), note)

    def has_peer(self, results: Results) -> bool:
        """Return whether the run had a subject that this can be judged by."""
        return any(bound.of is None or bound.of[2] in results.subjects for bound in self.bounds)


def _of_original(measure: str, case: str, factor: float, elsewhere: float) -> tuple[Bound, Bound]:
    """Return a bound by this run's original, and one by the original's figure on another machine."""
    return Bound(factor, (measure, case, ORIGINAL)), Bound(factor * elsewhere, note=ELSEWHERE)


def _ahead_of_the_sdks() -> Iterator[Target]:
    for measure, case, subject in (
        ("start", "initialize", "Start"),
        ("messages", "ping", "Pings a second"),
        ("messages", "tools/list", "Lists of tools a second"),
        ("memory", "idle", "Memory after the start"),
        ("calls", "1000", "1000 calls at once"),
        ("call_cpu", "1000 at once", "Processor time a call, 1000 at once"),
        ("cancel", "one", "Cancelling one call"),
        ("cancel", "500 at once", "Cancelling 500 calls at once"),
    ):
        for sdk, name in SDKS.items():
            sign = ">" if measure == "messages" else "<"
            yield Target(measure, case, f"{subject}: ahead of {name}", (Bound(1, (measure, case, sdk)),), sign)


def _no_worse(measure: str, case: str, what: str, factor: float) -> Target:
    """Return a bound by the state before, which counts only where a run has that."""
    return Target(
        measure,
        case,
        f"{what}: no more than {factor:g} times the state before",
        (Bound(factor, (measure, case, BEFORE)),),
    )


TRIO = ("start", "exit", "trio")
TARGETS = (
    Target(
        *("start", "initialize", "Start: no more than 1.2 times a bare `import trio`"),
        (Bound(1.2, TRIO),),
    ),
    Target(
        *("start", "initialize", "Start: sooner than the original"),
        (Bound(1, ("start", "initialize", ORIGINAL)), Bound(211 / 236, TRIO, ELSEWHERE)),  # its share of that import
        "<",
    ),
    Target("memory", "idle", "Memory after the start: no more than 40 MiB", (Bound(40),)),
    Target(
        *("memory", "1000", "Memory after 1000 calls: no more than 1.1 times that after 100"),
        (Bound(1.1, ("memory", "100", OURS)),),
    ),
    Target("messages", "ping", "Pings a second: at least 40,000", (Bound(40_000),), "≥"),
    Target(
        *("calls", "1000", "1000 calls at once: no more than 0.8 times the original's time"),
        _of_original("calls", "1000", 0.8, 2.1),
    ),
    Target(
        *("calls", "1000/1024 files", "The same with no more than 1024 open files"),
        _of_original("calls", "1000/1024 files", 0.8, 2.1),
    ),
    Target("calls_failed", EVERY, "However many calls at once: none fails, each gets its own answer", (Bound(0),)),
    Target(
        *("call_cpu", "1000 at once", "Processor time a call, 1000 at once: no more than 0.6 times the original's"),
        _of_original("call_cpu", "1000 at once", 0.6, 2.6),
    ),
    Target(
        *("cancel", "500 at once", "Cancelling 500 calls at once: no slower than the original"),
        _of_original("cancel", "500 at once", 1, 140),
    ),
    Target(
        *("body_ping", "100 of 1 MB", "The slowest ping while 100 replies of 1 MB are read: no more than 30 ms"),
        (Bound(30),),
    ),
    Target("overhead_cpu", "stream", "Processor time of a call with 300 deltas: no more than 3 ms", (Bound(3),)),
    Target(
        *("calls", "100", "100 calls at once: no more than 0.75 times the original's time"),
        (Bound(0.75, ("calls", "100", ORIGINAL)),),
    ),
    _no_worse("overhead_cpu", "call", "Processor time of a call", 1.15),
    _no_worse("cancel", "500 at once", "Cancelling 500 calls at once", 1.1),
    _no_worse("start", "initialize", "Start", 1.1),
    _no_worse("memory", "1000", "Memory after 1000 calls", 1.1),
    *_ahead_of_the_sdks(),
)
