"""A client that asks and does not read: bounded memory, calls that wait in order, cancels that work, nothing lost."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.asking import Asker
from responses_mcp.protocol.framing import MessageReader, Payload
from responses_mcp.protocol.jsonrpc import RequestId
from responses_mcp.runtime.server import Server
from responses_mcp.serving import serve
from responses_mcp.settings.model import OpenAISettings, ServerSettings, Settings
from responses_mcp.testing import Hang, Json, RecordedRequest, bodies, open_fake_api
from responses_mcp.testing.client import McpClient
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, Toolset, ToolSuccess
from tests.hostile.attack import resident_mib
from tests.one_tool import OneTool
from tests.processes import COMMAND, environment, program
from tests.responses_api.stub import KEY, ok, refused, stub_api

WAIT = 60
LIMIT = 8 << 20
SIZE = 1_200_000
CALLS = 600
REQUESTS = 20_000


def line(id_: object, method: str, params: object = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode() + b"\n"


def cancel_line(id_: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id_}}
    return json.dumps(message).encode() + b"\n"


async def read_ids(stream: trio.abc.ReceiveStream, count: int, piece: int, begun: bytes = b"") -> list[object]:
    reader = MessageReader()
    reader.feed(begun)
    ids: list[object] = []
    while len(ids) < count:
        data = await stream.receive_some(piece)
        assert data, "the server ended early"
        ids += [json.loads(item.data).get("id") for item in reader.feed(bytes(data)) if isinstance(item, Payload)]
    return ids


class Library(OneTool):
    """A toolset of one tool, `lend`, whose answers are large."""

    def __init__(self) -> None:
        super().__init__(self.lend, "lend", description="x" * 5000)
        self.fetched: list[RequestId] = []
        self.cancelled: list[RequestId] = []
        self.fetch: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint

    async def lend(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        size = arguments.get("size", SIZE)
        try:
            await self.fetch()
            self.fetched.append(context.request_id)
        except trio.Cancelled:
            self.cancelled.append(context.request_id)
            raise
        return ToolSuccess("x" * size)


class UnreadClient(McpClient):
    """A client that reads nothing before `read` is called."""

    def __init__(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, nursery: trio.Nursery) -> None:
        super().__init__(receive, send)
        self._nursery = nursery
        self.server: Server

    async def read(self) -> None:
        await self._nursery.start(self.listen)

    async def settled(self) -> None:
        await trio.testing.wait_all_tasks_blocked()

    @property
    def answered(self) -> list[object]:
        return [message["id"] for message in self.heard if "id" in message]


class Slowly(trio.abc.ReceiveStream):
    """A stream that is read only when the server has done all it can meanwhile."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        await trio.testing.wait_all_tasks_blocked()
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


@asynccontextmanager
async def unread(toolset: Toolset, **server: Any) -> AsyncGenerator[UnreadClient]:
    to_server, server_in = trio.testing.memory_stream_one_way_pair()
    server_out, from_server = trio.testing.lockstep_stream_one_way_pair()
    settings = Settings(server=ServerSettings(**server))

    async def run(*, task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED) -> None:
        await serve(server_in, server_out, settings=settings, toolsets=[toolset], task_status=task_status)

    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            client = UnreadClient(Slowly(from_server), to_server, nursery)
            client.server = await nursery.start(run)
            await client.request("initialize", id="hello")
            yield client
            nursery.cancel_scope.cancel()


async def test_a_cancel_works_however_much_tools_have_answered() -> None:
    library = Library()
    async with unread(library, max_unsent_bytes=LIMIT) as client:
        gate = trio.Event()
        library.fetch = gate.wait
        heedless = [await client.start_call("lend") for _ in range(30)]
        await client.settled()
        gate.set()
        await client.settled()
        assert client.server.session.unsent_bytes > 4 * LIMIT
        # Another does not even begin; to be read and to be given up, it needs no room.
        late = await client.start_call("lend")
        await client.cancel(heedless[-1])
        await client.cancel(late)
        await client.settled()
        assert client.server.in_flight == 29
        assert late not in library.fetched
        await client.read()
        await client.ask("ping")
        assert sorted(map(str, client.answered[:-1])) == sorted(map(str, ["hello", *heedless[:-1]]))


async def test_pings_are_read_again_before_all_calls_have_had_their_answers() -> None:
    library = Library()
    async with unread(library, max_unsent_bytes=1_000_000) as client:
        calls = []
        for _ in range(300):
            calls.append(await client.start_call("lend", {"size": 20_000}))
            await client.settled()
        for _ in range(100):
            await client.request("tools/list")  # more than are read while the outbox is full
            await client.settled()
        assert client.server.session.unsent_bytes < 1_300_000
        ping = await client.request("ping", id="ping")
        await client.read()
        await client.response(ping)
        assert len(library.fetched) < 200
        await client.response(calls[-1])


@pytest.mark.clock("virtual")
async def test_a_retry_waits_for_room() -> None:
    api, stub = stub_api(refused(429), ok())
    answers = Asker(Settings(openai=OpenAISettings(api_key=KEY)), api=api)
    async with unread(AnswerToolset(lambda: answers), max_unsent_bytes=10_000) as client:
        repeated = await client.start_call("answer", {"query": "?"})
        await client.settled()
        for _ in range(5):
            await client.request("tools/list")
        await trio.sleep(30)
        assert len(stub.sent) == 1
        await client.read()
        await client.response(repeated)
        assert len(stub.sent) == 2


@pytest.mark.rule("spec 2.1")
async def test_a_process_asks_no_more_while_its_client_does_not_read_and_loses_nothing(tmp_path: Path) -> None:
    def answer(request: RecordedRequest) -> Json:
        first = len(api.requests) == 1
        return Json(bodies.answer("z" * (500_000 if first else 20_000)))

    with trio.fail_after(WAIT):
        limits = {"MCP_MAX_UNSENT_BYTES": "500000", "MCP_MAX_RESULT_CHARS": "500000"}
        async with (
            open_fake_api(answer) as api,
            program([*COMMAND, "--stdio"], env=environment(tmp_path, api.base_url, **limits)) as (_, stdin, stdout),
        ):

            def call(id_: int) -> bytes:
                return line(id_, "tools/call", {"name": "answer", "arguments": {"query": "x"}})

            await stdin.send_all(line(0, "initialize") + call(1))
            assert await read_ids(stdout, 1, 1) == [0]
            begun = await stdout.receive_some(1)  # of the answer, so all of it has been queued
            for id_ in range(2, CALLS + 2):
                await stdin.send_all(call(id_))
            await stdin.send_all(line("end", "ping"))
            assert len(api.requests) == 1
            rest = await read_ids(stdout, CALLS + 2, 65536, bytes(begun))
            assert rest[0] == 1
            assert sorted(rest[1:], key=str) == sorted(["end", *range(2, CALLS + 2)], key=str)
            assert len(api.requests) == 1 + CALLS


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
async def test_a_peer_that_sends_and_does_not_read_costs_bounded_memory_and_loses_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path, MCP_MAX_UNSENT_BYTES="1000000")
    with trio.fail_after(WAIT):
        async with program([*COMMAND, "--stdio"], env=env) as (process, stdin, stdout):
            await stdin.send_all(line(0, "initialize"))
            sent = trio.Event()

            async def flood() -> None:
                for first in range(1, REQUESTS + 1, 100):
                    await stdin.send_all(b"".join(line(id_, "tools/list") for id_ in range(first, first + 100)))
                sent.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(flood)
                # The flood is over 40 MB of answers, so it must come to a stop while nobody reads.
                with trio.move_on_after(2):
                    await sent.wait()
                assert not sent.is_set()
                stalled = resident_mib(process.pid)
                ids = await read_ids(stdout, REQUESTS + 1, 65536)
            assert ids == list(range(REQUESTS + 1))
            assert stalled < 45
            assert resident_mib(process.pid) < 45


async def test_a_flood_of_calls_that_are_cancelled_at_once_leaves_nothing_behind(tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api() as api,
            program([*COMMAND, "--stdio"], env=environment(tmp_path, api.base_url)) as (_, stdin, stdout),
        ):
            api.default = Hang()
            await stdin.send_all(line(0, "initialize"))
            for number in range(3000):
                call = line(number + 1, "tools/call", {"name": "answer", "arguments": {"query": "x"}})
                await stdin.send_all(call + cancel_line(number + 1))
            await stdin.send_all(line("end", "ping"))
            assert await read_ids(stdout, 2, 65536) == [0, "end"]
            while api.open_connections:
                await api.wait_hang_ups(len(api.requests))
                await trio.lowlevel.checkpoint()
