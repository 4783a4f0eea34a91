"""Both framings, as a client writes and reads them. It shares no code with the server."""

from __future__ import annotations

import json
import random
from typing import Any

Message = dict[str, Any]

_HEADER = b"Content-Length: "


class Torn(ValueError):
    """The server wrote bytes that are neither a frame nor a line of JSON."""


class Incoming:
    """Cuts the server's output into messages, in any chunks."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0  # no end of line before it
        self.framed = self.lines = 0

    @property
    def rest(self) -> bytes:
        """Return the bytes of a message that is not complete."""
        return bytes(self._buffer)

    def feed(self, data: bytes | bytearray) -> list[Message]:
        """Take the next bytes and return the messages that they complete. Raises Torn."""
        self._buffer += data
        bodies: list[bytes] = []
        start = 0
        while start < len(self._buffer):
            found = self._line(start) if self._buffer[start] == 0x7B else self._frame(start)
            if found is None:
                break
            body, start = found
            bodies.append(body)
            self._searched = start
        del self._buffer[:start]
        self._searched = max(0, self._searched - start)
        try:
            return [json.loads(body) for body in bodies]
        except ValueError as error:
            raise Torn(f"no JSON: {error}") from error

    def _line(self, start: int) -> tuple[bytes, int] | None:
        end = self._buffer.find(b"\n", max(start, self._searched))
        if end < 0:
            self._searched = len(self._buffer)
            return None
        self.lines += 1
        return bytes(self._buffer[start:end]), end + 1

    def _frame(self, start: int) -> tuple[bytes, int] | None:
        head = self._buffer.find(b"\r\n\r\n", start, start + 40)
        given = bytes(self._buffer[start : head if head >= 0 else start + 40])
        if head < 0 and len(given) < 40 and (given.startswith(_HEADER) or _HEADER.startswith(given)):
            return None
        if head < 0 or not given.startswith(_HEADER) or not given[len(_HEADER) :].isdigit():
            raise Torn(f"neither a line nor a frame: {given!r}")
        begin, length = head + 4, int(given[len(_HEADER) :])
        if len(self._buffer) < begin + length:
            self._searched = start
            return None
        self.framed += 1
        return bytes(self._buffer[begin : begin + length]), begin + length


def line(body: bytes) -> bytes:
    return body + b"\n"


def frame(body: bytes, rng: random.Random) -> bytes:
    """Return a frame with one of the heads that are understood."""
    length = len(body)
    return (
        rng.choice(
            (
                b"Content-Length: %d\r\n\r\n",
                b"Content-Length: %d\r\n\r\n",
                b"content-length:%d\n\n",
                b"Content-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
                b"\n\nContent-Length: %d\r\n\r\n",
            )
        )
        % length
        + body
    )
