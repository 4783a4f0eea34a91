"""How a process leaves its runs: none is lost that was begun, and leaving is bounded.

- A run that was asked for has its id in the file, at whatever moment its process leaves, and however: the block ends, it
  raises, its host is cancelled.
- For an id that is slow to come a second is waited. After that the run is one that may have been paid for.
- A run that still waits for anything, or was refused, is not asked for any more, and cost nothing.
"""

from __future__ import annotations

import subprocess
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from responses_mcp.research.runs import open_research
from responses_mcp.testing import Error, Reply
from tests.processes import WAIT, environment, posix, python
from tests.research.upstream import Upstream, after, at_once, researching, settings_for, slow, taken_up

pytestmark = pytest.mark.clock("virtual")

Left = Callable[[Upstream, Path, int], Awaitable[str]]


class Elsewhere(Exception):
    """What a host's block may raise."""


async def ends(upstream: Upstream, folder: Path, count: int, **options: Any) -> str:
    async with researching(upstream, folder, **options) as research:
        run = await research.start("why?")
        await after(count)
    return run


async def raises(upstream: Upstream, folder: Path, count: int) -> str:
    run = ""
    with suppress(Elsewhere):
        async with researching(upstream, folder) as research:
            run = await research.start("why?")
            await after(count)
            raise Elsewhere
    return run


async def is_cancelled(upstream: Upstream, folder: Path, count: int) -> str:
    run = ""
    with trio.CancelScope() as host:
        async with researching(upstream, folder) as research:
            run = await research.start("why?")
            await after(count)
            host.cancel(reason="the host leaves")
            await trio.sleep_forever()
    return run


MOMENTS: Final = range(40)  # in steps after the begin: by the last of them the first events have come


@pytest.mark.parametrize("leave", [ends, raises, is_cancelled])
@pytest.mark.parametrize("count", MOMENTS)
async def test_a_run_that_was_asked_for_outlives_its_process_at_whatever_moment_that_leaves(
    leave: Left, count: int, tmp_path: Path
) -> None:
    upstream = slow()
    run = await leave(upstream, tmp_path, count)
    asked = len(upstream.of("ask"))
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid) == ("completed" if asked else "failed", False), view
    assert len(upstream.of("ask")) == asked <= 1
    assert asked or count < 20, "it is asked for in fewer steps"


@pytest.mark.parametrize("latency", [0.01, 0.7])
async def test_an_id_that_is_slow_to_come_is_waited_for(latency: float, tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = latency
    view = await taken_up(upstream, tmp_path, await ends(upstream, tmp_path, 20))
    assert (view.status, len(upstream.of("ask"))) == ("completed", 1), view


async def test_an_id_that_does_not_come_in_time_is_told_and_leaving_takes_no_longer_than_a_second(
    tmp_path: Path,
) -> None:
    upstream = slow()
    upstream.latency = 3.0
    run = await ends(upstream, tmp_path, 20)
    assert trio.current_time() <= 1.0
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid, len(upstream.of("ask"))) == ("failed", True, 1), view


HOST: Final = """
import os, signal, sys, trio
from pathlib import Path
from tests.research.upstream import researching, slow

async def main():
    upstream = slow(30)
    upstream.latency = 3.0
    async def interrupt_once_more():
        await trio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
    async with researching(upstream, Path(sys.argv[1])) as research:
        await research.start("why?")
        trio.lowlevel.spawn_system_task(interrupt_once_more)
        raise KeyboardInterrupt

trio.run(main)
"""


@posix
def test_a_second_ctrl_c_while_the_first_leaves_ends_the_program(tmp_path: Path) -> None:
    process = subprocess.Popen([*python(HOST), str(tmp_path)], stderr=subprocess.PIPE, env=environment(tmp_path))
    with process:
        try:
            _, said = process.communicate(timeout=WAIT)
        finally:
            process.kill()
    assert b"KeyboardInterrupt" in said


STRUCK: Final = """
import signal, sys, trio
from pathlib import Path
from responses_mcp.research.runs import Research
from responses_mcp.responses_api.api import ResponsesApi
from tests.research.upstream import in_file, researching, slow

async def main():
    upstream = slow(0.01 if sys.argv[2] == "leaving" else 30)
    play = upstream._play
    give_up = Research.close
    close = ResponsesApi.aclose

    async def struck_in_a_run(reply, reader):
        if sys.argv[2] == "run":
            signal.raise_signal(signal.SIGINT)
        await play(reply, reader)

    def struck_in_leaving(self):
        if sys.argv[2] == "leaving":
            signal.raise_signal(signal.SIGINT)
        give_up(self)

    async def told(self):
        print("closed")
        await close(self)

    upstream._play = struck_in_a_run
    Research.close = struck_in_leaving
    ResponsesApi.aclose = told
    try:
        async with researching(upstream, Path(sys.argv[1])) as research:
            run = await research.start("why?")
            await research.result(run, wait_seconds=1 if sys.argv[2] == "leaving" else 60)
    finally:
        print([each is not None for (each,) in in_file(Path(sys.argv[1]), "SELECT response_id FROM run")])

trio.run(main)
"""


@posix
@pytest.mark.parametrize("moment", ["run", "leaving"])
def test_ctrl_c_that_strikes_a_task_of_research_loses_no_id_and_leaves_nothing_open(
    moment: str, tmp_path: Path
) -> None:
    command = [*python(STRUCK), str(tmp_path), moment]
    done = subprocess.run(command, capture_output=True, env=environment(tmp_path), timeout=WAIT, check=False)
    assert b"KeyboardInterrupt" in done.stderr
    assert (b"closed" in done.stdout, done.stdout.split()[-1]) == (True, b"[True]")


STRUCK_IN_A_CALL = """
import signal, trio
from tests.research.upstream import slow
from responses_mcp.responses_api.watcher import Watcher
from tests.responses_api.test_background import asking

upstream = slow(0.01)

def strike(phase):
    if phase == "searching":
        signal.raise_signal(signal.SIGINT)

async def main():
    try:
        await asking(upstream).answer("why?", watcher=Watcher(strike))
    finally:
        print(upstream.kinds)

trio.run(main)
"""


@posix
def test_ctrl_c_that_strikes_the_task_of_a_call_in_background_mode_cancels_it_at_the_api(tmp_path: Path) -> None:
    done = subprocess.run(
        python(STRUCK_IN_A_CALL), capture_output=True, env=environment(tmp_path), timeout=WAIT, check=False
    )
    assert done.stdout.strip() == b"['ask', 'cancel']"
    assert done.stderr.strip().endswith(b"KeyboardInterrupt")
    assert b"Group" not in done.stderr


async def test_a_run_that_waits_to_be_asked_again_is_left_at_once_and_not_asked_again(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(429, headers={"retry-after": "0.5"})]
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(0.1)
        upstream.latency = 3.0
        before = trio.current_time()
    assert trio.current_time() == before
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid, len(upstream.of("ask"))) == ("failed", False, 1), view


BACKGROUND: Final = "Unsupported parameter: 'background' is not supported with this model."


@pytest.mark.parametrize(
    "refusal",
    [
        Error(400, BACKGROUND, param="background", latency=0.3),
        Error(404, "Not Found", code="", latency=0.3),
        Error(400, "Unsupported value: 'low' is not supported.", param="text.verbosity", latency=0.3),
    ],
)
async def test_a_run_that_is_refused_while_it_is_left_is_not_asked_for_in_another_way(
    refusal: Reply, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [refusal]
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(0.1)
        upstream.latency = 3.0
    assert trio.current_time() <= 0.5
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, ["ask"]), view


async def test_a_run_that_waits_for_the_rate_limit_is_left_at_once_and_never_asked_for(tmp_path: Path) -> None:
    upstream = slow()
    told = {
        "x-ratelimit-limit-requests": "1",
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "10s",
    }
    upstream.script = [Error(400, param="input", headers=told)]
    async with researching(upstream, tmp_path) as research:
        assert (await research.result(await research.start("how?"), wait_seconds=1)).status == "failed"
        run = await research.start("why?")
        await trio.sleep(9.5)  # half a second before there is some again
        assert (await research.result(run)).phase.startswith("waiting for the API's rate limit")
        before, upstream.latency = trio.current_time(), 3.0
    assert trio.current_time() == before
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, ["ask"]), view


async def test_a_run_that_waits_until_it_can_connect_is_left_at_once_and_never_asked_for(tmp_path: Path) -> None:
    upstream = slow()
    connect = upstream.connect

    async def importing(url: str, limit: int) -> Upstream:
        await trio.sleep(0.5)
        return await connect(url, limit)

    api = upstream.api()
    api._connect = importing
    async with open_research(settings_for(tmp_path), api=api, in_thread=at_once, clock=lambda: 1e9) as research:
        run = await research.start("why?")
        await trio.sleep(0.1)
        before, upstream.latency = trio.current_time(), 3.0
    assert trio.current_time() == before
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, []), view
