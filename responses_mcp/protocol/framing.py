r"""From bytes to messages and back: Content-Length frames and newline-delimited JSON on one stream (spec 2.1).

How to read this file. `MessageReader` is fed bytes in any pieces and gives back what is complete. It is always in one
of four states, each a method that consumes from the front of the buffer and returns False when it needs more bytes:

    between   at a message boundary: skip blank lines, then decide by the first line what this is
    headers   inside a header block, which the blank line ends
    body      inside a framed body of known length
    skipping  throwing away, without keeping it, an over-long line or a body of known length

Byte order marks before a message, or before a line of its headers, are left out: clients on Windows write them.

A header block begins with `Content-Length:` or `Content-Type:` and with nothing else, because no JSON text does; any
other line is a message by itself. Two rules bring a stream with lying lengths back into step: a line that *ends* in a
Content-Length header (a body cut short ran into the next head) is split there, and a `{` inside a header block ends
the block.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import NamedTuple

log = logging.getLogger(__name__)

MAX_HEADER_BYTES = 16 * 1024
_LONGEST_BODY = 1 << 30  # bytes; to skip more, exactly, would be to skip whatever follows for ever
_LONG_HEADERS = f"a header block is longer than {MAX_HEADER_BYTES} bytes"

_HEADER = re.compile(rb"(content-length|content-type)[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_GLUED_HEADER = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]{1,18}[ \t]*\r?$", re.IGNORECASE)
_LONGEST_GLUED = 256  # bytes at a line's end in which a header is looked for; the rest may be millions
_LENGTH = re.compile(rb"[0-9]{1,18}")
_MARK = b"\xef\xbb\xbf"  # of byte order
_MARKS = re.compile(rb"(?:\xef\xbb\xbf)+")
_LONGEST_START = 64  # bytes in which the start of a header or of a message is looked for, behind marks


class Payload(NamedTuple):
    """The bytes of one message. `line` says that it came as a line of its own, not in a Content-Length frame."""

    data: bytes
    line: bool


class FramingFault(NamedTuple):
    """Bytes that are no message. `oversized` is one over the limit, else it is malformed; `line` is as there."""

    message: str
    oversized: bool = False
    line: bool = False


def looks_like_header(line: bytes | bytearray) -> bool:
    """Tell whether a line begins as headers of a frame do, be it misspelled further on."""
    return _unmarked(line[:_LONGEST_START])[:8].lower() == b"content-"


def _unmarked(data: bytes | bytearray) -> bytes:
    marks = _MARKS.match(data)
    return bytes(data) if marks is None else bytes(data[marks.end() :])


def encode_frame(body: bytes) -> bytes:
    """Give `body` the header that the contract prefers."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def encode_line(body: bytes) -> bytes:
    """End `body` with the newline that delimits it; JSON text holds none of its own."""
    return body + b"\n"


class MessageReader:
    """Cuts a byte stream into messages, in any chunking, holding at most one message of `max_message_bytes`.

    `max_message_bytes` bounds one message, 0 means no bound. An over-long one gives a single fault as soon as it is
    known to be too long; the rest of it is skipped exactly, and the stream goes on.
    """

    def __init__(self, max_message_bytes: int = 0) -> None:
        self._limit = max_message_bytes or None
        self._buffer = bytearray()
        self._searched = 0  # no newline before this offset, so a long line is scanned once, not once a chunk
        self._out: list[Payload | FramingFault] = []
        self._step = self._between
        self._header_bytes = 0
        self._block_bytes = 0  # of the header block, from its beginning
        self._length: int | None = None
        self._length_fault: str | None = None
        self._to_skip: int | None = None  # bytes of body, or None: up to the end of the line
        self._resume = self._between  # the state after skipping

    def feed(self, data: bytes) -> list[Payload | FramingFault]:
        """Take the next bytes of the stream and return the messages and faults that they complete."""
        self._buffer += data
        while self._step():
            pass
        out, self._out = self._out, []
        return out

    def feed_eof(self) -> list[Payload | FramingFault]:
        """Say that the stream has ended: a last line without a newline is a message, a half frame is a fault."""
        rest = _unmarked(self._buffer)
        inside_frame = self._step not in (self._between, self._skipping)
        skipping = self._step == self._skipping
        self._buffer.clear()
        self._searched = 0
        if skipping:
            return []
        if inside_frame or _HEADER.match(rest):
            return [FramingFault("the input ended inside a Content-Length frame")]
        return [Payload(rest.strip(), line=True)] if rest.strip() else []

    # Each state returns True when it made progress and may be called again.

    def _between(self) -> bool:
        line = self._take_line(self._limit)
        if line is None:
            return self._step == self._skipping
        if line.startswith(_MARK):  # few lines do, and the pattern takes longer
            line = _unmarked(line)
        if not line.strip():
            return True
        if header := _HEADER.match(line):
            self._start_headers(len(line))
            self._note_header(header)
        elif glued := _GLUED_HEADER.search(line, max(0, len(line) - _LONGEST_GLUED)):
            # Marks may stand before the header. No message ends in a byte of one.
            self._out.append(Payload(line[: glued.start()].rstrip(_MARK).strip(), line=False))
            self._start_headers(len(line) - glued.start())
            self._note_header(_HEADER.match(line, glued.start()))
        else:
            self._out.append(Payload(line.strip(), line=True))
        return True

    def _start_headers(self, first: int) -> None:
        self._step = self._headers
        self._block_bytes = first + 1  # with the newline
        self._header_bytes = 0
        self._length = None
        self._length_fault = None

    def _note_header(self, header: re.Match[bytes] | None) -> None:
        if header is None or header[1].lower() != b"content-length":
            return
        value = header[2].strip()
        if not _LENGTH.fullmatch(value):
            self._length_fault = "Content-Length is not a number of bytes"
        elif int(value) > _LONGEST_BODY:
            self._length_fault = "Content-Length is over 1 GiB"
        elif self._length not in (None, int(value)):
            self._length_fault = "two Content-Length headers disagree"
        else:
            self._length = int(value)

    def _headers(self) -> bool:
        if _unmarked(self._buffer[:_LONGEST_START]).startswith((b"{", b"[")):
            # The blank line is missing and a message begins: better to read it than to wait for ever.
            self._fault(self._length_fault or "the blank line after the Content-Length header is missing")
            self._step = self._between
            return True
        line = self._take_line(MAX_HEADER_BYTES)
        if line is None:
            return self._step == self._skipping
        self._header_bytes += len(line)
        self._block_bytes += len(line) + 1
        if self._header_bytes > MAX_HEADER_BYTES:
            self._length_fault = _LONG_HEADERS
        line = _unmarked(line)
        if line.strip():
            self._note_header(_HEADER.match(line))
        else:
            self._end_headers()
        return True

    def _end_headers(self) -> None:
        log.debug("headerEnd=%d", self._block_bytes)
        self._step = self._between
        if self._length_fault is not None:
            self._fault(self._length_fault)
        elif self._length is None:
            self._fault("a header block has no Content-Length")
        elif self._limit is not None and self._length > self._limit:
            self._oversized(self._length)
        else:
            self._step = self._body

    def _body(self) -> bool:
        length = self._length or 0
        if len(self._buffer) < length:
            return False
        self._out.append(Payload(_unmarked(self._take(length)), line=False))
        self._step = self._between
        return True

    def _skipping(self) -> bool:
        if self._to_skip is None:
            newline = self._buffer.find(b"\n")
            self._take(len(self._buffer) if newline < 0 else newline + 1)
            if newline < 0:
                return False
        else:
            self._to_skip -= len(self._take(min(self._to_skip, len(self._buffer))))
            if self._to_skip:
                return False
        self._step = self._resume
        return True

    def _take_line(self, limit: int | None) -> bytes | None:
        """Remove a line up to its newline, which is dropped; None when it is incomplete or was too long."""
        newline = self._buffer.find(b"\n", self._searched)
        length = len(self._buffer) if newline < 0 else newline
        if limit is not None and length > limit:
            if self._step == self._headers:
                self._length_fault = _LONG_HEADERS
                self._skip(None, self._headers)
            else:
                self._oversized(None)
            return None
        if newline < 0:
            self._searched = length
            return None
        line = self._take(newline + 1)
        return line[:-1]

    def _take(self, count: int) -> bytes:
        taken = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self._searched = 0
        return taken

    def _fault(self, message: str) -> None:
        self._out.append(FramingFault(message))

    def _oversized(self, body_bytes: int | None) -> None:
        self._out.append(
            FramingFault(
                f"the message is longer than {self._limit} bytes; send less or raise server.max_message_bytes",
                oversized=True,
                line=body_bytes is None and not looks_like_header(self._buffer),
            )
        )
        self._skip(body_bytes, self._between)

    def _skip(self, body_bytes: int | None, resume: Callable[[], bool]) -> None:
        self._to_skip = body_bytes
        self._resume = resume
        self._step = self._skipping
