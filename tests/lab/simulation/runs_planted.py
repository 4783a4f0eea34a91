"""Bugs planted in runs of research on purpose, to see that the simulation catches each.

Each replaces a name at run time, and nothing in a file.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import trio

from responses_mcp.errors import UpstreamError
from responses_mcp.research import runs_file
from responses_mcp.research.outcome import RunView
from responses_mcp.research.run import Run
from responses_mcp.research.runs_file import Row, RunsFile
from responses_mcp.research.service import Research
from responses_mcp.research.states import TRANSITIONS, Action, State, Transition, Trigger
from responses_mcp.usage.caps import Amount, Caps, Reservation


def other(state: State, trigger: Trigger, action: Action, to: State) -> AbstractContextManager[object]:
    return patch.dict(TRANSITIONS[state], {trigger: Transition(to, action)})


def _asks_again() -> AbstractContextManager[object]:
    def again(self: Run, error: UpstreamError) -> bool:
        self._sent = False
        return error.status in (409, 429, 500)

    return patch.object(Run, "_may_repeat", again)


def _writes_late() -> AbstractContextManager[object]:
    real = Run._write

    async def late(self: Run) -> None:
        if self.row.state is not State.ASKING:
            await real(self)

    return patch.object(Run, "_write", late)


def _claims_all() -> AbstractContextManager[object]:
    stack = ExitStack()  # two places see to it
    stack.enter_context(patch.multiple(runs_file, _FREE="(? + ? > 0)"))
    stack.enter_context(patch.object(Research, "_is_lost", lambda self, row: True))
    return stack


def _ignores_cancels() -> AbstractContextManager[object]:
    return patch.object(Run, "_overtake", lambda self, action: None)


def _forgets_early_cancels() -> AbstractContextManager[object]:
    real = Run.work

    async def work(self: Run) -> None:
        self._overtaken = None
        await real(self)

    return patch.object(Run, "work", work)


def _keeps_nothing(name: str) -> Callable[[], AbstractContextManager[object]]:
    real = RunsFile.keep

    def keep(self: RunsFile, row: Row) -> Any:
        before = self.get(row.id, row.account)
        return real(self, row if before is None else replace(row, **{name: getattr(before, name)}))

    return lambda: patch.object(RunsFile, "keep", keep)


def _never_releases_or_takes_over() -> AbstractContextManager[object]:
    return patch.multiple(RunsFile, orphans=lambda self, account: [], claim=lambda self, run_id, owner: None)


def _tells_its_own_clock() -> AbstractContextManager[object]:
    real = Research._answered

    async def answered(self: Research, row: Row) -> RunView:
        return await real(self, replace(row, ended=None))

    return patch.object(Research, "_answered", answered)


def _says_it_was_free() -> AbstractContextManager[object]:
    return other(State.ASKING, Trigger.LOST, Action.CLOSE_UNPAID, State.ENDED)


def _polls_after_the_end() -> AbstractContextManager[object]:
    real = Run._end

    async def end(self: Run, row: Any) -> None:
        await real(self, row)
        if row.status == "cancelled" and row.response_id is not None:
            await trio.sleep(1)
            await self._look_up()

    return patch.object(Run, "_end", end)


def _counts_nothing() -> AbstractContextManager[object]:
    real = Caps.settle

    def settle(self: Caps, held: Reservation, kind: str, spent: Amount | None, *, known: bool) -> None:
        real(self, held, kind, None, known=known)

    return patch.object(Caps, "settle", settle)


BUGS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "a 500 is asked again": _asks_again,
    "the row is written after the request": _writes_late,
    "a run is claimed though its owner lives": _claims_all,
    "a cancel stops nothing": _ignores_cancels,
    "a cancel before the first step is forgotten": _forgets_early_cancels,
    "the id is not written": _keeps_nothing("response_id"),
    "what may have been paid for is not written": _keeps_nothing("maybe_paid"),
    "runs of lost servers stay where they are": _never_releases_or_takes_over,
    "a later reader sees another result": _tells_its_own_clock,
    "an id that never came is called free": _says_it_was_free,
    "a run that was cancelled is looked up": _polls_after_the_end,
    "what a run used is not counted": _counts_nothing,
}
