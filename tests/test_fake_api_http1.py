"""How the fake reads HTTP/1.1, seen by a bare TCP client: what it takes, what it refuses, and where it stops reading."""

import pytest

from tests.bare_client import Client, connected, fake

HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: fake\r\n"
SIZED = HEAD + b'Content-Length: 7\r\n\r\n{"a":1}'
CODED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKED = CODED + b'3\r\n{"a\r\n4;note="x"\r\n":1}\r\n0\r\nTrailer: kept-out\r\n\r\n'
BARE = b"GET /v1/models?limit=1 HTTP/1.1\r\nhost: fake\r\nX-Twice: a\r\nx-twice: \tb \r\n\r\n"


async def send(client: Client, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        await client.send(data[start : start + size])


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("data", [SIZED, CHUNKED], ids=["sized", "chunked"])
async def test_a_request_reads_the_same_in_pieces_of_any_size(data: bytes, size: int) -> None:
    async with fake() as api, connected(api) as client:
        await send(client, data, size)
        assert (await client.receive()).status == 200
        assert (api.requests[0].method, api.requests[0].body) == ("POST", b'{"a":1}')


async def test_header_names_become_lower_case_and_a_header_sent_twice_is_joined() -> None:
    async with fake() as api, connected(api) as client:
        await client.send(BARE)
        assert (await client.receive()).status == 200
        assert api.requests[0].headers == {"host": "fake", "x-twice": "a, b"}
        assert api.requests[0].target == "/v1/models?limit=1"


async def test_a_peer_that_expects_it_is_told_to_continue_once_and_only_if_it_holds_its_body_back() -> None:
    async with fake() as api, connected(api) as client:
        head = HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        await client.send(head)
        assert await client.until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue"
        await send(client, b"{}", 1)
        assert (await client.receive()).status == 200
        await client.send(head + b"{}")
        assert (await client.receive()).status == 200


BROKEN = {
    "a TLS handshake": (b"\x16\x03\x01\x02\x00", 400, "TLS"),
    "no version": (b"GET /\r\n\r\n", 400, "request line"),
    "two spaces": (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request line"),
    "HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", 505, "1.0"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "ost"),
    "a header without a colon": (b"GET / HTTP/1.1\r\nHost x\r\n\r\n", 400, "header line"),
    "a space before the colon": (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, "header line"),
    "two lengths": (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "Content-Length"),
    "a signed length": (HEAD + b"Content-Length: +1\r\n\r\n", 400, "Content-Length"),
    "a length and a coding": (HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"),
    "an unknown coding": (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501, "coding"),
    "a chunk size that is no number": (CODED + b"xyz\r\n", 400, "chunk"),
    "a chunk longer than its size": (CODED + b"1\r\nab\r\n", 400, "chunk"),
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("case", BROKEN)
async def test_broken_http_is_refused_with_a_status_and_the_reason(case: str, size: int) -> None:
    data, status, reason = BROKEN[case]
    async with fake() as api, connected(api) as client:
        await send(client, data, size)
        reply = await client.receive()
        assert reply.status == status
        assert reason.lower() in reply.json["error"]["message"].lower()
        assert (await client.rest(), api.requests) == (b"", [])


ENDLESS = {
    "a head": (b"GET / HTTP/1.1\r\n", b"A: bbbbbb\r\n" * 1000, 431),
    "a header line": (b"GET / HTTP/1.1\r\nA: ", b"b" * 10_000, 431),
    "a sized body": (HEAD + b"Content-Length: 99999999\r\n\r\n", b"a" * 1_000_000, 413),
    "a chunked body": (CODED, b"f4240\r\n" + b"a" * 1_000_000 + b"\r\n", 413),
    "a chunk's size line": (CODED, b"0" * 10_000, 431),
    "a trailer": (CODED + b"0\r\n", b"A: bbbbbbbbb\r\n" * 1000, 431),
}


@pytest.mark.parametrize("part", ENDLESS)
async def test_no_part_of_a_request_may_grow_without_end(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.testing.fake_api.REFUSAL_GRACE", 3600)
    start, more, status = ENDLESS[part]
    async with fake() as api, connected(api) as client:
        await client.send(start)
        for _ in range(68):
            await client.send(more)
        assert ((await client.receive()).status, api.requests) == (status, [])
