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
from typing import Any

import trio

from responses_mcp import testing
from responses_mcp.testing import RecordedRequest, Reply, as_stream, bodies
from responses_mcp.testing.replies import Step as Written
from responses_mcp.testing.replies import encode_json
from tests.lab.soak.plays import MOST_REQUESTS, Play, Step, find_play, repeats
from tests.lab.upstream import tell

FILLING = "0123456789abcde\n" * (1 << 16)  # 1 MB
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
            yield testing.Pause(self.seconds)
        yield testing.Ending.CLOSE


class Upstream:
    """What the requests get, and what is known of them."""

    def __init__(self) -> None:
        self.api: testing.FakeApi | None = None
        self.seen: Counter[str] = Counter()  # events of the fake API
        self.treated: Counter[str] = Counter()
        self.violations: list[str] = []
        self.calls: dict[int, tuple[int, str]] = {}  # how many requests of each, and how the last one was treated

    def reply(self, request: RecordedRequest) -> Reply:
        """Return what a request gets; note it when it should not have been made."""
        found = find_play(request.body)
        if found is None:
            self.violations.append(
                f"a request without a play: {request.method} {request.target} {request.body[:200]!r}"
            )
            return testing.Error(400)
        number, play = found
        step = self._next(number, play, search=b'"tool_choice"' in request.body)
        self.treated[step.kind] += 1
        chosen = _reply(step, number, streamed=b'"stream": true' in request.body)
        if step.kind == "limited":
            return chosen
        if step.kind == "idle":
            chosen = ThenClosed(chosen, IDLE[number % len(IDLE)])
        return replace(chosen, latency=step.ms / 1000)

    def _next(self, number: int, play: Play, *, search: bool) -> Step:
        count, last = self.calls.get(number, (0, ""))
        if count and not repeats(last, search=search):
            self.violations.append(f"call {number} asked again after {last!r}")
        if count >= MOST_REQUESTS:
            self.violations.append(f"call {number} made request {count + 1}")
        step = play[min(count, len(play) - 1)]
        self.calls[number] = (count + 1, step.kind)
        return step

    def observe(self, event: str, _: RecordedRequest) -> None:
        """Count; and keep the fake API from remembering every request of a long run."""
        self.seen[event] += 1
        if self.api is not None and len(self.api.requests) > KEPT:
            self.api.requests.clear()

    def figures(self) -> dict[str, Any]:
        """Return what is known."""
        assert self.api is not None
        return {
            "requests": self.seen["request"],
            "under_way": 2 * self.seen["request"] - self.seen.total(),
            "open": self.api.open_connections,
            "connections": self.api.connections,
            "hung_up": self.seen["hung_up"],
            "treated": dict(self.treated),
            "violations": self.violations[:20],
        }


def _body(kind: str, number: int) -> bodies.Body:
    if kind == "plain":
        return bodies.answer(f"The answer to #{number}.")
    url = f"https://example.com/{number}"
    text = f"The answer to #{number}: so it is ([example.com]({url})). {FILLING if kind == 'big' else ''}"
    search = bodies.web_search_call([f"number {number}"], [url, "https://example.org/"])
    return bodies.answer(text, annotations=[bodies.cite(text, url, f"About {number}")], searches=[search])


def _reply(step: Step, number: int, *, streamed: bool) -> Reply:
    said, body = f"This is for #{number}.", _body(step.kind, number)
    whole, failed = as_stream(body), bodies.failed("server_error", said)
    half, data = whole.events[: len(whole.events) // 2], encode_json(body)
    streams: dict[str, Reply] = {
        **dict.fromkeys(
            ("ok", "plain", "big", "zip", "idle"), replace(whole, chunk_bytes=8192 if number % 4 else None)
        ),
        "drip": replace(whole, interval=0.01),
        "unfinished": as_stream(failed),
        "cut": testing.Sse(half, ending="cut"),
        "short": testing.Sse(half),
        "hangbody": testing.Sse(half, ending="hang"),
    }
    replies: dict[str, Reply] = {
        **dict.fromkeys(("ok", "plain", "big", "idle"), testing.Json(body)),
        "zip": testing.Raw(gzip.compress(data, 1), headers={"content-encoding": "gzip"}),
        "drip": testing.Drip(body, chunk_bytes=len(data) // PIECES + 1, interval=0.02),
        "limited": testing.Error(429, said, retry_after_ms=str(step.ms)),
        "failed": testing.Error(500, said),
        "busy": testing.Error(503, said),
        "html": testing.Html(502),
        "unfinished": testing.Json(failed),
        "refused": testing.Error(400, said),
        "quota": testing.Error(429, said, code="insufficient_quota"),
        "notjson": testing.Raw(b'{"id": "resp_1", "output": [{"type": "mess'),
        "reset": testing.Reset(),
        "resethead": testing.Reset("headers"),
        "resetbody": testing.Reset("half_body"),
        **dict.fromkeys(("cut", "short"), testing.Truncated()),
        "closed": testing.Closed(),
        "garbage": testing.Garbage(),
        "hang": testing.Hang(),
        "hanghead": testing.Hang("headers"),
        "hangbody": testing.Hang("half_body"),
    }
    return streams[step.kind] if streamed and step.kind in streams else replies[step.kind]


async def main() -> None:
    upstream = Upstream()
    async with testing.open_fake_api(upstream.reply, observer=upstream.observe) as upstream.api:
        tell(upstream.api.base_url)
        async for line in trio.wrap_file(sys.stdin):
            serial, command = json.loads(line)
            tell(serial, upstream.figures())
            if command == "forget":
                upstream.calls.clear()


if __name__ == "__main__":
    trio.run(main)
