"""The tools `answer`, `answer_detailed` and `answer_quick` (spec 3).

Names, descriptions and input schemas are the contract's, word for word.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.errors import ConnectionFailed, ResponsesMcpError, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.toolsets.base import CallContext, Task, Tool, ToolFailure, ToolSuccess
from responses_mcp.toolsets.calls import SIZE, USUAL_CHARACTERS, AskerTools, Done, tool_of
from responses_mcp.toolsets.schema import BOOLEAN, CITATIONS, NUMBER, STRING, STRINGS, Definition, members, object_of

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

_SEARCHING: Final = object_of("query", query=STRING, **members(NUMBER, "recency_days max_results"), domains=STRINGS)
_ANSWER: Final = object_of(
    "answer used_search citations model", answer=STRING, used_search=BOOLEAN, citations=CITATIONS, model=STRING
)
_DEFINITIONS: Final = (
    Definition(
        "answer",
        # Codex searches for tools by the words of titles, too.
        "Answer from the web: versions, release dates, prices, news, documentation, advisories, 最新情報の検索",
        "Search the web when needed and provide balanced, well-sourced answers. "
        "This is the standard general-purpose tool.",
        _SEARCHING,
        _ANSWER,
    ),
    Definition(
        "answer_detailed",
        "Detailed answer from the web",
        "Perform comprehensive analysis with thorough research and detailed explanations. "
        "Best for complex questions requiring deep investigation.",
        _SEARCHING,
        _ANSWER,
    ),
    Definition(
        "answer_quick",
        "Quick answer from the web",
        "Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.",
        object_of("query", query=STRING),
        _ANSWER,
    ),
)


class AnswerToolset(AskerTools):
    """The three answer tools.

    A text of more than `most_characters` is cut. `task_of` gives what clients that take tasks are answered once a
    question was handed off to a run, whose id it gets.
    """

    def __init__(
        self,
        open_asker: Callable[[], Asker],
        *,
        debug: bool = False,
        most_characters: int = USUAL_CHARACTERS,
        task_of: Callable[[str], Awaitable[Task | ToolSuccess]] | None = None,
    ) -> None:
        super().__init__(open_asker)
        self._failed = partial(answer_failure, debug=debug)
        self._most = most_characters
        self._task_of = task_of

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the three tools in the contract's order."""
        meta = {SIZE: self._most} if self._most > USUAL_CHARACTERS else {}  # the usual list is the contract's
        return [
            tool_of(shown, partial(self._answer, shown), self._failed, self._redact, meta=meta)
            for shown in _DEFINITIONS
        ]

    async def _answer(
        self, shown: Definition, context: CallContext, arguments: Mapping[str, Any]
    ) -> Done | Task | ToolSuccess:
        asker, asked = self._asked(shown.input_schema["properties"], context, arguments)
        answer = await asker.answer(**asked, profile=shown.name)
        if answer.run_id is not None and context.takes_tasks and self._task_of is not None:
            return await self._task_of(answer.run_id)
        return Done(answer.as_json(self._most), None if answer.usage is None else answer.usage.as_json(), answer.masked)


def answer_failure(error: ResponsesMcpError | None, text: str, *, debug: bool) -> ToolFailure:
    """Word a failure as the contract's appendix B does, the cause in `data.message`.

    `debug` adds status, type and name (spec 8.2), null where not known: a last line, where a result is the form.
    """
    details: JsonObject = {}
    if debug:
        name = None if error is None or error.kind == "unknown" else error.kind
        details = {"status": None, "type": None, "name": name}
        if isinstance(error, UpstreamError):
            code = error.kind if isinstance(error, ConnectionFailed) else error.code
            details |= {"status": code if error.status is None else error.status, "type": error.type}
    data: JsonObject = {"message": text[:_LONGEST_MESSAGE], **details}
    told = f"{text}\n{json.dumps(details)}" if details else text
    return ToolFailure(told, RpcError(ANSWER_FAILED, "answer failed", data))
