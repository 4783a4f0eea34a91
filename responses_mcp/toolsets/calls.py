"""What the toolsets share: the wrapper around the work of each call, and the `Asker` of those that ask with one."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from responses_mcp.errors import AuthenticationFailed, KeyUnusable, ResponsesMcpError, UpstreamError, program
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.settings.model import ServerSettings
from responses_mcp.toolsets.base import CallContext, Task, Tool, ToolError, ToolFailure, Toolset, ToolSuccess
from responses_mcp.toolsets.schema import Definition

if TYPE_CHECKING:
    from responses_mcp.asking import Asker

log = logging.getLogger(__name__)

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
USUAL_CHARACTERS: Final = ServerSettings().max_result_chars
"""Characters of an answer where nobody sets `server.max_result_chars`."""
SIZE: Final = "anthropic/maxResultSizeChars"
"""Where in `_meta` a tool in the list says how long results may be; Claude Code puts those beyond its limit aside."""
USAGE: Final = "io.github.uchimanajet7/usage"
"""Where in `_meta` a result says what the call used."""
MASKED: Final = "io.github.uchimanajet7/masked"
"""Where in `_meta` a result says what was masked in the question before it was sent."""

# Clients that pass the variable on from where they were started, as `install` writes their entry: their title, and the
# name that `install` has, by what they call themselves in the handshake.
_PASS_IT_ON: Final = {
    "claude-code": ("Claude Code", "claude-code"),
    "codex-mcp-client": ("Codex", "codex"),
    "gemini-cli-mcp-client": ("Gemini CLI", "gemini"),
    "opencode": ("OpenCode", "opencode"),
}


class Done(NamedTuple):
    """What a tool has done."""

    result: JsonObject
    usage: Mapping[str, Any] | None = None
    masked: Mapping[str, int] | None = None  # in the question


Work: TypeAlias = Callable[[CallContext, Mapping[str, Any]], Awaitable[Done | Task | ToolSuccess]]
Failed: TypeAlias = Callable[[ResponsesMcpError | None, str], ToolFailure]
"""Words a failure: an error, None where it is not the tool's own, and the message for the user without secrets."""


def tool_of(shown: Definition, work: Work, failed: Failed, redact: Callable[[str], str] = str, **more: Any) -> Tool:
    """Return a tool: a call of it is logged, does the work, and its result or its failure is worded.

    `more` are further members of `Tool`.
    """

    async def handle(context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess | Task:
        query = arguments.get("query")
        length = len(query) if isinstance(query, str) else 0
        log.debug("server: tools/call name=%s argsKeys=%s queryLen=%d", shown.name, sorted(arguments), length)
        try:
            done = await work(context, arguments)
        except ResponsesMcpError as error:
            raise ToolError(failure_of(error, failed, redact, context.client)) from error
        return success_of(done) if isinstance(done, Done) else done

    return Tool(**shown._asdict(), handler=handle, failure=partial(failed, None), **more)


def success_of(done: Done) -> ToolSuccess:
    """Return what a client gets for work that was done."""
    return ToolSuccess(_ENCODE(done.result), done.result, _meta(done.usage, done.masked))


def failure_of(
    error: ResponsesMcpError, failed: Failed, redact: Callable[[str], str], client: str | None = None
) -> ToolFailure:
    """Return what a client gets for work that failed."""
    text = replace_lone_surrogates(redact(_for_client(error, client)))
    used = error.usage if isinstance(error, UpstreamError) else None
    return failed(error, text)._replace(meta=_meta(used, error.masked))


def _for_client(error: ResponsesMcpError, client: str | None) -> str:
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


def _meta(usage: Mapping[str, Any] | None, masked: Mapping[str, int] | None) -> JsonObject | None:
    told = {USAGE: usage, MASKED: masked}
    return {name: dict(counts) for name, counts in told.items() if counts} or None


class AskerTools(Toolset):
    """Tools over one `Asker`, which `open_asker` makes for the first call."""

    def __init__(self, open_asker: Callable[[], Asker]) -> None:
        self._open_asker: Final = open_asker
        self._asker: Asker | None = None

    def _asked(
        self, names: Iterable[str], context: CallContext, arguments: Mapping[str, Any]
    ) -> tuple[Asker, JsonObject]:
        """Return whom to ask, and with what: the arguments of these names as they came, for the asker to check."""
        from responses_mcp.responses_api.watcher import Watcher  # noqa: PLC0415  # a start should not wait for it

        self._asker = self._asker or self._open_asker()
        asked = {name: arguments.get(name) for name in names}
        watcher = Watcher(context.report, room=context.room, client=context.client, takes_tasks=context.takes_tasks)
        return self._asker, {**asked, "watcher": watcher}

    def _redact(self, text: str) -> str:
        return text if self._asker is None else self._asker.redact(text)

    async def aclose(self) -> None:
        """Close the connections to the API."""
        if self._asker is not None:
            await self._asker.aclose()
