"""What must hold of every run, and the findings of a check. `model` does the checking."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Invariant(StrEnum):
    """What must hold of every run."""

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


@dataclass(frozen=True)
class Violation:
    """An invariant that did not hold, and how."""

    invariant: Invariant
    what: str


@dataclass
class Verdict:
    """What was wrong with a run, and which situations it went through."""

    violations: list[Violation] = field(default_factory=list[Violation])
    situations: Counter[str] = field(default_factory=Counter[str])
