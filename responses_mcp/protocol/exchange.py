"""What passes between the session and the shell around it: what is offered, requests in flight, and events."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from responses_mcp.json_types import JsonObject, as_object
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
    """A request of the protocol that runs, such as `resources/read`.

    `failure` words a failure that is not the handler's own, such as a full server, and `crash` is the error that a bug
    in it becomes.
    """

    handler: Handler
    failure: Callable[[str], ToolFailure | RpcError] = _internal_error
    crash: RpcError = BUG


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Method):
    """One tool. Schemas are plain JSON Schema objects with an object at the root and no combinators there.

    Raises ValueError for a schema that clients refuse, and with it the whole list: not of type "object", or no JSON.
    """

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Callable[[str], ToolFailure] = ToolFailure

    def __post_init__(self) -> None:
        schemas: list[Any] = [self.input_schema, *([] if self.output_schema is None else [self.output_schema])]
        for schema in schemas:
            if as_object(schema).get("type") != "object":
                raise ValueError(f'a schema of the tool {self.name} has no "type": "object" at its root; add it.')
        try:
            json.dumps(self.definition, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the tool {self.name} cannot be listed ({error}); define it with JSON alone.") from error

    @property
    def definition(self) -> JsonObject:
        """Return the tool as `tools/list` shows it."""
        shown = {"name": self.name, "title": self.title, "description": self.description}
        more = {"outputSchema": self.output_schema, "annotations": dict(self.annotations), "_meta": dict(self.meta)}
        return {**shown, "inputSchema": self.input_schema, **{name: value for name, value in more.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A capability beside tools: methods whose results never change (`listings`), and methods that run.

    `legacy` says whether the older revision offers it, too. An `extension` is told as such, and its methods need a
    request whose client declares it, which the newer revision alone knows.
    """

    capability: str
    listings: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    methods: Mapping[str, Method] = field(default_factory=dict[str, Method])
    legacy: bool = True
    extension: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Pending:
    """A request in flight, compared by identity: an id may come back once its request is over.

    `size` are the bytes of its message, which it keeps in memory.
    """

    id: RequestId
    key: RequestKey
    size: int
    state: State = State.ACCEPTED
    tickets: list[int] = field(default_factory=list[int])  # its messages that wait in the outbox
    beside: set[int] = field(default_factory=set[int])  # and those beside its answer: refusals, news


@dataclass(eq=False, slots=True, kw_only=True)
class Call(Pending):
    """A request that runs: what it `does`, and with which arguments. `name` is that of its tool or method, for the log.

    `progress_token` is None when the client wants no progress; 0 and "" are tokens. `client` is the client's name for
    itself, None where it has none. `trace` has the headers of the trace that it belongs to. `takes_tasks` says whether
    a task may be its answer; `task` is the id of the one that is, and ends with it.
    """

    name: str
    does: Method
    revision: Revision
    arguments: Mapping[str, Any]
    progress_token: RequestId | None = None
    client: str | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    takes_tasks: bool = False
    task: str | None = None


@dataclass(eq=False, slots=True, kw_only=True)
class Subscription(Pending):
    """One `subscriptions/listen`, which stays open until a cancel or the end of the input.

    `task_ids` are the tasks that it wants to hear of; if there are any, it runs as a call does.
    """

    task_ids: Sequence[str] = ()
    acknowledged: bool = False


class CallStarted(NamedTuple):
    """A request was accepted and should run."""

    call: Call | Subscription


class CallCancelled(NamedTuple):
    """The client gave up a request that is in flight. `reason` is the client's word, None when it gave none."""

    call: Call | Subscription
    reason: str | None


Event = CallStarted | CallCancelled
