"""The fake API of the soak, a process of its own: each request is treated as its question says.

Its commands (`tests.lab.upstream`): `figures` is answered with the figures so far; `forget` also forgets the calls that
were seen, which are over by then. It ends with its input.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import trio

from responses_mcp.testing import (
    Closed,
    Drip,
    Ending,
    Error,
    FakeApi,
    Garbage,
    Hang,
    Html,
    Json,
    Pause,
    Raw,
    RecordedRequest,
    Reply,
    Reset,
    Sse,
    Truncated,
    as_stream,
    bodies,
    open_fake_api,
)
from responses_mcp.testing.replies import Step as Written
from responses_mcp.testing.replies import encode_json
from tests.lab.soak.plays import MOST_REQUESTS, Play, Step, find_play, repeats
from tests.lab.upstream import tell

BIG = 1 << 20
KEPT = 500  # requests that the fake API remembers
IDLE = (0.0, 0.0, 0.0, 0.3)  # seconds until the connection of an answer is closed
PIECES = 6  # in which a dripping answer comes


@dataclass(frozen=True)
class ThenClosed(Reply):
    """A reply, and a moment later the end of its connection, which its client may be using again by then."""

    reply: Reply
    seconds: float

    def steps(self, request_id: str) -> Iterator[Written]:
        yield from self.reply.steps(request_id)
        if self.seconds:
            yield Pause(self.seconds)
        yield Ending.CLOSE


class Upstream:
    """What the requests get, and what is known of them."""

    def __init__(self) -> None:
        self.api: FakeApi | None = None
        self.requests = self.under_way = self.hung_up = self.idle_closes = 0
        self.treated: Counter[str] = Counter()
        self.violations: list[str] = []
        self._seen: dict[int, tuple[int, str]] = {}  # how many requests of a call, and how the last one was treated

    def reply(self, request: RecordedRequest) -> Reply:
        """Return what a request gets; note it when it should not have been made."""
        found = find_play(request.body)
        if found is None:
            self.violations.append(
                f"a request without a play: {request.method} {request.target} {request.body[:200]!r}"
            )
            return Error(400)
        number, play = found
        step = self._next(number, play, search=b'"tool_choice"' in request.body)
        self.treated[step.kind] += 1
        if step.kind == "idle":
            self.idle_closes += 1
            return ThenClosed(_answer("ok", number, request), IDLE[number % len(IDLE)], latency=step.ms / 1000)
        chosen = _answer(step.kind, number, request) if step.kind in _ANSWERS else _fault(step, number, request)
        return chosen if step.kind == "limited" else replace(chosen, latency=step.ms / 1000)

    def _next(self, number: int, play: Play, *, search: bool) -> Step:
        count, last = self._seen.get(number, (0, ""))
        if count and not repeats(last, search=search):
            self.violations.append(f"call {number} asked again after {last!r}")
        if count >= MOST_REQUESTS:
            self.violations.append(f"call {number} made request {count + 1}")
        step = play[min(count, len(play) - 1)]
        self._seen[number] = (count + 1, step.kind)
        return step

    def observe(self, event: str, _: RecordedRequest) -> None:
        """Count; and keep the fake API from remembering every request of a long run."""
        if event == "request":
            self.requests += 1
            self.under_way += 1
            if self.api is not None and len(self.api.requests) > KEPT:
                self.api.requests.clear()
        else:
            self.under_way -= 1
            self.hung_up += event == "hung_up"

    def figures(self) -> dict[str, Any]:
        """Return what is known."""
        assert self.api is not None
        return {
            "requests": self.requests,
            "under_way": self.under_way,
            "open": self.api.open_connections,
            "connections": self.api.connections,
            "hung_up": self.hung_up,
            "idle_closes": self.idle_closes,
            "treated": dict(self.treated),
            "violations": self.violations[:20],
        }

    def forget(self) -> None:
        """Forget the calls, which are over."""
        self._seen.clear()


_ANSWERS = ("ok", "plain", "big", "zip", "drip")


def _answer(kind: str, number: int, request: RecordedRequest) -> Reply:
    streamed = b'"stream": true' in request.body
    body = _body(kind, number)
    if streamed:
        stream = as_stream(body)
        return (
            replace(stream, interval=0.01)
            if kind == "drip"
            else replace(stream, chunk_bytes=8192 if number % 4 else None)
        )
    if kind == "drip":
        return Drip(body, chunk_bytes=len(encode_json(body)) // PIECES + 1, interval=0.02)
    if kind == "zip":
        return Raw(gzip.compress(encode_json(body), 1), headers={"content-encoding": "gzip"})
    return Json(body)


def _body(kind: str, number: int) -> bodies.Body:
    if kind == "plain":
        return bodies.answer(f"The answer to #{number}.")
    url = f"https://example.com/{number}"
    text = f"The answer to #{number}: so it is ([example.com]({url})). {_filling() if kind == 'big' else ''}"
    search = bodies.web_search_call([f"number {number}"], [url, "https://example.org/"])
    return bodies.answer(text, annotations=[bodies.cite(text, url, f"About {number}")], searches=[search])


@cache
def _filling() -> str:
    return "0123456789abcde\n" * (BIG // 16)


def _fault(step: Step, number: int, request: RecordedRequest) -> Reply:
    kind = step.kind
    streamed = b'"stream": true' in request.body
    if streamed and kind in ("cut", "short", "hangbody"):
        whole = as_stream(_body("ok", number))
        half = whole.events[: len(whole.events) // 2]
        endings = {"cut": "cut", "short": "complete", "hangbody": "hang"}
        return Sse(half, ending=endings[kind])  # type: ignore[arg-type]  # it is one of the three
    said = f"This is for #{number}."
    failed = bodies.failed("server_error", said)
    replies: dict[str, Reply] = {
        "limited": Error(429, said, retry_after_ms=str(step.ms)),
        "failed": Error(500, said),
        "busy": Error(503, said),
        "html": Html(502),
        "unfinished": as_stream(failed) if streamed else Json(failed),
        "refused": Error(400, said),
        "quota": Error(429, said, code="insufficient_quota"),
        "notjson": Raw(b'{"id": "resp_1", "output": [{"type": "mess'),
        "reset": Reset(),
        "resethead": Reset("headers"),
        "resetbody": Reset("half_body"),
        "cut": Truncated(),
        "short": Truncated(),
        "closed": Closed(),
        "garbage": Garbage(),
        "hang": Hang(),
        "hanghead": Hang("headers"),
        "hangbody": Hang("half_body"),
    }
    return replies[kind]


async def main() -> None:
    upstream = Upstream()
    async with open_fake_api(upstream.reply, observer=upstream.observe) as upstream.api:
        tell(upstream.api.base_url)
        async for line in trio.wrap_file(sys.stdin):
            serial, command = json.loads(line)
            tell(serial, upstream.figures())
            if command == "forget":
                upstream.forget()


if __name__ == "__main__":
    trio.run(main)
