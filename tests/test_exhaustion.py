"""Descriptors or memory that run out.

- The shortage is named with its cure, whatever error it lies behind, and nothing else is taken for one.
- A server that cannot start, and a program that cannot open its own modules, say so in a line without a traceback.
- A call that fails for it says so to the client and leaves stderr alone.
- A debug file that cannot be opened for it is a warning.
"""

import errno
import socket
import sqlite3
import ssl
import sys
from pathlib import Path

import pytest
import trio

from responses_mcp.errors import exhausted
from tests.processes import HANDSHAKE, MAIN, WAIT, environment, posix, python, run, server_process


@pytest.mark.parametrize(
    ("number", "cure"),
    [(errno.EMFILE, "ulimit -n"), (errno.ENFILE, "close other programs"), (errno.ENOMEM, "ulimit -v")],
)
def test_a_shortage_is_told_from_the_error_of_the_system(number: int, cure: str) -> None:
    assert cure in (exhausted(OSError(number, "")) or "")


def test_a_shortage_is_told_from_what_lies_behind_an_error() -> None:
    caused, within = ValueError(), RuntimeError()
    caused.__cause__ = OSError(errno.EMFILE, "")
    within.__context__ = ExceptionGroup("of a nursery", [ValueError(), caused])
    within.__context__.__context__ = within  # a circle ends, too
    assert "EMFILE" in (exhausted(within) or "")
    assert "ENOMEM" in (exhausted(MemoryError()) or "")


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(errno.ECONNREFUSED, ""),
        socket.gaierror(socket.EAI_NONAME, ""),
        sqlite3.OperationalError("unable to open database file"),
        ssl.SSLError(),
        OSError(),
    ],
    ids=repr,
)
def test_other_errors_are_no_shortage(error: Exception) -> None:
    assert exhausted(error) is None


# In a process that has little. `spent` leaves so many descriptors, from when it is called.
SHORT = """
import os, resource, sys

def spent(left):
    lowest = os.open(os.devnull, os.O_RDONLY)  # descriptors have the lowest numbers that are free
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + left, lowest + left))

"""


@posix
@pytest.mark.parametrize("left", [0, 3, 6, 8])
def test_a_server_that_cannot_start_for_want_of_descriptors_says_so(tmp_path: Path, left: int) -> None:
    # All is imported before, so that the descriptors of the wire, of Trio and of its streams are what is wanting.
    modules = ("__main__", "asking", "cli", "serving", "runtime.prologue")
    code = "".join(f"import responses_mcp.{name}\n" for name in modules) + f"spent({left})\n{MAIN}"
    done = run(tmp_path, "--stdio", stdin=HANDSHAKE, command=python(SHORT + code))
    assert done.returncode == 1
    assert "EMFILE" in done.stderr
    assert "ulimit -n" in done.stderr
    assert "bug" not in done.stderr
    assert "MCP client" not in done.stderr


@posix
@pytest.mark.parametrize("arguments", [["--stdio"], ["--version"], ["demo"], ["doctor", "--offline"], ["ask", "x"]])
def test_a_program_that_cannot_open_its_own_modules_says_why(tmp_path: Path, arguments: list[str]) -> None:
    code = "from responses_mcp.__main__ import main\nimport responses_mcp.errors\nspent(0)\nmain()"
    done = run(tmp_path, *arguments, command=python(SHORT + code), OPENAI_API_KEY="sk-test-0123456789abcdef")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    assert "ulimit -n" in done.stderr


def manual(home: Path) -> Path:
    (home / "manuals" / "shop").mkdir(parents=True)
    (home / "manuals" / "shop" / "a.md").write_text("# Tokens\n\nA token opens the door.\n", encoding="utf-8")
    return home / "manuals"


# All is spent when the second call begins; what it needs is loaded.
CALLED = """
import responses_mcp.toolsets.manual_calls, responses_mcp.manuals.library
from responses_mcp.toolsets.manuals import ManualsToolset
real = ManualsToolset._work
calls = []

async def call(self, name, context, arguments):
    calls.append(name)
    if len(calls) == 2:
        spent({left})
    return await real(self, name, context, arguments)

ManualsToolset._work = call
"""


@posix
@pytest.mark.parametrize(
    ("name", "arguments", "left"),
    [
        ("manual_ls", {"id": "shop"}, 0),
        ("manual_scan", {"manual_id": "shop", "path": "a.md"}, 0),
        *(
            ("manual_find", {"query": "token", "manual_id": "shop", "required_terms": ["token"]}, left)
            for left in range(4)
        ),
    ],
)
async def test_manuals_that_cannot_be_opened_for_want_of_descriptors_say_so(
    tmp_path: Path, name: str, arguments: dict, left: int
) -> None:
    env = environment(tmp_path, MANUALS_ROOT=str(manual(tmp_path)))
    command = python(SHORT + CALLED.format(left=left) + MAIN)
    async with server_process(env, command=command) as server:
        with trio.fail_after(WAIT):
            await server.client.call("manual_ls", {"id": "manuals"})
            failed = await server.client.call(name, arguments)
    assert failed["result"]["isError"] is True
    assert "EMFILE" in failed["result"]["content"][0]["text"]
    assert "ulimit -n" in failed["result"]["content"][0]["text"]
    assert server.stderr == b""  # such as that the index is kept in memory, which is for when there is no other way


# From the first call on there is room for what it says, and not for the stack of a thread.
STARVED = """
from responses_mcp.toolsets.answer import AnswerToolset
real = AnswerToolset._answer

async def call(self, *args):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**22, resource.RLIM_INFINITY))
    return await real(self, *args)

AnswerToolset._answer = call
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads its size from /proc")
async def test_a_call_for_which_there_is_no_memory_says_so(tmp_path: Path) -> None:
    command = python(SHORT + STARVED + MAIN)
    async with server_process(environment(tmp_path, "http://127.0.0.1:9/v1"), command=command) as server:
        with trio.fail_after(WAIT):
            failed = await server.client.call("answer", {"query": "x"})
    assert failed["error"]["code"] == -32001
    assert "ENOMEM" in failed["error"]["data"]["message"]
    assert server.stderr == b""


@posix
def test_a_debug_file_that_cannot_be_opened_for_want_of_descriptors_is_told_with_the_cure(tmp_path: Path) -> None:
    # One descriptor is left, for the log on stderr.
    code = """
from responses_mcp.logs import configure
from responses_mcp.secrets import Redactor
spent(1)
configure(debug=True, debug_file="log", redact=Redactor()).close()
"""
    done = run(tmp_path, command=python(SHORT + code))
    assert "the debug file log cannot be opened" in done.stderr
    assert "ulimit -n" in done.stderr
