"""HTTP without sockets: replies from a list, so that time can be virtual."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import trio

from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import OpenAISettings, Profile, RequestSettings
from responses_mcp.testing import bodies


@dataclass
class Reply:
    """An HTTP reply, whole: what a stub plays, and what `network.ask` gives back."""

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers

    def feed(self, data: bytes) -> bool:
        self.pieces.append(data)
        return False


KEY = "sk-stub-0123456789abcdef"
Play: TypeAlias = Reply | BaseException | Callable[[], Awaitable[Reply]]


def ok(body: Mapping[str, Any] | None = None) -> Reply:
    return Reply(200, {}, [json.dumps(bodies.unsearched() if body is None else body).encode()])


def refused(status: int, code: str | None = None, **headers: str) -> Reply:
    body = {"error": {"message": "Said so.", "type": None, "param": None, "code": code}}
    return Reply(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, [json.dumps(body).encode()]
    )


def decoded(headers: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in headers.items()}


@dataclass
class Sent:
    url: str
    headers: Mapping[str, str]
    body: bytes
    at: float


@dataclass
class StubConnections:
    """Plays `script`, one entry for each request; the last one again and again."""

    script: list[Play]
    sent: list[Sent] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)
    closed: int = 0

    async def connect(self, url: str, limit: int) -> "StubConnections":
        self.connected.append((url, limit))
        await trio.lowlevel.checkpoint()
        return self

    async def send(self, request: Request, reader: Reader) -> None:
        await request.watcher.wait_for_room()
        await request.watcher.before_sending()
        # Recorded before the first checkpoint: a request that starts in a cancelled scope must show.
        self.sent.append(Sent(request.url, decoded(request.headers), request.body, trio.current_time()))
        await trio.lowlevel.checkpoint()
        play = self.script[min(len(self.sent), len(self.script)) - 1]
        if isinstance(play, BaseException):
            raise play
        reply = play if isinstance(play, Reply) else await play()
        reader.begin(reply.status, reply.headers)
        for piece in reply.pieces:
            await trio.lowlevel.checkpoint()
            if reader.feed(piece):
                return
            await request.watcher.wait_for_room()

    async def aclose(self) -> None:
        self.closed += 1
        await trio.lowlevel.checkpoint()

    @property
    def times(self) -> list[float]:
        """When the requests were sent, counted from the first."""
        return [round(sent.at - self.sent[0].at, 6) for sent in self.sent]


def stub_api(
    *script: Play,
    openai: OpenAISettings | None = None,
    timeout_ms: int = 300_000,
    max_retries: int = 3,
    random: float = 0.0,
    profiles: Mapping[str, Profile] = MappingProxyType({}),
) -> tuple[ResponsesApi, StubConnections]:
    stub = StubConnections(list(script) or [ok()])
    api = ResponsesApi(
        openai or OpenAISettings(api_key=KEY),
        RequestSettings(timeout_ms=timeout_ms, max_retries=max_retries),
        profiles=profiles,
        rng=lambda: random,
        connect=stub.connect,
    )
    return api, stub
