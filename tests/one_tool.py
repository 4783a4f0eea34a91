"""A toolset of one tool that does what a test says."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio

from responses_mcp.toolsets.base import CallContext, Tool, Toolset, ToolSuccess


class OneTool(Toolset):
    """Offers `handler` as a tool, and counts how often it was closed."""

    def __init__(
        self,
        handler: Callable[[CallContext, Mapping[str, Any]], Awaitable[ToolSuccess]],
        name: str = "work",
        description: str = "",
    ) -> None:
        schema = {"type": "object"}
        self._tools = [Tool(name=name, title="", description=description, input_schema=schema, handler=handler)]
        self.closed = 0

    @property
    def tools(self) -> list[Tool]:
        return self._tools

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()
