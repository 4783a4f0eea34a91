"""As much of HTTP/1.1 as a fake server needs to read requests: bytes in, requests out, no I/O.

Feed a `RequestParser` whatever the socket gave and ask it for requests until it returns None. What is left
over (a pipelined request, half a head) stays in the parser. It is strict on purpose: a client whose framing
is wrong should learn of it here and not in production.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["BadRequestError", "Request", "RequestParser"]

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
MAY_BE_REQUEST = re.compile(rb"\Z|\r\Z|[!#$%&'*+.^_`|~0-9A-Za-z-]")
REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) HTTP/1\.([01])")
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(;.*)?", re.DOTALL)


class BadRequestError(Exception):
    """The peer broke HTTP or a limit; where its next request would start is unknown.

    `status` is the HTTP status that says so; the message is meant for the peer.
    """

    def __init__(self, message: str, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(message)
        self.status = int(status)


@dataclass(frozen=True)
class Request:
    """One whole request. Header names are lower case; a header sent twice is joined with a comma."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def keep_alive(self) -> bool:
        """Whether the peer means to send another request on this connection."""
        options = self.headers.get("connection", "").lower().split(",")
        return "close" not in (option.strip() for option in options)


class RequestParser:
    """Turns the bytes of one connection into requests.

    Raises `BadRequestError` from `next_request`; after that the parser is of no more use.
    """

    def __init__(self, *, max_head_bytes: int = MAX_HEAD_BYTES, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_head_bytes = max_head_bytes
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._current: tuple[Request, _SizedBody | _ChunkedBody] | None = None
        self._continue_due = False

    @property
    def buffered(self) -> int:
        """How many bytes were received and not yet used."""
        return len(self._buffer)

    def receive_data(self, data: bytes | bytearray) -> None:
        """Take what the socket gave."""
        self._buffer += data

    def next_request(self) -> Request | None:
        """Return the next whole request, or None when more bytes are needed."""
        if self._current is None:
            head = self._read_head()
            if head is None:
                return None
            self._current = head, self._start_body(head)
            self._continue_due = head.headers.get("expect", "").lower() == "100-continue"
        head, body = self._current
        if not body.read(self._buffer):
            return None
        self._current = None
        return Request(head.method, head.target, head.headers, bytes(body.data))

    def take_continue(self) -> bool:
        """Return True once if the peer holds its body back until it reads ``100 Continue``."""
        due = self._continue_due and self._current is not None and not self._buffer
        if due:
            self._continue_due = False
        return due

    def _read_head(self) -> Request | None:
        # Empty lines before a request are to be skipped (RFC 9112, 2.2).
        while self._buffer.startswith(b"\r\n"):
            del self._buffer[:2]
        if not MAY_BE_REQUEST.match(self._buffer):
            # Without this look at the first byte, a peer that speaks TLS waits for us as we wait for it.
            raise BadRequestError("this is not HTTP (is it a TLS handshake?)")
        end = self._buffer.find(b"\r\n\r\n", max(0, self._searched - 3))
        self._searched = len(self._buffer)
        if max(end, self._searched if end < 0 else 0) > self._max_head_bytes:
            message = f"the request head is longer than {self._max_head_bytes} bytes"
            raise BadRequestError(message)
        if end < 0:
            return None
        self._searched = 0
        lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        return _parse_head(lines)

    def _start_body(self, head: Request) -> _SizedBody | _ChunkedBody:
        coding = head.headers.get("transfer-encoding")
        length = head.headers.get("content-length")
        if coding is not None and length is not None:
            # Two answers to where the body ends are how requests get smuggled.
            raise BadRequestError("both Transfer-Encoding and Content-Length were sent")
        if coding is not None:
            if coding.lower() != "chunked":
                message = f"unknown transfer coding {coding!r}"
                raise BadRequestError(message, HTTPStatus.NOT_IMPLEMENTED)
            return _ChunkedBody(self._max_body_bytes, self._max_head_bytes)
        if length is None:
            return _SizedBody(0)
        if not re.fullmatch(r"[0-9]{1,15}", length, re.ASCII):
            message = f"unusable Content-Length {length!r}"
            raise BadRequestError(message)
        _check_body_size(int(length), self._max_body_bytes)
        return _SizedBody(int(length))


class _SizedBody:
    """A body whose length was told beforehand."""

    def __init__(self, length: int) -> None:
        self.data = bytearray()
        self._missing = length

    def read(self, buffer: bytearray) -> bool:
        """Move what belongs to the body out of the buffer; return whether the body is whole."""
        piece = buffer[: self._missing]
        del buffer[: len(piece)]
        self.data += piece
        self._missing -= len(piece)
        return not self._missing


class _ChunkedBody:
    """A body that comes in chunks, each preceded by its size in hexadecimal."""

    def __init__(self, max_body_bytes: int, max_line_bytes: int) -> None:
        self.data = bytearray()
        self._max_body_bytes = max_body_bytes
        self._line_bytes_left = max_line_bytes
        self._missing = 0
        self._after_chunk = False
        self._in_trailer = False

    def read(self, buffer: bytearray) -> bool:
        """Move what belongs to the body out of the buffer; return whether the body is whole."""
        while True:
            if self._missing:
                piece = buffer[: self._missing]
                del buffer[: len(piece)]
                self.data += piece
                self._missing -= len(piece)
                if self._missing:
                    return False
                self._after_chunk = True
            line = self._take_line(buffer)
            if line is None:
                return False
            if self._after_chunk:
                if line:
                    raise BadRequestError("a chunk is longer than its size says")
                self._after_chunk = False
            elif self._in_trailer:
                if not line:
                    return True
                self._spend(len(line))
            else:
                self._start_chunk(line)

    def _take_line(self, buffer: bytearray) -> bytes | None:
        end = buffer.find(b"\r\n")
        if end < 0:
            if len(buffer) > self._line_bytes_left:
                raise BadRequestError("a chunk's size line or the trailer is too long")
            return None
        line = bytes(buffer[:end])
        del buffer[: end + 2]
        return line

    def _start_chunk(self, line: bytes) -> None:
        match = CHUNK_SIZE.fullmatch(line)
        if match is None:
            message = f"unusable chunk size {line[:40]!r}"
            raise BadRequestError(message)
        self._spend(len(match[2] or b""))
        size = int(match[1], 16)
        _check_body_size(len(self.data) + size, self._max_body_bytes)
        self._missing = size
        self._in_trailer = not size

    def _spend(self, count: int) -> None:
        # Extensions and trailers are thrown away, so only a budget keeps a peer from sending them for ever.
        self._line_bytes_left -= count
        if self._line_bytes_left < 0:
            raise BadRequestError("chunk extensions or the trailer are too long")


def _parse_head(lines: list[bytes]) -> Request:
    match = REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        message = f"unusable request line {lines[0][:80]!r}"
        raise BadRequestError(message)
    if match[3] == b"0":
        # Its peers know neither chunked replies nor keep-alive, and no client of the API speaks it.
        raise BadRequestError("HTTP/1.0 is not served", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not TOKEN.fullmatch(name) or any(byte in value for byte in b"\r\n\0"):
            message = f"unusable header line {line[:80]!r}"
            raise BadRequestError(message)
        key, text = name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    if "host" not in headers:
        raise BadRequestError("the Host header is missing")
    return Request(match[1].decode("ascii"), match[2].decode("ascii"), headers)


def _check_body_size(size: int, limit: int) -> None:
    if size > limit:
        message = f"the body is longer than {limit} bytes"
        raise BadRequestError(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
