"""Research for Trio programs: questions that take minutes, each sent once, in runs that outlive their callers.

    async with open_research(settings) as research:
        run_id = await research.start("What changed in the tax law of 2026?", effort="deep")
        view = await research.result(run_id, wait_seconds=600)

The API holds a run, and a row in a file has its id, so nobody owns it: this process follows the runs that it has sent,
and looks up any other when it is asked. Waiting for a run can be cancelled without touching the run.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from responses_mcp.errors import (
    BadArgument,
    ConfigError,
    DeadlineExceeded,
    LimitReached,
    ResearchClosed,
    ResponsesMcpError,
    UpstreamError,
)
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.research.inquiry import PROFILES, Effort, checked, digest_of, profile_of, run_body
from responses_mcp.research.runs_file import Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import (
    CANCELLED,
    LATER,
    NEVER_ASKED,
    RunView,
    day_of,
    used,
    view_of_end,
    view_of_row,
)
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import (
    CANCEL_FOR_SURE,
    ENDED,
    GONE,
    KEPT_SO_LONG,
    LEAVING,
    WITH_ANSWER,
    Handle,
    StoredResponses,
)
from responses_mcp.responses_api.request.arguments import read_flag, read_number, read_query, read_seconds, read_word
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.request.payload import bare_hosts
from responses_mcp.responses_api.response.parser import Answer
from responses_mcp.responses_api.watcher import Watcher
from responses_mcp.secrets import OutgoingText
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.trace_context import TRACE
from responses_mcp.under_trio import require_trio
from responses_mcp.usage.bill import MAYBE_PAID, UNSENT, Bill, Call, usage_from
from responses_mcp.usage.meter import Caller, Meter
from responses_mcp.usage.models import PriceList, guess

__all__ = ["Research", "RunView", "open_research"]

log = logging.getLogger(__name__)

T = TypeVar("T")

UNSENT_SECONDS: Final = 120.0
"""How long a run may wait to be sent: behind the rate limit, and over refusals."""
ID_SECONDS: Final = 60.0
"""How long after its request the id of a run may come."""
_WITHDRAW: Final = 5.0  # seconds in which the id of a cancelled run may still come
_CANCEL: Final = 65.0  # seconds that a cancel may take, where the API asks for a wait
CANCELS_FOR: Final = 20.0  # seconds in which a cancel is sent again that the API takes without an end
_UNWATCHED: Final = 5.0  # seconds after its end, in which whoever follows a run has heard of that
_LOOK: Final = 20.0  # seconds for one look at a response
_FIRST_PAUSE: Final = 0.5  # seconds between two looks, growing
_LONGEST_PAUSE: Final = 10.0
_FIRST_LOOKS: Final = 3.0  # seconds for which a list waits for the looks at open rows
_OLD: Final = 60.0  # seconds, after which a run may have ended without anybody here knowing
_FILE: Final = 10.0  # seconds that a use of the file may take
_MOST_DONE: Final = 32  # ended runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64
_LONGEST_PHASE: Final = 200  # characters
_LONGEST_LABEL: Final = 200  # characters
_MOST_LISTED: Final = 100
_USUALLY_LISTED: Final = 20
_CLOSED: Final = "This Research is closed; use it within the block of open_research."
_NOT_CONFIRMED: Final = " The API did not confirm that, so it may go on, and cost something."
_UNTOLD: Final = "The run was cancelled before its id was known, so the API could not be told; it may cost something."
_CLOSED_ONLY: Final = (
    "The run was cancelled by closing its connection, the only way with this API; it may cost something."
)
INTERNAL: Final = "Something went wrong within the server; see its debug log. It may have been paid for."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""


class _WithdrawnError(Exception):
    """The run was cancelled, or sent by another process, before its request was sent here."""


@dataclass(eq=False)
class _Here:
    """A run whose request this process sends, or has sent. `done` is its end, once that is known."""

    row: Row
    profile: Profile
    bill: Bill | None = None
    handle: Handle | None = None
    phase: str = "beginning"
    done: RunView | None = None
    late: bool = False
    cancelling: bool = False
    writing: trio.Lock = field(default_factory=trio.Lock)
    news: trio.Event = field(default_factory=trio.Event)
    dirty: trio.Event = field(default_factory=trio.Event)
    over: trio.Event = field(default_factory=trio.Event)
    preparing: trio.CancelScope = field(default_factory=trio.CancelScope)
    life: trio.CancelScope = field(default_factory=lambda: trio.CancelScope(shield=True))

    def announce(self) -> None:
        """Wake all who wait for news."""
        self.news.set()
        self.news = trio.Event()

    def changed(self) -> None:
        """Take note that there is something to write."""
        self.dirty.set()
        self.announce()

    def tell(self, phase: str) -> None:
        """Take what is going on, in words for a person."""
        phase = phase[:_LONGEST_PHASE]  # the query of a search may be of any length
        if phase != self.phase:
            self.phase = phase
            self.announce()

    def leave(self) -> None:
        """Have the work end where nothing is lost by that; takes a second at most."""
        self.preparing.cancel(reason="nothing was sent")
        if self.handle is not None:
            self.handle.leave()

    def stop(self) -> None:
        """Stop the work at once: the run is over."""
        self.preparing.cancel(reason="it is over")
        if self.handle is not None:
            self.handle.stop()


class Research:
    """Runs of one account: begun here, or found in the folder of runs. `open_research` gives one.

    Each method may raise `ConfigError` and `RunsFileUnusable`.
    """

    def __init__(
        self,
        settings: Settings,
        api: ResponsesApi,
        nursery: trio.Nursery,
        *,
        meter: Meter,
        in_thread: InThread,
        clock: Callable[[], float],
    ) -> None:
        self.redact = api.redact
        self.outgoing = OutgoingText(settings.privacy.outgoing_secrets, settings.openai.secrets)
        self._settings = settings
        self._stored = StoredResponses(api)
        self._prices = PriceList(settings.prices)
        self._meter = meter
        self._nursery = nursery
        self._in_thread = in_thread
        self._clock = clock
        folder = settings.research.state_dir
        self._file = RunsFile(Path(folder), clock) if folder else None  # "" would be the working directory
        self._here: dict[str, _Here] = {}
        self._done = _Last[RunView](_MOST_DONE)
        self._masked = _Last[Mapping[str, int]](_MOST_LISTED)  # what was, in questions of this process
        self._cancels: dict[trio.CancelScope, trio.Event] = {}  # that are on their way
        self._is_used = False
        self._first_look = trio.Event()  # at the runs that go on
        self._closed = False

    # Beginning

    async def start(
        self,
        query: str,
        *,
        effort: Effort | None = None,
        domains: Sequence[str] | None = None,
        blocked_domains: Sequence[str] | None = None,
        recency_days: int | None = None,
        location: Mapping[str, str] | None = None,
        continue_from: str | None = None,
        output_schema: Mapping[str, Any] | None = None,
        stores: Sequence[str] | None = None,
        max_tool_calls: int | None = None,
        max_cost_usd: float | None = None,
        label: str | None = None,
        fresh: bool = False,
        client: str | None = None,
    ) -> str:
        """Begin a run and return its id, or, unless `fresh`, that of one that goes on with the very same request.

        `effort` is `quick`, `standard` or `deep`. Only `domains` are searched, and never `blocked_domains`.
        `recency_days` is a hint. `location` may have `country` (two letters), `region`, `city` and `timezone`.
        `continue_from` is the id of a run that has an answer, which the question follows up. `output_schema` is the
        JSON schema of an object, in which the answer is given then. `stores` are searched along with the web, by their
        names in `research.stores`. `max_tool_calls` bounds the searches, and a run whose estimate is above
        `max_cost_usd` is refused. `label` names the run in the list. `client` is for whom it is asked, as the ledger
        has it. Raises `BadArgument` for what cannot be asked, and `LimitReached` where too many runs go on.
        """
        sent = self.outgoing.question(read_query(query))
        join = not read_flag("fresh", fresh)
        inquiry = checked(
            sent.text,
            effort=effort,
            domains=domains,
            blocked_domains=blocked_domains,
            recency_days=recency_days,
            location=location,
            output_schema=output_schema,
            stores=stores,
            max_tool_calls=max_tool_calls,
            known_stores=self._settings.research.stores,
        )
        self._ready()
        profile = profile_of(inquiry.effort, self._settings)
        self._check_cost(profile, max_cost_usd)
        zone = self._settings.locale.time_zone
        build = partial(
            run_body,
            inquiry,
            profile,
            instructions=instructions_for(self._settings.policy, zone),
            time_zone=zone,
            store=self._settings.research.store and profile.store,
            previous=await self._continued(continue_from),
        )
        new = self._row(build(today=""), profile, Caller("research", client, self.redact))
        name = read_word("label", label)
        name = None if name is None else " ".join(self.redact.known(replace_lone_surrogates(name)).split())
        new = replace(
            new,
            effort=inquiry.effort,
            label=None if name is None else name[:_LONGEST_LABEL],
            has_schema=inquiry.output_schema is not None,
        )
        run_id = await self._begin(
            new,
            build(today=day_of(self._clock(), zone)),
            profile,
            join=join,
            most=self._settings.research.max_running,
            fixed=frozenset({"user_location"} if inquiry.location is not None else ()),
        )
        if sent.masked:
            self._masked[run_id] = sent.masked
        return run_id

    async def answer(
        self,
        query: str,  # noqa: ARG002  # as `Asked` has it
        body: JsonObject,
        profile: Profile,
        caller: Caller,
        *,
        seconds: float,
        on_phase: Callable[[str], None] | None = None,
    ) -> RunView:
        """Have a question of a call answered by a run, and return how it ended or, after `seconds`, how far it is.

        `body` is its request without background mode. The run begins whatever `research.max_running` says. Cancelling
        this cancels the run: it is the call that wanted the answer. Raises as `start` does, and why the run was
        refused; `RunsFileUnusable` only where nothing was sent, and nothing will be.
        """
        if self._file is None:
            raise RunsFileUnusable("research.state_dir is not set")
        self._ready()
        run_id = await self._begin(self._row(body, profile, caller), body, profile, join=False, most=None)
        try:
            view = await self.result(run_id, wait_seconds=seconds, on_phase=on_phase)
        except trio.Cancelled:
            with trio.CancelScope(shield=True) as leaving, suppress(ResponsesMcpError):
                leaving.deadline = trio.current_time() + LEAVING
                await self.cancel(run_id)
            raise
        except RunsFileUnusable as error:  # of a run that was sent
            log.warning("research: a run cannot be looked at for now: %s", error)
            return replace(view_of_row(self._row(body, profile, caller), self._clock()), run_id=run_id, phase="unknown")
        if view.failure is not None and not view.maybe_paid:
            raise view.failure
        return view

    def _row(self, body: JsonObject, profile: Profile, caller: Caller) -> Row:
        return Row(
            id=f"run_{secrets.token_hex(8)}",
            account=self._account,
            digest=digest_of(body),
            model=profile.model,
            created=self._clock(),
            may_take=self._settings.research.timeout_ms / 1000,
            kept=body.get("store") is not False,
            tool=caller.tool,
            client=caller.client_name,
        )

    def _check_cost(self, profile: Profile, most: object) -> None:
        """Raise `LimitReached` for a run whose estimate is above what it may cost, in US dollars."""
        if most is None:
            return
        try:
            bound = float(str(most))
        except ValueError:
            bound = -1.0
        if not 0 <= bound < math.inf:
            raise BadArgument("max_cost_usd must be a number of US dollars, 0 or more; pass it like 2.5.")
        usd = self._prices.cost(profile.model, guess(profile, background=True), profile.service_tier)
        if usd is None or usd > bound:
            told = "not known" if usd is None else f"estimated at ${usd:.2f}"
            raise LimitReached(
                f"The cost of this run is {told}, and max_cost_usd is {bound:g}. No request was made; raise "
                "max_cost_usd, or choose a lower effort."
            )

    async def _continued(self, follows: str | None) -> str | None:
        """Return the response that a follow-up goes on from. Raises `BadArgument`."""
        if follows is None:
            return None
        run_id = read_word("continue_from", follows)
        if run_id is None:
            raise BadArgument("continue_from is empty; pass the run_id of an answered run, or leave it out.")
        row = await self._find(run_id)
        if row is not None and row.status is None:
            await self._look(row)
            row = await self._find(run_id)
        if row is not None and row.status is None:
            raise BadArgument(
                f"continue_from is {run_id}, which is still running; wait for it with research_result, then ask."
            )
        if row is None or row.status not in WITH_ANSWER:
            raise BadArgument("continue_from is not the id of a run that has an answer; list the runs to see them.")
        if not row.key:
            raise BadArgument(
                "continue_from is a run that the API does not keep, so it cannot be followed up. Ask anew, and say in "
                "the question what it needs to know."
            )
        return row.key

    async def _begin(
        self,
        new: Row,
        body: JsonObject,
        profile: Profile,
        *,
        join: bool,
        most: int | None,
        fixed: AbstractSet[str] = frozenset(),
    ) -> str:
        """Begin a run and return its id, or, with `join`, that of one that goes on with the same request."""
        await trio.lowlevel.checkpoint_if_cancelled()
        over = {run_id for run_id, view in self._done.items() if not view.may_go_on}
        looked, here = False, set(self._here)
        while True:
            try:
                row = await self._use(lambda file: file.add(new, join=join, most=most, besides=over, here=here))
            except trio.Cancelled:  # a slow disk may write the row all the same, and nobody wants the run
                self._nursery.start_soon(self._withdraw, new)
                raise
            if row is None:
                await self._make_place(most or 0, looked=looked)
                looked = True
            elif row.id == new.id or await self._goes_on(row):
                break
            else:
                over.add(row.id)
        if row.id not in self._here and row.sent is None:  # also one that another process has not sent yet
            self._here[row.id] = begun = _Here(row, profile)
            self._nursery.start_soon(self._work, begun, body, fixed)
        return row.id

    async def _withdraw(self, row: Row) -> None:
        with suppress(RunsFileUnusable):
            # Unless another call has joined it meanwhile.
            now = self._clock()
            await self._use(lambda file: row.id in self._here or file.end(_unasked(row, now), unsent=True))

    async def _goes_on(self, row: Row) -> bool:
        """Tell whether a run that the file has as going on does, and nobody is about to cancel it."""
        if (here := self._here.get(row.id)) is not None:
            return here.done is None and not here.cancelling
        return (await self._look(row)).running

    async def _make_place(self, most: int, *, looked: bool) -> None:
        """Look at the runs that go on, one of which may have ended. Raises `LimitReached` where that was done."""
        rows = [row for row in await self._use(lambda file: file.going_on(self._account)) if row.tool == "research"]
        if not looked:
            await self._look_at([row for row in rows if row.created < self._clock() - _OLD])
        elif len(rows) >= most:
            ids = ", ".join(row.id for row in rows[:10])
            raise LimitReached(
                f"{len(rows)} runs are going on, and research.max_running (RESEARCH_MAX_RUNNING) allows {most}: {ids}. "
                "Wait for one with research_result, or cancel one with research_cancel, and ask again."
            )

    # The runs that this process sends

    @trio.lowlevel.enable_ki_protection  # Ctrl-C in one task would lose an answer; it strikes the caller's instead
    async def _work(self, here: _Here, body: JsonObject, fixed: AbstractSet[str]) -> None:
        run_id = here.row.id
        try:
            with here.life:
                try:
                    await self._ask(here, body, fixed)
                except Exception as error:  # other runs, and the server, go on
                    log.error("research: a run crashed with %s; this is a bug", type(error).__name__)  # noqa: TRY400
                    log.debug("research: traceback of the crash", exc_info=error)
                    await self._end(here.row, "failed", INTERNAL, maybe_paid=True)
        finally:
            del self._here[run_id]
            here.announce()  # whoever waits looks where it is now
            here.over.set()

    async def _ask(self, here: _Here, body: JsonObject, fixed: AbstractSet[str]) -> None:
        """Send a run and follow it to its end, or until it is left."""
        row = here.row
        with here.preparing:
            try:
                here.bill = await self._meter.admit(_call(row), here.profile)
            except LimitReached as error:
                here.done = await self._end(row, "failed", str(error), failure=error, unsent=True)
                return
            # Not within the moment in which a crash leaves open what was paid for; an error comes back when asking.
            with suppress(UpstreamError):
                await self._stored.api.prepare()
        if here.preparing.cancel_called:
            if here.done is None:
                await self._end(row, "failed", NEVER_ASKED, unsent=True)
            return
        here.tell(f"asking {row.model}")
        handle = here.handle = Handle(
            self._stored,
            body,
            Watcher(here.tell, on_send=partial(self._claim, here), bill=here.bill),
            seconds=row.may_take + LEAVING,
            fixed=fixed,
            on_news=here.changed,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep, here, handle)
            nursery.start_soon(self._watch_time, here, handle)
            await handle.live()
            nursery.cancel_scope.cancel(reason="the work has ended")
        with suppress(RunsFileUnusable):
            await self._write_news(here, handle)
        if here.done is None:
            here.done = await self._came_to(here, handle)

    async def _claim(self, here: _Here) -> None:
        """Have it in the file that the request is sent, right before it is. Raises `RunsFileUnusable`."""
        if here.handle is not None:
            await self._write_news(here, here.handle)  # that the request before was refused
        unsent, now = here.row, self._clock()
        here.row = replace(unsent, sent=now)  # also where this is cancelled, and a slow disk writes it all the same
        if here.done is not None or not await self._use(lambda file: file.claim(unsent, now)):
            here.row = unsent
            raise _WithdrawnError

    async def _keep(self, here: _Here, handle: Handle) -> None:
        """Write each news of a response at once, as often as it takes."""
        told = False
        while True:
            await here.dirty.wait()
            here.dirty = trio.Event()
            try:
                await self._write_news(here, handle)
                told = False
            except RunsFileUnusable as error:
                if not told:
                    log.warning("research: a run goes on, but cannot be kept: %s", error)
                told = True
                here.dirty.set()
                await trio.sleep(1)

    async def _write_news(self, here: _Here, handle: Handle) -> None:
        """Write what became of a request: its id, whether the response is kept, or that it was refused."""
        async with here.writing:
            sent = here.row.sent
            if sent is None:
                return
            new = replace(here.row, sent=sent if handle.sent else None, response_id=handle.id, kept=handle.kept)
            if new == here.row:
                return
            cancel_asked = await self._use(lambda file: file.keep(new, sent))
            here.row = new
            here.announce()
        if cancel_asked and new.key and here.done is None and not here.cancelling:
            self._nursery.start_soon(self._cancel_at_api, new)

    async def _watch_time(self, here: _Here, handle: Handle) -> None:
        """End a run that is not sent in time, and cancel one that takes too long."""
        begun = trio.current_time()
        sent: float | None = None
        while True:
            sent = (sent or trio.current_time()) if handle.sent else None
            end = begun + UNSENT_SECONDS if sent is None else sent + here.row.may_take
            with trio.move_on_at(end):
                await here.news.wait()
                continue
            if handle.sent == (sent is not None):
                break
        if handle.id is None or not handle.kept:
            here.late = handle.sent
            handle.stop()
        else:
            await self._cancel_at_api(here.row, late=True)

    async def _came_to(self, here: _Here, handle: Handle) -> RunView | None:
        """Return the end of a run whose work is over; None where its row tells that, now or later."""
        row, error = here.row, handle.failure
        if handle.found is not None:
            return await self._finish(row, handle.found)
        if isinstance(error, _WithdrawnError):
            # Another process may have sent it: its guess stands in the same row of the ledger until the end is known.
            is_sent = True
            with suppress(RunsFileUnusable):
                found = await self._find(row.id)
                is_sent = found is not None and found.sent is not None
            await self._meter.settle(_call(row), MAYBE_PAID if is_sent else UNSENT)
            return None
        if handle.sent and error is None and row.key and not here.late:
            return None  # it was left
        if error is not None and not isinstance(error, ResponsesMcpError):
            raise error
        if not handle.sent and row.response_id is None:
            return await self._end(row, "failed", str(error or NEVER_ASKED), failure=error)
        why = _late(row) if here.late else self._why(row, error)
        if here.late and not row.kept:
            why += " This API keeps nothing that could be taken up; it may cost something."
        if here.late:
            error = DeadlineExceeded(why, maybe_paid=True)
        return await self._end(row, "failed", why, failure=error, maybe_paid=True)

    def _why(self, row: Row, error: Exception | None) -> str:
        """Say why a run failed that may have been paid for."""
        if row.key:
            return (
                GONE if error is not None and GONE in str(error) else f"{error} It may have an answer: {LATER} later."
            )
        cause = f" ({error})" if error is not None else ""
        what = "The request was sent, and no id came back"
        if not row.kept:
            what = "The connection or the server was lost, and this API keeps nothing that could be taken up"
        return f"{what}{cause}. It may have been paid for, so it was not repeated; ask again if that is worth it."

    # How far a run is

    async def result(
        self, run_id: str, *, wait_seconds: float = 0.0, on_phase: Callable[[str], None] | None = None
    ) -> RunView:
        """Return how a run ended, after waiting for that `wait_seconds` at most; then, how far it is.

        Cancelling this, or its wait coming to an end, leaves the run alone. `on_phase` is told what is going on, in
        words for a person. Raises `BadArgument` for an id that is not known, and `UpstreamError` where a run has ended
        and its answer cannot be had now.
        """
        end = trio.current_time() + read_seconds("wait_seconds", wait_seconds)
        self._ready()
        _require_id(run_id)
        await trio.lowlevel.checkpoint()  # a caller that asks again and again would stop all else, the run too
        told, pause = None, _FIRST_PAUSE
        await self._heed_others(run_id)
        while True:
            here, known = self._here.get(run_id), self._done.get(run_id)
            if here is not None:
                view = self._view(here)
            elif known is not None and not known.may_go_on:
                view = known
            else:
                view = await self._look(await self._row_of(run_id))
            if on_phase is not None and view.running and view.phase != told:
                told = view.phase
                on_phase(told)
            if view.answer is not None and (masked := self._masked.get(run_id)) is not None:
                view = replace(view, answer=replace(view.answer, masked=masked))
            if not view.running or trio.current_time() >= end:
                return view
            if here is not None:
                with trio.move_on_at(end):
                    await here.news.wait()
            else:
                await trio.sleep_until(min(end, trio.current_time() + pause))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            self._ready()  # it may have been closed meanwhile

    async def events(self, run_id: str) -> AsyncGenerator[RunView]:  # noqa: ASYNC900  # it yields within no scope
        """Yield how far a run is, each time that there is news, and at last how it ended.

        Close it (`contextlib.aclosing`) when leaving it early. Raises what `result` raises.
        """
        last = None
        while last is None or last.running:
            view = await self.result(run_id)
            if last is None or (view.status, view.phase, view.stage) != (last.status, last.phase, last.stage):
                last = view
                yield view
            elif (here := self._here.get(run_id)) is not None:
                await here.news.wait()
            else:
                await trio.sleep(1)

    async def list(self, limit: int = _USUALLY_LISTED) -> Sequence[JsonObject]:
        """Return the last runs, the newest first: `run_id`, `status`, `seconds_ago`, `model`.

        Where they are known, `label`, `effort`, `usage` and `cost`.
        """
        self._ready()
        most = read_number("limit", limit, least=1, most=_MOST_LISTED) or _USUALLY_LISTED
        with trio.move_on_after(_FIRST_LOOKS):
            await self._first_look.wait()
        rows = await self._use(lambda file: file.recent(self._account, most))
        now = self._clock()
        shown: list[JsonObject] = []
        for row in filter(self._is_kept_here, rows):
            here, view = self._here.get(row.id), self._done.get(row.id)
            if here is not None:
                view = self._view(here)
            elif view is None or view.may_go_on:
                view = view_of_row(row, now)
            status = row.status if row.status in WITH_ANSWER and row.key else view.status
            entry: JsonObject = {
                "run_id": row.id,
                "status": status,
                "seconds_ago": round(max(0.0, now - row.created), 1),
                "model": row.model,
            }
            named = {"label": row.label, "effort": row.effort}
            shown.append(entry | {name: each for name, each in named.items() if each} | used(row.usage or view.usage))
        return shown

    async def _heed_others(self, run_id: str) -> None:
        """Have a run of this process be over that another process has seen end."""
        here = self._here.get(run_id)
        if here is None or here.done is not None or here.row.sent is None:
            return
        with suppress(RunsFileUnusable):
            row = await self._find(run_id)
            if row is not None and (row.status in WITH_ANSWER or row.confirmed):
                with suppress(UpstreamError):
                    self._over(await self._look(row))

    def _view(self, here: _Here) -> RunView:
        """Return how far a run is that this process sends."""
        if here.done is not None:
            return here.done
        searches = 0 if here.handle is None else here.handle.searches
        going_on = view_of_row(replace(here.row, status=None), self._clock())
        return replace(going_on, phase=here.phase, searches=searches)

    async def _look(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, from its row and one look at the API.

        What the look finds is written. Raises `UpstreamError` where a run has ended and its answer cannot be had now.
        """
        now, known = self._clock(), self._done.get(row.id)
        if known is not None and not known.may_go_on:
            if row.status is None:  # it could not be written when it ended
                reason = unquoted(known.error, known.failure)
                row = replace(row, status=known.status, reason=reason, usage=known.usage, ended=now)
                await self._write_end(replace(row, maybe_paid=known.maybe_paid, confirmed=known.confirmed))
            return known
        if row.confirmed:
            known = None  # another process has found how it ended
        if not row.key or (row.status is not None and row.status not in WITH_ANSWER and not row.may_go_on):
            return await self._unseen(row, known or view_of_row(row, now))
        if row.status is None and row.cancel_asked:
            return await self._cancel_at_api(row)
        try:
            found = await self._stored.look_up(row.key, seconds=_LOOK)
        except UpstreamError as error:
            return await self._unread(row, error, known or view_of_row(row, now))
        if _has_ended(found):
            return await self._finish(row, found)
        if row.status in WITH_ANSWER:
            raise UpstreamError("The run has ended, and the API does not show its answer now; ask for it later.")
        late = now > (row.sent or row.created) + row.may_take
        if row.status is not None and (late or row.status == "cancelled"):
            return known or view_of_row(row, now)
        if row.status is not None:
            with suppress(RunsFileUnusable):
                await self._use(lambda file: file.reopen(row.id))
            row = replace(row, status=None, reason=None, ended=None, maybe_paid=False, cancel_asked=False)
        if late:
            return await self._cancel_at_api(row, late=True)
        return view_of_row(row, now, found)

    async def _unseen(self, row: Row, view: RunView) -> RunView:
        """Return how far a run is at which nobody can look: it is not sent, has no id, or has ended for good."""
        now = self._clock()
        if row.status is not None:
            return view
        if row.sent is None:
            waits = now < row.created + UNSENT_SECONDS + _LONGEST_PAUSE
            return view if waits else await self._end(row, "failed", NEVER_ASKED, unsent=True)
        if now < row.sent + (ID_SECONDS if row.kept else row.may_take):
            return view
        if row.cancel_asked:
            return await self._end(row, "cancelled", _UNTOLD, maybe_paid=True)
        return await self._end(row, "failed", self._why(row, None), maybe_paid=True)

    async def _unread(self, row: Row, error: UpstreamError, view: RunView) -> RunView:
        """Return what a look that failed means: the run goes on, or is lost. Raises the error of one that has ended."""
        now, sent = self._clock(), row.sent or row.created
        gone = error.status == HTTPStatus.NOT_FOUND
        if row.status in WITH_ANSWER:
            if gone:
                error.message = (
                    f"The run has ended, and the API no longer has its answer. {KEPT_SO_LONG} Asking again pays again."
                )
            raise error
        if row.status is not None:
            return view
        if gone and now > sent + ID_SECONDS:
            return await self._end(row, "failed", GONE, maybe_paid=True)
        if now > sent + row.may_take:
            return await self._end(row, "failed", f"{_late(row)} {error.message}", failure=error, maybe_paid=True)
        return replace(view, phase=f"the run cannot be looked up: {error.message}"[:_LONGEST_PHASE])

    # Cancelling

    async def cancel(self, run_id: str, *, on_phase: Callable[[str], None] | None = None) -> RunView:
        """Cancel a run, whichever process has sent it, and return how it ended; one that has ended stays so.

        Where the API may still work on it, not having confirmed a cancel, it is told again. Takes a minute at most,
        where the API does not answer. Cancelling this leaves the cancel on its way. `on_phase` is told what is going
        on. Raises as `result` does.
        """
        self._ready()
        _require_id(run_id)
        if on_phase is not None:
            on_phase("cancelling")
        await trio.lowlevel.checkpoint_if_cancelled()
        over, scope = trio.Event(), trio.CancelScope(shield=True)
        views: list[RunView] = []
        failures: list[ResponsesMcpError] = []

        async def cancel() -> None:
            try:
                with scope:
                    views.append(await self._cancel(run_id))
            except ResponsesMcpError as error:
                failures.append(error)  # raised where it is waited for
            finally:
                del self._cancels[scope]
                over.set()

        self._cancels[scope] = over
        self._nursery.start_soon(cancel)
        await over.wait()
        if failures:
            raise failures.pop()
        if not views:
            raise ResearchClosed(_CLOSED)
        return views[0]

    async def _cancel(self, run_id: str) -> RunView:
        here = self._here.get(run_id)
        if here is not None and here.done is not None:
            here = None
        row = here.row if here is not None else await self._row_of(run_id)
        if row.status is not None and not row.may_go_on:
            return await self.result(run_id)
        if here is not None:
            here.cancelling = True
        for _ in range(2):  # once more where its request is refused meanwhile
            if row.status is not None or row.key:
                break
            here = self._here.get(run_id)
            if here is None or here.handle is None or not here.handle.sent:
                view = await self._end(row, "cancelled", CANCELLED, confirmed=True, unsent=True)
                if not view.running:
                    return view
            try:
                await self._use(lambda file: file.ask_cancel(run_id))
            except RunsFileUnusable:
                if here is None:
                    raise
            row = await self._with_id(row)
            if row.sent is not None:
                break
        if row.key:
            return await self._cancel_at_api(row)
        if (here := self._here.get(run_id)) is None or here.done is not None:
            return await self.result(run_id)
        view = await self._end(row, "cancelled", _UNTOLD if row.kept else _CLOSED_ONLY, maybe_paid=True)
        with trio.move_on_after(LEAVING):
            await here.over.wait()
        return view

    async def _with_id(self, row: Row) -> Row:
        """Wait a few seconds for the id of a run that was sent, and return its row."""
        with trio.move_on_after(_WITHDRAW):
            while row.status is None and row.kept and not row.key:
                here = self._here.get(row.id)
                if here is not None and here.done is not None:
                    break
                if here is not None and here.handle is not None and here.handle.id is not None:
                    row = replace(here.row, response_id=here.handle.id)
                elif here is not None and here.handle is not None and here.handle.sent:
                    await here.news.wait()
                else:  # another process has sent it, or it was refused
                    await trio.sleep(0.05)
                    row = await self._row_of(row.id)
                    if row.sent is None:
                        break
        return row

    async def _cancel_at_api(self, row: Row, *, late: bool = False) -> RunView:
        """Tell the API to stop a response, and return how the run ended."""
        if (here := self._here.get(row.id)) is not None:
            here.tell("cancelling")
        found, refused, until = JsonObject(), False, trio.current_time() + CANCELS_FOR
        while not (_has_ended(found) or refused or trio.current_time() > until):
            if found:
                await trio.sleep(1)  # the cancel was taken, and the response goes on
            try:
                found = await self._stored.cancel(row.key, seconds=_CANCEL, policy=CANCEL_FOR_SURE)
            except UpstreamError as error:
                log.debug("research: a cancel got no answer: %s", error)
                refused = True
            if not _has_ended(found) or (found.get("status") in WITH_ANSWER and not found.get("output")):
                with suppress(UpstreamError):
                    found = await self._stored.look_up(row.key, seconds=_WITHDRAW)
        if here is not None and here.handle is not None:
            found = here.handle.with_last(found if _has_ended(found) else {})
        why = _late(row) if late else CANCELLED
        if _has_ended(found):
            return await self._finish(row, found, late=late)
        view = await self._end(
            row,
            "failed" if late else "cancelled",
            f"{why}{_NOT_CONFIRMED}",
            failure=DeadlineExceeded(why) if late else None,
            maybe_paid=True,
        )
        unread = None if here is None or here.handle is None else here.handle.unread
        if unread is None:
            return view
        return self._over(replace(view, error=f"{view.error} The last looks at it failed: {unread.message}"))

    # Ends

    async def _finish(self, row: Row, response: JsonObject, *, late: bool | None = None) -> RunView:
        """Write how a run ended, as its Response says, in the ledger first, and return it."""
        here = self._here.get(row.id)
        usage = self._meter.usage_of(row.model, response)
        if here is not None and here.bill is not None:
            usage = usage._replace(attempts=max(here.bill.attempts, 1))
        if row.status not in WITH_ANSWER or row.usage is None:
            row = replace(row, usage=usage.as_json())
        policy, zone = self._settings.policy, self._settings.locale.time_zone
        view = view_of_end(
            row,
            response,
            max_citations=policy.max_citations,
            time_zone=zone,
            redact=self.redact.known,
            blocked=self._blocked(row),
        )
        if late is None:
            late = (row.reason or "").startswith(_late(row))
        if late and view.status == "cancelled":
            view = replace(view, status="failed", error=_late(row))
        ended = row.ended if row.status in WITH_ANSWER and row.ended else self._ended_at(row, response)
        if row.status not in WITH_ANSWER:
            await self._meter.settle(_call(row), usage, response_id=row.key or None)
            reason = unquoted(view.error, view.failure)
            row = replace(row, status=view.status, reason=reason, maybe_paid=view.maybe_paid)
            row = replace(row, confirmed=view.confirmed, ended=ended)
            if not await self._write_end(row):  # all who read it are told what the first has written
                with suppress(RunsFileUnusable):
                    row = await self._find(row.id) or row
                view, ended = replace(view, usage=row.usage), row.ended or ended
                if view.answer is not None and row.usage is not None:
                    view = replace(view, answer=replace(view.answer, usage=usage_from(row.usage)))
        elif view.status not in WITH_ANSWER:
            raise UpstreamError("The run has ended, and the API does not show its answer now; ask for it later.")
        if view.status == "failed":
            failure = DeadlineExceeded(view.error or "") if late else view.failure
            view = replace(view, failure=_failure(failure, view))
        return self._over(replace(view, seconds=round(max(0.0, ended - row.created), 1)))

    async def _end(
        self,
        row: Row,
        status: str,
        reason: str,
        *,
        failure: Exception | None = None,
        maybe_paid: bool = False,
        confirmed: bool = False,
        unsent: bool = False,
    ) -> RunView:
        """Write how a run ended of which the API says nothing, and return it.

        With `unsent`, one that another process has sent goes on, and is returned as it is.
        """
        here = self._here.get(row.id)
        bill = here.bill.usage if here is not None and here.bill is not None else UNSENT
        usage = bill if bill.attempts else MAYBE_PAID if maybe_paid else UNSENT
        row = replace(row, status=status, reason=reason, maybe_paid=maybe_paid, confirmed=confirmed)
        row = replace(row, ended=self._clock(), usage=usage.as_json() if usage.attempts else None)
        view = view_of_row(row, 0.0)
        if isinstance(failure, ResponsesMcpError) and status == "failed":
            view = replace(view, failure=_failure(failure, view))
        if not unsent:  # nothing is to be settled for one that was sent after all
            await self._meter.settle(_call(row), usage, response_id=row.key or None)
        if await self._write_end(replace(row, reason=unquoted(reason, failure)), unsent=unsent):
            if unsent:
                await self._meter.settle(_call(row), usage)
            return self._over(view)
        with suppress(RunsFileUnusable):
            if (found := await self._find(row.id)) is not None:  # another process has sent it, or seen its end
                view = await self._look(found)
        return view if view.running else self._over(view)

    async def _write_end(self, row: Row, *, unsent: bool = False) -> bool:
        """Write how a run ended; false where another process was quicker."""
        try:
            return await self._use(lambda file: file.end(row, unsent=unsent))
        except RunsFileUnusable as error:  # the next look finds it again
            if unsent and row.id not in self._here:
                raise
            log.warning("research: the end of a run cannot be written: %s", error)
            return True

    def _over(self, view: RunView) -> RunView:
        """Have all who wait here know how a run ended, and stop its work."""
        self._done[view.run_id] = view
        if (here := self._here.get(view.run_id)) is not None:
            here.done = view
            here.announce()
            here.stop()
        return view

    def _ended_at(self, row: Row, response: JsonObject) -> float:
        """Return when a run ended: as the API tells it, in whole seconds of its clock, where nobody was there."""
        told, now = response.get("completed_at"), self._clock()
        if isinstance(told, int | float) and row.created <= told < now - _UNWATCHED:
            return float(told)
        return now

    def _blocked(self, row: Row) -> Sequence[str]:
        """Return the domains that a reader of a run does not want cited: those of its profile here."""
        profiles = self._settings.model_profiles
        name = PROFILES.get(row.effort, row.tool)
        profile = profiles.get(name) or profiles.get("answer")
        return () if profile is None else bare_hosts(profile.blocked_domains)

    # The file

    def _ready(self) -> None:
        """See to it that runs can be asked for, and that the first use looks at those that go on."""
        require_trio()
        if self._closed:
            raise ResearchClosed(_CLOSED)
        if self._settings.problems:
            raise ConfigError(self._settings.problems)
        if self._file is None:
            raise ConfigError(
                [
                    "research.state_dir is not set; set it to a folder of yours, or load settings with "
                    'toolsets="answer,research", which choose one where you have a home.'
                ]
            )
        _ = self._account  # which may not be there to be had
        if not self._is_used:
            self._is_used = True
            self._nursery.start_soon(self._look_first)

    async def _look_first(self) -> None:
        """Look once at the runs that go on, and forget old ones."""
        TRACE.set({})  # they are of other calls than the one that came first
        try:
            await self._use(lambda file: file.forget(self._settings.research.keep_days))
            await self._look_at(await self._use(lambda file: file.going_on(self._account)))
        except RunsFileUnusable as error:
            log.debug("research: %s", error)
        finally:
            self._first_look.set()

    async def _look_at(self, rows: Sequence[Row]) -> None:
        async def look(row: Row) -> None:
            with suppress(ResponsesMcpError):
                await self._look(row)

        async with trio.open_nursery() as looks:
            for row in rows:
                if row.id not in self._here:
                    looks.start_soon(look, row)

    async def _use(self, work: Callable[[RunsFile], T]) -> T:
        """Do something with the file, in a thread; cancelling this leaves it to go on. Raises `RunsFileUnusable`."""
        file = self._file
        assert file is not None  # noqa: S101  # by _ready
        try:
            with trio.move_on_after(_FILE):
                done: T = await self._in_thread(lambda: work(file))
                return done
        except RuntimeError as error:  # "can't start new thread"
            raise RunsFileUnusable(f"The file of runs cannot be used for now: {error}.") from error
        raise RunsFileUnusable("The file of runs did not answer in time; check the disk that research.state_dir is on.")

    def _is_kept_here(self, row: Row) -> bool:
        return row.status is None or row.created >= self._clock() - self._settings.research.keep_days * 86_400

    async def _find(self, run_id: str) -> Row | None:
        if not (len(run_id) <= _LONGEST_ID and run_id.isascii()):
            return None
        row = await self._use(lambda file: file.get(run_id, self._account))
        return row if row is not None and self._is_kept_here(row) else None

    async def _row_of(self, run_id: str) -> Row:
        if (row := await self._find(run_id)) is None:
            days = self._settings.research.keep_days
            raise BadArgument(f"There is no run with that id; list the runs to see those of the last {days} days.")
        return row

    @cached_property
    def _account(self) -> str:
        """A name for where is asked with which key, from which neither can be told. Raises `AuthenticationFailed`."""
        headers = credential_headers(self._settings.openai)
        said = "\0".join([self._settings.openai.base_url, *(f"{name}:{headers[name]}" for name in sorted(headers))])
        return hashlib.sha256(b"openai-responses-mcp\0" + said.encode()).hexdigest()[:32]

    async def aclose(self) -> None:
        """Leave all runs to the API: those that were not sent end, and ids may come, which takes a second at most."""
        self._closed = True
        try:
            for here in list(self._here.values()):
                here.leave()
            with trio.move_on_after(1.5 * LEAVING, shield=True):  # ends are written behind the second for ids
                while events := [*self._cancels.values(), *(here.over for here in self._here.values())]:
                    await events[0].wait()
        finally:  # also after a second Ctrl-C: nothing else ends their tasks
            for scope in (*self._cancels, *(here.life for here in self._here.values())):
                scope.cancel(reason="research is closed")


class _Last(dict[str, T]):
    """Something of each of the last runs, `most` of them; that of a run before those is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, run_id: str, value: T) -> None:
        super().__setitem__(run_id, value)
        if len(self) > self._most:
            del self[next(iter(self))]


def _call(row: Row) -> Call:
    return Call(row.id, row.created, row.tool, row.model, row.client, UNSENT_SECONDS + row.may_take)


def _unasked(row: Row, now: float) -> Row:
    """Return the row of a run that was cancelled before it was sent."""
    return replace(row, status="cancelled", reason=CANCELLED, confirmed=True, ended=now)


def _has_ended(response: JsonObject) -> bool:
    """Tell whether a look shows the end of a response; one that names no status has its answer."""
    return response.get("status", "completed" if response.get("output") else None) in ENDED


def _late(row: Row) -> str:
    return (
        f"It took longer than {row.may_take:g} s and was cancelled; raise research.timeout_ms "
        "(RESEARCH_TIMEOUT_MS, in milliseconds), or ask for less."
    )


def _failure(error: ResponsesMcpError | None, view: RunView) -> ResponsesMcpError | None:
    """Return why a run failed, by its type. Its error is of one request, and the run is more than that."""
    if not isinstance(error, UpstreamError):
        return error
    failure = copy(error)
    failure.maybe_paid = view.maybe_paid
    failure.retryable = failure.retryable and not view.maybe_paid
    failure.usage = view.usage
    return failure


def unquoted(reason: str | None, error: Exception | None) -> str | None:
    """Return why a run failed without the words of the API, which may repeat the question: it is written down."""
    if reason is None or not isinstance(error, UpstreamError) or error.unquoted is None:
        return reason
    return reason.replace(error.message, error.unquoted)


def _require_id(run_id: object) -> None:
    if not isinstance(run_id, str) or not run_id.strip():
        what = "missing" if run_id is None or isinstance(run_id, str) else "not a text"
        raise BadArgument(f"run_id is {what}; pass the one that a run was begun with.")


async def answer_by_run(
    research: Research,
    query: str,
    body: JsonObject,
    profile: Profile,
    caller: Caller,
    *,
    seconds: float,
    on_phase: Callable[[str], None] | None = None,
) -> Answer | None:
    """Do what `Research.answer` does, and return the answer, or, after `seconds`, one that says which run goes on.

    None where no run can be begun. Raises `UpstreamError` for a run that has ended without an answer, and what
    `Research.answer` raises.
    """
    try:
        view = await research.answer(query, body, profile, caller, seconds=seconds, on_phase=on_phase)
    except RunsFileUnusable as error:
        log.warning("research: a call cannot be handed off: %s", error)
        return None
    if view.running:
        text = (
            f"There is no answer yet: this takes longer than {seconds:g} s. It goes on as run {view.run_id}; call "
            f"research_result with run_id {view.run_id} for the answer. Asking again would pay again."
        )
        return Answer(text, used_search=False, citations=(), model=view.model, run_id=view.run_id)
    return answer_in(view)


def answer_in(view: RunView) -> Answer:
    """Return the answer of a run that has ended. Raises `UpstreamError` for one that has none."""
    if view.answer is not None:
        return view.answer
    told = view.error or NEVER_ASKED
    if LATER in told:
        told = f"{told} Its run is {view.run_id}; research_result asks for it."
    failure = UpstreamError(told, maybe_paid=view.maybe_paid)
    failure.usage = view.usage
    raise failure


def open_research(
    settings: Settings,
    *,
    api: ResponsesApi | None = None,
    meter: Meter | None = None,
    in_thread: InThread | None = None,
    clock: Callable[[], float] = time.time,
) -> AbstractAsyncContextManager[Research]:
    """Open a way to have questions researched, whose runs go on at the API behind the block.

    Args:
      settings: read by `load_settings`, or made by hand with a `research.state_dir`. Nothing is read, written or
        connected before the first use.
      api: what asks the API, closed with the block; without it, one of its own.
      meter: keeps the limits, for all that belongs to one session; without it, one of its own.
      in_thread: runs a function that blocks, and waits for it; without it, in a worker thread.
      clock: seconds since 1970.

    Returns:
      A context manager that gives a `Research`. Any number of tasks may use it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. For the rest see `Research`. An exception of the block
      comes out as it is, not in a group.

    Leaving the block leaves the runs to the API: an id that has not come is waited for, a second at most. A run that
    was not sent is not sent any more, and cost nothing.
    """
    return _opened(settings, api, meter, in_thread, clock)


@asynccontextmanager
async def _opened(
    settings: Settings,
    api: ResponsesApi | None,
    meter: Meter | None,
    in_thread: InThread | None,
    clock: Callable[[], float],
) -> AsyncGenerator[Research]:
    require_trio()
    await trio.lowlevel.checkpoint()
    asking = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
    counting = meter or Meter(settings)
    # One use of the file at a time, those that were left behind too: so the last one, at the end, closes the file.
    limiter = trio.CapacityLimiter(1)
    elsewhere = in_thread or partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=limiter)
    failures: list[BaseException] = []  # of the block
    try:
        try:
            async with trio.open_nursery() as nursery:
                research = Research(settings, asking, nursery, meter=counting, in_thread=elsewhere, clock=clock)
                try:
                    try:
                        yield research
                    finally:
                        await research.aclose()  # noqa: ASYNC102  # shielded, and bounded, within
                except trio.Cancelled:
                    raise
                except BaseException as error:  # noqa: BLE001
                    failures.append(error)  # raised outside the nursery, so that it is in no group
                nursery.cancel_scope.cancel(reason="research is closed")
        finally:  # also beside what the nursery raises: a cancel from without, or a bug
            if failures:
                raise failures[0]
    finally:
        failures.clear()  # its traceback holds this frame
        with trio.move_on_after(LEAVING, shield=True):
            await asking.aclose()
            await counting.aclose()
