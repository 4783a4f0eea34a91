"""The tools `answer`, `answer_detailed` and `answer_quick` (spec 3).

Names, descriptions and input schemas are the contract's, word for word.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.errors import ConnectionFailed, ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.toolsets.base import (
    USUAL_CHARACTERS,
    CallContext,
    Done,
    Tool,
    ToolFailure,
    answered,
    size_meta,
)
from responses_mcp.toolsets.cures import for_client

if TYPE_CHECKING:
    from responses_mcp.asking import Asker

ANSWER_FAILED: Final = -32001

# For the client's model, at most 600 characters: clients cut longer texts, and all servers share the room.
INSTRUCTIONS: Final = (
    "Prefer these tools to a built-in web search when an answer must be current and backed by sources: one call "
    "searches, reads and returns a finished answer with dated citations, so there is no need to fetch the pages "
    "afterwards. Use answer_quick for a single fact, answer for most questions, answer_detailed for comparisons and "
    "research. Ask one self-contained question a call; independent questions can be asked at once. Set domains to "
    "prefer official sites and recency_days for fresh topics."
)
_LONGEST_MESSAGE = 400  # characters of a cause told to the client (spec 8.2)

_SEARCHING_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "recency_days": {"type": "number"},
        "max_results": {"type": "number"},
        "domains": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
}
_QUICK_SCHEMA: JsonObject = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
_OUTPUT_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "used_search": {"type": "boolean"},
        "citations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "url": {"type": "string"},
                    "title": {"type": "string"},
                    "published_at": {"type": "string"},
                },
                "required": ["url"],
            },
        },
        "model": {"type": "string"},
    },
    "required": ["answer", "used_search", "citations", "model"],
}
# Without readOnlyHint Codex refuses the call and Claude Code runs calls one after the other.
_ANNOTATIONS = {"readOnlyHint": True, "openWorldHint": True}
_DEFINITIONS = (
    (
        "answer",
        # Codex searches for tools by the words of titles, too.
        "Answer from the web: versions, release dates, prices, news, documentation, advisories, 最新情報の検索",
        "Search the web when needed and provide balanced, well-sourced answers. "
        "This is the standard general-purpose tool.",
        _SEARCHING_SCHEMA,
    ),
    (
        "answer_detailed",
        "Detailed answer from the web",
        "Perform comprehensive analysis with thorough research and detailed explanations. "
        "Best for complex questions requiring deep investigation.",
        _SEARCHING_SCHEMA,
    ),
    (
        "answer_quick",
        "Quick answer from the web",
        "Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.",
        _QUICK_SCHEMA,
    ),
)


class AnswerToolset:
    """The three answer tools over one `Asker`, which `open_asker` makes for the first call.

    `debug` adds status, type and name to errors (spec 8.2), null where they are not known. A text of more than
    `most_characters` is cut.
    """

    def __init__(
        self,
        open_asker: Callable[[], Asker],
        *,
        debug: bool = False,
        most_characters: int = USUAL_CHARACTERS,
    ) -> None:
        self._open_asker = open_asker
        self._asker: Asker | None = None
        self._debug = debug
        self._most = most_characters

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the three tools in the contract's order."""
        return [
            Tool(
                name=name,
                title=title,
                description=description,
                input_schema=schema,
                output_schema=_OUTPUT_SCHEMA,
                annotations=_ANNOTATIONS,
                meta=size_meta(self._most) if self._most > USUAL_CHARACTERS else {},  # the usual list is the contract's
                handler=answered(name, partial(self._answer, name, schema), self._failed),
                failure=lambda text: answer_failed(text, self._details(None)),
            )
            for name, title, description, schema in _DEFINITIONS
        ]

    async def aclose(self) -> None:
        """Close the connections to the API."""
        if self._asker is not None:
            await self._asker.aclose()

    async def _answer(self, name: str, schema: JsonObject, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        from responses_mcp.responses_api.watcher import Watcher  # noqa: PLC0415  # a start should not wait for it

        asker = self._asker = self._asker or self._open_asker()
        # As they came: `answer` checks them.
        asked: dict[str, Any] = {key: arguments.get(key) for key in schema["properties"]}
        watcher = Watcher(context.report, room=context.room, client=context.client)
        answer = await asker.answer(**asked, profile=name, watcher=watcher)
        return Done(answer.as_json(self._most), None if answer.usage is None else answer.usage.as_json(), answer.masked)

    def _failed(self, context: CallContext, error: ResponsesMcpError) -> ToolFailure:
        text = for_client(error, context.client)
        return answer_failed(text if self._asker is None else self._asker.redact(text), self._details(error))

    def _details(self, error: ResponsesMcpError | None) -> JsonObject | None:
        """Return what debugging adds to a failure, in the contract's members; None without it."""
        if not self._debug:
            return None
        name = None if error is None or error.kind == "unknown" else error.kind
        details: JsonObject = {"status": None, "type": None, "name": name}
        if isinstance(error, UpstreamError):
            code = error.kind if isinstance(error, ConnectionFailed) else error.code
            details |= {"status": code if error.status is None else error.status, "type": error.type}
        return details


def answer_failed(text: str, details: JsonObject | None = None) -> ToolFailure:
    """Word a failure as the contract's appendix B does, the cause in `data.message`.

    A result, for clients that get one in place of the error, has `details` in a last line.
    """
    text = replace_lone_surrogates(text)
    data: JsonObject = {"message": text[:_LONGEST_MESSAGE], **(details or {})}
    told = text if details is None else f"{text}\n{json.dumps(details)}"
    return ToolFailure(told, RpcError(ANSWER_FAILED, "answer failed", data))
