"""The tools `research`, `research_result`, `research_cancel` and `research_list`, and reports as resources.

Runs outlive the calls that begin them: they live in a nursery of the server, which the first call fills. Failures are
results with `isError` in every revision of the protocol; a run that failed is a result like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from responses_mcp.errors import BadArgument, ResponsesMcpError
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR
from responses_mcp.responses_api.request.arguments import MOST_DAYS, read_number
from responses_mcp.toolsets.base import (
    CallContext,
    Fetched,
    Missing,
    Resources,
    RpcError,
    Task,
    Tool,
    ToolFailure,
    ToolSuccess,
)
from responses_mcp.toolsets.calls import SIZE, Done, Work, tool_of
from responses_mcp.toolsets.research_definitions import LONGEST_WAIT, TEMPLATE, USUAL_LIST, USUAL_WAIT, definitions
from responses_mcp.toolsets.tasks import RunsToolset, run_done

_SCHEME = "run://"
MOST_PARTS = 1_000_000


class ResearchToolset(RunsToolset):
    """The research tools over one `Research`."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the four tools."""
        shown = definitions(self._stores)
        asked = shown[0].input_schema["properties"].keys() - {"wait_seconds"}
        work: tuple[Work, ...] = (partial(self._begin, asked), self._result, self._cancel, self._list)
        meta = {SIZE: self._most}
        return [tool_of(each, done, _failed, self._redact, meta=meta) for each, done in zip(shown, work, strict=True)]

    @property
    def resources(self) -> Resources:
        """Return the reports of runs."""
        return Resources("run", TEMPLATE, self._read)

    async def _read(self, uri: str) -> Fetched | Missing | RpcError:
        """Return the whole report of a run, and its data, which costs nothing."""
        from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415  # a start should not wait for it

        try:
            view = await (await self._opened()).result(uri.removeprefix(_SCHEME) if uri.startswith(_SCHEME) else "")
        except BadArgument:
            unknown = f"There is no such run. URIs are {_SCHEME}ID with the id of a run; research_list gives the ids."
            return Missing(uri, unknown)
        except ResponsesMcpError as error:
            return RpcError(INTERNAL_ERROR, self._redact(str(error)))
        if view.answer is None:
            goes_on = f"There is no report yet; wait for it with research_result and run_id {view.run_id}."
            return RpcError(INTERNAL_ERROR, goes_on if view.running else self._redact(view.error or ""))
        contents = [{"uri": uri, "mimeType": "text/markdown", "text": view.answer.text}]
        if view.data is not None:
            data = json.dumps(view.data, ensure_ascii=False)
            contents.append({"uri": uri, "mimeType": "application/json", "text": data})
        return Fetched(sanitized_json({"contents": contents}), cacheable=True)

    async def _begin(
        self, names: Iterable[str], context: CallContext, arguments: Mapping[str, Any]
    ) -> Done | Task | ToolSuccess:
        """Begin a run, or join one, and wait for it; or answer with a task."""
        research = await self._opened()
        wait = 0 if context.takes_tasks else _wait_of(arguments)
        asked: dict[str, Any] = {name: arguments.get(name) for name in names}
        asked["recency_days"] = read_number("recency_days", asked["recency_days"], least=0, most=MOST_DAYS)
        run_id = await research.start(**asked, client=context.client)
        if context.takes_tasks:
            return await self.answer_of(run_id)
        view = await research.result(run_id, wait_seconds=wait, on_phase=context.report)
        return run_done(view, self._most)._replace(masked=research.outgoing.masked(str(asked["query"])).masked)

    async def _result(self, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        research = await self._opened()
        part = read_number("part", arguments.get("part"), least=1, most=MOST_PARTS)
        run_id, wait = arguments.get("run_id", ""), _wait_of(arguments)
        view = await research.result(run_id, wait_seconds=wait, on_phase=context.report)
        return run_done(view, self._most, part or 1)

    async def _cancel(self, _: CallContext, arguments: Mapping[str, Any]) -> Done:
        return run_done(await (await self._opened()).cancel(arguments.get("run_id", "")), self._most)

    async def _list(self, _: CallContext, arguments: Mapping[str, Any]) -> Done:
        from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415  # a start should not wait for it

        runs = await (await self._opened()).list(arguments.get("limit", USUAL_LIST))
        running = sum(run["status"] == "running" for run in runs)
        return Done(sanitized_json({"runs": list(runs), "running": running}))


def _wait_of(arguments: Mapping[str, Any]) -> int:
    """Return how many seconds a call waits for its run."""
    wait = read_number("wait_seconds", arguments.get("wait_seconds"), least=0, most=LONGEST_WAIT)
    return USUAL_WAIT if wait is None else wait


def _failed(_: ResponsesMcpError | None, text: str) -> ToolFailure:
    return ToolFailure(text)
