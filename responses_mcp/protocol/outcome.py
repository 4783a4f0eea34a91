"""How a tool call can end, before any era of the protocol has given it a shape."""

from __future__ import annotations

from dataclasses import dataclass

from responses_mcp.protocol.jsonrpc import JsonObject, RpcError


@dataclass(frozen=True, slots=True)
class ToolSuccess:
    """The tool answered: `text` for readers, `structured` the same facts for programs, None without a schema."""

    text: str
    structured: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolFailure:
    """The tool could not do it. `text` tells cause and cure.

    `error` is the JSON-RPC error by which the contract reports it; None where the contract wants a result with
    `isError` in every era.
    """

    text: str
    error: RpcError | None = None


@dataclass(frozen=True, slots=True)
class Crash:
    """A bug of ours ended the call. The client learns no more than that."""


Outcome = ToolSuccess | ToolFailure | Crash
