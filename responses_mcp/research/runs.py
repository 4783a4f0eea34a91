"""Research for Trio programs: questions that take minutes, each sent once, in runs that outlive their callers.

    async with open_research(settings) as research:
        run_id = await research.start("What changed in the tax law of 2026?", effort="deep")
        view = await research.result(run_id, wait_seconds=600)

The API holds a run, and a row in a file has its id, so nobody owns it (`research.rows`). This process follows the runs
that it has sent, and looks up any other when it is asked. Waiting for a run can be cancelled without touching the run.
"""

from __future__ import annotations

import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Final, Unpack

import trio

from responses_mcp.errors import (
    BadArgument,
    ConfigError,
    DeadlineExceeded,
    LimitReached,
    ResearchClosed,
    ResponsesMcpError,
)
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.research.inquiry import Narrowing, checked, digest_of, profile_of, run_body
from responses_mcp.research.rows import (
    LONGEST_PAUSE,
    UNSENT_SECONDS,
    InThread,
    LastOf,
    Own,
    Rows,
    call_of,
    why_lost,
)
from responses_mcp.research.runs_file import SAME_REQUEST, UNSENT, Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import CANCELLED, NEVER_ASKED, RunView, day_of, too_late, used, view_of_row
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import LEAVING, WITH_ANSWER, Handle, has_ended
from responses_mcp.responses_api.request.arguments import read_flag, read_number, read_query, read_seconds, read_word
from responses_mcp.responses_api.watcher import Watcher
from responses_mcp.secrets import OutgoingText
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.trace_context import TRACE
from responses_mcp.under_trio import alone, require_trio
from responses_mcp.usage.bill import MAYBE_PAID
from responses_mcp.usage.bill import UNSENT as UNSENT_USAGE
from responses_mcp.usage.meter import Caller, Meter
from responses_mcp.usage.models import PriceList, guess

__all__ = ["Research", "RunView", "open_research"]

log = logging.getLogger(__name__)

_FIRST_PAUSE: Final = 0.5  # seconds between two looks, growing
_LOOKS: Final = 3.0  # seconds for which a list waits for the looks at runs that go on
_LONGEST_LABEL: Final = 200  # characters
_MOST_LISTED: Final = 100
_OLD: Final = 60.0  # seconds, after which a run may have ended without anybody here knowing
_USUALLY_LISTED: Final = 20
_CLOSED: Final = "This Research is closed; use it within the block of open_research."
INTERNAL: Final = "Something went wrong within the server; see its debug log. It may have been paid for."


class _WithdrawnError(Exception):
    """The run was cancelled, or sent by another process, before its request was sent here."""


class Research:
    """Runs of one account: begun here, or found in the folder of runs. `open_research` gives one.

    Each method may raise `ConfigError` and `RunsFileUnusable`.
    """

    _tasks: trio.Nursery  # what goes on when its caller has left: runs, and cancels; `hold` opens it

    def __init__(self, settings: Settings, rows: Rows, meter: Meter, nursery: trio.Nursery) -> None:
        self.redact = rows.stored.api.redact
        self.outgoing = OutgoingText(settings.privacy.outgoing_secrets, settings.openai.secrets)
        self._settings = settings
        self._rows = rows
        self._meter = meter
        self._nursery = nursery
        self._bound = trio.CancelScope(shield=True)  # of `_tasks`
        self._closing = trio.Event()
        self._masked = LastOf[Mapping[str, int]](_MOST_LISTED)  # what was, in questions of this process
        self._looks: trio.Event | None = None  # the end of the last looks at all runs that go on

    # Beginning

    async def start(
        self,
        query: str,
        *,
        continue_from: str | None = None,
        max_cost_usd: float | None = None,
        label: str | None = None,
        fresh: bool = False,
        client: str | None = None,
        **narrowing: Unpack[Narrowing],
    ) -> str:
        """Begin a run and return its id, or, unless `fresh`, that of one that goes on with the very same request.

        `continue_from` is the id of a run that has an answer, which the question follows up. A run whose estimate is
        above `max_cost_usd` is refused. `label` names the run in the list. `client` is for whom it is asked, as the
        ledger has it. For the rest see `Narrowing`. Raises `BadArgument` for what cannot be asked, and `LimitReached`
        where too many runs go on.
        """
        sent = self.outgoing.question(read_query(query))
        join = not read_flag("fresh", fresh)
        inquiry = checked(sent.text, known_stores=self._settings.research.stores, **narrowing)
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
            build(today=day_of(new.created, zone)),
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
        if self._rows.file is None:
            raise RunsFileUnusable("research.state_dir is not set")
        self._ready()
        row = self._row(body, profile, caller)
        run_id = await self._begin(row, body, profile, join=False, most=None)
        try:
            view = await self.result(run_id, wait_seconds=seconds, on_phase=on_phase)
        except trio.Cancelled:
            with trio.move_on_after(LEAVING, shield=True), suppress(ResponsesMcpError):
                await self.cancel(run_id)
            raise
        except RunsFileUnusable as error:  # of a run that was sent
            log.warning("research: a run cannot be looked at for now: %s", error)
            return replace(view_of_row(row, row.created), phase="unknown")
        if view.failure is not None and not view.maybe_paid:
            raise view.failure
        return view

    def _row(self, body: JsonObject, profile: Profile, caller: Caller) -> Row:
        return Row(
            id=f"run_{secrets.token_hex(8)}",
            account=self._rows.account,
            digest=digest_of(body),
            model=profile.model,
            created=self._rows.clock(),
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
        prices = PriceList(self._settings.prices)
        usd = prices.cost(profile.model, guess(profile, background=True))
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
        unknown = BadArgument("continue_from is not the id of a run that has an answer; list the runs to see them.")
        try:
            row = await self._rows.find(run_id)
            if row.status is None and not (await self._rows.look(row)).running:
                row = await self._rows.find(run_id)
        except BadArgument as error:
            raise unknown from error
        if row.status is None:
            raise BadArgument(
                f"continue_from is {run_id}, which is still running; wait for it with research_result, then ask."
            )
        if row.status not in WITH_ANSWER:
            raise unknown
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
        rows, looked = self._rows, False
        while True:
            besides, here = set(rows.cancelling), set(rows.own)
            add = partial(RunsFile.add, row=new, join=join, most=most, besides=besides, here=here)
            try:
                row = await rows.use(add)
            except trio.Cancelled:  # a slow disk may write the row all the same, and nobody wants the run
                self._nursery.start_soon(self._withdraw, new)
                raise
            if row is None:
                await self._make_place(most or 0, looked=looked)
                looked = True
            elif row.id == new.id or await self._goes_on(row):
                break
        self._ready()  # it may have been closed meanwhile
        if row.id not in rows.own and row.sent is None:  # also one that another process has not sent yet
            watcher = Watcher(on_send=lambda: self._claim(own))
            handle = Handle(rows.stored, body, watcher, seconds=row.may_take + LEAVING, fixed=fixed)
            own = Own(row, handle, began=trio.current_time() - max(0.0, rows.clock() - row.created))
            rows.own[row.id] = own
            self._tasks.start_soon(self._work, own, profile)
        return row.id

    async def _goes_on(self, row: Row) -> bool:
        """Tell whether a run that the file has as going on does, and nobody is about to cancel it."""
        return (await self._rows.look(await self._rows.find(row.id))).running and row.id not in self._rows.cancelling

    async def _make_place(self, most: int, *, looked: bool) -> None:
        """Look at the runs that go on, one of which may have ended. Raises `LimitReached` where that was done."""
        rows = await self._rows.use(lambda file: file.going_on(self._rows.account))
        rows = [row for row in rows if row.tool == "research"]
        if not looked:
            await self._look_at([row for row in rows if row.created < self._rows.clock() - _OLD])
        elif len(rows) >= most:
            ids = ", ".join(row.id for row in rows[:10])
            raise LimitReached(
                f"{len(rows)} runs are going on, and research.max_running (RESEARCH_MAX_RUNNING) allows {most}: {ids}. "
                "Wait for one with research_result, or cancel one with research_cancel, and ask again."
            )

    async def _withdraw(self, row: Row) -> None:
        with suppress(RunsFileUnusable):
            end: JsonObject = {"status": "cancelled", "reason": CANCELLED, "confirmed": True, "ended": row.created}
            # Unless another call has joined it meanwhile.
            await self._rows.use(lambda file: row.id in self._rows.own or file.change(row, UNSENT, **end))

    # The runs that this process sends

    @trio.lowlevel.enable_ki_protection  # Ctrl-C in one task would lose an answer; it strikes the caller's instead
    async def _work(self, own: Own, profile: Profile) -> None:
        """Send a run and follow it to its end, or until it is left."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._attend, own)
                await own.handle.live(partial(self._meter.admit, call_of(own.written), profile))
                nursery.cancel_scope.cancel(reason="the work has ended")
            with suppress(RunsFileUnusable):
                await self._write_news(own)
            await self._come_to(own)
        except Exception as error:  # other runs, and the server, go on
            log.error("research: a run crashed with %s; this is a bug", type(error).__name__)  # noqa: TRY400
            log.debug("research: traceback of the crash", exc_info=error)
            await self._rows.end(own.written, "failed", INTERNAL, maybe_paid=True)
        finally:
            del self._rows.own[own.written.id]
            own.handle.stop()  # whoever waits looks where the run is now

    async def _claim(self, own: Own) -> None:
        """Have it in the file that the request is sent, right before it is. Raises `RunsFileUnusable`."""
        await self._write_news(own)  # that the request before was refused
        async with own.writing:  # so that nobody takes the request for one that was refused
            unsent, now = own.written, self._rows.clock()
            own.written = replace(unsent, sent=now)  # also where this is cancelled, and a slow disk writes it
            only = f"{UNSENT} AND NOT cancel_asked"
            if not await self._rows.use(lambda file: file.change(unsent, only, sent=now)):
                own.written = unsent
                raise _WithdrawnError

    async def _attend(self, own: Own) -> None:
        """Write each news of a run, as often as it takes; end it where it is not sent in time, or takes too long."""
        handle, begun, was_told = own.handle, trio.current_time(), False
        sent: float | None = None
        while True:
            news, again = handle.news, math.inf
            try:
                await self._write_news(own)
                was_told = False
            except RunsFileUnusable as error:
                if not was_told:
                    log.warning("research: a run goes on, but cannot be kept: %s", error)
                was_told, again = True, trio.current_time() + 1
            sent = (sent or trio.current_time()) if handle.sent else None
            end = begun + UNSENT_SECONDS if sent is None else sent + own.written.may_take
            with trio.move_on_at(min(end, again)):
                await news.wait()
            if trio.current_time() >= end and handle.sent == (sent is not None):
                break
        if handle.id is None:
            handle.stop(DeadlineExceeded(too_late(own.row), maybe_paid=True) if handle.sent else None)
        else:
            await self._rows.cancel_at_api(own.row)

    async def _write_news(self, own: Own) -> None:
        """Write what became of a request: its id, whether the response is kept, or that it was refused."""
        rows = self._rows
        async with own.writing:
            old, new = own.written, own.row
            if old.sent is None or new == old:
                return
            news: JsonObject = {"sent": new.sent, "response_id": new.response_id, "kept": new.kept}

            def write(file: RunsFile) -> Row | None:
                file.change(old, SAME_REQUEST, **news)
                return file.get(new.id, new.account)

            found = await rows.use(write)
            own.written = new
        if new.key and found is not None and found.cancel_asked and new.id not in rows.cancelling:
            rows.cancelling.add(new.id)
            self.begin_cancel(new.id)

    async def _cancel_quietly(self, run_id: str) -> None:
        with suppress(ResponsesMcpError):
            await self._rows.cancel(run_id)

    async def _come_to(self, own: Own) -> None:
        """Write the end of a run whose work is over, unless its row tells that, now or later."""
        rows, row, handle, error = self._rows, own.row, own.handle, own.handle.failure
        if has_ended(handle.found):
            await rows.finish(row, handle.found)
        elif isinstance(error, _WithdrawnError):
            # Another process may have sent it: its guess stands in the same row of the ledger until the end is known.
            is_sent = True
            with suppress(RunsFileUnusable, BadArgument):
                is_sent = (await rows.find(row.id)).sent is not None
            await self._meter.settle(call_of(row), MAYBE_PAID if is_sent else UNSENT_USAGE)
        elif error is not None and not isinstance(error, ResponsesMcpError):
            raise error
        elif not handle.sent:
            # The row as written: where that could not be done, it says that the request was sent.
            await rows.end(own.written, "failed", str(error or NEVER_ASKED), failure=error)
        elif error is not None or not row.key:  # it was not left to the API
            await rows.end(row, "failed", why_lost(row, error), failure=error, maybe_paid=True)

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
        run_id = _read_id(run_id)
        await trio.lowlevel.checkpoint()  # a caller that asks again and again would stop all else, the run too
        told, pause = None, _FIRST_PAUSE
        while True:
            own = self._rows.own.get(run_id)
            news = None if own is None else own.handle.news
            view = await self._rows.look(await self._rows.find(run_id))
            if on_phase is not None and view.running and view.phase != told:
                told = view.phase
                on_phase(told)
            if view.answer is not None and (masked := self._masked.get(run_id)) is not None:
                view = replace(view, answer=replace(view.answer, masked=masked))
            if not view.running or trio.current_time() >= end:
                return view
            if news is not None:
                with trio.move_on_at(end):
                    await news.wait()
            else:
                await trio.sleep_until(min(end, trio.current_time() + pause))
                pause = min(pause * 1.5, LONGEST_PAUSE)
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
            elif (own := self._rows.own.get(run_id)) is not None:
                await own.handle.news.wait()
            else:
                await trio.sleep(1)

    async def list(self, limit: int = _USUALLY_LISTED) -> Sequence[JsonObject]:
        """Return the last runs, the newest first: `run_id`, `status`, `seconds_ago`, `model`.

        Where they are known, `label`, `effort`, `usage` and `cost`.
        """
        self._ready()
        most = read_number("limit", limit, least=1, most=_MOST_LISTED) or _USUALLY_LISTED
        with trio.move_on_after(_LOOKS):
            await self._look_at_all().wait()
        shown: list[JsonObject] = []
        for row in await self._rows.recent(most):
            view, ago = self._rows.seen(row), round(max(0.0, self._rows.clock() - row.created), 1)
            entry: JsonObject = {"run_id": row.id, "status": view.status, "seconds_ago": ago, "model": row.model}
            named = {"label": row.label, "effort": row.effort}
            shown.append(entry | {name: each for name, each in named.items() if each} | used(row.usage or view.usage))
        return shown

    async def cancel(self, run_id: str, *, on_phase: Callable[[str], None] | None = None) -> RunView:
        """Cancel a run, whichever process has sent it, and return how it ended; one that has ended stays so.

        Where the API may still work on it, not having confirmed a cancel, it is told again. Takes a minute at most,
        where the API does not answer. Cancelling this leaves the cancel on its way. `on_phase` is told what is going
        on. Raises as `result` does.
        """
        self._ready()
        run_id = _read_id(run_id)
        if on_phase is not None:
            on_phase("cancelling")
        await trio.lowlevel.checkpoint_if_cancelled()
        over = trio.Event()
        came: list[RunView | ResponsesMcpError] = []

        async def cancel() -> None:
            try:
                came.append(await self._rows.cancel(run_id))
            except ResponsesMcpError as error:
                came.append(error)  # raised where it is waited for
            finally:
                over.set()

        self._tasks.start_soon(cancel)
        await over.wait()
        view = came.pop() if came else ResearchClosed(_CLOSED)
        if isinstance(view, ResponsesMcpError):
            raise view
        return view

    def begin_cancel(self, run_id: str) -> None:
        """Have a run cancelled behind this call, also while this `Research` is closed; failures are not told."""
        self._tasks.start_soon(self._cancel_quietly, run_id)

    # Being there

    def _ready(self) -> None:
        """See to it that runs can be asked for, and that the first use looks at those that go on."""
        require_trio()
        if self._closing.is_set():
            raise ResearchClosed(_CLOSED)
        if self._settings.problems:
            raise ConfigError(self._settings.problems)
        if self._rows.file is None:
            raise ConfigError(
                [
                    "research.state_dir is not set; set it to a folder of yours, or load settings with "
                    'toolsets="answer,research", which choose one where you have a home.'
                ]
            )
        _ = self._rows.account  # which may not be there to be had
        if self._looks is None:
            self._look_at_all()

    def _look_at_all(self) -> trio.Event:
        """Have all runs that go on looked at, and return the event of its end."""
        if self._looks is None or self._looks.is_set():
            is_first, self._looks = self._looks is None, trio.Event()
            self._nursery.start_soon(self._look, self._looks, is_first)
        return self._looks

    async def _look(self, over: trio.Event, is_first: bool) -> None:
        TRACE.set({})  # the runs are of other calls than this one
        try:
            await self._look_at(await self._rows.use(lambda file: file.going_on(self._rows.account)))
            if is_first:
                await self._rows.use(lambda file: file.forget(self._settings.research.keep_days))
        except RunsFileUnusable as error:
            log.debug("research: %s", error)
        finally:
            over.set()

    async def _look_at(self, rows: Sequence[Row]) -> None:
        """Look at runs that this process does not send, at all at once."""

        async def look(row: Row) -> None:
            with suppress(ResponsesMcpError):
                await self._rows.look(row)

        async with trio.open_nursery() as looks:
            for row in rows:
                if row.id not in self._rows.own:
                    looks.start_soon(look, row)

    async def hold(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Hold the tasks that go on when their callers have left, from `started` until `close`."""
        with self._bound:
            async with trio.open_nursery() as self._tasks:
                task_status.started()
                await self._closing.wait()

    def close(self) -> None:
        """Leave all runs to the API: those that were not sent end, and ids may come, which takes a second at most."""
        self._closing.set()
        for own in self._rows.own.values():
            own.handle.leave()
        self._bound.deadline = trio.current_time() + 1.5 * LEAVING  # ends are written behind the second for ids


def _read_id(run_id: object) -> str:
    read = read_word("run_id", run_id)
    if read is None:
        raise BadArgument("run_id is missing; pass the one that research gave, or list the runs to see it.")
    return read


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
    # One use of the file at a time, those that were left behind too: so the last one, at the end, closes the file.
    run_sync = partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
    api = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
    meter = meter or Meter(settings)
    rows = Rows(settings, api, meter=meter, in_thread=in_thread or run_sync, clock=clock)
    return _opened(settings, rows, meter)


@asynccontextmanager
@trio.lowlevel.enable_ki_protection  # Ctrl-C at the end of the block would keep `close` from being called
async def _opened(settings: Settings, rows: Rows, meter: Meter) -> AsyncGenerator[Research]:
    require_trio()
    await trio.lowlevel.checkpoint()
    try:
        async with alone() as nursery:
            research = Research(settings, rows, meter, nursery)
            await nursery.start(research.hold)
            try:
                yield research
            finally:
                research.close()
            nursery.cancel_scope.cancel(reason="research is closed")
    finally:
        with trio.move_on_after(LEAVING, shield=True):
            await rows.stored.api.aclose()
            await meter.aclose()
