"""Tasks, as the protocol asks for them. Nothing is kept here: their source may have them from another server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from responses_mcp.protocol.exchange import Feature, Method
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from responses_mcp.protocol.revisions import TASKS, Fetched, Task
from responses_mcp.toolsets.base import CallContext, TaskSource, ToolError

_Told: TypeAlias = Fetched | Task | None

_LATER = 5.0  # seconds until another look at a task that could not be looked at


class Tasks:
    """The tasks of all toolsets."""

    def __init__(self, sources: Sequence[TaskSource]) -> None:
        self._sources = sources

    @property
    def features(self) -> list[Feature]:
        """Return what clients that declare the extension are offered; nothing where no toolset has tasks."""
        work = {"tasks/get": self.look, "tasks/cancel": self._cancelled, "tasks/update": self._updated}
        methods = {name: Method(handler=partial(_answer, each)) for name, each in work.items()}
        return [Feature(capability=TASKS, methods=methods, legacy=False, extension=True)] if self._sources else []

    async def look(self, task_id: str) -> Task | None:
        """Return how far a task is, as `TaskSource.look` does."""
        for source in self._sources:
            if (task := await source.look(task_id)) is not None:
                return task
        return None

    async def cancel(self, task_id: str) -> bool:
        """Have a task cancelled, as `TaskSource.cancel` does."""
        for source in self._sources:
            if await source.cancel(task_id):
                return True
        return False

    async def _cancelled(self, task_id: str) -> Fetched | None:
        return Fetched({}) if await self.cancel(task_id) else None

    async def _updated(self, task_id: str) -> Fetched | None:
        """Take answers to questions of a task: there are none, so there is nothing to do with them."""
        return None if await self.look(task_id) is None else Fetched({})

    async def watch(
        self,
        task_ids: Sequence[str],
        acknowledge: Callable[[Sequence[str]], None],
        tell: Callable[[Task], Awaitable[None]],
    ) -> None:
        """Acknowledge the tasks that are known, and tell how far each is: now, with each change, and how it ended."""
        import trio  # noqa: PLC0415  # the first questions of a client are answered before it is there

        told: dict[str, Task | None] = dict.fromkeys(task_ids)  # of those that go on, how far each was told to be
        acknowledged = False
        while told:
            seen: dict[str, Task | None] = {}
            async with trio.open_nursery() as looks:
                for task_id in told:
                    looks.start_soon(self._note, task_id, seen)
            told = {task_id: last for task_id, last in told.items() if task_id in seen}
            if not acknowledged:
                acknowledge(list(told))
                acknowledged = True
            for task_id, last in list(told.items()):
                if (task := seen[task_id]) is None:
                    continue
                if last is None or (task.status, task.message) != (last.status, last.message):
                    await tell(task)
                    told[task_id] = task
                if task.status != "working":
                    del told[task_id]
            waits = [_LATER if task is None else task.poll_ms / 1000 for task in map(seen.get, told)]
            await trio.sleep(min(waits, default=0))

    async def _note(self, task_id: str, seen: dict[str, Task | None]) -> None:
        """Note how far a task is, None where only another look may tell; nothing of one that is not known."""
        try:
            if (task := await self.look(task_id)) is not None:
                seen[task_id] = task
        except ToolError:
            seen[task_id] = None


async def _answer(
    work: Callable[[str], Awaitable[_Told]], _: CallContext, params: Mapping[str, Any]
) -> Fetched | Task | RpcError:
    task_id = params.get("taskId")
    if not isinstance(task_id, str):
        return RpcError(INVALID_PARAMS, "Invalid params: taskId must be a string")
    try:
        told = await work(task_id)
    except ToolError as error:
        return RpcError(INTERNAL_ERROR, error.failure.text)
    return told or RpcError(INVALID_PARAMS, f"Unknown task: {task_id[:100]}")
