"""Caps: what may be spent, reserved before a request is made and settled after it, without any I/O.

What a call will cost nobody knows. So it reserves the most that a call of its kind has cost so far; the first of a kind
reserves a guess, and where that is more than what is left the very first is let through alone. All is decided in one
step, so calls at once cannot pass a cap together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from responses_mcp.errors import LimitReached
from responses_mcp.settings.model import LimitSettings

# What the first call of a kind is taken for: a question with some searches, and the pages that they bring.
GUESSED_INPUT: Final = 50_000  # tokens
GUESSED_OUTPUT: Final = 10_000
GUESSED_SEARCHES: Final = 5
_ROUNDING: Final = 1e-9
_LEAST_SHOWN: Final = 0.01  # US dollars; less has four places


class Amount(NamedTuple):
    """Tokens and US dollars."""

    tokens: int = 0
    usd: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Return both together."""
        return Amount(self.tokens + other.tokens, self.usd + other.usd)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a call is expected to use. `guessed` tells that no call has been settled yet."""

    amount: Amount
    guessed: bool


@dataclass(eq=False, slots=True)
class Reservation:
    """A call that has been let through and not settled."""

    amount: Amount


@dataclass(frozen=True, slots=True)
class _Cap:
    name: str
    limit: float
    spent: float
    reserved: float
    wanted: float
    shown: str  # a format


class Caps:
    """What one session has spent and what is reserved in it."""

    def __init__(self, limits: LimitSettings) -> None:
        self._limits = limits
        self._calls = 0
        self._spent = Amount()
        self._open: set[Reservation] = set()
        self._reserved = Amount()
        self._greatest: dict[str, Amount] = {}  # by kind

    @property
    def reserved(self) -> Amount:
        """Return what all calls hold that have not been settled."""
        return self._reserved

    @property
    def spent(self) -> Amount:
        """Return what has been settled."""
        return self._spent

    @property
    def calls(self) -> int:
        """Return how many calls were let through, without those that made no request."""
        return self._calls

    def expected(self, kind: str, guess: Amount) -> Expected:
        """Return what a call of that kind is taken for: the most so far, or `guess`.

        The first call of a kind is taken for `guess`. Once others have been settled it is taken for no more than the
        most of theirs, and has to fit: else each kind could pass a limit once.
        """
        known = self._greatest.get(kind)
        if known is not None or not self._greatest:
            return Expected(known or guess, guessed=known is None)
        most_tokens = max(each.tokens for each in self._greatest.values())
        most_usd = max(each.usd for each in self._greatest.values())
        return Expected(Amount(min(guess.tokens, most_tokens), min(guess.usd, most_usd)), guessed=False)

    def reserve(self, expected: Expected) -> Reservation | None:
        """Let a call through and return what it holds; None where it has to wait for others to be settled.

        Raises `LimitReached` where waiting cannot help.
        """
        amount = expected.amount
        for cap in self._caps(amount):
            unspent = cap.limit - cap.spent
            if cap.wanted <= unspent - cap.reserved + _ROUNDING:
                continue
            if unspent <= _ROUNDING or (cap.wanted > unspent and not expected.guessed):
                raise limit_reached(cap.name, cap.limit, cap.spent, cap.wanted, cap.shown)
            if self._open:
                return None
        self._calls += 1
        held = Reservation(amount)
        self._open.add(held)
        self._reserved = self._reserved.plus(amount)
        return held

    def settle(self, held: Reservation, kind: str, spent: Amount | None, *, known: bool) -> None:
        """Put what was spent in the place of what was reserved; None where no request was made.

        `known` tells that `spent` is what the API counted, from which calls of this kind are judged from now on.
        """
        self._open.remove(held)
        left = Amount(self._reserved.tokens - held.amount.tokens, self._reserved.usd - held.amount.usd)
        self._reserved = left if self._open else Amount()  # not what sums of fractions leave
        if spent is None:
            self._calls -= 1
            return
        self._spent = self._spent.plus(spent)
        if known:
            before = self._greatest.get(kind, Amount())
            self._greatest[kind] = Amount(max(before.tokens, spent.tokens), max(before.usd, spent.usd))

    def _caps(self, amount: Amount) -> Iterator[_Cap]:
        limits, spent, reserved = self._limits, self._spent, self.reserved
        if limits.session_calls is not None:
            yield _Cap("session_calls", limits.session_calls, self._calls, 0, 1, "{:,.0f} calls")
        if limits.session_tokens is not None:
            numbers = (limits.session_tokens, spent.tokens, reserved.tokens, amount.tokens)
            yield _Cap("session_tokens", *numbers, "{:,.0f} tokens")
        if limits.session_cost_usd is not None:
            yield _Cap("session_cost_usd", limits.session_cost_usd, spent.usd, reserved.usd, amount.usd, "$")


def limit_reached(
    name: str, limit: float, spent: float, wanted: float, shown: str = "$", *, held: float = 0.0
) -> LimitReached:
    """Return the error that names a cap, what was spent, and the setting; `held` is what other servers hold."""

    def say(number: float) -> str:
        return dollars(number) if shown == "$" else shown.format(number)

    if limit <= 0:
        return LimitReached(f"limits.{name} (LIMITS_{name.upper()}) is {limit:g}, so no request is made; raise it.")
    period = "today" if name.startswith("day_") else "in this session"
    others = f", {say(held)} are reserved for calls that are still running" if held > 0 else ""
    need = "" if name == "session_calls" or spent >= limit else f", and a call like this one may need {say(wanted)}"
    cure = f"raise limits.{name} (LIMITS_{name.upper()})"
    done = "were made" if name == "session_calls" else "were spent"
    return LimitReached(
        f"The limit of {say(limit)} (limits.{name}) is reached: {say(spent)} {done} {period}{others}{need}. "
        f"No request was made; {cure}{'.' if name.startswith('day_') else ', or begin a new session.'}"
    )


def dollars(amount: float) -> str:
    """Return an amount for a person to read: $1.25, and $0.0042 where it is little."""
    return f"${amount:.2f}" if amount >= _LEAST_SHOWN or not amount else f"${amount:.4f}"
