"""What passes between the session and the shell around it: tools, other features, calls in flight, and events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.jsonrpc import RequestId, RequestKey
from responses_mcp.protocol.lifecycle import State
from responses_mcp.protocol.revisions import Revision, ToolFailure


class ListedTool(Protocol):
    """A tool as the wire knows it: its definition, and how it words a failure that is not of its own making."""

    @property
    def definition(self) -> JsonObject: ...  # noqa: D102
    @property
    def failure(self) -> Callable[[str], ToolFailure]: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFeature:
    """A capability beside tools, as the wire knows it.

    `listings` maps methods to the results that they always have, `methods` has the names of those that run as calls do.
    `legacy` says whether the older revision offers it, too. An `extension` is told as such, and its methods need a
    request whose client declares it, which the newer revision alone knows.
    """

    capability: str
    listings: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    methods: Collection[str] = ()
    legacy: bool = True
    extension: bool = False


@dataclass(eq=False, slots=True, kw_only=True)
class Call:
    """One `tools/call`, or a request of another `method`, whose params are then the `arguments` and `tool` is empty.

    Compared by identity: an id may come back once its request is over. `size` are the bytes of its message, which it
    keeps in memory. `progress_token` is None when the client wants no progress; 0 and "" are tokens. `client` is the
    client's name for itself, None where it has none. `trace` has the headers of the trace that it belongs to.
    `takes_tasks` says whether a task may be its answer; `task` is the id of the one that is, and ends with it.
    """

    id: RequestId
    key: RequestKey
    size: int
    revision: Revision
    method: str = "tools/call"
    tool: str = ""
    arguments: JsonObject = field(default_factory=dict[str, Any])
    progress_token: RequestId | None = None
    client: str | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    takes_tasks: bool = False
    task: str | None = None
    state: State = State.ACCEPTED
    tickets: list[int] = field(default_factory=list[int])  # its messages that wait in the outbox
    beside: set[int] = field(default_factory=set[int])  # and those beside its answer: refusals, news


@dataclass(eq=False, slots=True, kw_only=True)
class Subscription(Call):
    """One `subscriptions/listen`, which stays open until a cancel or the end of the input.

    `task_ids` are the tasks that it wants to hear of; if there are any, it runs as a call does.
    """

    task_ids: Sequence[str] = ()
    acknowledged: bool = False


class CallStarted(NamedTuple):
    """A call was accepted and should run."""

    call: Call


class CallCancelled(NamedTuple):
    """The client gave up a call that is in flight. `reason` is the client's word, None when it gave none."""

    call: Call
    reason: str | None


Event = CallStarted | CallCancelled
