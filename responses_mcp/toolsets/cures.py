"""What is wrong, for the user of an MCP client: the cure of an error depends on who is asking.

Errors of the package are worded for programs that embed it. The user of a client sets the key in another place, and
where that is depends on the client.
"""

from __future__ import annotations

from typing import Final

from responses_mcp.errors import KeyUnusable, ResponsesMcpError

# Clients that pass the variable on from where they were started, as `install` writes their entry: what they call
# themselves in the handshake, and what people call them. An unset variable arrives there unset, empty or unexpanded.
_PASS_IT_ON: Final = {
    "claude-code": "Claude Code",
    "codex-mcp-client": "Codex",
    "gemini-cli-mcp-client": "Gemini CLI",
    "opencode": "OpenCode",
}


def for_client(error: ResponsesMcpError, client: str | None) -> str:
    """Return the message of an error for the user of the client that calls itself `client`, None if it did not.

    Only `KeyUnusable` has a cure that depends on it; of all others the message is for everybody.
    """
    if not isinstance(error, KeyUnusable):
        return str(error)
    if error.remedy is not None:
        return f"{error.cause} {error.remedy} Then restart the client."
    if client in _PASS_IT_ON:
        title = _PASS_IT_ON[client]
        return (
            f"There is no API key: {error.variable} is not set where {title} was started. Set it there "
            f"(`{error.command}`), then restart {title}; its entry for this server passes it on by name."
        )
    return (
        f"{error.cause} Set it in the `env` of this server's entry in your MCP client's configuration, then restart "
        "the client."
    )
