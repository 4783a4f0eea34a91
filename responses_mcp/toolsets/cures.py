"""What is wrong, for the user of an MCP client. Errors of the package are worded for programs that embed it."""

from __future__ import annotations

from typing import Final

from responses_mcp.errors import AuthenticationFailed, KeyUnusable, ResponsesMcpError, program

# Clients that pass the variable on from where they were started, as `install` writes their entry: their title, and the
# name that `install` has, by what they call themselves in the handshake.
_PASS_IT_ON: Final = {
    "claude-code": ("Claude Code", "claude-code"),
    "codex-mcp-client": ("Codex", "codex"),
    "gemini-cli-mcp-client": ("Gemini CLI", "gemini"),
    "opencode": ("OpenCode", "opencode"),
}


def for_client(error: ResponsesMcpError, client: str | None) -> str:
    """Return the message of an error for the user of the client that calls itself `client`: where to set the key."""
    if not isinstance(error, AuthenticationFailed):
        return str(error)
    title, name = _PASS_IT_ON.get(client or "", ("the client", ""))
    if not isinstance(error, KeyUnusable):
        where = f"where {title} is started, or in this server's entry if the entry sets it"
        return f"{error.message} Change it {where}, and restart {title}.{str(error).removeprefix(error.message)}"
    again = f"run `{program('install', name, '--write')}`"
    if error.remedy is not None:
        told = f"{error.cause} {error.remedy} Then restart {title}."
        other = f" If it is right where {title} was started, this server's entry has another value: {again}."
        return told + other if name else told
    if name:
        return (
            f"There is no API key: {error.variable} does not reach this server. Set it where {title} is started "
            f"(`{error.command}`), then restart {title}. If it is set there, this server's entry does not pass it on: "
            f"{again} and restart {title}."
        )
    entry = "in the `env` of this server's entry in your MCP client's configuration"
    return f"{error.cause} Set it {entry}, then restart the client."
