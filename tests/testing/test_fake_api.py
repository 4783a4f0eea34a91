"""The fake API seen by a bare TCP client: what it serves, what it records, and how it ends."""

import pytest
import trio

from responses_mcp.testing import Drip, Error, Json, RecordedRequest, Reply
from tests.testing.bare_client import connected, fake, post

HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: fake\r\n"
CHUNKED = HEAD + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n4;note="x"\r\n":1}\r\n0\r\nTrailer: kept-out\r\n\r\n'


# What it serves


async def test_without_a_script_the_answer_repeats_the_query_of_the_request_it_belongs_to() -> None:
    async with fake() as api, connected(api) as client:
        first = await client.ask("first question\nwith a second line")
        second = await client.ask("second question")
        assert "first question" in first.json["output"][1]["content"][0]["text"]
        assert "second question" in second.json["output"][1]["content"][0]["text"]
        assert first.json["id"] != second.json["id"]


async def test_scripted_replies_and_functions_come_in_order_and_then_the_default_takes_over() -> None:
    async def handler(request: RecordedRequest) -> Reply:
        await trio.lowlevel.checkpoint()
        return Json({"asked": request.json["input"]})

    async with fake(Error(503), lambda request: Json({"n": request.index})) as api, connected(api) as client:
        api.script(Json({"n": 2}))
        api.default, usual = handler, api.default
        first, second, third, *others = [await client.ask(query) for query in "abcde"]
        assert (first.status, second.json, third.json) == (503, {"n": 1}, {"n": 2})
        assert [reply.json for reply in others] == [{"asked": "d"}, {"asked": "e"}]
        api.default = usual
        await client.send(HEAD + b"Content-Length: 3\r\n\r\n{no")
        assert (await client.receive()).status == 400
        assert (api.requests[-1].body, api.requests[-1].json) == (b"{no", None)


@pytest.mark.parametrize("target", ["/v1/v1/responses", "/v1/responses/", "//v1/responses", "http://[/responses"])
async def test_a_path_that_the_api_does_not_have_is_404_and_does_not_use_up_the_script(target: str) -> None:
    async with fake(Json({"scripted": True})) as api, connected(api) as client:
        await client.send(post(target=target))
        assert (await client.receive()).status == 404
        assert api.requests[0].target == target
        assert (await client.ask()).json == {"scripted": True}


# What it records


async def test_a_request_is_recorded_with_what_was_sent_and_the_id_that_its_reply_carries() -> None:
    async with fake() as api, connected(api) as client:
        reply = await client.ask("hello", include=["x"])
        (request,) = api.requests
        assert (request.index, request.method, request.target) == (0, "POST", "/v1/responses")
        assert request.json == {"model": "gpt-5.2", "input": "hello", "include": ["x"]}
        assert reply.headers["x-request-id"] == request.request_id
        assert request.answered is not None
        assert request.arrived <= request.answered
        assert request.hung_up is None


async def test_a_connection_is_kept_for_the_next_request_and_counted_while_it_is_open() -> None:
    async with fake() as api:
        async with connected(api) as client:
            for _ in range(3):
                assert (await client.ask()).status == 200
            assert (api.connections, api.open_connections) == (1, 1)
            await client.stream.send_eof()
            assert await client.rest() == b""
        assert (api.connections, api.open_connections) == (1, 0)


# How it reads


@pytest.mark.parametrize("size", [1, 10_000])
async def test_a_request_in_chunks_reads_the_same_in_pieces_of_any_size(size: int) -> None:
    async with fake() as api, connected(api) as client:
        for start in range(0, len(CHUNKED), size):
            await client.send(CHUNKED[start : start + size])
        assert (await client.receive()).status == 200
        assert (api.requests[0].method, api.requests[0].body) == ("POST", b'{"a":1}')


async def test_pipelined_requests_are_all_answered_in_order_also_those_that_come_during_a_reply() -> None:
    async with fake(Drip({"n": 1}, 1, 0.001), Json({"n": 2}), Json({"n": 3})) as api, connected(api) as client:
        await client.send(post("a"))
        await api.wait_requests(1)
        await client.send(post("b") + post("c")[:-5])
        assert [(await client.receive()).json["n"] for _ in range(2)] == [1, 2]
        await client.send(post("c")[-5:])
        assert (await client.receive()).json == {"n": 3}
        assert [request.json["input"] for request in api.requests] == ["a", "b", "c"]


REFUSED = {
    "a TLS handshake": (b"\x16\x03\x01\x02\x00", 400, "TLS"),
    "no HTTP": (b"hello there\r\n\r\n", 400, "request line"),
    "HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", 505, "1.0"),
    "a length and a coding": (HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"),
    "a head without end": (HEAD + b"A: bbbbbb\r\n" * 70_000, 431, "long"),
    "a body without end": (HEAD + b"Content-Length: 99999999\r\n\r\n" + b"a" * 68_000_000, 413, "longer than"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_broken_http_is_refused_with_a_status_and_the_reason_and_the_fake_lives_on(case: str) -> None:
    data, status, reason = REFUSED[case]
    async with fake() as api:
        async with connected(api) as client:
            await client.send(data)
            reply = await client.receive()
            assert (reply.status, reply.headers["connection"]) == (status, "close")
            assert reason in reply.json["error"]["message"]
            assert (await client.rest(), api.requests) == (b"", [])
        async with connected(api) as client:
            assert (await client.ask()).status == 200


async def test_a_peer_that_leaves_amid_its_request_leaves_no_trace_but_the_count() -> None:
    async with fake() as api:
        async with connected(api) as client:
            await client.send(post()[:-3])
        async with connected(api) as client:
            await client.send(post()[:30])
            await client.reset()
        async with connected(api) as client:
            await client.ask()
        assert (len(api.requests), api.connections) == (1, 3)


# How it ends


async def test_an_exception_of_the_block_comes_out_as_itself() -> None:
    cause = KeyError("the cause")
    with pytest.raises(ValueError, match="of the block") as caught:
        async with fake():
            raise ValueError("of the block") from cause
    assert caught.value.__cause__ is cause


async def test_a_handler_that_raises_ends_the_block_with_a_group() -> None:
    def handler(request: RecordedRequest) -> Reply:
        raise LookupError("a bug of the test")

    with pytest.RaisesGroup(LookupError, flatten_subgroups=True):
        async with fake(handler) as api, connected(api) as client:
            await client.send(post())
            await trio.sleep_forever()
