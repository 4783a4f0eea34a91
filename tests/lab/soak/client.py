"""The server as a process, and the client at its pipes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.frames import Frames
from tests.lab.soak.ledger import Ledger
from tests.lab.soak.library import CORPUS
from tests.lab.soak.mix import MAX_MESSAGE
from tests.lab.soak.plays import MOST_REQUESTS, TIMEOUT, TRY
from tests.processes import COMMAND, Program, program
from tests.processes import environment as bare_environment

WAIT = 30.0  # seconds; a bound for what should take none
PIPE = 64 * 1024
MAX_UNSENT = 256 * 1024  # bytes of output after which the server reads no more, set for the server
STDERR_KEPT = 4000


class Peer:
    """The server's process and the pipes to it. What is heard goes into the ledger.

    `pause` is how long the client waits before each read, in seconds, and `bite` how many bytes it reads then. `stall`
    is a wait before one read.
    """

    def __init__(self, running: Program, ledger: Ledger) -> None:
        self.process, self.stdin, self.stdout = running
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
        while True:
            if seconds := self.pause + self.stall:
                self.stall = 0.0
                await trio.sleep(seconds)
            data = await self.stdout.receive_some(self.bite)
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
        with trio.fail_after(WAIT):
            await self.stdin.send_all(data)

    async def news(self, until: float) -> None:
        """Wait until something was heard, or for that time."""
        self._news = trio.Event()
        with trio.move_on_at(until):
            await self._news.wait()


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
async def open_server(home: str, base_url: str, ledger: Ledger) -> AsyncGenerator[Peer]:
    """Start the server and listen to it; it is killed if it outlives the block."""
    options = {"stderr": subprocess.PIPE, "env": environment(home, base_url), "cwd": home}
    async with program([*COMMAND, "--stdio"], grace=1, **options) as running, trio.open_nursery() as nursery:
        peer = Peer(running, ledger)
        nursery.start_soon(peer.listen)
        nursery.start_soon(peer.listen_to_stderr)
        yield peer
        nursery.cancel_scope.cancel()
