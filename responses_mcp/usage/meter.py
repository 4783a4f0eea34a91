"""The meter: every paid call runs within it, from the question whether it may to what it cost.

    async with meter.call(Caller("answer", client), profile) as bill:
        answer = await api.create(body, read, bill=bill)
    bill.usage

One meter is for one session: it is shared by whatever asks the API on behalf of one client or host.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from responses_mcp.errors import LimitReached, UpstreamError
from responses_mcp.settings.model import LimitSettings, Profile, Settings
from responses_mcp.usage.bill import Bill, Usage
from responses_mcp.usage.caps import (
    GUESSED_INPUT,
    GUESSED_OUTPUT,
    GUESSED_SEARCHES,
    Amount,
    Caps,
    Expected,
    Reservation,
    limit_reached,
)
from responses_mcp.usage.models import PriceList, Use

if TYPE_CHECKING:
    from responses_mcp.usage.ledger import Entry, Ledger

_LONGEST_CLIENT = 100  # characters
_LONGEST_READ = 1000  # of its name
_DAY = 86_400  # seconds


class Caller(NamedTuple):
    """For whom a call is made: the tool, and the client as it names itself, in which `redact` hides secrets."""

    tool: str
    client: str | None = None
    redact: Callable[[str], str] = str

    @property
    def client_name(self) -> str | None:
        """The client's name as it is written down: a short line, None if nothing is left of it."""
        name = self.client if isinstance(self.client, str) else ""  # a client or a host may send anything
        shown = self.redact("".join(filter(str.isprintable, name[:_LONGEST_READ])))
        return shown[:_LONGEST_CLIENT].strip() or None


class Meter:
    """Counts what calls use and cost, keeps them within the limits, and writes them down if there is a ledger."""

    def __init__(self, settings: Settings, *, now: Callable[[], float] = time.time) -> None:
        self._limits = settings.limits
        self._is_unlimited = settings.limits == LimitSettings()
        self._prices = PriceList(settings.prices)
        self._caps = Caps(settings.limits)
        self._now = now
        self._turn = trio.Lock()  # calls are let through in order
        self._guess_of = lru_cache(maxsize=16)(self._guess)
        self._settled = 0  # calls
        self._waiting = trio.lowlevel.ParkingLot()
        self._today = (0, 0.0)  # the day, and what this process has spent in it, in US dollars
        self._ledger: Ledger | None = None
        if settings.usage.ledger and settings.research.state_dir:
            from responses_mcp.usage.ledger import Ledger  # noqa: PLC0415  # imports sqlite3, which few servers need

            self._ledger = Ledger(settings.research.state_dir)

    @property
    def caps(self) -> Caps:
        """Return what this session has spent and holds."""
        return self._caps

    @asynccontextmanager
    async def call(
        self,
        caller: Caller,
        profile: Profile,
        *,
        on_phase: Callable[[str], None] | None = None,
        patience: float = math.inf,
        call_id: str | None = None,
    ) -> AsyncGenerator[Bill]:
        """Let one call through, and settle it at the end of the block however that comes; give its `Bill`.

        Waits, for `patience` seconds at most, while calls that run hold what this one needs; `on_phase` is told so.
        Raises `LimitReached` where a limit leaves too little, before anything is sent. An `UpstreamError` that leaves
        the block is told what was used. `call_id` is a name for the call in the ledger, for `settle_left`.
        """
        bill = Bill(profile.model, self._prices, service_tier=profile.service_tier)
        kind = f"{caller.tool} {profile.model}"
        call_id = call_id or ("" if self._ledger is None else uuid.uuid4().hex)
        entry_of_now = partial(self._entry, call_id, caller, profile.model)
        guess = self._guess_of(profile)
        admitted: tuple[Reservation, Entry | None] | None = None
        if self._is_unlimited:
            admitted = self._caps.reserve(self._caps.expected(kind, guess)) or Reservation(guess), entry_of_now()
        else:
            self._check_price(profile)
            with trio.move_on_after(patience):
                admitted = await self._admitted(kind, guess, entry_of_now, on_phase)
        if admitted is None:
            raise LimitReached(
                f"What the limits leave is held by calls that run, such as research, and in {patience:g} s none of "
                "them has told its cost. No request was made; ask again later, or raise limits.* in the settings."
            )
        held, entry = admitted
        try:
            yield bill
        except UpstreamError as error:
            if bill.attempts:
                error.usage = bill.usage.as_json()
            raise
        finally:
            self._settle(held, kind, bill.usage, entry)

    def settle_left(self, call_id: str, caller: Caller, model: str, began: float, usage: Usage | None) -> None:
        """Have the ledger know what a call used whose process has left it; None where it made no request.

        Who called, the model and the time, in seconds since 1970, are for a ledger that does not know the call.
        """
        if self._ledger is not None and (entry := self._entry(call_id, caller, model, began)) is not None:
            self._ledger.settle_left(entry, usage)

    async def aclose(self) -> None:
        """Wait a moment for what is still to be written down."""
        if self._ledger is not None:
            await self._ledger.aclose()

    def _entry(self, call_id: str, caller: Caller, model: str, began: float | None = None) -> Entry | None:
        if self._ledger is None:
            return None
        from responses_mcp.usage.ledger import Entry  # noqa: PLC0415  # has been imported

        at = self._now() if began is None else began
        return Entry(id=call_id, at=int(at), tool=caller.tool, model=model, client=caller.client_name)

    def _check_price(self, profile: Profile) -> None:
        if self._limits.any_of_cost and self._prices.cost(profile.model, service_tier=profile.service_tier) is None:
            name = "session_cost_usd" if self._limits.session_cost_usd is not None else "day_cost_usd"
            raise LimitReached(
                f"limits.{name} cannot be kept, since the price of {profile.model} is not known. No request was made; "
                f"add its price under prices.{profile.model}, or remove the limit."
            )

    async def _admitted(
        self,
        kind: str,
        guess: Amount,
        entry_of_now: Callable[[], Entry | None],
        on_phase: Callable[[str], None] | None,
    ) -> tuple[Reservation, Entry | None]:
        async with self._turn:
            while True:
                entry = entry_of_now()  # of the day that has come meanwhile
                expected = self._caps.expected(kind, guess)
                held = self._caps.reserve(expected)
                if held is not None:
                    settled = self._settled
                    try:
                        admitted = await self._admitted_today(expected, entry)
                    except BaseException:  # also a cancel, after which the ledger may hold it all the same
                        self._settle(held, kind, Usage(), entry)
                        raise
                    if admitted:
                        return held, entry
                    again = self._settled != settled  # what was asked for is old
                    self._settle(held, kind, Usage(), None)
                    if again:
                        continue
                if on_phase is not None:
                    on_phase("waiting for running calls to tell their cost")
                with trio.move_on_after(_DAY - self._now() % _DAY if self._limits.day_cost_usd else math.inf):
                    await self._waiting.park()

    async def _admitted_today(self, expected: Expected, entry: Entry | None) -> bool:
        """Reserve of the day's limit; False where calls of this process hold, or have just freed, what is missing."""
        limit = self._limits.day_cost_usd
        if limit is None:
            return True
        wanted = expected.amount.usd
        settled, today = self._settled, None
        if self._ledger is not None and entry is not None:
            today = await self._ledger.reserve(entry, wanted, limit, may_be_alone=expected.guessed)
        mine = self._caps.reserved.usd - wanted
        if today is None:  # then at least what this process knows
            spent = self._spent_today()
            alone = expected.guessed and mine <= 0 and spent < limit
            if spent + mine + wanted <= limit or alone:
                return True
        elif today.admitted:
            return True
        else:
            spent = today.spent
        if self._settled != settled or (mine > 0 and spent < limit and (expected.guessed or spent + wanted <= limit)):
            return False
        held = 0.0 if today is None else max(0.0, today.held - mine)
        raise limit_reached("day_cost_usd", limit, spent, wanted, held=held)

    def _guess(self, profile: Profile) -> Amount:
        """Return what the first call of a kind is taken for."""
        output = profile.max_output_tokens or GUESSED_OUTPUT
        searches = min(profile.max_tool_calls or GUESSED_SEARCHES, GUESSED_SEARCHES)
        usd = self._prices.cost(profile.model, Use(GUESSED_INPUT, output, searches), service_tier=profile.service_tier)
        return Amount(GUESSED_INPUT + output, usd or 0.0)

    def _settle(self, held: Reservation, kind: str, usage: Usage, entry: Entry | None) -> None:
        """Settle in one step, without a checkpoint: no cancel can come between."""
        beyond = Amount()
        for _ in range(usage.uncounted):  # what was sent, and nobody told what it cost, is taken for what it held
            beyond = beyond.plus(held.amount)
        counted = Amount(usage.total_tokens, usage.cost_usd or 0.0)
        unknown = usage.counted and usage.cost_usd is None and self._limits.any_of_cost
        if unknown:  # a tier without a price, which was not asked for
            beyond = beyond.plus(Amount(0, held.amount.usd))
        spent = counted.plus(beyond) if usage.attempts else None
        self._caps.settle(held, kind, spent, known=usage.counted and not usage.uncounted and not unknown)
        if spent is not None:
            self._spend_today(spent.usd)
        if self._ledger is not None and entry is not None and (spent is not None or self._limits.day_cost_usd):
            self._ledger.settle(entry, usage if spent is not None else None, beyond.usd)
        self._settled += 1
        self._waiting.unpark_all()

    def _spent_today(self) -> float:
        day, spent = self._today
        return spent if day == int(self._now()) // _DAY else 0.0

    def _spend_today(self, usd: float) -> None:
        self._today = (int(self._now()) // _DAY, self._spent_today() + usd)
