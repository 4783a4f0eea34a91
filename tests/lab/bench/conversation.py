"""A server process and a client of it that does as little work as possible.

The client shares the processors with the server. So nothing here parses JSON while something is timed, and many
requests go out in one write, while another task reads: a server that is not read stops reading too.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import trio

from tests.lab.bench.subjects import Subject
from tests.lab.upstream import Upstream
from tests.processes import memory, processor_time, program

Record: TypeAlias = Callable[[str, str, str, float | None], None]
"""Takes one figure: measure, case, unit, and value, None where the system does not tell."""

CHUNK = 1024 * 1024
GRACE = 3.0  # seconds for a server to end when its input has ended

INITIALIZE = (
    b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"bench","version":"1"}}}\n'
)
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


class UnfitError(Exception):
    """The subject does not do what is measured."""


def request(id: int, method: str) -> bytes:  # noqa: A002  # the field's own word
    """Return the line of a request without parameters."""
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b"}\n' % (id, method.encode())


def call(number: int, what: str = "0", more: str = "") -> bytes:
    """Return the line of a call that asks the upstream for WHAT; its id is its number."""
    query = f"bench {what} {number:08d}{more}".encode()
    return (
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"answer","arguments":{"query":"%b"}}}\n'
        % (number, query)
    )


def cancel(number: int) -> bytes:
    """Return the line that gives up a call."""
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n' % number


def unanswered(lines: Iterable[bytes], numbers: Iterable[int]) -> int:
    """Return how many calls `lines` do not answer well: with an error, with another call's answer, or not at all."""
    right: set[object] = set()
    for line in lines:
        message = json.loads(line)
        result = message.get("result") or {}
        said = "".join(part.get("text", "") for part in result.get("content", ()))
        if not result.get("isError") and f"bench {message['id']:08d}" in said:
            right.add(message["id"])
    return len(set(numbers) - right)


class Conversation:
    """The talk with one server. `heard_at` is when something last came, by `time.monotonic`."""

    def __init__(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, pid: int) -> None:
        self._receive = receive
        self._send = send
        self._cut: list[bytes] = []  # the pieces of a line whose end has not come yet
        self.numbers = count(1)  # for ids: none is used twice
        self.heard_at = 0.0
        self.pid = pid

    async def write(self, data: bytes) -> None:
        await self._send.send_all(data)

    async def lines(self) -> list[bytes]:
        """Wait for more of the server's output; return the answers that are whole with it, which may be none.

        What the server sends of its own accord is left out. Raises EOFError at the end of the output.
        """
        data = await self._receive.receive_some(CHUNK)
        self.heard_at = time.monotonic()
        if not data:
            raise EOFError("the server ended")
        *whole, rest = bytes(data).split(b"\n")
        if whole and self._cut:
            whole[0] = b"".join([*self._cut, whole[0]])
            self._cut.clear()
        if rest:
            self._cut.append(rest)
        return [line for line in whole if b'"method":' not in line[:80]]

    async def answers(self, data: bytes, wanted: int) -> list[bytes]:
        """Write requests while reading; return the answers when there are `wanted` of them."""
        heard: list[bytes] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.write, data)
            while len(heard) < wanted:
                heard += await self.lines()
        return heard

    async def answer(self, data: bytes) -> dict[str, Any]:
        """Write one request and return its answer. Raises `UnfitError` if it is an error."""
        [line] = await self.answers(data, 1)
        message: dict[str, Any] = json.loads(line)
        if "result" not in message or message["result"].get("isError"):
            raise UnfitError(f"the server answered with {line[:300].decode(errors='replace')}")
        return message

    async def ask(self, method: str) -> dict[str, Any]:
        return await self.answer(request(next(self.numbers), method))

    def new_calls(self, many: int, what: str = "0") -> tuple[list[int], bytes]:
        """Return the ids of calls, and their lines."""
        numbers = [next(self.numbers) for _ in range(many)]
        return numbers, b"".join([call(number, what) for number in numbers])

    async def calls(self, many: int, what: str = "0") -> int:
        """Make calls all at once; return how many were not answered well."""
        numbers, data = self.new_calls(many, what)
        return unanswered(await self.answers(data, many), numbers)

    def processor_time(self, before: float | None = 0.0, many: float = 1.0) -> float | None:
        """Return the seconds that the process has run since `before`, for each of `many`, where the system tells."""
        now = processor_time(self.pid)
        return None if now is None or before is None else (now - before) / many

    def memory(self) -> float | None:
        """Return the resident memory in MiB, where the system tells."""
        now = memory(self.pid)
        return None if now is None else now[0]


@asynccontextmanager
async def conversation(
    subject: Subject, upstream: Upstream, *, files: int | None = None
) -> AsyncGenerator[Conversation]:
    """Start a server and shake hands; it is killed if it outlives the block.

    `files` limits how many files it can have open. If the block fails, what the server said on stderr is told there.
    """
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as stderr:
        subject.settle(Path(home), upstream.base_url)
        command, env = subject.limited(files), subject.environment(home, upstream.base_url)
        try:
            async with program(command, grace=GRACE, stderr=stderr, env=env, cwd=home) as (process, stdin, stdout):
                talk = Conversation(stdout, stdin, process.pid)
                await talk.answer(INITIALIZE)
                await talk.write(INITIALIZED)
                yield talk
        except Exception as error:
            stderr.seek(0)
            said = stderr.read().decode(errors="replace").strip()
            error.add_note(f"stderr: {said[-500:] or 'empty'}")
            raise
