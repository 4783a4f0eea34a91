"""What is wrong, for the user of an MCP client: the cure of an error depends on who is asking.

Errors of the package are worded for programs that embed it. The user of a client sets the key in another place, and
where that is depends on the client.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from responses_mcp.errors import AuthenticationFailed, KeyUnusable, ResponsesMcpError, program


class _Client(NamedTuple):
    """What people call a client, and what `install` does; `inherits` if its whole environment reaches the server."""

    title: str
    name: str
    inherits: bool


# Clients that pass the variable on from where they were started, as `install` writes their entry, by what they call
# themselves in the handshake. An unset variable arrives there unset, empty or unexpanded.
_PASS_IT_ON: Final = {
    "claude-code": _Client("Claude Code", "claude-code", inherits=True),
    "codex-mcp-client": _Client("Codex", "codex", inherits=False),
    "gemini-cli-mcp-client": _Client("Gemini CLI", "gemini", inherits=False),
    "opencode": _Client("OpenCode", "opencode", inherits=True),
}
# Those in whose entries only values can stand.
_FILL_IN_NOTHING: Final = {"claude-ai": "Claude Desktop", "Zed": "Zed"}


def for_client(error: ResponsesMcpError, client: str | None) -> str:
    """Return the message of an error for the user of the client that calls itself `client`, None if it did not.

    Only errors about the key have a cure that depends on it; of all others the message is for everybody.
    """
    if not isinstance(error, AuthenticationFailed):
        return str(error)
    known = _PASS_IT_ON.get(client or "")
    title = "the client" if known is None else known.title
    again = "" if known is None else f"run `{program('install', known.name, '--write')}`"
    if not isinstance(error, KeyUnusable):
        where = "in this server's entry, or where the client is started"
        if known is not None:
            where = f"where {title} is started, or in this server's entry if it stands there"
        return f"{error.message} Change it {where}, and restart {title}.{str(error).removeprefix(error.message)}"
    if error.remedy is not None:
        told = f"{error.cause} {error.remedy} Then restart {title}."
        other = f" If it is right where {title} was started, this server's entry has another: {again}."
        return told if known is None else told + other
    if known is not None:
        # Whether it is not set there or the entry does not pass it on cannot be told here where not all is passed on.
        cause = f"is not set where {title} was started" if known.inherits else "does not reach this server"
        return (
            f"There is no API key: {error.variable} {cause}. Set it where {title} is started (`{error.command}`), then "
            f"restart {title}. If it is set there, this server's entry does not pass it on: {again} and restart "
            f"{title}."
        )
    if error.unfilled and client in _FILL_IN_NOTHING:
        title = _FILL_IN_NOTHING[client]
        return (
            f"{error.cause} {title} fills in none: write the key itself in its place in the `env` of this server's "
            f"entry, then restart {title}."
        )
    if error.unfilled:
        return (
            f"{error.cause} Set the variable where the client is started (`{error.command}`), then restart the client. "
            "If it is set there, this client has another form of placeholder, or none; the command `install` knows."
        )
    entry = "in the `env` of this server's entry in your MCP client's configuration"
    return f"{error.cause} Set it {entry}, then restart the client."
