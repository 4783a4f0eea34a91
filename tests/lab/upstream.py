"""An upstream in a process of its own, so that its work is not the server's, and the lines that are exchanged with it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import trio

from tests.processes import ROOT, Program, program

PATIENCE = 30.0  # seconds; a bound for a stuck machine, not an expectation


def tell(*what: object) -> None:
    """Write a line, in the process of an upstream."""
    print(json.dumps(what), flush=True)


class Upstream:
    """An upstream that says where it listens, and then answers commands, or tells of its own accord what it sees."""

    def __init__(self, running: Program) -> None:
        self._running = running
        self._heard = b""
        self._serials = count(1)
        self.place: list[Any] = []  # where it listens

    @property
    def base_url(self) -> str:
        return str(self.place[0])

    async def line(self) -> Any:
        """Wait for what it tells next. Raises EOFError when it has ended."""
        while b"\n" not in self._heard:
            data = await self._running.stdout.receive_some()
            if not data:
                raise EOFError("the upstream has ended")
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    async def ask(self, *words: object) -> Any:
        """Give a command and return its answer."""
        serial = next(self._serials)
        await self._running.stdin.send_all(json.dumps([serial, *words]).encode() + b"\n")
        with trio.fail_after(PATIENCE):
            while True:
                answered, answer = await self.line()
                if answered == serial:  # whoever gave up waiting may have left an answer behind
                    return answer


@asynccontextmanager
async def open_upstream(module: str, *arguments: str) -> AsyncGenerator[Upstream]:
    """Run an upstream; it is killed at the end of the block."""
    async with program([sys.executable, "-m", module, *arguments], cwd=ROOT) as running:
        upstream = Upstream(running)
        with trio.fail_after(PATIENCE):
            upstream.place = await upstream.line()
        yield upstream
