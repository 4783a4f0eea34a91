"""The tool `chatgpt_o3_search`. Name, description and input schema are its contract's, word for word."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from responses_mcp.errors import AuthenticationFailed, BadArgument, RateLimited, ResponsesMcpError
from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from responses_mcp.responses_api.request.arguments import ANY_LANGUAGE, MOST_RESULTS, TIMEFRAMES, USUAL_LIMIT
from responses_mcp.toolsets.base import CallContext, Tool, ToolFailure
from responses_mcp.toolsets.calls import AskerTools, Done, tool_of
from responses_mcp.toolsets.schema import INTEGER, NUMBER, STRING, Definition, described, list_of, members, object_of

AUTHENTICATION_ERROR: Final = -32001
SEARCH_ERROR: Final = -32002
RATE_LIMIT_EXCEEDED: Final = -32003

_TOOL: Final = Definition(
    "chatgpt_o3_search",
    "Web search",
    "ChatGPT o3の検索機能を使用してWeb検索を実行します",
    object_of(
        "query",
        query=described(STRING, "検索クエリ"),
        limit=described(NUMBER, "返す結果の最大数") | {"default": USUAL_LIMIT, "minimum": 1, "maximum": MOST_RESULTS},
        language={**described(STRING, "結果の言語（例: ja, en）"), "default": ANY_LANGUAGE},
        timeframe={**described(STRING, "時間範囲フィルタ"), "enum": list(TIMEFRAMES)},
    ),
    object_of(
        "results totalCount",
        results=list_of(
            object_of(
                "title url snippet",
                **members(STRING, "title url snippet publishedDate"),
                relevanceScore={**NUMBER, "minimum": 0, "maximum": 1},
            )
        ),
        totalCount={**INTEGER, "minimum": 0},
    ),
)


class SearchToolset(AskerTools):
    """The search tool."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the one tool."""
        crash = RpcError(INTERNAL_ERROR, "Internal Error", {"details": "An unexpected error occurred"})
        return [tool_of(_TOOL, self._search, _failed, self._redact, crash=crash)]

    async def _search(self, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        asker, asked = self._asked(_TOOL.input_schema["properties"], context, arguments)
        found = await asker.search(**asked)
        return Done(found.as_json(), None if found.usage is None else found.usage.as_json(), found.masked)


def _failed(error: ResponsesMcpError | None, details: str) -> ToolFailure:
    """Word a failure by its class, as the contract does; `details` is the error's message without secrets."""
    if isinstance(error, BadArgument):
        # The contract leaves the message open here, and some clients show nothing else.
        text = f"Invalid params: {details}"
        return ToolFailure(text, RpcError(INVALID_PARAMS, text, {"details": details}))
    data: JsonObject = {"details": details}
    code, message = SEARCH_ERROR, "Search Error"
    if isinstance(error, AuthenticationFailed):
        code, message = AUTHENTICATION_ERROR, "Authentication Error"
    elif isinstance(error, RateLimited):
        code, message = RATE_LIMIT_EXCEEDED, "Rate Limit Exceeded"
        if error.retry_after is not None:  # above 0, so 1 at least; a header may name a number that clients cannot read
            data["retryAfter"] = math.ceil(error.retry_after)
    return ToolFailure(f"{message}: {details}", RpcError(code, message, data))
