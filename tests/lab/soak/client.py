"""The server as a process, the client at its pipes, and the upstream behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.frames import Frames
from tests.lab.child import Child, open_child
from tests.lab.soak.ledger import Ledger
from tests.lab.soak.library import CORPUS
from tests.lab.soak.mix import MAX_MESSAGE
from tests.lab.soak.plays import MOST_REQUESTS, TIMEOUT, TRY
from tests.processes import environment as bare_environment

WAIT = 30.0  # seconds; a bound for what should take none
PIPE = 64 * 1024
MAX_UNSENT = 256 * 1024  # bytes of output after which the server reads no more, set for the server
STDERR_KEPT = 4000


class Upstream:
    """The process of `tests.lab.soak.upstream`."""

    def __init__(self, child: Child, base_url: str) -> None:
        self._child = child
        self.base_url = base_url

    async def figures(self, *, forget: bool = False) -> dict[str, Any]:
        """Return what it has seen so far; `forget` the calls, when they are over."""
        await self._child.write("forget" if forget else "figures")
        with trio.fail_after(WAIT):
            found: dict[str, Any] = json.loads(await self._child.line())
        return found


class Peer:
    """The server's process and the pipes to it. What is heard goes into the ledger.

    `pause` is how long the client waits before each read, in seconds, and `bite` how many bytes it reads then. `stall`
    is a wait before one read.
    """

    def __init__(self, process: trio.Process, ledger: Ledger) -> None:
        self.process = process
        self.ledger = ledger
        self.pause = 0.0
        self.bite = PIPE
        self.stall = 0.0
        self.stderr = b""
        self.frames = Frames()
        self.ended = trio.Event()
        self._news = trio.Event()

    async def listen(self) -> None:
        """Hear what the server says until it ends; run it in a task."""
        assert self.process.stdout is not None
        while True:
            if seconds := self.pause + self.stall:
                self.stall = 0.0
                await trio.sleep(seconds)
            data = await self.process.stdout.receive_some(self.bite)
            now = trio.current_time()
            try:
                for body in self.frames.feed(data):
                    self.ledger.hears(json.loads(body), now)
            except ValueError as error:
                self.ledger.wrong(f"it is no message: {error}")
                data = b""
            self._news.set()
            if not data:
                break
        if self.frames.rest:
            self.ledger.wrong(f"the output ended amid a message: {self.frames.rest[:100]!r}")
        self.ended.set()

    async def listen_to_stderr(self) -> None:
        """Collect what should not be there; run it in a task."""
        assert self.process.stderr is not None
        async for data in self.process.stderr:
            self.stderr = (self.stderr + data)[:STDERR_KEPT]

    async def send(self, data: bytes) -> None:
        """Write; the server may be slow to read, but not for ever."""
        assert self.process.stdin is not None
        with trio.fail_after(WAIT):
            await self.process.stdin.send_all(data)

    async def news(self, until: float) -> None:
        """Wait until something was heard, or for that time."""
        self._news = trio.Event()
        with trio.move_on_at(until):
            await self._news.wait()

    async def end_input(self) -> None:
        """Close the server's stdin."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()


def environment(home: str, base_url: str) -> dict[str, str]:
    """Return the server's environment: short times, low limits, warnings shown."""
    return bare_environment(
        Path(home),
        base_url,
        PYTHONWARNINGS="default",  # to be seen, each once, and not to change what happens
        PYTHONFAULTHANDLER="1",
        NO_PROXY="127.0.0.1",
        OPENAI_API_TIMEOUT=str(round(TIMEOUT * 1000)),
        OPENAI_MAX_RETRIES=str(MOST_REQUESTS - 1),
        SEARCH_TIMEOUT_MS=str(round(TRY * 1000)),
        SEARCH_MAX_ATTEMPTS=str(MOST_REQUESTS),
        MCP_MAX_MESSAGE_BYTES=str(MAX_MESSAGE),
        MCP_MAX_UNSENT_BYTES=str(MAX_UNSENT),
        MCP_TOOLSETS="answer,manuals,search",
        MANUALS_ROOT=str(CORPUS),
        # Large blocks go back to the system as soon as they are free: a heap with holes looks like a small leak.
        MALLOC_MMAP_THRESHOLD_="131072",
        MALLOC_TRIM_THRESHOLD_="131072",
    )


@asynccontextmanager
async def open_upstream() -> AsyncGenerator[Upstream]:
    """Start the upstream; it is killed at the end of the block."""
    async with open_child("tests.lab.soak.upstream") as child:
        with trio.fail_after(WAIT):
            upstream = Upstream(child, await child.line())
        yield upstream


@asynccontextmanager
async def open_server(home: str, base_url: str, ledger: Ledger) -> AsyncGenerator[Peer]:
    """Start the server and listen to it; it is killed if it outlives the block."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "responses_mcp", "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, base_url),
        cwd=home,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    peer = Peer(process, ledger)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.listen)
            nursery.start_soon(peer.listen_to_stderr)
            yield peer
            nursery.cancel_scope.cancel()
    finally:
        await trio.aclose_forcefully(process.stdin)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            await process.wait()
        if process.returncode is None:
            process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + WAIT):
            await process.wait()
        for stream in (process.stdout, process.stderr):
            await trio.aclose_forcefully(stream)
