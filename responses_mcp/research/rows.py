"""What is done with the row of a run, whichever process has sent it: it is found, looked at, cancelled and ended.

Everybody works on the row. A run of this process is a row whose request this process has, which tells more of it. A
look at the API costs nothing, so any number of processes may look. The first that sees the end of a run writes it, in
the ledger before. A row is ended without the API's word only where the API cannot be asked: the request was not sent,
or its id never came; or where the API does not answer, and then a later look counts.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from responses_mcp.errors import BadArgument, DeadlineExceeded, ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.research.inquiry import PROFILES
from responses_mcp.research.runs_file import GOES_ON, UNSENT, UNTOLD, Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import CANCELLED, LATER, NEVER_ASKED, RunView, too_late, view_of_end, view_of_row
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
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.request.payload import bare_hosts
from responses_mcp.settings.model import Settings
from responses_mcp.usage.bill import MAYBE_PAID, Call
from responses_mcp.usage.bill import UNSENT as UNSENT_USAGE
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
_FILE: Final = 10.0  # seconds that a use of the file may take
_MOST_DONE: Final = 32  # ended runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64
_LONGEST_PHASE: Final = 200  # characters
_NOT_CONFIRMED: Final = " The API did not confirm that, so it may go on, and cost something."
_UNTOLD: Final = "The run was cancelled before its id was known, so the API could not be told; it may cost something."
_NOT_SHOWN: Final = "The run has ended, and the API does not show its answer now; ask for it later."

InThread = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs a function that blocks, and gives what it returns."""


@dataclass(eq=False)
class Own:
    """The request of a run that this process sends, or has sent, and the row as this process has `written` it last.

    `began` is its beginning on Trio's clock. `writing` is held while the row is written.
    """

    written: Row
    handle: Handle
    began: float
    writing: trio.Lock = field(default_factory=trio.Lock)

    @property
    def row(self) -> Row:
        """The row as the response now says."""
        handle, sent = self.handle, self.written.sent
        return replace(self.written, sent=sent if handle.sent else None, response_id=handle.id, kept=handle.kept)

    def known(self, row: Row | None) -> Row:
        """Return the row as the file has it, unless it is about this very request, of which this process knows more."""
        if row is None or (row.sent == self.written.sent and row.is_untold and not self.handle.over.is_set()):
            return replace(self.row, cancel_asked=row is not None and row.cancel_asked)
        return row


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

    `own` are those that this process sends, `done` how the last have ended, `cancelling` those that are being cancelled
    here. Methods raise `RunsFileUnusable`, and `BadArgument` for an unknown id.
    """

    def __init__(
        self, settings: Settings, api: ResponsesApi, *, meter: Meter, in_thread: InThread, clock: Callable[[], float]
    ) -> None:
        self.own: dict[str, Own] = {}
        self.done = LastOf[RunView](_MOST_DONE)
        self.cancelling = set[str]()
        self.stored = StoredResponses(api)
        self.clock = clock
        self._ended = LastOf[Row](_MOST_DONE)  # the rows of `done`
        self._unwritten: dict[str, tuple[Row, str, JsonObject]] = {}  # ends: the row before, the condition, the values
        self._settings = settings
        self._meter = meter
        self._in_thread = in_thread
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
                for run_id, (row, only, values) in list(self._unwritten.items()):
                    file.change(row, only, **values)
                    del self._unwritten[run_id]
            return work(file)

        try:
            with trio.move_on_after(_FILE):
                done: T = await self._in_thread(do)
                return done
        except RuntimeError as error:  # "can't start new thread"
            raise RunsFileUnusable(f"The file of runs cannot be used for now: {error}.") from error
        raise RunsFileUnusable("The file of runs did not answer in time; check the disk that research.state_dir is on.")

    async def find(self, run_id: str) -> Row:
        """Return the row of a run, as far as it is now."""
        row: Row | None = None
        if len(run_id) <= _LONGEST_ID and run_id.isascii():
            try:
                row = await self.use(lambda file: file.get(run_id, self.account))
            except RunsFileUnusable:
                if self._known(run_id, None) is None:
                    raise
        if (row := self._known(run_id, row)) is None or not self._is_remembered(row):
            days = self._settings.research.keep_days
            raise BadArgument(f"There is no run with that id; list the runs to see those of the last {days} days.")
        return row

    def _known(self, run_id: str, row: Row | None) -> Row | None:
        """Return a row with what this process knows better than the file."""
        if row is None or run_id in self._unwritten:
            row = self._ended.get(run_id, row)
        own = self.own.get(run_id)
        return row if own is None else own.known(row)

    def _is_remembered(self, row: Row) -> bool:
        return row.status is None or row.created >= self.clock() - self._settings.research.keep_days * 86_400

    async def recent(self, most: int) -> list[Row]:
        """Return the last runs, the newest first."""
        rows = await self.use(lambda file: file.recent(self.account, most))
        known = [row for each in rows if (row := self._known(each.id, each)) is not None]
        return [row for row in known if self._is_remembered(row)]

    # Looking

    def seen(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, as this process knows without a look."""
        done, own = self.done.get(row.id), self.own.get(row.id)
        if (
            done is not None
            and done.status == row.status
            and (done.answer is not None or done.confirmed == row.confirmed)
        ):
            return done
        view = view_of_row(row, self._now(row))
        if own is None or row.status is not None or row.cancel_asked:
            return view
        return replace(view, phase=own.handle.phase, searches=own.handle.searches)

    async def look(self, row: Row) -> RunView:
        """Return how far a run is, or how it ended, from its row and one look at the API; what is found is written.

        Raises `UpstreamError` where a run has ended and its answer cannot be had now.
        """
        now, view, has_answer = self.clock(), self.seen(row), row.status in WITH_ANSWER
        if (row.id in self.own and row.status is None) or not (row.is_untold or has_answer) or view.answer is not None:
            return view
        if not row.key:
            return await self._look_without_id(row, view)
        if row.status is None and row.cancel_asked:
            return await self.cancel_at_api(row)
        late = row.is_late(now)
        try:
            found = await self.stored.look_up(row.key)
        except UpstreamError as error:
            return await self._unread(row, error, view, late=late)
        if has_ended(found):
            return await self.finish(row, found)
        if has_answer:
            raise UpstreamError(_NOT_SHOWN)
        if row.status == "cancelled" or (row.status is not None and late):
            return view
        if late:
            return await self.cancel_at_api(row)
        goes_on: JsonObject = {"status": None, "reason": None, "ended": None, "maybe_paid": False}
        if row.status is not None:  # it was given up
            with suppress(RunsFileUnusable):
                await self.use(lambda file: file.change(row, UNTOLD, **goes_on, cancel_asked=False))
        usage = self._meter.usage_of(row.model, found)
        known = usage.as_json() if usage.counted else None
        return view_of_row(replace(row, **goes_on, cancel_asked=False, usage=known), now, found)

    async def _look_without_id(self, row: Row, view: RunView) -> RunView:
        """Return how far a run is that has no id: it is not sent, or was sent without an answer so far."""
        if row.status is not None:
            return view
        if row.sent is None:
            waits = self.clock() < row.created + UNSENT_SECONDS + LONGEST_PAUSE
            return view if waits else await self.end(row, "failed", NEVER_ASKED)
        if self.clock() < row.sent + (ID_SECONDS if row.kept else row.may_take):
            return view
        status, why = ("cancelled", _UNTOLD) if row.cancel_asked else ("failed", why_lost(row, None))
        return await self.end(row, status, why, maybe_paid=True)

    async def _unread(self, row: Row, error: UpstreamError, view: RunView, *, late: bool) -> RunView:
        """Return what a look that failed means: the run goes on, or is lost. Raises the error of one that has ended."""
        gone = error.status == HTTPStatus.NOT_FOUND
        if row.status in WITH_ANSWER:
            if gone:
                error.message = (
                    f"The run has ended, and the API no longer has its answer. {KEPT_SO_LONG} Asking again pays again."
                )
            raise error
        if row.status is not None:
            return view
        if gone and self.clock() > (row.sent or row.created) + ID_SECONDS:
            return await self.end(row, "failed", GONE, maybe_paid=True)
        if late:
            return await self.end(row, "failed", f"{too_late(row)} {error.message}", failure=error, maybe_paid=True)
        return replace(view, phase=f"the run cannot be looked up: {error.message}"[:_LONGEST_PHASE])

    # Cancelling

    async def cancel(self, run_id: str) -> RunView:
        """Cancel a run and return how it ended; one that has ended stays so. Raises as `look` does."""
        self.cancelling.add(run_id)
        try:
            return await self._cancel(run_id)
        finally:
            self.cancelling.discard(run_id)

    async def _cancel(self, run_id: str) -> RunView:
        is_marked = False
        ends = trio.current_time() + _WITHDRAW
        while True:
            row = await self.find(run_id)
            if row.key and row.is_untold:
                return await self.cancel_at_api(row)
            if row.status is not None:
                return await self.look(row)
            if row.sent is None:
                view = await self.end(row, "cancelled", CANCELLED, confirmed=True)
                if not view.running:
                    return view
            elif not row.kept or trio.current_time() >= ends:
                return await self._cancel_without_id(row)
            if not is_marked:  # for whoever learns the id
                is_marked = True
                with suppress(RunsFileUnusable) if run_id in self.own else nullcontext():
                    await self.use(lambda file: file.change(row, GOES_ON, cancel_asked=True))  # noqa: B023
            await trio.sleep(_POLL)

    async def _cancel_without_id(self, row: Row) -> RunView:
        """End a run whose id has not come. Where another process sends it, that cancels it once it has the id."""
        view = await self.end(row, "cancelled", _UNTOLD, maybe_paid=True)
        own = self.own.get(row.id)
        if own is None:
            return view
        with trio.move_on_after(LEAVING):
            await own.handle.over.wait()
        # The id may have come while the end was written.
        return await self.cancel_at_api(own.row) if own.row.key else view

    async def cancel_at_api(self, row: Row) -> RunView:
        """Tell the API to stop a response, and return how the run ended."""
        own = self.own.get(row.id)
        if own is not None:
            own.handle.tell("cancelling")
        found, refused = JsonObject(), False
        until = trio.current_time() + CANCELS_FOR
        while not (has_ended(found) or refused or trio.current_time() > until):
            if found:
                await trio.sleep(1)  # the cancel was taken, and the response goes on
            try:
                found = await self.stored.cancel(row.key, seconds=_CANCEL)
            except UpstreamError as error:
                log.debug("research: a cancel got no answer: %s", error)
                refused = True
            if not has_ended(found) or lacks_answer(found):
                with suppress(UpstreamError):
                    found = await self.stored.look_up(row.key, seconds=_WITHDRAW)
        if own is not None and own.handle.found:  # an end without the answer
            found = {**own.handle.found, **(found if has_ended(found) else {})}
        if has_ended(found):
            return await self.finish(row, found)
        is_late = row.is_late(self._now(row))
        why = too_late(row) if is_late else CANCELLED
        failure = DeadlineExceeded(why) if is_late else None
        status = "failed" if is_late else "cancelled"
        return await self.end(row, status, f"{why}{_NOT_CONFIRMED}", failure=failure, maybe_paid=True)

    # Ends

    async def finish(self, row: Row, response: JsonObject) -> RunView:
        """Write how a run ended, as its Response says, in the ledger first, and return it. Raises as `look` does."""
        usage, own = self._meter.usage_of(row.model, response), self.own.get(row.id)
        if own is not None and own.handle.bill is not None:
            usage = usage._replace(attempts=max(own.handle.bill.usage.attempts, 1))
        is_written = row.status in WITH_ANSWER
        if not is_written or row.usage is None:
            row = replace(row, usage=usage.as_json())
        if not is_written or row.ended is None:
            row = replace(row, ended=self._ended_at(row, response))
        policy, zone = self._settings.policy, self._settings.locale.time_zone
        profiles = self._settings.model_profiles
        profile = profiles.get(PROFILES.get(row.effort, row.tool)) or profiles.get("answer")
        view = view_of_end(
            row,
            response,
            max_citations=policy.max_citations,
            time_zone=zone,
            redact=self.stored.api.redact.known,
            blocked=() if profile is None else bare_hosts(profile.blocked_domains),
        )
        view = replace(view, failure=_failure(view.failure, view))
        if not is_written:
            return await self._write_end(row, UNTOLD, usage, view)
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
        """Write how a run ended of which the API says nothing, and return it, or what became of it meanwhile."""
        own = self.own.get(row.id)
        bill = own.handle.bill.usage if own is not None and own.handle.bill is not None else UNSENT_USAGE
        usage = bill if bill.attempts else MAYBE_PAID if maybe_paid else UNSENT_USAGE
        told = usage.as_json() if usage.attempts else None
        row = replace(row, ended=self._now(row), usage=told)
        end = replace(row, status=status, reason=reason, maybe_paid=maybe_paid, confirmed=confirmed)
        view = view_of_row(end, 0.0)
        if isinstance(failure, ResponsesMcpError):
            view = replace(view, failure=_failure(failure, view))
        return await self._write_end(row, GOES_ON if row.sent is not None else UNSENT, usage, view)

    async def _write_end(self, row: Row, only: str, usage: Usage, view: RunView) -> RunView:
        """Write how a run ended, in the ledger first, and return its `view`, or what another process has written."""
        settle = partial(self._meter.settle, call_of(row), usage, response_id=row.key or None)
        if row.sent is not None:
            await settle()
        before = replace(row, status=None, ended=None, usage=None)
        values: JsonObject = {name: getattr(view, name) for name in ("status", "maybe_paid", "confirmed")}
        values |= {"reason": _unquoted(view), "ended": row.ended, "usage": row.usage, "kept": row.kept}
        try:
            is_first = await self.use(lambda file: file.change(before, only, **values))
        except RunsFileUnusable as error:
            if row.sent is None and row.id not in self.own:
                raise
            log.warning("research: the end of a run cannot be written: %s", error)
            is_first = True
            self._unwritten[row.id] = before, only, values
        if is_first:
            self._ended[row.id] = replace(before, **values)
            if row.sent is None:  # nothing is to be settled for a run that was sent after all
                await settle()
            return self._over(view)
        with suppress(RunsFileUnusable, BadArgument, UpstreamError):
            found = await self.find(row.id)
            other = self.seen(found) if found.status not in WITH_ANSWER else await self.look(found)
            view = replace(other, failure=other.failure or view.failure) if other.status == view.status else other
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


def call_of(row: Row) -> Call:
    """Return what names a run in the ledger."""
    return Call(row.id, row.created, row.tool, row.model, row.client, UNSENT_SECONDS + row.may_take)


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


def _unquoted(view: RunView) -> str | None:
    """Return why a run failed without the words of the API, which may repeat the question: it is written down."""
    error = view.failure
    if view.error is None or not isinstance(error, UpstreamError) or error.unquoted is None:
        return view.error
    return view.error.replace(error.message, error.unquoted)
