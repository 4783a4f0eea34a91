"""Replies that are made to hold up the server: whatever comes, other tasks get their turns, and little is kept.

Nothing here takes the time. A task that does nothing but give up its turn counts how often it gets one.
"""

import gzip
import json
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
import trio

from responses_mcp.answers import Answers
from responses_mcp.errors import RateLimited, RequestRefused, UnusableReply, UpstreamError
from responses_mcp.responses_api import json_slices
from responses_mcp.responses_api.client import CHUNKS_AT_ONCE, PIECE
from responses_mcp.responses_api.connections import Reply
from responses_mcp.responses_api.json_slices import RUN
from responses_mcp.responses_api.reading import MOST_ITEMS, MOST_SOURCES
from responses_mcp.responses_api.sse import EventStream
from responses_mcp.responses_api.streaming import ResponseStream
from responses_mcp.settings.model import Settings
from responses_mcp.testing import Garbage, Raw, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.network import ask, bare_environment, connections, gone
from tests.responses_api.stub import stub_api

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")
BODY = {"model": "gpt-5.2", "input": "hello"}
MANY = 100_000


class Turns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0

    async def take(self) -> None:
        while True:
            await trio.lowlevel.checkpoint()
            self.count += 1


@asynccontextmanager
async def turns() -> AsyncGenerator[Turns]:
    counted = Turns()
    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(counted.take)
            yield counted
            nursery.cancel_scope.cancel()


def chunked(data: bytes, size: int, head: bytes = b"") -> Garbage:
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return Garbage(b"HTTP/1.1 200 OK\r\n" + head + b"Transfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")


# HTTP


async def test_the_head_of_a_reply_is_gone_through_once_however_many_headers_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_up = 0
    look_up = httpx.Headers.__getitem__

    def counted(self: httpx.Headers, key: str) -> str:
        nonlocal looked_up
        looked_up += 1
        return look_up(self, key)

    monkeypatch.setattr(httpx.Headers, "__getitem__", counted)
    head = b"".join(b"X-%d: %d\r\n" % (number, number) for number in range(1_000))
    with trio.fail_after(WAIT):
        async with open_fake_api(chunked(b"{}", 2, head)) as fake, connections(fake) as over:
            reply = await ask(over, fake)
    assert reply.headers["x-999"] == "999"
    assert looked_up < 20, "each look-up of httpx goes through all headers"


async def test_chunks_of_a_byte_each_hold_nobody_up_and_are_kept_in_large_pieces() -> None:
    async with turns() as others, open_fake_api(chunked(b" " * MANY + b"{}", 1)) as fake, connections(fake) as over:
        before = others.count
        reply = await ask(over, fake)
        assert others.count - before > MANY // CHUNKS_AT_ONCE
    assert [len(piece) for piece in reply.pieces] == [PIECE, MANY + 2 - PIECE]


@pytest.mark.parametrize("after", [10, 30, 100, 300])
async def test_a_cancel_amid_small_chunks_of_one_read_closes_the_socket(after: int) -> None:
    async with open_fake_api(chunked(b" " * MANY, 1)) as fake, connections(fake) as over:
        with trio.fail_after(WAIT), trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, over, fake)
                await fake.wait_requests(1)
                for _ in range(after):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        with trio.fail_after(WAIT):
            await gone(fake)
            assert (await ask(over, fake)).status == 200


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
async def test_a_reply_that_says_it_is_not_compressed_is_read_as_it_is(coding: str) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Raw(b"{}", headers={"content-encoding": coding})) as fake,
            connections(fake) as over,
        ):
            assert (await ask(over, fake)).body == b"{}"


@pytest.mark.parametrize(("status", "again"), [(429, True), (503, True), (400, False), (200, False)])
async def test_an_error_in_an_unknown_compression_is_asked_again_when_its_status_may_pass(
    status: int, again: bool
) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Raw(b"?", status, {"content-encoding": "br"})) as fake,
            connections(fake) as over,
        ):
            with pytest.raises(UnusableReply) as caught:
                await ask(over, fake)
    assert caught.value.retryable is again


# Event streams under another name

ANSWER = bodies.unsearched()
DONE = b'data: {"type": "response.completed", "response": %s}\n\n' % json.dumps(ANSWER).encode()


async def test_an_event_stream_under_another_name_holds_nobody_up() -> None:
    api, _ = stub_api(Reply(200, {}, [b"data: 1\n\n", *[b":\n" * 500] * 1_000, DONE]))
    async with turns() as others:
        await api.create(BODY)
        assert others.count > 1_000


async def test_what_follows_the_last_event_of_such_a_stream_is_not_looked_at() -> None:
    late = b'data: {"type": "error", "error": {"message": "late"}}\n\n'
    api, _ = stub_api(Reply(200, {}, [DONE, late]))
    assert await api.create(BODY) == ANSWER


@pytest.mark.parametrize("size", [1, 3, 10_000])
async def test_such_a_stream_may_begin_with_a_byte_order_mark_and_come_in_pieces_of_any_size(size: int) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(chunked(b"\xef\xbb\xbf" + DONE, size)) as fake, connections(fake) as over:
            reply = await ask(over, fake)
    api, _ = stub_api(reply)
    assert await api.create(BODY) == ANSWER


# Long replies that come to nothing

PAD = "[" + ",".join(["[]"] * MANY) + "]"
USELESS = {
    "a failed response": f'{{"status": "failed", "pad": {PAD}}}',
    "no text": f'{{"status": "completed", "output": [], "pad": {PAD}}}',
    "an array": PAD,
    "broken": f'{{"output": [{{"pad": {PAD}, "more": [1, 2}}',
    "broken in the middle": f'{{"output": [{PAD}, {{"pad": {PAD}, !',
}


@pytest.mark.parametrize("text", USELESS.values(), ids=USELESS)
async def test_a_long_reply_that_is_no_answer_is_let_go_of_in_slices(text: str) -> None:
    api, _ = stub_api(Reply(200, {}, [text.encode()]))
    answers = Answers(Settings(), api=api)
    async with turns() as others:
        with pytest.raises(UpstreamError):
            await answers.answer("Why?")
        # Half as many are needed to read it, and for what is within the arrays there is nothing to do.
        assert others.count > 1.5 * text.count("[]") // RUN


async def test_a_long_event_that_nobody_wants_is_let_go_of_in_slices() -> None:
    event = b'data: {"type": "response.new", "pad": %s}\n\n' % PAD.encode()
    api, _ = stub_api(Reply(200, {}, [event, DONE]))
    async with turns() as others:
        assert await api.create(BODY) == ANSWER
        assert others.count > 1.5 * MANY // RUN


async def test_what_is_read_is_let_go_of_whether_reading_fails_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: list[object] = []

    async def let_go(value: object) -> None:
        await trio.lowlevel.checkpoint()
        gone.append(value)

    monkeypatch.setattr(json_slices, "let_go", let_go)
    assert await json_slices.read_and_let_go("value", len) == 5
    with pytest.raises(TypeError):
        await json_slices.read_and_let_go(7, len)  # type: ignore[arg-type]
    assert gone == ["value", 7]


# What is kept of a stream


def test_an_event_of_a_million_lines_is_not_kept_line_by_line() -> None:
    data = b"data:12\n" * 200_000 + b"\n"
    stream = EventStream()
    tracemalloc.start()
    try:
        events = [event for at in range(0, len(data), PIECE) for event in stream.feed(data[at : at + PIECE])]
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert events == [b"\n".join([b"12"] * 200_000)]
    assert most < 3 * len(data)


def test_of_items_parts_and_annotations_without_end_as_many_are_kept_as_are_looked_at() -> None:
    stream = ResponseStream()
    for number in range(MOST_ITEMS + 10):
        place = {"output_index": number, "content_index": number}
        stream.take({"type": "response.output_item.done", "item": {"n": number}, **place})
        stream.take({"type": "response.output_text.delta", "delta": "x", **place})
        stream.take({"type": "response.output_text.annotation.added", "annotation": {}, "output_index": 0})
    stream.take({"type": "response.completed", "response": {}})
    *items, message = stream.finish()["output"]
    assert [item["n"] for item in items] == list(range(MOST_ITEMS))
    assert len(message["content"]) == MOST_ITEMS
    assert max(len(part["annotations"]) for part in message["content"]) == MOST_SOURCES


# Errors


async def test_an_error_in_small_pieces_is_the_error_that_it_is() -> None:
    packed = gzip.compress(json.dumps({"error": {"message": "Slower."}}).encode())
    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(packed, 429, {"content-encoding": "gzip"})) as fake, connections(fake) as over:
            reply = await ask(over, fake)
    api, _ = stub_api(reply, max_retries=0)
    with pytest.raises(RateLimited, match=r"Slower\."):
        await api.create(BODY)


async def test_an_error_page_of_many_small_pieces_is_cut_where_it_is_long_enough() -> None:
    api, _ = stub_api(Reply(400, {}, [b"<html>", *[b"x"] * MANY]))
    with pytest.raises(RequestRefused):
        await api.create(BODY)
