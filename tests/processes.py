"""The server as a process of its own, started the way a client starts it."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest
import trio

from responses_mcp.testing.client import McpClient

COMMAND = [sys.executable, "-m", "responses_mcp"]
ROOT = Path(__file__).parent.parent
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
HANDSHAKE = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":"x"}}}\n'
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}\n'

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX descriptors and signals")


def ids(output: str) -> list[object]:
    """Return the ids of the messages that a server wrote as lines."""
    return [json.loads(line)["id"] for line in output.split("\n")[:-1]]


def read_terminal(leader: int) -> bytes:
    """Return what was written to a terminal that no program has open any more; the kernel hands it over in pieces."""
    shown = b""
    with suppress(OSError):  # the end, as Linux tells it
        while piece := os.read(leader, 4096):
            shown += piece
    return shown


def memory(pid: int) -> tuple[float, float] | None:
    """Return the resident memory of a process and its peak in MiB, where the system tells; None for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return (
        (int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024) if "VmRSS" in fields else None
    )


def processor_time(pid: int) -> float | None:
    """Return the seconds that a process has run, its ended threads included, where the system tells."""
    if sys.platform != "linux":
        return None
    # How clock_getcpuclockid(3) names the clock of a process. /proc/PID/stat counts in hundredths of seconds only.
    return time.clock_gettime(~pid << 3 | 2)


def python(code: str) -> list[str]:
    """Return the command that runs `code`, which usually changes something and ends with `MAIN`."""
    return [sys.executable, "-c", code]


MAIN = "\nfrom responses_mcp.__main__ import main\nmain()\n"


def environment(home: Path, base_url: str | None = None, **more: str) -> dict[str, str]:
    """Return an environment as bare as Codex gives it, plus what the server needs."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    api = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-test-0123456789abcdef"} if base_url else {}
    home_here = {"HOME": str(home)} if sys.platform != "win32" else {"HOME": str(home), "USERPROFILE": str(home)}
    return {**kept, **home_here, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **api, **more}


def run(
    home: Path,
    *arguments: str,
    stdin: bytes | int | IO[Any] | socket.socket = b"",
    stdout: int | IO[Any] | socket.socket = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    command: Sequence[str] = COMMAND,
    base_url: str | None = None,
    **env: str,
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end, with `stdin` as a pipe where it is bytes; what it wrote into pipes is decoded."""
    given: dict[str, Any] = {"input" if isinstance(stdin, bytes) else "stdin": stdin, "stdout": stdout}
    done = subprocess.run(
        [*command, *arguments],
        **given,
        stderr=stderr,
        env=environment(home, base_url, **env),
        cwd=home,
        timeout=WAIT,
        check=False,
    )
    said, told = ((piped or b"").decode() for piped in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, said, told)


class ServerProcess:
    """A running server and a client connected to it."""

    def __init__(self, process: trio.Process, client: McpClient) -> None:
        self.process = process
        self.client = client
        self.stderr = b""

    async def drain_stderr(self) -> None:
        assert self.process.stderr is not None
        async for data in self.process.stderr:
            self.stderr += data

    async def ended(self) -> int:
        """Wait for the process to end and return its exit code."""
        with trio.fail_after(WAIT):
            return await self.process.wait()


class Program(NamedTuple):
    """A program that runs, and our ends of its pipes."""

    process: trio.Process
    stdin: trio.abc.SendStream
    stdout: trio.abc.ReceiveStream


@asynccontextmanager
async def program(command: Sequence[str], *, grace: float = 0.0, **options: Any) -> AsyncGenerator[Program]:
    """Start a program. At the end of the block its input ends; it is killed if it has not ended after `grace` seconds."""
    pipe = subprocess.PIPE
    process = await trio.lowlevel.open_process(list(command), stdin=pipe, stdout=pipe, **options)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield Program(process, process.stdin, process.stdout)
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + grace):
            await trio.aclose_forcefully(process.stdin)
            await process.wait()
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + WAIT):
            await process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    await trio.aclose_forcefully(stream)


@asynccontextmanager
async def server_process(
    env: dict[str, str],
    *arguments: str,
    framed: bool = False,
    initialize: bool = True,
    cwd: Path | None = None,
    command: Sequence[str] = COMMAND,
) -> AsyncGenerator[ServerProcess]:
    """Start `openai-responses-mcp --stdio` and shake hands. It is killed if it outlives the block."""
    options: dict[str, Any] = {"stderr": subprocess.PIPE, "env": env, "cwd": cwd or env["HOME"]}
    async with (
        program([*command, "--stdio", *arguments], **options) as (process, stdin, stdout),
        trio.open_nursery() as nursery,
    ):
        running = ServerProcess(process, McpClient(stdout, stdin, framed=framed))
        await nursery.start(running.client.listen)
        nursery.start_soon(running.drain_stderr)
        if initialize:
            with trio.fail_after(WAIT):
                await running.client.initialize()
        yield running
        nursery.cancel_scope.deadline = trio.current_time() + WAIT
        await stdin.aclose()
        await process.wait()
        # Both tasks end by themselves when they have read the last that it said.
