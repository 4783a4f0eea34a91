"""What passes between the session and the shell around it: what is offered, requests in flight, and events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, RequestId, RequestKey, RpcError
from responses_mcp.protocol.lifecycle import State
from responses_mcp.protocol.revisions import BUG, Outcome, Revision, Task, ToolFailure

Handler: TypeAlias = Callable[[Any, Mapping[str, Any]], Awaitable[Outcome | Task]]
"""Does the work of a call, whose `CallContext` it gets, with arguments or params as the client sent them, unchecked.

It runs in a task of its own, inside the cancel scope of its call, and may be cancelled at any checkpoint.
"""


def _internal_error(text: str) -> ToolFailure | RpcError:
    return RpcError(INTERNAL_ERROR, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A request of the protocol that runs, such as `resources/read`."""

    handler: Handler
    failure: Callable[[str], ToolFailure | RpcError] = _internal_error  # not the handler's own: a full server
    crash: RpcError = BUG  # what a bug in the handler becomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Method):
    """One tool. Schemas are JSON Schema with an object at the root and no combinators there: clients refuse others."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Callable[[str], ToolFailure] = ToolFailure

    @property
    def definition(self) -> JsonObject:
        """Return the tool as `tools/list` shows it."""
        shown = {"name": self.name, "title": self.title, "description": self.description}
        more = {"outputSchema": self.output_schema, "annotations": dict(self.annotations), "_meta": dict(self.meta)}
        return {**shown, "inputSchema": self.input_schema, **{name: value for name, value in more.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A capability beside tools."""

    capability: str
    listings: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])  # whose results never change
    methods: Mapping[str, Method] = field(default_factory=dict[str, Method])  # which run
    legacy: bool = True  # the older revision offers it, too
    extension: bool = False  # told as such; methods need a request whose client declares it


@dataclass(eq=False, slots=True, kw_only=True)
class Pending:
    """A request in flight, compared by identity: an id may come back once its request is over."""

    id: RequestId
    key: RequestKey
    size: int  # bytes of its message, which it keeps in memory
    state: State = State.ACCEPTED
    tickets: list[int] = field(default_factory=list[int])  # its messages that wait in the outbox
    beside: set[int] = field(default_factory=set[int])  # and those beside its answer: refusals, news


@dataclass(eq=False, slots=True, kw_only=True)
class Call(Pending):
    """A request that runs."""

    name: str  # of its tool or method, for the log
    does: Method
    revision: Revision
    arguments: Mapping[str, Any]
    progress_token: RequestId | None = None  # 0 and "" are tokens
    client: str | None = None  # its name for itself
    trace: Mapping[str, str] = field(default_factory=dict[str, str])  # headers
    takes_tasks: bool = False  # a task may be its answer


@dataclass(eq=False, slots=True, kw_only=True)
class Subscription(Pending):
    """One `subscriptions/listen`, which stays open until a cancel or the end of the input."""

    task_ids: Sequence[str] = ()  # the tasks that it wants to hear of; if there are any, it runs as a call does
    acknowledged: bool = False


class CallStarted(NamedTuple):
    """A request was accepted and should run."""

    call: Call | Subscription


class CallCancelled(NamedTuple):
    """The client gave up a request that is in flight. `reason` is the client's word, None when it gave none."""

    call: Call | Subscription
    reason: str | None


Event = CallStarted | CallCancelled
