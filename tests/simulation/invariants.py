"""What must hold of every run, in words, and what a look at one run finds. `model` does the looking."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

ONE_ANSWER = "at most one response for each use of an id"
ALL_ANSWERED = "exactly one response for every id that was not cancelled"
SILENT = "nothing about an id after its cancel was read"
NO_REQUEST = "no upstream request after the cancel was read"
FEW_REQUESTS = "at most 1 + max_retries upstream requests a call, and only after what may be repeated"
CLOSED = "every connection released and closed, at once after a cancel"
NO_TASK = "no task left"
EMPTY_TABLE = "the table of requests in flight is what was asked and not answered, and empty at the end"
ALL_WRITTEN = "all output written unless the reader has gone"
NEVER_TORN = "frames never torn"
PROGRESS = "progress rises, ends before the answer and comes apart from it"
BELONGS = "answers belong to their question"
IN_TIME = "serve returns at the end of its input: not before the last answer, and within its drain"
LAST = "nothing written after serve returned"
PROMPT = "what can be written is written at once, and no call outlives its deadline"
ROOM = "calls are refused exactly when too many are in flight"
QUIET = "serve raises nothing, and calls crash only with their tools"

INVARIANTS = (
    ONE_ANSWER,
    ALL_ANSWERED,
    SILENT,
    NO_REQUEST,
    FEW_REQUESTS,
    CLOSED,
    NO_TASK,
    EMPTY_TABLE,
    ALL_WRITTEN,
    NEVER_TORN,
    PROGRESS,
    BELONGS,
    IN_TIME,
    LAST,
    PROMPT,
    ROOM,
    QUIET,
)


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold, and how."""

    invariant: str
    what: str


@dataclass
class Verdict:
    """What was wrong with a run, and which situations it went through."""

    violations: list[Violation] = field(default_factory=list[Violation])
    situations: Counter[str] = field(default_factory=Counter[str])
