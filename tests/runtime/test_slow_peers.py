"""A peer that does not read its output, or a byte at a time: bounded memory, honoured cancels, nothing lost."""

import json
import sys
from pathlib import Path

import pytest
import trio

from responses_mcp.protocol.framing import MessageReader, Payload
from responses_mcp.testing import Hang, open_fake_api
from tests.hostile.attack import resident_mib
from tests.processes import COMMAND, environment, program

WAIT = 60
LIMIT = 1_000_000
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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
async def test_a_peer_that_sends_and_does_not_read_costs_bounded_memory_and_loses_nothing(tmp_path: Path) -> None:
    env = environment(tmp_path, MCP_MAX_UNSENT_BYTES=str(LIMIT))
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


async def test_a_cancel_is_honoured_while_the_output_is_stuck(tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api() as api,
            program([*COMMAND, "--stdio"], env=environment(tmp_path, api.base_url)) as (_, stdin, stdout),
        ):
            api.default = Hang()
            call = line("call", "tools/call", {"name": "answer", "arguments": {"query": "x"}})
            await stdin.send_all(line(0, "initialize") + call)
            await api.wait_requests(1)
            lists = b"".join(line(id_, "tools/list") for id_ in range(1, 101))
            await stdin.send_all(lists + cancel_line("call"))
            await api.wait_hang_ups(1)
            assert await read_ids(stdout, 101, 4096) == list(range(101))


async def test_a_peer_that_reads_a_byte_at_a_time_gets_everything(tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        async with program([*COMMAND, "--stdio"], env=environment(tmp_path)) as (_, stdin, stdout):
            await stdin.send_all(line(0, "initialize") + b"".join(line(id_, "tools/list") for id_ in range(1, 9)))
            assert await read_ids(stdout, 9, 1) == list(range(9))


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
