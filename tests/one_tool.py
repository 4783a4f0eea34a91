"""A toolset of one tool that does what a test says."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from responses_mcp.toolsets.base import CallContext, Tool, ToolSuccess


class OneTool:
    """Offers `handler` as a tool, and counts how often it was closed."""

    def __init__(
        self,
        handler: Callable[[CallContext, Mapping[str, Any]], Awaitable[ToolSuccess]],
        name: str = "work",
        description: str = "",
    ) -> None:
        schema = {"type": "object"}
        self.tools = [Tool(name=name, title="", description=description, input_schema=schema, handler=handler)]
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()
