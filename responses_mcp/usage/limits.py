"""Limits: whether there is room for a call.

Nobody knows what a call will cost. Each call therefore holds a guess while it runs. It goes if what is spent, what is
held and its guess fit the limit, or if no other call runs and the limit is not reached. Otherwise it is refused at
once. So a limit is passed at most by what the calls then in flight cost above their guesses, or by one call that ran
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from responses_mcp.errors import LimitReached
from responses_mcp.usage.models import Usage

_ROUNDING: Final = 1e-9
_LEAST_SHOWN: Final = 0.01  # US dollars; less has four places
_MOST_UNKNOWN: Final = 1000  # calls that have ended, whose cost may still come


class Amount(NamedTuple):
    """Calls, tokens and US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


NOTHING: Final = Amount()


class Account:
    """What calls have cost and hold, as sums: each step takes the same time, however many calls there are."""

    def __init__(self) -> None:
        self.spent = self.held = NOTHING
        self._running: dict[str, tuple[str, Amount]] = {}  # by call, its kind and its guess
        self._unknown: dict[str, Amount] = {}  # what calls count whose cost may still come, the oldest first
        self._dearest: dict[str, Amount] = {}  # by kind

    def guess(self, kind: str, least: Amount) -> Amount:
        """Return what a call is expected to need: at least so much, and no less than the dearest of its kind so far."""
        most = self._dearest.get(kind, NOTHING)
        return Amount(max(least.calls, most.calls), max(least.tokens, most.tokens), max(least.usd, most.usd))

    def hold(self, call_id: str, kind: str, guess: Amount) -> None:
        """Hold the guess of a call until it is settled."""
        self._running[call_id] = kind, guess
        self.held = _sum(self.held, guess)

    def settle(self, call_id: str, usage: Usage) -> Amount:
        """Count what a call used, any number of times, and return what was held for it."""
        running = self._running.pop(call_id, None)
        kind, guess = running or ("", NOTHING)
        self.held = _sum(self.held, guess, -1) if self._running else NOTHING  # not what sums of fractions leave
        if running is not None or (call_id in self._unknown and not usage.unknown):
            tokens = usage.total_tokens + usage.uncounted * guess.tokens
            cost = Amount(min(usage.attempts, 1), tokens, (usage.cost_usd or 0.0) + usage.unknown * guess.usd)
            self.spent = _sum(_sum(self.spent, cost), self._unknown.pop(call_id, NOTHING), -1)
            if usage.unknown:
                self._unknown[call_id] = cost
                if len(self._unknown) > _MOST_UNKNOWN:
                    del self._unknown[next(iter(self._unknown))]
            elif running is not None:
                self._dearest[kind] = self.guess(kind, cost)
        return guess


def _sum(one: Amount, other: Amount, sign: int = 1) -> Amount:
    return Amount(one.calls + sign * other.calls, one.tokens + sign * other.tokens, one.usd + sign * other.usd)


def require_room(limits: Mapping[str, float], guess: Amount, spent: Amount, held: Amount) -> None:
    """Raise `LimitReached` unless a call that is expected to need `guess` fits each limit.

    The name of a limit is that of its setting, and ends as the member of `Amount` that is limited.
    """
    for name, limit in limits.items():
        unit = name.rpartition("_")[2]
        used, running, need = (getattr(each, unit) for each in (spent, held, guess))
        if used + running + need <= limit + _ROUNDING or (not held.calls and used < limit - _ROUNDING):
            continue
        of_day = name.startswith("day_")
        period, cure = ("today", "wait until 0:00 UTC") if of_day else ("in this session", "begin a new session")
        if held.calls and used < limit:
            cure = "ask again when the running calls have ended"
        cure = f", or {cure}" if limit > 0 else ""
        shown = [dollars(each) if unit == "usd" else f"{each:,.0f}" for each in (limit, used, running, need)]
        raise LimitReached(
            f"No request was made: limits.{name} is {shown[0]}; {shown[1]} spent {period}, {shown[2]} held by "
            f"running calls, {shown[3]} expected of this call. Raise it (LIMITS_{name.upper()}){cure}."
        )


def dollars(amount: float) -> str:
    """Return an amount for a person to read: $1.25, and $0.0042 if it is little."""
    return f"${amount:.2f}" if amount >= _LEAST_SHOWN or not amount else f"${amount:.4f}"
