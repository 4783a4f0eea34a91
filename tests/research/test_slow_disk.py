"""What runs promise holds on a disk that takes its time, where news of a run come while those before are written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.errors import ResearchClosed
from responses_mcp.research.runs import Research
from responses_mcp.research.runs_file import RunsFileUnusable
from responses_mcp.testing import Error
from tests.research.upstream import Upstream, ended, in_file, researching, slow

pytestmark = pytest.mark.clock("virtual")


def disk(seconds: float) -> Callable[[Callable[[], Any]], Any]:
    """Return a disk for which each use of a file takes so long, one after the other."""
    head = trio.CapacityLimiter(1)

    async def use(work: Callable[[], Any]) -> Any:
        async with head:
            await trio.sleep(seconds)
            return work()

    return use


async def test_a_row_says_that_its_request_is_sent_also_where_one_without_background_mode_follows_at_once(
    tmp_path: Path,
) -> None:
    upstream = slow(interval=10.0)
    upstream.script = [Error(400, "Background mode is not supported.", param="background")]
    async with researching(upstream, tmp_path, in_thread=disk(0.05)) as research:
        run_id = await research.start("why?")
        await trio.sleep(5.0)
        assert len(upstream.of("ask")) == 2
        [(sent, kept)] = in_file(tmp_path, "SELECT sent, kept FROM run")
        assert sent is not None
        assert not kept
        assert (await ended(research, run_id)).status == "completed"


async def test_a_run_whose_research_is_closed_while_its_row_is_written_is_not_sent(tmp_path: Path) -> None:
    upstream = slow()
    closed: list[bool] = []

    async def start(research: Research) -> None:
        try:
            await research.start("why?")
        except ResearchClosed:
            closed.append(True)

    async with trio.open_nursery() as nursery:
        async with researching(upstream, tmp_path, in_thread=disk(1.0)) as research:
            nursery.start_soon(start, research)
            await trio.sleep(0.5)
        await trio.sleep(10.0)
    assert closed == [True]
    assert upstream.asked == []


async def test_a_refusal_that_cannot_be_written_ends_the_run_as_one_that_cost_nothing(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "No.")]
    fails = False

    async def use(work: Callable[[], Any]) -> Any:
        await trio.lowlevel.checkpoint()
        if fails and upstream.asked:
            raise RunsFileUnusable("locked")
        return work()

    async with researching(upstream, tmp_path, in_thread=use) as research:
        fails = True
        run_id = await research.start("why?")
        view = await ended(research, run_id)
        assert (view.status, view.maybe_paid) == ("failed", False)
        fails = False
        await trio.sleep(1.5)
        [(status, maybe_paid)] = in_file(tmp_path, "SELECT status, maybe_paid FROM run WHERE id = ?", run_id)
        assert (status, maybe_paid) == ("failed", 0)


async def test_a_cancel_that_has_read_its_row_before_the_request_was_sent_reaches_the_api(tmp_path: Path) -> None:
    upstream, pauses = slow(interval=10.0), list[float]()

    async def use(work: Callable[[], Any]) -> Any:
        done = work()
        await trio.sleep(pauses.pop() if pauses else 0.0)
        return done

    connect = upstream.connect

    async def connecting(url: str, limit: int) -> Upstream:
        await trio.sleep(0.5)
        return await connect(url, limit)

    upstream.connect, upstream.latency = connecting, 1.0  # type: ignore[method-assign]
    async with researching(upstream, tmp_path, in_thread=use) as research:
        run_id = await research.start("why?")
        await trio.sleep(0.4)
        pauses.append(0.3)
        view = await research.cancel(run_id)
    assert (view.status, view.confirmed, upstream.kinds) == ("cancelled", True, ["ask", "cancel"])
