"""The tool `chatgpt_o3_search`. Name, description and input schema are its contract's, word for word."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.errors import AuthenticationFailed, BadArgument, RateLimited, ResponsesMcpError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from responses_mcp.responses_api.request.arguments import MOST_RESULTS, TIMEFRAMES, USUAL_LIMIT
from responses_mcp.toolsets.base import (
    CallContext,
    Crash,
    Done,
    Tool,
    ToolFailure,
    answered,
)
from responses_mcp.toolsets.cures import for_client

if TYPE_CHECKING:
    from responses_mcp.asking import Asker

AUTHENTICATION_ERROR: Final = -32001
SEARCH_ERROR: Final = -32002
RATE_LIMIT_EXCEEDED: Final = -32003

_NAME = "chatgpt_o3_search"
_LONGEST_TOLD = 86_400  # seconds
_INPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "検索クエリ"},
        "limit": {
            "type": "number",
            "description": "返す結果の最大数",
            "default": USUAL_LIMIT,
            "minimum": 1,
            "maximum": MOST_RESULTS,
        },
        "language": {"type": "string", "description": "結果の言語（例: ja, en）", "default": "auto"},
        "timeframe": {"type": "string", "description": "時間範囲フィルタ", "enum": list(TIMEFRAMES)},
    },
    "required": ["query"],
}
_OUTPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "url": {"type": "string"},
                    "snippet": {"type": "string"},
                    "publishedDate": {"type": "string"},
                    "relevanceScore": {"type": "number", "minimum": 0, "maximum": 1},
                },
                "required": ["title", "url", "snippet"],
            },
        },
        "totalCount": {"type": "integer", "minimum": 0},
    },
    "required": ["results", "totalCount"],
}


class SearchToolset:
    """The search tool over one `Asker`, which `open_asker` makes for the first call."""

    def __init__(self, open_asker: Callable[[], Asker]) -> None:
        self._open_asker = open_asker
        self._asker: Asker | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the one tool."""
        return [
            Tool(
                name=_NAME,
                title="Web search",
                description="ChatGPT o3の検索機能を使用してWeb検索を実行します",
                input_schema=_INPUT_SCHEMA,
                output_schema=_OUTPUT_SCHEMA,
                annotations={"readOnlyHint": True, "openWorldHint": True},
                handler=answered(_NAME, self._search, self._failed),
                failure=lambda text: _failure(SEARCH_ERROR, "Search Error", text),
                crash=Crash(RpcError(INTERNAL_ERROR, "Internal Error", {"details": "An unexpected error occurred"})),
            )
        ]

    async def aclose(self) -> None:
        """Close the connections to the API."""
        if self._asker is not None:
            await self._asker.aclose()

    async def _search(self, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        from responses_mcp.responses_api.watcher import Watcher  # noqa: PLC0415  # a start should not wait for it

        asker = self._asker = self._asker or self._open_asker()
        # As they came: `search` checks them.
        asked: dict[str, Any] = {name: arguments.get(name) for name in _INPUT_SCHEMA["properties"]}
        found = await asker.search(**asked, watcher=Watcher(context.report, room=context.room, client=context.client))
        return Done(found.as_json(), None if found.usage is None else found.usage.as_json(), found.masked)

    def _failed(self, context: CallContext, error: ResponsesMcpError) -> ToolFailure:
        text = for_client(error, context.client)
        return search_failed(error, text if self._asker is None else self._asker.redact(text))


def search_failed(error: ResponsesMcpError, details: str) -> ToolFailure:
    """Word a failure by its class, as the contract does; `details` is the error's message without secrets."""
    if isinstance(error, BadArgument):
        # The contract leaves the message open here, and some clients show nothing else.
        return _failure(INVALID_PARAMS, f"Invalid params: {details}", details)
    if isinstance(error, AuthenticationFailed):
        return _failure(AUTHENTICATION_ERROR, "Authentication Error", details)
    if isinstance(error, RateLimited):
        return _failure(RATE_LIMIT_EXCEEDED, "Rate Limit Exceeded", details, error.retry_after)
    return _failure(SEARCH_ERROR, "Search Error", details)


def _failure(code: int, message: str, details: str, retry_after: float | None = None) -> ToolFailure:
    message, details = replace_lone_surrogates(message), replace_lone_surrogates(details)
    data: JsonObject = {"details": details}
    if retry_after is not None and math.isfinite(retry_after):
        # Above 0, so 1 at least; a header may name a number that clients cannot read.
        data["retryAfter"] = math.ceil(min(retry_after, _LONGEST_TOLD))
    return ToolFailure(message if message.endswith(details) else f"{message}: {details}", RpcError(code, message, data))
