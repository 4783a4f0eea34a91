"""The tool `chatgpt_o3_search`. Name, description and input schema are its contract's, word for word."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.errors import AuthenticationFailed, BadArgument, RateLimited, ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from responses_mcp.responses_api.request.search import MOST_RESULTS, TIMEFRAMES, USUAL_LIMIT
from responses_mcp.toolsets.base import (
    CallContext,
    Crash,
    Tool,
    ToolError,
    ToolFailure,
    ToolSuccess,
    outcome_meta,
)
from responses_mcp.toolsets.cures import for_client

if TYPE_CHECKING:
    from responses_mcp.websearch import WebSearch

log = logging.getLogger(__name__)

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
    """The search tool over one `WebSearch`, which `open_search` makes for the first call."""

    def __init__(self, open_search: Callable[[], WebSearch]) -> None:
        self._open_search = open_search
        self._search: WebSearch | None = None

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
                handler=self._call,
                failure=lambda text: _failure(SEARCH_ERROR, "Search Error", text),
                crash=Crash(RpcError(INTERNAL_ERROR, "Internal Error", {"details": "An unexpected error occurred"})),
            )
        ]

    async def aclose(self) -> None:
        """Close the connections to the API."""
        if self._search is not None:
            await self._search.aclose()

    async def _call(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        query = arguments.get("query")
        length = len(query) if isinstance(query, str) else 0
        log.debug("server: tools/call name=%s argsKeys=%s queryLen=%d", _NAME, sorted(arguments), length)
        search = self._search = self._search or self._open_search()
        # As they came: `search` checks them.
        asked: dict[str, Any] = {name: arguments.get(name) for name in _INPUT_SCHEMA["properties"]}
        try:
            found = await search.search(**asked, on_phase=context.report, room=context.room, client=context.client)
        except ResponsesMcpError as error:
            used = error.usage if isinstance(error, UpstreamError) else None
            failure = search_failed(error, search.redact(for_client(error, context.client)))
            raise ToolError(replace(failure, meta=outcome_meta(used))) from error
        result = found.as_json()
        meta = outcome_meta(None if found.usage is None else found.usage.as_json(), found.masked)
        return ToolSuccess(json.dumps(result, ensure_ascii=False), result, meta)


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
