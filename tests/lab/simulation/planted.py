"""Bugs planted in calls and in runs on purpose, to see that the simulation catches each.

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
from responses_mcp.protocol.revisions import BUG, ToolFailure
from responses_mcp.protocol.session import Session
from responses_mcp.research import runs
from responses_mcp.research.runs import Research
from responses_mcp.research.runs_file import Row, RunsFile, Step
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import Handle, look_up
from responses_mcp.responses_api.http.network import ConnectionPool, HttpConnection
from responses_mcp.room import Room
from responses_mcp.runtime import server
from responses_mcp.runtime.progress import ProgressReporter
from responses_mcp.runtime.server import Server, _Shell
from responses_mcp.usage.bill import UNSENT
from responses_mcp.usage.meter import Meter

Patch = Callable[[], AbstractContextManager[object]]
Bugs = dict[str, Patch]  # what each does, and what brings it in
CALLS: Bugs = {}
RUNS: Bugs = {}


def planted(bugs: Bugs, what: str, owner: object, name: str) -> Callable[[Callable[..., Any]], object]:
    """Plant the bug that calling the decorated function in place of `owner.name` makes.

    The function gets what it stands in for, and then the arguments.
    """

    def plant(bug: Callable[..., Any]) -> None:
        def patched() -> AbstractContextManager[object]:
            original = getattr(owner, name)
            return patch.object(owner, name, lambda *args, **options: bug(original, *args, **options))

        bugs[what] = patched

    return plant


# What is left out

for bugs, what, owner, name in (
    (CALLS, "nobody who waits for room is told that there is some", Room, "changed"),
    (CALLS, "what was written counts as unsent for ever", Outbox, "written"),
    (CALLS, "the heartbeat goes on after its call", ProgressReporter, "stop"),
    (CALLS, "the socket of a cancelled call stays open", HttpConnection, "close"),
    (CALLS, "calls cut off at the end are not answered", _Shell, "_tell_cut_off"),
):
    planted(bugs, what, owner, name)(lambda original, *args: None)


# Cancels


@planted(CALLS, "a call's scope is registered by its task, not by the step that reads it", _Shell, "_carry_out")
def scope_registered_late(original: Any, self: Any, nursery: trio.Nursery) -> None:
    async def late(call: Any) -> None:
        self._scopes[call] = trio.CancelScope()
        await self._run_call(call, nursery, self._wake.clone())

    conversation = self._conversation
    started = [event for event in conversation.events if isinstance(event, CallStarted)]
    conversation.events = [event for event in conversation.events if event not in started]
    for event in started:
        nursery.start_soon(late, event.call)
    original(self, nursery)


@planted(CALLS, "a call that finishes after its cancel is answered", Session, "finish")
def answer_after_cancel(original: Any, self: Any, call: Call, outcome: Any) -> None:
    if call.state is State.CANCELLED:
        call.state = self._in_flight.setdefault(call.key, call).state = State.ACCEPTED
    original(self, call, outcome)


@planted(CALLS, "an answer that waits is not taken back by a cancel", Session, "_receive_cancel")
def queued_answer_stays(original: Any, self: Any, params: Any) -> None:
    pending = self._in_flight.get(request_key(params.get("requestId")))
    if pending is None or pending.state is not State.FINISHED:
        original(self, params)


@planted(CALLS, "the refusal of a duplicate is not taken back by a cancel", Outbox, "withdraw")
def refusal_stays(original: Any, self: Any, ticket: Any) -> Any:
    return None if b"already in flight; use" in self._entries.get(ticket, [b""])[0] else original(self, ticket)


@planted(CALLS, "the refusal of a malformed message is not taken back by a cancel", Session, "_on")
def malformed_refusal_stays(original: Any, self: Any, pending: Any, trigger: Any, message: Any = None) -> Any:
    malformed = trigger is Trigger.REFUSAL and "already in flight" not in str(message)
    return self._queue(message) if malformed else original(self, pending, trigger, message)


@planted(CALLS, "retries go on after the cancel", ResponsesApi, "create")
async def retry_after_cancel(original: Any, *args: Any, **options: Any) -> Any:
    with trio.CancelScope(shield=True):  # within it is the deadline of the call
        return await original(*args, **options)


@planted(
    CALLS,
    "nobody looks for a cancel between the wait for a connection and the request",
    trio.lowlevel,
    "checkpoint_if_cancelled",
)
async def request_after_cancel(original: Any) -> None:
    await trio.lowlevel.cancel_shielded_checkpoint()


@planted(CALLS, 'a cancel of "1" ends the call 1', Session, "_receive_cancel")
def cancel_of_another_type(original: Any, self: Any, params: Any) -> None:
    wanted = params.get("requestId")
    known = [key for key in self._in_flight if str(key[1]) == str(wanted)]
    found = request_key(wanted) in self._in_flight
    original(self, params if found or not known else {"requestId": known[0][1]})


# Ids


@planted(CALLS, "the id of a cancelled call stays in use", Session, "_receive_cancel")
def id_not_released(original: Any, self: Any, params: Any) -> None:
    before = dict(self._in_flight)
    original(self, params)
    self._in_flight.update(before)
    for pending in before.values():
        pending.state = State.ACCEPTED


@planted(CALLS, "a duplicate id takes the place of the call in flight", Session, "_receive_request")
def duplicate_overwrites(original: Any, self: Any, request: Any) -> None:
    self._in_flight.pop(request_key(request.id), None)
    original(self, request)


@planted(CALLS, "a call that ran out of time is answered twice", Session, "_on")
def double_answer(original: Any, self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
    original(self, pending, trigger, message)
    if trigger is Trigger.ANSWER and "No answer within" in str(message):
        self._queue(message)


@planted(CALLS, "one call more than max_in_flight is let in", Session, "_no_room")
def one_too_many(original: Any, self: Any) -> Any:
    return None if len(self._in_flight) == self._max_in_flight else original(self)


# Output


@planted(CALLS, "a withdrawn message takes its neighbour along", Outbox, "withdraw")
def neighbour_dropped(original: Any, self: Any, ticket: int) -> None:
    original(self, ticket)
    original(self, ticket + 1)


@planted(CALLS, "a partial write is taken for a whole one", Outbox, "take")
def torn_frame(original: Any, self: Any, batch_bytes: Any) -> Any:
    return original(self, batch_bytes)[:1000]


@planted(CALLS, "only the reader wakes the writer", _Shell, "_wake_writer")
def lost_wake_up(original: Any, self: Any, wake: Any) -> Any:
    return original(self, wake) if wake is self._wake else None


# Progress


@planted(CALLS, "progress is told whatever has become of the call", Session, "report")
def progress_after_cancel(original: Any, self: Any, call: Call, progress: float, message: str) -> None:
    params = {"progressToken": call.progress_token, "progress": progress, "message": message}
    self._queue(notification_message("notifications/progress", params))


@planted(CALLS, "a last piece of progress follows the answer", Session, "_on")
def progress_after_answer(original: Any, self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
    original(self, pending, trigger, message)
    if trigger is Trigger.ANSWER and pending.progress_token is not None:
        params = {"progressToken": pending.progress_token, "progress": 1e6, "message": "done"}
        self._queue(notification_message("notifications/progress", params))


@planted(CALLS, "progress that waits is sent together with the answer", Session, "_on")
def progress_beside_answer(original: Any, self: Any, pending: Any, trigger: Trigger, message: Any = None) -> None:
    if trigger is Trigger.ANSWER:
        pending.tickets.clear()
    original(self, pending, trigger, message)


@planted(CALLS, "a heartbeat repeats the value before it", ProgressReporter, "_flush")
def progress_stands_still(original: Any, self: Any) -> None:
    if self._pending is None:
        self._value -= 1
    original(self)


# Upstream


@planted(CALLS, "a cancelled call keeps its place among the connections", trio.CapacityLimiter, "release")
def connection_not_released(original: Any, self: trio.CapacityLimiter) -> None:
    if sys.exc_info()[0] is not trio.Cancelled:
        original(self)


@planted(CALLS, "idle connections stay open at the end", ConnectionPool, "aclose")
async def idle_connections_stay_open(original: Any, self: Any) -> None:
    await trio.lowlevel.checkpoint()


@planted(CALLS, "one retry more than max_retries", ResponsesApi, "__init__")
def one_retry_too_many(original: Any, self: Any, openai: Any, request: Any, **options: Any) -> None:
    original(self, openai, request, **options)
    self._policy = replace(self._policy, max_retries=request.max_retries + 1)


@planted(CALLS, "a request that may have been paid for is repeated", UpstreamError, "__init__")
def paid_twice(original: Any, self: Any, message: str, **details: Any) -> None:
    original(self, message, **{**details, "retryable": True})


@planted(CALLS, "of two calls at once, one gets the answer to the question before", ResponsesApi, "create")
async def answers_mixed(original: Any, self: Any, *args: Any, **options: Any) -> Any:
    self.running = getattr(self, "running", 0) + 1
    try:
        response = await original(self, *args, **options)
    finally:
        self.running -= 1
    before, self.last = getattr(self, "last", response), response
    return before if self.running else response


# The end


@planted(CALLS, "the drain is cut short", server, "Server")
def drain_cut_short(original: Any, session: Any, grace: Any) -> Any:
    return Server(session, grace=grace / 3)


@planted(CALLS, "the drain has no end", server, "Server")
def drain_without_end(original: Any, session: Any, grace: Any) -> Any:
    return Server(session, grace=1e9)


@planted(CALLS, "of two stops the later one counts", Server, "stop")
def later_stop_counts(original: Any, self: Any, grace: float) -> None:
    self.grace = grace
    self.reading.cancel()
    if self.draining is not None:
        self.draining.deadline = trio.current_time() + grace


@planted(CALLS, "the writer outlives the server", _Shell, "_write")
async def writer_outlives_server(original: Any, self: Any, everything: trio.CancelScope) -> None:
    trio.lowlevel.spawn_system_task(original, self, everything)
    await trio.lowlevel.checkpoint()


@planted(CALLS, "a tool that crashes ends the server", _Shell, "_finish")
def crash_not_contained(original: Any, self: Any, call: Call, outcome: Any) -> None:
    if outcome == BUG:
        raise RuntimeError("crashed")
    original(self, call, outcome if outcome is not None else ToolFailure(""))


# Runs of research


@planted(RUNS, "a 500 is taken for a refusal, and asked again", Handle, "_may_repeat")
def asked_again(original: Any, self: Any, error: UpstreamError) -> bool:
    again = bool(original(self, error))
    self.sent = self.sent and error.status != 500
    return again or not self.sent


def _altered(step: Step, **instead: Any) -> Step:
    return lambda found: None if (new := step(found)) is None else replace(new, **instead)


@planted(RUNS, "the row does not say that its request is sent", RunsFile, "change")
def not_claimed(original: Any, self: Any, row: Row, step: Step) -> Row | None:
    claimed: list[Row] = []

    def unwritten(found: Row) -> Row | None:
        new = step(found)
        if new is None or new.sent is None or found.sent is not None:
            return new
        claimed.append(new)
        return None

    done: Row | None = original(self, row, unwritten)
    return claimed[0] if claimed else done


@planted(RUNS, "a request is sent again that another process has sent", RunsFile, "change")
def claimed_twice(original: Any, self: Any, row: Row, step: Step) -> Any:
    def again(found: Row) -> Row | None:
        new = step(replace(found, sent=None))
        return step(found) or (None if new is None or new.sent is None else new)

    return original(self, row, again)


@planted(RUNS, "the id is not written", RunsFile, "change")
def id_not_kept(original: Any, self: Any, row: Row, step: Step) -> Any:
    return original(self, row, _altered(step, response_id=None))


@planted(RUNS, "what may have been paid for is not written", RunsFile, "change")
def called_free(original: Any, self: Any, row: Row, step: Step) -> Any:
    return original(self, row, _altered(step, maybe_paid=False))


@planted(RUNS, "runs of lost servers stay where they are", Research, "_look_without_id")
async def left_alone(original: Any, self: Any, row: Row, now: float) -> None:
    await trio.lowlevel.checkpoint()


@planted(RUNS, "a later reader sees another result", RunsFile, "change")
def own_clock(original: Any, self: Any, row: Row, step: Step) -> Any:
    return original(self, row, _altered(step, ended=None))


@planted(RUNS, "a cancel stops nothing", runs, "cancel")
async def cancels_nothing(original: Any, api: Any, response_id: str, **_: Any) -> Any:
    return await look_up(api, response_id, seconds=5.0)


@planted(RUNS, "more runs go on than may", RunsFile, "add")
def one_more(original: Any, self: Any, row: Row, **options: Any) -> Any:
    return original(self, row, **{**options, "most": None})


@planted(RUNS, "what a run used is not counted", Meter, "settle")
async def nothing_counted(original: Any, self: Any, call: Any, _: Any, **options: Any) -> None:
    await original(self, call, UNSENT, **options)
