"""The tools `research`, `research_result`, `research_cancel` and `research_list`.

Runs outlive the calls that begin them: they live in a nursery of the server, which the first call fills. Failures are
results with `isError` in every revision of the protocol; a run that failed is a result like any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from responses_mcp.errors import BadArgument, ResponsesMcpError
from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.request.arguments import MOST_DAYS, read_number, read_word
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolFailure
from responses_mcp.toolsets.calls import SIZE, USUAL_CHARACTERS, Done, tool_of
from responses_mcp.toolsets.research_definitions import DEFINITIONS, LONGEST_WAIT, USUAL_LIST, USUAL_WAIT
from responses_mcp.toolsets.schema import Definition

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import trio

    from responses_mcp.asking import Answer, Asked
    from responses_mcp.research.service import Research, RunView
    from responses_mcp.responses_api.watcher import Watcher

_LOOK = 1.0  # seconds between two looks at the deadline of a call
_LAST_WORDS = 0.5  # seconds in which a call is answered before its deadline


class ResearchToolset:
    """The research tools over one `Research`, which `open_research` opens for the first call, for the server's life."""

    def __init__(
        self,
        open_research: Callable[[], AbstractAsyncContextManager[Research]],
        *,
        most_characters: int = USUAL_CHARACTERS,
    ) -> None:
        self._open_research = open_research
        self._most = most_characters
        self._nursery: trio.Nursery | None = None
        self._opening: trio.Lock | None = None
        self._research: Research | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the four tools."""
        meta = {SIZE: self._most}
        return [tool_of(shown, partial(self._work, shown), _failed, self._redact, meta=meta) for shown in DEFINITIONS]

    def live_in(self, nursery: trio.Nursery) -> None:
        """Take the nursery of the server, in which runs go on when their calls have ended."""
        self._nursery = nursery

    async def answer(self, asked: Asked, watcher: Watcher, *, seconds: float) -> Answer | None:
        """Have a question of an answer tool asked by a run; after `seconds` the answer says which run goes on.

        None where no run can be begun. Raises `UpstreamError` for a run that failed.
        """
        from responses_mcp.research.service import answer_by_run  # noqa: PLC0415  # most calls need none

        if self._nursery is None:
            return None
        return await answer_by_run(await self._opened(), *asked, seconds=seconds, on_phase=watcher.on_phase)

    async def aclose(self) -> None:
        """Do nothing: all that was opened is closed by the end of the server's nursery."""

    async def _work(self, shown: Definition, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415  # a start should not wait for it

        research = await self._opened()
        if shown.name == "research_list":
            runs = await research.list(arguments.get("limit", USUAL_LIST))
            return Done(sanitized_json({"runs": list(runs)}))
        view = await _viewed(research, shown, context, arguments)
        query = arguments.get("query")
        masked = research.outgoing.masked(query).masked if isinstance(query, str) else None
        return Done(_within(sanitized_json(view.as_json(self._most)), self._most), view.usage, masked)

    def _redact(self, text: str) -> str:
        return text if self._research is None else self._research.redact(text)

    async def _opened(self) -> Research:
        import trio  # noqa: PLC0415  # the list of tools is answered before Trio is there

        if self._nursery is None:
            raise ToolError("The research tools work within a server; in a program of your own, use open_research.")
        self._opening = self._opening or trio.Lock()
        async with self._opening:
            if self._research is None:
                self._research = cast("Research", await self._nursery.start(self._hold))
        return self._research

    async def _hold(self, *, task_status: trio.TaskStatus[Research]) -> None:
        import trio  # noqa: PLC0415

        async with self._open_research() as research:
            task_status.started(research)
            await trio.sleep_forever()


async def _viewed(research: Research, shown: Definition, context: CallContext, arguments: Mapping[str, Any]) -> RunView:
    """Begin, wait for or cancel a run, and return how far it is."""
    if shown.name == "research_cancel":
        return await research.cancel(_run_id(arguments))
    wait = read_number("wait_seconds", arguments.get("wait_seconds"), least=0, most=LONGEST_WAIT)
    if shown.name == "research":
        asked: dict[str, Any] = {name: arguments.get(name) for name in shown.input_schema["properties"]}
        del asked["wait_seconds"]
        asked["recency_days"] = read_number("recency_days", asked["recency_days"], least=0, most=MOST_DAYS)
        run_id = await research.start(**asked, client=context.client)
    else:
        run_id = _run_id(arguments)
    return await _waited_for(research, context, run_id, USUAL_WAIT if wait is None else wait)


async def _waited_for(research: Research, context: CallContext, run_id: str, seconds: int) -> RunView:
    """Wait for a run; where the server ends before that, tell how far it is while there is time to."""
    import trio  # noqa: PLC0415

    end = trio.current_time() + seconds
    told = ""

    def tell(phase: str) -> None:
        nonlocal told
        if phase != told and context.report is not None:
            context.report(phase)
        told = phase

    while True:
        left = min(end, context.deadline() - _LAST_WORDS) - trio.current_time()  # the deadline may come nearer
        view = await research.result(run_id, wait_seconds=max(0.0, min(left, _LOOK)), on_phase=tell)
        if not view.running or left <= _LOOK:
            return view


def _within(result: JsonObject, most: int) -> JsonObject:
    """Return a result whose `data` has `most` characters at most, or is left out."""
    size = len(json.dumps(result["data"], ensure_ascii=False)) if "data" in result else 0
    if size <= most:
        return result
    error = (
        f"The data has {size} characters, more than the {most} of server.max_result_chars; raise that "
        "(MCP_MAX_RESULT_CHARS), or ask for less."
    )
    return {name: value for name, value in result.items() if name != "data"} | {"error": error}


def _failed(_: ResponsesMcpError | None, text: str) -> ToolFailure:
    return ToolFailure(text)


def _run_id(arguments: Mapping[str, Any]) -> str:
    run_id = read_word("run_id", arguments.get("run_id"))
    if run_id is None:
        raise BadArgument("run_id is missing; pass the one that research gave, or look it up with research_list.")
    return run_id
