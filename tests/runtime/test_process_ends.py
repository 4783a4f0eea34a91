"""Every way in which the process ends: signals at any moment, the end of input, a client that is gone."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from responses_mcp.testing import Hang, open_fake_api
from tests.processes import WAIT, environment, server_process
from tests.runtime.test_stdio import HANDSHAKE, messages, posix, run


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_signal_ends_everything_quietly_with_calls_in_flight(tmp_path: Path, name: str) -> None:
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        api.default = Hang()
        for _ in range(5):
            await server.client.start_call("answer", {"query": "x"})
        with trio.fail_after(WAIT):
            await api.wait_requests(5)
            server.process.send_signal(getattr(signal, name))
            await api.wait_hang_ups(5)
        assert await server.ended() == 0
    assert server.stderr == b""
    assert len(server.client.heard) == 1


@posix
@pytest.mark.parametrize("first", ["SIGINT", "SIGTERM"])
async def test_signals_that_follow_while_the_process_ends_do_not_change_its_exit_code(
    tmp_path: Path, first: str
) -> None:
    # Claude Code sends SIGINT and, a tenth of a second later, SIGTERM: the interpreter may be on its way out by then.
    async with server_process(environment(tmp_path)) as server:
        server.process.send_signal(getattr(signal, first))
        with trio.fail_after(WAIT):
            while server.process.poll() is None:
                server.process.send_signal(signal.SIGTERM)
                await trio.sleep(0.002)
        assert server.process.returncode == 0
    assert server.stderr == b""


@posix
async def test_a_client_that_closes_our_output_ends_us_though_nothing_is_being_written(tmp_path: Path) -> None:
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        api.default = Hang()
        await server.client.start_call("answer", {"query": "x"})
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            assert server.process.stdout is not None
            await server.process.stdout.aclose()
            await api.wait_hang_ups(1)
        assert await server.ended() == 0
    assert server.stderr == b""


async def test_a_call_in_flight_at_the_end_of_input_is_answered(tmp_path: Path) -> None:
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        release = trio.Event()

        async def later(request):
            await release.wait()
            from responses_mcp.testing import Json, bodies

            return Json(bodies.echo(request.json))

        api.default = later
        call = await server.client.start_call("answer", {"query": "still there?"})
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            await server.client.end_input()
            release.set()
            answer = await server.client.response(call)
        assert "still there?" in answer["result"]["structuredContent"]["answer"]
        assert await server.ended() == 0


@posix
def test_one_socket_for_both_is_as_blocking_in_the_end_as_it_was(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(HANDSHAKE)
        ours.shutdown(socket.SHUT_WR)
        done = run(tmp_path, theirs, theirs)
        assert (done.returncode, done.stderr) == (0, b"")
        assert os.get_blocking(theirs.fileno())
        assert [m["id"] for m in messages(ours.recv(65536))] == [1, 2]


BETWEEN = """
import os, signal, sys
import trio, trio.testing
import responses_mcp.daemon as daemon
from responses_mcp.toolsets.answer import AnswerToolset

def ask_to_end(number):
    os.kill(os.getpid(), number)

moment = sys.argv.pop()
if moment == "streams":
    real_stream = daemon.writing_to
    def writing_to(fd):
        stream = real_stream(fd)
        ask_to_end(signal.SIGTERM)
        return stream
    daemon.writing_to = writing_to
elif moment == "again":
    async def aclose(self):
        ask_to_end(signal.SIGINT)
        await trio.testing.wait_all_tasks_blocked()
        ask_to_end(signal.SIGTERM)
        await trio.testing.wait_all_tasks_blocked()
    AnswerToolset.aclose = aclose
elif moment == "after":
    real_run = trio.run
    def run(*args):
        real_run(*args)
        ask_to_end(signal.SIGTERM)
    trio.run = run
from responses_mcp.__main__ import main
main()
"""


@posix
@pytest.mark.parametrize("moment", ["streams", "again", "after"])
def test_a_signal_at_any_moment_leaves_the_clients_descriptors_as_they_were(tmp_path: Path, moment: str) -> None:
    # When the streams have just been made, a second time while they are being closed, and when Trio is done.
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(HANDSHAKE)
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run(
            [sys.executable, "-c", BETWEEN, "--stdio", moment],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
            timeout=WAIT,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert os.get_blocking(theirs.fileno())


HALF_BUILT = """
import logging, os, signal, sys
from responses_mcp import debuglog

built = sys.argv.pop()

def interrupted(handler, *args):
    if built == "registered":
        logging.Handler.__init__(handler)
    os.kill(os.getpid(), signal.SIGTERM)

if built == "registered":
    debuglog.LogHandler.__init__ = interrupted
else:
    debuglog.LogHandler.createLock = interrupted
from responses_mcp.__main__ import main
main()
"""


@posix
@pytest.mark.parametrize("built", ["without a lock", "registered"])
def test_a_signal_while_the_log_is_being_set_up_ends_the_process_quietly(tmp_path: Path, built: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HALF_BUILT, "--stdio", built],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(tmp_path),
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


LOADING = """
import atexit, os, signal, ssl, sys

real_load = ssl.SSLContext.load_verify_locations

def load(*args, **named):
    os.kill(os.getpid(), signal.SIGTERM)
    while True:
        real_load(*args, **named)

ssl.SSLContext.load_verify_locations = load
atexit.register(lambda: print("the interpreter ends", file=sys.stderr))
from responses_mcp.__main__ import main
main()
"""


@posix
def test_a_thread_that_still_loads_certificates_does_not_crash_the_end(tmp_path: Path) -> None:
    # It cannot be stopped, and the interpreter's end would take OpenSSL down under it: a crash, more often than not.
    call = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":"x"}}}\n'
    done = subprocess.run(
        [sys.executable, "-c", LOADING, "--stdio"],
        input=HANDSHAKE + call,
        capture_output=True,
        env=environment(tmp_path, "http://127.0.0.1:9/v1"),
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
