"""What a toolset is to the server, and what its tools may know of a call.

Toolsets know neither framing nor revisions. They raise `ToolError` for what a caller can understand; anything else that
escapes a tool is a bug of ours and reaches the client as such.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.exchange import Feature, Handler, Method, Tool
from responses_mcp.protocol.jsonrpc import RequestId, RpcError
from responses_mcp.protocol.revisions import Fetched, Missing, Task, ToolFailure, ToolSuccess

if TYPE_CHECKING:
    import trio

    from responses_mcp.room import Room

__all__ = [
    "CallContext",
    "Feature",
    "Fetched",
    "Method",
    "Missing",
    "Resources",
    "RpcError",
    "Task",
    "TaskSource",
    "Tool",
    "ToolError",
    "ToolFailure",
    "ToolSuccess",
    "Toolset",
]


class CallContext(NamedTuple):
    """What a tool may know of the call it serves."""

    request_id: RequestId
    report: Callable[[str], None] | None = None  # tells the client what is going on; None: it does not want to know
    memory: dict[str, Any] | None = None  # of this client on one stream; None: its revision forbids it
    deadline: Callable[[], float] = lambda: math.inf
    """Tells, asked in the call's own task, when on Trio's clock the call will be cancelled. It may come nearer."""
    room: Room | None = None  # to wait for before asking something that costs
    client: str | None = None  # what the client calls itself, which may be anything
    takes_tasks: bool = False  # the answer may be a task in place of a result


class ToolError(Exception):
    """A tool could not do what was asked. `failure`, or its text, is what the client learns; of several, the first."""

    def __init__(self, failure: ToolFailure | str) -> None:
        self.failure = ToolFailure(failure) if isinstance(failure, str) else failure
        super().__init__(self.failure.text)


class Resources(NamedTuple):
    """What a toolset lets clients read, all of it under one scheme: `read(uri)`, whatever is behind the scheme.

    `list` answers `resources/list`; without it nothing is listed.
    """

    scheme: str
    template: JsonObject
    read: Callable[[str], Awaitable[Fetched | Missing | RpcError]]
    list: Handler | None = None


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
        """What is offered beside tools, resources and tasks."""
        return ()

    @property
    def resources(self) -> Resources | None:
        """What clients may read."""
        return None

    @property
    def tasks(self) -> TaskSource | None:
        """What knows the tasks that calls may become."""
        return None

    def live_in(self, nursery: trio.Nursery) -> None:
        """Take the nursery for work that outlives its calls. Called once, before the first call.

        The nursery outlives the calls of the server, and is cancelled before the toolset is closed.
        """

    async def aclose(self) -> None:
        """Release everything. Called once, when no tool of the set runs any more, perhaps in a cancelled scope."""
