"""Runs of research under random schedules; the laboratory simulates many, on all cores, and shows one.

Servers share a folder. Clients begin, wait, cancel and give up; the API cuts streams, loses cancels, answers 429 and 500,
keeps ids to itself, is stuck, and forgets. Servers end properly, or are lost between any two steps: at one of their uses
of the file or of the network, before or after it took effect, from which moment on nothing of them reaches either. At
the end one more server is there for as long as it takes.
"""

from __future__ import annotations

import logging
import os
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import trio
from trio._core import _run as trio_run
from trio.testing import MockClock

from responses_mcp.errors import BadArgument, ConnectionFailed, LimitReached, UpstreamError
from responses_mcp.research import runs
from responses_mcp.research.runs import Research, open_research
from responses_mcp.research.runs_file import Row, RunsFile, RunsFileUnusable
from responses_mcp.research.view import RunView
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import WITH_ANSWER
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import (
    LimitSettings,
    PolicySettings,
    Profile,
    RequestSettings,
    ResearchSettings,
    Settings,
)
from responses_mcp.testing import Error, Faults, Reply
from responses_mcp.testing.replies import USUAL_ERRORS
from responses_mcp.usage.meter import Caller
from tests.research.upstream import OPENAI, Upstream, at_once

EPOCH = 1e9
PATIENCE = 20_000.0  # virtual seconds for all of a schedule
LAST = 8_000.0  # of them for the last server
TOKENS = 9_245  # of each response
LONGEST_CANCEL = 65.0
PROFILE = Profile()
# In what is told of a run that may go on: its id may come yet, or a later cancel be confirmed, or too late.
MAY_GO_ON = ("no id came back", "before its id was known", "did not confirm")


class Rule(StrEnum):
    """What must hold of every schedule."""

    PAID_ONCE = "at most one paid request a run"
    HONEST = "a run without an answer says that it may have been paid for, if it was"
    ENDS = "every run ends, whatever became of its servers"
    SAME = "a result is the same to all who ask"
    BELONGS = "an answer belongs to its question"
    LIMITED = "no server passes a limit, and no more runs go on than may"
    SOUND = "no run crashes, nor what is around it"
    PROMPT = "waits and cancels end in time, and raise nothing but what they say"


@dataclass
class Record:
    """What came of a schedule."""

    seed: int
    log: list[str] = field(default_factory=list)
    wrong: list[tuple[Rule, str]] = field(default_factory=list)
    situations: Counter[str] = field(default_factory=Counter)

    def note(self, what: str) -> None:
        self.log.append(f"{trio.current_time():9.2f}  {what}")

    def violated(self, rule: Rule, what: str) -> None:
        self.note(f"VIOLATED {rule}: {what}")
        self.wrong.append((rule, what))


class _LostError(Exception):
    """The server is lost: nothing of it happens any more."""


class _Server:
    """One process: its way to the file and to the network, until it is lost."""

    def __init__(self, world: _World, name: str) -> None:
        self.world = world
        self.name = name
        self.lost = False
        self.scope = trio.CancelScope()
        self.research: Research | None = None
        draw = world.draw
        # At which of its uses of file and network it is lost, and whether before or after it.
        self.fate = draw.randrange(1, 60) if draw.random() < 0.6 else 0
        self.after = draw.random() < 0.5
        self.uses = 0
        self.disk = trio.CapacityLimiter(1)

    def lose(self) -> None:
        self.lost = True
        self.world.record.note(f"{self.name} is lost")
        self.world.record.situations["a server was lost"] += 1
        self.scope.cancel()

    def use(self) -> bool:
        """Count a use; return whether it still takes effect. Raises _LostError where it does not."""
        if self.lost:
            raise _LostError
        self.uses += 1
        if self.uses == self.fate:
            if not self.after:
                self.lose()
                raise _LostError
            return True
        return False

    @contextmanager
    def call(self) -> Generator[None]:
        """Fail as a call of a client does: in any way where the server is lost, or has ended."""
        try:
            yield
        except (RunsFileUnusable, RuntimeError, UpstreamError) as error:
            if not (self.lost or self.scope.cancel_called):
                if not isinstance(error, RunsFileUnusable):
                    raise
                self.world.record.violated(Rule.PROMPT, repr(error))

    async def in_thread(self, work: Callable[[], Any]) -> Any:
        try:
            last = self.use()
        except _LostError:
            raise RunsFileUnusable("lost") from None
        async with self.disk:  # which takes its time, while all else goes on
            await trio.sleep(self.world.draw.choice((0.0, 0.0, 0.0, 0.0, 0.001, 0.05, 1.5)))
            if self.lost:
                raise RunsFileUnusable("lost")
            done = await at_once(work)
        if last:
            self.lose()
        return done

    async def connect(self, url: str, limit: int) -> _Server:
        await trio.lowlevel.checkpoint()
        return self

    async def send(self, request: Request, reader: Reader) -> None:
        await request.watcher.wait_for_room()
        await request.watcher.before_sending()
        try:
            last = self.use()
        except _LostError:
            raise ConnectionFailed("lost", maybe_paid=True) from None
        await self.world.upstream.sent_by(self, request, reader, lose=last)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    async def serve(self) -> None:
        world = self.world
        settings = Settings(
            openai=OPENAI,
            policy=PolicySettings(instructions="Be brief."),
            request=RequestSettings(max_retries=2),
            research=replace(world.research, state_dir=str(world.folder)),
            limits=world.limits,
        )
        api = ResponsesApi(settings.openai, settings.request, rng=lambda: 0.5, connect=self.connect)
        with self.scope:
            async with open_research(settings, api=api, in_thread=self.in_thread, clock=world.clock) as opened:
                self.research = opened
                await trio.sleep_forever()
        self.research = None


class _Api(Upstream):
    """The API, with what goes wrong drawn anew for each request."""

    def __init__(self, world: _World) -> None:
        super().__init__()
        self.world = world
        self.made: dict[str, list[str]] = {}  # responses, by the server that asked for them

    async def sent_by(self, server: _Server, request: Request, reader: Reader, *, lose: bool) -> None:
        asked = self._read(request)
        name = asked.path.split("/")[2].partition("?")[0] if asked.kind != "ask" else ""
        self.world.record.note(f"{server.name}: {asked.kind} {name or asked.json['input'].split()[0]}")
        self.world.record.situations[f"asked: {asked.kind}"] += 1
        if asked.kind == "ask":
            before = len(self.stored.responses)
            reply = self._made(asked.json)
            self.made.setdefault(server.name, []).extend(list(self.stored.responses)[before:])
        else:
            reply = self.stored.answer(asked.method, asked.path.removeprefix("/responses/"))
            if self.world.draw.random() < 0.05:
                reply = Error(self.world.draw.choice((429, 500, 503)))
        if lose:
            server.lose()
        await self._play(reply, reader)

    def _made(self, wanted: dict[str, Any]) -> Reply:
        draw = self.world.draw
        self.stored.interval = draw.choice((0.0, 0.1, 1.0, 10.0))
        self.stored.faults = Faults(
            id_never_sent=draw.random() < 0.05,
            cut_after=draw.choice((None, None, 0, 2, 7)),
            cuts=draw.choice((1, 1, 2, 50)),
            cancels_lost=draw.choice((0, 0, 0, 1, 9)),
            late_cancels=draw.choice((None, None, 400, 409)),
            stuck=draw.random() < 0.05,
            gone_after=draw.choice((None, None, None, None, 30.0)),
        )
        what = draw.random()
        if what < 0.1:
            return Error(429, retry_after=draw.choice((None, "5")))
        if what < 0.15:
            return Error(400, "No.")
        reply = self.stored.create(wanted)
        if what < 0.2:
            return Error(500)  # from a gateway, behind which it is worked on
        return replace(reply, latency=draw.choice((0.0, 0.0, 0.5, 3.0)))


class _World:
    """All of one schedule."""

    def __init__(self, seed: int, folder: Path, record: Record) -> None:
        self.draw = random.Random(seed)
        self.folder = folder
        self.record = record
        self.upstream = _Api(self)
        self.servers: list[_Server] = []
        self.research = ResearchSettings(
            max_running=self.draw.choice((1, 2, 8)),
            timeout_ms=self.draw.choice((60_000, 600_000)),
        )
        limiting = random.Random(f"limits {seed}")
        self.limits = LimitSettings(
            session_calls=limiting.choice((None, None, 1, 3)),
            session_tokens=limiting.choice((None, TOKENS, 2 * TOKENS + 1)),
        )
        self.markers: dict[str, str] = {}  # by run
        self.ends: dict[str, RunView] = {}
        self.count = 0

    def clock(self) -> float:
        return EPOCH + trio.current_time()

    async def main(self) -> None:
        before = trio.lowlevel.current_statistics().tasks_living
        with trio.move_on_after(PATIENCE) as patience:
            async with trio.open_nursery() as nursery:
                for _ in range(self.draw.randint(1, 2)):
                    self.begin(nursery)
                for _ in range(self.draw.randint(4, 14)):
                    await self.step(nursery)
                await trio.sleep(self.draw.choice((0.0, 1.0, 30.0)))
                for server in self.servers:
                    server.scope.cancel()
                await trio.sleep(20.0)  # a slow disk may have much to write
                await self.settle(nursery)
                nursery.cancel_scope.cancel()
        if patience.cancelled_caught:
            self.record.violated(Rule.PROMPT, "the schedule hangs")
        if trio.lowlevel.current_statistics().tasks_living != before:
            self.record.violated(Rule.PROMPT, "a task is left")
        self.check()

    def begin(self, nursery: trio.Nursery) -> _Server:
        server = _Server(self, f"server {len(self.servers) + 1}")
        self.servers.append(server)
        nursery.start_soon(server.serve)
        return server

    async def step(self, nursery: trio.Nursery) -> None:
        living = [server for server in self.servers if server.research is not None and not server.lost]
        what = self.draw.choice(
            ("start",) * 4
            + ("wait",) * 3
            + ("cancel",) * 3
            + ("hand_off",) * 2
            + ("again", "server", "end", "lose", "list", "pass")
        )
        if not living or what == "server":
            if len(living) < 2:
                self.begin(nursery)
            await trio.sleep(0.01)
            return
        server = self.draw.choice(living)
        if what == "end":
            self.record.note(f"{server.name} ends")
            server.scope.cancel()
        elif what == "lose":
            server.lose()
        elif what in ("start", "again"):
            nursery.start_soon(self.use, self.start, server, what == "again")
        elif what == "hand_off":
            nursery.start_soon(self.use, self.hand_off, server)
        elif what == "list":
            nursery.start_soon(self.use, self.see_list, server)
        elif what != "pass" and self.markers:
            run_id = self.draw.choice(list(self.markers))
            nursery.start_soon(self.use, self.wait if what == "wait" else self.cancel, server, run_id)
        await trio.sleep(self.draw.choice((0.0, 0.0, 0.3, 1.0, 5.0, 25.0)))

    async def use(self, work: Callable[..., Awaitable[None]], server: _Server, *given: object) -> None:
        if server.research is not None and not server.lost:
            with server.call():
                await work(server, server.research, *given)

    async def start(self, server: _Server, research: Research, again: bool) -> None:
        marker = f"q{self.count}"
        if not again or not self.count:
            self.count += 1
            marker = f"q{self.count}"
        try:
            run_id = await research.start(marker, client=marker)
        except LimitReached:
            self.record.situations["a run was refused, since others go on"] += 1
            return
        going_on = [row for row in self.rows("status IS NULL") if row.tool == "research" and row.goes_on]
        if len(going_on) > self.research.max_running:
            self.record.violated(Rule.LIMITED, f"{len(going_on)} runs go on")
        self.record.note(f"{server.name}: {run_id} is about {marker}")
        self.markers[run_id] = marker
        then = self.draw.random()
        if then < 0.4:
            await self.wait(server, research, run_id)
        elif then < 0.5:
            for _ in range(self.draw.choice((0, 0, 1, 3, 9))):
                await trio.lowlevel.checkpoint()
            self.record.situations["a run was cancelled as it began"] += 1
            await self.cancel(server, research, run_id)

    @staticmethod
    def serves(server: _Server) -> bool:
        return not server.lost and not server.scope.cancel_called

    async def hand_off(self, server: _Server, research: Research) -> None:
        """Ask as an answer tool does: the call becomes a run when it takes too long, and ends with one that is given up."""
        self.count += 1
        marker = f"q{self.count}"
        body = {"model": PROFILE.model, "input": marker}
        seconds = self.draw.choice((0.5, 5.0, 60.0))
        began = trio.current_time()
        with trio.move_on_after(self.draw.choice((0.2, 3.0, 100.0, 100.0))) as call:
            try:
                view = await research.answer(body, PROFILE, Caller("answer", marker), seconds=seconds)
            except LimitReached:
                return
            except (BadArgument, UpstreamError) as error:
                if self.serves(server) and getattr(error, "status", None) not in (400, 429, 500):
                    self.record.violated(Rule.PROMPT, f"{marker}: {error!r}")
                return
            self.record.note(f"{server.name}: {view.run_id} is about {marker}: {view.status}")
            self.record.situations["a call was handed off" if view.running else "a call had its answer"] += 1
            self.markers[view.run_id] = marker
            self.told(view.run_id, view, server)
            if trio.current_time() > began + seconds + 25.0:
                self.record.violated(Rule.PROMPT, f"a call was handed off after {trio.current_time() - began:.1f} s")
        if call.cancelled_caught and self.serves(server):
            self.record.situations["a call was given up before it was handed off"] += 1

    async def wait(self, server: _Server, research: Research, run_id: str) -> None:
        with trio.move_on_after(self.draw.choice((0.0, 2.0, 40.0))) as call:
            seconds = self.draw.choice((0.0, 1.0, 50.0))
            began = trio.current_time()
            try:
                self.told(run_id, await research.result(run_id, wait_seconds=seconds), server)
            except (BadArgument, UpstreamError) as error:
                self.failed(run_id, error, server)
            if trio.current_time() > began + seconds + 25.0:  # a look-up of the answer may be slow
                self.record.violated(Rule.PROMPT, f"a wait of {seconds} s took {trio.current_time() - began:.1f} s")
        if call.cancelled_caught:
            self.record.situations["a call was given up"] += 1

    async def see_list(self, server: _Server, research: Research) -> None:
        """See that the list says of runs that have ended what whoever asked for them was told."""
        ends = {run_id: view.status for run_id, view in self.ends.items()}
        listed = {str(each["run_id"]): each["status"] for each in await research.list(100)}
        if not self.serves(server):
            return
        self.record.situations["runs were listed"] += 1
        for run_id, status in ends.items():
            if listed.get(run_id) != status:
                self.record.violated(Rule.SAME, f"{run_id} is {status}, and listed as {listed.get(run_id)}")

    async def cancel(self, server: _Server, research: Research, run_id: str) -> None:
        began = trio.current_time()
        try:
            view = await research.cancel(run_id)
        except (BadArgument, UpstreamError) as error:
            self.failed(run_id, error, server)
            return
        self.record.note(f"{server.name}: cancel of {run_id}: {view.status}")
        self.told(run_id, view, server)
        if view.status == "cancelled" and not server.lost:
            self.record.situations["a run was cancelled"] += 1
        if server.scope.cancel_called:
            return  # nobody waits for what a server says that has ended
        if view.status == "cancelled" and view.maybe_paid and not view.confirmed and not server.lost:
            (row,) = self.rows("id = ?", (run_id,))
            response = self.upstream.stored.responses.get(row.response_id or "")
            if response is not None and not response.cancels and response.faults.gone_after is None:
                self.record.violated(Rule.PROMPT, f"{run_id} was cancelled, and the API was not told")
        if view.running and not any(each.lost for each in self.servers):
            self.record.violated(Rule.PROMPT, f"{run_id} was cancelled and goes on ({view.phase})")
        if trio.current_time() > began + LONGEST_CANCEL:
            self.record.violated(Rule.PROMPT, f"a cancel took {trio.current_time() - began:.1f} s")

    async def settle(self, nursery: trio.Nursery) -> None:
        """Let one more server find all that is left, and ask it for everything."""
        server = self.begin(nursery)
        server.fate = 0
        await trio.sleep(0.01)
        research = cast(Research, server.research)
        end = trio.current_time() + LAST
        for run_id in {**self.markers, **{row.id: str(row.client) for row in self.rows("status IS NULL")}}:
            self.markers.setdefault(run_id, next(str(row.client) for row in self.rows("id = ?", (run_id,))))
            for _ in range(9):  # each look cancels again what was not confirmed, and what is lost is so for a minute
                try:
                    left = max(0.0, end - trio.current_time())
                    self.told(run_id, await research.result(run_id, wait_seconds=left), server)
                except (BadArgument, UpstreamError) as error:
                    self.failed(run_id, error, server)
                if not self.rows("id = ? AND status IS NULL", (run_id,)):
                    break
                await trio.sleep(70.0)
        await research.list()
        server.scope.cancel()
        await trio.sleep(2.0)

    def rows(self, where: str, values: tuple[Any, ...] = ()) -> list[Row]:
        return RunsFile(self.folder, self.clock)._read(where, values)

    def of(self, marker: str) -> list[Any]:
        return [each for each in self.upstream.stored.responses.values() if each.request["input"].split()[0] == marker]

    def told(self, run_id: str, view: RunView, server: _Server) -> None:
        if view.pending or server.lost or server.scope.cancel_called:
            return
        self.record.situations[f"told: {view.status}"] += 1
        if any(said in (view.error or "") for said in MAY_GO_ON):
            return
        if view.answer is None and view.status in WITH_ANSWER:
            if not any(response.faults.gone_after is not None for response in self.of(self.markers[run_id])):
                self.record.violated(Rule.SAME, f"{run_id} has no answer: {view.error}")
            return
        for said in (*(each[0] for each in USUAL_ERRORS.values()), "No."):
            # The words of the API, which only the server that asked can tell.
            view = replace(view, error=view.error and view.error.replace(f": {said}", "."))
        first = self.ends.setdefault(run_id, view)
        if first != view:
            self.record.violated(Rule.SAME, f"{run_id}: {first} and {view}")
        if view.answer is not None and f"answer to: {self.markers[run_id]} " not in view.answer.text:
            self.record.violated(Rule.BELONGS, f"{run_id}: {view.answer.text[:60]}")

    def failed(self, run_id: str, error: Exception, server: _Server) -> None:
        if not (server.lost or server.scope.cancel_called):
            self.record.violated(Rule.PROMPT, f"{run_id}: {error!r}")

    def check_limits(self) -> None:
        """No guess fits these limits, so runs go alone, and the last one may pass what was left.

        A response that was cancelled in time has used nothing that anybody counts.
        """
        for server, names in self.upstream.made.items():
            calls, most = len(names), self.limits.session_calls
            if most is not None and calls > most:
                self.record.violated(Rule.LIMITED, f"{server} has asked for {calls} responses, of {most}")
            used = TOKENS * sum(self.upstream.stored.responses[name].cancelled is None for name in names)
            if self.limits.session_tokens is not None and used >= self.limits.session_tokens + TOKENS:
                self.record.violated(Rule.LIMITED, f"{server} has used {used} tokens, of {self.limits.session_tokens}")

    def check(self) -> None:
        self.check_limits()
        rows = self.rows("1")
        paid = Counter(each.request["input"].split()[0] for each in self.upstream.stored.responses.values())
        by_marker = Counter(str(row.client) for row in rows)
        for marker, count in paid.items():
            if count > by_marker[marker]:
                self.record.violated(Rule.PAID_ONCE, f"{marker}: {count} responses for {by_marker[marker]} runs")
        for row in rows:
            if row.status is None:
                self.record.violated(Rule.ENDS, f"{row.id} about {row.client} goes on")
            told = row.maybe_paid or row.status in (None, "completed", "incomplete")
            if not told and paid[str(row.client)] >= by_marker[str(row.client)]:
                self.record.violated(Rule.HONEST, f"{row.id} about {row.client} cost something: {row.reason}")
            if "limits." in (row.reason or ""):
                self.record.situations["ended: a limit was reached"] += 1
            self.record.situations[f"ended: {row.status}"] += 1
            if row.maybe_paid and row.response_id is None:
                self.record.situations["ended: may have been paid for, without an id"] += 1


def simulate(seed: int) -> Record:
    """Run the schedule of a seed; the same seed gives the same record."""
    record = Record(seed)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            tempfile.TemporaryDirectory(dir=memory) as folder,
            patch.multiple(trio_run, _ALLOW_DETERMINISTIC_SCHEDULING=True, _r=random.Random(seed)),
            patch.object(runs.log, "error", lambda *said: record.wrong.append((Rule.SOUND, repr(said)))),
        ):
            world = _World(seed, Path(folder), record)
            try:
                trio.run(world.main, clock=MockClock(autojump_threshold=0))
            except* Exception as crash:  # noqa: BLE001  # whatever it is, its seed is to be told
                record.wrong.append((Rule.SOUND, repr(crash)))
    finally:
        logging.disable(disabled)
    return record
