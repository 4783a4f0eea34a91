"""The state of one conversation, which the prologue begins and the tasks of Trio take over."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.exchange import Event, Feature, Method
from responses_mcp.protocol.jsonrpc import INVALID_PARAMS, RpcError
from responses_mcp.protocol.revisions import Fetched, Missing
from responses_mcp.protocol.session import Session
from responses_mcp.runtime.tasks import Tasks
from responses_mcp.settings.model import ServerSettings
from responses_mcp.toolsets.base import CallContext, Resources, Toolset

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Conversation:
    """A session and the toolsets behind it, with what has been read and taken from it and is not done yet."""

    session: Session
    toolsets: list[Toolset]
    tasks: Tasks
    events: list[Event] = field(default_factory=list[Event])  # what the session asked for last, to be carried out
    unwritten: bytes = b""  # the rest of what was taken from the session
    input_ended: bool = False
    heard: int = 0  # bytes

    def receive(self, data: bytes) -> None:
        """Give the session the next bytes, or with b"" the end of the input."""
        log.debug("stdin chunk=%d", len(data))
        self.heard += len(data)
        self.input_ended = not data
        self.events = self.session.receive_data(data) if data else self.session.receive_eof()


def open_conversation(
    toolsets: Iterable[Toolset], settings: ServerSettings, *, version: str, instructions: str | None = None
) -> Conversation:
    """Begin a conversation about `toolsets`. `version` is ours; `instructions` go to the peer's model."""
    sets = list(toolsets)
    tasks = Tasks([each.tasks for each in sets if each.tasks is not None])
    session = Session(
        {tool.name: tool for toolset in sets for tool in toolset.tools},
        version=version,
        line_mode=settings.line_mode,
        errors_as_results=None if settings.tool_errors == "auto" else settings.tool_errors == "result",
        instructions=instructions,
        features=[
            *_reading([each.resources for each in sets if each.resources is not None]),
            *(feature for each in sets for feature in each.features),
            *tasks.features,
        ],
        max_message_bytes=settings.max_message_bytes,
        max_in_flight=settings.max_in_flight,
    )
    return Conversation(session, sets, tasks)


def _reading(sources: Sequence[Resources]) -> Iterable[Feature]:
    """Yield the one capability of all that can be read. A URI goes to the source of its scheme, or to the first."""
    if not sources:
        return

    async def read(_: CallContext, params: Mapping[str, Any]) -> Fetched | Missing | RpcError:
        uri = params.get("uri")
        if not isinstance(uri, str):
            return RpcError(INVALID_PARAMS, "Invalid params: uri must be a string.")
        source = next((each for each in sources if uri.startswith(f"{each.scheme}:")), sources[0])
        return await source.read(uri)

    listings: dict[str, JsonObject] = {
        "resources/templates/list": {"resourceTemplates": [each.template for each in sources]}
    }
    methods = {"resources/read": Method(handler=read)}
    if listed := [each.list for each in sources if each.list is not None]:
        methods["resources/list"] = Method(handler=listed[0])
    else:
        listings["resources/list"] = {"resources": []}
    yield Feature(capability="resources", listings=listings, methods=methods)
