"""The 2025-06-18 shape of our results: the era of `initialize` (contract 2 and 11)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final

from responses_mcp.protocol.era import SERVER_NAME, call_result
from responses_mcp.protocol.jsonrpc import METHOD_NOT_FOUND, JsonObject, RpcError
from responses_mcp.protocol.outcome import Outcome, ToolFailure

PROTOCOL_VERSION: Final = "2025-06-18"


class LegacyEra:
    """Shapes results for clients that began with `initialize`. Nothing of a later revision is in them.

    `errors_as_results` gives tool failures the form of later revisions, a result with `isError`, for the clients that
    do not show `error.data` to anybody. `instructions`, if given, tell the client's model when to use the tools.
    """

    remembers: ClassVar = True

    def __init__(self, version: str, *, errors_as_results: bool = False, instructions: str | None = None) -> None:
        self._version = version
        self._errors_as_results = errors_as_results
        self._instructions = instructions

    def initialize(self) -> JsonObject:
        """Answer `initialize`; the version is pinned, whatever the client asks for (contract 11)."""
        result: JsonObject = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER_NAME, "version": self._version},
        }
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return result

    def empty(self) -> JsonObject:
        """Answer `ping`. Clients refuse any member in it."""
        return {}

    def tools(self, definitions: Iterable[JsonObject]) -> JsonObject:
        """Answer `tools/list`."""
        return {"tools": list(definitions)}

    def unknown_tool(self, name: str) -> RpcError:  # noqa: ARG002  # the contract's words name no tool
        """Refuse a call of a tool that does not exist (contract, appendix B)."""
        return RpcError(METHOD_NOT_FOUND, "Unknown tool")

    def outcome(self, outcome: Outcome) -> JsonObject | RpcError:
        """Shape the end of a call: a result, or the error that the contract wants."""
        if isinstance(outcome, ToolFailure) and outcome.error is not None and not self._errors_as_results:
            return outcome.error
        return call_result(outcome)
