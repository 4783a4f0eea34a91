"""The meter: every paid call runs within it, from the question whether it may to what it cost.

    async with meter.call(Caller("answer", client), profile) as bill:
        answer = await api.create(body, read, bill=bill)
    bill.usage

One meter is for one session: whatever asks the API on behalf of one client or host shares it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from responses_mcp.errors import LimitReached, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.settings.model import LimitSettings, Profile, Settings
from responses_mcp.usage.bill import UNSENT, Bill, Call
from responses_mcp.usage.limits import NOTHING, Amount, dearest, require_room, total, without
from responses_mcp.usage.models import PriceList, Usage, guess

if TYPE_CHECKING:
    from responses_mcp.usage.ledger import InThread

_LONGEST_CLIENT: Final = 100  # characters
_LONGEST_READ: Final = 1000  # of its name
_MOST_UNKNOWN: Final = 1000  # calls that have ended, whose cost may still come

Kind: TypeAlias = tuple[str, Usage]
"""The model, and what the table expects of a call with that effort and mode."""


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
    """Counts what calls use and cost, keeps them within the limits, and writes them down if there is a ledger.

    `spent` is what the ended calls of this session cost, `held` the guesses of those that run. `now` gives seconds
    since 1970; `in_thread` runs a function of the ledger elsewhere, by default in a worker thread.
    """

    def __init__(
        self, settings: Settings, *, now: Callable[[], float] = time.time, in_thread: InThread | None = None
    ) -> None:
        self.spent = self.held = NOTHING
        limits = {name: limit for name, limit in asdict(settings.limits).items() if limit is not None}
        self._of_day = {name: limits.pop(name) for name in ("day_cost_usd",) if name in limits}
        self._of_session = limits
        self._prices = PriceList(settings.prices)
        self._now = now
        self._may_take = settings.request.timeout_ms / 1000
        self._running: dict[str, tuple[Kind, Amount]] = {}  # by call, with the guess
        self._unknown: dict[str, Amount] = {}  # what calls count whose cost may still come, the oldest first
        self._dearest: dict[Kind, Amount] = {}
        self._ledger = None
        if settings.usage.ledger and settings.research.state_dir:
            from responses_mcp.usage.ledger import Ledger  # noqa: PLC0415  # imports sqlite3, which few servers need

            self._ledger = Ledger(settings.research.state_dir, in_thread)
        self._is_off = self._ledger is None and settings.limits == LimitSettings()

    @asynccontextmanager
    async def call(self, caller: Caller, profile: Profile) -> AsyncGenerator[Bill]:
        """Admit one call, give its `Bill`, and settle it at the end of the block.

        Raises `LimitReached` if a limit leaves no room. An `UpstreamError` that leaves the block gets what was used.
        """
        name, client = ("", None) if self._is_off else (uuid.uuid4().hex, caller.client_name)
        call = Call(name, self._now(), caller.tool, profile.model, client, self._may_take)
        bill = await self.admit(call, profile, background=bool(profile.background) and profile.store)
        try:
            yield bill
        except UpstreamError as error:
            if bill.usage.attempts:
                error.usage = bill.usage.as_json()
            raise
        finally:
            await self.settle(call, bill.usage)  # noqa: ASYNC102  # shielded, and bounded, within

    async def admit(self, call: Call, profile: Profile, *, background: bool = True) -> Bill:
        """Admit a call that may outlive this process, such as a run, and return its bill; `settle` ends it.

        Its row is on disk before its request is sent. Raises `LimitReached` if a limit leaves no room; then, and after
        a cancel, nothing is held.
        """
        bill = Bill(profile.model, self._prices, service_tier=profile.service_tier)
        if self._is_off:
            return bill
        kind = profile.model, guess(profile, background=background)
        guessed, spent, held = self._guess(kind), self.spent, self.held
        require_room(self._of_session, guessed, spent, held)
        self._running[call.id] = kind, guessed
        self.held = total([held, guessed])
        try:
            if self._ledger is None or not await self._ledger.admit(call, guessed, self._of_day):
                require_room(self._of_day, guessed, spent, held)  # as far as this session knows
        except BaseException:  # also a cancel, after which the ledger may have the row
            await self.settle(call, UNSENT)  # noqa: ASYNC102  # shielded, and bounded, within
            raise
        return bill

    async def settle(self, call: Call, usage: Usage, *, response_id: str | None = None) -> None:
        """Record what a call used, from any process and any number of times; waits two seconds at most.

        `UNSENT` gives back what the call held. With `MAYBE_PAID`, or other attempts that nobody counted, its guess
        stays until something else is known. A response that is settled under another call counts once.
        """
        if self._is_off:
            return
        kind, guessed = self._running.pop(call.id, (None, NOTHING))
        self.held = without(self.held, guessed) if self._running else NOTHING  # not what sums of fractions leave
        if kind is not None or (call.id in self._unknown and not usage.unknown):
            tokens = usage.total_tokens + usage.uncounted * guessed.tokens
            cost = Amount(min(usage.attempts, 1), tokens, (usage.cost_usd or 0.0) + usage.unknown * guessed.usd)
            before = self._unknown.pop(call.id, NOTHING)
            self.spent = without(total([self.spent, cost]), before)
            if usage.unknown:
                self._unknown[call.id] = cost
                if len(self._unknown) > _MOST_UNKNOWN:
                    del self._unknown[next(iter(self._unknown))]
            elif kind is not None:
                self._dearest[kind] = dearest(cost, self._dearest.get(kind, NOTHING))
        if self._ledger is not None:
            await self._ledger.settle(call, usage, guessed, response_id)

    async def aclose(self) -> None:
        """Close the ledger. Whoever uses this meter calls it behind the last call; it may be used again."""
        if self._ledger is not None:
            await self._ledger.aclose()

    def usage_of(self, model: str, response: JsonObject) -> Usage:
        """Return what a Response used whose bill is gone with its process."""
        bill = Bill(model, self._prices)
        bill.sending()
        bill.take(response)
        return bill.usage

    def _guess(self, kind: Kind) -> Amount:
        """Return what a call is expected to need, no less than the dearest of its kind in this session."""
        model, use = kind
        usd = self._prices.cost(model, use)
        if usd is None and any(name.endswith("_usd") for name in (*self._of_session, *self._of_day)):
            tier = "" if use.service_tier is None else f" with service_tier {use.service_tier}"
            raise LimitReached(
                "No request was made: limits in US dollars (limits.*_cost_usd) cannot be kept, since the price of "
                f"{model}{tier} is not known. Add it under prices.{model}, or remove the limit."
            )
        return dearest(Amount(1, use.total_tokens, usd or 0.0), self._dearest.get(kind, NOTHING))
