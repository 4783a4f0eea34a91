"""What runs promise holds on a disk that takes its time, where news of a run come while those before are written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.testing import Error
from tests.research.upstream import ended, in_file, researching, slow

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
