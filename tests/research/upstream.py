"""The API that keeps responses, played in Trio's time without sockets as the fake would, and runs asked of it."""

import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from responses_mcp.errors import ConnectionFailed
from responses_mcp.research.runs import InThread, Research, open_research
from responses_mcp.research.runs_file import FILE
from responses_mcp.research.view import RunView
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import OpenAISettings, PolicySettings, RequestSettings, ResearchSettings, Settings
from responses_mcp.testing import Faults, Reply, StoredResponses
from responses_mcp.testing.replies import Ending, Pause
from responses_mcp.usage.meter import Meter

KEY = "sk-research-0123456789abcdef"
BASE = "https://api.test/v1"


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    json: Any
    at: float

    @property
    def kind(self) -> str:
        """In a word: ask, stream, look or cancel."""
        if self.path == "/responses":
            return "ask"
        return "cancel" if self.path.endswith("/cancel") else "stream" if "stream=true" in self.path else "look"


@dataclass
class Upstream:
    """Connections to an API with `stored` behind it. `script` comes first; a reply of it may be an exception.

    `cancels` is what requests to cancel are answered with, if not by `stored`.
    """

    stored: StoredResponses = field(default_factory=StoredResponses)
    script: list[Reply | BaseException] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    cancels: Reply | None = None
    latency: float = 0.0
    open: int = 0

    async def connect(self, url: str, limit: int) -> "Upstream":
        await trio.lowlevel.checkpoint()
        return self

    async def send(self, request: Request, reader: Reader) -> None:
        await request.watcher.wait_for_room()
        await request.watcher.before_sending()
        asked = self._read(request)
        self.asked.append(asked)
        self.open += 1
        try:
            await trio.lowlevel.checkpoint()
            await self._play(self._reply(asked), reader)
        finally:
            self.open -= 1

    def _read(self, request: Request) -> Asked:
        path = request.url.removeprefix(BASE)
        return Asked(request.method, path, json.loads(request.body or b"null"), trio.current_time())

    def _reply(self, asked: Asked) -> Reply:
        if self.script:
            reply = self.script.pop(0)
            if isinstance(reply, BaseException):
                raise reply
            return reply
        if asked.kind == "cancel" and self.cancels is not None:
            return self.cancels
        if asked.kind == "ask":
            return self.stored.create(asked.json)
        return self.stored.answer(asked.method, asked.path.removeprefix("/responses/"))

    async def _play(self, reply: Reply, reader: Reader) -> None:
        if reply.latency or self.latency:
            await trio.sleep(reply.latency or self.latency)
        head, chunked = b"", False
        for step in reply.steps("req_1"):
            if isinstance(step, Pause):
                await trio.sleep(step.seconds)
            elif step is Ending.HANG:
                await trio.sleep_forever()
            elif not isinstance(step, bytes):
                raise ConnectionFailed("The connection broke.", maybe_paid=True)
            elif not head:
                head, _, body = step.partition(b"\r\n\r\n")
                first, *lines = head.decode().split("\r\n")
                headers = dict(line.split(": ", 1) for line in lines)
                chunked = "transfer-encoding" in headers
                reader.begin(int(first.split()[1]), headers)
                if body and reader.feed(body):
                    return
            else:
                data = step.partition(b"\r\n")[2].removesuffix(b"\r\n") if chunked else step
                await trio.lowlevel.checkpoint()
                if data and reader.feed(data):
                    return

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()

    @property
    def kinds(self) -> list[str]:
        return [asked.kind for asked in self.asked]

    def of(self, kind: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.kind == kind]

    def api(self, *, max_retries: int = 3) -> ResponsesApi:
        request = RequestSettings(max_retries=max_retries)
        profiles = Settings().model_profiles
        return ResponsesApi(OPENAI, request, profiles=profiles, rng=lambda: 0.0, connect=self.connect)


OPENAI = OpenAISettings(base_url=BASE, api_key=KEY)


def slow(interval: float = 1.0, **faults: Any) -> Upstream:
    """Return an API whose responses take seconds, with what goes wrong."""
    upstream = Upstream()
    upstream.stored.interval = interval
    upstream.stored.faults = Faults(**faults)
    return upstream


async def at_once(work: Callable[[], Any]) -> Any:
    """Run what belongs into a thread here, because virtual time does not wait for threads."""
    await trio.lowlevel.checkpoint()
    try:
        return work()
    finally:
        await trio.lowlevel.cancel_shielded_checkpoint()


def settings_for(folder: Path, **research: Any) -> Settings:
    return Settings(
        openai=OPENAI,
        policy=PolicySettings(instructions="Be brief."),
        research=ResearchSettings(state_dir=str(folder), **research),
    )


@asynccontextmanager
async def researching(
    upstream: Upstream,
    folder: Path,
    *,
    max_retries: int = 3,
    settings: Settings | None = None,
    meter: Meter | None = None,
    in_thread: InThread = at_once,
    **research: Any,
) -> AsyncGenerator[Research]:
    """Open research on a folder in virtual time, whose clock starts at a billion seconds."""
    async with open_research(
        settings or settings_for(folder, **research),
        api=upstream.api(max_retries=max_retries),
        meter=meter,
        in_thread=in_thread,
        clock=lambda: 1e9 + trio.current_time(),
    ) as opened:
        yield opened


async def ended(research: Research, run_id: str, seconds: float = 5000.0) -> RunView:
    view = await research.result(run_id, wait_seconds=seconds)
    assert not view.running, view
    return view


async def asked_and_ended(upstream: Upstream, folder: Path, **options: Any) -> RunView:
    async with researching(upstream, folder, **options) as research:
        return await ended(research, await research.start("why?"))


async def taken_up(upstream: Upstream, folder: Path, run_id: str) -> RunView:
    """Have the next server tell how a run ends."""
    async with researching(upstream, folder) as research:
        return await ended(research, run_id)


async def after(steps: int) -> None:
    """Let others go on for so many steps."""
    for _ in range(steps):
        await trio.lowlevel.checkpoint()


def in_file(folder: Path, sql: str, *given: Any) -> list[tuple[Any, ...]]:
    """Read or write the file of runs as no server does."""
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        return connection.execute(sql, given).fetchall()


def written_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*"))
