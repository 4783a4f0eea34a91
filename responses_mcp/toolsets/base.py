"""What a tool is to the server: a definition that clients read, and a coroutine that does it.

Toolsets know neither framing nor revisions. They raise `ToolError` for what a caller can understand; anything else that
escapes a tool is a bug of ours and reaches the client as such.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.protocol.exchange import ListedFeature
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, RequestId, RpcError
from responses_mcp.protocol.revisions import Crash, Fetched, Refused, Task, ToolFailure, ToolSuccess

if TYPE_CHECKING:
    import trio

    from responses_mcp.room import Room


class CallContext(NamedTuple):
    """What a tool may know of the call it serves: the id under which the client asked.

    `report(message)` tells the client what is going on; it is None when the client does not want to know, so that a
    tool can save itself the work of finding out. `memory` is what tools may remember about this client between the
    calls of one stream; it is None where the client's revision of the protocol forbids state between requests.
    `deadline()`, asked in the call's own task, tells when on Trio's clock the call will be cancelled: never (infinity)
    while nothing sets an end, and sooner once the input has ended or the server is asked to stop. `room` is there to
    wait for before asking something that costs. `client` is what the client calls itself, None if it did not say; it
    may say anything. With `takes_tasks` the answer may be a task of the toolset in place of a result.
    """

    request_id: RequestId
    report: Callable[[str], None] | None = None
    memory: dict[str, Any] | None = None
    deadline: Callable[[], float] = lambda: math.inf
    room: Room | None = None
    client: str | None = None
    takes_tasks: bool = False


class ToolError(Exception):
    """A tool could not do what was asked. `failure`, or its text, is what the client learns; of several, the first."""

    def __init__(self, failure: ToolFailure | str) -> None:
        self.failure = ToolFailure(failure) if isinstance(failure, str) else failure
        super().__init__(self.failure.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. Schemas are plain JSON Schema objects with an object at the root and no combinators there.

    Raises ValueError for a schema that clients refuse, and with it the whole list: not of type "object", or no JSON.
    `handler(context, arguments)` gets the arguments as the client sent them, unchecked. It runs in a task of its own,
    inside the cancel scope of its call, and may be cancelled at any checkpoint. `failure` words a failure that is not
    the tool's own, such as a full server, and `crash` is what a bug in it becomes.
    """

    name: str
    title: str
    description: str
    input_schema: JsonObject
    handler: Callable[[CallContext, Mapping[str, Any]], Awaitable[ToolSuccess | Task]]
    output_schema: JsonObject | None = None
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Callable[[str], ToolFailure] = ToolFailure
    crash: Crash = field(default_factory=Crash)

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


class Method(NamedTuple):
    """A request of the protocol beside `tools/call`, such as `resources/read`; it runs as a call of a tool does.

    `handler(context, params)` gets the params as the client sent them, unchecked.
    """

    handler: Callable[[CallContext, Mapping[str, Any]], Awaitable[Fetched | Refused | Task]]
    crash: Crash = Crash()

    def failure(self, text: str) -> Refused:
        """Word a failure that is not its own, such as a full server."""
        return Refused(RpcError(INTERNAL_ERROR, text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature(ListedFeature):
    """What a server offers beside tools, with what answers its methods, by their names.

    Where several toolsets have resources, a request goes to the one whose `scheme` its URI has, or else to the first.
    """

    scheme: str = ""
    methods: Mapping[str, Method] = field(default_factory=dict[str, Method])


class TaskSource(Protocol):
    """Tasks that a toolset keeps, of this server and of others. Raises `ToolError` for what cannot be told now."""

    async def look(self, task_id: str) -> Task | None:
        """Return how far a task is; None for an id that is not known."""
        ...

    async def cancel(self, task_id: str) -> bool:
        """Have a task cancelled, without waiting until it is; tell whether the id is known."""
        ...


class Toolset:
    """Base of toolsets: tools that share what they need, such as a connection pool. Each member may be overridden."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools, in the order in which they are listed."""
        return ()

    @property
    def features(self) -> Sequence[Feature]:
        """What is offered beside tools."""
        return ()

    @property
    def tasks(self) -> TaskSource | None:
        """What knows the tasks that calls of this server may become; None where no call does."""
        return None

    @property
    def live_in(self) -> Callable[[trio.Nursery], None] | None:
        """What takes the nursery for work that outlives its calls; None where there is no such work.

        It is called once, before the first call. The nursery outlives the calls of the server, and is cancelled before
        the toolset is closed.
        """
        return None

    async def aclose(self) -> None:
        """Release everything. Called once, when no tool of the set runs any more, perhaps in a cancelled scope."""


__all__ = [
    "CallContext",
    "Feature",
    "Method",
    "RpcError",
    "Task",
    "TaskSource",
    "Tool",
    "ToolError",
    "ToolFailure",
    "ToolSuccess",
    "Toolset",
]
