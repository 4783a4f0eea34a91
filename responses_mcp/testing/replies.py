"""What the fake API can answer: good replies, errors, and misbehaviour of every kind.

A reply is a frozen dataclass that yields steps: bytes to write, pauses, and how the exchange ends. For a reply of your
own, subclass `Reply` with a `steps` method; it needs no sockets.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum, auto
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from . import bodies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Stage: TypeAlias = Literal["request", "headers", "half_body"]

JSON = "application/json"


class Ending(Enum):
    """How an exchange ends; when a reply's steps run out without one, the connection is kept."""

    KEEP_ALIVE = auto()
    CLOSE = auto()
    RESET = auto()
    HANG = auto()


@dataclass(frozen=True)
class Pause:
    """Nothing is written for this many seconds (of Trio's clock)."""

    seconds: float


Step: TypeAlias = bytes | Pause | Ending


@dataclass(frozen=True, kw_only=True)
class Reply(ABC):
    """What every reply has: `latency`, the seconds before its first byte or its ending."""

    latency: float = 0

    @abstractmethod
    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield what to do, in order; `request_id` is what an ``x-request-id`` header should say."""


@dataclass(frozen=True)
class Json(Reply):
    """A JSON body, also where the request asked for a stream: servers that do so exist."""

    body: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield one write."""
        yield _whole(encode_json(self.body), request_id, self.status, JSON, self.headers)


@dataclass(frozen=True)
class Raw(Reply):
    """Any bytes as the body of a correct HTTP reply: broken JSON, a bare string, nothing."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    content_type: str = JSON

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield one write."""
        yield _whole(self.body, request_id, self.status, self.content_type, self.headers)


# What the API says with each status when nothing more special applies: message, type, code.
USUAL_ERRORS: dict[int, tuple[str, str, str | None]] = {
    400: ("The request could not be understood.", "invalid_request_error", None),
    401: ("The API key that was given is not valid.", "invalid_request_error", "invalid_api_key"),
    403: ("This project has no access to the model.", "invalid_request_error", "model_not_found"),
    404: ("The model does not exist or is not open to you.", "invalid_request_error", "model_not_found"),
    409: ("The resource is locked by another request.", "invalid_request_error", None),
    422: ("The request could not be processed.", "invalid_request_error", None),
    429: ("Rate limit reached for requests.", "requests", "rate_limit_exceeded"),
    500: ("The server had an error while processing the request.", "server_error", None),
    503: ("The engine is overloaded, please try again later.", "server_error", None),
}


@dataclass(frozen=True)
class Error(Reply):
    """An error as the API words it: ``{"error": {"message", "type", "param", "code"}}``.

    `message`, `type` and `code` left at None become what is usual for the status; use `Json` to send an
    explicit null. `retry_after` and `retry_after_ms` are header values, sent word for word, so that unusable
    ones can be sent too.
    """

    status: int
    message: str | None = None
    type: str | None = None
    code: str | None = None
    param: str | None = None
    retry_after: str | None = None
    retry_after_ms: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield one write."""
        fallback = USUAL_ERRORS[500 if self.status >= 500 else 400]
        message, kind, code = USUAL_ERRORS.get(self.status, fallback)
        error = {
            "message": message if self.message is None else self.message,
            "type": kind if self.type is None else self.type,
            "param": self.param,
            "code": code if self.code is None else self.code,
        }
        headers = dict(self.headers)
        if self.retry_after is not None:
            headers["retry-after"] = self.retry_after
        if self.retry_after_ms is not None:
            headers["retry-after-ms"] = self.retry_after_ms
        yield _whole(encode_json({"error": error}), request_id, self.status, JSON, headers)


@dataclass(frozen=True)
class Html(Reply):
    """The page that a gateway in front of the API sends when the API behind it does not answer."""

    status: int = 502

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield one write."""
        title = f"{self.status} {_phrase(self.status)}"
        page = f"<html>\r\n<head><title>{title}</title></head>\r\n<body><h1>{title}</h1></body>\r\n</html>\r\n"
        yield _whole(page.encode(), request_id, self.status, "text/html; charset=utf-8")


@dataclass(frozen=True)
class _Stopped(Reply):
    after: Stage = "request"
    body: Mapping[str, Any] | None = None
    ending: ClassVar[Ending]

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield what is written up to the stage, then the ending."""
        yield from _up_to(self.after, self.body, request_id)
        yield self.ending


class Hang(_Stopped):
    """A reply that stops and never goes on, at the stage named by `after`; the connection stays open."""

    ending = Ending.HANG


class Reset(_Stopped):
    """A reply that ends in a TCP reset at the stage named by `after`.

    Bytes written just before the reset reach a peer on Linux; other systems may drop them.
    """

    ending = Ending.RESET


@dataclass(frozen=True)
class Drip(Reply):
    """A correct reply whose body comes `chunk_bytes` at a time with `interval` seconds between the pieces.

    The head comes at once, so no limit on the time without bytes is ever reached; only a deadline for the
    whole helps.
    """

    body: Mapping[str, Any] | None = None
    chunk_bytes: int = 1
    interval: float = 0.01

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield the head, then pieces with pauses between them."""
        body = _body_bytes(self.body)
        yield _head(200, JSON, request_id, {"content-length": str(len(body))})
        yield from _spaced(_pieces(body, self.chunk_bytes), self.interval)


@dataclass(frozen=True)
class Truncated(Reply):
    """Half of the body that Content-Length promised, then an orderly close."""

    body: Mapping[str, Any] | None = None

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield the head and half of the body, then the close."""
        yield from _up_to("half_body", self.body, request_id)
        yield Ending.CLOSE


@dataclass(frozen=True)
class Closed(Reply):
    """An orderly close without a byte, as when a server drops an idle connection just as it is used again."""

    def steps(self, request_id: str) -> Iterator[Step]:  # noqa: ARG002
        """Yield the close."""
        yield Ending.CLOSE


@dataclass(frozen=True)
class Garbage(Reply):
    """Bytes that are no HTTP reply, then an orderly close."""

    data: bytes = b"SSH-2.0-OpenSSH_9.6\r\n"

    def steps(self, request_id: str) -> Iterator[Step]:  # noqa: ARG002
        """Yield the bytes as they are, then the close."""
        yield self.data
        yield Ending.CLOSE


@dataclass(frozen=True)
class Sse(Reply):
    """A stream of server-sent events in chunked encoding; `as_stream` makes the right ones for a body.

    An event that is a dict is written with its ``type`` as the event's name; text and bytes are written as
    they are (comments, malformed events). Each event is a write of its own, or, with `chunk_bytes`, the
    stream is cut into pieces of that size wherever they fall, inside a character too. `interval` is the
    seconds between two writes. `ending` says what follows the last event: the proper end, a close without it
    ("cut"), or silence.
    """

    events: Sequence[Mapping[str, Any] | str | bytes]
    ending: Literal["complete", "cut", "hang"] = "complete"
    chunk_bytes: int | None = None
    line_end: str = "\n"
    done_marker: bool = False
    interval: float = 0

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield the head, the events as chunks, then the ending."""
        yield stream_head(request_id)
        writes = [self._encode(event) for event in self.events]
        if self.done_marker:
            writes.append(f"data: [DONE]{self.line_end * 2}".encode())
        if self.chunk_bytes is not None:
            writes = _pieces(b"".join(writes), self.chunk_bytes)
        # An empty chunk would end the body, so an empty event is no chunk at all.
        yield from _spaced([chunk(data) for data in writes if data], self.interval)
        if self.ending == "complete":
            yield last_chunk()
        else:
            yield Ending.CLOSE if self.ending == "cut" else Ending.HANG

    def _encode(self, event: Mapping[str, Any] | str | bytes) -> bytes:
        if isinstance(event, bytes):
            return event
        if isinstance(event, str):
            return event.encode()
        return event_bytes(event, self.line_end)


def stream_head(request_id: str) -> bytes:
    """Return the head of a stream of events, which comes in chunks."""
    fields = {"transfer-encoding": "chunked", "cache-control": "no-cache"}
    return _head(200, "text/event-stream; charset=utf-8", request_id, fields)


def event_bytes(event: Mapping[str, Any], line_end: str = "\n") -> bytes:
    """Return an event as it is written, with its ``type`` as its name."""
    name = f"event: {event['type']}{line_end}data: ".encode()
    return name + encode_json(event) + (line_end * 2).encode()


def chunk(data: bytes) -> bytes:
    """Return a chunk of a body in chunked encoding. An empty one would end the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk() -> bytes:
    """Return what ends a body in chunked encoding."""
    return b"0\r\n\r\n"


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Return compact JSON in UTF-8, or in ASCII escapes if UTF-8 cannot carry it (a lone surrogate)."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _whole(
    body: bytes, request_id: str, status: int, content_type: str, headers: Mapping[str, str] | None = None
) -> bytes:
    framing = {"content-length": str(len(body)), **(headers or {})}
    return _head(status, content_type, request_id, framing) + body


def _head(status: int, content_type: str, request_id: str, headers: Mapping[str, str]) -> bytes:
    fields = {"content-type": content_type, "x-request-id": request_id}
    fields.update((name.lower(), value) for name, value in headers.items())
    lines = [f"HTTP/1.1 {status} {_phrase(status)}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _up_to(stage: Stage, body: Mapping[str, Any] | None, request_id: str) -> Iterator[bytes]:
    if stage == "request":
        return
    data = _body_bytes(body)
    yield _head(200, JSON, request_id, {"content-length": str(len(data))})
    if stage == "half_body":
        yield data[: len(data) // 2]


def _body_bytes(body: Mapping[str, Any] | None) -> bytes:
    return encode_json(bodies.searched() if body is None else body)


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def _spaced(writes: Sequence[bytes], interval: float) -> Iterator[Step]:
    for position, data in enumerate(writes):
        if position and interval:
            yield Pause(interval)
        yield data
