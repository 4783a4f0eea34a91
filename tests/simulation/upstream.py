"""An API without sockets, behind the real pool of connections: only the bytes between are simulated.

`SimulatedConnections` is the product's `ConnectionPool` (its order, its limit, what it keeps and what it closes) over
streams that play a script instead of sending.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import trio

from responses_mcp.errors import ConnectionFailed
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.responses_api.http.network import ConnectionPool, HttpConnection, Route
from tests.simulation.transcript import Kind, Transcript

ASKED = re.compile(rb'"input": "(q[0-9]+)')

# What may be followed by another request: what passes, and what was never sent.
RETRYABLE = {"refused", "429", "429 after", "500", "408", "409", "failed", "fallback"}
PLAYS = (
    *("answer", "plain", "big", "refused", "lost", "lost body", "429", "429 after", "500", "408", "409", "401", "html"),
    *("truncated", "cut", "failed", "incomplete", "hang", "hang body", "drip", "lingers", "fallback"),
)


@dataclass(frozen=True, slots=True)
class Play:
    """What upstream does with one request: how long each step takes, in seconds."""

    kind: str
    connect: float = 0.0
    head: float = 0.0
    piece: float = 0.0
    close: float = 0.0
    after: float = 1.0  # Retry-After


class SimulatedConnections(ConnectionPool):
    """The product's pool over streams of ours."""

    def __init__(self, transcript: Transcript, plays: Mapping[str, list[Play]], limit: int) -> None:
        super().__init__(self._connection, limit=limit)
        self.transcript = transcript
        self.turns = trio.CapacityLimiter(1)
        self._plays = plays
        self._asked: Counter[str] = Counter()
        self._made = 0

    @property
    def in_use(self) -> int:
        return self._slots.borrowed_tokens

    def _connection(self) -> HttpConnection:
        self._made += 1
        self.transcript.note(Kind.OPEN, self._made)
        return _Connection(self, self._made)

    async def send(self, request: Request, reader: Reader) -> None:
        marker = _asked(request.body)
        self.transcript.phase(marker, "queued")
        try:
            await super().send(request, reader)
        finally:
            self.transcript.phase(marker, "between requests")

    def asked(self, marker: str, connection: int) -> tuple[Transcript, Play, int]:
        self._asked[marker] += 1
        number = self._asked[marker]
        plays = self._plays[marker]
        play = plays[min(number, len(plays)) - 1]
        self.transcript.note(Kind.REQUEST, marker, number, connection)
        self.transcript.note(Kind.FAULT, marker, play.kind)
        self.transcript.note(Kind.BUSY, connection, marker)
        return self.transcript, play, number


def _asked(body: bytes) -> str:
    found = ASKED.search(body)
    return found[1].decode() if found else "?"


class _Connection(HttpConnection):
    """The product's connection over a socket that is none: open until it is closed."""

    def __init__(self, over: SimulatedConnections, number: int) -> None:
        super().__init__(Route(), over.turns)
        self.number = number
        self._transcript = over.transcript
        self._stream = cast("trio.abc.Stream", _Stream(over, self))

    @property
    def is_open(self) -> bool:
        return self._stream is not None

    async def is_quiet(self) -> bool:
        await trio.lowlevel.checkpoint()
        return self.is_open

    def close(self) -> None:
        was_open = self.is_open
        super().close()
        if was_open and not self.is_open:
            self._transcript.note(Kind.CLOSE, self.number)


class _Stream:
    """Plays instead of sending."""

    def __init__(self, over: SimulatedConnections, connection: _Connection) -> None:
        self._over = over
        self._transcript = over.transcript
        self._link = connection
        self._connected = False
        self._marker = ""
        self._play = Play("answer")
        self._head: bytes = b""
        self._body: list[bytes] = []
        self._streams = False

    async def send_all(self, data: bytes) -> None:
        marker = self._marker = _asked(data.partition(b"\r\n\r\n")[2])
        transcript, play, number = self._over.asked(marker, self._link.number)
        if not self._connected or play.kind == "refused":
            transcript.phase(marker, "connecting")
            await trio.sleep(play.connect)
            if play.kind == "refused":
                raise ConnectionFailed(f"refused {marker}", retryable=True)
            self._connected = True
        status, headers, body = _reply(play, marker, number, events=play.kind != "plain")
        self._play = play
        self._streams = headers["content-type"] == "text/event-stream"
        lines = [f"HTTP/1.1 {status} Said", "transfer-encoding: chunked", *map(": ".join, headers.items()), "", ""]
        self._head = "\r\n".join(lines).encode()
        self._body = _in_pieces(body, play.kind, events=self._streams)

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        kind = self._play.kind
        if self._head:
            self._transcript.phase(self._marker, "before the head")
            await trio.sleep(self._play.head)
            if kind == "lost":
                raise trio.BrokenResourceError("lost")
            if kind == "hang":
                await trio.sleep_forever()
            head, self._head = self._head, b""
            return head
        if not self._link.is_open:
            raise trio.ClosedResourceError("closed")
        if self._body:
            self._transcript.phase(self._marker, "within the stream" if self._streams else "within the body")
            await trio.sleep(self._play.piece)
            piece = self._body.pop(0)
            return b"%x\r\n%b\r\n" % (len(piece), piece)
        if kind == "lost body":
            raise trio.BrokenResourceError("lost")
        if kind in ("hang body", "lingers"):
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        self._transcript.note(Kind.IDLE, self._link.number)
        return b"0\r\n\r\n"


def _reply(play: Play, marker: str, number: int, *, events: bool) -> tuple[int, dict[str, str], list[bytes]]:
    kind = play.kind
    said = f"answer to {marker} by request {number}" + ("." * 3000 if kind == "big" else "")
    headers = {"content-type": "application/json"}
    if kind in ("429", "429 after", "500", "408", "409", "401", "fallback"):
        status = 400 if kind == "fallback" else int(kind[:3])
        if kind == "429 after":
            headers["retry-after"] = f"{play.after:g}"
        error = {"message": f"fault of {marker}", "code": None, "param": "text.verbosity" if status == 400 else None}
        return status, headers, [json.dumps({"error": error}).encode()]
    if kind == "html":
        return 502 if number % 2 else 200, {"content-type": "text/html"}, [b"<html>Bad gateway</html>"]
    if events:
        headers["content-type"] = "text/event-stream"
        return 200, headers, [_event(event) for event in _events(kind, said, marker)]
    response = json.dumps(_response(kind, said, marker)).encode()
    if kind in ("truncated", "cut", "lost body", "hang body"):
        response = response[: len(response) // 2]
    return 200, headers, [response]


def _response(kind: str, said: str, marker: str) -> dict[str, Any]:
    if kind == "failed":
        return {"status": "failed", "error": {"code": "server_error", "message": f"fault of {marker}"}}
    message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
    return {"status": "incomplete" if kind == "incomplete" else "completed", "output": [message]}


def _events(kind: str, said: str, marker: str) -> list[dict[str, Any]]:
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": marker}}
    response = _response(kind, said, marker)
    events: list[dict[str, Any]] = [
        {"type": "response.created"},
        {"type": "response.output_item.done", "output_index": 0, "item": search},
        {"type": "response.output_text.delta", "output_index": 1, "delta": said},
        {"type": f"response.{response['status']}", "response": response},
    ]
    return events[:3] if kind in ("truncated", "cut", "lost body", "hang body") else events


def _event(event: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps(event).encode()


def _in_pieces(body: list[bytes], kind: str, *, events: bool) -> list[bytes]:
    whole = b"".join(body)
    if kind == "drip":
        size = -(-len(whole) // 8)
        return [whole[start : start + size] for start in range(0, len(whole), size)]
    if events or len(whole) < 2:
        return body
    return [whole[: len(whole) // 2], whole[len(whole) // 2 :]]
