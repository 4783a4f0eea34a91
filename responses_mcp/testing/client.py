"""An MCP client for tests: over any two Trio streams, or over a server of its own on in-memory streams.

It sends what it is given, legal or not, and keeps every message it receives. It has no time limits; bound the waits.
"""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, cast

import trio
import trio.testing

from responses_mcp.protocol.framing import FramingFault, MessageReader, Payload, encode_frame, encode_line
from responses_mcp.protocol.jsonrpc import request_key
from responses_mcp.runtime.server import Server
from responses_mcp.serving import serve
from responses_mcp.settings.model import Settings
from responses_mcp.toolsets.base import Toolset
from responses_mcp.under_trio import alone, require_trio

Message = dict[str, Any]

TAKES_TASKS: Message = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
"""The `_meta` of a request whose answer may be a task."""


_MOST_BYTES = 64 * 1024 * 1024  # of one message


class NoMessage(AssertionError):
    """The server wrote something that is no message; the text shows what."""


class McpClient:
    """One side of an MCP conversation.

    `heard` holds every message received, in order; `ended` is set when the server has closed its output. `framed`
    sends Content-Length frames instead of lines; whatever comes back is read.
    """

    def __init__(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, *, framed: bool = False) -> None:
        self._receive = receive
        self._send = send
        self._encode = encode_frame if framed else encode_line
        self._sending = trio.Lock()  # Trio's streams take one sender at a time
        self._ids = count(1)
        self._news = trio.Event()
        self.heard: list[Message] = []
        self.ended = False

    async def listen(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Receive until the end of the server's output; run it in a task. Raises NoMessage."""
        reader = MessageReader(_MOST_BYTES)
        task_status.started()
        while True:
            try:
                data = await self._receive.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            items = reader.feed(bytes(data)) if data else reader.feed_eof()
            for item in items:
                self.heard.append(_message(item))
            self.ended = not data
            self._news.set()
            self._news = trio.Event()
            if self.ended:
                return

    async def send_bytes(self, data: bytes, *, chunk: int | None = None) -> None:
        """Send `data` as it is, in pieces of `chunk` bytes."""
        step = chunk or len(data) or 1
        async with self._sending:
            for start in range(0, len(data), step):
                await self._send.send_all(data[start : start + step])

    async def send(self, *messages: Message) -> None:
        """Send messages together, in one write."""
        await self.send_bytes(b"".join(self._encode(json.dumps(message).encode()) for message in messages))

    async def request(self, method: str, params: Message | None = None, *, id: str | int | None = None) -> str | int:
        """Send a request and return its id, which is made up when none is given."""
        chosen = next(self._ids) if id is None else id
        message: Message = {"jsonrpc": "2.0", "id": chosen, "method": method}
        await self.send(message if params is None else {**message, "params": params})
        return chosen

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def news(self) -> None:
        """Wait until more has been heard, or the server has ended."""
        await self._news.wait()

    async def wait_end(self) -> None:
        """Wait until the server has closed its output."""
        while not self.ended:
            await self.news()

    async def response(self, id: str | int) -> Message:
        """Wait for the response with that id (and its type) and return the whole message."""
        while True:
            for message in self.heard:
                if request_key(message.get("id")) == request_key(id) and "method" not in message:
                    return message
            if self.ended:
                raise EOFError(f"the server ended without answering {id!r}")
            await self.news()

    async def ask(self, method: str, params: Message | None = None) -> Message:
        """Send a request and wait for its response."""
        return await self.response(await self.request(method, params))

    async def initialize(self) -> Message:
        """Do the handshake of the legacy revision and return the server's answer."""
        answer = await self.ask(
            "initialize",
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "responses_mcp.testing", "version": "1"},
            },
        )
        await self.notify("notifications/initialized")
        return answer

    async def start_call(
        self, name: str, arguments: Message | None = None, *, id: str | int | None = None
    ) -> str | int:
        """Send a `tools/call` and return its id."""
        return await self.request("tools/call", {"name": name, "arguments": arguments or {}}, id=id)

    async def call(self, name: str, arguments: Message | None = None) -> Message:
        """Call a tool and return the response's whole message."""
        return await self.response(await self.start_call(name, arguments))

    async def ask_with_tasks(self, method: str, params: Message | None = None) -> Message:
        """Send a request of a client that takes tasks, in the newer revision, and wait for its response."""
        return await self.ask(method, {**(params or {}), "_meta": TAKES_TASKS})

    async def call_with_tasks(self, name: str, arguments: Message | None = None) -> Message:
        """Call a tool as a client that takes tasks does, and return the result, of the task if it became one.

        Where that ended without a result, the task itself is returned as `tasks/get` tells it.
        """
        message = await self.ask_with_tasks("tools/call", {"name": name, "arguments": arguments or {}})
        if message.get("result", {}).get("resultType") != "task":
            return message
        while message["result"]["status"] == "working":
            await trio.sleep(message["result"]["pollIntervalMs"] / 1000)
            message = await self.ask_with_tasks("tasks/get", {"taskId": message["result"]["taskId"]})
        return {**message, "result": message["result"].get("result", message["result"])}

    async def cancel(self, id: str | float, reason: str | None = None) -> None:
        """Give up a request."""
        await self.notify("notifications/cancelled", {"requestId": id} | ({"reason": reason} if reason else {}))

    async def end_input(self) -> None:
        """Close our side; the server sees the end of its input."""
        if isinstance(self._send, trio.abc.HalfCloseableStream):
            await self._send.send_eof()
        else:
            await self._send.aclose()


class ServedClient(McpClient):
    """A client of a `server` that runs in the same process, at the other end of `stream`."""

    def __init__(self, stream: trio.abc.Stream, server: Server, *, framed: bool = False) -> None:
        super().__init__(stream, stream, framed=framed)
        self.server = server


def _message(item: Payload | FramingFault) -> Message:
    if isinstance(item, FramingFault):
        raise NoMessage(item.message)
    try:
        message: Any = json.loads(item.data)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict) or "jsonrpc" not in message:
        raise NoMessage(item.data.decode("utf-8", "replace"))
    return cast(Message, message)


@asynccontextmanager
async def started_client(command: Sequence[str], **options: Any) -> AsyncGenerator[tuple[trio.Process, McpClient]]:
    """Start a server as a process and give it out, with a client that listens to it.

    `options` are those of `trio.lowlevel.open_process`. Leaving the block kills a server that still runs. Raises
    OSError for a command that cannot be started, and NoMessage in a group.
    """
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    try:
        process = await trio.lowlevel.open_process(list(command), **pipes, **options)
    except ValueError as error:  # such as a NUL in a word
        raise OSError(errno.EINVAL, str(error)) from error
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("a process opened with pipes has none")
    client = McpClient(process.stdout, process.stdin)
    try:
        async with alone() as nursery:
            nursery.start_soon(client.listen)
            yield process, client
            nursery.cancel_scope.cancel(reason="the conversation is over")
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
            if process.returncode is None:
                process.kill()
                await process.wait()
            await trio.aclose_forcefully(process.stdin)
            await trio.aclose_forcefully(process.stdout)


@asynccontextmanager
async def connected_client(
    settings: Settings, *, toolsets: Iterable[Toolset] | None = None, framed: bool = False, initialize: bool = True
) -> AsyncGenerator[ServedClient]:
    """Run a server on in-memory streams and give out a client that is connected to it.

    Leaving the block cancels both.
    """
    require_trio()
    ours, theirs = trio.testing.memory_stream_pair()
    async with trio.open_nursery() as nursery:

        async def run(*, task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED) -> None:
            await serve(theirs, theirs, settings=settings, toolsets=toolsets, task_status=task_status)

        client = ServedClient(ours, await nursery.start(run), framed=framed)
        await nursery.start(client.listen)
        if initialize:
            await client.initialize()
        yield client
        nursery.cancel_scope.cancel(reason="the test is over")
