"""One run as a task: it does what the table of states says, and keeps the run's row true.

The row is written before the request is sent and as soon as its id is known; then every few seconds, which is what
keeps the lease. A run whose lease somebody else took over is left to them at once.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from copy import copy
from dataclasses import dataclass, replace
from typing import Final

import trio

from responses_mcp.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    LimitReached,
    ResponsesMcpError,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.json_types import JsonObject
from responses_mcp.research.conversation import Conversation, conversation_of, followed_up
from responses_mcp.research.keeper import Keeper
from responses_mcp.research.outcome import CANCELLED, LATER, RunView, view_of_end, view_of_row
from responses_mcp.research.runs_file import LEASE_SECONDS, Row, RunsFileUnusable
from responses_mcp.research.states import Action, State, Trigger, transition
from responses_mcp.responses_api.background import (
    ENDED,
    GONE,
    IDLE,
    WITH_ANSWER,
    Looks,
    StoredResponses,
    is_repeatable,
    is_without_background,
    lost_previous,
)
from responses_mcp.responses_api.response.streaming import keeps_nothing
from responses_mcp.responses_api.retry import LONGEST_WAIT, RetryPolicy, backoff
from responses_mcp.responses_api.watcher import Place, Watcher
from responses_mcp.secrets import Redact
from responses_mcp.usage.bill import MAYBE_PAID, UNSENT, Bill, Usage

log = logging.getLogger(__name__)

Billed = Callable[[], AbstractAsyncContextManager[Bill]]
"""Admits a run within the limits and gives its bill."""

HEARTBEAT: Final[float] = LEASE_SECONDS / 4
WITHDRAW: Final = 5.0  # seconds in which the id of a cancelled run may still come
CANCELS_FOR: Final = 20.0  # seconds, after which a cancel that does not get through is given up,
CANCELS_LATER: Final[float] = LONGEST_WAIT  # and after which, where the API asks for a wait
CANCEL_TRY: Final = 5.0  # seconds
_CHECK: Final = 1.0  # seconds in which it is to be found whether an answer is kept

_UNWATCHED: Final = 5.0  # seconds after its end, in which whoever follows it has heard of that
_LONGEST_PHASE: Final = 200  # characters
_LONGEST_REST: Final = 60.0  # seconds between two tries to write the end of a run

NEVER_ASKED: Final = "It was never asked for, and cost nothing; ask again."
NOT_CONFIRMED: Final = " The API did not confirm that, so it may go on, and cost something."
INTERNAL: Final = "Something went wrong within the server; see its debug log. It may have been paid for."


class _WithdrawnError(Exception):
    """The run was cancelled, or left, before its request was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for all runs: how often a refused one is repeated, how answers are read.

    `used` and `settle_left` are those of the meter, for runs that are taken over.
    """

    max_retries: int
    max_citations: int
    time_zone: str
    used: Callable[[str, JsonObject], Usage]
    settle_left: Callable[[Row, Usage], Awaitable[None]]

    def read(self, row: Row, response: JsonObject, redact: Redact) -> RunView:
        """Return what the Response of a run that has ended says."""
        return view_of_end(row, response, max_citations=self.max_citations, time_zone=self.time_zone, redact=redact)


class Run:
    """One run that this process owns. `body` is its request, None for one that was taken over.

    `turn` waits until it may be asked, without one it is asked at once; `billed` then lets it through within the limits
    and gives its bill. Members of its request, or of the search in it, that are
    `fixed` are never left out. `before` is what was said in the run that it follows up, should the API have lost that.
    """

    def __init__(
        self,
        row: Row,
        body: JsonObject | None,
        stored: StoredResponses,
        keeper: Keeper,
        terms: Terms,
        *,
        turn: Callable[[Run], Awaitable[None]] | None = None,
        billed: Billed | None = None,
        fixed: AbstractSet[str] = frozenset(),
        before: Conversation | None = None,
    ) -> None:
        self.row = row
        self.owned = True
        self.is_begun_here = body is not None  # and not taken over
        self.done: RunView | None = None
        self.cancelled = row.cancel_asked  # or it takes too long; it may not have ended
        self.refused: ResponsesMcpError | None = None  # why nothing was asked, once it has ended for that
        self._body = body or {}
        self._stored = stored
        self._keeper = keeper
        self._terms = terms
        self._turn = turn
        self._billed = billed
        self._fixed = fixed
        self._before = before
        self._bill: Bill | None = None
        self._paying = AsyncExitStack()  # what is reserved for it, until it has ended
        self._phase = row.state.value if body is None else "beginning"
        self._place: Callable[[], int | None] | None = None
        self._leaving = False
        self._news = trio.Event()
        self._dirty = trio.Event()
        self._life = trio.CancelScope(shield=True)  # whatever ends its owner: it settles before it is stopped
        self._doing = trio.CancelScope()
        self._begun = trio.Event()  # its time goes on from here: in line, or waiting for a limit, it costs nothing
        self._idle = trio.CancelScope()
        self._checking = trio.CancelScope()  # whether its answer is kept
        self._overtaken: Action | None = None  # what is to be done instead of what is being done
        self._asked = body is None  # the request is about to be sent, or was and has not been refused: so says its row
        self._sent = body is None  # it is on its way, or was and has not been refused
        self._writing = trio.Lock()
        self._end_written = False
        self.id_is_kept = row.response_id is not None  # in the file: from then on others can go on with it
        self._error: ResponsesMcpError | None = None
        self._response: JsonObject = {}
        self._late = False  # it takes too long
        self._looks = Looks()
        self._stops = 0
        self._stopping_since = math.inf
        self._unread: UpstreamError | None = None  # why the last look at it failed
        if body is None:
            self._begun.set()
            self._overtaken = self._happens(Trigger.FOUND)
            if row.cancel_asked:
                self.cancel()

    # For those who wait

    @property
    def view(self) -> RunView:
        """What is to be told of it now."""
        if self.done is not None:
            return self.done
        place = self._place() if self._place is not None else None
        view = view_of_row(self.row, self._keeper.clock())
        going_on = replace(view, error=None, maybe_paid=False, confirmed=False)  # its end may be being written
        return replace(going_on, status="running", phase=self._phase, place=place)

    @property
    def said(self) -> Conversation | None:
        """What another run needs to follow this one up, where the API does not keep it; None without an answer."""
        if not self.is_begun_here or self.done is None or self.done.answer is None:
            return None
        return conversation_of(self._body, self._response, self._stored.api.redact.known, self._before)

    @property
    def is_unasked(self) -> bool:
        """Tell whether nothing was sent, or only what was refused: it ends with its owner, and costs nothing."""
        return self.row.state is State.QUEUED or (self.row.state is State.ASKING and not self._sent)

    async def news(self) -> None:
        """Wait until there is another phase, or an end, or another owner."""
        await self._news.wait()

    def cancel(self) -> None:
        """Have it cancelled; that it is, shows in its end."""
        self.cancelled = True
        self._checking.cancel(reason="there is no time for it")
        action = self._happens(Trigger.CANCEL)
        if action is Action.WAIT_FOR_ID and not self._sent:
            action = self._happens(Trigger.REFUSED)
        elif action is Action.WAIT_FOR_ID and not self.row.durable:  # no id will come; closing is all that can be done
            action = self._happens(Trigger.LOST)
        if action is Action.WAIT_FOR_ID:
            self._doing.deadline = trio.current_time() + WITHDRAW
        elif action is not Action.GO_ON:
            self._overtake(action)

    def leave(self) -> None:
        """Have nothing sent that is not about to be: its id may not come in time, and it would be paid for and lost."""
        self._leaving = True
        self._checking.cancel(reason="there is no time for it")
        if self.is_unasked and not self._asked:
            self.stop()

    async def settle(self) -> None:
        """Wait until its work can be stopped without a loss, and write where it is.

        That is when its id is known, or when no id will come; and once it is cancelled, when it has ended.
        """
        while self.done is None and self.owned and not self._can_be_left:
            await self.news()
        with suppress(RunsFileUnusable):
            await self._write()

    @property
    def _can_be_left(self) -> bool:
        if self.cancelled or self.row.state is State.ENDED:  # its end is being written
            return False
        return self._life.cancel_called or self.row.response_id is not None or not self.row.durable

    def stop(self) -> None:
        """Stop its work as it is."""
        self._life.cancel(reason="its owner leaves")

    # The work

    async def work(self) -> None:
        """Do what it takes until it has ended, or is stopped."""
        with self._life:
            await self._led()

    async def _led(self) -> None:
        try:
            async with self._paying, trio.open_nursery() as nursery:
                nursery.start_soon(self._keep, nursery.cancel_scope)
                nursery.start_soon(self._watch_time)
                await self._live()
                nursery.cancel_scope.cancel(reason="the run has ended")
        except* Exception as bugs:  # other runs, and the server, go on
            log.error("research: a run crashed with %s; this is a bug", type(bugs.exceptions[0]).__name__)  # noqa: TRY400
            log.debug("research: traceback of the crash", exc_info=bugs)
            self.row = replace(self.row, state=State.ENDED)
            self._error = None  # is not why
            if self.done is None:
                try:
                    await self._end(replace(self.row, status="failed", reason=INTERNAL, maybe_paid=True))
                except Exception:  # what made it crash may be in its row
                    log.debug("research: the end of that run could not be written", exc_info=True)

    async def _live(self) -> None:
        action = self._instead()  # found, or cancelled before this first step
        is_looked_up = False
        while self.row.state is not State.ENDED:
            with trio.CancelScope() as self._doing:
                trigger = await self._do(action)
                is_looked_up = action is not Action.ASK and self._response is not self._looks.last
                if self._overtaken is None:
                    action = self._happens(trigger)
            if (instead := self._instead()) is not None:
                action = instead
            elif self._doing.cancelled_caught:  # the time for an id to come is over
                action = self._happens(Trigger.LOST)
        if action is Action.CLOSE and not is_looked_up and self._says_nothing_of_keeping:
            await self._find_whether_it_is_kept()
        await self._close(action)

    @property
    def _says_nothing_of_keeping(self) -> bool:
        return self.row.is_kept and not {"background", "store"} & self._response.keys()

    async def _find_whether_it_is_kept(self) -> None:
        """Look an answer up that came from a server that names neither background mode nor storage.

        Where one was found, that holds for all runs of this process. The run has ended by then: no cancel that comes
        now takes its answer away.
        """
        keeps = True  # for all that is known where no word comes
        if not self._stored.keeps_unsaid:
            self._checking.deadline = trio.current_time() + _CHECK
            with self._checking:
                try:
                    found = await self._stored.look_up(self.row.response_id or "", seconds=_CHECK)
                    self._stored.keeps_unsaid = found.get("id") == self.row.response_id
                except UpstreamError as error:  # perhaps for a moment: the next one is looked up again
                    keeps = error.status not in (400, 404, 405, 410)
        self.row = replace(self.row, durable=keeps)

    async def _do(self, action: Action | None) -> Trigger:
        match action:
            case None:
                if self._turn is not None:
                    await self._turn(self)
                # Not within the moment in which a crash leaves open what was paid for; an error comes back when asking.
                with suppress(UpstreamError):
                    await self._stored.api.prepare()
                return Trigger.TURN
            case Action.ASK:
                return await self._ask()
            case Action.RESUME:
                return await self._follow()
            case Action.LOOK_UP:
                return await self._look_up()
            case _:
                return await self._stop()

    async def _ask(self) -> Trigger:
        """Ask the API, once more in another way if it has no background mode, which cost nothing."""
        if self._billed is not None:
            try:
                self._bill = await self._paying.enter_async_context(self._billed())
            except LimitReached as error:
                self._error = error
                return Trigger.REFUSED
        self.row = replace(self.row, began=self._keeper.clock())
        self._begun.set()
        refused: int | None = None
        if self.row.durable and self.row.model not in self._stored.without_background:
            trigger = await self._ask_in_context()
            if trigger is not Trigger.REFUSED or self.cancelled or not is_without_background(self._error):
                return trigger
            refused = self._error.status if isinstance(self._error, UpstreamError) else None
            self._error = None
        if self.row.durable:
            self.row = replace(self.row, durable=False)
            self.announce()  # to who waits for its id
            self._body = {key: value for key, value in self._body.items() if key not in ("background", "store")}
        trigger = await self._ask_in_context()
        if trigger is Trigger.FINISHED:  # a lost one tells nothing
            self._stored.note_refusal(self.row.model, refused)
        return trigger

    async def _ask_in_context(self) -> Trigger:
        """Ask the API, once more with what was said before if it has lost that, which cost nothing."""
        trigger = await self._ask_once()
        before = self._before
        if trigger is not Trigger.REFUSED or self.cancelled or before is None or not lost_previous(self._error):
            return trigger
        self._before = None
        alone = {key: value for key, value in self._body.items() if key != "previous_response_id"}
        self._body = followed_up(alone, before)
        self._error = None
        return await self._ask_once()

    async def _ask_once(self) -> Trigger:
        """Ask the API: the only place where something that is paid for begins."""
        self._tell(f"asking {self.row.model}")
        with trio.CancelScope() as self._idle:
            try:
                self._response = await self._stored.begin(
                    self._body,
                    watcher=Watcher(self._tell, on_place=self._placed, on_send=self._sending, bill=self._bill),
                    fixed=self._fixed,
                    policy=RetryPolicy(max_retries=self._terms.max_retries, wait=backoff, repeats=self._may_repeat),
                    seconds=self._seconds_left() + WITHDRAW,  # by then it is cancelled
                )
            except _WithdrawnError:
                return Trigger.REFUSED
            except RunsFileUnusable as error:  # what cannot be kept is not begun
                self._error = error
                self._asked = False
                return Trigger.REFUSED
            except UpstreamError as error:
                self._error = error
                if self.row.response_id is None and error.progress == "refused":
                    self._sent = self._asked = False
                    return Trigger.REFUSED
                if self._bill is not None:
                    self._bill.maybe_billed()
                return Trigger.LOST
            if keeps_nothing(self._response):  # as some say in their last event alone
                self.row = replace(self.row, durable=False)
            return self._seen()
        self._error = ConnectionFailed(f"The API was silent for {IDLE:g} s.", maybe_paid=True)
        return Trigger.LOST

    async def _follow(self) -> Trigger:
        self._tell("taking up the stream again")
        with trio.CancelScope(deadline=trio.current_time() + IDLE) as self._idle:
            try:
                self._response = await self._stored.follow(
                    self.row.response_id or "",
                    after=self.row.cursor,
                    watcher=Watcher(self._tell, on_place=self._placed),
                )
                if self._seen() is Trigger.FINISHED:
                    return Trigger.FINISHED
            except UpstreamError as error:
                self._error = error
        return Trigger.UNFINISHED

    async def _look_up(self) -> Trigger:
        try:
            self._response = await self._looks.look(self._stored, self.row.response_id or "")
        except UpstreamError as error:
            self._error = error
            self._unread = error
            if self._looks.is_gone:
                return Trigger.GONE
            if self._looks.is_refused:
                return Trigger.REFUSED
            self._tell(f"the run cannot be looked up: {error.message}")
            return Trigger.LOST
        self._unread = None
        if self._response.get("status") not in ENDED:
            self._tell("working" if self._response.get("status") == "in_progress" else "waiting at the API")
        return self._seen()

    async def _stop(self) -> Trigger:
        self._tell("cancelling")
        if not self._stops:
            self._stopping_since = trio.current_time()
        else:
            asked = self._error.retry_after if isinstance(self._error, UpstreamError) else None
            wait = max(asked or 0.0, backoff(self._stops - 1, 0.0))
            if trio.current_time() + wait > self._stopping_since + (CANCELS_LATER if asked else CANCELS_FOR):
                return await self._ended_or(Trigger.UNCONFIRMED)
            await trio.sleep(wait)
        self._stops += 1
        self._error = None
        seen = Trigger.LOST
        try:
            with trio.move_on_after(CANCEL_TRY):
                once = RetryPolicy(max_retries=0, wait=backoff)  # these are the retries
                found = await self._stored.cancel(self.row.response_id or "", seconds=CANCEL_TRY, policy=once)
                self._response = self._looks.with_last(found)
                seen = self._seen()
        except UpstreamError as error:
            self._error = error
            if error.progress == "refused" and error.status not in (None, 429):
                refused = {404: Trigger.GONE, 409: Trigger.LOST}
                return await self._ended_or(refused.get(error.status, Trigger.UNCONFIRMED))
        return await self._ended_or(seen) if seen is Trigger.UNFINISHED and self._looks.last else seen

    async def _ended_or(self, trigger: Trigger) -> Trigger:
        """Return whether the response has ended, for which its cancel may have been refused; `trigger` if not."""
        before = self._response
        with suppress(UpstreamError), trio.move_on_after(CANCEL_TRY):
            found = await self._stored.look_up(self.row.response_id or "", seconds=CANCEL_TRY)
            self._response = self._looks.with_last(found)
            if (seen := self._seen()) is Trigger.FINISHED:
                return seen
        self._response = self._looks.last or before
        return Trigger.FINISHED if self._looks.last else trigger

    async def _sending(self) -> None:
        """Have it in the file that the request may be sent, before it is. Raises `RunsFileUnusable`."""
        if self._leaving:  # since it was refused
            raise _WithdrawnError
        self._asked = True
        await self._write()
        if self.cancelled or not self.owned:
            raise _WithdrawnError
        self._sent = True

    def _heard(self) -> None:
        """Count silence anew, where the stream can be taken up again; elsewhere, to hang up would lose the answer."""
        self._idle.deadline = trio.current_time() + IDLE if self.row.is_kept else math.inf

    def _may_repeat(self, error: UpstreamError) -> bool:
        self._sent = self._asked = error.progress != "refused"
        self._dirty.set()
        self._idle.deadline = math.inf
        return not (self.cancelled or self._leaving) and is_repeatable(error)

    def _seen(self) -> Trigger:
        """Return what the Response that has come means."""
        nameless = self._response.get("status") == "failed" and "id" not in self._response
        if nameless and self.row.state in (State.FOLLOWING, State.CATCHING_UP):
            return Trigger.LOST  # an event about the stream, which does not tell what became of the response
        if self.row.response_id is None and keeps_nothing(self._response):
            self.row = replace(self.row, durable=False)
        if self.row.response_id is None and self.row.durable:
            self.row = replace(self.row, response_id=self._response.get("id"))
        asking = self.row.state in (State.ASKING, State.WITHDRAWING)
        unsaid = "completed" if asking else None  # a reply to the question that has no status is an answer
        if self._looks.has_ended(self._response, unsaid=unsaid, kept=self.row.is_kept):
            return Trigger.FINISHED
        if self.row.response_id is None:
            self._error = None
            return Trigger.LOST
        if asking:
            self._happens(Trigger.PLACED)
        return Trigger.UNFINISHED

    def _placed(self, place: Place) -> None:
        """Take note of an event: in the step in which it is read, without a checkpoint."""
        known = self.row.response_id is not None
        if not place.kept and not known and self.row.durable:  # whatever it was asked for
            self.row = replace(self.row, durable=False)
            self.announce()
        if place.number is not None:
            self.row = replace(self.row, cursor=max(place.number, self.row.cursor))
        if place.response_id is not None and not known and self.row.durable:
            self.row = replace(self.row, response_id=place.response_id)
            self.announce()
        self._heard()
        if self.row.response_id is None or (known and self.row.state is State.FOLLOWING):
            return
        if self.row.state not in (State.CANCELLING, State.ENDED) and self._happens(Trigger.PLACED) is Action.STOP:
            self._overtake(Action.STOP)

    def _overtake(self, action: Action) -> None:
        self._overtaken = action
        self._doing.cancel(reason="something else is to be done")

    def _instead(self) -> Action | None:
        action, self._overtaken = self._overtaken, None
        return action

    def _happens(self, trigger: Trigger) -> Action:
        state, action = transition(self.row.state, trigger)
        self.row = replace(self.row, state=state)
        self._dirty.set()
        return action

    def _tell(self, phase: str) -> None:
        phase = phase[:_LONGEST_PHASE]  # the query of a search may be of any length
        if self._idle.deadline < math.inf:
            self._heard()
        if phase != self._phase:
            self._phase = phase
            self.announce()

    def when_over(self, callback: Callable[[], object]) -> None:
        """Have something called when it has ended, before that is written down."""
        self._paying.callback(callback)

    def wait_in_line(self, place: Callable[[], int | None] | None) -> None:
        """Have it told how many runs begin before it; None when its turn has come."""
        self._place = place
        self._tell("waiting for its turn" if place is not None else "beginning")

    def announce(self) -> None:
        """Wake all who wait for news."""
        self._news.set()
        self._news = trio.Event()

    # The end

    async def _close(self, action: Action | None) -> None:
        """End it: here what it used is known."""
        row = self.row
        if self._bill is not None and self._bill.attempts:
            row = replace(row, usage=self._bill.usage.as_json())
        elif not self.is_begun_here and action not in (Action.CLOSE, Action.CLOSE_UNASKED, Action.CLOSE_UNPAID):
            await self._terms.settle_left(row, MAYBE_PAID)
        match action:
            case Action.CLOSE:
                # Without an id that can be used, it cannot be had again.
                row = replace(row, usage=await self._taken(), durable=row.is_kept)
                view = self._read(row)
                why = self._why_cancelled() if view.status == "cancelled" else view.error
                self._error = view.failure
                paid, sure = view.maybe_paid, view.confirmed
                row = replace(row, status=view.status, reason=why, maybe_paid=paid, confirmed=sure)
            case Action.CLOSE_UNASKED:
                if not self.is_begun_here:
                    await self._terms.settle_left(row, UNSENT)
                status, why = ("cancelled", self._why_cancelled()) if self.cancelled else ("failed", NEVER_ASKED)
                row = replace(row, status=status, reason=why, confirmed=self.cancelled)
            case Action.CLOSE_UNPAID:
                self.refused = self._error
                row = replace(row, status="failed", reason=str(self._error) if self._error else NEVER_ASKED)
            case Action.CLOSE_UNKNOWN:
                status = "cancelled" if self.cancelled else "failed"
                row = replace(row, status=status, reason=self._why_unknown(), maybe_paid=True)
            case Action.CLOSE_UNREAD:
                why = f"{self._error} It may have an answer, which was paid for; {LATER} later."
                row = replace(row, status="failed", reason=why, maybe_paid=True)
            case Action.CLOSE_GONE:
                self._error = UnusableReply(GONE, maybe_paid=True)  # the look-up's 404 is about the request
                row = replace(row, status="failed", reason=GONE, maybe_paid=True)
            case _:
                why = f"{self._why_cancelled()}{NOT_CONFIRMED}"
                row = replace(row, status="cancelled", reason=why, maybe_paid=True)
        if self._late and row.status == "cancelled":
            row = replace(row, status="failed")
        await self._end(row)

    def _why_cancelled(self) -> str:
        if self._late:
            unread = "" if self._unread is None else f" The last looks at it failed: {self._unread.message}"
            return (
                f"It took longer than {self.row.may_take:g} s and was cancelled; raise research.timeout_ms "
                f"(RESEARCH_TIMEOUT_MS, in milliseconds), or ask for less.{unread}"
            )
        return CANCELLED

    def _why_unknown(self) -> str:
        if self._late and not self.row.durable:
            return f"{self._why_cancelled()} This API keeps nothing that could be taken up; it may cost something."
        if self.cancelled and not self.row.durable:
            return "The run was cancelled by closing its connection, the only way with this API; it may cost something."
        if self.cancelled:
            return "The run was cancelled before its id was known, so the API could not be told; it may cost something."
        cause = f" ({self._error})" if self._error is not None else ""
        what = "The request was sent, and no id came back"
        if not self.row.durable:
            what = "The connection or the server was lost, and this API keeps nothing that could be taken up"
        return f"{what}{cause}. It may have been paid for, so it was not repeated; ask again if that is worth it."

    async def _taken(self) -> JsonObject:
        """Return what the run used; the ledger is told of one that was taken over, which has no bill to settle."""
        if self._bill is not None:
            self._bill.take(self._response)
            return self._bill.usage.as_json()
        usage = self._terms.used(self.row.model, self._response)
        await self._terms.settle_left(self.row, usage)
        return usage.as_json()

    def _read(self, row: Row) -> RunView:
        response = self._response
        if not response.get("tools"):  # the API's own repeats them
            response = {**response, "tools": self._body.get("tools")}
        return self._terms.read(row, response, self._stored.api.redact.known)

    async def _end(self, row: Row) -> None:
        """Write how it ended, and let it be told; where that cannot be written, it is told, and written later."""
        now = self._keeper.clock()
        row = replace(row, state=State.ENDED, ended=self._ended_at(row, now))
        view = self._read(row) if row.status in WITH_ANSWER else view_of_row(row, now)
        if row.status == "failed":
            view = replace(view, failure=self._failure(row))
        self.row = replace(row, reason=self._unquoted(row.reason))
        tries = 0
        while not await self._is_written():
            if not tries:
                log.warning("research: the end of a run cannot be written yet")
                self.done = view
                self.announce()
                await self._paying.aclose()  # others may be asked meanwhile
            tries += 1
            await trio.sleep(min(tries, _LONGEST_REST))
        if self.owned:
            self.done = view
        self.announce()

    def _ended_at(self, row: Row, now: float) -> float:
        """Return when it ended: as the API tells it, in whole seconds of its clock, where nobody was there."""
        told = self._response.get("completed_at")
        if isinstance(told, int | float) and row.created <= told < now - _UNWATCHED:
            return told
        return now

    def _failure(self, row: Row) -> ResponsesMcpError | None:
        """Return why it failed, by its type. Its error is of one request, and the run is more than that."""
        if self._late:
            failure: UpstreamError = DeadlineExceeded(row.reason or "", maybe_paid=row.maybe_paid)
        elif isinstance(self._error, UpstreamError):
            failure = copy(self._error)
            failure.maybe_paid = row.maybe_paid
            failure.retryable = failure.retryable and not row.maybe_paid
        else:
            return self._error
        failure.usage = row.usage
        return failure

    def _unquoted(self, reason: str | None) -> str | None:
        """Return why it ended without the words of the API, which may repeat the question: it is written down."""
        for error in (self._error, self._unread):
            reason = unquoted(reason, error)
        return reason

    async def _is_written(self) -> bool:
        try:
            await self._write()
        except RunsFileUnusable as error:
            log.debug("research: %s", error)
            return False
        return True

    # The row

    @trio.lowlevel.enable_ki_protection
    async def _keep(self, everything: trio.CancelScope) -> None:
        told = False
        while self.owned:
            with trio.move_on_after(HEARTBEAT):
                await self._dirty.wait()
            self._dirty = trio.Event()
            if self.row.state is State.ENDED:
                return  # the end is written by itself
            try:
                await self._write()
                told = False
            except RunsFileUnusable as error:
                if not told:
                    log.warning("research: a run goes on, but cannot be kept: %s", error)
                told = True
                self._dirty.set()
                await trio.sleep(1)  # before others take its owner for lost
        everything.cancel(reason="another server owns the run")
        self.announce()

    async def _write(self) -> None:
        """Write the row as it is, and take note of what others have written. Raises `RunsFileUnusable`."""
        async with self._writing:  # in order: an older state must not be written over a later one
            row = self.row
            if self._end_written or (row.state is State.ENDED and row.status is None):  # the latter is written by _end
                return
            ends = row.status is not None
            if row.state is State.ASKING and not self._asked:  # it waits for a limit: nothing can have been paid for
                row = replace(row, state=State.QUEUED)
            self._end_written = ends
            try:
                cancel_asked = await self._keeper.use(lambda file: file.keep(row))
            except BaseException:
                self._end_written = False
                raise
        if row.response_id is not None and not self.id_is_kept:
            self.id_is_kept = True
            self.announce()
        if cancel_asked is None:
            self.owned = False
        elif cancel_asked and not self.cancelled and row.status is None:
            self.cancel()

    @trio.lowlevel.enable_ki_protection
    async def _watch_time(self) -> None:
        await self._begun.wait()
        await trio.sleep(self._seconds_left())
        if self.cancelled:
            return
        self._late = True
        self.cancel()

    def _seconds_left(self) -> float:
        left = (self.row.began or self.row.created) + self.row.may_take - self._keeper.clock()
        return min(max(0.0, left), self.row.may_take)  # the clock may have been set back since


def unquoted(reason: str | None, error: ResponsesMcpError | None) -> str | None:
    """Return why a run failed without the words of the API in one of the errors that it is made of."""
    if reason is None or not isinstance(error, UpstreamError) or error.unquoted is None:
        return reason
    return reason.replace(error.message, error.unquoted)
