"""What an era of the protocol decides: the shape of our results, and nothing about when they are sent.

The server speaks two. `protocol.legacy` is 2025-06-18, which a client enters with `initialize`; `protocol.modern` is
2026-07-28, whose requests each carry their own envelope. Every message is served by the era it belongs to, on one
stream and in any mixture.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, Protocol

from responses_mcp.protocol.jsonrpc import JsonObject, RpcError
from responses_mcp.protocol.outcome import Crash, Outcome, ToolSuccess

SERVER_NAME: Final = "openai-responses-mcp"


class Era(Protocol):
    """The results of one era. `remembers` tells whether a request may depend on what an earlier one did."""

    remembers: ClassVar[bool]

    def tools(self, definitions: Iterable[JsonObject]) -> JsonObject:
        """Answer `tools/list`, in one page: some clients read no second one."""
        ...

    def unknown_tool(self, name: str) -> RpcError:
        """Refuse a call of a tool that does not exist."""
        ...

    def outcome(self, outcome: Outcome) -> JsonObject | RpcError:
        """Shape the end of a call."""
        ...


def call_result(outcome: Outcome) -> JsonObject | RpcError:
    """Shape the end of a call as a result of `tools/call`, which both eras have; a crash is an error in both.

    Error results carry no structured content: clients would hold it against the tool's output schema.
    """
    if isinstance(outcome, Crash):
        return outcome.error
    result: JsonObject = {"content": [{"type": "text", "text": outcome.text}]}
    if isinstance(outcome, ToolSuccess):
        if outcome.structured is not None:
            result["structuredContent"] = outcome.structured
        result["isError"] = False
    else:
        result["isError"] = True
    return result
