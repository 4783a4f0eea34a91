"""Holds what a server writes against the schema of its revision, by the models of the official `mcp-types`.

Those models ignore what they do not know and convert what nearly fits. So a message is also read and written again: it
has to come out as it went in, which finds members of another revision and values of a wrong type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, Literal
from unittest.mock import patch

import trio
from mcp_types import jsonrpc, methods
from pydantic import AwareDatetime, BaseModel, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from responses_mcp.testing.client import McpClient

LEGACY: Final = "2025-06-18"
MODERN: Final = "2026-07-28"
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"

# What these hold is not for the protocol to say: JSON Schemas, and data of the tool.
OPEN: Final = {"inputSchema", "outputSchema", "structuredContent", "_meta", "data"}
# mcp-types knows one schema for all revisions before 2026; these are what 2025-06-18 has of what grew since.
OF_TOOL: Final = {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"}
OF_SERVER: Final = {"name", "title", "version"}


class Task(BaseModel, extra="forbid", alias_generator=to_camel):
    """A task as the extension has it (ext-tasks, schema/draft/schema.ts); mcp-types has that of 2025-11-25 alone."""

    task_id: str
    status_message: str = ""
    created_at: str
    last_updated_at: str
    ttl_ms: int | None
    poll_interval_ms: int = 0
    result_type: str = ""


class GoingOn(Task):
    status: Literal["working", "cancelled"]


class Completed(Task):
    status: Literal["completed"]
    result: dict[str, Any]


class Failed(Task):
    status: Literal["failed"]
    error: jsonrpc.ErrorData


class Acknowledgement(BaseModel, extra="forbid", alias_generator=to_camel):
    result_type: Literal["complete"]


OF_TASKS: Final = {
    "tasks/get": GoingOn | Completed | Failed,
    "tasks/cancel": Acknowledgement,
    "tasks/update": Acknowledgement,
}


class Misfit(AssertionError):
    """A message does not fit the schema of its revision."""


def check_message(message: Mapping[str, Any], revision: str, method: str | None = None) -> None:
    """Fail unless `message` is one that a server of the revision `revision` may write.

    `method` names the request that a result answers; without it, it is guessed from the members of the result.
    """
    if revision not in (LEGACY, MODERN):
        raise ValueError(f"there is no revision {revision!r}")
    if "method" in message:
        _check_notification(message, revision)
    elif "error" in message:
        _check_error(message, revision)
    else:
        _check_result(message, revision, method)


def _check_notification(message: Mapping[str, Any], revision: str) -> None:
    name = str(message["method"])
    if "id" in message:
        raise Misfit(f"this server asks its clients nothing: {name}")
    if name == "notifications/tasks" and revision == MODERN:
        _check_task("tasks/get", message["params"], None)
        return
    if name == "notifications/subscriptions/acknowledged":  # mcp-types does not know what the extension adds
        wanted = {key: value for key, value in message["params"]["notifications"].items() if key != "taskIds"}
        message = {**message, "params": {**message["params"], "notifications": wanted}}
    if (name, revision) not in methods.SERVER_NOTIFICATIONS:
        raise Misfit(f"{revision} has no notification {name} of a server")
    _same(methods.SERVER_NOTIFICATIONS[name, revision], message)


def _check_error(message: Mapping[str, Any], revision: str) -> None:
    _same(jsonrpc.JSONRPCError, message)
    if message["id"] is None:
        raise Misfit("no schema admits an id that is null")
    code = message["error"]["code"]
    if revision == MODERN and (-32099 <= code <= -32023 or code == -32002):
        raise Misfit(f"{revision} does not define the error code {code}, and reserves it")
    if code == jsonrpc.UNSUPPORTED_PROTOCOL_VERSION:
        data = message["error"].get("data")
        if not isinstance(data, dict) or not isinstance(data.get("requested"), str) or not data.get("supported"):
            raise Misfit(f"the error {code} must tell what was requested and what is supported: {data}")
    if code == jsonrpc.MISSING_REQUIRED_CLIENT_CAPABILITY and not message["error"].get("data"):
        raise Misfit(f"the error {code} must tell what is required: {message}")


def _check_task(method: str, value: Mapping[str, Any], result_type: str | None) -> None:
    without_meta = {key: part for key, part in value.items() if key != "_meta"}
    _same(OF_TASKS[method], without_meta)
    if value.get("resultType") != result_type or (result_type == "task" and value["status"] != "working"):
        raise Misfit(f"the resultType must be {result_type}, and a task works when it is made: {value}")
    for moment in (value.get("createdAt"), value.get("lastUpdatedAt")):
        if moment is not None and not moment.endswith("Z"):
            raise Misfit(f"{moment} is not a moment of UTC")
        _adapter(AwareDatetime | None).validate_python(moment)
    if "result" in value:
        _same(methods.SERVER_RESULTS["tools/call", MODERN], value["result"])


def _check_result(message: Mapping[str, Any], revision: str, method: str | None) -> None:
    _same(jsonrpc.JSONRPCResponse, {**message, "result": {}} if "result" in message else message)
    result = message["result"]
    if not isinstance(result, dict):
        raise Misfit(f"a result is an object: {result!r}")
    method = method or _answered(result)
    if revision == MODERN and result.get("resultType") == "task" and method == "tools/call":
        _check_task("tasks/get", result, "task")
        return
    if revision == MODERN and method in OF_TASKS:
        _check_task(method, result, "complete")
        return
    if (method, revision) not in methods.SERVER_RESULTS:
        raise Misfit(f"{revision} has no request {method}")
    _same(methods.SERVER_RESULTS[method, revision], result)
    if method == "ping" and result.keys() - {"_meta"}:
        raise Misfit(f"clients refuse any member in the answer to ping: {result}")
    if revision == LEGACY:
        for known, parts in ((OF_TOOL, result.get("tools", [])), (OF_SERVER, [result.get("serverInfo", {})])):
            for part in parts:
                if unknown := part.keys() - known:
                    raise Misfit(f"{revision} does not know {sorted(unknown)} in {part}")


def _answered(result: Mapping[str, Any]) -> str:
    """Return the method whose result this seems to be."""
    by_member = {
        "protocolVersion": "initialize",
        "supportedVersions": "server/discover",
        "tools": "tools/list",
        "content": "tools/call",
        "taskId": "tasks/get",
    }
    for member, method in by_member.items():
        if member in result:
            return method
    return "subscriptions/listen" if result else "ping"


@cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


def _same(model: Any, value: Mapping[str, Any]) -> None:
    """Fail unless the model reads `value` and writes it as it was."""
    adapter = _adapter(model)
    try:
        read = adapter.validate_python(value, by_name=False)
    except ValidationError as error:
        raise Misfit(f"{error}\nin {value}") from None
    written = adapter.dump_python(read, by_alias=True, mode="json", exclude_unset=True)
    if lost := sorted(_differences(value, written, "message")):
        raise Misfit(f"not in the schema, or of another type: {', '.join(lost)}\nin {value}")


def _differences(given: Any, written: Any, where: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(written, dict):
        for name, part in given.items():
            if name not in OPEN:
                yield from _differences(part, written.get(name, ...), f"{where}.{name}")
    elif isinstance(given, list) and isinstance(written, list) and len(given) == len(written):
        for place, (part, other) in enumerate(zip(given, written, strict=True)):
            yield from _differences(part, other, f"{where}[{place}]")
    elif given != written or isinstance(given, bool) is not isinstance(written, bool):
        yield where


class Conversation:
    """Remembers what a client asked, to know the revision and the method of each answer.

    Asker to what was never seen asked, as after bytes sent by hand, may be of either revision. Errors with an id of
    null answer what could not be read; JSON-RPC wants them so, and no schema of MCP has them.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, type, Any], list[tuple[str, str]]] = {}

    def sent(self, message: Any) -> None:
        """Note a message of the client; what is no request is of no interest."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        meta = meta if isinstance(meta, dict) else {}
        method = message["method"]
        revision = MODERN if VERSION_KEY in meta and method != "initialize" else LEGACY
        for kind, value in (("id", message.get("id")), ("token", meta.get("progressToken"))):
            if isinstance(value, str | int):
                self._asked.setdefault((kind, type(value), value), []).append((revision, method))

    def check(self, message: Mapping[str, Any]) -> None:
        """Fail unless the server's message fits the revision in which it was asked for."""
        if "error" in message and message.get("id", ...) is None:
            return
        problems = []
        for revision, method in self._possible(message):
            try:
                check_message(message, revision, method)
            except Misfit as misfit:
                problems.append(f"{revision} {method or ''}: {misfit}")
            else:
                return
        raise Misfit("\n".join(problems))

    def _possible(self, message: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
        if "method" in message:
            params = message.get("params")
            value = params.get("progressToken") if isinstance(params, dict) else None
            asked = self._asked.get(("token", type(value), value), [])
            return {(revision, None) for revision, _ in asked} or {(LEGACY, None), (MODERN, None)}
        value = message.get("id")
        asked = self._asked.get(("id", type(value), value), []) if isinstance(value, str | int) else []
        return set(asked) or {(LEGACY, None), (MODERN, None)}


@contextmanager
def checked_clients() -> Iterator[None]:
    """Hold every message that any `McpClient` hears within the block against its schema, when the block is over."""
    conversations: dict[McpClient, Conversation] = {}
    send, listen = McpClient.send, McpClient.listen

    async def noting_send(self: McpClient, *messages: dict[str, Any]) -> None:
        for message in messages:
            conversations.setdefault(self, Conversation()).sent(message)
        await send(self, *messages)

    async def noting_listen(self: McpClient, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        conversations.setdefault(self, Conversation())
        await listen(self, task_status=task_status)

    with patch.object(McpClient, "send", noting_send), patch.object(McpClient, "listen", noting_listen):
        yield
    for client, conversation in conversations.items():
        for message in client.heard:
            conversation.check(message)
