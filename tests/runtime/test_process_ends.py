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
    done = subprocess.run(
        [sys.executable, "-c", LOADING, "--stdio"],
        input=HANDSHAKE + CALL,
        capture_output=True,
        env=environment(tmp_path, "http://127.0.0.1:9/v1"),
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


# What cannot be stopped: a look-up that hangs, and a thread that loads certificates.

CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":"x"}}}\n'

LOOKING_UP = """
import atexit, os, signal, socket, sys, threading
import trio

LOOK_UPS = 8  # as many as the default limiter has places, here

real = socket.getaddrinfo
hanging = []

def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):
    if host not in ("hangs.invalid", b"hangs.invalid"):
        return real(host, port, family, type, proto, flags)
    if flags & socket.AI_NUMERICHOST:
        raise socket.gaierror(socket.EAI_NONAME, "no number")
    hanging.append(host)
    if len(hanging) == LOOK_UPS:
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait()

socket.getaddrinfo = getaddrinfo
real_run = trio.run

def run(main, *args):
    async def limited():
        trio.to_thread.current_default_thread_limiter().total_tokens = LOOK_UPS
        await main(*args)
    real_run(limited)

trio.run = run
atexit.register(lambda: print("the interpreter ends", file=sys.stderr))
from responses_mcp.__main__ import main
main()
"""


@posix
async def test_look_ups_that_hang_keep_neither_the_index_from_being_closed_nor_the_interpreter_from_its_end(
    tmp_path: Path,
) -> None:
    (tmp_path / "manuals" / "shop").mkdir(parents=True)
    (tmp_path / "manuals" / "shop" / "a.md").write_text("# Tokens\n\nA token opens the door.\n")
    index = tmp_path / ".cache" / "openai-responses-mcp"
    env = environment(
        tmp_path, "https://hangs.invalid/v1", MANUALS_ROOT=str(tmp_path / "manuals"), XDG_CACHE_HOME=str(index.parent)
    )
    async with server_process(env, command=[sys.executable, "-c", LOOKING_UP]) as server:
        with trio.fail_after(WAIT):
            await server.client.call("manual_ls", {"id": "manuals"})
            find = {"query": "token", "manual_id": "shop", "required_terms": ["token"]}
            found = await server.client.call("manual_find", find)
            assert not found["result"]["isError"]
            assert list(index.glob("*.sqlite3-wal"))
            for _ in range(12):
                await server.client.start_call("answer", {"query": "x"})
        assert await server.ended() == 0
    assert server.stderr == b"the interpreter ends\n"
    assert list(index.glob("*.sqlite3-wal")) == []  # which goes when the index is closed


LOADING_A_WHILE = """
import atexit, os, signal, ssl, sys, threading

real_load = ssl.SSLContext.load_verify_locations
ending = threading.Event()

def load(*args, **named):
    os.kill(os.getpid(), signal.SIGTERM)
    while not ending.is_set():
        real_load(*args, **named)

ssl.SSLContext.load_verify_locations = load
import trio
real_run = trio.run

def run(*args):
    real_run(*args)
    threading.Timer(0.02, ending.set).start()

trio.run = run
atexit.register(lambda: print("the interpreter ends", file=sys.stderr))
from responses_mcp import __main__ as program
program.PATIENCE = 30  # the machine may be busy
program.main()
"""


@posix
def test_a_thread_that_has_soon_loaded_its_certificates_is_waited_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING_A_WHILE, "--stdio"],
        input=HANDSHAKE + CALL,
        capture_output=True,
        env=environment(tmp_path, "http://127.0.0.1:9/v1"),
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"the interpreter ends\n")


@posix
@pytest.mark.parametrize("streams", ["both", "stdout"])
async def test_a_terminal_that_is_closed_ends_everything_at_once(tmp_path: Path, streams: str) -> None:
    import pty
    import tty

    parent, child = pty.openpty()
    tty.setraw(child)
    keeps_stdin_open, stdin = os.pipe()
    async with open_fake_api() as api:
        api.default = Hang()
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "responses_mcp", "--stdio"],
            stdin=child if streams == "both" else keeps_stdin_open,
            stdout=child,
            stderr=subprocess.PIPE,
            # An end of input would be waited for longer than this test.
            env=environment(tmp_path, api.base_url, MCP_DRAIN_TIMEOUT_MS="3600000"),
        )
        os.close(child)
        try:
            with trio.fail_after(WAIT):
                os.write(parent if streams == "both" else stdin, HANDSHAKE + CALL)
                await api.wait_requests(1)
                os.close(parent)
                await api.wait_hang_ups(1)
                assert await process.wait() == 0
        finally:
            process.kill()
            os.close(stdin)
            os.close(keeps_stdin_open)
        assert process.stderr is not None
        assert b"".join([data async for data in process.stderr]) == b""
