"""What a revision of the protocol decides: the shape of our results, and nothing about when they are sent.

The server speaks two, on one stream and in any mixture; every message is served by its own. 2025-06-18, the legacy one,
is entered with `initialize` (spec 2 and 11). In 2026-07-28, the modern one, there is no handshake: every request says
in `params._meta`, its envelope, which revision it speaks and what its client can do, and none depends on an earlier one
(MCP 2026-07-28, basic/lifecycle and server/discover).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RequestId, RpcError

SERVER_NAME: Final = "openai-responses-mcp"
LEGACY_VERSION: Final = "2025-06-18"
MODERN_VERSION: Final = "2026-07-28"
SUPPORTED_VERSIONS: Final = (MODERN_VERSION,)
UNSUPPORTED_VERSION: Final = -32022
MISSING_RESOURCE: Final = -32002  # the modern revision does without it
MISSING_CAPABILITY: Final = -32021

PREFIX: Final = "io.modelcontextprotocol/"
_VERSION_KEY: Final = PREFIX + "protocolVersion"
_CAPABILITIES_KEY: Final = PREFIX + "clientCapabilities"
_CLIENT_KEY: Final = PREFIX + "clientInfo"
_LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
_SERVER_KEY: Final = PREFIX + "serverInfo"
_SUBSCRIPTION_KEY: Final = PREFIX + "subscriptionId"
TASKS: Final = PREFIX + "tasks"
"""The extension by which a call may be answered with a task, whose result is asked for later."""

# Clients that show nobody the data of an error, as they name themselves (docs/reference/real-clients.md).
_DROP_ERROR_DATA: Final = frozenset({"claude-code", "gemini-cli-mcp-client", "opencode"})

_LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_LONGEST_NAME: Final = 100  # characters of what a client calls itself

BUG: Final = RpcError(INTERNAL_ERROR, "Internal error")
"""What a client learns of a bug of ours, unless a tool has words of its own."""


class ToolSuccess(NamedTuple):
    """The tool answered: `text` for readers, `structured` the same facts for programs, None without a schema."""

    text: str
    structured: JsonObject | None = None
    meta: JsonObject | None = None  # facts about the call that are no part of its answer, under names with a prefix


class ToolFailure(NamedTuple):
    """The tool could not do it. `text` tells cause and cure."""

    text: str
    error: RpcError | None = None  # by which the contract reports it; None: in every revision as a result
    meta: JsonObject | None = None  # as that of a success; an error has no place for it


class Fetched(NamedTuple):
    """What a request beside `tools/call` gets: the members of its result."""

    result: JsonObject
    cacheable: bool = False  # the modern revision wants it to say how long it holds


class Missing(NamedTuple):
    """There is no resource at the URI that a request names."""

    uri: str
    message: str


Outcome = ToolSuccess | ToolFailure | Fetched | Missing | RpcError
"""The end of a call; an `RpcError` is the same in both revisions."""


class Task(NamedTuple):
    """A call that goes on behind its answer, and how far it is.

    `created` and `updated` are as ISO 8601 has them. It is kept for `ttl_ms`, and another look is worth it after
    `poll_ms`. `outcome` is the end of the call, once it is completed.
    """

    id: str
    status: Literal["working", "completed", "cancelled"]
    message: str
    created: str
    updated: str
    ttl_ms: int
    poll_ms: int
    outcome: ToolSuccess | ToolFailure | RpcError | None = None


def is_modern(params: Mapping[str, Any]) -> bool:
    """Tell whether `params._meta` makes the request a modern one: an object that names a protocol version."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and _VERSION_KEY in meta


def check_envelope(params: Mapping[str, Any]) -> RpcError | None:
    """Return what is wrong with a request's envelope: its shape first, then its version; None when it will do."""
    meta = as_object(params.get("_meta"))
    if missing := [key for key in (_VERSION_KEY, _CAPABILITIES_KEY) if key not in meta]:
        return RpcError(INVALID_PARAMS, f"Invalid params: params._meta is missing {', '.join(missing)}")
    version, client = meta[_VERSION_KEY], meta.get(_CLIENT_KEY)
    if not isinstance(version, str):
        return _ill_typed(_VERSION_KEY, "a string")
    if not isinstance(meta[_CAPABILITIES_KEY], dict):
        return _ill_typed(_CAPABILITIES_KEY, "an object")
    if _CLIENT_KEY in meta and not _is_implementation(client):
        return _ill_typed(_CLIENT_KEY, "an object with the strings name and version")
    if _LOG_LEVEL_KEY in meta and meta[_LOG_LEVEL_KEY] not in _LOG_LEVELS:
        return _ill_typed(_LOG_LEVEL_KEY, f"one of {', '.join(_LOG_LEVELS)}")
    if version not in SUPPORTED_VERSIONS:
        data: JsonObject = {"supported": list(SUPPORTED_VERSIONS), "requested": version}
        return RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return None


def _is_implementation(value: object) -> bool:
    client = as_object(value)
    return isinstance(client.get("name"), str) and isinstance(client.get("version"), str)


def _ill_typed(key: str, expected: str) -> RpcError:
    return RpcError(INVALID_PARAMS, f"Invalid params: params._meta.{key} must be {expected}")


def extensions_of(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the extensions that the client of a request declares in its envelope, by their names."""
    declared = as_object(as_object(params.get("_meta")).get(_CAPABILITIES_KEY))
    return as_object(declared.get("extensions"))


def missing_capability(extension: str) -> RpcError:
    """Refuse a request that wants an extension which its client does not declare."""
    needed: JsonObject = {"requiredCapabilities": {"extensions": {extension: {}}}}
    return RpcError(MISSING_CAPABILITY, "Missing required client capability", needed)


def _call_result(outcome: ToolSuccess | ToolFailure) -> JsonObject:
    """Shape a result of `tools/call`. Errors have no structured content: clients would hold it against the schema."""
    result: JsonObject = {"content": [{"type": "text", "text": outcome.text}]}
    if isinstance(outcome, ToolSuccess) and outcome.structured is not None:
        result["structuredContent"] = outcome.structured
    result["isError"] = isinstance(outcome, ToolFailure)
    if outcome.meta:
        result["_meta"] = outcome.meta
    return result


def _client_name(info: object) -> str | None:
    name = as_object(info).get("name")
    return name[:_LONGEST_NAME] if isinstance(name, str) else None


class LegacyRevision:
    """Shapes results for clients that began with `initialize`. Nothing of a later revision is in them.

    `errors_as_results` gives tool failures the form of later revisions, a result with `isError`; None gives it to the
    clients that are known to show `error.data` to nobody. `instructions` go to the client's model.
    """

    remembers = True  # a request may depend on what an earlier one did

    def __init__(self, version: str, *, errors_as_results: bool | None = None, instructions: str | None = None) -> None:
        self._version = version
        self._by_client = errors_as_results is None
        self._errors_as_results = bool(errors_as_results)
        self._instructions = instructions
        self._client: str | None = None

    def initialize(self, params: Mapping[str, Any], capabilities: Iterable[str] = ("tools",)) -> JsonObject:
        """Answer `initialize`; the version is pinned, whatever the client asks for (spec 11)."""
        self._client = _client_name(params.get("clientInfo"))
        if self._by_client:
            self._errors_as_results = self._client in _DROP_ERROR_DATA
        result: JsonObject = {
            "protocolVersion": LEGACY_VERSION,
            "capabilities": {name: {} for name in capabilities},
            "serverInfo": {"name": SERVER_NAME, "version": self._version},
        }
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return result

    def client(self, params: Mapping[str, Any]) -> str | None:  # noqa: ARG002  # it has said so in the handshake
        """Return what the client calls itself."""
        return self._client

    def listing(self, result: JsonObject) -> JsonObject:
        """Answer a request for a list that never changes, in one page: some clients read no second one."""
        return result

    def unknown_tool(self, name: str) -> RpcError:  # noqa: ARG002  # the contract's words name no tool
        """Refuse a call (spec, appendix B)."""
        return RpcError(METHOD_NOT_FOUND, "Unknown tool")

    def outcome(self, outcome: Outcome) -> JsonObject | RpcError:
        """Shape the end of a call."""
        if isinstance(outcome, RpcError):
            return outcome
        if isinstance(outcome, Missing):
            return RpcError(MISSING_RESOURCE, outcome.message, {"uri": outcome.uri})
        if isinstance(outcome, Fetched):
            return outcome.result
        if isinstance(outcome, ToolFailure) and outcome.error is not None and not self._errors_as_results:
            return outcome.error
        return _call_result(outcome)


class ModernRevision:
    """Shapes results for requests that carry an envelope. Every result says that it is complete and who we are."""

    remembers = False  # every request stands for itself

    def __init__(self, version: str, *, instructions: str | None = None) -> None:
        self._server = {"name": SERVER_NAME, "version": version}
        self._instructions = instructions

    def discover(self, capabilities: Iterable[str] = ("tools",), extensions: Iterable[str] = ()) -> JsonObject:
        """Answer `server/discover`, which must never fail for a reason of ours: clients would take us for legacy."""
        offered: JsonObject = {name: {} for name in capabilities}
        if named := list(extensions):
            offered["extensions"] = {name: {} for name in named}
        result: JsonObject = {"supportedVersions": list(SUPPORTED_VERSIONS), "capabilities": offered}
        if self._instructions is not None:
            result["instructions"] = self._instructions
        return self._cacheable(result)

    def client(self, params: Mapping[str, Any]) -> str | None:
        """Return what the client calls itself."""
        return _client_name(as_object(params.get("_meta")).get(_CLIENT_KEY))

    def listing(self, result: JsonObject) -> JsonObject:
        """Answer a request for a list that never changes."""
        return self._cacheable(result)

    def unknown_tool(self, name: str) -> RpcError:
        """Refuse a call."""
        return RpcError(INVALID_PARAMS, f"Unknown tool: {name[:100]}")

    def outcome(self, outcome: Outcome) -> JsonObject | RpcError:
        """Shape the end of a call: tool failures are results, so that the model can read and correct them."""
        if isinstance(outcome, RpcError):
            return outcome
        if isinstance(outcome, Missing):
            return RpcError(INVALID_PARAMS, outcome.message)
        if isinstance(outcome, Fetched):
            return self._cacheable(outcome.result) if outcome.cacheable else self._complete(outcome.result)
        return self._complete(_call_result(outcome))

    def task(self, task: Task, *, created: bool) -> JsonObject:
        """Answer the call that became a task, where it was `created` by that, or a question for it."""
        return {**self._complete(self._task(task)), "resultType": "task" if created else "complete"}

    def _task(self, task: Task) -> JsonObject:
        told: JsonObject = {
            "taskId": task.id,
            "status": task.status,
            "createdAt": task.created,
            "lastUpdatedAt": task.updated,
            "ttlMs": task.ttl_ms,
            "pollIntervalMs": task.poll_ms,
        }
        if task.message:
            told["statusMessage"] = task.message
        if task.outcome is None:
            return told
        ended = self.outcome(task.outcome)
        if isinstance(ended, RpcError):
            return {**told, "status": "failed", "error": {"code": ended.code, "message": ended.message}}
        return {**told, "result": ended}

    def acknowledged(self, subscription: RequestId, tasks: Iterable[str] = ()) -> JsonObject:
        """Return the params that open a subscription, to tasks at most: nothing else that we offer ever changes."""
        ids = list(tasks)
        return {"_meta": {_SUBSCRIPTION_KEY: subscription}, "notifications": {"taskIds": ids} if ids else {}}

    def told(self, subscription: RequestId, task: Task) -> JsonObject:
        """Return the params that tell a subscription how far a task is."""
        return {"_meta": {_SUBSCRIPTION_KEY: subscription}, **self._task(task)}

    def subscription_ended(self, subscription: RequestId) -> JsonObject:
        """Return the result that closes a subscription."""
        result = self._complete({})
        result["_meta"][_SUBSCRIPTION_KEY] = subscription
        return result

    def _cacheable(self, result: JsonObject) -> JsonObject:
        # The list depends on local configuration, and a restart may change it: fresh always, shared never.
        return self._complete({**result, "ttlMs": 0, "cacheScope": "private"})

    def _complete(self, result: JsonObject) -> JsonObject:
        return {"resultType": "complete", **result, "_meta": {**result.get("_meta", {}), _SERVER_KEY: self._server}}


Revision = LegacyRevision | ModernRevision
