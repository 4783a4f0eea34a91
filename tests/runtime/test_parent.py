"""The process that started the server ends, and another one goes on holding the pipes: nobody is there to end it."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from responses_mcp.runtime.stdio import wait_reader_gone
from responses_mcp.serving import QUIET_SECONDS, wait_parent_gone
from responses_mcp.testing import Json, bodies, open_fake_api
from tests.processes import COMMAND, MAIN, PING, PONG, WAIT, environment, posix, python, run, server_process

pytestmark = pytest.mark.clock("virtual")

LAUNCHER = f"import subprocess; subprocess.Popen({[*COMMAND, '--stdio']!r}).wait()"
ALREADY_GONE = f"""
from responses_mcp import serving
async def gone(parent): pass
serving.wait_parent_gone = gone
{MAIN}"""


@posix
async def test_a_new_parent_is_noticed_within_five_seconds_and_an_orphan_is_left_alone() -> None:
    for parent in (0, 1):
        with trio.move_on_after(86_400) as day:
            await wait_parent_gone(parent, lambda: 42)
        assert day.cancelled_caught
    gone = trio.current_time() + 60
    with trio.fail_after(65):
        await wait_parent_gone(42, lambda: 42 if trio.current_time() < gone else 1)
    assert trio.current_time() >= gone


@posix
def test_a_server_whose_launcher_was_killed_ends_although_its_pipes_are_open(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
    ) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdin.write(PING)
        launcher.stdin.flush()
        assert launcher.stdout.readline().decode() == PONG
        launcher.kill()
        assert select.select([launcher.stdout], [], [], WAIT)[0], "the server still holds its end"
        assert launcher.stdout.read() == b""


@posix
@pytest.mark.clock("real")
async def test_a_call_in_flight_is_answered_before_a_server_without_a_parent_ends(tmp_path: Path) -> None:
    async with (
        open_fake_api(Json(bodies.answer("Late."), latency=1.5 * QUIET_SECONDS)) as api,
        server_process(environment(tmp_path, api.base_url), command=python(ALREADY_GONE)) as server,
    ):
        with trio.fail_after(WAIT):
            answer = await server.client.call("answer", {"query": "x"})
            assert "Late." in answer["result"]["content"][0]["text"]
            assert await server.ended() == 0
    assert b"the process that started this server is gone" in server.stderr
    assert b"MCP_WATCH_PARENT" in server.stderr


@posix
def test_a_client_that_goes_on_without_the_launcher_keeps_its_server(tmp_path: Path) -> None:
    """It is heard within the seconds in which a server without a parent would end."""
    with subprocess.Popen(
        [*python(ALREADY_GONE), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(tmp_path)
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        began = time.monotonic()
        while time.monotonic() < began + 1.5 * QUIET_SECONDS:
            server.stdin.write(PING)
            server.stdin.flush()
            assert server.stdout.readline().decode() == PONG
            time.sleep(QUIET_SECONDS / 4)


@posix
def test_the_watch_can_be_switched_off(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", stdin=PING, command=python(ALREADY_GONE), MCP_WATCH_PARENT="0")
    assert (done.returncode, done.stdout) == (0, PONG)
    reading, writing = os.pipe()
    try:  # nobody ends this input
        assert run(tmp_path, "--stdio", stdin=reading, command=python(ALREADY_GONE)).returncode == 0
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows")
@pytest.mark.clock("real")
async def test_windows_tells_of_a_closed_pipe() -> None:
    reading, writing = os.pipe()
    with trio.move_on_after(0.2) as early:
        await wait_reader_gone(writing)
    assert early.cancelled_caught
    os.close(reading)
    with trio.fail_after(WAIT):
        await wait_reader_gone(writing)
    os.close(writing)
