from collections.abc import Callable, Mapping
from typing import Any

from responses_mcp.protocol.exchange import Tool
from responses_mcp.protocol.revisions import ToolFailure


async def never(_context: object, _arguments: Mapping[str, Any]) -> ToolFailure:  # noqa: ASYNC124  # a handler is one
    raise AssertionError("the session runs nothing")


def a_tool(name: str, failure: Callable[[str], ToolFailure] = ToolFailure, **more: Any) -> Tool:
    """Make a tool as the session knows it."""
    usual: dict[str, Any] = {"title": "", "description": "", "input_schema": {"type": "object"}}
    return Tool(name=name, handler=never, failure=failure, **{**usual, **more})
