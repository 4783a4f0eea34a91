"""Runs of research as tasks of the protocol, for servers with the tools of research and for those without.

A task is a run: its id, its phase, its end. So a call of `research`, or one of an answer tool whose profile works in
the background, can be answered before it has an end, and every server on the folder of runs tells how far it is.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from responses_mcp.errors import BadArgument, ResponsesMcpError
from responses_mcp.json_types import JsonObject
from responses_mcp.settings.model import ResearchSettings
from responses_mcp.toolsets.answer import answer_failure
from responses_mcp.toolsets.base import Task, ToolError, ToolFailure, Toolset, ToolSuccess
from responses_mcp.toolsets.calls import USUAL_CHARACTERS, Done, failure_of, success_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import trio

    from responses_mcp.asking import Answer, Asked
    from responses_mcp.research.runs import Research, RunView
    from responses_mcp.responses_api.watcher import Watcher

log = logging.getLogger(__name__)

_POLLS: Final = (1_000, 5_000)  # milliseconds between two looks of a client, at first and at last
_POLL_SHARE: Final = 50  # milliseconds of them for each second that a run has been going on
_LONGEST_MESSAGE: Final = 200
_AT_ONCE: Final = 0.3  # seconds within which a cancel is answered, whatever it takes to find out of the run
_DAY: Final = 86_400_000  # milliseconds


class RunsToolset(Toolset):
    """One `Research`, which `open_research` opens for the first call, for the server's life; its runs are tasks.

    Results have `most_characters` at most; runs are kept for `keep_days`; `stores` are
    the names of `research.stores`; `debug` is as for `AnswerToolset`.
    """

    def __init__(
        self,
        open_research: Callable[[], AbstractAsyncContextManager[Research]],
        *,
        most_characters: int = USUAL_CHARACTERS,
        keep_days: int = ResearchSettings().keep_days,
        stores: Sequence[str] = (),
        debug: bool = False,
    ) -> None:
        self._open_research = open_research
        self._most = most_characters
        self._keep_days = keep_days
        self._stores = stores
        self._answer_failed = partial(answer_failure, debug=debug)
        self._nursery: trio.Nursery | None = None
        self._opening: trio.Lock | None = None
        self._research: Research | None = None

    @property
    def tasks(self) -> RunsToolset:
        """Return what knows the tasks."""
        return self

    def live_in(self, nursery: trio.Nursery) -> None:
        """Take the nursery of the server, in which runs go on when their calls have ended; its end closes them."""
        self._nursery = nursery

    async def answer(
        self, asked: Asked, watcher: Watcher, *, seconds: float = 0.0, task_seconds: float = 0.0
    ) -> Answer | None:
        """Have a question of an answer tool asked by a run; after some seconds the answer says which run goes on.

        Those are `task_seconds` for a client that takes tasks and a profile that works in the background, else
        `seconds`, where 0 means never. None where no run can be begun. Raises `UpstreamError` for a run that failed,
        and what `Research.answer` raises.
        """
        from responses_mcp.asking import Answer  # noqa: PLC0415  # most calls need none of these
        from responses_mcp.research.runs_file import RunsFileUnusable  # noqa: PLC0415
        from responses_mcp.research.view import answer_in  # noqa: PLC0415

        is_task = watcher.takes_tasks and asked.profile.background
        if self._nursery is None or not (is_task or seconds):
            return None
        seconds = task_seconds if is_task else seconds
        research = await self._opened()
        try:
            view = await research.answer(
                asked.body, asked.profile, asked.caller, seconds=seconds, on_phase=watcher.on_phase
            )
        except RunsFileUnusable as error:
            log.warning("research: a call cannot be handed off: %s", error)
            return None
        if not view.pending:
            return answer_in(view)
        text = (
            f"There is no answer yet: the call takes longer than {seconds:g} s. It continues as run {view.run_id}. "
            f"Call research_result with run_id {view.run_id} for the answer. Asking again would cost a second time."
        )
        return Answer(text, used_search=False, citations=(), model=view.model, run_id=view.run_id)

    async def answer_of(self, run_id: str) -> Task | ToolSuccess:
        """Return what a call is answered that has begun a run: the task, or the result if there is one by now."""
        task = await self.look(run_id)
        if task is None or task.status == "cancelled":
            raise ToolError("The run is over.")
        if isinstance(task.outcome, ToolFailure):
            raise ToolError(task.outcome)
        return task.outcome if isinstance(task.outcome, ToolSuccess) else task

    async def look(self, task_id: str) -> Task | None:
        """Return how far a run is; None for an id that is not known. Raises `ToolError`."""
        research = await self._opened()
        try:
            return await self._seen(task_id, research)
        except BadArgument:
            return None
        except ResponsesMcpError as error:
            raise ToolError(research.redact(str(error))) from error

    async def _seen(self, task_id: str, research: Research) -> Task:
        view = await research.result(task_id)
        task = self._task(view)
        if view.running:
            return task
        if view.status == "cancelled":
            return task._replace(status="cancelled")
        return task if view.pending else task._replace(status="completed", outcome=self._outcome(view, research))

    def _task(self, view: RunView) -> Task:
        from responses_mcp.sanitization import sanitized  # noqa: PLC0415  # a start should not wait for it

        least, most = _POLLS
        return Task(
            id=view.run_id,
            status="working",
            message=" ".join(sanitized(view.phase[: 4 * _LONGEST_MESSAGE]).split())[:_LONGEST_MESSAGE],
            created=_moment(view.created),
            updated=_moment(view.created + view.seconds),
            ttl_ms=self._keep_days * _DAY,
            poll_ms=round(min(max(least, _POLL_SHARE * view.seconds), most)),
        )

    def _outcome(self, view: RunView, research: Research) -> ToolSuccess | ToolFailure:
        """Return what the call would be answered that the run was begun for, if it had waited."""
        from responses_mcp.research.view import answer_in  # noqa: PLC0415

        if view.tool == "research":
            return success_of(run_done(view, self._most))
        try:
            answer = answer_in(view)
        except ResponsesMcpError as error:
            return failure_of(error, self._answer_failed, research.redact)
        return success_of(Done(answer.as_json(self._most), view.usage, answer.masked))

    async def cancel(self, task_id: str) -> bool:
        """Have a run cancelled, which goes on behind the answer; tell whether it is known. Raises `ToolError`."""
        import trio  # noqa: PLC0415  # the list of tools is answered before Trio is there

        research = await self._opened()
        with trio.move_on_after(_AT_ONCE):
            try:
                await research.result(task_id)
            except BadArgument:
                return False
            except ResponsesMcpError as error:
                raise ToolError(research.redact(str(error))) from error
        research.begin_cancel(task_id)
        return True

    def _redact(self, text: str) -> str:
        return text if self._research is None else self._research.redact(text)

    async def _opened(self) -> Research:
        import trio  # noqa: PLC0415

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


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def run_done(view: RunView, most: int, part: int = 1) -> Done:
    """Return how far a run is as the tools of research show it; answer and data have `most` characters at most."""
    from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415  # a start should not wait for it

    masked = None if view.answer is None else view.answer.masked
    return Done(_within(sanitized_json(view.as_json(most, part)), most), view.usage, masked)


def _within(result: JsonObject, most: int) -> JsonObject:
    """Return a result whose `data` has `most` characters at most, or is left out."""
    size = len(json.dumps(result["data"], ensure_ascii=False)) if "data" in result else 0
    if size <= most:
        return result
    error = (
        f"The data has {size} characters, more than the {most} of server.max_result_chars. Raise the limit "
        "(MCP_MAX_RESULT_CHARS) and call research_result again; the answer below has the data."
    )
    return {name: value for name, value in result.items() if name != "data"} | {"error": error}
