"""Research for Trio programs: questions that take minutes, each asked once, in runs that outlive who waits for them.

    async with open_research(settings) as research:
        run_id = await research.start("What changed in the tax law of 2026?", effort="deep")
        view = await research.result(run_id, wait_seconds=600)

Runs are owned by a nursery in the block. Waiting for one can be cancelled without touching it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import trio

from responses_mcp.errors import BadArgument, ConfigError, ResearchClosed, UpstreamError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.research.conversation import Conversation
from responses_mcp.research.keeper import InThread, Keeper
from responses_mcp.research.outcome import LATER, RunView, day_of, used, view_of_row
from responses_mcp.research.question import Effort, checked, profile_of, run_body
from responses_mcp.research.run import (
    CANCEL_TRY,
    CANCELS_LATER,
    HEARTBEAT,
    NEVER_ASKED,
    NOT_CONFIRMED,
    Run,
    Terms,
    unquoted,
)
from responses_mcp.research.runs_file import LEASE_SECONDS, Row, RunsFile, RunsFileUnusable, is_free, shortened
from responses_mcp.research.states import State
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import ENDED, KEPT_SO_LONG, WITH_ANSWER, StoredResponses
from responses_mcp.responses_api.request.arguments import (
    read_flag,
    read_number,
    read_query,
    read_seconds,
    read_word,
)
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.response.parser import Answer
from responses_mcp.secrets import OutgoingText
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.trace_context import TRACE
from responses_mcp.under_trio import require_trio
from responses_mcp.usage.bill import Bill, Call, Usage
from responses_mcp.usage.meter import Caller, Meter

__all__ = ["Research", "RunView", "open_research"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK: Final = 1.0  # seconds between two looks at a run that another server owns
_LOOK_AFTER: Final = LEASE_SECONDS  # seconds between two looks for runs without an owner
_SURE: Final[float] = 1.5 * HEARTBEAT  # seconds of ours for which an owner whose lease is over may still show itself
# For a cancel: also of a run whose owner was just lost, until it is taken over, and its tries.
_CANCEL_SECONDS: Final[float] = LEASE_SECONDS + _SURE + CANCELS_LATER + 2 * CANCEL_TRY
_LEAVING: Final = 1.0  # seconds in which, at the end, ids may come, and cancels be told to the API
_EXIT: Final = 1.0  # seconds for what else is to be done at the end
_MOST_DONE: Final = 32  # ended runs whose answers are remembered; others are looked up again
_LONGEST_ID: Final = 64
_MOST_LISTED: Final = 100
_USUALLY_LISTED: Final = 20
_CLOSED: Final = "This Research is closed; use it within the block of open_research."


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
        self._meter = meter
        self._nursery = nursery
        self._clock = clock
        folder = settings.research.state_dir
        file = RunsFile(Path(folder), clock) if folder else None  # "" would be the working directory
        self._keeper = None if file is None else Keeper(file, secrets.token_hex(8), in_thread, clock)
        self._terms = Terms(
            max_retries=settings.request.max_retries,
            max_citations=settings.policy.max_citations,
            time_zone=settings.locale.time_zone,
            used=meter.usage_of,
            settle_left=self._settle_left,
        )
        self._runs: dict[str, Run] = {}
        self._done = _Last[RunView](_MOST_DONE)
        self._given_up = _Last[RunView](_MOST_DONE)  # those that may go on at the API
        self._said = _Last[Conversation](_MOST_DONE)  # in runs of this process
        self._questions = _Last[str](_MOST_LISTED)  # of this process, for the list
        self._masked = _Last[Mapping[str, int]](_MOST_LISTED)  # what was, in questions of this process
        self._line: dict[str, trio.Event] = {}  # ids that wait for their turn, in the order in which they were asked
        self._places = settings.research.max_running  # that are free
        self._beginning: dict[str, bool] = {}  # ids of runs that are being added, and whether nobody wants them now
        self._unadded = _Last[bool](_MOST_LISTED)  # ids whose rows a slow disk may write when they are given up
        self._left: list[Run] = []  # at the end, without having ended
        self._lapsed: dict[str, tuple[float, float]] = {}  # leases that are over, and since when we know
        self._looking_after = False
        self._closed = False

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
        fresh: bool = False,
        client: str | None = None,
    ) -> str:
        """Begin a run and return its id, or, unless `fresh`, that of one that goes on about the same question.

        `effort` is `quick`, `standard` or `deep`. Only `domains` are searched, and never `blocked_domains`.
        `recency_days` is a hint. `location` may have `country` (two letters), `region`, `city` and `timezone`.
        `continue_from` is the id of a run that has an answer, which the question follows up. `output_schema` is the
        JSON schema of an object, in which the answer is given then. `stores` are searched along with the web, by their
        names in `research.stores`. `client` is for whom it is asked, as the ledger has it. Raises `BadArgument` for
        what cannot be asked.
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
            known_stores=self._settings.research.stores,
        )
        keeper = self._ready()
        profile = profile_of(inquiry.effort, self._settings)
        follows = read_word("continue_from", continue_from)
        previous = None if follows is None else await self._continued(follows)
        before = None if follows is None else self._said_in(follows)
        zone = self._settings.locale.time_zone
        body = run_body(
            inquiry,
            profile,
            instructions=instructions_for(self._settings.policy, zone),
            today=day_of(self._clock(), zone),
            time_zone=zone,
            store=self._settings.research.store and profile.store,
            previous=previous,
        )
        caller = Caller("research", client, self.redact)
        digest = inquiry.digest(self._account, profile.model, profile.reasoning_effort, follows or "")
        has_schema = inquiry.output_schema is not None
        new = self._row(keeper, inquiry.query, digest, profile, caller, has_schema=has_schema, durable=body["store"])
        run_id = await self._begin(
            new,
            inquiry.query,
            body,
            profile,
            join=join,
            fixed=frozenset({"user_location"} if inquiry.location is not None else ()),
            before=before if isinstance(previous, str) else None,
        )
        if sent.masked:
            self._masked[run_id] = sent.masked
        return run_id

    async def answer(
        self,
        query: str,
        body: JsonObject,
        profile: Profile,
        caller: Caller,
        *,
        seconds: float,
        on_phase: Callable[[str], None] | None = None,
    ) -> RunView:
        """Have a question of a call answered by a run, and return how it ended or, after `seconds`, how far it is.

        `body` is its request without background mode. The run begins at once, whatever `research.max_running` says.
        Cancelling this cancels the run: it is the call that wanted the answer. Raises as `start` does, and why the run
        was refused; `RunsFileUnusable` only where nothing was asked, and nothing will be.
        """
        if self._keeper is None:
            raise RunsFileUnusable("research.state_dir is not set")
        keeper = self._ready()
        new = self._row(keeper, query, secrets.token_hex(16), profile, caller)
        body = {**body, "background": True, "store": True}
        run_id = await self._begin(new, query, body, profile, join=False, in_line=False)
        run = self._runs.get(run_id)  # which ends before this does, where both end with their server
        try:
            view = await self.result(run_id, wait_seconds=seconds, on_phase=on_phase)
        except trio.Cancelled:
            if run is not None:
                run.cancel()
            raise
        except RunsFileUnusable as error:  # of a run that another server goes on with
            log.warning("research: a run cannot be looked at for now: %s", error)
            return replace(view_of_row(new, self._clock()), phase="unknown")
        if run is not None and run.refused is not None:
            raise run.refused
        return view

    def _row(
        self,
        keeper: Keeper,
        query: str,
        digest: str,
        profile: Profile,
        caller: Caller,
        *,
        has_schema: bool = False,
        durable: bool = True,
    ) -> Row:
        now = self._clock()
        return Row(
            id=f"run_{secrets.token_hex(8)}",
            account=self._account,
            digest=digest,
            state=State.QUEUED,
            model=profile.model,
            created=now,
            may_take=self._settings.research.timeout_ms / 1000,
            has_schema=has_schema,
            durable=durable,
            question=replace_lone_surrogates(self._shown(query)) if self._settings.research.keep_questions else None,
            tool=caller.tool,
            client=caller.client_name,
            owner=keeper.owner,
            leased_until=now + LEASE_SECONDS,
        )

    def _shown(self, query: str) -> str:
        """Return what is listed, and maybe kept, of a question: never our own key, whatever may be sent."""
        return shortened(self.redact.known(query))

    async def _begin(
        self,
        new: Row,
        query: str,
        body: JsonObject,
        profile: Profile,
        *,
        join: bool,
        in_line: bool = True,
        fixed: AbstractSet[str] = frozenset(),
        before: Conversation | None = None,
    ) -> str:
        """Begin a run and return its id, or, with `join`, that of one that goes on about the same."""
        keeper = self._ready()

        @asynccontextmanager
        async def billed() -> AsyncGenerator[Bill]:
            call = _call_of(new)
            bill = await self._meter.admit(call, profile)
            try:
                yield bill
            finally:
                await self._meter.settle(call, bill.usage)  # noqa: ASYNC102  # shielded, and bounded, within

        def add(file: RunsFile, besides: set[str]) -> Row | None:
            return None if self._beginning.get(new.id, True) else file.add(new, join=join, besides=besides)

        async def begin() -> str:
            try:
                row = await keeper.use(partial(add, besides=self._over()))
                if row is not None and row.id != new.id:
                    self._leave_line(new.id)
                while row is not None and row.id != new.id and await self._does_not_go_on(row, keeper):
                    row = await keeper.use(partial(add, besides=self._over()))
                if row is not None and row.id == new.id:
                    self._questions[row.id] = self._shown(query)
                    turn = self._turn if in_line else None
                    run = Run(
                        row,
                        body,
                        self._stored,
                        keeper,
                        self._terms,
                        turn=turn,
                        billed=billed,
                        fixed=fixed,
                        before=before,
                    )
                    if in_line:
                        self._stand_in_line(run)  # so that whoever asks now is told
                    self._own(run)
                    if self._beginning[new.id]:
                        run.cancel()
                return new.id if row is None else row.id
            except RunsFileUnusable:
                self._unadded[new.id] = True
                raise
            finally:
                del self._beginning[new.id]
                if new.id not in self._runs:
                    self._leave_line(new.id)

        await trio.lowlevel.checkpoint_if_cancelled()
        self._beginning[new.id] = False
        if in_line:  # now, as nobody knows in which order tasks go on
            self._line[new.id] = trio.Event()
        try:
            return await self._seen_through(begin)
        except trio.Cancelled:  # a run that nobody wants is never asked for
            if (run := self._runs.get(new.id)) is not None:
                run.cancel()
            elif new.id in self._beginning:
                self._beginning[new.id] = True
            raise

    def _over(self) -> set[str]:
        """Return the runs that have ended, or soon will, though the file need not say so."""
        unwanted = {run_id for run_id, given_up in self._beginning.items() if given_up}
        ended = {run_id for run_id, run in self._runs.items() if run.cancelled or run.done is not None}
        return unwanted | ended | set(self._done) | set(self._unadded)

    async def _does_not_go_on(self, row: Row, keeper: Keeper) -> bool:
        """Tell whether a run that was to be joined is over by now, or in line with an owner that may be gone.

        Its question has gone with that: it is taken over, or, while its owner may still show itself, waited for.
        """
        if row.id in self._over():
            return True
        if row.state is not State.QUEUED or row.owner == keeper.owner or not is_free(row, self._clock()):
            return False
        if not await self._take_over(row, keeper):
            await trio.sleep(_SURE)
        return True

    async def _seen_through(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in a task of its own, which whoever gives up waiting for it leaves to go on."""
        done: list[T] = []
        failed: list[Exception] = []
        over = trio.Event()

        @trio.lowlevel.enable_ki_protection
        async def see_through() -> None:
            try:
                done.append(await work())
            except Exception as error:  # noqa: BLE001  # raised where it is waited for
                failed.append(error)
            finally:
                over.set()

        self._nursery.start_soon(see_through)
        await over.wait()
        if failed:
            raise failed.pop()
        if not done:
            raise ResearchClosed(_CLOSED)
        return done[0]

    async def result(
        self, run_id: str, *, wait_seconds: float = 0.0, on_phase: Callable[[str], None] | None = None
    ) -> RunView:
        """Return how a run ended, after waiting for that `wait_seconds` at most; then, how far it is.

        Cancelling this, or its wait coming to an end, leaves the run alone. `on_phase` is told what is going on, in
        words for a person. Raises `BadArgument` for an id that is not known, and `UpstreamError` where a run has ended
        and its answer cannot be had now.
        """
        return await self._waited_for(run_id, read_seconds("wait_seconds", wait_seconds), on_phase=on_phase, look=True)

    async def _waited_for(
        self, run_id: str, seconds: float, *, on_phase: Callable[[str], None] | None = None, look: bool
    ) -> RunView:
        """Do what `result` does. Only with `look` is the API asked what became of a run that was given up."""
        keeper = self._ready()
        _require_id(run_id)
        end = trio.current_time() + seconds
        await trio.lowlevel.checkpoint()  # who asks again and again would stop all else, the run too
        told = None
        while True:
            run = self._runs.get(run_id)
            view = run.view if run is not None else await self._elsewhere(run_id, keeper, look=look)
            if on_phase is not None and view.running and view.phase != told:
                told = view.phase
                on_phase(told)
            if view.answer is not None and (masked := self._masked.get(run_id)) is not None:
                view = replace(view, answer=replace(view.answer, masked=masked))
            if not view.running or trio.current_time() >= end:
                return view
            await self._news(run_id, end)
            self._ready()  # it may have been closed meanwhile

    async def events(self, run_id: str) -> AsyncGenerator[RunView]:  # noqa: ASYNC900  # it yields within no scope
        """Yield how far a run is, each time that there is news, and at last how it ended.

        Close it (`contextlib.aclosing`) when leaving it early. Raises what `result` raises.
        """
        last = None
        while last is None or last.running:
            view = await self.result(run_id, wait_seconds=0.0)
            if last is None or (view.status, view.phase, view.place) != (last.status, last.phase, last.place):
                last = view
                yield view
            else:
                await self._news(run_id, trio.current_time() + LEASE_SECONDS)

    async def cancel(self, run_id: str, *, on_phase: Callable[[str], None] | None = None) -> RunView:
        """Cancel a run, also one that another server owns, and return how it ended; one that has ended stays so.

        Where the API may still work on it, not having confirmed a cancel, it is told again. Takes a minute and a half
        at most, where the API does not answer. Cancelling this leaves the cancel on its way. `on_phase` is told what is
        going on. Raises as `result` does.
        """
        keeper = self._ready()
        view = await self._waited_for(run_id, 0.0, look=False)  # what became of it, the reply to the cancel tells
        if view.may_go_on:
            await keeper.use(lambda file: file.reopen(run_id, cancel=True))
            view = await self._waited_for(run_id, 0.0, look=False)
        if not view.running and not view.may_go_on:
            return view
        run = self._runs.get(run_id)
        if run is not None:
            run.cancel()
        try:  # also of a run of our own: should this process end now, the next one goes on with the cancel
            await keeper.use(lambda file: file.ask_cancel(run_id))
        except RunsFileUnusable:
            if run is None:
                raise
        return await self._waited_for(run_id, _CANCEL_SECONDS, on_phase=on_phase, look=False)

    async def list(self, limit: int = _USUALLY_LISTED) -> Sequence[JsonObject]:
        """Return the last runs, the newest first: `run_id`, `status`, `seconds_ago`, `model`.

        Where they are known, `question` (its first words, of runs of this process, or with `research.keep_questions`)
        `usage` and `cost`.
        """
        keeper = self._ready()
        most = read_number("limit", limit, least=1, most=_MOST_LISTED) or _USUALLY_LISTED
        rows = await keeper.use(lambda file: file.recent(self._account, most))
        now = self._clock()
        shown: list[JsonObject] = []
        for row in rows:
            if self._is_to_be_deleted(row):
                continue
            run = self._runs.get(row.id)
            ended = self._done.get(row.id) if run is None else run.done  # which may not be written yet
            entry: JsonObject = {
                "run_id": row.id,
                "status": row.status or (ended.status if ended is not None else "running"),
                "seconds_ago": round(max(0.0, now - row.created), 1),
                "model": row.model,
            }
            question = row.question or self._questions.get(row.id)
            usage = row.usage if row.usage is not None or ended is None else ended.usage
            shown.append(entry | ({"question": question} if question else {}) | used(usage))
        return shown

    async def take_over(self, seconds: float) -> None:
        """Have the runs that nobody owns taken over, and wait, so many seconds at most, until they have ended.

        Those whose owner may still show itself are only looked up.
        """
        keeper = self._ready()

        async def take_over() -> list[Row]:
            orphans = await keeper.use(lambda file: file.orphans(self._account))
            return [row for row in orphans if not await self._take_over(row, keeper) and row.is_kept]

        with trio.move_on_after(read_seconds("seconds", seconds)):
            unsure = await self._seen_through(take_over)
            async with trio.open_nursery() as looks:
                for row in unsure:
                    looks.start_soon(self._look_whether_ended, row)
            for run in [each for each in self._runs.values() if not each.is_begun_here]:
                while run.done is None and run.owned:
                    await run.news()

    async def wait_for_id(self, run_id: str, seconds: float) -> bool:
        """Wait, so many seconds at most, until a run of this process has an id at the API, or will have none.

        Tell whether it has one: from then on it outlives this process. Where the API has no background mode, none
        comes. Raises `BadArgument` for an id of a run that is not known.
        """
        keeper = self._ready()
        _require_id(run_id)
        end = trio.current_time() + read_seconds("seconds", seconds)
        await trio.lowlevel.checkpoint()
        with trio.move_on_at(end):
            while (run := self._runs.get(run_id)) is not None and run.done is None and run.row.durable:
                if run.id_is_kept:
                    return True
                await run.news()
        if (run := self._runs.get(run_id)) is not None:
            return run.id_is_kept and run.row.durable
        return (await self._row_in_file(run_id, keeper)).is_kept

    def waits_for_id(self, run_id: str) -> bool:
        """Tell whether a run of this process is asked for, and the API has not told an id of it."""
        run = self._runs.get(run_id)
        return run is not None and run.row.durable and run.row.state is State.ASKING and not run.is_unasked

    def is_unasked(self, run_id: str) -> bool:
        """Tell whether a run of this process was not sent to the API, so that it ends here and costs nothing."""
        run = self._runs.get(run_id)
        return run is not None and run.is_unasked

    # The runs of this process

    async def _news(self, run_id: str, until: float) -> None:
        """Wait for news of a run, or a while where it is not on its way here; until a time at most."""
        run = self._runs.get(run_id)
        if run is None:
            await trio.sleep_until(min(until, trio.current_time() + _LOOK))
        elif run.done is None:
            with trio.move_on_at(until):
                await run.news()

    def _ready(self) -> Keeper:
        """Return the file of runs, and see to it that those without an owner are looked after."""
        require_trio()
        if self._closed:
            raise ResearchClosed(_CLOSED)
        if self._settings.problems:
            raise ConfigError(self._settings.problems)
        if self._keeper is None:
            raise ConfigError(
                [
                    "research.state_dir is not set; set it to a folder of yours, or load settings with "
                    'toolsets="answer,research", which choose one where you have a home.'
                ]
            )
        _ = self._account  # which may not be there to be had
        if not self._looking_after:
            self._looking_after = True
            self._nursery.start_soon(self._look_after, self._keeper)
        return self._keeper

    def _own(self, run: Run) -> None:
        self._runs[run.row.id] = run
        if self._closed:  # meanwhile: nobody would tell it to leave
            run.stop()
        self._nursery.start_soon(self._work, run)

    @trio.lowlevel.enable_ki_protection  # as all our tasks: Ctrl-C in one would lose an answer; it strikes Trio's own
    async def _work(self, run: Run) -> None:
        run_id = run.row.id
        try:
            await run.work()
            if run.done is not None:
                (self._given_up if run.done.may_go_on else self._done)[run_id] = run.done
                if (said := run.said) is not None:
                    self._said[run_id] = said
        finally:
            if run.done is None and run.owned:
                self._left.append(run)
            self._leave_line(run_id)
            del self._runs[run_id]
            run.announce()  # whoever waits looks where it is now

    async def _turn(self, run: Run) -> None:
        """Wait until fewer than `research.max_running` runs of this process are on their way."""
        self._call_first()
        try:
            await self._line[run.row.id].wait()
            self._places -= 1
            run.when_over(self._give_place_back)
        finally:  # who is cancelled in line stands in nobody's way
            self._leave_line(run.row.id)
        run.wait_in_line(None)

    def _call_first(self) -> None:
        """Tell the first in line that it may go on: it alone takes a place, and then the next is the first."""
        if self._places and self._line:
            next(iter(self._line.values())).set()

    def _give_place_back(self) -> None:
        self._places += 1
        self._call_first()

    def _leave_line(self, run_id: str) -> None:
        self._line.pop(run_id, None)
        self._call_first()

    def _stand_in_line(self, run: Run) -> None:
        self._line.setdefault(run.row.id, trio.Event())
        if (self._place_of(run.row.id) or 0) >= self._places:
            run.wait_in_line(lambda: self._place_of(run.row.id))

    def _place_of(self, run_id: str) -> int | None:
        return next((place for place, waiting in enumerate(self._line) if waiting == run_id), None)

    @trio.lowlevel.enable_ki_protection
    async def _look_after(self, keeper: Keeper) -> None:
        """Take over runs that nobody owns, now and then, and forget old ones."""
        TRACE.set({})  # they are of other calls than the one that came first
        while True:
            try:
                orphans = await keeper.use(lambda file: file.orphans(self._account))
                found = {row.id for row in orphans}
                self._lapsed = {run_id: lease for run_id, lease in self._lapsed.items() if run_id in found}
                for row in orphans:
                    await self._take_over(row, keeper)
                await keeper.use(lambda file: file.forget(self._settings.research.keep_days))
            except RunsFileUnusable as error:
                log.debug("research: %s", error)
            await trio.sleep(_SURE if self._lapsed else _LOOK_AFTER)

    async def _take_over(self, row: Row, keeper: Keeper) -> bool:
        """Take over a run whose owner is gone; tell whether it is ours now."""
        if row.id in self._runs:  # it still has its end to write
            return True
        if not self._is_lost(row):
            return False

        async def claim() -> bool:
            claimed = await keeper.use(lambda file: file.claim(row.id, keeper.owner))
            self._lapsed.pop(row.id, None)
            if claimed is not None and row.id not in self._runs:
                self._own(Run(claimed, None, self._stored, keeper, self._terms))
            return row.id in self._runs

        return await self._seen_through(claim)  # or a run would be ours, and nobody would go on with it

    def _is_lost(self, row: Row) -> bool:
        """Tell whether the owner of a run is gone: it has given it up, or its lease is over and stays so for a while.

        Leases are in the time of day. When that jumps, as it does after a suspend, an owner that lives renews its own.
        """
        if row.owner is None:
            return True
        if not is_free(row, self._clock()):
            return False
        lease, since = self._lapsed.get(row.id, (0.0, 0.0))
        if lease != row.leased_until:
            self._lapsed[row.id] = (row.leased_until, trio.current_time())
            return False
        return trio.current_time() - since >= _SURE

    async def _elsewhere(self, run_id: str, keeper: Keeper, *, look: bool) -> RunView:
        """Return what is known of a run that is not on its way here; one without an owner is taken over.

        With `look`, the API is asked for one that was given up.
        """
        if run_id in self._done:
            return self._done[run_id]
        row = await self._row_in_file(run_id, keeper)
        if row.status is None and await self._take_over(row, keeper):
            run = self._runs.get(run_id)
            return run.view if run is not None else await self._elsewhere(run_id, keeper, look=look)
        if row.status in WITH_ANSWER and row.is_kept:
            return await self._answered(row)
        if look and row.may_go_on:
            with suppress(UpstreamError):  # it has none, or none yet
                return await self._found(row, keeper)
        told = self._given_up.get(run_id)  # which has the words of the API
        view = view_of_row(row, self._clock())
        same = told is not None and replace(told, error=view.error, phase=view.phase) == view
        return told if told is not None and same else view  # its owner may have ended it in another way since

    def _is_to_be_deleted(self, row: Row) -> bool:
        return row.status is not None and row.created < self._clock() - self._settings.research.keep_days * 86_400

    async def _find_in_file(self, run_id: str, keeper: Keeper) -> Row | None:
        row = await keeper.use(lambda file: file.get(run_id, self._account)) if _may_be(run_id) else None
        return None if row is None or self._is_to_be_deleted(row) else row

    async def _row_in_file(self, run_id: str, keeper: Keeper) -> Row:
        if (row := await self._find_in_file(run_id, keeper)) is None:
            days = self._settings.research.keep_days
            raise BadArgument(f"There is no run with that id; list the runs to see those of the last {days} days.")
        return row

    async def _answered(self, row: Row) -> RunView:
        """Look up the answer of a run that has ended, and remember it."""
        try:
            response = await self._stored.look_up(row.response_id or "", seconds=LEASE_SECONDS)
        except UpstreamError as error:
            if error.status == 404:
                error.message = (
                    f"The run has ended, and the API no longer has its answer. {KEPT_SO_LONG} Asking again pays again."
                )
            raise
        self._done[row.id] = view = self._answer_in(response, row)
        return view

    async def _look_whether_ended(self, row: Row) -> None:
        with suppress(UpstreamError):
            response = await self._stored.look_up(row.response_id or "", seconds=CANCEL_TRY)
            if response.get("status") in ENDED:
                row = replace(row, usage=self._terms.used(row.model, response).as_json())
                view = self._terms.read(row, response, self.redact.known)
                if not view.may_go_on:  # or its answer may still come
                    self._done[row.id] = view

    async def _found(self, row: Row, keeper: Keeper) -> RunView:
        """Look up what became of a run that was given up; have file and ledger know of it, or the run go on."""
        response = await self._stored.look_up(row.response_id or "", seconds=CANCEL_TRY)
        status = response.get("status")
        is_over = row.status == "cancelled" or _is_late(row)  # and would be cancelled again with each look
        if status in ("queued", "in_progress") and not is_over:
            await keeper.use(lambda file: file.reopen(row.id, cancel=False))
            return await self._elsewhere(row.id, keeper, look=False)
        usage = self._terms.used(row.model, response)
        await self._settle_left(row, usage)  # also of one that failed
        counted = replace(row, usage=usage.as_json())
        if status in ("cancelled", "failed"):  # for good
            view = self._terms.read(counted, response, self.redact.known)
            if status == "cancelled" and _is_late(row):
                view = replace(view, status="failed", error=(row.reason or "").removesuffix(NOT_CONFIRMED))
        else:
            view = self._answer_in(response, counted)
        reason, paid = unquoted(view.error, view.failure), view.maybe_paid
        row = replace(
            row, status=view.status, reason=reason, maybe_paid=paid, confirmed=view.confirmed, usage=view.usage
        )
        with suppress(RunsFileUnusable):
            await keeper.use(lambda file: file.correct(row))
        self._done[row.id] = view
        return view

    async def _settle_left(self, row: Row, usage: Usage) -> None:
        await self._meter.settle(_call_of(row), usage, response_id=row.response_id)

    def _answer_in(self, response: JsonObject, row: Row) -> RunView:
        """Return the answer that a Response has now. Raises `UpstreamError` where it has none."""
        view = self._terms.read(row, response, self.redact.known)
        if view.status not in WITH_ANSWER:
            raise UpstreamError("The run has ended, and what the API says of its answer now is none; ask for it later.")
        return view

    async def _continued(self, run_id: str) -> str | Conversation:
        """Return what a follow-up goes on from: a response, or what was said. Raises `BadArgument` for neither."""
        row = await self._find_in_file(run_id, self._ready())
        if row is None or row.status not in WITH_ANSWER:
            raise BadArgument("continue_from is not the id of a run that has an answer; list the runs to see them.")
        if row.durable and row.response_id is not None:
            return row.response_id
        said = self._said_in(run_id)
        if said is None:
            raise BadArgument(
                "continue_from is a run that the API does not keep, and what was said in it is no longer here: it ends "
                "with its server, or with the next runs. Ask again, and say in the question what it needs to know."
            )
        return said

    def _said_in(self, run_id: str) -> Conversation | None:
        run = self._runs.get(run_id)  # which may be about to leave
        return self._said.get(run_id) if run is None else run.said

    @cached_property
    def _account(self) -> str:
        """A name for where is asked with which key, from which neither can be told. Raises `AuthenticationFailed`."""
        headers = credential_headers(self._settings.openai)
        said = "\0".join([self._settings.openai.base_url, *(f"{name}:{headers[name]}" for name in sorted(headers))])
        return hashlib.sha256(b"openai-responses-mcp\0" + said.encode()).hexdigest()[:32]

    # The end

    async def settle(self) -> None:
        """Bring each run to where it can be left, or with `research.on_exit: cancel` to its end; then stop them all.

        Takes a second at most. Runs are shielded: this is what ends their tasks.
        """
        self._closed = True
        try:
            for run in self._runs.values():
                if self._settings.research.on_exit == "cancel" and run.is_begun_here:
                    run.cancel()
                else:
                    run.leave()
            with trio.move_on_after(_LEAVING, shield=True):
                for run in [*self._runs.values()]:  # all go on meanwhile
                    await run.settle()
        finally:  # also after a second Ctrl-C: nothing else ends their tasks
            for run in self._runs.values():
                run.stop()

    async def give_up(self) -> None:
        """Leave the runs that were stopped to whoever opens the file next; takes a second at most."""
        if self._keeper is None or not self._looking_after:
            return
        keeper = self._keeper
        cancelled = [run.row for run in self._left if run.cancelled]
        refused = [replace(run.row, state=State.QUEUED) for run in self._left if run.is_unasked]

        def give_up(file: RunsFile) -> None:
            for row in refused:  # what was to be asked goes with us
                file.keep(row)
            for row in cancelled:  # should the API not be told in time, the next server tells it
                file.ask_cancel(row.id)
            file.release(keeper.owner)

        with trio.move_on_after(_EXIT, shield=True), suppress(RunsFileUnusable):
            await keeper.use(give_up)


class _Last(dict[str, T]):
    """Something of each of the last runs, `most` of them; that of a run before those is forgotten."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, run_id: str, value: T) -> None:
        super().__setitem__(run_id, value)
        if len(self) > self._most:
            del self[next(iter(self))]


def _require_id(run_id: object) -> None:
    if not isinstance(run_id, str) or not run_id.strip():
        what = "missing" if run_id is None or isinstance(run_id, str) else "not a text"
        raise BadArgument(f"run_id is {what}; pass the one that a run was begun with.")


def _call_of(row: Row) -> Call:
    return Call(row.id, row.created, row.tool, row.model, row.client)


def _is_late(row: Row) -> bool:
    """Tell whether a run that failed took too long, and the API has not confirmed that it was cancelled for that."""
    return (row.reason or "").endswith(NOT_CONFIRMED)


def _may_be(run_id: str) -> bool:
    """Tell whether a text can be the id of a run at all."""
    return len(run_id) <= _LONGEST_ID and run_id.isascii()


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
    """Open a way to have questions researched, whose runs go on while the block does.

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

    Runs that were asked for go on at the API when the block is left, for the next who opens the folder: ids that have
    not come are waited for, a second at most. With `research.on_exit: cancel` they are cancelled, in that second. A
    second more is for a file of runs that does not answer. Nothing else is sent any more: await `wait_for_id` before.
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
    counting = meter or Meter(settings, in_thread=in_thread)
    # One use of the file at a time, those that were left behind too: so the last one, at the end, closes the file.
    limiter = trio.CapacityLimiter(1)
    elsewhere = in_thread or partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=limiter)
    failures: list[BaseException] = []  # of the block
    research: Research | None = None
    try:
        try:
            async with trio.open_nursery() as nursery:
                research = Research(settings, asking, nursery, meter=counting, in_thread=elsewhere, clock=clock)
                try:
                    try:
                        yield research
                    finally:
                        await research.settle()  # noqa: ASYNC102  # shielded, and bounded, within
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
        try:
            if research is not None:
                await research.give_up()  # noqa: ASYNC102  # shielded, and bounded, within
        finally:  # also after Ctrl-C, which may strike each of them
            with trio.move_on_after(_EXIT, shield=True):
                await asking.aclose()
