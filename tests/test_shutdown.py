"""How the program ends, at whatever moment it is asked to.

- A signal ends a server at once and quietly: exit code 0, nothing on stderr, calls unanswered, their sockets closed. It
  does so while the program imports, while the log is set up, and however many signals follow.
- An interrupt ends a command with 130 and without a traceback.
- At the end of the input the calls in flight are answered.
- A client that closes our output, be it a terminal, ends everything though nothing is being written.
- The descriptors that we share with the client are as blocking afterwards as they were.
- What cannot be stopped, a look-up that hangs or a thread that loads certificates, neither keeps the process from ending
  nor crashes it, and what can be closed is closed.
- The debug log is written to its last line.
"""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from responses_mcp.testing import Hang, Json, RecordedRequest, bodies, open_fake_api
from tests.processes import CALL, COMMAND, HANDSHAKE, MAIN, WAIT, environment, ids, posix, python, run, server_process

pytestmark = pytest.mark.rule("P9")

NOWHERE = "http://127.0.0.1:9/v1"


# Signals to a server


@pytest.mark.rule("spec 6.1")
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


HALF_BUILT = """
import logging, os, signal, sys
from responses_mcp import logs

built = sys.argv.pop()

def interrupted(handler, *args):
    if built == "registered":
        logging.Handler.__init__(handler)
    os.kill(os.getpid(), signal.SIGTERM)

if built == "registered":
    logs.LogHandler.__init__ = interrupted
else:
    logs.LogHandler.createLock = interrupted
"""


@posix
@pytest.mark.parametrize("built", ["without a lock", "registered"])
def test_a_signal_while_the_log_is_being_set_up_ends_the_process_quietly(tmp_path: Path, built: str) -> None:
    done = run(tmp_path, "--stdio", built, command=python(HALF_BUILT + MAIN))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Stands in for Trio: a client that got its answers from the prologue may end us before Trio's handlers are in place.
ENDED_BEFORE_TRIO = f"""
import logging, os, signal
from responses_mcp import logs
logs.FLUSH_SECONDS = {WAIT}  # the machine may be busy
for number in range(200):
    logging.getLogger("responses_mcp").debug("line %d", number)
os.kill(os.getpid(), signal.SIGTERM)
"""


@posix
def test_a_signal_before_trio_is_imported_leaves_the_log_whole(tmp_path: Path) -> None:
    (tmp_path / "trio.py").write_text(ENDED_BEFORE_TRIO, encoding="utf-8")
    (tmp_path / "in").write_bytes(HANDSHAKE)  # there from the start, for the prologue waits 200 ms
    path = os.pathsep.join([str(tmp_path), environment(tmp_path)["PYTHONPATH"]])
    with (tmp_path / "in").open("rb") as stdin:
        done = run(tmp_path, "--stdio", stdin=stdin, DEBUG=str(tmp_path / "debug.log"), PYTHONPATH=path)
    assert ids(done.stdout) == [1, 2]
    assert (tmp_path / "debug.log").read_text(encoding="utf-8").endswith("line 199\n")


# Interrupts at an import (the audit event comes before the module is looked for), from our first line on

INTERRUPTED = f"""
import os, signal, sys

at = sys.argv.pop()
ours = []

def interrupt(event, args):
    if event == "import":
        if ours and (at == args[0] or (at == "first" and args[0] != "responses_mcp")):
            os.kill(os.getpid(), signal.SIGINT)
        if args[0] == "responses_mcp.__main__":
            sys.modules.pop("signal")  # a fresh interpreter has not loaded it
            ours.append(True)

sys.addaudithook(interrupt)
{MAIN}"""


@posix
@pytest.mark.parametrize(
    "at", ["first", "responses_mcp.errors", "responses_mcp.cli", "argparse", "responses_mcp.settings", "trio"]
)
def test_an_interrupt_while_the_server_imports_is_a_quiet_end(tmp_path: Path, at: str) -> None:
    # With "first" nothing is imported before the signals are in hand.
    done = run(tmp_path, "--stdio", at, command=python(INTERRUPTED))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@posix
@pytest.mark.parametrize("at", ["first", "responses_mcp.cli", "argparse", "trio", "responses_mcp.commands.terminal"])
@pytest.mark.parametrize("command", ["ask", "search", "doctor", "install", "manuals", "demo"])
def test_an_interrupt_while_a_command_imports_exits_130_with_one_line(tmp_path: Path, command: str, at: str) -> None:
    if (command, at) in {("install", "trio"), ("demo", "responses_mcp.commands.terminal")}:
        pytest.skip("does not import it")
    done = run(tmp_path, command, "--help", at, command=python(INTERRUPTED))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "openai-responses-mcp: interrupted.\n")


@posix
def test_a_command_that_was_started_with_interrupts_ignored_goes_on_ignoring_them(tmp_path: Path) -> None:
    # As `nohup`, and a shell that starts it in the background, have it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = run(tmp_path, "--version", "responses_mcp.cli", command=python(INTERRUPTED))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr) == (0, "")


DEMO = """
import os, signal, trio
from responses_mcp.testing.client import McpClient

async def initialize(self):
    os.kill(os.getpid(), signal.SIGINT)
    await trio.sleep_forever()

McpClient.initialize = initialize
"""
LAST = "import atexit, os, signal\natexit.register(os.kill, os.getpid(), signal.SIGINT)"


@posix
@pytest.mark.parametrize(("code", "argument", "ends_with"), [(DEMO, "demo", 130), (LAST, "--version", 0)])
def test_an_interrupt_of_a_demo_and_at_the_interpreters_end_is_without_a_traceback(
    tmp_path: Path, code: str, argument: str, ends_with: int
) -> None:
    done = run(tmp_path, argument, command=python(code + MAIN))
    said = "openai-responses-mcp: interrupted.\n" if ends_with else ""
    assert (done.returncode, done.stderr) == (ends_with, said)


# The client closes its ends


@pytest.mark.rule("P8")
async def test_a_call_in_flight_at_the_end_of_input_is_answered(tmp_path: Path) -> None:
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        ended = trio.Event()

        async def later(request: RecordedRequest) -> Json:
            await ended.wait()
            return Json(bodies.echo(request.json))

        api.default = later
        call = await server.client.start_call("answer", {"query": "still there?"})
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            await server.client.end_input()
            ended.set()
            answer = await server.client.response(call)
        assert "still there?" in answer["result"]["structuredContent"]["answer"]
        assert await server.ended() == 0


@pytest.mark.rule("spec 6.1")
@posix
async def test_a_client_that_closes_our_output_ends_us_though_nothing_is_being_written(tmp_path: Path) -> None:
    async with open_fake_api(Hang()) as api, server_process(environment(tmp_path, api.base_url)) as server:
        await server.client.start_call("answer", {"query": "x"})
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            assert server.process.stdout is not None
            await server.process.stdout.aclose()
            await api.wait_hang_ups(1)
        assert await server.ended() == 0
    assert server.stderr == b""


@posix
@pytest.mark.parametrize("streams", ["both", "stdout"])
async def test_a_terminal_that_is_closed_ends_everything_at_once(tmp_path: Path, streams: str) -> None:
    import pty
    import tty

    parent, child = pty.openpty()
    tty.setraw(child)
    keeps_stdin_open, stdin = os.pipe()
    async with open_fake_api(Hang()) as api:
        process = await trio.lowlevel.open_process(
            [*COMMAND, "--stdio"],
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


# One socket for stdin and stdout, of which the client has said all that it will


@pytest.fixture
def shared() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give the client's end and the server's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(HANDSHAKE)
        ours.shutdown(socket.SHUT_WR)
        yield ours, theirs


# When the streams have just been made, a second time while they are being closed, and when Trio is done.
BETWEEN = """
import os, signal, sys
import trio, trio.testing
from responses_mcp import serving
from responses_mcp.toolsets.answer import AnswerToolset

def ask_to_end(number):
    os.kill(os.getpid(), number)

moment = sys.argv.pop()
if moment == "streams":
    real_stream = serving.writing_to
    def writing_to(fd):
        stream = real_stream(fd)
        ask_to_end(signal.SIGTERM)
        return stream
    serving.writing_to = writing_to
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
"""


@posix
@pytest.mark.parametrize("moment", ["streams", "again", "after", "never"])
def test_a_signal_at_any_moment_leaves_the_clients_descriptors_as_they_were(
    tmp_path: Path, moment: str, shared: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = shared
    done = run(tmp_path, "--stdio", moment, stdin=theirs, stdout=theirs, command=python(BETWEEN + MAIN))
    assert (done.returncode, done.stderr) == (0, "")
    assert os.get_blocking(theirs.fileno())
    assert ids(ours.recv(65536).decode()) == [1, 2]


# What cannot be stopped: a look-up that hangs, and a thread that loads certificates

LOOKING_UP = f"""
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
{MAIN}"""


@posix
async def test_look_ups_that_hang_keep_neither_the_index_from_being_closed_nor_the_interpreter_from_its_end(
    tmp_path: Path,
) -> None:
    (tmp_path / "manuals" / "shop").mkdir(parents=True)
    (tmp_path / "manuals" / "shop" / "a.md").write_text("# Tokens\n\nA token opens the door.\n", encoding="utf-8")
    index = tmp_path / ".cache" / "openai-responses-mcp"
    env = environment(
        tmp_path, "https://hangs.invalid/v1", MANUALS_ROOT=str(tmp_path / "manuals"), XDG_CACHE_HOME=str(index.parent)
    )
    async with server_process(env, command=python(LOOKING_UP)) as server:
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


LOADING = f"""
import atexit, os, signal, ssl, sys, threading

real_load = ssl.SSLContext.load_verify_locations
loaded = threading.Event()

def load(*args, **named):
    os.kill(os.getpid(), signal.SIGTERM)
    while not loaded.is_set():
        real_load(*args, **named)

ssl.SSLContext.load_verify_locations = load
atexit.register(lambda: print("the interpreter ends", file=sys.stderr))
if sys.argv.pop() == "a while":
    import trio
    from responses_mcp import __main__ as program

    program.PATIENCE = {WAIT}  # the machine may be busy
    real_run = trio.run

    def run(*args):
        real_run(*args)
        threading.Timer(0.02, loaded.set).start()

    trio.run = run
{MAIN}"""


@posix
@pytest.mark.parametrize(("loading", "end"), [("for ever", ""), ("a while", "the interpreter ends\n")])
def test_a_thread_that_loads_certificates_is_waited_for_a_while_and_does_not_crash_the_end(
    tmp_path: Path, loading: str, end: str
) -> None:
    # It cannot be stopped, and the interpreter's end would take OpenSSL down under it: a crash, more often than not.
    over_tls = NOWHERE.replace("http:", "https:")
    done = run(tmp_path, "--stdio", loading, stdin=HANDSHAKE + CALL, command=python(LOADING), base_url=over_tls)
    assert (done.returncode, done.stderr) == (0, end)
