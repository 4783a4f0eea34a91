"""Research for Trio programs: questions that take minutes, each sent once, in runs that outlive their callers.

    async with open_research(settings) as research:
        run_id = await research.start("What changed in the tax law of 2026?", effort="deep")
        view = await research.result(run_id, wait_seconds=600)

The API holds a run, and a row in a file has its id, so nobody owns it. Everybody works on the row: whoever finds it
looks the run up, which costs nothing, cancels it, and writes its end, in the ledger first. This process knows more only
of the runs that it sends (`_Own`) and of the last that ended here.

A run whose id is known ends by the API's word alone. What cannot be written is not lost: the next look finds the end at
the API once more, and the process that sends a run goes on trying.
"""

from __future__ import annotations

import hashlib
import logging
import math
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
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
from responses_mcp.research.runs_file import Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import (
    CANCELLED,
    NEVER_ASKED,
    UNTOLD,
    RunView,
    day_of,
    failed_with,
    too_late,
    used,
    view_of,
    view_of_end,
    why_lost,
)
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import (
    FORGOTTEN,
    GONE,
    KEPT_SO_LONG,
    LEAVING,
    LOOK,
    WITH_ANSWER,
    Handle,
    cancel,
    has_ended,
    look_up,
)
from responses_mcp.responses_api.request.arguments import read_flag, read_number, read_query, read_seconds, read_word
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.response.reply import TOO_LONG
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
INTERNAL: Final = "The server failed on this run; see its log with --debug. The run may have been paid for."

_UNSENT_SECONDS: Final = 120.0  # how long a run may wait to be sent: behind the rate limit, and over refusals
_FIRST_PAUSE: Final = 0.5  # seconds between two looks, growing
_LONGEST_PAUSE: Final = 10.0
_LOOKS: Final = 3.0  # seconds for which a list waits for the looks at runs that go on
_ID_COMES: Final = 5.0  # seconds in which the id of a cancelled run may still come
_POLL: Final = 0.05  # seconds between two looks for it
_CANCEL: Final = 65.0  # seconds that a cancel may take, where the API asks for a wait
_AGAIN: Final = 1.0  # seconds before what could not be written is written again
_OLD: Final = 60.0  # seconds, after which a run may have ended without anybody here knowing
_UNWATCHED: Final = 5.0  # seconds after its end, in which whoever follows a run has heard of that
_MOST_ENDED: Final = 32  # runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64  # characters
_LONGEST_LABEL: Final = 200
_LONGEST_PHASE: Final = 200
_MOST_LISTED: Final = 100
_USUALLY_LISTED: Final = 20
_CLOSED: Final = "This Research is closed; use it within the block of open_research."
_LOST: Final = "The run has ended, and the API no longer has its answer."
_NOT_SHOWN: Final = "The run has ended, and its answer cannot be fetched now; ask for the result later."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""


class _WithdrawnError(Exception):
    """The run was cancelled, or sent by another process, before its request was sent here."""


@dataclass(eq=False)
class _Own:
    """A run that this process sends, and its beginning on Trio's clock.

    `written` is its row as the file has it, as far as that is known, and `end` its row with an end that could not be
    written yet. `lock` is held while one of them changes.
    """

    written: Row
    handle: Handle
    began: float
    end: Row | None = None
    is_cancelled: bool = False
    lock: trio.Lock = field(default_factory=trio.Lock)

    @property
    def row(self) -> Row:
        """The row as it is known here."""
        if self.end is not None:
            return self.end
        sent = self.written.sent if self.handle.sent else None
        return replace(self.written, sent=sent, response_id=self.handle.id, kept=self.handle.kept)


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
        self._api = api
        self._meter = meter
        self._nursery = nursery
        self._in_thread = in_thread
        self._clock = clock
        folder = settings.research.state_dir
        self._file = RunsFile(Path(folder), clock) if folder else None  # "" would be the working directory
        self._own: dict[str, _Own] = {}
        self._ended: dict[str, tuple[Row, RunView]] = {}  # the last ones
        self._unknown: dict[str, float] = {}  # since when the API does not know the response of a run
        self._is_failing = False  # the file, to be written
        self._bound = trio.CancelScope(shield=True)  # of `_tasks`
        self._closing = trio.Event()
        self._is_used = False

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

        `continue_from` is the id of a run that the question follows up. `client` is for whom it is asked, as the ledger
        has it. For the rest see `Narrowing`. Raises `BadArgument` for what cannot be asked, and `LimitReached` where
        too many runs go on, or the estimate is above `max_cost_usd`.
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

        `body` is its request without background mode. Cancelling this cancels the run. Raises as `start` does, and why
        the run was refused; `RunsFileUnusable` only where nothing was sent, and nothing will be.
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
        run_id, row, status = read_word("continue_from", follows) or "", None, None
        with suppress(BadArgument):
            row = await self._find(run_id)
            status = (await self._look(row)).status if row.is_open else row.status
        if status == "running":
            raise BadArgument(
                f"continue_from is {run_id}, which is still running; wait for it with research_result, then ask."
            )
        if row is None or status not in WITH_ANSWER or not row.key:
            raise BadArgument(
                "continue_from is not the run_id of a run whose answer the API keeps; list the runs to see them, or "
                "ask anew and repeat in the question what it builds on."
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
        looked = False
        while True:
            add = partial(RunsFile.add, row=new, may_join=lambda row: join and self._may_join(row), most=most)
            row = await self._in_file(add)
            if row is None:
                await self._make_place(most or 0, looked=looked)
                looked = True
            elif row.id == new.id or await self._goes_on(row.id):
                break
        self._ready()  # it may have been closed meanwhile
        if row.id not in self._own and row.sent is None:  # also one that another process has not sent yet
            watcher = Watcher(on_send=lambda: self._claim(own))
            handle = Handle(self._api, body, watcher, seconds=row.may_take + LEAVING, fixed=fixed)
            began = trio.current_time() - max(0.0, self._clock() - row.created)
            own = self._own[row.id] = _Own(row, handle, began)
            self._tasks.start_soon(self._work, own, profile)
        return row.id

    async def _goes_on(self, run_id: str) -> bool:
        """Tell whether a run that the file has as going on does, and nobody is about to cancel it."""
        view = await self._look(await self._find(run_id))
        return view.running and self._may_join(await self._find(run_id))

    def _may_join(self, row: Row) -> bool:
        """Tell whether the same request may join a run: one that the API does not keep, only where it is sent."""
        own = self._own.get(row.id)
        return row.goes_on and (row.kept if own is None else own.row.goes_on and not own.is_cancelled)

    async def _make_place(self, most: int, *, looked: bool) -> None:
        """Look at the runs that go on, one of which may have ended. Raises `LimitReached` where that was done."""
        rows = [row for row in await self._open_rows() if row.tool == "research" and row.goes_on]
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
    async def _work(self, own: _Own, profile: Profile) -> None:
        """Send a run and follow it to its end, or until it is left, and see to it that the file says so."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._attend, own)
                await own.handle.live(partial(self._meter.admit, _call_of(own.row), profile))
                nursery.cancel_scope.cancel(reason="the work has ended")
            await self._come_to(own)
            while not await self._save(own) and not self._closing.is_set():
                with trio.move_on_after(_AGAIN):
                    await self._closing.wait()
        except Exception as error:  # other runs, and the server, go on
            log.error("research: a run crashed with %s; this is a bug", type(error).__name__)  # noqa: TRY400
            log.debug("research: traceback of the crash", exc_info=error)
            if not own.row.key:
                await self._end(own.row, "failed", INTERNAL, maybe_paid=True)
        finally:
            del self._own[own.row.id]
            own.handle.stop()  # whoever waits looks where the run is now

    async def _claim(self, own: _Own) -> None:
        """Have it in the file that the request is sent, right before it is. Raises `RunsFileUnusable`."""
        async with own.lock:
            base, now = own.written, self._now(own.written)

            def claim(found: Row) -> Row | None:
                # The mark of a request of this process, which was refused, may still be there.
                is_free = found.is_open and found.sent in (None, base.sent) and not found.cancel_asked
                return replace(found, sent=now, kept=own.handle.kept) if is_free else None

            try:
                claimed = await self._in_file(lambda file: file.change(base, claim))
            except BaseException:  # a slow disk may write it all the same: that is taken back
                own.written = replace(base, sent=now)
                raise
            if claimed is None:
                raise _WithdrawnError
            own.written = claimed

    async def _save(self, own: _Own) -> bool:
        """Write what is known here of a run; return whether the file has it, or what another process has written."""
        async with own.lock:
            base, new = own.written, own.row
            if new == base:
                return True
            try:
                written = await self._write(base, new)
            except RunsFileUnusable:
                return False
            own.written, own.end = written or new, None
            return True

    async def _attend(self, own: _Own) -> None:
        """Write each news of a run, as often as it takes; end it where it is not sent in time, or takes too long."""
        handle = own.handle
        while True:
            news, had_id = handle.news, own.written.key
            is_saved = await self._save(own)
            if own.written.key and not had_id and own.written.cancel_asked and not own.is_cancelled:
                self.begin_cancel(own.written.id)  # which another process, or an earlier call, could not
            row = own.row
            due = row.created + _UNSENT_SECONDS if row.sent is None else row.sent + row.may_take
            if (left := due - self._now(row)) <= 0:
                break
            with trio.move_on_after(left if is_saved else min(left, _AGAIN)):
                await news.wait()
        if row.key:
            await self._cancel_at_api(row, LOOK)
            handle.stop()
        else:
            handle.stop(DeadlineExceeded(too_late(row), maybe_paid=True) if handle.sent else None)

    async def _come_to(self, own: _Own) -> None:
        """Write the end of a run whose work is over, as far as it is known."""
        row, handle, error = own.row, own.handle, own.handle.failure
        if row.id in self._ended:  # by a cancel
            return
        if has_ended(handle.found):
            await self._finish(row, handle.found)
        elif isinstance(error, _WithdrawnError):
            # Another process may have sent it: its guess stands in the same row of the ledger until the end is known.
            found = await self._row(row.id)
            await self._meter.settle(_call_of(row), UNSENT if found is not None and found.sent is None else MAYBE_PAID)
        elif error is not None and not isinstance(error, ResponsesMcpError):
            raise error
        elif not handle.sent:
            await self._end(row, "failed", str(error or NEVER_ASKED), failure=error)
        elif not row.key:
            await self._end(row, "failed", why_lost(row, error), failure=error, maybe_paid=True)
        elif isinstance(error, UpstreamError) and error.status == HTTPStatus.NOT_FOUND:
            await self._end(row, "failed", GONE, failure=error, maybe_paid=True)

    # How far a run is

    async def result(
        self, run_id: str, *, wait_seconds: float = 0.0, on_phase: Callable[[str], None] | None = None
    ) -> RunView:
        """Return how a run ended, after waiting for that `wait_seconds` at most; then, how far it is.

        Cancelling this leaves the run alone. `on_phase` is told what is going on, in words for a person. Raises
        `BadArgument` for an id that is not known, and `UpstreamError` for a reply that is too long to be read.
        """
        end = trio.current_time() + read_seconds("wait_seconds", wait_seconds)
        self._ready()
        run_id = _read_id(run_id)
        await trio.lowlevel.checkpoint()  # a caller that asks again and again would stop all else, the run too
        told, pause = "", _FIRST_PAUSE
        while True:
            view = await self._look(await self._find(run_id))
            if on_phase is not None and view.phase not in ("", told):
                told = view.phase
                on_phase(told)
            if not view.pending or trio.current_time() >= end:
                return view
            if (own := self._own.get(run_id)) is not None:
                with trio.move_on_at(end):
                    await own.handle.news.wait()
            else:
                await trio.sleep_until(min(end, trio.current_time() + pause))
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            self._ready()  # it may have been closed meanwhile

    async def list(self, limit: int = _USUALLY_LISTED) -> Sequence[JsonObject]:
        """Return the last runs, the newest first: `run_id`, `status`, `seconds_ago`, `model`.

        Where they are known, `label`, `effort`, `usage` and `cost`.
        """
        self._ready()
        most = read_number("limit", limit, least=1, most=_MOST_LISTED) or _USUALLY_LISTED
        with trio.move_on_after(_LOOKS):
            await self._look_at(await self._open_rows())
        shown: list[JsonObject] = []
        for found in await self._in_file(lambda file: file.recent(self._account, most)):
            row = self._newest(found)
            if self._is_remembered(row):
                view, ago = self._seen(row), round(max(0.0, self._clock() - row.created), 1)
                entry: JsonObject = {"run_id": row.id, "status": view.status, "seconds_ago": ago, "model": row.model}
                named = {"label": row.label, "effort": row.effort}
                entry |= {name: each for name, each in named.items() if each}
                shown.append(entry | used(row.usage or view.usage))
        return shown

    def _seen(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, as this process knows without a look."""
        (_, view), own = self._ended.get(row.id, (row, None)), self._own.get(row.id)
        if view is not None and (view.status, view.confirmed) == (row.status, row.confirmed):
            return view
        if own is None or not row.is_open or (row.cancel_asked and not own.is_cancelled):
            return view_of(row, self._now(row))
        phase = "cancelling" if own.is_cancelled else own.handle.phase
        view = view_of(replace(row, cancel_asked=False), self._now(row))
        return replace(view, phase=phase, searches=own.handle.searches)

    async def _look(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, from its row and one look at the API; what is found is written."""
        now, view = self._clock(), self._seen(row)
        if not row.is_open:
            has_answer = row.status in WITH_ANSWER and row.key
            return await self._fetch(row) if has_answer and view.answer is None else view
        if row.id in self._own and view.running:
            return view
        if not row.key:
            return await self._look_without_id(row, now) or view
        if row.cancel_asked or row.is_late(now):
            return await self._cancel_at_api(row, LOOK)
        try:
            found = await look_up(self._api, row.key)
        except UpstreamError as error:
            if error.code == TOO_LONG:
                raise
            if self._is_gone(row, error):
                return await self._end(row, "failed", GONE, maybe_paid=True)
            return replace(view, phase=f"the run cannot be looked up: {error.message}"[:_LONGEST_PHASE])
        self._unknown.pop(row.id, None)
        if has_ended(found):
            return await self._finish(row, found)
        usage = self._meter.usage_of(row.model, found)
        return view_of(replace(row, usage=usage.as_json() if usage.counted else None), now, found)

    async def _fetch(self, row: Row) -> RunView:
        """Return how a run ended that has an answer, with that, or with why it cannot be had."""
        try:
            found = await look_up(self._api, row.key)
        except UpstreamError as error:
            view = failed_with(replace(view_of(row, row.created), maybe_paid=True), error)
            if error.status == HTTPStatus.NOT_FOUND:
                return replace(view, error=f"{_LOST} {KEPT_SO_LONG} Asking again pays again.")
            return replace(view, error=f"{_NOT_SHOWN} {error}", phase=error.message[:_LONGEST_PHASE])
        view = view_of_end(row, found, self._settings, self.redact.known)
        if not has_ended(found) or view.answer is None:
            return replace(view_of(row, row.created), maybe_paid=True, error=_NOT_SHOWN, phase=_NOT_SHOWN)
        return self._remember(row, view)

    async def _look_without_id(self, row: Row, now: float) -> RunView | None:
        """End a run that has no id in time: it was not sent, or sent without an answer. None where it may come."""
        if row.sent is None:
            is_over = now >= row.created + _UNSENT_SECONDS + _LONGEST_PAUSE
            return await self._end(row, "failed", NEVER_ASKED) if is_over else None
        if now < row.sent + (ID_SECONDS if row.kept else row.may_take):
            return None
        status, why = ("cancelled", UNTOLD) if row.cancel_asked else ("failed", why_lost(row, None))
        return await self._end(row, status, why, maybe_paid=True)

    def _is_gone(self, row: Row, error: UpstreamError) -> bool:
        """Tell whether the API no longer knows a response, by the error of a look at it."""
        if error.status != HTTPStatus.NOT_FOUND:
            self._unknown.pop(row.id, None)
            return False
        now = trio.current_time()
        return now - self._unknown.setdefault(row.id, now) >= FORGOTTEN or row.is_late(self._now(row))

    # Cancelling

    async def cancel(self, run_id: str, *, on_phase: Callable[[str], None] | None = None) -> RunView:
        """Cancel a run, whichever process has sent it, and return how it ended; one that has ended stays so.

        Takes a minute at most, where the API does not answer. Cancelling this leaves the cancel on its way. `on_phase`
        is told what is going on. Raises as `result` does.
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
            own = self._own.get(run_id)
            with send:
                try:
                    if own is not None:
                        own.is_cancelled = True
                    send.send_nowait(await self._cancel(run_id))
                except ResponsesMcpError as error:
                    send.send_nowait(error)  # raised where it is waited for
                finally:
                    if own is not None:
                        own.is_cancelled = False
                        own.handle.tell("cancelling")  # whoever waits looks how far it is now

        try:
            self._tasks.start_soon(cancel)
        except RuntimeError:  # all that went on in it has ended
            send.close()
        return receive

    async def _cancel(self, run_id: str) -> RunView:
        """Cancel a run and return how it ended. Raises as `_look` does."""
        until = trio.current_time() + _ID_COMES
        while True:
            row = await self._find(run_id)
            if not row.is_open:
                return await self._look(row)
            if row.sent is None:
                view = await self._end(row, "cancelled", CANCELLED)
                if not view.running:  # as it does where another process has just sent it
                    return view
            elif row.key:
                return await self._cancel_at_api(row, _CANCEL)
            elif not row.kept:
                return await self._end(row, "cancelled", UNTOLD, maybe_paid=True)
            else:
                row = await self._ask_to_cancel(row)
                if trio.current_time() >= until:
                    return view_of(row, self._now(row))
            await trio.sleep(_POLL)

    async def _ask_to_cancel(self, row: Row) -> Row:
        """Have whoever learns the id of a run, looks at it, or asks the same, in whatever process, know of a cancel."""
        asked = replace(row, cancel_asked=True)
        if not row.cancel_asked:
            with suppress(RunsFileUnusable):
                await self._write(row, asked)
        return asked

    async def _cancel_at_api(self, row: Row, seconds: float) -> RunView:
        """Tell the API to stop a response, and return how the run ended."""
        row, found = await self._ask_to_cancel(row), JsonObject()
        try:
            found = await cancel(self._api, row.key, seconds=seconds)
        except UpstreamError as error:
            log.debug("research: a cancel got no answer: %s", error)
        if not has_ended(found):
            try:
                found = await look_up(self._api, row.key, seconds=_ID_COMES)
            except UpstreamError as error:
                if self._is_gone(row, error):
                    return await self._end(row, "failed", GONE, maybe_paid=True)
        return await self._finish(row, found) if has_ended(found) else view_of(row, self._now(row))

    # Ends

    async def _finish(self, row: Row, response: JsonObject) -> RunView:
        """Write how a run ended, as its Response says, and return it."""
        usage, own = self._meter.usage_of(row.model, response), self._own.get(row.id)
        if own is not None and own.handle.bill is not None:
            usage = usage._replace(attempts=max(own.handle.bill.usage.attempts, 1))
        row = replace(row, usage=usage.as_json(), ended=self._ended_at(row, response))
        return await self._write_end(row, view_of_end(row, response, self._settings, self.redact.known), usage)

    async def _end(
        self, row: Row, status: str, error: str, *, failure: Exception | None = None, maybe_paid: bool = False
    ) -> RunView:
        """Write how a run ended of which the API says nothing, and return it, or what became of it meanwhile."""
        own = self._own.get(row.id)
        usage = MAYBE_PAID if maybe_paid else UNSENT
        if own is not None and own.handle.bill is not None and own.handle.bill.usage.attempts:
            usage = own.handle.bill.usage
        row = replace(row, ended=self._now(row), usage=usage.as_json() if usage.attempts else None)
        confirmed = status == "cancelled" and not maybe_paid
        end = replace(row, status=status, reason=error, maybe_paid=maybe_paid, confirmed=confirmed)
        return await self._write_end(row, failed_with(view_of(end, 0.0), failure), usage)

    async def _write_end(self, row: Row, view: RunView, usage: Usage) -> RunView:
        """Write how a run ended, in the ledger first, and return its `view`, or what another process has written."""
        own, settle = self._own.get(row.id), partial(self._meter.settle, _call_of(row), usage)
        end = replace(row, status=view.status, reason=_unquoted(view))
        end = replace(end, maybe_paid=view.maybe_paid, confirmed=view.confirmed)
        is_known = own is not None and own.row.sent == row.sent  # no request was sent, or refused, meanwhile
        base = own.written if own is not None and is_known else row
        if row.sent is not None:
            await settle(response_id=row.key or None)
        try:
            written = await self._write(base, end)
        except RunsFileUnusable:
            if base is row and row.sent is None:  # it may be sent
                raise
            written = end
            if own is not None:
                own.end = end
        if written is None:
            with suppress(BadArgument, RunsFileUnusable):
                return await self._look(await self._find(row.id))
        elif row.sent is None:  # nothing is to be settled for a run that was sent after all
            await settle()
        return self._remember(end, view)

    def _remember(self, row: Row, view: RunView) -> RunView:
        """Have all who ask here know how a run ended, and stop its work."""
        self._ended.pop(row.id, None)
        self._ended[row.id] = row, view
        if len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        self._unknown.pop(row.id, None)
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
        """Return the row of a run, or what this process knows of it where the file has none, or cannot be read."""
        own = self._own.get(run_id)
        row, _ = self._ended.get(run_id, (None, None)) if own is None else (own.row, None)
        try:
            found = await self._in_file(lambda file: file.get(run_id, self._account))
        except RunsFileUnusable:
            if row is None:
                raise
            return row
        return row if found is None else self._newest(found)

    def _newest(self, row: Row) -> Row:
        """Return a row of the file, or what is known here and could not be written yet."""
        own = self._own.get(row.id)
        return row if own is None or own.row == own.written else replace(own.row, cancel_asked=row.cancel_asked)

    async def _open_rows(self) -> Sequence[Row]:
        return [self._newest(row) for row in await self._in_file(lambda file: file.going_on(self._account))]

    def _is_remembered(self, row: Row) -> bool:
        return row.goes_on or row.created >= self._clock() - self._settings.research.keep_days * 86_400

    async def _write(self, base: Row, new: Row) -> Row | None:
        """Write what became of a run that was `base`, and return its row as it is then.

        None where another process has sent the run, or has written its end. Only what that could not know overrules
        such an end: the id of a response, or that the request was refused, where there was no word for a minute.
        """

        def step(found: Row) -> Row | None:
            if found.sent not in (base.sent, new.sent) or found.response_id not in (None, new.response_id):
                return None
            is_lost = found.sent is not None and found.response_id is None and found.kept
            is_news = new.response_id is not None or new.sent is None
            if not (found.is_open or (is_lost and is_news)):
                return None
            return replace(new, cancel_asked=new.cancel_asked or found.cancel_asked)

        try:
            written = await self._in_file(lambda file: file.change(base, step))
        except RunsFileUnusable as error:
            if not self._is_failing:
                log.warning("research: what became of runs cannot be written for now: %s", error)
            self._is_failing = True
            raise
        self._is_failing = False
        return written

    async def _in_file(self, work: Callable[[RunsFile], T]) -> T:
        """Use the file, in a thread. Cancelling this leaves it to go on."""
        file = self._file
        assert file is not None  # noqa: S101  # `_ready` has seen to it
        done: T = await self._in_thread(partial(work, file))
        return done

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
        if not self._is_used:
            self._is_used = True
            self._nursery.start_soon(self._look_and_forget)

    async def _look_and_forget(self) -> None:
        try:
            await self._look_at(await self._open_rows())
            await self._in_file(lambda file: file.forget(self._settings.research.keep_days))
        except RunsFileUnusable as error:
            log.debug("research: %s", error)

    async def _look_at(self, rows: Sequence[Row]) -> None:
        """Look at runs that this process does not send, at all at once."""

        async def look(row: Row) -> None:
            TRACE.set({})  # the runs are of other calls than this one
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
      settings: read by `load_settings`, or made by hand with a `research.state_dir`.
      api: what asks the API, closed with the block; without it, one of its own.
      meter: keeps the limits, for all that belongs to one session; without it, one of its own.
      in_thread: runs functions that block, one at a time, and waits for them; without it, in a worker thread.
      clock: seconds since 1970.

    Returns:
      A context manager that gives a `Research`. Any number of tasks may use it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. An exception of the block comes out as it is, not in a group.
    """
    require_trio()
    await trio.lowlevel.checkpoint()
    api = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
    meter = meter or Meter(settings)
    uses = trio.CapacityLimiter(1)  # of the file, at a time, those that were left behind too
    in_thread = in_thread or partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=uses)
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
            async with uses:  # a use that was left behind closes the file before the process ends
                pass
