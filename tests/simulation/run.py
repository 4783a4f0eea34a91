"""Runs one schedule against the whole server, in virtual time and on one thread."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import trio
from trio._core import _run as trio_run

from responses_mcp.asking import Asker
from responses_mcp.protocol import session
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http.network import ConnectionPool
from responses_mcp.runtime.conversation import open_conversation
from responses_mcp.runtime.server import Server, serve_conversation
from responses_mcp.settings.model import OpenAISettings, PolicySettings, RequestSettings, ServerSettings, Settings
from responses_mcp.toolsets.answer import AnswerToolset
from tests.simulation.schedule import MAX_MESSAGE_BYTES, Do, Message, Say, Schedule, Step, Wait, draw
from tests.simulation.tools import WatchedTools
from tests.simulation.transcript import Event, Kind, Transcript
from tests.simulation.upstream import SimulatedConnections
from tests.simulation.wire import FromServer, Pieces, ToServer

PATIENCE = 2000.0  # virtual seconds after which a run is given up


@dataclass(frozen=True)
class Run:
    """A schedule and what came of it: messages with the place in the input at which each is complete, and events."""

    schedule: Schedule
    said: list[tuple[int, Message]]
    events: list[Event]


class _HungError(Exception):
    """A run hangs where it cannot be cancelled."""


class _Clock(trio.abc.Clock):
    """Time that jumps to the next deadline as soon as nothing can run.

    `trio.testing.MockClock` does that too, but with it a run that hangs would wait for ever. `hung` is called when
    there is nothing to wait for, and the run is broken off when that did not help; None while there is no run.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._patience = PATIENCE
        self.hung: Callable[[], None] | None = None

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        # Trio asks only when no task can run.
        if deadline <= self._patience:
            self._now = max(self._now, deadline)
        elif self.hung is not None:
            self._patience += PATIENCE
            self.hung()
        return 0.0


def simulate(seed: int) -> Run:
    """Run the schedule of a seed; the same seed gives the same run to the last event."""
    clock = _Clock()
    world = _World(draw(seed), clock)
    # Trio shuffles the tasks that can run next, by a generator of its own that nothing public seeds; and only with this
    # flag are they put in order first, for what comes out of its sets depends on addresses. Trio's own plugin for
    # Hypothesis sets the flag and seeds the generator, so the two names are as near to a promise as there is.
    with (
        patch.multiple(trio_run, _ALLOW_DETERMINISTIC_SCHEDULING=True, _r=random.Random(seed)),
        patch.object(session, "BATCH_BYTES", world.schedule.batch_bytes),  # small ones, to have more in the queue
    ):
        disabled = logging.root.manager.disable
        logging.disable(logging.CRITICAL)  # tools crash on purpose
        try:
            trio.run(world.main, clock=clock)
        except trio.TrioInternalError as error:
            if not isinstance(error.__cause__, _HungError):
                raise
        finally:
            logging.disable(disabled)
    return Run(world.schedule, world.said, world.transcript.events)


class _World:
    """Server, client, host and upstream of one run."""

    def __init__(self, schedule: Schedule, clock: _Clock) -> None:
        self._clock = clock
        self.schedule = schedule
        self.said: list[tuple[int, Message]] = []
        self.transcript = Transcript(clock.current_time, watch=self._reached)
        self._to_server = ToServer(self.transcript, schedule.max_unsent_bytes)
        self._from_server = FromServer(self.transcript)
        self._connections = SimulatedConnections(self.transcript, schedule.plays, schedule.max_connections)
        self._host = trio.CancelScope()
        self._everything: trio.Nursery | None = None
        settings = Settings(
            openai=OpenAISettings(base_url="https://api.test/v1", api_key="sk-simulated-0123456789"),
            request=RequestSettings(
                timeout_ms=int(schedule.timeout * 1000),
                max_retries=schedule.max_retries,
                max_connections=schedule.max_connections,
            ),
            policy=PolicySettings(instructions="Be brief."),
            server=ServerSettings(
                line_mode=schedule.line_mode,
                tool_errors="result" if schedule.errors_as_results else "error",
                max_message_bytes=MAX_MESSAGE_BYTES,
                max_unsent_bytes=schedule.max_unsent_bytes,
                max_in_flight=schedule.max_in_flight,
                drain_timeout_ms=int(schedule.drain * 1000),
            ),
        )
        api = ResponsesApi(
            settings.openai, settings.request, rng=random.Random(schedule.seed).random, connect=self._connect
        )
        answers = Asker(settings, api=api, today=lambda: "2026-11-22")
        self._settings = settings.server
        self._tools = WatchedTools(self.transcript, AnswerToolset(lambda: answers))

    def started(self, value: Server | None = None) -> None:
        """Be told of the server, in the place of Trio's task status."""
        self.transcript.server = value

    async def _connect(self, url: str, limit: int) -> ConnectionPool:
        await trio.sleep(self.schedule.connect)
        return self._connections

    async def main(self) -> None:
        before = trio.lowlevel.current_statistics().tasks_living
        try:
            async with trio.open_nursery() as self._everything:
                self._everything.start_soon(self._drive)
                self._clock.hung = self._hung
                await self._serve()
                self._everything.cancel_scope.cancel()
        finally:
            self._clock.hung = None
        self.transcript.note(Kind.OVER, trio.lowlevel.current_statistics().tasks_living - before)

    async def _serve(self) -> None:
        try:
            with self._host:
                conversation = open_conversation([self._tools], self._settings, version="1")
                await serve_conversation(
                    self._to_server, self._from_server, conversation, settings=self._settings, task_status=self
                )
        except Exception as error:  # noqa: BLE001  # what it must never do
            self.transcript.note(Kind.RAISED, repr(error))
        self.transcript.watch = None
        in_use = self._connections.in_use
        self.transcript.note(Kind.RETURNED, self.transcript.in_flight, self.transcript.unsent_bytes, in_use)

    def _hung(self) -> None:
        if self._everything is None or self._everything.cancel_scope.cancel_called:
            raise _HungError
        self.transcript.note(Kind.HUNG)
        self._everything.cancel_scope.cancel()

    async def _drive(self) -> None:
        for step in self.schedule.steps:
            await self._take(step)

    async def _take(self, step: Step) -> None:
        if isinstance(step, Wait):
            await trio.sleep(step.seconds)
        elif isinstance(step, Say):
            self._say(step)
        else:
            self._do(step)

    def _say(self, step: Say) -> None:
        if self._to_server.ended:
            return
        end = self._to_server.fed
        for message in step.messages:
            end += len(message.data)
            self.said.append((end, message))
        self._to_server.feed(_cut(b"".join(message.data for message in step.messages), step.pauses))

    def _do(self, step: Do) -> None:
        server = self.transcript.server
        match step.what:
            case "stall":
                self._from_server.stall(int(step.number))
            case "resume":
                self._from_server.resume()
            case "read slowly":
                self._from_server.resume(0.25, 100)
            case "late reports":
                self.transcript.note(Kind.REPORT)
                try:
                    for report in self._tools.late:
                        report("late")
                except Exception as error:  # noqa: BLE001  # a tool that keeps it must come to no harm
                    self.transcript.note(Kind.RAISED, repr(error))
            case "stop":
                self.transcript.note(Kind.STOP, step.number)
                if server is not None:
                    server.stop(step.number)
            case "host cancel":
                self.transcript.note(Kind.HOST)
                self._host.cancel()
            case "leave":
                self._from_server.leave()
            case "end":
                self._to_server.end()

    def _reached(self, marker: str, phase: str) -> None:
        trigger = self.schedule.triggers.get(marker)
        if trigger is None or trigger.phase != phase or self._everything is None:
            return
        del self.schedule.triggers[marker]
        if trigger.delay:
            self._everything.start_soon(self._say_later, trigger.delay, trigger.say)
        else:
            self._say(trigger.say)

    async def _say_later(self, delay: float, step: Say) -> None:
        await trio.sleep(delay)
        self._say(step)


def _cut(data: bytes, pauses: tuple[float, ...]) -> Pieces:
    """Cut into as many pieces as there are pauses, at places that differ from message to message."""
    places = sorted((len(data) * 7919 * number) % (len(data) + 1) for number in range(1, len(pauses)))
    ends = [*places, len(data)]
    return [
        (pause, data[start:end]) for pause, start, end in zip(pauses, [0, *places], ends, strict=True) if start < end
    ]
