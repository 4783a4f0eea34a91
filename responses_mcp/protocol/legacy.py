"""The 2025-06-18 shape of what we answer: the era of `initialize` (contract 2 and 11).

Everything that a client of this era sees of our results is built here, and nothing of it elsewhere, so that a second
era is a second module with the same functions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from responses_mcp.protocol.jsonrpc import METHOD_NOT_FOUND, JsonObject, RpcError
from responses_mcp.protocol.outcome import Crash, Outcome, ToolSuccess

PROTOCOL_VERSION: Final = "2025-06-18"
SERVER_NAME: Final = "openai-responses-mcp"


class LegacyEra:
    """Shapes results for clients that began with `initialize`.

    `errors_as_results` gives tool failures the form of later revisions, a result with `isError`, for the clients that
    do not show `error.data` to anybody.
    """

    def __init__(self, version: str, *, errors_as_results: bool = False) -> None:
        self._version = version
        self._errors_as_results = errors_as_results

    def initialize(self) -> JsonObject:
        """Answer `initialize`; the version is pinned, whatever the client asks for (contract 11)."""
        return {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER_NAME, "version": self._version},
        }

    def empty(self) -> JsonObject:
        """Answer `ping`. Clients refuse any member in it."""
        return {}

    def tools(self, definitions: Iterable[JsonObject]) -> JsonObject:
        """Answer `tools/list`, in one page: some clients read no second one."""
        return {"tools": list(definitions)}

    def unknown_tool(self, name: str) -> RpcError:  # noqa: ARG002  # the contract's text names no tool
        """Refuse a call of a tool that does not exist (contract, appendix B)."""
        return RpcError(METHOD_NOT_FOUND, "Unknown tool")

    def outcome(self, outcome: Outcome) -> JsonObject | RpcError:
        """Shape the end of a call: a result, or the error that the contract wants."""
        if isinstance(outcome, Crash):
            return outcome.error
        if isinstance(outcome, ToolSuccess):
            result: JsonObject = {"content": [{"type": "text", "text": outcome.text}]}
            if outcome.structured is not None:
                result["structuredContent"] = outcome.structured
            return result
        if outcome.error is not None and not self._errors_as_results:
            return outcome.error
        return {"content": [{"type": "text", "text": outcome.text}], "isError": True}
