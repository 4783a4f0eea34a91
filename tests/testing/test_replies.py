"""What each kind of reply puts on the wire, as a bare TCP client reads it."""

from typing import Any

import pytest
import trio

from responses_mcp.testing import (
    Closed,
    Drip,
    Error,
    Garbage,
    Hang,
    Html,
    Pause,
    Raw,
    Reply,
    Reset,
    Sse,
    Truncated,
    bodies,
    stream_events,
)
from tests.testing.bare_client import connected, fake, post


@pytest.mark.parametrize(("status", "code"), [(401, "invalid_api_key"), (429, "rate_limit_exceeded"), (529, None)])
async def test_an_error_left_blank_says_what_is_usual_for_its_status(status: int, code: str | None) -> None:
    async with fake(Error(status)) as api, connected(api) as client:
        error = (await client.ask()).json["error"]
        assert error["code"] == code
        assert error["message"]
        assert error["type"]


async def test_an_error_and_its_headers_are_sent_word_for_word_and_other_headers_replace_ours() -> None:
    given: dict[str, Any] = {
        "retry_after": "Wed, 21 Oct 2026 07:28:00 GMT",
        "retry_after_ms": "x",
        "headers": {"X-Request-Id": "r"},
    }
    async with fake(Error(429, "Slow down.", "tokens", "slow", "input", **given)) as api, connected(api) as client:
        reply = await client.ask()
        expected = {"message": "Slow down.", "type": "tokens", "code": "slow", "param": "input"}
        assert (reply.status, reply.json) == (429, {"error": expected})
        headers = reply.headers
        assert headers["retry-after"] == "Wed, 21 Oct 2026 07:28:00 GMT"
        assert (headers["retry-after-ms"], headers["x-request-id"]) == ("x", "r")


async def test_html_and_raw_bytes_are_sent_with_their_type() -> None:
    async with fake(Html(502), Raw(b"\xff", 201, content_type="text/plain")) as api, connected(api) as client:
        page = await client.ask()
        assert (page.status, page.headers["content-type"]) == (502, "text/html; charset=utf-8")
        assert b"502 Bad Gateway" in page.body
        raw = await client.ask()
        assert (raw.status, raw.headers["content-type"], raw.body) == (201, "text/plain", b"\xff")


@pytest.mark.parametrize("reply", [Drip({"n": 1}, 3, 0.5), Sse([b"one", b"two", b"three"], interval=0.5)])
def test_the_interval_lies_between_the_pieces_and_not_around_them(reply: Reply) -> None:
    kinds = ["pause" if step == Pause(0.5) else "bytes" for step in reply.steps("req_1")][1:]
    assert kinds[:5] == ["bytes", "pause", "bytes", "pause", "bytes"]
    assert kinds[-1] == "bytes"


async def test_a_truncated_reply_promises_more_than_it_sends_and_ends_in_order() -> None:
    async with fake(Truncated({"text": "x" * 100})) as api, connected(api) as client:
        reply = await client.ask()
        assert not reply.whole
        assert reply.body.startswith(b'{"text":"xxx')
        assert api.requests[0].answered is not None


@pytest.mark.parametrize(("reply", "sent"), [(Closed(), b""), (Garbage(b"\0\xffnot http"), b"\0\xffnot http")])
async def test_a_close_and_garbage_are_sent_as_they_are_and_end_in_order(reply: Reply, sent: bytes) -> None:
    async with fake(reply) as api, connected(api) as client:
        await client.send(post())
        assert await client.rest() == sent


STAGES = ["request", "headers", "half_body"]


def starts_as_expected(stage: str, received: bytes) -> bool:
    head, blank, body = received.partition(b"\r\n\r\n")
    if stage == "request":
        return not received
    return head.startswith(b"HTTP/1.1 200") and bool(blank) and bool(body) is (stage == "half_body")


@pytest.mark.parametrize("stage", STAGES)
async def test_a_reset_comes_at_the_named_stage(stage: Any) -> None:
    async with fake(Reset(stage)) as api, connected(api) as client:
        await client.send(post())
        with pytest.raises(trio.BrokenResourceError) as caught:
            await client.rest()
        assert isinstance(caught.value.__cause__, ConnectionResetError)
        assert starts_as_expected(stage, client.buffer)
        assert api.requests[0].hung_up is None


@pytest.mark.parametrize("stage", STAGES)
async def test_a_hanging_reply_stops_at_the_named_stage(stage: Any) -> None:
    async with fake(Hang(stage)) as api, connected(api) as client:
        await client.send(post())
        await api.wait_requests(1)
        if stage != "request":
            head = await client.until(b"\r\n\r\n")
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if stage == "half_body":
                assert await client.exactly(length // 2)
        # Half a close ends the hanging, so that one can see that nothing more had come.
        await client.stream.send_eof()
        assert await client.rest() == b""


async def test_each_event_is_named_after_its_type_and_the_stream_ends_properly() -> None:
    events: list[Any] = [
        {"type": "a", "n": 1},
        ": keep-alive\n\n",
        b"data: {broken\n\n",
        "",
        {"type": "b", "text": "é"},
    ]
    async with fake(Sse(events, done_marker=True)) as api, connected(api) as client:
        reply = await client.ask(stream=True)
        assert reply.body.decode() == (
            'event: a\ndata: {"type":"a","n":1}\n\n'
            ": keep-alive\n\ndata: {broken\n\n"
            'event: b\ndata: {"type":"b","text":"é"}\n\ndata: [DONE]\n\n'
        )
        assert (await client.ask()).status == 200


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_a_stream_in_pieces_of_any_size_has_the_same_bytes(size: int, line_end: str) -> None:
    events = [{"type": "a", "text": "日本語 🐍"}] * 3
    replies = Sse(events, line_end=line_end, chunk_bytes=size), Sse(events, line_end=line_end)
    async with fake(*replies) as api, connected(api) as client:
        pieces, whole = await client.ask(), await client.ask()
        assert pieces.body == whole.body
        assert whole.body.count(f"{line_end}data: ".encode()) == 3


async def test_a_cut_stream_ends_without_its_last_chunk() -> None:
    async with fake(Sse([{"type": "a"}], ending="cut")) as api, connected(api) as client:
        await client.send(post())
        assert (await client.rest()).endswith(b'data: {"type":"a"}\n\n\r\n')


async def test_a_hanging_stream_sends_its_events_and_then_waits_for_the_hang_up() -> None:
    stream = Sse(stream_events(bodies.searched())[:4], ending="hang")
    async with fake(stream) as api:
        async with connected(api) as client:
            await client.send(post())
            await client.until(b"event: response.output_item.done")
            assert api.requests[0].hung_up is None
        await api.requests[0].wait_hung_up()
