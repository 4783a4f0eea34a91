"""What is wrong, for the user of an MCP client: the cure of an error depends on who is asking.

Errors of the package are worded for programs that embed it. The user of a client sets the key in another place, and
where that is depends on the client.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from responses_mcp.errors import AuthenticationFailed, KeyUnusable, ResponsesMcpError

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

    Only errors about the key have a cure that depends on it; of all others the message is for everybody.
    """
    title = _PASS_IT_ON.get(client or "")
    if isinstance(error, AuthenticationFailed) and error.status == HTTPStatus.UNAUTHORIZED:
        where = (
            "in this server's entry, or where the client is started"
            if title is None
            else f"where {title} is started, or in this server's entry if it stands there"
        )
        request_id = str(error)[len(error.message) :]
        return f"{error.message} Change it {where}, and restart {title or 'the client'}.{request_id}"
    if not isinstance(error, KeyUnusable):
        return str(error)
    if error.remedy is not None:
        return f"{error.cause} {error.remedy} Then restart the client."
    if title is None and error.unfilled:
        return (
            f"{error.cause} Set the variable where the client is started (`{error.command}`), then restart the client. "
            "If it is set there, this client has another form of placeholder, which the command `install` knows."
        )
    if title is not None:
        again = " If it is set there, the entry has another client's form of that: write it anew with `install`."
        return (
            f"There is no API key: {error.variable} is not set where {title} was started. Set it there "
            f"(`{error.command}`), then restart {title}; its entry for this server passes it on by name."
            f"{again if error.unfilled else ''}"
        )
    return (
        f"{error.cause} Set it in the `env` of this server's entry in your MCP client's configuration, then restart "
        "the client."
    )
