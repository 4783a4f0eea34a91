"""Research for Trio programs: questions that take minutes, each sent once, in runs that outlive their callers.

    async with open_research(settings) as research:
        run_id = await research.start("What changed in the tax law of 2026?", effort="deep")
        view = await research.result(run_id, wait_seconds=600)

The API holds a run, and a row in a file has its id, so nobody owns it. Everybody works on the row: whoever finds it
looks the run up, which costs nothing, cancels it, and writes its end, in the ledger first. This process knows more only
of the runs that it sends (`_Own`) and of the last that ended here. Waiting for a run can be cancelled without touching
the run.

A row is ended without the API's word only where the API cannot be asked: the request was not sent, or its id never
came; or where the API does not answer, and then a later look counts.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar, Unpack

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
from responses_mcp.research.inquiry import Narrowing, checked, digest_of, profile_of, run_body
from responses_mcp.research.runs_file import Row, RunsFile, RunsFileUnusable, Step
from responses_mcp.research.view import (
    CANCELLED,
    LATER,
    NEVER_ASKED,
    RunView,
    day_of,
    too_late,
    used,
    view_of,
    view_of_end,
)
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import (
    GONE,
    KEPT_SO_LONG,
    LEAVING,
    WITH_ANSWER,
    Handle,
    StoredResponses,
    has_ended,
    lacks_answer,
)
from responses_mcp.responses_api.request.arguments import read_flag, read_number, read_query, read_seconds, read_word
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.watcher import Watcher
from responses_mcp.secrets import OutgoingText
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.trace_context import TRACE
from responses_mcp.under_trio import alone, require_trio
from responses_mcp.usage.bill import MAYBE_PAID, UNSENT, Call
from responses_mcp.usage.meter import Caller, Meter
from responses_mcp.usage.models import PriceList, Usage, guess

__all__ = ["Research", "RunView", "open_research"]

log = logging.getLogger(__name__)

T = TypeVar("T")

ID_SECONDS: Final = 60.0
"""How long after its request the id of a run may come."""
CANCELS_FOR: Final = 20.0
"""Seconds in which a cancel is sent again that the API takes without an end."""
INTERNAL: Final = "The server failed on this run; see its log with --debug. The run may have been paid for."

_UNSENT_SECONDS: Final = 120.0  # how long a run may wait to be sent: behind the rate limit, and over refusals
_FIRST_PAUSE: Final = 0.5  # seconds between two looks, growing
_LONGEST_PAUSE: Final = 10.0
_LOOKS: Final = 3.0  # seconds for which a list waits for the looks at runs that go on
_WITHDRAW: Final = 5.0  # seconds in which the id of a cancelled run may still come
_POLL: Final = 0.05  # seconds between two looks for it
_CANCEL: Final = 65.0  # seconds that a cancel may take, where the API asks for a wait
_OLD: Final = 60.0  # seconds, after which a run may have ended without anybody here knowing
_UNWATCHED: Final = 5.0  # seconds after its end, in which whoever follows a run has heard of that
_FILE: Final = 10.0  # seconds that a use of the file may take
_MOST_ENDED: Final = 32  # runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64  # characters
_LONGEST_LABEL: Final = 200
_LONGEST_PHASE: Final = 200
_MOST_LISTED: Final = 100
_USUALLY_LISTED: Final = 20
_CLOSED: Final = "This Research is closed; use it within the block of open_research."
_NOT_CONFIRMED: Final = " The API did not confirm the cancel: the run may go on and cost something."
_UNTOLD: Final = "The run was cancelled before its id was known, so the API could not cancel it; it may cost something."
_GONE: Final = "The run has ended, and the API no longer has its answer."
_NOT_SHOWN: Final = "The run has ended, and the API does not return its answer now; ask for the result later."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""


class _WithdrawnError(Exception):
    """The run was cancelled, or sent by another process, before its request was sent here."""


@dataclass(eq=False)
class _Own:
    """A run that this process sends: its request, its row as last known here, and its beginning on Trio's clock."""

    row: Row
    handle: Handle
    began: float
    masked: Mapping[str, int]
    is_cancelled: bool = False


@dataclass(eq=False)
class _Change:
    """A step that the file has not done yet, and the `view` of an end.

    `done` is the row as it was then, None where the step was not done.
    """

    row: Row
    step: Step
    view: RunView | None = None
    done: Row | None = None


class Research:
    """Runs of one account: begun here, or found in the folder of runs. `open_research` gives one.

    Each method may raise `ConfigError` and `RunsFileUnusable`.
    """

    _tasks: trio.Nursery  # what goes on when its caller has left: runs, and cancels; `hold` opens it

    def __init__(
        self,
        settings: Settings,
        api: ResponsesApi,
        meter: Meter,
        nursery: trio.Nursery,
        *,
        in_thread: InThread,
        clock: Callable[[], float],
    ) -> None:
        self.redact = api.redact
        self.outgoing = OutgoingText(settings.privacy.outgoing_secrets, settings.openai.secrets)
        self._settings = settings
        self._stored = StoredResponses(api)
        self._meter = meter
        self._nursery = nursery
        self._in_thread = in_thread
        self._clock = clock
        folder = settings.research.state_dir
        self._file = RunsFile(Path(folder), clock) if folder else None  # "" would be the working directory
        self._own: dict[str, _Own] = {}
        self._ended: dict[str, tuple[Row, RunView]] = {}
        self._changes = deque[_Change]()  # that the file has not done yet, in order
        self._is_told = False  # that it cannot
        self._bound = trio.CancelScope(shield=True)  # of `_tasks`
        self._closing = trio.Event()
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
        sent, research = self.outgoing.question(read_query(query)), self._settings.research
        join = not read_flag("fresh", fresh)
        asked = checked(narrowing, research.stores)
        self._ready()
        effort = asked.get("effort") or "standard"
        profile = profile_of(effort, self._settings)
        self._check_cost(profile, max_cost_usd)
        zone = self._settings.locale.time_zone
        build = partial(
            run_body,
            sent.text,
            asked,
            profile,
            instructions=instructions_for(self._settings.policy, zone),
            time_zone=zone,
            store=research.store and profile.store,
            previous=await self._continued(continue_from),
        )
        name = replace_lone_surrogates(read_word("label", label) or "")
        row = replace(
            self._row_for(build(today=""), profile, Caller("research", client, self.redact)),
            effort=effort,
            label=" ".join(self.redact.known(name).split())[:_LONGEST_LABEL] or None,
            has_schema=asked.get("output_schema") is not None,
        )
        return await self._begin(
            row,
            build(today=day_of(row.created, zone)),
            profile,
            join=join,
            most=research.max_running,
            fixed=frozenset({"user_location"} if asked.get("location") else ()),
            masked=sent.masked,
        )

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
        if self._file is None:
            raise RunsFileUnusable("research.state_dir is not set")
        self._ready()
        row = self._row_for(body, profile, caller)
        run_id = await self._begin(row, body, profile, join=False, most=None)
        try:
            view = await self.result(run_id, wait_seconds=seconds, on_phase=on_phase)
        except trio.Cancelled:
            with trio.move_on_after(LEAVING, shield=True), suppress(trio.EndOfChannel):
                await self.begin_cancel(run_id).receive()
            raise
        except RunsFileUnusable as error:  # of a run that was sent
            log.warning("research: a run cannot be looked at for now: %s", error)
            return replace(view_of(row, row.created), phase="unknown")
        if view.failure is not None and not view.maybe_paid:
            raise view.failure
        return view

    def _row_for(self, body: JsonObject, profile: Profile, caller: Caller) -> Row:
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
        usd = PriceList(self._settings.prices).cost(profile.model, guess(profile, background=True))
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
        try:
            row = await self._find(run_id)
            if row.goes_on and not (await self._look(row)).running:
                row = await self._find(run_id)
        except BadArgument:
            row = None
        if row is not None and row.goes_on:
            raise BadArgument(
                f"continue_from is {run_id}, which is still running; wait for it with research_result, then ask."
            )
        if row is None or row.status not in WITH_ANSWER:
            raise BadArgument("continue_from is not the id of a run that has an answer; list the runs to see them.")
        if not row.key:
            raise BadArgument(
                "continue_from is a run that the API does not keep, so it cannot be followed up. Ask again and repeat "
                "in the question what it builds on."
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
        masked: Mapping[str, int] = MappingProxyType({}),
    ) -> str:
        """Begin a run and return its id, or, with `join`, that of one that goes on with the same request."""
        await trio.lowlevel.checkpoint_if_cancelled()
        looked = False
        while True:
            try:
                add = partial(RunsFile.add, row=new, may_join=lambda row: join and self._may_join(row), most=most)
                row = await self._write(add)
            except trio.Cancelled:  # a slow disk may write the row all the same, and nobody wants the run
                self._nursery.start_soon(self._withdraw, new)
                raise
            if row is None:
                await self._make_place(most or 0, looked=looked)
                looked = True
            elif row.id == new.id or await self._goes_on(row.id):
                break
        self._ready()  # it may have been closed meanwhile
        if row.id not in self._own and row.sent is None:  # also one that another process has not sent yet
            watcher = Watcher(on_send=lambda: self._claim(own))
            handle = Handle(self._stored, body, watcher, seconds=row.may_take + LEAVING, fixed=fixed)
            began = trio.current_time() - max(0.0, self._clock() - row.created)
            own = self._own[row.id] = _Own(row, handle, began, masked)
            self._tasks.start_soon(self._work, own, profile)
        return row.id

    async def _goes_on(self, run_id: str) -> bool:
        """Tell whether a run that the file has as going on does, and nobody is about to cancel it."""
        view = await self._look(await self._find(run_id))
        return view.running and self._may_join(await self._find(run_id))

    def _may_join(self, row: Row) -> bool:
        """Tell whether the same request may join a run: one that the API does not keep, only where it is sent."""
        own = self._own.get(row.id)
        return not row.cancel_asked and (row.kept if own is None else not own.is_cancelled)

    async def _make_place(self, most: int, *, looked: bool) -> None:
        """Look at the runs that go on, one of which may have ended. Raises `LimitReached` where that was done."""
        rows = [row for row in await self._rows(lambda file: file.going_on(self._account)) if row.tool == "research"]
        if not looked:
            await self._look_at([row for row in rows if row.created < self._clock() - _OLD])
        elif len(rows) >= most:
            ids = ", ".join(row.id for row in rows[:10])
            raise LimitReached(
                f"{len(rows)} runs are going on, and research.max_running (RESEARCH_MAX_RUNNING) allows {most}: {ids}. "
                "Wait for one with research_result, or cancel one with research_cancel, and ask again."
            )

    async def _withdraw(self, row: Row) -> None:
        def withdraw(found: Row) -> Row | None:
            if not found.is_unsent or found.id in self._own:  # another call has joined it meanwhile
                return None
            return replace(found, status="cancelled", reason=CANCELLED, confirmed=True, ended=found.created)

        with suppress(RunsFileUnusable):
            await self._write(lambda file: file.change(row, withdraw))

    # The runs that this process sends

    @trio.lowlevel.enable_ki_protection  # Ctrl-C in one task would lose an answer; it strikes the caller's instead
    async def _work(self, own: _Own, profile: Profile) -> None:
        """Send a run and follow it to its end, or until it is left."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._attend, own)
                await own.handle.live(partial(self._meter.admit, _call_of(own.row), profile))
                nursery.cancel_scope.cancel(reason="the work has ended")
            await self._come_to(own)
        except Exception as error:  # other runs, and the server, go on
            log.error("research: a run crashed with %s; this is a bug", type(error).__name__)  # noqa: TRY400
            log.debug("research: traceback of the crash", exc_info=error)
            await self._end(own.row, "failed", INTERNAL, maybe_paid=True)
        finally:
            del self._own[own.row.id]
            own.handle.stop()  # whoever waits looks where the run is now

    async def _claim(self, own: _Own) -> None:
        """Have it in the file that the request is sent, right before it is. Raises `RunsFileUnusable`."""
        self._note(own)  # that the request before was refused
        now = self._now(own.row)

        def claim(found: Row) -> Row | None:
            return replace(found, sent=now) if found.is_unsent and not found.cancel_asked else None

        try:
            claimed = await self._write(lambda file: file.change(own.row, claim))
        except BaseException:  # a slow disk may write it all the same: that is taken back
            own.row = replace(own.row, sent=now)
            raise
        if claimed is None:
            raise _WithdrawnError
        own.row = claimed

    async def _attend(self, own: _Own) -> None:
        """Write each news of a run, as often as it takes; end it where it is not sent in time, or takes too long."""
        handle = own.handle
        while True:
            news = handle.news
            if self._note(own) or self._changes:
                found = await self._row(own.row.id)
                if (
                    found is not None and found.key and found.cancel_asked and not own.is_cancelled
                ):  # by another process
                    self.begin_cancel(found.id)
            row = own.row
            due = row.created + _UNSENT_SECONDS if row.sent is None else row.sent + row.may_take
            if (left := due - self._now(row)) <= 0:
                break
            with trio.move_on_after(min(left, 1 if self._changes else math.inf)):
                await news.wait()
        if row.key:
            await self._cancel_at_api(row)
        else:
            handle.stop(DeadlineExceeded(too_late(row), maybe_paid=True) if handle.sent else None)

    def _note(self, own: _Own) -> bool:
        """Have the next use of the file write what became of a request; tell whether there is any news of it."""
        handle, old = own.handle, own.row
        new = replace(old, sent=old.sent if handle.sent else None, response_id=handle.id, kept=handle.kept)
        if old.sent is None or new == old:
            return False

        def news(found: Row) -> Row | None:
            if found.sent != old.sent:  # another request was sent
                return None
            return replace(found, sent=new.sent, response_id=new.response_id, kept=new.kept)

        own.row = new
        self._changes.append(_Change(old, news))
        return True

    async def _come_to(self, own: _Own) -> None:
        """Write the end of a run whose work is over, unless its row tells that, now or later."""
        found = await self._row(own.row.id)  # which writes the last news
        row, handle, error = own.row, own.handle, own.handle.failure
        if has_ended(handle.found):
            await self._finish(row, handle.found)
        elif isinstance(error, _WithdrawnError):
            # Another process may have sent it: its guess stands in the same row of the ledger until the end is known.
            is_unsent = found is not None and found.sent is None
            await self._meter.settle(_call_of(row), UNSENT if is_unsent else MAYBE_PAID)
        elif error is not None and not isinstance(error, ResponsesMcpError):
            raise error
        elif not handle.sent:
            await self._end(row, "failed", str(error or NEVER_ASKED), failure=error)
        elif error is not None or not row.key:  # it was not left to the API
            await self._end(row, "failed", _why_lost(row, error), failure=error, maybe_paid=True)

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
            view = await self._look(await self._find(run_id))
            if on_phase is not None and view.running and view.phase != told:
                told = view.phase
                on_phase(told)
            if not view.running or trio.current_time() >= end:
                return view
            if (own := self._own.get(run_id)) is not None:
                with trio.move_on_at(end):
                    await own.handle.news.wait()
            else:
                await trio.sleep_until(min(end, trio.current_time() + pause))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            self._ready()  # it may have been closed meanwhile

    async def times(self, run_id: str) -> tuple[float, float]:
        """Return when a run was created, and when it ended, or now. Raises `BadArgument` as `result` does."""
        row = await self._find(_read_id(run_id))
        return row.created, row.ended or self._clock()

    async def list(self, limit: int = _USUALLY_LISTED) -> Sequence[JsonObject]:
        """Return the last runs, the newest first: `run_id`, `status`, `seconds_ago`, `model`.

        Where they are known, `label`, `effort`, `usage` and `cost`.
        """
        self._ready()
        most = read_number("limit", limit, least=1, most=_MOST_LISTED) or _USUALLY_LISTED
        with trio.move_on_after(_LOOKS):
            await self._look_at_all().wait()
        shown: list[JsonObject] = []
        for row in await self._rows(lambda file: file.recent(self._account, most)):
            if self._is_remembered(row):
                view, ago = self._seen(row), round(max(0.0, self._clock() - row.created), 1)
                entry: JsonObject = {"run_id": row.id, "status": view.status, "seconds_ago": ago, "model": row.model}
                named = {"label": row.label, "effort": row.effort}
                entry |= {name: each for name, each in named.items() if each}
                shown.append(entry | used(row.usage or view.usage))
        return shown

    def _seen(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, as this process knows without a look."""
        ended, own = self._ended.get(row.id), self._own.get(row.id)
        if ended is not None and ended[1].status == row.status:
            view = ended[1]
            if view.answer is not None or view.confirmed == row.confirmed:
                return view
        view = view_of(row, self._now(row))
        if own is None or not row.goes_on or row.cancel_asked:
            return view
        return replace(view, phase=own.handle.phase, searches=own.handle.searches)

    async def _look(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, from its row and one look at the API; what is found is written.

        Raises `UpstreamError` where a run has ended and its answer cannot be had now.
        """
        now, view, has_answer = self._clock(), self._seen(row), row.status in WITH_ANSWER
        if view.answer is not None or (row.id in self._own and row.goes_on) or not (row.is_untold or has_answer):
            return view
        if not row.key:
            return await self._look_without_id(row, now) or view
        if row.goes_on and (row.cancel_asked or row.is_late(now)):
            return await self._cancel_at_api(row)
        try:
            found = await self._stored.look_up(row.key)
        except UpstreamError as error:
            is_gone = error.status == HTTPStatus.NOT_FOUND
            if has_answer and is_gone:
                error.message = f"{_GONE} {KEPT_SO_LONG} Asking again pays again."
            if has_answer:
                raise
            if not row.goes_on:
                return view
            if is_gone and now > (row.sent or row.created) + ID_SECONDS:
                return await self._end(row, "failed", GONE, maybe_paid=True)
            return replace(view, phase=f"the run cannot be looked up: {error.message}"[:_LONGEST_PHASE])
        if has_ended(found):
            return await self._finish(row, found)
        if has_answer:
            raise UpstreamError(_NOT_SHOWN)
        if row.status == "cancelled" or (row.is_late(now) and not row.goes_on):
            return view
        goes_on = partial(replace, status=None, reason=None, ended=None, maybe_paid=False, cancel_asked=False)
        if not row.goes_on:  # it was given up
            await self._change(row, lambda found: goes_on(found) if found.is_untold else None)
        usage = self._meter.usage_of(row.model, found)
        return view_of(goes_on(row, usage=usage.as_json() if usage.counted else None), now, found)

    async def _look_without_id(self, row: Row, now: float) -> RunView | None:
        """End a run that has no id in time: it was not sent, or sent without an answer. None where it may come."""
        if not row.goes_on:
            return None
        if row.sent is None:
            is_over = now >= row.created + _UNSENT_SECONDS + _LONGEST_PAUSE
            return await self._end(row, "failed", NEVER_ASKED) if is_over else None
        if now < row.sent + (ID_SECONDS if row.kept else row.may_take):
            return None
        status, why = ("cancelled", _UNTOLD) if row.cancel_asked else ("failed", _why_lost(row, None))
        return await self._end(row, status, why, maybe_paid=True)

    # Cancelling

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
        try:
            came = await self.begin_cancel(run_id).receive()
        except trio.EndOfChannel:
            raise ResearchClosed(_CLOSED) from None
        if isinstance(came, ResponsesMcpError):
            raise came
        return came

    def begin_cancel(self, run_id: str) -> trio.MemoryReceiveChannel[RunView | ResponsesMcpError]:
        """Have a run cancelled behind this call, also while this `Research` is closed; return what gets the end."""
        send, receive = trio.open_memory_channel[RunView | ResponsesMcpError](1)

        async def cancel() -> None:
            with send:
                try:
                    send.send_nowait(await self._cancel(run_id))
                except ResponsesMcpError as error:
                    send.send_nowait(error)  # raised where it is waited for

        try:
            self._tasks.start_soon(cancel)
        except RuntimeError:  # all that went on in it has ended
            send.close()
        return receive

    async def _cancel(self, run_id: str) -> RunView:
        """Cancel a run and return how it ended. Raises as `_look` does."""
        until = trio.current_time() + _WITHDRAW
        if (own := self._own.get(run_id)) is not None:
            own.is_cancelled = True
        while True:
            row = await self._find(run_id)
            if row.goes_on and row.sent is not None and not row.cancel_asked:
                # For whoever learns its id, or asks the same, in whatever process.
                self._changes.append(_Change(row, lambda found: replace(found, cancel_asked=found.goes_on)))
            if row.key and row.is_untold:
                return await self._cancel_at_api(row)
            if not row.goes_on:
                return await self._look(row)
            if row.sent is None:
                view = await self._end(row, "cancelled", CANCELLED, confirmed=True)
                if not view.running:
                    return view
            elif not row.kept or trio.current_time() >= until:
                view = await self._end(row, "cancelled", _UNTOLD, maybe_paid=True)
                if own is not None:
                    with trio.move_on_after(LEAVING):
                        await own.handle.over.wait()
                row = await self._find(run_id)  # the id may have come while the end was written
                return await self._cancel_at_api(row) if row.key and row.is_untold else view
            await trio.sleep(_POLL)

    async def _cancel_at_api(self, row: Row) -> RunView:
        """Tell the API to stop a response, and return how the run ended."""
        own = self._own.get(row.id)
        if own is not None:
            own.handle.tell("cancelling")
        found, refused = JsonObject(), False
        until = trio.current_time() + CANCELS_FOR
        while not (has_ended(found) or refused or trio.current_time() > until):
            if found:
                await trio.sleep(1)  # the cancel was taken, and the response goes on
            try:
                found = await self._stored.cancel(row.key, seconds=_CANCEL)
            except UpstreamError as error:
                log.debug("research: a cancel got no answer: %s", error)
                refused = True
            if not has_ended(found) or lacks_answer(found):
                with suppress(UpstreamError):
                    found = await self._stored.look_up(row.key, seconds=_WITHDRAW)
        if own is not None and own.handle.found:  # an end without the answer
            found = {**own.handle.found, **(found if has_ended(found) else {})}
        if has_ended(found):
            return await self._finish(row, found)
        if not row.is_late(self._now(row)):
            return await self._end(row, "cancelled", f"{CANCELLED}{_NOT_CONFIRMED}", maybe_paid=True)
        why = too_late(row)
        return await self._end(row, "failed", f"{why}{_NOT_CONFIRMED}", failure=DeadlineExceeded(why), maybe_paid=True)

    # Ends

    async def _finish(self, row: Row, response: JsonObject) -> RunView:
        """Write how a run ended, as its Response says, and return it. Raises as `_look` does."""
        usage, own = self._meter.usage_of(row.model, response), self._own.get(row.id)
        had_answer = row.status in WITH_ANSWER
        if own is not None and own.handle.bill is not None:
            usage = usage._replace(attempts=max(own.handle.bill.usage.attempts, 1))
        if not had_answer:
            row = replace(row, usage=usage.as_json(), ended=self._ended_at(row, response))
        view = view_of_end(row, response, self._settings, self.redact.known)
        if own is not None and view.answer is not None:
            view = replace(view, answer=replace(view.answer, masked=own.masked))
        if not had_answer:
            return await self._write_end(row, view, usage, lambda found: found.is_untold)
        if view.status not in WITH_ANSWER:
            raise UpstreamError(_NOT_SHOWN)
        return self._over(row, view)

    async def _end(
        self,
        row: Row,
        status: str,
        reason: str,
        *,
        failure: Exception | None = None,
        maybe_paid: bool = False,
        confirmed: bool = False,
    ) -> RunView:
        """Write how a run ended of which the API says nothing, and return it, or what became of it meanwhile."""
        own = self._own.get(row.id)
        usage = MAYBE_PAID if maybe_paid else UNSENT
        if own is not None and own.handle.bill is not None and own.handle.bill.usage.attempts:
            usage = own.handle.bill.usage
        told = usage.as_json() if usage.attempts else None
        row = replace(row, ended=self._now(row), usage=told)
        end = replace(row, status=status, reason=reason, maybe_paid=maybe_paid, confirmed=confirmed)
        view = replace(view_of(end, 0.0), failure=failure if isinstance(failure, ResponsesMcpError) else None)
        is_unsent = row.sent is None
        return await self._write_end(row, view, usage, lambda found: found.is_unsent if is_unsent else found.goes_on)

    async def _write_end(self, row: Row, view: RunView, usage: Usage, may_end: Callable[[Row], bool]) -> RunView:
        """Write how a run ended, in the ledger first, and return its `view`, or what another process has written."""
        view = replace(view, failure=_failure(view))
        ends = {name: getattr(view, name) for name in ("status", "maybe_paid", "confirmed")}
        ends |= {"reason": _unquoted(view), "ended": row.ended, "usage": row.usage, "kept": row.kept}
        settle = partial(self._meter.settle, _call_of(row), usage, response_id=row.key or None)

        def end(found: Row) -> Row | None:
            return replace(found, **ends) if may_end(found) else None

        base = replace(row, status=None)
        if row.sent is not None:
            await settle()
        if row.sent is not None or row.id in self._own:
            written = await self._change(base, end, view)
        else:  # another process may send it meanwhile
            written = await self._write(lambda file: file.change(base, end))
        if written is not None:
            if row.sent is None:  # nothing is to be settled for a run that was sent after all
                await settle()
            return self._over(written, view)
        with suppress(RunsFileUnusable, BadArgument, UpstreamError):
            row = await self._find(row.id)
            other = await self._look(row) if row.status in WITH_ANSWER else self._seen(row)
            view = replace(other, failure=other.failure or view.failure) if other.status == view.status else other
        return view if view.running else self._over(row, view)

    def _over(self, row: Row, view: RunView) -> RunView:
        """Have all who ask here know how a run ended, and stop its work."""
        self._ended.pop(row.id, None)
        self._ended[row.id] = row, view
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        if (own := self._own.get(row.id)) is not None:
            own.handle.stop()
        return view

    def _now(self, row: Row) -> float:
        """Return the time; for a run of this process, as a clock says that nobody sets."""
        own = self._own.get(row.id)
        return self._clock() if own is None else row.created + trio.current_time() - own.began

    def _ended_at(self, row: Row, response: JsonObject) -> float:
        """Return when a run ended: as the API tells it, in whole seconds of its clock, where nobody was there."""
        told, now = response.get("completed_at"), self._now(row)
        return float(told) if isinstance(told, int | float) and row.created <= told < now - _UNWATCHED else now

    # The file

    @cached_property
    def _account(self) -> str:
        """A name for where is asked with which key, from which neither can be told. Raises `AuthenticationFailed`."""
        headers = credential_headers(self._settings.openai)
        said = "\0".join([self._settings.openai.base_url, *(f"{name}:{headers[name]}" for name in sorted(headers))])
        return hashlib.sha256(b"openai-responses-mcp\0" + said.encode()).hexdigest()[:32]

    async def _find(self, run_id: str) -> Row:
        """Return the row of a run, as far as it is now. Raises `BadArgument` where there is none."""
        row = await self._row(run_id) if len(run_id) <= _LONGEST_ID and run_id.isascii() else None
        if row is None or not self._is_remembered(row):
            days = self._settings.research.keep_days
            raise BadArgument(f"There is no run with that id; list the runs to see those of the last {days} days.")
        return row

    async def _row(self, run_id: str) -> Row | None:
        """Return the row of a run, or what this process knows of it where the file does not.

        A run of this process that others have given up goes on while its request does.
        """
        own = self._own.get(run_id)
        if own is not None:
            self._note(own)
        row, _ = self._ended.get(run_id, (None, None))
        try:
            row = next(iter(await self._rows(lambda file: [file.get(run_id, self._account)])), row)
        except RunsFileUnusable:
            row = self._foreseen(run_id, row)
            if row is None and own is None:
                raise
        if own is not None and (
            row is None or (row.is_untold and row.sent == own.row.sent and not own.handle.over.is_set())
        ):
            return replace(own.row, cancel_asked=row is not None and row.cancel_asked)
        return row

    async def _rows(self, read: Callable[[RunsFile], Sequence[Row | None]]) -> Sequence[Row]:
        """Return rows of the file behind the changes before; where those cannot be written, as they will be."""
        is_stuck = False
        if self._changes:
            try:
                await self._write(lambda _: None)
            except RunsFileUnusable:
                is_stuck = True
        rows = [row for row in await self._in_time(read) if row is not None]
        return [self._foreseen(row.id, row) or row for row in rows] if is_stuck else rows

    def _foreseen(self, run_id: str, row: Row | None) -> Row | None:
        """Return a row as the changes will make it that the file has not done yet."""
        for change in list(self._changes):
            if change.row.id == run_id:
                row = change.step(row or change.row) or row
        return row

    def _is_remembered(self, row: Row) -> bool:
        return row.goes_on or row.created >= self._clock() - self._settings.research.keep_days * 86_400

    async def _change(self, row: Row, step: Step, view: RunView | None = None) -> Row | None:
        """Do a step of a run, as `RunsFile.change` does; what cannot be written now is, by a later use of the file."""
        change = _Change(row, step, view)
        self._changes.append(change)
        try:
            await self._write(lambda _: None)
        except RunsFileUnusable:
            return step(row)
        return change.done

    async def _write(self, work: Callable[[RunsFile], T]) -> T:
        """Do something with the file behind the changes before, in a thread; without those, nothing is done."""

        def do(file: RunsFile) -> T:
            while self._changes:
                change = self._changes[0]
                change.done = file.change(change.row, change.step)
                if change.view is not None and change.done is not None:  # before anybody reads that it has ended
                    self._ended[change.row.id] = change.done, change.view
                self._changes.popleft()
            return work(file)

        try:
            done = await self._in_time(do)
        except RunsFileUnusable as error:
            if self._changes and not self._is_told:
                log.warning("research: what became of runs cannot be written for now: %s", error)
                self._is_told = True
            raise
        self._is_told = False
        return done

    async def _in_time(self, work: Callable[[RunsFile], T]) -> T:
        """Use the file in a thread. Cancelling this leaves it to go on."""
        file = self._file
        assert file is not None  # noqa: S101  # `_ready` has seen to it
        try:
            with trio.move_on_after(_FILE):
                done: T = await self._in_thread(lambda: work(file))
                return done
        except RuntimeError as error:  # "can't start new thread"
            raise RunsFileUnusable(f"The file of runs cannot be used for now: {error}.") from error
        raise RunsFileUnusable("The file of runs did not answer in time; check the disk that research.state_dir is on.")

    # Being there

    def _ready(self) -> None:
        """See to it that runs can be asked for, and that the first use looks at those that go on."""
        require_trio()
        if self._closing.is_set():
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
        if self._looks is None:
            self._look_at_all()

    def _look_at_all(self) -> trio.Event:
        """Have all runs that go on looked at, and return the event of its end."""
        if self._looks is None or self._looks.is_set():
            is_first, self._looks = self._looks is None, trio.Event()
            self._nursery.start_soon(self._look_and_forget, self._looks, is_first)
        return self._looks

    async def _look_and_forget(self, over: trio.Event, is_first: bool) -> None:
        TRACE.set({})  # the runs are of other calls than this one
        try:
            await self._look_at(await self._rows(lambda file: file.going_on(self._account)))
            if is_first:
                await self._write(lambda file: file.forget(self._settings.research.keep_days))
        except RunsFileUnusable as error:
            log.debug("research: %s", error)
        finally:
            over.set()

    async def _look_at(self, rows: Sequence[Row]) -> None:
        """Look at runs that this process does not send, at all at once."""

        async def look(row: Row) -> None:
            with suppress(ResponsesMcpError):
                await self._look(row)

        async with trio.open_nursery() as looks:
            for row in rows:
                if row.id not in self._own:
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
        for own in self._own.values():
            own.handle.leave()
        self._bound.deadline = trio.current_time() + 1.5 * LEAVING  # ends are written behind the second for ids


def _read_id(run_id: object) -> str:
    read = read_word("run_id", run_id)
    if read is None:
        raise BadArgument("run_id is missing; pass the one that research gave, or list the runs to see it.")
    return read


def _call_of(row: Row) -> Call:
    """Return what names a run in the ledger."""
    return Call(row.id, row.created, row.tool, row.model, row.client, _UNSENT_SECONDS + row.may_take)


def _why_lost(row: Row, error: Exception | None) -> str:
    """Say why a run failed that may have been paid for."""
    if row.key:
        return GONE if error is not None and GONE in str(error) else f"{error} An answer may exist: {LATER} later."
    cause = f" ({error})" if error is not None else ""
    what = "The request was sent, but no id came back"
    if not row.kept:
        what = "The connection or the server was lost, and this API does not keep the run"
    return f"{what}{cause}. It may have been paid for, so it was not repeated. Asking again may cost a second time."


def _failure(view: RunView) -> ResponsesMcpError | None:
    """Return why a run failed, by its type. Its error is of one request, and the run is more than that."""
    if view.status != "failed" or not isinstance(view.failure, UpstreamError):
        return view.failure
    failure = copy(view.failure)
    failure.maybe_paid = view.maybe_paid
    failure.retryable = failure.retryable and not view.maybe_paid
    failure.usage = view.usage
    return failure


def _unquoted(view: RunView) -> str | None:
    """Return why a run failed without the words of the API, which may repeat the question: it is written down."""
    error, told = view.failure, view.error
    if told is not None and isinstance(error, UpstreamError) and error.unquoted is not None:
        told = told.replace(error.message, error.unquoted)
    return None if told is None else replace_lone_surrogates(told)


@asynccontextmanager
@trio.lowlevel.enable_ki_protection  # Ctrl-C at the end of the block would keep `close` from being called
async def open_research(
    settings: Settings,
    *,
    api: ResponsesApi | None = None,
    meter: Meter | None = None,
    in_thread: InThread | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncGenerator[Research]:
    """Open a way to have questions researched, whose runs go on at the API behind the block.

    Args:
      settings: read by `load_settings`, or made by hand with a `research.state_dir`. Nothing is read, written or
        connected before the first use.
      api: what asks the API, closed with the block; without it, one of its own.
      meter: keeps the limits, for all that belongs to one session; without it, one of its own.
      in_thread: runs functions that block, one at a time, and waits for them; without it, in a worker thread.
      clock: seconds since 1970.

    Returns:
      A context manager that gives a `Research`. Any number of tasks may use it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. For the rest see `Research`. An exception of the block
      comes out as it is, not in a group.

    Leaving the block leaves the runs to the API: an id that has not come is waited for, a second at most. A run that
    was not sent is not sent any more, and cost nothing.
    """
    require_trio()
    await trio.lowlevel.checkpoint()
    api = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
    meter = meter or Meter(settings)
    if in_thread is None:
        # One use of the file at a time, those that were left behind too: so the last one, at the end, closes the file.
        in_thread = partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
    try:
        async with alone() as nursery:
            research = Research(settings, api, meter, nursery, in_thread=in_thread, clock=clock)
            await nursery.start(research.hold)
            try:
                yield research
            finally:
                research.close()
            nursery.cancel_scope.cancel(reason="research is closed")
    finally:
        with trio.move_on_after(LEAVING, shield=True):
            await api.aclose()
            await meter.aclose()
