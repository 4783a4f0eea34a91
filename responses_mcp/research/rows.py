"""What is done with the row of a run, whichever process has sent it: it is found, looked at, cancelled and ended.

A look at the API costs nothing, so any number of processes may look. The first that sees the end of a run writes it,
in the ledger before. A row is ended without the API's word only where the API cannot be asked: the request was not
sent, or its id never came; or where the API does not answer, and then a later look counts.
"""

from __future__ import annotations

import hashlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from responses_mcp.errors import (
    BadArgument,
    DeadlineExceeded,
    LimitReached,
    ResponsesMcpError,
    UpstreamError,
)
from responses_mcp.json_types import JsonObject
from responses_mcp.research.inquiry import PROFILES
from responses_mcp.research.runs_file import Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import CANCELLED, LATER, NEVER_ASKED, RunView, used, view_of_end, view_of_row
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import (
    CANCEL_FOR_SURE,
    GONE,
    KEPT_SO_LONG,
    LEAVING,
    WITH_ANSWER,
    Handle,
    StoredResponses,
    has_ended,
)
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.request.payload import bare_hosts
from responses_mcp.settings.model import Settings
from responses_mcp.usage.bill import MAYBE_PAID, UNSENT, Call
from responses_mcp.usage.meter import Meter
from responses_mcp.usage.models import Usage

log = logging.getLogger(__name__)

T = TypeVar("T")

UNSENT_SECONDS: Final = 120.0
"""How long a run may wait to be sent: behind the rate limit, and over refusals."""
ID_SECONDS: Final = 60.0
"""How long after its request the id of a run may come."""
CANCELS_FOR: Final = 20.0
"""Seconds in which a cancel is sent again that the API takes without an end."""
LONGEST_PAUSE: Final = 10.0
"""Seconds between two looks, at most."""
_WITHDRAW: Final = 5.0  # seconds in which the id of a cancelled run may still come
_POLL: Final = 0.05  # seconds between two looks for it
_CANCEL: Final = 65.0  # seconds that a cancel may take, where the API asks for a wait
_UNWATCHED: Final = 5.0  # seconds after its end, in which whoever follows a run has heard of that
_LOOK: Final = 20.0  # seconds for one look at a response
_OLD: Final = 60.0  # seconds, after which a run may have ended without anybody here knowing
_FILE: Final = 10.0  # seconds that a use of the file may take
_MOST_DONE: Final = 32  # ended runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64
_LONGEST_PHASE: Final = 200  # characters
_NOT_CONFIRMED: Final = " The API did not confirm that, so it may go on, and cost something."
_UNTOLD: Final = "The run was cancelled before its id was known, so the API could not be told; it may cost something."
_CLOSED_ONLY: Final = (
    "The run was cancelled by closing its connection, the only way with this API; it may cost something."
)
_NOT_SHOWN: Final = "The run has ended, and the API does not show its answer now; ask for it later."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""


@dataclass(eq=False)
class OwnRun:
    """A run whose request this process sends, or has sent: its row as it was `written` last, and its response.

    `began` is its beginning on Trio's clock. `cancelling` is true once it is cancelled here. `writing` is held while
    the row is written.
    """

    written: Row
    handle: Handle
    began: float
    cancelling: bool = False
    writing: trio.Lock = field(default_factory=trio.Lock)

    @property
    def row(self) -> Row:
        """The row as its response now says."""
        handle, sent = self.handle, self.written.sent
        return replace(self.written, sent=sent if handle.sent else None, response_id=handle.id, kept=handle.kept)


class LastOf(dict[str, T]):
    """Something of each of the last runs, `most` of them; that of a run before those is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, run_id: str, value: T) -> None:
        super().__setitem__(run_id, value)
        if len(self) > self._most:
            del self[next(iter(self))]


class Rows:
    """The runs of one account in a folder.

    `own` are those that this process sends, `done` the last that have ended. Methods raise `RunsFileUnusable`, and
    `BadArgument` for an unknown id.
    """

    def __init__(
        self, settings: Settings, api: ResponsesApi, *, meter: Meter, in_thread: InThread, clock: Callable[[], float]
    ) -> None:
        self.own: dict[str, OwnRun] = {}
        self.done = LastOf[RunView](_MOST_DONE)
        self._unwritten = deque[Row]()  # with their ends
        self.stored = StoredResponses(api)
        self._settings = settings
        self._meter = meter
        self._in_thread = in_thread
        self.clock = clock
        folder = settings.research.state_dir
        self.file = RunsFile(Path(folder), clock) if folder else None  # "" would be the working directory

    # The file

    @cached_property
    def account(self) -> str:
        """A name for where is asked with which key, from which neither can be told. Raises `AuthenticationFailed`."""
        headers = credential_headers(self._settings.openai)
        said = "\0".join([self._settings.openai.base_url, *(f"{name}:{headers[name]}" for name in sorted(headers))])
        return hashlib.sha256(b"openai-responses-mcp\0" + said.encode()).hexdigest()[:32]

    async def use(self, work: Callable[[RunsFile], T]) -> T:
        """Do something with the file, in a thread, behind ends that could not be written before.

        Cancelling this leaves it to go on.
        """
        file = self.file
        assert file is not None  # noqa: S101  # by the callers of `Research`

        def do() -> T:
            with suppress(RunsFileUnusable):
                while self._unwritten:
                    file.end(self._unwritten[0])
                    self._unwritten.popleft()
            return work(file)

        try:
            with trio.move_on_after(_FILE):
                done: T = await self._in_thread(do)
                return done
        except RuntimeError as error:  # "can't start new thread"
            raise RunsFileUnusable(f"The file of runs cannot be used for now: {error}.") from error
        raise RunsFileUnusable("The file of runs did not answer in time; check the disk that research.state_dir is on.")

    async def find(self, run_id: str) -> Row | None:
        """Return the row of a run; None for an id that is not known."""
        if not (len(run_id) <= _LONGEST_ID and run_id.isascii()):
            return None
        row = await self.use(lambda file: file.get(run_id, self.account))
        return row if row is not None and self._is_remembered(row) else None

    async def row_of(self, run_id: str) -> Row:
        """Return the row of a run, as far as it is now."""
        if (own := self._sending(run_id)) is not None:
            return own.row
        if (row := await self.find(run_id)) is None:
            days = self._settings.research.keep_days
            raise BadArgument(f"There is no run with that id; list the runs to see those of the last {days} days.")
        return row

    def _is_remembered(self, row: Row) -> bool:
        return row.status is None or row.created >= self.clock() - self._settings.research.keep_days * 86_400

    def _sending(self, run_id: str) -> OwnRun | None:
        """Return a run that this process sends, and that goes on."""
        return None if run_id in self.done else self.own.get(run_id)

    # Looking

    def known(self, run_id: str) -> RunView | None:
        """Return how far a run is as this process knows without a look; None where it does not, or not for sure."""
        own, ended = self.own.get(run_id), self.done.get(run_id)
        if ended is not None and (own is not None or not ended.may_go_on):
            return ended
        if own is None:
            return None
        view = view_of_row(own.row, self._now(own.row))
        return replace(view, phase=own.handle.phase, searches=own.handle.searches)

    async def view(self, run_id: str) -> RunView:
        """Return how far a run is, or how it ended. Raises as `look` does."""
        return self.known(run_id) or await self.look(await self.row_of(run_id))

    async def heed_others(self, run_id: str) -> None:
        """Have a run of this process be over that another process has seen end."""
        if (own := self._sending(run_id)) is None or own.row.sent is None:
            return
        with suppress(RunsFileUnusable, UpstreamError):
            row = await self.find(run_id)
            if row is not None and _has_ended(row):
                self._over(await self.look(row))

    async def listed(self, most: int) -> list[JsonObject]:
        """Return the last runs, the newest first, as `Research.list` does."""
        shown: list[JsonObject] = []
        now = self.clock()
        for row in filter(self._is_remembered, await self.use(lambda file: file.recent(self.account, most))):
            view = self.known(row.id)
            if view is None or (view.running and _has_ended(row)):  # as another process has seen
                view = view_of_row(row, now)
            entry: JsonObject = {
                "run_id": row.id,
                "status": row.status if row.status in WITH_ANSWER and row.key else view.status,
                "seconds_ago": round(max(0.0, now - row.created), 1),
                "model": row.model,
            }
            named = {"label": row.label, "effort": row.effort}
            shown.append(entry | {name: each for name, each in named.items() if each} | used(row.usage or view.usage))
        return shown

    async def look_at_all(self) -> None:
        """Look at all runs that go on and are not sent by this process."""
        await self._look_at(await self.use(lambda file: file.going_on(self.account)))

    async def make_place(self, most: int, *, looked: bool) -> None:
        """Look at the runs that go on, one of which may have ended. Raises `LimitReached` where that was done."""
        rows = [row for row in await self.use(lambda file: file.going_on(self.account)) if row.tool == "research"]
        if not looked:
            await self._look_at([row for row in rows if row.created < self.clock() - _OLD])
        elif len(rows) >= most:
            ids = ", ".join(row.id for row in rows[:10])
            raise LimitReached(
                f"{len(rows)} runs are going on, and research.max_running (RESEARCH_MAX_RUNNING) allows {most}: {ids}. "
                "Wait for one with research_result, or cancel one with research_cancel, and ask again."
            )

    async def _look_at(self, rows: Sequence[Row]) -> None:
        async def look(row: Row) -> None:
            with suppress(ResponsesMcpError):
                await self.look(row)

        async with trio.open_nursery() as looks:
            for row in rows:
                if row.id not in self.own:
                    looks.start_soon(look, row)

    async def look(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, from its row and one look at the API; what is found is written.

        Raises `UpstreamError` where a run has ended and its answer cannot be had now.
        """
        now, known = self.clock(), self.done.get(row.id)
        if known is not None and not known.may_go_on:
            return known
        view = view_of_row(row, now) if known is None or row.confirmed else known
        if not row.key or not (row.status in (None, *WITH_ANSWER) or row.may_go_on):
            return view if row.status is not None else await self._unseen(row, view)
        if row.status is None and row.cancel_asked:
            return await self.cancel_at_api(row)
        try:
            found = await self.stored.look_up(row.key, seconds=_LOOK)
        except UpstreamError as error:
            return await self._unread(row, error, view)
        if has_ended(found):
            return await self.finish(row, found)
        if row.status in WITH_ANSWER:
            raise UpstreamError(_NOT_SHOWN)
        late = now > (row.sent or row.created) + row.may_take
        if row.status is not None and (late or row.status == "cancelled"):
            return view
        if row.status is not None:
            with suppress(RunsFileUnusable):
                await self.use(lambda file: file.reopen(row.id))
            row = replace(row, status=None, reason=None, ended=None, maybe_paid=False, cancel_asked=False)
        if late:
            return await self.cancel_at_api(row, late=True)
        usage = self._meter.usage_of(row.model, found)
        return view_of_row(replace(row, usage=usage.as_json() if usage.counted else None), now, found)

    async def _unseen(self, row: Row, view: RunView) -> RunView:
        """Return how far a run is that goes on and has no id: it is not sent, or was sent without an answer so far."""
        now = self.clock()
        if row.sent is None:
            waits = now < row.created + UNSENT_SECONDS + LONGEST_PAUSE
            return view if waits else await self.end(row, "failed", NEVER_ASKED)
        if now < row.sent + (ID_SECONDS if row.kept else row.may_take):
            return view
        if row.cancel_asked:
            return await self.end(row, "cancelled", _UNTOLD, maybe_paid=True)
        return await self.end(row, "failed", why_lost(row, None), maybe_paid=True)

    async def _unread(self, row: Row, error: UpstreamError, view: RunView) -> RunView:
        """Return what a look that failed means: the run goes on, or is lost. Raises the error of one that has ended."""
        now, sent = self.clock(), row.sent or row.created
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
            return await self.end(row, "failed", GONE, maybe_paid=True)
        if now > sent + row.may_take:
            return await self.end(row, "failed", f"{too_late(row)} {error.message}", failure=error, maybe_paid=True)
        return replace(view, phase=f"the run cannot be looked up: {error.message}"[:_LONGEST_PHASE])

    # Cancelling

    async def cancel(self, run_id: str) -> RunView:
        """Cancel a run and return how it ended; one that has ended stays so. Raises as `look` does."""
        row, is_marked = await self.row_of(run_id), False
        if row.status is not None and not row.may_go_on:
            return await self.view(run_id)
        if (own := self._sending(run_id)) is not None:
            own.cancelling = True
        with trio.move_on_after(_WITHDRAW):
            while row.status is None and not row.key:
                if row.sent is None:
                    view = await self.end(row, "cancelled", CANCELLED, confirmed=True)
                    if not view.running:
                        return view
                elif not row.kept:
                    break
                if not is_marked:  # for whoever learns the id
                    is_marked = True
                    try:
                        await self.use(lambda file: file.ask_cancel(run_id))
                    except RunsFileUnusable:
                        if own is None:
                            raise
                await trio.sleep(_POLL)
                row = await self.row_of(run_id)
        if (own := self._sending(run_id)) is not None:
            row = own.row  # whose id may have come in the last moment
        if row.key and (row.status is None or row.may_go_on):
            return await self.cancel_at_api(row)
        if own is None:
            return await self.view(run_id)
        view = await self.end(own.row, "cancelled", _UNTOLD if row.kept else _CLOSED_ONLY, maybe_paid=True)
        with trio.move_on_after(LEAVING):
            await own.handle.over.wait()
        # The id may have come while the end was written.
        return await self.cancel_at_api(own.row) if own.row.key else view

    async def cancel_at_api(self, row: Row, *, late: bool = False) -> RunView:
        """Tell the API to stop a response, and return how the run ended; `late` says that its time was over."""
        handle = self.own[row.id].handle if row.id in self.own else None
        if handle is not None:
            handle.tell("cancelling")
        found, refused, until = JsonObject(), False, trio.current_time() + CANCELS_FOR
        while not (has_ended(found) or refused or trio.current_time() > until):
            if found:
                await trio.sleep(1)  # the cancel was taken, and the response goes on
            try:
                found = await self.stored.cancel(row.key, seconds=_CANCEL, policy=CANCEL_FOR_SURE)
            except UpstreamError as error:
                log.debug("research: a cancel got no answer: %s", error)
                refused = True
            if not has_ended(found) or (found.get("status") in WITH_ANSWER and not found.get("output")):
                with suppress(UpstreamError):
                    found = await self.stored.look_up(row.key, seconds=_WITHDRAW)
        if handle is not None:
            found = handle.with_last(found if has_ended(found) else {})
        if has_ended(found):
            return await self.finish(row, found, late=late)
        status, why = ("failed", too_late(row)) if late else ("cancelled", CANCELLED)
        failure = DeadlineExceeded(why) if late else None
        view = await self.end(row, status, f"{why}{_NOT_CONFIRMED}", failure=failure, maybe_paid=True)
        if handle is None or handle.unread is None:
            return view
        return self._over(replace(view, error=f"{view.error} The last looks at it failed: {handle.unread.message}"))

    # Ends

    async def finish(self, row: Row, response: JsonObject, *, late: bool | None = None) -> RunView:
        """Write how a run ended, as its Response says, in the ledger first, and return it.

        `late` says whether it was cancelled since its time was over; without it, the row does. Raises as `look` does.
        """
        if late is None:
            late = (row.reason or "").startswith(too_late(row))

        def shown(row: Row) -> RunView:
            policy, zone = self._settings.policy, self._settings.locale.time_zone
            view = view_of_end(
                row,
                response,
                max_citations=policy.max_citations,
                time_zone=zone,
                redact=self.stored.api.redact.known,
                blocked=self._blocked(row),
            )
            if late and view.status == "cancelled":
                why = too_late(row)
                view = replace(view, status="failed", error=why, failure=DeadlineExceeded(why))
            return replace(view, failure=_failure(view.failure, view))

        usage, own = self._meter.usage_of(row.model, response), self.own.get(row.id)
        if own is not None and own.handle.bill is not None:
            usage = usage._replace(attempts=max(own.handle.bill.attempts, 1))
        is_written = row.status in WITH_ANSWER
        if not is_written or row.usage is None:
            row = replace(row, usage=usage.as_json())
        if not is_written or row.ended is None:
            row = replace(row, ended=self._ended_at(row, response))
        view = shown(row)
        if not is_written:
            row = replace(row, status=view.status, reason=view.error)
            return await self._write_end(
                replace(row, maybe_paid=view.maybe_paid, confirmed=view.confirmed), usage, view
            )
        if view.status not in WITH_ANSWER:
            raise UpstreamError(_NOT_SHOWN)
        return self._over(view)

    async def end(
        self,
        row: Row,
        status: str,
        reason: str,
        *,
        failure: Exception | None = None,
        maybe_paid: bool = False,
        confirmed: bool = False,
    ) -> RunView:
        """Write how a run ended of which the API says nothing, and return it.

        A run that was not sent is looked at where another process has sent it meanwhile, or seen its end.
        """
        own = self.own.get(row.id)
        bill = own.handle.bill.usage if own is not None and own.handle.bill is not None else UNSENT
        usage = bill if bill.attempts else MAYBE_PAID if maybe_paid else UNSENT
        row = replace(row, status=status, reason=reason, maybe_paid=maybe_paid, confirmed=confirmed)
        row = replace(row, ended=self._now(row), usage=usage.as_json() if usage.attempts else None)
        view = view_of_row(row, 0.0)
        if isinstance(failure, ResponsesMcpError):
            view = replace(view, failure=_failure(failure, view))
        return await self._write_end(row, usage, view)

    async def _write_end(self, row: Row, usage: Usage, view: RunView) -> RunView:
        """Write how a run ended, in the ledger first, and return its `view`, or what another process has written."""
        settle = partial(self._meter.settle, call_of(row), usage, response_id=row.key or None)
        if row.sent is not None:
            await settle()
        row = replace(row, reason=_unquoted(row.reason, view.failure))
        try:
            is_first = await self.use(lambda file: file.end(row))
        except RunsFileUnusable as error:
            if row.sent is None and row.id not in self.own:
                raise
            log.warning("research: the end of a run cannot be written: %s", error)
            is_first = True
            self._unwritten.append(row)
        if not is_first:
            with suppress(RunsFileUnusable, UpstreamError):
                if (found := await self.find(row.id)) is not None:
                    view = await self.look(found)
        elif row.sent is None:  # nothing is to be settled for a run that was sent after all
            await settle()
        return view if view.running else self._over(view)

    def _over(self, view: RunView) -> RunView:
        """Have all who wait here know how a run ended, and stop its work."""
        self.done[view.run_id] = view
        if (own := self.own.get(view.run_id)) is not None:
            own.handle.stop()
        return view

    def _now(self, row: Row) -> float:
        """Return the time; for a run of this process, as a clock says that nobody sets."""
        own = self.own.get(row.id)
        return self.clock() if own is None else row.created + trio.current_time() - own.began

    def _ended_at(self, row: Row, response: JsonObject) -> float:
        """Return when a run ended: as the API tells it, in whole seconds of its clock, where nobody was there."""
        told, now = response.get("completed_at"), self._now(row)
        if isinstance(told, int | float) and row.created <= told < now - _UNWATCHED:
            return float(told)
        return now

    def _blocked(self, row: Row) -> Sequence[str]:
        """Return the domains that a reader of a run does not want cited: those of its profile here."""
        profiles = self._settings.model_profiles
        profile = profiles.get(PROFILES.get(row.effort, row.tool)) or profiles.get("answer")
        return () if profile is None else bare_hosts(profile.blocked_domains)


def _has_ended(row: Row) -> bool:
    """Tell whether the API has told how a run ended."""
    return row.status in WITH_ANSWER or row.confirmed


def call_of(row: Row) -> Call:
    """Return what names a run in the ledger."""
    return Call(row.id, row.created, row.tool, row.model, row.client, UNSENT_SECONDS + row.may_take)


def too_late(row: Row) -> str:
    """Say that a run took too long, and what to do."""
    return (
        f"It took longer than {row.may_take:g} s and was cancelled; raise research.timeout_ms "
        "(RESEARCH_TIMEOUT_MS, in milliseconds), or ask for less."
    )


def why_lost(row: Row, error: Exception | None) -> str:
    """Say why a run failed that may have been paid for."""
    if row.key:
        return GONE if error is not None and GONE in str(error) else f"{error} It may have an answer: {LATER} later."
    cause = f" ({error})" if error is not None else ""
    what = "The request was sent, and no id came back"
    if not row.kept:
        what = "The connection or the server was lost, and this API keeps nothing that could be taken up"
    return f"{what}{cause}. It may have been paid for, so it was not repeated; ask again if that is worth it."


def _failure(error: ResponsesMcpError | None, view: RunView) -> ResponsesMcpError | None:
    """Return why a run failed, by its type. Its error is of one request, and the run is more than that."""
    if view.status != "failed" or not isinstance(error, UpstreamError):
        return error
    failure = copy(error)
    failure.maybe_paid = view.maybe_paid
    failure.retryable = failure.retryable and not view.maybe_paid
    failure.usage = view.usage
    return failure


def _unquoted(reason: str | None, error: Exception | None) -> str | None:
    """Return why a run failed without the words of the API, which may repeat the question: it is written down."""
    if reason is None or not isinstance(error, UpstreamError) or error.unquoted is None:
        return reason
    return reason.replace(error.message, error.unquoted)
