"""A program of the laboratory in a process of its own, such as an upstream whose work must not be the server's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from tests.processes import ROOT

PATIENCE = 30.0  # seconds; a bound for a stuck machine, not an expectation


class Child:
    """A program that is spoken to in lines."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._heard = b""

    async def write(self, line: str) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send_all(f"{line}\n".encode())

    async def line(self) -> str:
        """Wait for its next line. Raises EOFError when it has ended."""
        assert self._process.stdout is not None
        while b"\n" not in self._heard:
            data = await self._process.stdout.receive_some()
            if not data:
                raise EOFError("the upstream has ended")
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()


@asynccontextmanager
async def open_child(module: str, *arguments: str) -> AsyncGenerator[Child]:
    """Run a module as a program; it is killed at the end of the block."""
    command = [sys.executable, "-m", module, *arguments]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    try:
        yield Child(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + PATIENCE):
            await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                await trio.aclose_forcefully(stream)
