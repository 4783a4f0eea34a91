"""A server process seen from outside: how long its answers and pings take, its memory, and what its threads do."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio

from responses_mcp.testing.client import McpClient
from tests.processes import environment, memory, processor_time, server_process

T = TypeVar("T")
Message = dict[str, Any]

WORKS = 0.0002  # seconds of processor time between two looks that count as work
QUIET = 0.15  # seconds without work after which the work is taken to be over


def percentile(values: Sequence[float], part: float) -> float:
    return sorted(values)[max(0, round(len(values) * part) - 1)]


class Watched:
    """A server and a client that takes the time of every answer."""

    def __init__(self, process: trio.Process, client: McpClient) -> None:
        self.client = client
        self.process = process
        self._sending = trio.Lock()

    async def ask(self, method: str, params: Message | None = None) -> tuple[Message, float]:
        """Return the response and the seconds from sending the request to receiving it."""
        async with self._sending:
            began = trio.current_time()
            request = await self.client.request(method, params)
        message = await self.client.response(request)
        seconds = trio.current_time() - began
        self.client.heard.remove(message)
        return message, seconds

    async def call(self, tool: str, arguments: Message) -> tuple[Message, float]:
        """Call a tool; return what it answered, and the seconds it took."""
        message, seconds = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        result = message.get("result", {})
        if "error" in message or result.get("isError"):
            raise RuntimeError(f"{tool} failed: {message.get('error') or result['content'][0]['text']}")
        payload: Message = result.get("structuredContent") or json.loads(result["content"][0]["text"])
        return payload, seconds

    async def with_pings(self, work: Callable[[], Awaitable[T]], every: float = 0.005) -> tuple[T, list[float]]:
        """Do `work` with a ping sent every few milliseconds; return its result and the seconds each ping took."""
        seconds: list[float] = []
        over = False

        async def ping() -> None:
            seconds.append((await self.ask("ping"))[1])

        async def send_pings() -> None:
            while not over:
                nursery.start_soon(ping)
                await trio.sleep(every)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_pings)
            result = await work()
            over = True
        return result, seconds

    def memory(self) -> tuple[float, float] | tuple[None, None]:
        """Return resident memory and its peak in MiB, where the system tells."""
        return memory(self.process.pid) or (None, None)

    def processor_time(self, before: float | None = 0.0) -> float | None:
        """Return the seconds that the process has run since `before`, where the system tells."""
        now = processor_time(self.process.pid)
        return None if now is None or before is None else now - before

    async def cancelled(self, tool: str, arguments: Message, after: float) -> float | None:
        """Cancel a call `after` seconds and return for how many seconds the process goes on to work.

        None if it was answered too early, or where the system does not tell.
        """
        before = self.processor_time()
        async with self._sending:
            call = await self.client.start_call(tool, arguments)
        await trio.sleep(after)
        if self._answered(call) or before is None:
            return None
        async with self._sending:
            await self.client.cancel(call)
        began = busy = trio.current_time()
        while (now := trio.current_time()) - busy < QUIET:
            if (self.processor_time(before) or 0) > WORKS:
                busy = now
            before = self.processor_time()
            await trio.sleep(0.002)
        return None if self._answered(call) else busy - began

    def _answered(self, call: str | int) -> bool:
        return any(message.get("id") == call for message in self.client.heard)


@asynccontextmanager
async def watched_server(**env: str) -> AsyncGenerator[Watched]:
    """Start a server and shake hands; it has no key to ask anybody with, and is killed if it outlives the block."""
    with tempfile.TemporaryDirectory() as home:
        async with server_process(environment(Path(home), **env)) as server:
            yield Watched(server.process, server.client)
