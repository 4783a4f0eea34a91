"""The prologue: first answers without Trio, and a hand-over at any byte that loses nothing."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.configured import configured_conversation
from responses_mcp.protocol.exchange import CallCancelled, CallStarted
from responses_mcp.protocol.framing import encode_frame
from responses_mcp.runtime import prologue as prologue_module
from responses_mcp.runtime.conversation import Conversation
from responses_mcp.runtime.prologue import prologue, prologue_on_descriptors
from responses_mcp.runtime.server import serve_conversation
from responses_mcp.settings.model import ServerSettings, Settings
from tests.hostile.corpus import ENVELOPE, rpc
from tests.processes import COMMAND, WAIT, environment, posix
from tests.runtime.test_server import Bench

pytestmark = pytest.mark.clock("virtual")

HELLO = rpc("hello", "initialize", {"protocolVersion": "2025-06-18"})


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def call(id_: object = 1, **arguments: object) -> dict:
    return rpc(id_, "tools/call", {"name": "work", "arguments": arguments})


def begin(description: str = "") -> Conversation:
    return configured_conversation(Settings(), [Bench(description)])


def untouched(conversation: Conversation) -> bool:
    return not (conversation.events or conversation.unwritten or conversation.input_ended)


@dataclass
class Wire:
    """Pieces to read, then silence; and what was written, of which `room` bytes fit."""

    pieces: list[bytes]
    room: int | None = None
    written: bytearray = field(default_factory=bytearray)

    def read(self) -> bytes | None:
        return self.pieces.pop(0) if self.pieces else None

    def write(self, data: bytes) -> int:
        fits = len(data) if self.room is None else min(len(data), self.room - len(self.written))
        self.written += data[:fits]
        return fits

    def heard(self) -> list[dict]:
        return [json.loads(line) for line in self.written.splitlines()]


def play(conversation: Conversation, *pieces: bytes, room: int | None = None) -> Wire:
    wire = Wire(list(pieces), room)
    prologue(conversation, wire.read, wire.write)
    return wire


def test_what_needs_no_tool_is_answered_until_the_client_pauses() -> None:
    conversation = begin()
    asked = [HELLO, rpc("p"), rpc("l", "tools/list"), rpc("d", "server/discover", {"_meta": ENVELOPE})]
    heard = play(conversation, *(lines(each) for each in asked)).heard()
    assert [message["id"] for message in heard] == ["hello", "p", "l", "d"]
    assert [tool["name"] for tool in heard[2]["result"]["tools"]] == ["work"]
    assert untouched(conversation)
    assert conversation.session.take_output() == b""


def test_a_call_ends_the_prologue_and_is_handed_over_with_all_that_came_with_it() -> None:
    conversation = begin()
    together = lines(HELLO, call(1), rpc("p"), call(2), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})  # fmt: skip
    wire = play(conversation, together + b'{"jsonrpc"', lines(rpc("later")))
    assert [type(event) for event in conversation.events] == [CallStarted, CallStarted, CallCancelled]
    assert [message["id"] for message in wire.heard()] == ["hello", "p"]
    assert wire.pieces, "nothing more was read"
    conversation.receive(b':"2.0","id":"cut","method":"ping"}\n')
    assert json.loads(conversation.session.take_output())["id"] == "cut"


@pytest.mark.parametrize("room", [0, 1, 50])
def test_what_cannot_be_written_at_once_is_handed_over(room: int) -> None:
    conversation = begin()
    wire = play(conversation, lines(HELLO), lines(rpc("p")), room=room)
    assert len(wire.pieces) == 1, "nothing more is read"
    whole = json.loads(bytes(wire.written) + conversation.unwritten)
    assert whole["id"] == "hello"
    assert conversation.session.unsent_bytes > 0
    assert conversation.session.take_output() == b""


def direct(conversation: Conversation, pieces: Iterable[bytes]) -> tuple[list[object], bytes]:
    events: list[object] = []
    output = b""
    for piece in pieces:
        conversation.receive(piece)
        events += [(type(event).__name__, event.call.id) for event in conversation.events]
        while data := conversation.session.take_output():
            output += data
            conversation.session.output_written()
    return events, output


@given(st.data())
def test_a_hand_over_at_any_byte_loses_nothing(data: st.DataObject) -> None:
    stream = lines(HELLO, rpc("p"), call("c"), rpc("l", "tools/list"), call("c")) + encode_frame(lines(rpc("日本")))
    cuts = sorted({0, len(stream), *data.draw(st.lists(st.integers(0, len(stream)), max_size=6))})
    pieces = [stream[a:b] for a, b in pairwise(cuts)]
    share = data.draw(st.integers(0, len(pieces)))
    conversation = begin()
    wire = play(conversation, *pieces[:share])
    events = [(type(event).__name__, event.call.id) for event in conversation.events]
    rest = direct(conversation, [*wire.pieces, *pieces[share:]])
    assert (events + rest[0], bytes(wire.written) + rest[1]) == direct(begin(), pieces)


# The server goes on


async def go_on(conversation: Conversation, *said: bytes, **server: Any) -> bytes:
    """Serve what a prologue left to a client that says this and closes its end; return what the server wrote."""
    to_server, theirs_in = trio.testing.memory_stream_one_way_pair()
    theirs_out, from_server = trio.testing.memory_stream_one_way_pair()
    await to_server.send_all(b"".join(said))
    await to_server.aclose()
    with trio.fail_after(30):
        settings = replace(ServerSettings(), **server)
        await serve_conversation(theirs_in, theirs_out, conversation, settings=settings)
        output = b""
        while data := await from_server.receive_some():
            output += data
        return output


def ids(output: bytes) -> list[object]:
    return [json.loads(line)["id"] for line in output.splitlines()]


@pytest.mark.parametrize("server", [{}, {"max_unsent_bytes": 1}], ids=["as it is", "and counts as unsent"])
async def test_the_rest_of_an_answer_is_written_first(server: dict) -> None:
    conversation = begin()
    wire = play(conversation, lines(HELLO), room=20)
    output = bytes(wire.written) + await go_on(conversation, lines(rpc("next")), **server)
    assert ids(output) == ["hello", "next"]


async def test_calls_that_were_handed_over_run() -> None:
    conversation = begin()
    play(conversation, lines(HELLO, call(1, sleep=2), call(2, sleep=1)))
    assert ids(await go_on(conversation)) == [2, 1]


async def test_calls_run_though_the_input_had_ended_before() -> None:
    conversation = begin()
    play(conversation, lines(HELLO) + lines(call(1))[:-1], b"")
    assert conversation.input_ended
    assert ids(await go_on(conversation, lines(rpc("never read")))) == [1]


async def test_a_cancel_that_was_handed_over_with_its_call_stops_it() -> None:
    conversation = begin()
    give_up = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    play(conversation, lines(HELLO, call(1, hang=True), give_up, call(2)))
    assert ids(await go_on(conversation)) == [2]
    [bench] = conversation.toolsets
    assert isinstance(bench, Bench)
    assert 2 in bench.started
    assert bench.started == [2] or bench.cancelled == [1]


# Descriptors


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Give the ends of two pipes: where the server reads, the client writes, the client reads and the server writes."""
    ends = (*os.pipe(), *os.pipe())
    yield ends
    for end in ends:
        with suppress(OSError):  # a test closed it
            os.close(end)


@posix
def test_a_full_pipe_holds_nothing_up_and_stays_as_it_was_set(pipes: tuple[int, int, int, int]) -> None:
    wire_in, to_server, _, wire_out = pipes
    os.set_blocking(wire_out, False)
    with suppress(BlockingIOError):
        while True:
            os.write(wire_out, b"x" * 65536)
    os.set_blocking(wire_out, True)
    os.write(to_server, lines(HELLO))
    conversation = begin()
    prologue_on_descriptors(conversation, wire_in, wire_out)
    assert json.loads(conversation.unwritten)["id"] == "hello"
    assert os.get_blocking(wire_out), "others may share it"


@posix
def test_a_list_longer_than_a_pipe_takes_at_once_is_written_whole(pipes: tuple[int, int, int, int]) -> None:
    wire_in, to_server, from_server, wire_out = pipes
    conversation = begin("x" * 30_000)
    os.write(to_server, lines(HELLO, rpc("l", "tools/list")))
    prologue_on_descriptors(conversation, wire_in, wire_out)
    assert untouched(conversation)
    assert ids(os.read(from_server, 65536)) == ["hello", "l"]


@posix
def test_a_client_that_never_pauses_is_left_to_the_server_in_the_end(
    pipes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prologue_module, "LONGEST", 0)
    wire_in, to_server, _, wire_out = pipes
    os.write(to_server, lines(HELLO))
    prologue_on_descriptors(begin(), wire_in, wire_out)
    assert os.read(wire_in, 1000) == lines(HELLO), "it has not been read"


@posix
def test_a_client_that_is_gone_or_silent_is_left_to_the_server(pipes: tuple[int, int, int, int]) -> None:
    wire_in, to_server, from_server, wire_out = pipes
    os.close(from_server)
    silent = begin()
    prologue_on_descriptors(silent, wire_in, wire_out)
    assert untouched(silent)
    os.write(to_server, lines(HELLO))
    gone = begin()
    prologue_on_descriptors(gone, wire_in, wire_out)
    assert json.loads(gone.unwritten)["id"] == "hello"


@pytest.mark.clock("real")
@pytest.mark.rule("P6")
@posix
async def test_handshake_list_and_ping_are_answered_before_trio_is_imported(tmp_path: Path) -> None:
    # Here it never can be, so whatever is answered was answered without it.
    (tmp_path / "trio.py").write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    env = environment(tmp_path)
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    in_r, in_w = os.pipe()
    os.write(in_w, lines(HELLO, rpc("l", "tools/list"), rpc("p")))  # now, for the prologue waits 200 ms
    process = await trio.lowlevel.open_process([*COMMAND, "--stdio"], stdin=in_r, stdout=-1, env=env)
    os.close(in_r)
    assert process.stdout
    async with process.stdout:
        try:
            heard = b""
            with trio.fail_after(WAIT):
                while heard.count(b"\n") < 3:
                    heard += await process.stdout.receive_some()
            assert ids(heard) == ["hello", "l", "p"]
            # A signal that comes in the middle of the import ends the process quietly.
            process.terminate()
            with trio.fail_after(WAIT):
                assert await process.wait() == 0
        finally:
            process.kill()
            os.close(in_w)
