"""The answer tools as they are, watched from outside, and beside them tools that behave badly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import trio

from responses_mcp.protocol.exchange import Handler
from responses_mcp.protocol.revisions import Outcome, ToolSuccess
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, Task, Tool, Toolset
from tests.simulation.transcript import Kind, Transcript


class WatchedTools(Toolset):
    """The toolset of a run. `late` are reports of calls that may be over."""

    def __init__(self, transcript: Transcript, answers: AnswerToolset) -> None:
        self._transcript = transcript
        self._answers = answers
        self.late: list[Callable[[str], None]] = []

    @property
    def tools(self) -> Sequence[Tool]:
        bad: list[Handler] = [*(self._crash, self._stubborn, self._swallow, self._crash_when_cancelled, self._leak)]
        rude = [
            Tool(name=f.__name__.strip("_"), title="", description="", input_schema={"type": "object"}, handler=f)
            for f in bad
        ]
        tools = [*self._answers.tools, *rude]
        return [replace(tool, handler=self._watched(tool.handler)) for tool in tools]

    async def aclose(self) -> None:
        await self._answers.aclose()

    def _watched(self, handler: Handler) -> Handler:
        async def watched(context: CallContext, arguments: Mapping[str, Any]) -> Outcome | Task:
            marker = arguments["query"]
            self._transcript.phase(marker, "started")
            try:
                return await handler(context, arguments)
            finally:
                self._transcript.note(Kind.END, marker)

        return watched

    async def _crash(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        await trio.sleep(arguments["seconds"])
        raise ZeroDivisionError(arguments["query"])

    async def _stubborn(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        with trio.CancelScope(shield=True):
            for part in (1, 2):
                await trio.sleep(arguments["seconds"] / 2)
                if context.report is not None:
                    context.report(f"{arguments['query']} part {part}")
        return ToolSuccess(f"answer to {arguments['query']}")

    async def _swallow(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        with suppress(trio.Cancelled):  # wrong, and what hosts' tools do
            await trio.sleep(arguments["seconds"])
        return ToolSuccess(f"answer to {arguments['query']}")

    async def _crash_when_cancelled(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        finished = False
        try:
            await trio.sleep(arguments["seconds"])
            finished = True
        finally:
            if not finished:
                raise ValueError(arguments["query"])
        return ToolSuccess(f"answer to {arguments['query']}")

    async def _leak(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        if context.report is not None:
            self.late.append(context.report)
            context.report(arguments["query"])
        await trio.sleep(arguments["seconds"])
        return ToolSuccess(f"answer to {arguments['query']}")
