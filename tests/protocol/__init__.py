from collections.abc import Callable
from typing import Any, NamedTuple

from responses_mcp.protocol.revisions import ToolFailure


class Listed(NamedTuple):
    """A tool as the session knows it."""

    definition: dict[str, Any]
    failure: Callable[[str], ToolFailure] = ToolFailure
