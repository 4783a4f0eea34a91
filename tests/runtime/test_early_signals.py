"""Signals while the program still imports, and Ctrl-C in commands: no traceback at any of these moments."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import WAIT, environment
from tests.runtime.test_stdio import posix

# Interrupts itself at an import (the audit event comes before the module is looked for), from our first line on.
INTERRUPTED = """
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
from responses_mcp.__main__ import main
main()
"""


def interrupted(home: Path, at: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", INTERRUPTED, *arguments, at],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(home),
        cwd=home,
        timeout=WAIT,
        check=False,
    )


@posix
@pytest.mark.parametrize(
    "at", ["responses_mcp.errors", "responses_mcp.cli", "argparse", "responses_mcp.settings", "trio"]
)
def test_an_interrupt_while_the_server_imports_is_a_quiet_end(tmp_path: Path, at: str) -> None:
    done = interrupted(tmp_path, at, "--stdio")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@posix
def test_nothing_is_imported_before_the_signals_are_in_hand(tmp_path: Path) -> None:
    done = interrupted(tmp_path, "first", "--stdio")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@posix
@pytest.mark.parametrize("at", ["first", "responses_mcp.cli", "argparse", "trio", "responses_mcp.commands.terminal"])
@pytest.mark.parametrize("command", ["ask", "search", "doctor", "install", "manuals", "demo"])
def test_an_interrupt_while_a_command_imports_exits_130_without_a_word(tmp_path: Path, command: str, at: str) -> None:
    if (command, at) in {("install", "trio"), ("demo", "responses_mcp.commands.terminal")}:
        pytest.skip("does not import it")
    done = interrupted(tmp_path, at, command, "--help")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


DEMO = """
import os, signal, trio
from responses_mcp.testing.client import McpClient

async def initialize(self):
    os.kill(os.getpid(), signal.SIGINT)
    await trio.sleep_forever()

McpClient.initialize = initialize
from responses_mcp.__main__ import main
main()
"""
LAST = """
import atexit, os, signal

atexit.register(os.kill, os.getpid(), signal.SIGINT)
from responses_mcp.__main__ import main
main()
"""


@posix
@pytest.mark.parametrize(("code", "arguments", "ends_with"), [(DEMO, ["demo"], 130), (LAST, ["--version"], 0)])
def test_an_interrupt_of_a_demo_and_at_the_interpreters_end_is_without_a_traceback(
    tmp_path: Path, code: str, arguments: list[str], ends_with: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(tmp_path),
        timeout=WAIT,
        check=False,
    )
    assert (done.returncode, done.stderr) == (ends_with, b"")


@posix
def test_a_command_that_was_started_with_interrupts_ignored_goes_on_ignoring_them(tmp_path: Path) -> None:
    # As `nohup`, and a shell that starts it in the background, have it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = interrupted(tmp_path, "responses_mcp.cli", "--version")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (done.returncode, done.stderr) == (0, b"")
