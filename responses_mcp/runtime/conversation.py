"""The state of one conversation, which the prologue begins and the tasks of Trio take over."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.exchange import Call, Event
from responses_mcp.protocol.revisions import Fetched, Refused, Task
from responses_mcp.protocol.session import Session
from responses_mcp.runtime.tasks import Tasks
from responses_mcp.settings.model import ServerSettings
from responses_mcp.toolsets.base import CallContext, Feature, Method, Tool, Toolset

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Conversation:
    """A session and the tools behind it, with what has been read and taken from it and is not done yet."""

    session: Session
    toolsets: list[Toolset]
    tools: dict[str, Tool]
    tasks: Tasks
    methods: dict[str, Method] = field(default_factory=dict[str, Method])  # requests beside tools/call that run
    events: list[Event] = field(default_factory=list[Event])  # what the session asked for last, to be carried out
    unwritten: bytes = b""  # the rest of what was taken from the session
    input_ended: bool = False
    heard: int = 0  # bytes

    def does(self, call: Call) -> Tool | Method:
        """Return what a call is for."""
        return self.tools[call.tool] if call.method == "tools/call" else self.methods[call.method]

    def receive(self, data: bytes) -> None:
        """Give the session the next bytes, or with b"" the end of the input; what it asks for is put into `events`."""
        log.debug("stdin chunk=%d", len(data))
        self.heard += len(data)
        self.input_ended = not data
        self.events = self.session.receive_data(data) if data else self.session.receive_eof()


def open_conversation(
    toolsets: Iterable[Toolset], settings: ServerSettings, *, version: str, instructions: str | None = None
) -> Conversation:
    """Begin a conversation about `toolsets`.

    `version` is ours, for the handshake; `instructions`, if given, tell the peer's model when to use the tools.
    """
    sets = list(toolsets)
    tools = {tool.name: tool for toolset in sets for tool in toolset.tools}
    tasks = Tasks([each.tasks for each in sets if each.tasks is not None])
    features = _joined([feature for each in sets for feature in each.features] + tasks.features)
    session = Session(
        tools,
        version=version,
        line_mode=settings.line_mode,
        errors_as_results=None if settings.tool_errors == "auto" else settings.tool_errors == "result",
        instructions=instructions,
        features=features,
        max_message_bytes=settings.max_message_bytes,
        max_in_flight=settings.max_in_flight,
    )
    methods = {name: each.methods[name] for each in features for name in each.methods}
    return Conversation(session, sets, tools, tasks, methods)


def _joined(features: Iterable[Feature]) -> list[Feature]:
    """Return features of which no two are of one capability: their lists are one, and requests go by their URIs."""
    joined: dict[str, Feature] = {}
    for new in features:
        if (old := joined.get(new.capability)) is not None:
            methods = {**new.methods, **old.methods}
            for name in old.methods.keys() & new.methods.keys():
                methods[name] = Method(partial(_by_uri, old.methods[name], new.methods[name], f"{new.scheme}:"))
            listings: dict[str, JsonObject] = {}
            for name in (old.listings.keys() | new.listings.keys()) - methods.keys():
                one, other = old.listings.get(name, {}), new.listings.get(name, {})
                listings[name] = {key: [*one.get(key, ()), *other.get(key, ())] for key in one.keys() | other.keys()}
            new = replace(old, listings=listings, methods=methods)  # noqa: PLW2901
        joined[new.capability] = new
    return list(joined.values())


async def _by_uri(
    first: Method, second: Method, scheme: str, context: CallContext, params: Mapping[str, Any]
) -> Fetched | Refused | Task:
    is_second = str(params.get("uri")).startswith(scheme)
    return await (second if is_second else first).handler(context, params)
