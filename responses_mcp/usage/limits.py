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

_ROUNDING: Final = 1e-9
_LEAST_SHOWN: Final = 0.01  # US dollars; less has four places


class Amount(NamedTuple):
    """Calls, tokens and US dollars."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


NOTHING: Final = Amount()


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
