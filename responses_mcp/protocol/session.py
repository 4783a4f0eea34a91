"""One MCP conversation as a machine: bytes in, events out; outcomes in, bytes out.

The session owns everything that decides what is said: framing both ways, JSON-RPC, the era of each message, the table
of requests in flight and the queue of unsent output. It never waits, so every race is a sequence of plain calls:

    receive_data(bytes) -> events      CallStarted: run it;  CallCancelled: stop it
    report(call, value, message)       queue progress, unless nobody wants it any more
    finish(call, outcome)              queue the answer, unless the call was cancelled
    take_output() -> bytes             what to write now; from here on its answers count as given
    output_written()                   the bytes taken last have reached the peer

A call is in flight from the moment its request is read until its answer is taken or its cancel is read. In that time
its id is used up: a second request with the id is refused, and the first goes on. Ids are the same when type and
value are (`protocol.jsonrpc.request_key`). Both eras share one id space, for a cancel does not say which it means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import cast

from responses_mcp.protocol.eras import Era, LegacyEra, ModernEra, check_envelope, envelope_of
from responses_mcp.protocol.exchange import Call, CallCancelled, CallStarted, Event, ListedTool, Pending, Subscription
from responses_mcp.protocol.framing import FramingFault, MessageReader, Payload, encode_frame, encode_line
from responses_mcp.protocol.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Invalid,
    JsonObject,
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
from responses_mcp.protocol.outbox import Outbox
from responses_mcp.protocol.outcome import Outcome

log = logging.getLogger(__name__)

MAX_HELD_BYTES = 256 * 1024 * 1024  # of requests in flight, together: few clients send this much in a day
_LONGEST_TOKEN = 1024  # characters of a progress token: it goes out with every message of its call
BATCH_BYTES = 64 * 1024  # the capacity of a pipe on Linux: more would only wait in hand, past recall


class Session:
    """The server's side of one MCP conversation.

    `tools` maps names to tools, in the order in which they are listed. `version` is ours, for `serverInfo`.
    `line_mode` starts with newline-delimited output (`MCP_LINE_MODE`, contract 5.4). `instructions` go to the client's
    model. Limits: bytes of one message (0: none) and requests in flight.
    """

    def __init__(
        self,
        tools: Mapping[str, ListedTool],
        *,
        version: str,
        line_mode: bool = False,
        errors_as_results: bool = False,
        instructions: str | None = None,
        max_message_bytes: int = 0,
        max_in_flight: int = 4096,
    ) -> None:
        self._tools = tools
        self._legacy = LegacyEra(version, errors_as_results=errors_as_results, instructions=instructions)
        self._modern = ModernEra(version, instructions=instructions)
        self._reader = MessageReader(max_message_bytes)
        self._line_mode = line_mode
        self._max_in_flight = max_in_flight
        self._initialized = False
        self._in_flight: dict[RequestKey, Pending] = {}
        self._held_bytes = 0
        self._size = 0  # bytes of the message being received
        self._outbox = Outbox()
        self._listed: dict[Era, bytes] = {}  # the answer to tools/list
        self._events: list[Event] = []

    @property
    def in_flight(self) -> int:
        """Return how many requests have been accepted and neither answered nor cancelled."""
        return len(self._in_flight)

    @property
    def unsent_bytes(self) -> int:
        """Return the bytes of output that the peer has not accepted yet."""
        return self._outbox.unsent_bytes

    @property
    def has_output(self) -> bool:
        """Tell whether `take_output` would return anything."""
        return self._outbox.waiting

    def receive_data(self, data: bytes) -> list[Event]:
        """Take the next bytes of input, in any chunking, and return what they ask the shell to do, in order."""
        return self._consume(self._reader.feed(data))

    def receive_eof(self) -> list[Event]:
        """Say that the input has ended; a last line without its newline still counts."""
        return self._consume(self._reader.feed_eof())

    def close_subscriptions(self) -> None:
        """End all subscriptions, with the result that says so. To be called when no more input will be read."""
        for pending in list(self._in_flight.values()):
            if isinstance(pending, Subscription):
                pending.tickets.clear()  # the acknowledgement must come first and stays
                self._answer(pending, result_message(pending.id, self._modern.subscription_ended(pending.id)))

    def report(self, call: Call, progress: float, message: str, *, total: float | None = None) -> None:
        """Tell the client how far a call is; `progress` must rise. Does nothing for a call that is over."""
        if call.progress_token is None or call.finished or self._in_flight.get(call.key) is not call:
            return
        params: JsonObject = {"progressToken": call.progress_token, "progress": progress, "message": message}
        if total is not None:
            params["total"] = total
        # Of progress that nobody has read only the newest is kept, so a client that does not read costs nothing.
        self._withdraw(call)
        call.tickets.append(self._queue(notification_message("notifications/progress", params)))

    def finish(self, call: Call, outcome: Outcome) -> None:
        """Answer a call. Does nothing when it was cancelled: a late completion is thrown away (contract 6.1)."""
        if self._in_flight.get(call.key) is not call:
            return
        shaped = call.era.outcome(outcome)
        self._answer(
            call, error_message(call.id, shaped) if isinstance(shaped, RpcError) else result_message(call.id, shaped)
        )

    def _answer(self, pending: Pending, message: JsonObject) -> None:
        # Progress that the writer has not taken is worth nothing now, and must not arrive together with the answer.
        self._withdraw(pending)
        pending.finished = True

        def answered() -> None:
            del self._in_flight[pending.key]
            self._held_bytes -= pending.size

        pending.tickets.append(self._queue(message, answered))

    def take_output(self) -> bytes:
        """Return the messages to write now, b"" when there are none; the answers among them count as given."""
        return self._outbox.take(BATCH_BYTES)

    def output_written(self) -> None:
        """Say that what `take_output` returned last has been written."""
        self._outbox.written()

    def _consume(self, items: list[Payload | FramingFault]) -> list[Event]:
        for item in items:
            if isinstance(item, FramingFault):
                log.debug("recv fault=%s", item.message)
                prefix, code = ("Invalid Request", INVALID_REQUEST) if item.oversized else ("Parse error", PARSE_ERROR)
                self._queue(error_message(None, RpcError(code, f"{prefix}: {item.message}")))
                continue
            if item.line and item.data[:1] in (b"{", b"["):
                self._line_mode = True
            self._receive(item.data)
        events, self._events = self._events, []
        return events

    def _receive(self, data: bytes) -> None:
        message = decode(data)
        self._size = len(data)
        if log.isEnabledFor(logging.DEBUG):
            method = message.method if isinstance(message, Request | Notification) else type(message).__name__
            log.debug("recv method=%.100s bytes=%d", method, len(data))
            log.debug("recv json=%s", data.decode("utf-8", "replace"))
        if isinstance(message, Request):
            self._receive_request(message)
        elif isinstance(message, Notification):
            if message.method == "notifications/cancelled" and message.params is not None:
                self._receive_cancel(message.params)
        elif isinstance(message, Invalid):
            key = request_key(message.id)
            if key is not None and (pending := self._in_flight.get(key)) is not None:
                self._refuse_beside(pending, message.error)
            else:
                self._queue(error_message(message.id, message.error))

    def _receive_request(self, request: Request) -> None:
        if (pending := self._in_flight.get(request.key)) is not None:
            error = RpcError(INVALID_REQUEST, "Invalid Request: this id is already in flight; use a new one")
            self._refuse_beside(pending, error)
            return
        modern = envelope_of(request.params) is not None
        if request.method == "initialize" and (not modern or "protocolVersion" in request.params):
            self._initialized = True
            self._reply(request, self._legacy.initialize())
        elif modern or request.method == "server/discover":
            self._serve_modern(request)
        elif request.method == "ping":
            self._reply(request, {})  # clients refuse any member in it
        else:
            self._serve_tools(request, self._legacy)

    def _serve_modern(self, request: Request) -> None:
        if (error := check_envelope(request.params)) is not None:
            self._queue(error_message(request.id, error))
        elif request.method == "server/discover":
            self._reply(request, self._modern.discover())
        elif request.method == "subscriptions/listen":
            self._open_subscription(request)
        else:
            self._serve_tools(request, self._modern)

    def _serve_tools(self, request: Request, era: Era) -> None:
        if request.method not in ("tools/list", "tools/call"):
            self._refuse(request, METHOD_NOT_FOUND, f"Method not found: {request.method[:100]}")
            return
        if era is self._legacy and not self._initialized:
            cure = "send initialize first, or carry the 2026-07-28 _meta fields"
            self._refuse(request, INVALID_PARAMS, f"Invalid params: {cure}")
            return
        if request.method == "tools/list":
            # It never changes, and to serialise it is most of the work of answering.
            if (listed := self._listed.get(era)) is None:
                listed = self._listed[era] = encode(era.tools(tool.definition for tool in self._tools.values()))
            self._queue_bytes(result_message_bytes(request.id, listed))
            return
        name = request.params.get("name")
        arguments = request.params.get("arguments")
        if not isinstance(name, str):
            self._refuse(request, INVALID_PARAMS, "Invalid params: name must be a string, the name of a tool")
            return
        tool = self._tools.get(name)
        if tool is None:
            self._queue(error_message(request.id, era.unknown_tool(name)))
            return
        if arguments is not None and not isinstance(arguments, dict):
            self._refuse(request, INVALID_PARAMS, "Invalid params: arguments must be an object")
            return
        call = Call(
            id=request.id,
            key=request.key,
            size=self._size,
            tool=name,
            arguments=cast(JsonObject, arguments or {}),
            era=era,
            progress_token=_progress_token(request.params),
        )
        refusal = self._no_room()
        self._hold(call)
        if refusal is None:
            self._events.append(CallStarted(call))
        else:
            self.finish(call, tool.failure(refusal))

    def _open_subscription(self, request: Request) -> None:
        if not isinstance(request.params.get("notifications"), dict):
            self._refuse(request, INVALID_PARAMS, "Invalid params: notifications must be an object")
            return
        if (refusal := self._no_room()) is not None:
            self._refuse(request, INVALID_REQUEST, f"Invalid Request: {refusal}")
            return
        subscription = Subscription(id=request.id, key=request.key, size=self._size)
        self._hold(subscription)
        params = self._modern.acknowledged(request.id)
        message = notification_message("notifications/subscriptions/acknowledged", params)
        subscription.tickets.append(self._queue(message))

    def _receive_cancel(self, params: JsonObject) -> None:
        key = request_key(params.get("requestId"))
        pending = self._in_flight.pop(key, None) if key is not None else None
        if pending is None:
            return
        given = params.get("reason")
        reason = given[:200] if isinstance(given, str) else None
        log.debug("cancelled requestId=%s reason=%s", pending.id, reason)
        self._held_bytes -= pending.size
        self._withdraw(pending)
        for ticket in pending.refusals:
            self._outbox.withdraw(ticket)
        if isinstance(pending, Call):
            self._events.append(CallCancelled(pending, reason))

    def _refuse_beside(self, pending: Pending, error: RpcError) -> None:
        """Refuse a message that bears the id of a request in flight; a cancel of that takes the refusal back too."""
        ticket = self._queue(error_message(pending.id, error), lambda: pending.refusals.discard(ticket))
        pending.refusals.add(ticket)

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

    def _hold(self, pending: Pending) -> None:
        self._in_flight[pending.key] = pending
        self._held_bytes += pending.size

    def _withdraw(self, pending: Pending) -> None:
        for ticket in pending.tickets:
            self._outbox.withdraw(ticket)
        pending.tickets.clear()

    def _reply(self, request: Request, result: JsonObject) -> None:
        self._queue(result_message(request.id, result))

    def _refuse(self, request: Request, code: int, message: str) -> None:
        self._queue(error_message(request.id, RpcError(code, message)))

    def _queue(self, message: JsonObject, on_taken: Callable[[], None] | None = None) -> int:
        return self._queue_bytes(encode(message), on_taken)

    def _queue_bytes(self, body: bytes, on_taken: Callable[[], None] | None = None) -> int:
        if log.isEnabledFor(logging.DEBUG):
            log.debug("send %s bytes=%d", "line" if self._line_mode else "framed", len(body))
            log.debug("send json=%s", body.decode())
        return self._outbox.put(encode_line(body) if self._line_mode else encode_frame(body), on_taken)


def _progress_token(params: JsonObject) -> RequestId | None:
    meta = params.get("_meta")
    key = request_key(cast(JsonObject, meta).get("progressToken")) if isinstance(meta, dict) else None
    return None if key is None or len(str(key[1])) > _LONGEST_TOKEN else key[1]
