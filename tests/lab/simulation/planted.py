"""Bugs planted in calls on purpose, to see that the simulation catches each.

Each replaces a method or a name of the server at run time, and nothing in a file.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import trio

from responses_mcp.errors import UpstreamError
from responses_mcp.protocol.exchange import Call, CallStarted
from responses_mcp.protocol.jsonrpc import notification_message, request_key
from responses_mcp.protocol.lifecycle import State, Trigger
from responses_mcp.protocol.outbox import Outbox
from responses_mcp.protocol.revisions import Crash, ToolFailure
from responses_mcp.protocol.session import Session
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http.client import HttpConnection
from responses_mcp.responses_api.http.pool import ConnectionPool
from responses_mcp.room import Room
from responses_mcp.runtime import server
from responses_mcp.runtime.progress import ProgressReporter
from responses_mcp.runtime.server import Server, _Shell

Patch = Callable[[], AbstractContextManager[object]]
BUGS: dict[str, Patch] = {}  # what each does, and what brings it in


def planted(what: str, owner: object, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Plant the bug that putting the decorated function in the place of `owner.name` makes.

    The function gets what it replaces, and returns what stands in for it.
    """

    def plant(made: Callable[..., Any]) -> Callable[..., Any]:
        BUGS[what] = lambda: patch.object(owner, name, made(getattr(owner, name)))
        return made

    return plant


# Cancels


@planted("a call's scope is registered by its task, not by the step that reads it", _Shell, "_carry_out")
def scope_registered_late(original: Any) -> Any:
    def carry_out(self: Any, nursery: trio.Nursery) -> None:
        async def late(call: Call) -> None:
            scope = self._scopes[call] = trio.CancelScope()
            await self._run_call(call, scope, self._wake.clone(), nursery)

        conversation = self._conversation
        started = [event for event in conversation.events if isinstance(event, CallStarted)]
        conversation.events = [event for event in conversation.events if event not in started]
        for event in started:
            nursery.start_soon(late, event.call)
        original(self, nursery)

    return carry_out


@planted("a call that finishes after its cancel is answered", Session, "finish")
def answer_after_cancel(original: Any) -> Any:
    def finish(self: Any, call: Call, outcome: Any) -> None:
        if call.state is State.CANCELLED:
            call.state = self._in_flight.setdefault(call.key, call).state = State.ACCEPTED
        original(self, call, outcome)

    return finish


@planted("an answer that waits is not taken back by a cancel", Session, "_receive_cancel")
def queued_answer_stays(original: Any) -> Any:
    def receive_cancel(self: Any, params: Any) -> None:
        pending = self._in_flight.get(request_key(params.get("requestId")))
        if pending is None or pending.state is not State.FINISHED:
            original(self, params)

    return receive_cancel


@planted("the refusal of a duplicate is not taken back by a cancel", Outbox, "withdraw")
def refusal_stays(original: Any) -> Any:
    return lambda self, ticket: (
        None if b"already in flight; use" in self._entries.get(ticket, [b""])[0] else original(self, ticket)
    )


@planted("the refusal of a malformed message is not taken back by a cancel", Session, "_on")
def malformed_refusal_stays(original: Any) -> Any:
    return lambda self, pending, trigger, message=None: (
        self._queue(message) if trigger is Trigger.MALFORMED else original(self, pending, trigger, message)
    )


@planted("retries go on after the cancel", ResponsesApi, "create")
def retry_after_cancel(original: Any) -> Any:
    async def create(*args: Any, **options: Any) -> Any:
        with trio.CancelScope(shield=True):  # within it is the deadline of the call
            return await original(*args, **options)

    return create


@planted(
    "nobody looks for a cancel between the wait for a connection and the request",
    trio.lowlevel,
    "checkpoint_if_cancelled",
)
def request_after_cancel(original: Any) -> Any:
    return trio.lowlevel.cancel_shielded_checkpoint


@planted('a cancel of "1" ends the call 1', Session, "_receive_cancel")
def cancel_of_another_type(original: Any) -> Any:
    def receive_cancel(self: Any, params: Any) -> None:
        wanted = params.get("requestId")
        known = [key for key in self._in_flight if str(key[1]) == str(wanted)]
        found = request_key(wanted) in self._in_flight
        original(self, params if found or not known else {"requestId": known[0][1]})

    return receive_cancel


# Ids


@planted("the id of a cancelled call stays in use", Session, "_receive_cancel")
def id_not_released(original: Any) -> Any:
    def receive_cancel(self: Any, params: Any) -> None:
        before = dict(self._in_flight)
        original(self, params)
        self._in_flight.update(before)
        for pending in before.values():
            pending.state = State.ACCEPTED

    return receive_cancel


@planted("a duplicate id takes the place of the call in flight", Session, "_receive_request")
def duplicate_overwrites(original: Any) -> Any:
    def receive_request(self: Any, request: Any) -> None:
        self._in_flight.pop(request_key(request.id), None)
        original(self, request)

    return receive_request


@planted("a call that ran out of time is answered twice", Session, "_on")
def double_answer(original: Any) -> Any:
    def on(self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
        original(self, pending, trigger, message)
        if trigger is Trigger.ANSWER and "No answer within" in str(message):
            self._queue(message)

    return on


@planted("one call more than max_in_flight is let in", Session, "_no_room")
def one_too_many(original: Any) -> Any:
    return lambda self: None if len(self._in_flight) == self._max_in_flight else original(self)


# Output


@planted("a withdrawn message takes its neighbour along", Outbox, "withdraw")
def neighbour_dropped(original: Any) -> Any:
    def withdraw(self: Any, ticket: int) -> None:
        original(self, ticket)
        original(self, ticket + 1)

    return withdraw


@planted("a partial write is taken for a whole one", Outbox, "take")
def torn_frame(original: Any) -> Any:
    return lambda self, batch_bytes: original(self, batch_bytes)[:1000]


@planted("only the reader wakes the writer", _Shell, "_wake_writer")
def lost_wake_up(original: Any) -> Any:
    return lambda self, wake: original(self, wake) if wake is self._wake else None


@planted("nobody who waits for room is told that there is some", Room, "changed")
def room_unnoticed(original: Any) -> Any:
    return lambda self: None


@planted("what was written counts as unsent for ever", Outbox, "written")
def room_never_found(original: Any) -> Any:
    return lambda self: None


# Progress


@planted("progress is told whatever has become of the call", Session, "report")
def progress_after_cancel(original: Any) -> Any:
    def report(self: Any, call: Call, progress: float, message: str) -> None:
        params = {"progressToken": call.progress_token, "progress": progress, "message": message}
        self._queue(notification_message("notifications/progress", params))

    return report


@planted("a last piece of progress follows the answer", Session, "_on")
def progress_after_answer(original: Any) -> Any:
    def on(self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
        original(self, pending, trigger, message)
        if trigger is Trigger.ANSWER and pending.progress_token is not None:
            params = {"progressToken": pending.progress_token, "progress": 1e6, "message": "done"}
            self._queue(notification_message("notifications/progress", params))

    return on


@planted("progress that waits is sent together with the answer", Session, "_on")
def progress_beside_answer(original: Any) -> Any:
    def on(self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
        if trigger is Trigger.ANSWER:
            pending.tickets.clear()
        original(self, pending, trigger, message)

    return on


@planted("a heartbeat repeats the value before it", ProgressReporter, "_flush")
def progress_stands_still(original: Any) -> Any:
    def flush(self: Any) -> None:
        if self._pending is None:
            self._value -= 1
        original(self)

    return flush


@planted("the heartbeat goes on after its call", ProgressReporter, "stop")
def heartbeat_outlives_call(original: Any) -> Any:
    return lambda self: None


# Upstream


@planted("the socket of a cancelled call stays open", HttpConnection, "close")
def connection_not_closed(original: Any) -> Any:
    return lambda self: None


@planted("a cancelled call keeps its place among the connections", trio.CapacityLimiter, "release")
def connection_not_released(original: Any) -> Any:
    def release(self: trio.CapacityLimiter) -> None:
        if sys.exc_info()[0] is not trio.Cancelled:
            original(self)

    return release


@planted("idle connections stay open at the end", ConnectionPool, "aclose")
def idle_connections_stay_open(original: Any) -> Any:
    async def aclose(self: Any) -> None:
        await trio.lowlevel.checkpoint()

    return aclose


@planted("one retry more than max_retries", ResponsesApi, "__init__")
def one_retry_too_many(original: Any) -> Any:
    def init(self: Any, openai: Any, request: Any, **options: Any) -> None:
        original(self, openai, request, **options)
        self._policy = replace(self._policy, max_retries=request.max_retries + 1)

    return init


@planted("a request that may have been paid for is repeated", UpstreamError, "__init__")
def paid_twice(original: Any) -> Any:
    def init(self: Any, message: str, **details: Any) -> None:
        original(self, message, **{**details, "retryable": True})

    return init


@planted("of two calls at once, one gets the answer to the question before", ResponsesApi, "create")
def answers_mixed(original: Any) -> Any:
    async def create(self: Any, *args: Any, **options: Any) -> Any:
        self.running = getattr(self, "running", 0) + 1
        try:
            response = await original(self, *args, **options)
        finally:
            self.running -= 1
        before, self.last = getattr(self, "last", response), response
        return before if self.running else response

    return create


# The end


@planted("the drain is cut short", server, "Server")
def drain_cut_short(original: Any) -> Any:
    return lambda session, grace: Server(session, grace=grace / 3)


@planted("the drain has no end", server, "Server")
def drain_without_end(original: Any) -> Any:
    return lambda session, grace: Server(session, grace=1e9)


@planted("calls cut off at the end are not answered", _Shell, "_tell_cut_off")
def cut_off_in_silence(original: Any) -> Any:
    return lambda self, server: None


@planted("of two stops the later one counts", Server, "stop")
def later_stop_counts(original: Any) -> Any:
    def stop(self: Any, grace: float) -> None:
        self.grace = grace
        self.reading.cancel()
        if self.draining is not None:
            self.draining.deadline = trio.current_time() + grace

    return stop


@planted("the writer outlives the server", _Shell, "_write")
def writer_outlives_server(original: Any) -> Any:
    async def write(self: Any, everything: trio.CancelScope) -> None:
        trio.lowlevel.spawn_system_task(original, self, everything)
        await trio.lowlevel.checkpoint()

    return write


@planted("a tool that crashes ends the server", _Shell, "_finish")
def crash_not_contained(original: Any) -> Any:
    def finish(self: Any, call: Call, outcome: Any) -> None:
        if outcome == Crash():
            raise RuntimeError("crashed")
        original(self, call, outcome if outcome is not None else ToolFailure(""))

    return finish
