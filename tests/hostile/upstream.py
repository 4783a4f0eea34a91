"""An upstream that misbehaves as the corpus says, on sockets of this machine. By itself it is a program: it prints
its ports, then a line for each request that it got and each play that is over, as JSON.

A question `play TURN: NAME` gets that mode, from its first play; any other is answered as it should be, by an echo.
"""

from __future__ import annotations

import json
import socket
import ssl
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import trio
import trustme

from responses_mcp.testing import bodies
from tests.hostile import upstream_api, upstream_http
from tests.hostile.upstream_modes import HANG, RESET, Mode, Play, Times, reply
from tests.http_requests import Requests
from tests.responses_api.http.network import Stream, listening

MODES = [mode for group in (*upstream_http.GROUPS, *upstream_api.GROUPS) for mode in group.modes]
BY_NAME = {mode.name: mode for mode in MODES}
LISTENING = 64 * 1024
AT_ONCE = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # a close throws the connection away


@dataclass
class Ledger:
    """What the upstream said it saw: the members of each request's body, and how many plays are not over."""

    asked: defaultdict[str, list[list[str]]] = field(default_factory=lambda: defaultdict(list))
    playing: Counter[str] = field(default_factory=Counter)
    news: trio.Event = field(default_factory=trio.Event)

    def note(self, name: str, members: list[str] | None) -> None:
        self.playing[name] += -1 if members is None else 1
        if members is not None:
            self.asked[name].append(members)
        self.news.set()
        self.news = trio.Event()

    async def over(self, name: str) -> None:
        """Wait until every play of that mode has ended, the hanging ones by the client's end."""
        while self.playing[name]:
            await self.news.wait()


class Connection:
    """One connection: reads requests and plays what they ask for."""

    def __init__(self, stream: Stream, made: Counter[str], note: Callable[[str, list[str] | None], None]) -> None:
        self.stream = stream
        self.made = made
        self.note = note
        self.requests = Requests()
        self.ahead: list[tuple[bytes, bytes]] = []

    async def serve(self) -> None:
        while (request := await self._request()) is not None:
            body = json.loads(request)
            question = body["input"].partition("\n")[0]
            turn, _, name = question.partition(": ")
            mode = BY_NAME[name] if turn.startswith("play ") else None
            plays = mode.plays if mode else ((reply(bodies.echo(body)),),)
            if not await self.play(question, name if mode else question, sorted(body), plays):
                return

    async def _request(self) -> bytes | None:
        while not self.ahead:
            data = await self.stream.receive_some(LISTENING)
            if not data:
                return None
            self.ahead += self.requests.feed(bytes(data))
        return self.ahead.pop(0)[1]

    async def play(self, turn: str, name: str, members: list[str], plays: tuple[Play, ...]) -> bool:
        """Play to the end, or until the client is gone; tell whether the connection goes on."""
        play = plays[min(self.made[turn], len(plays) - 1)]
        self.made[turn] += 1
        self.note(name, members)
        goes_on = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            with suppress(trio.BrokenResourceError):
                goes_on = await self._perform(play)
            nursery.cancel_scope.cancel()
        self.note(name, None)
        return goes_on

    async def _watch(self, playing: trio.CancelScope) -> None:
        with suppress(trio.BrokenResourceError):
            while data := await self.stream.receive_some(LISTENING):
                self.ahead += self.requests.feed(bytes(data))
        playing.cancel()

    async def _perform(self, play: Play) -> bool:
        for step in play:
            if isinstance(step, bytes):
                await self.stream.send_all(step)
            elif isinstance(step, float | int):
                await trio.sleep(step)
            elif isinstance(step, Times):
                left = step.count
                while left is None or left > 0:
                    await self.stream.send_all(step.piece)
                    await trio.sleep(step.pause)
                    left = None if left is None else left - 1
            elif step == HANG:
                await trio.sleep_forever()
            else:
                if step == RESET:
                    plain = self.stream.transport_stream if isinstance(self.stream, trio.SSLStream) else self.stream
                    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                return False
        return True


@dataclass
class Upstream:
    """Where the modes are served: those over TLS on a port each."""

    plain: int
    over_tls: dict[str, int]

    def base_url(self, mode: Mode) -> str:
        if mode.tls:
            return f"https://localhost:{self.over_tls[mode.name]}/v1"
        return f"http://127.0.0.1:{self.plain}/v1"


@asynccontextmanager
async def open_upstream(ca: trustme.CA, note: Callable[[str, list[str] | None], None]) -> AsyncGenerator[Upstream]:
    """Serve every mode; `note` is told of requests and of the ends of plays."""
    made: Counter[str] = Counter()
    certificates = {
        "good": ca.issue_cert("localhost"),
        "wrong name": ca.issue_cert("api.example.com"),
        "expired": ca.issue_cert(
            "localhost", not_before=datetime(2020, 1, 1, tzinfo=UTC), not_after=datetime(2021, 1, 1, tzinfo=UTC)
        ),
    }
    contexts = {name: ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) for name in certificates}
    for name, certificate in certificates.items():
        certificate.configure_cert(contexts[name])

    async def serve(stream: Stream) -> None:
        await Connection(stream, made, note).serve()

    async def serve_raw(mode: Mode, stream: Stream) -> None:
        if await stream.receive_some(LISTENING):
            await Connection(stream, made, note).play(mode.name, mode.name, [], mode.plays)

    async def serve_distrusted(mode: Mode, stream: Stream) -> None:
        note(mode.name, [])
        try:
            await serve(stream)
        finally:
            note(mode.name, None)

    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(listening(serve))
        ports: dict[str, int] = {}
        for mode in MODES:
            if mode.tls:
                serve_it = (
                    serve if mode.tls == "good" else partial(serve_raw if mode.tls == "raw" else serve_distrusted, mode)
                )
                ports[mode.name] = await stack.enter_async_context(listening(serve_it, contexts.get(mode.tls)))
        yield Upstream(plain, ports)


async def main() -> None:
    ca = trustme.CA()
    ca.cert_pem.write_to_path(sys.argv[1])

    def say(*what: object) -> None:
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    async with open_upstream(ca, say) as upstream:
        say(upstream.plain, upstream.over_tls)
        await trio.to_thread.run_sync(sys.stdin.read, abandon_on_cancel=True)


if __name__ == "__main__":
    trio.run(main)
