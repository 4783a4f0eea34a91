"""The fake's reading of HTTP/1.1, without sockets: every request whole and in pieces of every small size."""

import pytest

from responses_mcp.testing.http1 import BadRequestError, Request, RequestParser

HEAD = b"POST /v1/responses HTTP/1.1\r\nHost: fake\r\n"
SIZED = HEAD + b'Content-Length: 7\r\n\r\n{"a":1}'
CHUNKED = HEAD + b'Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\n4;note="x"\r\n":1}\r\n0\r\nTrailer: kept-out\r\n\r\n'
BARE = b"GET /v1/models?limit=1 HTTP/1.1\r\nhost: fake\r\nX-Twice: a\r\nx-twice: \tb \r\n\r\n"


def parse(data: bytes, size: int, **limits: int) -> tuple[list[Request], RequestParser]:
    parser = RequestParser(**limits)
    requests = []
    for start in range(0, len(data), size):
        parser.receive_data(data[start : start + size])
        while (request := parser.next_request()) is not None:
            requests.append(request)
    return requests, parser


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
@pytest.mark.parametrize("data", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_a_request_reads_the_same_in_pieces_of_any_size(data: bytes, size: int) -> None:
    (request,), parser = parse(data, size)
    assert (request.method, request.target, request.body) == ("POST", "/v1/responses", b'{"a":1}')
    assert parser.buffered == 0


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_pipelined_requests_come_out_one_by_one_and_blank_lines_between_them_are_skipped(size: int) -> None:
    requests, parser = parse(SIZED + b"\r\n" + CHUNKED + BARE + HEAD, size)
    assert [request.method for request in requests] == ["POST", "POST", "GET"]
    assert parser.buffered == len(HEAD)


def test_header_names_become_lower_case_and_a_header_sent_twice_is_joined() -> None:
    (request,), _ = parse(BARE, 10_000)
    assert request.headers == {"host": "fake", "x-twice": "a, b"}
    assert request.target == "/v1/models?limit=1"


def test_a_request_that_says_close_is_not_kept_alive() -> None:
    (kept, closed), _ = parse(BARE + BARE.replace(b"X-Twice: a", b"Connection: TE, Close"), 10_000)
    assert kept.keep_alive
    assert not closed.keep_alive


def test_continue_is_due_once_and_only_while_the_body_is_held_back() -> None:
    parser = RequestParser()
    head = HEAD + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    parser.receive_data(head)
    assert parser.next_request() is None
    assert [parser.take_continue(), parser.take_continue()] == [True, False]
    parser.receive_data(b"{}")
    assert parser.next_request() is not None
    parser.receive_data(SIZED[:-1])
    assert parser.next_request() is None
    assert not parser.take_continue()


BROKEN = {
    "a TLS handshake": (b"\x16\x03\x01\x02\x00", 400, "TLS"),
    "no version": (b"GET /\r\n\r\n", 400, "request line"),
    "two spaces": (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "request line"),
    "HTTP/1.0": (b"GET / HTTP/1.0\r\n\r\n", 505, "1.0"),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400, "Host"),
    "a header without a colon": (b"GET / HTTP/1.1\r\nHost x\r\n\r\n", 400, "header line"),
    "a folded header": (b"GET / HTTP/1.1\r\nHost: x\r\n y\r\n\r\n", 400, "header line"),
    "a space before the colon": (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, "header line"),
    "a bare line feed in a header": (b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400, "header line"),
    "two lengths": (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "Content-Length"),
    "a signed length": (HEAD + b"Content-Length: +1\r\n\r\n", 400, "Content-Length"),
    "a length and a coding": (HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "both"),
    "an unknown coding": (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 501, "gzip"),
    "a chunk size that is no number": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "chunk size"),
    "a chunk longer than its size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400, "longer"),
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("case", BROKEN)
def test_broken_http_is_refused_with_a_status_and_the_reason(case: str, size: int) -> None:
    data, status, reason = BROKEN[case]
    with pytest.raises(BadRequestError, match=reason) as caught:
        parse(data, size)
    assert caught.value.status == status


ENDLESS = {
    "a head": (b"GET / HTTP/1.1\r\n" + b"A: bbbbbb\r\n" * 20, 400),
    "a header line": (b"GET / HTTP/1.1\r\nA: " + b"b" * 200, 400),
    "a sized body": (HEAD + b"Content-Length: 101\r\n\r\n", 413),
    "a chunked body": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"20\r\n" + b"a" * 32 + b"\r\n50\r\n", 413),
    "a chunk's size line": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 200, 400),
    "chunk extensions": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;aaaaaaaaaa\r\nx\r\n" * 20, 400),
    "a trailer": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: bbbbbbbbb\r\n" * 20, 400),
}


@pytest.mark.parametrize("size", [1, 10_000])
@pytest.mark.parametrize("part", ENDLESS)
def test_no_part_of_a_request_may_grow_without_end(part: str, size: int) -> None:
    data, status = ENDLESS[part]
    with pytest.raises(BadRequestError) as caught:
        parse(data, size, max_head_bytes=100, max_body_bytes=100)
    assert caught.value.status == status
