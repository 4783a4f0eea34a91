"""The Trio shell around a session: one nursery, a reader, a writer, and a cancel scope for each call.

    receive stream ─▶ reader ─▶ Session ─▶ nursery.start_soon(call, scope)
                                   ▲                  │ outcome
                                   └──────────────────┘
                                   │ bytes
                     wake channel ─▶ writer ─▶ send stream

Three rules hold it together. A call's scope is registered in the step that reads its request, before its task exists,
so that a cancel in the same chunk finds it. Everybody who may still cause output holds a clone of the wake channel's
sending end, so the writer ends by itself when the last of them has left. And while too much output is unsent it is the
calls that wait, not the reader, so a client that does not read can still cancel; the reader waits only for the answers
that reading itself gives.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import trio

from responses_mcp.errors import exhausted
from responses_mcp.protocol.exchange import Call, CallStarted, Subscription
from responses_mcp.protocol.lifecycle import State
from responses_mcp.protocol.revisions import Outcome, Task
from responses_mcp.protocol.session import Session
from responses_mcp.room import Room
from responses_mcp.runtime.conversation import Conversation
from responses_mcp.runtime.progress import ProgressReporter
from responses_mcp.settings.model import ServerSettings
from responses_mcp.toolsets.base import CallContext, ToolError, Toolset
from responses_mcp.trace_context import TRACE

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Exception)
Ending = Outcome | Task  # of a tool's work

CHUNK = 64 * 1024  # bytes read between two looks at how much output waits
PIECE = 1024  # bytes of them, behind which, at a line's end, the calls that began may do their first step
CLOSE_GRACE = 1.0  # seconds for a toolset to close its connections
LAST_WORDS = 1.0  # seconds in which a client must take what calls are answered that the end has cut off


@dataclass(eq=False)
class Server:
    """A running server, as `serve` reports it with `task_status.started`."""

    session: Session
    reading: trio.CancelScope = field(default_factory=trio.CancelScope)
    draining: trio.CancelScope | None = None  # once reading has ended: the calls, and after them the rest of the output
    cut_off: list[Call] = field(default_factory=list[Call])  # without an answer when the grace was over
    grace: float = 0.0  # seconds for requests in flight from then on

    @property
    def in_flight(self) -> int:
        """Return how many requests are in flight; after the end, how many were left without their own answer."""
        return self.session.in_flight + sum(call.state is State.TAKEN for call in self.cut_off)

    def stop(self, grace: float) -> None:
        """Read no further; calls in flight may still finish within `grace` seconds, of several the earliest.

        Raises ValueError for what is no time.
        """
        if type(grace) not in (int, float) or not grace >= 0:  # as NaN, which would end all other calls with an error
            raise ValueError("grace is not a number of seconds; pass 0 or more.")
        # The reader may not have noticed an earlier stop yet.
        self.grace = min(self.grace, grace) if self.reading.cancel_called else grace
        self.reading.cancel(reason="the server was asked to stop")
        if self.draining is not None:
            self.draining.deadline = min(self.draining.deadline, trio.current_time() + grace)


async def serve_conversation(  # started() is called by the shell
    receive_stream: trio.abc.ReceiveStream,
    send_stream: trio.abc.SendStream,
    conversation: Conversation,
    *,
    settings: ServerSettings,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the one peer behind the two streams as `serving.serve` does; a prologue may have begun the conversation."""
    shell = _Shell(conversation, receive_stream, send_stream, settings)
    try:
        async with trio.open_nursery() as nursery:
            for toolset in conversation.toolsets:
                toolset.live_in(nursery)
            await shell.run(task_status)
            nursery.cancel_scope.cancel(reason="all calls have ended")
    finally:
        await release(conversation.toolsets, receive_stream, send_stream)  # noqa: ASYNC102  # shielded, and bounded, within


async def release(toolsets: Sequence[Toolset], *streams: trio.abc.AsyncResource) -> None:
    """Close what a server owns, in at most a second for each of them."""
    async with AsyncExitStack() as rest:  # all of it, also where Ctrl-C strikes one of them
        for stream in reversed(streams):
            rest.push_async_callback(_close, partial(trio.aclose_forcefully, stream))
        for toolset in reversed(toolsets):
            rest.push_async_callback(_close, toolset.aclose)


async def _close(close: Callable[[], Awaitable[None]]) -> None:
    with trio.move_on_after(CLOSE_GRACE, shield=True):
        try:
            await close()
        except Exception as bug:  # noqa: BLE001  # what was served is not to fail for it
            log.error("server: a toolset or a stream could not be closed (%s)", type(bug).__name__)  # noqa: TRY400


class _Shell:
    """The tasks of one served session and what they share."""

    def __init__(
        self,
        conversation: Conversation,
        receive_stream: trio.abc.ReceiveStream,
        send_stream: trio.abc.SendStream,
        settings: ServerSettings,
    ) -> None:
        self._conversation = conversation
        self._session = conversation.session
        self._receive_stream = receive_stream
        self._send_stream = send_stream
        self._settings = settings
        self._scopes: dict[Call | Subscription, trio.CancelScope] = {}
        self._memory: dict[str, Any] = {}
        self._limit = settings.max_unsent_bytes
        self._room = Room(self._limit, lambda: self._session.unsent_bytes)
        self._read_on = trio.Event()
        # One pending wake-up is enough: the writer takes all that waits. The bytes stay in the session's outbox,
        # where a cancel can still withdraw them.
        self._wake, self._woken = trio.open_memory_channel[None](1)

    async def run(self, task_status: trio.TaskStatus[Server]) -> None:
        drain_ms = self._settings.drain_timeout_ms
        server = Server(self._session, grace=math.inf if drain_ms is None else drain_ms / 1000)
        async with trio.open_nursery() as everything:
            everything.start_soon(self._write, everything.cancel_scope)
            with self._wake:
                async with trio.open_nursery() as calls:
                    task_status.started(server)
                    with server.reading:
                        await self._read(calls)
                    self._session.close_subscriptions()
                    for each in [each for each in self._scopes if isinstance(each, Subscription)]:
                        self._scopes[each].cancel(reason="the input has ended")
                    self._wake_writer(self._wake)
                    server.draining = calls.cancel_scope
                    server.draining.deadline = trio.current_time() + server.grace
                server.draining = everything.cancel_scope
                server.cut_off = self._session.unanswered()
                everything.cancel_scope.deadline = calls.cancel_scope.deadline
                if server.cut_off:
                    everything.cancel_scope.deadline = trio.current_time() + LAST_WORDS
                    self._tell_cut_off(server)

    def _tell_cut_off(self, server: Server) -> None:
        """Answer the calls that the end has cancelled, and say in the log how many they are."""
        if server.reading.cancel_called:
            why = "the server was asked to stop, and the answer did not arrive in time; ask again."
        else:
            why = (
                f"the input ended, and the answer did not arrive within {server.grace:g} s (server.drain_timeout_ms); "
                "keep the connection open until it does, or raise that limit (MCP_DRAIN_TIMEOUT_MS)."
            )
        count = len(server.cut_off)
        many = "1 call was" if count == 1 else f"{count} calls were"
        log.warning("server: %s cut off: %s", many, why)
        for call in server.cut_off:
            self._finish(call, call.does.failure(why))
        self._wake_writer(self._wake)

    async def _read(self, nursery: trio.Nursery) -> None:
        added = 0  # bytes of output that reading has caused since output was last under its limit
        self._carry_out(nursery)
        while not self._conversation.input_ended:
            if self._session.unsent_bytes <= self._limit:
                added = 0
            elif added > self._limit // 4:
                # Nothing is lost and nothing grows: the rest stays in the pipe.
                self._read_on = trio.Event()
                await self._read_on.wait()
                added = 0
            try:
                data = await self._receive_stream.receive_some(CHUNK)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            # Of many calls that come together, the first are at the API before the last have begun. If all began at
            # once, none would have sent its request before nearly all the work for the others was done.
            at, end = 0, -1
            before = self._session.unsent_bytes
            while end < len(data):
                end = data.find(b"\n", at + PIECE) + 1 or len(data)
                self._conversation.receive(bytes(data[at:end]))
                if self._conversation.events and end < len(data):
                    self._carry_out(nursery)
                    added += self._session.unsent_bytes - before
                    await trio.lowlevel.checkpoint()
                    before = self._session.unsent_bytes
                at = end
            added += self._session.unsent_bytes - before
            self._carry_out(nursery)

    def _carry_out(self, nursery: trio.Nursery) -> None:
        """Do what the session asks, in one step: no checkpoint between reading a message and acting on it."""
        events, self._conversation.events = self._conversation.events, []
        for event in events:
            call = event.call
            if isinstance(event, CallStarted):
                self._scopes[call] = trio.CancelScope()
                task = partial(self._run_call, call, nursery) if isinstance(call, Call) else partial(self._watch, call)
                nursery.start_soon(task, self._wake.clone())
            elif call in self._scopes:  # one that has finished and waits for the writer has no scope any more
                self._scopes[call].cancel(reason=event.reason or "the client cancelled the call")
        self._wake_writer(self._wake)

    async def _run_call(self, call: Call, nursery: trio.Nursery, wake: trio.MemorySendChannel[None]) -> None:
        outcome: Ending = call.does.crash
        scope = self._scopes[call]
        TRACE.set(call.trace)  # for this task and those that it starts
        reporter = None if call.progress_token is None else ProgressReporter(partial(self._report, call, wake))
        context = CallContext(
            call.id,
            None if reporter is None else reporter.report,
            self._memory if call.revision.remembers else None,
            trio.current_effective_deadline,
            self._room,
            call.client,
            call.takes_tasks,
        )
        with wake:
            try:
                with scope:
                    if reporter is not None:
                        nursery.start_soon(reporter.beat)
                    await self._room.wait()
                    outcome = await call.does.handler(context, call.arguments)
            except* ToolError as failures:
                outcome = _first(failures).failure
            except* Exception as bugs:  # the one place where a tool's bug is contained
                shortage = exhausted(bugs)
                if shortage is None:
                    _log_crash(call.name, bugs)
                outcome = call.does.crash if shortage is None else call.does.failure(shortage)
                log.debug("server: traceback of the crash", exc_info=bugs)
            finally:
                del self._scopes[call]
                if reporter is not None:
                    reporter.stop()
            if not scope.cancelled_caught:
                self._finish(call, outcome)
                self._wake_writer(wake)

    async def _watch(self, subscription: Subscription, wake: trio.MemorySendChannel[None]) -> None:
        """Tell a subscription of its tasks, until they have ended, or it has."""

        def acknowledge(task_ids: Sequence[str]) -> None:
            self._session.acknowledge(subscription, task_ids)
            self._wake_writer(wake)

        async def tell(task: Task) -> None:
            await self._room.wait()
            self._session.tell(subscription, task)
            self._wake_writer(wake)

        with wake:
            try:
                with self._scopes[subscription]:
                    await self._conversation.tasks.watch(subscription.task_ids, acknowledge, tell)
            except* Exception as bugs:  # noqa: BLE001  # it is a tool's, and contained as that of a call
                _log_crash("subscriptions/listen", bugs)
            finally:
                del self._scopes[subscription]

    def _finish(self, call: Call, outcome: Ending) -> None:
        try:
            self._session.finish(call, outcome)
        except Exception as bug:  # no outcome at all, or no JSON
            log.error("server: %s returned what cannot be sent; this is a bug in the tool", call.name)  # noqa: TRY400
            log.debug("server: traceback of the failure", exc_info=bug)
            self._session.finish(call, call.does.crash)

    def _report(self, call: Call, wake: trio.MemorySendChannel[None], value: float, message: str) -> None:
        self._session.report(call, value, message)
        self._wake_writer(wake)

    def _wake_writer(self, wake: trio.MemorySendChannel[None]) -> None:
        self._room.changed()  # something may have been withdrawn
        if self._session.unsent_bytes:
            with suppress(trio.WouldBlock):  # it has been woken and has not looked yet
                wake.send_nowait(None)

    async def _write(self, everything: trio.CancelScope) -> None:
        try:
            if self._conversation.unwritten:
                await self._send(self._conversation.unwritten)
            async for _ in self._woken:
                while data := self._session.take_output():
                    await self._send(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            log.debug("the peer no longer reads; ending")
            everything.cancel(reason="the peer no longer reads")

    async def _send(self, data: bytes) -> None:
        await self._send_stream.send_all(data)
        self._session.output_written()
        self._room.changed()
        if self._session.unsent_bytes <= self._limit:
            self._read_on.set()


def _first(group: ExceptionGroup[E]) -> E:
    """Return the first error in a group, which may be in a group itself."""
    while isinstance(error := group.exceptions[0], ExceptionGroup):
        group = error  # pyright: ignore[reportUnknownVariableType]  # it is a group of the same
    return error


def _log_crash(what: str, bugs: ExceptionGroup[Exception]) -> None:
    log.error(  # a traceback may quote the prompt, so it goes to the debug log alone
        "server: %s crashed with %s; this is a bug in the tool, whose traceback is logged at DEBUG (--debug)",
        what,
        type(_first(bugs)).__name__,
    )
