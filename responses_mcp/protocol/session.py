"""One MCP conversation as a machine: bytes in, events out; outcomes in, bytes out.

The session owns everything that decides what is said: framing, JSON-RPC, the revision of each message, the table of
requests in flight and the queue of unsent output. It never waits, so every race is a sequence of plain calls:

    receive_data(bytes) -> events      CallStarted: run it;  CallCancelled: stop it
    report(call, value, message)       queue progress, unless nobody wants it any more
    acknowledge, tell(subscription)    queue what a subscription to tasks hears
    finish(call, outcome)              queue the answer, unless the call was cancelled
    take_output() -> bytes             what to write now; from here on its answers count as given
    output_written()                   the bytes taken last have reached the peer

A request is in flight from the moment it is read until its answer is taken or its cancel is read; the table in
`protocol.lifecycle` says what may happen to it. In that time its id is used up: another request with it is refused,
and the first goes on. Ids are the same when type and value are (`protocol.jsonrpc.request_key`). Both revisions share
one id space, for a cancel does not say which it means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import cast

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.protocol.exchange import (
    Call,
    CallCancelled,
    CallStarted,
    Event,
    Feature,
    Method,
    Pending,
    Subscription,
    Tool,
)
from responses_mcp.protocol.framing import (
    FramingFault,
    MessageReader,
    Payload,
    encode_frame,
    encode_line,
    looks_like_header,
)
from responses_mcp.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Invalid,
    Notification,
    Request,
    RequestId,
    RequestKey,
    RpcError,
    decode,
    encode,
    error_message,
    notification_message,
    request_key,
    result_message,
    result_message_bytes,
)
from responses_mcp.protocol.lifecycle import Action, State, Trigger, transition
from responses_mcp.protocol.outbox import Outbox
from responses_mcp.protocol.revisions import (
    TASKS,
    LegacyRevision,
    ModernRevision,
    Outcome,
    Revision,
    Task,
    check_envelope,
    extensions_of,
    is_modern,
    missing_capability,
)
from responses_mcp.trace_context import trace_of

log = logging.getLogger(__name__)

MAX_HELD_BYTES = 256 * 1024 * 1024  # of requests in flight, together: few clients send this much in a day
_LONGEST_TOKEN = 1024  # characters of a progress token: it goes out with every message of its call
MAX_WATCHED = 100  # tasks of one subscription, each of which is looked at again and again
BATCH_BYTES = 64 * 1024  # the capacity of a pipe on Linux: more would only wait in hand, past recall


class Session:
    """The server's side of one MCP conversation.

    `tools` maps names to tools, in the order in which they are listed; `features` are offered beside them. `version` is
    ours. `line_mode` starts with newline-delimited output (spec 5.4). `errors_as_results` is as in `LegacyRevision`.
    """

    def __init__(
        self,
        tools: Mapping[str, Tool],
        *,
        version: str,
        line_mode: bool = False,
        errors_as_results: bool | None = None,
        instructions: str | None = None,
        features: Iterable[Feature] = (),
        max_message_bytes: int = 0,
        max_in_flight: int = 4096,
    ) -> None:
        self._tools = tools
        self._legacy = LegacyRevision(version, errors_as_results=errors_as_results, instructions=instructions)
        self._modern = ModernRevision(version, instructions=instructions)
        self._reader = MessageReader(max_message_bytes)
        self._line_mode = line_mode
        self._lines_only = True  # no frame has come, nor anything that looks like one
        self._max_in_flight = max_in_flight
        self._initialized = False
        self._in_flight: dict[RequestKey, Call | Subscription] = {}
        self._held_bytes = 0
        self._size = 0  # bytes of the message being received
        self._outbox = Outbox()
        listed: JsonObject = {"tools": [tool.definition for tool in tools.values()]}
        offered = [Feature(capability="tools", listings={"tools/list": listed}), *features]
        self._offers = {  # by revision and method; of `tools/call` the session finds the tool
            revision: {
                method: each
                for each in offered
                if each.legacy or revision is self._modern
                for method in (*each.listings, *each.methods)
            }
            for revision in (self._legacy, self._modern)
        }
        self._has_tasks = TASKS in self._capabilities(self._modern, extensions=True)
        self._listed: dict[tuple[Revision, str], bytes] = {}  # the answers to tools/list and the like
        self._events: list[Event] = []

    @property
    def in_flight(self) -> int:
        """Return how many requests have been accepted and neither answered nor cancelled."""
        return len(self._in_flight)

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of output that the peer has not accepted yet."""
        return self._outbox.unsent_bytes

    def receive_data(self, data: bytes) -> list[Event]:
        """Take the next bytes of input, in any chunking, and return what they ask the shell to do, in order."""
        return self._consume(self._reader.feed(data))

    def receive_eof(self) -> list[Event]:
        """Say that the input has ended; a last line without its newline still counts."""
        return self._consume(self._reader.feed_eof())

    def unanswered(self) -> list[Call]:
        """Return the calls in flight that have no answer yet."""
        pending = self._in_flight.values()
        return [each for each in pending if isinstance(each, Call) and each.state is State.ACCEPTED]

    def close_subscriptions(self) -> None:
        """End all subscriptions, with the result that says so. To be called when no more input will be read."""
        for pending in list(self._in_flight.values()):
            if isinstance(pending, Subscription):
                if not pending.acknowledged:  # which comes first, always
                    self.acknowledge(pending, ())
                result = self._modern.subscription_ended(pending.id)
                self._on(pending, Trigger.ANSWER, result_message(pending.id, result))

    def report(self, call: Call, progress: float, message: str) -> None:
        """Tell the client how far a call is; `progress` must rise. Does nothing for a call that is over."""
        if call.progress_token is None:
            return
        params: JsonObject = {"progressToken": call.progress_token, "progress": progress, "message": message}
        self._on(call, Trigger.PROGRESS, notification_message("notifications/progress", params))

    def finish(self, call: Call, outcome: Outcome | Task) -> None:
        """Answer a call; what comes after its cancel is thrown away (spec 6.1).

        Raises TypeError, ValueError or RecursionError for an outcome that is no JSON, and for a task that the client
        does not take. The call is then as before, and can be finished with another.
        """
        shaped = self._answer_with(call, outcome) if isinstance(outcome, Task) else call.revision.outcome(outcome)
        message = error_message(call.id, shaped) if isinstance(shaped, RpcError) else result_message(call.id, shaped)
        self._on(call, Trigger.ANSWER, message)

    def _answer_with(self, call: Call, task: Task) -> JsonObject:
        created = isinstance(call.does, Tool)
        if created and (not call.takes_tasks or task.status != "working"):
            raise TypeError("a task answers calls whose client takes tasks, and only while it works")
        return self._modern.task(task, created=created)

    def acknowledge(self, subscription: Subscription, task_ids: Iterable[str]) -> None:
        """Tell the client of which tasks it will hear, before anything else of its subscription."""
        subscription.acknowledged = True
        params = self._modern.acknowledged(subscription.id, task_ids)
        self._on(subscription, Trigger.NEWS, notification_message("notifications/subscriptions/acknowledged", params))

    def tell(self, subscription: Subscription, task: Task) -> None:
        """Tell the client how far a task is. Does nothing for a subscription that is over."""
        params = self._modern.told(subscription.id, task)
        self._on(subscription, Trigger.NEWS, notification_message("notifications/tasks", params))

    def take_output(self) -> bytes:
        """Return the messages to write now, b"" when there are none; the answers among them count as given."""
        return self._outbox.take(BATCH_BYTES)

    def output_written(self) -> None:
        """Say that what `take_output` returned last has been written."""
        self._outbox.written()

    def _consume(self, items: list[Payload | FramingFault]) -> list[Event]:
        for item in items:
            # Who sent a line, and no frame before it, would not look for an answer in a frame.
            self._lines_only = self._lines_only and item.line
            if isinstance(item, FramingFault):
                log.debug("recv fault=%s", item.message)
                prefix, code = ("Invalid Request", INVALID_REQUEST) if item.oversized else ("Parse error", PARSE_ERROR)
                self._queue(error_message(None, RpcError(code, f"{prefix}: {item.message}")))
                continue
            if item.line and item.data[:1] in (b"{", b"["):
                self._line_mode = True
            elif self._lines_only and looks_like_header(item.data):
                self._lines_only = False
            self._receive(item.data)
        events, self._events = self._events, []
        return events

    def _receive(self, data: bytes) -> None:
        message = decode(data)
        self._size = len(data)
        if log.isEnabledFor(logging.DEBUG):
            method = "Response" if message is None else getattr(message, "method", "Invalid")
            log.debug("recv method=%.100s bytes=%d", method, len(data))
            log.debug("recv json=%s", data.decode("utf-8", "replace"))
        if isinstance(message, Request):
            self._receive_request(message)
        elif isinstance(message, Notification):
            if message.method == "notifications/cancelled" and message.params is not None:
                self._receive_cancel(message.params)
        elif isinstance(message, Invalid):
            refusal = error_message(message.id, message.error)
            if (pending := self._find(message.id)) is not None:
                self._on(pending, Trigger.REFUSAL, refusal)
            else:
                self._queue(refusal)

    def _find(self, request_id: object) -> Call | Subscription | None:
        """Return the request in flight with that id."""
        key = request_key(request_id)
        return None if key is None else self._in_flight.get(key)

    def _receive_request(self, request: Request) -> None:
        if (pending := self._find(request.id)) is not None:
            error = RpcError(INVALID_REQUEST, "Invalid Request: this id is already in flight; use a new one")
            self._on(pending, Trigger.REFUSAL, error_message(request.id, error))
            return
        answer = self._serve(request)
        if isinstance(answer, RpcError):
            self._queue(error_message(request.id, answer))
        elif answer is not None:
            self._queue(result_message(request.id, answer))

    # Each of these returns a result, an error, or None when the request is answered by other means.

    def _serve(self, request: Request) -> JsonObject | RpcError | None:
        modern = is_modern(request.params)
        if request.method == "initialize" and (not modern or "protocolVersion" in request.params):
            self._initialized = True
            return self._legacy.initialize(request.params, self._capabilities(self._legacy))
        if modern or request.method == "server/discover":
            return self._serve_modern(request)
        if request.method == "ping":
            return {}  # clients refuse any member in it
        return self._serve_offered(request, self._legacy)

    def _serve_modern(self, request: Request) -> JsonObject | RpcError | None:
        if (error := check_envelope(request.params)) is not None:
            return error
        if request.method == "server/discover":
            modern = self._modern
            return modern.discover(self._capabilities(modern), self._capabilities(modern, extensions=True))
        if request.method == "subscriptions/listen":
            return self._open_subscription(request)
        return self._serve_offered(request, self._modern)

    def _capabilities(self, revision: Revision, *, extensions: bool = False) -> list[str]:
        features = self._offers[revision].values()
        return list(dict.fromkeys(each.capability for each in features if each.extension is extensions))

    def _serve_offered(self, request: Request, revision: Revision) -> RpcError | None:
        name = request.method
        feature = self._offers[revision].get(name)
        if feature is None and name != "tools/call":
            return RpcError(METHOD_NOT_FOUND, f"Method not found: {name[:100]}")
        if feature is not None and feature.extension and feature.capability not in extensions_of(request.params):
            return missing_capability(feature.capability)
        if feature is not None and (listing := feature.listings.get(name)) is not None:
            # A list never changes, and to serialise it is most of the work of answering.
            if (listed := self._listed.get((revision, name))) is None:
                listed = self._listed[revision, name] = encode(revision.listing(listing))
            self._queue_bytes(result_message_bytes(request.id, listed))
            return None
        if revision is self._legacy and not self._initialized:
            cure = "send initialize first, or carry the 2026-07-28 _meta fields"
            return RpcError(INVALID_PARAMS, f"Invalid params: {cure}")
        if feature is None:
            return self._call_tool(request, revision)
        self._start(request, revision, name, feature.methods[name], request.params)
        return None

    def _call_tool(self, request: Request, revision: Revision) -> RpcError | None:
        name = request.params.get("name")
        arguments = request.params.get("arguments")
        if not isinstance(name, str):
            return RpcError(INVALID_PARAMS, "Invalid params: name must be a string, the name of a tool")
        if (tool := self._tools.get(name)) is None:
            return revision.unknown_tool(name)
        if arguments is not None and not isinstance(arguments, dict):
            return RpcError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        self._start(request, revision, name, tool, cast(JsonObject, arguments or {}))
        return None

    def _start(self, request: Request, revision: Revision, name: str, does: Method, arguments: JsonObject) -> None:
        call = Call(
            id=request.id,
            key=request.key,
            size=self._size,
            name=name,
            does=does,
            revision=revision,
            arguments=arguments,
            progress_token=_progress_token(request.params),
            client=revision.client(request.params),
            trace=trace_of(request.params),
            takes_tasks=revision is self._modern and self._has_tasks and TASKS in extensions_of(request.params),
        )
        refusal = self._no_room()
        self._hold(call)
        if refusal is None:
            self._events.append(CallStarted(call))
        else:
            self.finish(call, does.failure(refusal))

    def _open_subscription(self, request: Request) -> RpcError | None:
        wanted = request.params.get("notifications")
        if not isinstance(wanted, dict):
            return RpcError(INVALID_PARAMS, "Invalid params: notifications must be an object")
        named = cast(JsonObject, wanted).get("taskIds") if self._has_tasks else None
        if named is not None and not _are_ids(named):
            return RpcError(INVALID_PARAMS, "Invalid params: notifications.taskIds must be a list of ids")
        ids = list(dict.fromkeys(cast(list[str], named or [])))
        if ids and TASKS not in extensions_of(request.params):
            return missing_capability(TASKS)
        if (refusal := self._no_room()) is not None:
            return RpcError(INVALID_REQUEST, f"Invalid Request: {refusal}")
        subscription = Subscription(
            id=request.id,
            key=request.key,
            size=self._size,
            task_ids=ids[:MAX_WATCHED],
        )
        self._hold(subscription)
        if ids:
            self._events.append(CallStarted(subscription))
        else:
            self.acknowledge(subscription, ())
        return None

    def _receive_cancel(self, params: JsonObject) -> None:
        pending = self._find(params.get("requestId"))
        if pending is None:
            return
        given = params.get("reason")
        reason = given[:200] if isinstance(given, str) else None
        log.debug("cancelled requestId=%s reason=%s", pending.id, reason)
        self._on(pending, Trigger.CANCEL)
        if isinstance(pending, Call) or pending.task_ids:
            self._events.append(CallCancelled(pending, reason))

    def _on(self, pending: Pending, trigger: Trigger, message: JsonObject | None = None) -> None:
        """Do what the table says of `trigger`, to which `message` belongs; see `protocol.lifecycle`."""
        state, action = transition(pending.state, trigger)
        if action is Action.REPLACE:
            body = encode(message)  # may raise, so before anything changes
            # Of progress only the newest is kept, so that a client that does not read costs nothing, and none arrives
            # together with the answer.
            self._withdraw(pending.tickets)
            taken = partial(self._on, pending, Trigger.TAKEN) if state is State.FINISHED else None
            pending.tickets.append(self._queue_bytes(body, taken))
        elif action is Action.ADD:
            ticket = self._queue_bytes(encode(message), lambda: pending.beside.discard(ticket))
            pending.beside.add(ticket)
        elif action is not Action.IGNORE:
            if action is Action.WITHDRAW:
                self._withdraw([*pending.tickets, *pending.beside])
            del self._in_flight[pending.key]
            self._held_bytes -= pending.size
        pending.state = state

    def _no_room(self) -> str | None:
        """Say why one more request cannot be held in flight; None when it can."""
        if len(self._in_flight) >= self._max_in_flight:
            return (
                f"as many requests are in flight as server.max_in_flight allows ({self._max_in_flight}); "
                "wait for one to be answered, cancel one, or raise the limit."
            )
        if self._in_flight and self._held_bytes + self._size > MAX_HELD_BYTES:
            return (
                f"the requests in flight already hold {self._held_bytes} bytes of questions; "
                "wait for one to be answered, or cancel one."
            )
        return None

    def _hold(self, pending: Call | Subscription) -> None:
        self._in_flight[pending.key] = pending
        self._held_bytes += pending.size

    def _withdraw(self, tickets: list[int]) -> None:
        for ticket in tickets:
            self._outbox.withdraw(ticket)
        tickets.clear()

    def _queue(self, message: JsonObject) -> None:
        self._queue_bytes(encode(message))

    def _queue_bytes(self, body: bytes, on_taken: Callable[[], None] | None = None) -> int:
        as_line = self._line_mode or self._lines_only
        if log.isEnabledFor(logging.DEBUG):
            log.debug("send %s bytes=%d", "line" if as_line else "framed", len(body))
            log.debug("send json=%s", body.decode())
        return self._outbox.put(encode_line(body) if as_line else encode_frame(body), on_taken)


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in cast(list[object], value))


def _progress_token(params: JsonObject) -> RequestId | None:
    key = request_key(as_object(params.get("_meta")).get("progressToken"))
    return None if key is None or key[0] is float or len(str(key[1])) > _LONGEST_TOKEN else key[1]
