"""The words in which the misbehaviour of an upstream is written down: steps of a play, modes, and bytes of replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from responses_mcp.testing import bodies

KEY = "canary/7d0c+59e1a2f34b68"  # what no client may ever see
TRACE = KEY[-12:]  # of it, in whatever form it was quoted

# What a call may become, as patterns that match its beginning.
FINE = r"answer: Fine\."
ANSWERED = r"answer: "
FAILED = r"error: (?!No answer within)"
PAID = r"error: .*may have been paid for"
LATE = r"error: No answer within"
LONG = r"error: .*(longer|larger|more) than"
NO_JSON = r"error: .*not a JSON object"


@dataclass(frozen=True)
class Times:
    """The same bytes again and again; without a count until nobody listens, with seconds between."""

    piece: bytes
    count: int | None = None
    pause: float = 0.0


CLOSE, RESET, HANG = "close", "reset", "hang"
Step: TypeAlias = bytes | float | Times | str
"""Bytes to send, seconds to wait, or what becomes of the connection; after the last step the next request is read."""

Play: TypeAlias = tuple[Step, ...]


@dataclass(frozen=True)
class Mode:
    """What each request gets (the last play serves all further), what the call must become, and for how many requests.

    `seconds` is the call's deadline. `tls` names the certificate; "raw" is no TLS at all on its port. `loses` are
    members that later requests go without; `strict` filters by a domain.
    """

    name: str
    becomes: str
    plays: tuple[Play, ...]
    requests: int = 1
    seconds: float = 20.0
    tls: str = ""
    loses: tuple[str, ...] = ()
    strict: bool = False

    @property
    def group(self) -> str:
        return self.name.partition(":")[0]


@dataclass(frozen=True)
class Group:
    """Makes modes of one group, from the plays of the first request and, if they differ, of those after it."""

    name: str
    modes: list[Mode] = field(default_factory=list)

    def __call__(self, name: str, becomes: str, *steps: Step, then: bytes | None = None, **more: Any) -> None:
        plays, requests = ((steps,), 1) if then is None else ((steps, (then,)), 2)
        self.modes.append(Mode(f"{self.name}: {name}".strip(), becomes, plays, **{"requests": requests, **more}))

    def stream(self, name: str, becomes: str, *steps: Step, **more: Any) -> None:
        """Add a mode whose reply is an event stream that ends as it should."""
        self(name, becomes, *stream(*steps), **more)


# Bytes


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


def head(*headers: str, status: object = 200, kind: str = "application/json") -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", *([f"Content-Type: {kind}"] if kind else []), *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def reply(body: object, *headers: str, status: object = 200, kind: str = "application/json") -> bytes:
    """Return a reply whose length is right, unless a header tells another."""
    raw = body if isinstance(body, bytes) else dumped(body)
    told = any(header.lower().startswith(("content-length", "transfer-encoding")) for header in headers)
    return head(*headers, *(() if told else (f"Content-Length: {len(raw)}",)), status=status, kind=kind) + raw


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunks(data: bytes, size: int) -> bytes:
    return b"".join(chunk(data[at : at + size]) for at in range(0, len(data), size))


def lasting(before: bytes, piece: bytes, count: int, behind: bytes, *headers: str, status: object = 200) -> Play:
    """Return a reply whose body is too long to be put together."""
    length = len(before) + len(piece) * count + len(behind)
    return (head(f"Content-Length: {length}", *headers, status=status), before, Times(piece, count), behind)


def event(kind: Any, *, end: str = "\n", named: str | None = "", **members: Any) -> bytes:
    """Return an event; `named` is what its `event:` line says instead, None for none."""
    line = "" if named is None else f"event: {named or kind}{end}"
    return f"{line}data: {json.dumps({'type': kind, **members})}{end}{end}".encode()


def stream(*steps: Step, kind: str = "text/event-stream", last: tuple[Step, ...] = (b"0\r\n\r\n",)) -> Play:
    """Return a chunked event stream; each step is a chunk, and `last` ends it."""
    return (head("Transfer-Encoding: chunked", kind=kind), *map(_in_chunks, steps), *last)


def _in_chunks(step: Step) -> Step:
    if isinstance(step, Times):
        return Times(chunk(step.piece), step.count, step.pause)
    return chunk(step) if isinstance(step, bytes) else step


def error(message: object = "No.", **members: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **members}}


ANSWER = bodies.answer("Fine.")
OK = reply(ANSWER)
CREATED = event("response.created", response={**ANSWER, "status": "in_progress", "output": []})
COMPLETED = event("response.completed", response=ANSWER)
