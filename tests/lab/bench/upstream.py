"""The API that is asked while servers are measured: `python -m tests.lab.bench.upstream`, a process of its own.

It shares the processors with the server, so it does next to nothing: replies are made beforehand, and only the number
of the question is put in. A question holds `bench WHAT NUMBER`, with a NUMBER of eight digits. WHAT is the milliseconds
that the answer takes, or `hang` for none at all, `large` for a reply of 1 MB, which waits for `release`, `json`
and `stream` for one long answer in two forms. As the API does, the upstream streams an answer if the request asks for
that; `json` and `large` never are, and `stream` is refused otherwise. Every answer repeats the NUMBER, so that one given
to the wrong call is found.

Its commands (`tests.lab.upstream`): `open COUNT` and `hung COUNT` are answered once so many requests hang, or so many of
them were hung up by their peer, with the time at which the last one did, by `time.monotonic`, which all processes share.
`release` sends the large replies, one right after the other. `reset` begins to count anew: what hangs then is not counted
any more. It ends with its input.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial

from responses_mcp.testing import Sse, bodies, stream_events
from tests.http_requests import Requests
from tests.lab.bench.subjects import raise_file_limit
from tests.lab.upstream import tell

LARGE = 1_000_000  # bytes of a reply to `large`
DELTAS = 300  # of the stream
NO_STREAM = "no stream was asked for"

QUESTION = re.compile(rb"bench (\d{1,5}|hang|large|json|stream) (\d{8})")
STREAMED = re.compile(rb'"stream": ?true')
NUMBER = "#number#"  # stands for the number in a reply that is made beforehand, and is as long


class Replies:
    """HTTP responses that lack nothing but their number."""

    def __init__(self) -> None:
        question = {"input": f"bench {NUMBER}", "include": ["web_search_call.action.sources"]}
        answer, several = bodies.echo(question), many_words()
        self._answer, self._streamed = _json(answer), _stream(stream_events(answer))
        self._others = {b"large": _json(many_items()), b"json": _json(several), b"stream": _stream(deltas(several))}
        self._refusal = _json({"error": {"message": NO_STREAM}}, "400 Bad Request")

    def reply(self, what: bytes, number: bytes, *, streamed: bool) -> bytes:
        if what == b"stream" and not streamed:
            return number.join(self._refusal)
        return number.join(self._others.get(what, self._streamed if streamed else self._answer))


def _json(body: bodies.Body, status: str = "200 OK") -> list[bytes]:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return (head.encode() + data).split(NUMBER.encode())


def _stream(events: list[bodies.Body]) -> list[bytes]:
    """Return a stream in which each event is a chunk."""
    steps = Sse(events).steps("req_bench")
    return b"".join(step for step in steps if isinstance(step, bytes)).split(NUMBER.encode())


def deltas(body: bodies.Body) -> list[bodies.Body]:
    """Return the events of an answer of which each word is a delta."""
    words = re.findall(r"\S+\s*", body["output"][-1]["content"][0]["text"])
    delta = "response.output_text.delta"
    events: list[bodies.Body] = []
    for event in stream_events(body):
        if event["type"] != delta:
            events.append(event)
        elif events[-1]["type"] != delta:
            events += [{**event, "delta": word} for word in words]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def found(number: int, pages: int) -> bodies.Body:
    """Return a search with so many sources."""
    urls = [f"https://www.example.com/{number:05d}/a-page-that-was-found/{page:03d}.html" for page in range(pages)]
    return bodies.web_search_call([f"query {number}", "the same in other words"], urls)


def answer(text: str, before: list[bodies.Body]) -> bodies.Body:
    text = f"The answer to: bench {NUMBER} ([example.com](https://www.example.com/)){text}"
    annotations = [bodies.cite(text, "https://www.example.com/", "An example")]
    return bodies.answer(text, annotations=annotations, searches=before)


def many_words() -> bodies.Body:
    """Return an answer of `DELTAS` words after a search."""
    return answer(" word" * (DELTAS - 6), [bodies.reasoning(), found(0, 20)])


def many_items() -> bodies.Body:
    """Return a short answer after searches with long lists of sources and as much about them, 1 MB of JSON in all."""

    def group(number: int) -> list[bodies.Body]:
        search = found(number, 250)
        return [bodies.reasoning(["A thought. " * (len(json.dumps(search)) // 11)]), search]

    wanted = LARGE // len(json.dumps(group(0)))
    return answer("", [item for number in range(wanted) for item in group(number)])


class Counts:
    """The requests that hang, and what somebody waits for them to do."""

    def __init__(self) -> None:
        self._seen = {"open": 0, "hung": 0}
        self._at = dict.fromkeys(self._seen, 0.0)
        self._wanted: tuple[int, str, int] | None = None

    def add(self, what: str, more: int) -> None:
        self._at[what] = time.monotonic()
        self._seen[what] += more
        self._look()

    def want(self, serial: int, what: str, least: int) -> None:
        self._wanted = serial, what, least
        self._look()

    def _look(self) -> None:
        if self._wanted:
            serial, what, least = self._wanted
            if self._seen[what] >= least:
                self._wanted = None
                tell(serial, self._at[what])


class Connection(asyncio.Protocol):
    """One connection of a peer."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._requests = Requests()
        self._hanging: list[Counts] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for head, body in self._requests.feed(data):
            if not head.startswith(b"POST /v1/responses "):
                self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                continue
            question = QUESTION.search(body)
            what, number = question.groups() if question else (b"0", b"00000000")
            reply = self._api.replies.reply(what, number, streamed=STREAMED.search(body) is not None)
            if what == b"large":
                self._api.held.append(partial(self._write, reply))
            if what in (b"hang", b"large"):
                self._hanging.append(self._api.counts)
                self._api.counts.add("open", 1)
            elif what.isdigit() and int(what):
                asyncio.get_running_loop().call_later(int(what) / 1000, self._write, reply)
            else:
                self._transport.write(reply)

    def _write(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        hanging, self._hanging = self._hanging, []
        for counts in hanging:
            counts.add("hung", 1)


class Api:
    """All connections, and the commands."""

    def __init__(self) -> None:
        self.replies = Replies()
        self.held: list[Callable[[], None]] = []
        # Those who hang keep the counts that they began in, so that none of an earlier measure is counted again.
        self.counts = Counts()

    async def serve(self) -> None:
        """Tell where it listens and serve until stdin ends."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(self), "127.0.0.1", 0, backlog=4096)
        commands = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
        tell(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1")
        async for line in commands:
            self.obey(*json.loads(line))

    def obey(self, serial: int, what: str, least: int = 0) -> None:
        """Do what a command says."""
        if what == "release":
            for write in self.held:
                write()
            self.held.clear()
        elif what == "reset":
            self.counts = Counts()
        self.counts.want(serial, "hung" if what == "hung" else "open", least)


def main() -> None:
    raise_file_limit()
    api = Api()
    gc.collect()
    gc.freeze()  # what made the replies is no affair of later collections
    asyncio.run(api.serve())


if __name__ == "__main__":
    main()
