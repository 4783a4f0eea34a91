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
from typing import TYPE_CHECKING, Final, NamedTuple

from responses_mcp.errors import LimitReached, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.sanitization import sanitized
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.usage.bill import Bill, Call
from responses_mcp.usage.limits import Amount
from responses_mcp.usage.models import PriceList, Usage, guess

if TYPE_CHECKING:
    from responses_mcp.usage.ledger import InThread

_LONGEST_CLIENT: Final = 100  # characters
_LONGEST_READ: Final = 1000  # of its name


class Caller(NamedTuple):
    """For whom a call is made: the tool, and the client as it names itself, in which `redact` hides secrets."""

    tool: str
    client: str | None = None
    redact: Callable[[str], str] = str

    @property
    def client_name(self) -> str | None:
        """The client's name as it is written down: a short line, None if nothing is left of it."""
        name = self.client if isinstance(self.client, str) else ""  # a client or a host may send anything
        return " ".join(self.redact(sanitized(name[:_LONGEST_READ])).split())[:_LONGEST_CLIENT].strip() or None


class Meter:
    """Counts what calls use and cost, keeps them within the limits, and writes them down if there is a ledger.

    `now` gives seconds since 1970; `in_thread` runs a function of the ledger elsewhere, by default in a worker thread.
    """

    def __init__(
        self, settings: Settings, *, now: Callable[[], float] = time.time, in_thread: InThread | None = None
    ) -> None:
        limits = {name: limit for name, limit in asdict(settings.limits).items() if limit is not None}
        folder = (settings.research.state_dir or None) if settings.usage.ledger else None
        self._needs_prices = any(name.endswith("_usd") for name in limits)
        self._prices = PriceList(settings.prices)
        self._now = now
        self._may_take = settings.request.timeout_ms / 1000
        self._ledger = None
        if limits or folder is not None:
            from responses_mcp.usage.ledger import Ledger  # noqa: PLC0415  # imports sqlite3, which few servers need

            self._ledger = Ledger(folder, limits, in_thread)

    @asynccontextmanager
    async def call(self, caller: Caller, profile: Profile) -> AsyncGenerator[Bill]:
        """Admit one call, give its `Bill`, and settle it at the end of the block.

        Raises `LimitReached` if a limit leaves no room. An `UpstreamError` that leaves the block gets what was used.
        """
        name, client = ("", None) if self._ledger is None else (uuid.uuid4().hex, caller.client_name)
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
        if self._ledger is not None:
            use = guess(profile, background=background)
            kind = f"{profile.model} {use.total_tokens} {use.web_searches} {use.service_tier}"
            await self._ledger.admit(call._replace(kind=kind), self._amount(profile.model, use))
        return Bill(profile.model, self._prices, service_tier=profile.service_tier)

    async def settle(self, call: Call, usage: Usage, *, response_id: str | None = None) -> None:
        """Record what a call used, from any process and any number of times.

        `UNSENT` gives back what the call held. With `MAYBE_PAID`, or other attempts that nobody counted, its guess
        stays until something else is known. A response that is settled under another call counts once.
        """
        if self._ledger is not None:
            await self._ledger.settle(call, usage, response_id)

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

    def _amount(self, model: str, use: Usage) -> Amount:
        """Return what counts of a call. Raises `LimitReached` for one without a price, if dollars are limited."""
        usd = self._prices.cost(model, use)
        if usd is None and self._needs_prices:
            tier = "" if use.service_tier is None else f" with service_tier {use.service_tier}"
            raise LimitReached(
                "No request was made: limits in US dollars (limits.*_cost_usd) cannot be kept, since the price of "
                f"{model}{tier} is not known. Add it under prices.{model}, or remove the limit."
            )
        return Amount(1, use.total_tokens, usd or 0.0)
