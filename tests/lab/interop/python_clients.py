"""The Python clients that are installed, `mcp` 1 and 2 and FastMCP, and what each is asked to do, as js/checks.mjs has it."""

import asyncio
import json
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import uuid4

import pytest

from tests.lab.interop.fake import Fake
from tests.lab.interop.server import Client, Line, Server

WAIT = 60.0  # seconds; a bound for a stuck machine, not an expectation
MODERN = "2026-07-28"
GIVEN_UP = ("cancel", "time limit")
OTHERS = ("connect", "list", "call", "progress", "tool error", "five at once")
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


# Imported by name: no environment has them all, and that of the type checker has none of them.
def installed(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version(package).split(".")[:2])
    except PackageNotFoundError:
        return ()


SDK, FASTMCP = installed("mcp"), installed("fastmcp")


def _either(result: Any, name: str, older: str) -> Any:
    return getattr(result, name) if hasattr(result, name) else getattr(result, older)


class Connection:
    """An open connection. `limit` is the client's own time limit for a call, in seconds."""

    def __init__(self, client: Any, *, modern: bool) -> None:
        self._client = client
        self._modern = modern

    async def tools(self) -> list[dict[str, Any]]:
        listed = await self._client.list_tools()
        tools = listed if isinstance(listed, list) else listed.tools
        return [json.loads(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in tools]

    async def call(
        self, query: str, *, tool: str = "answer", progress: Progress | None = None, limit: float | None = None
    ) -> Line:
        arguments = {"query": query}
        options: dict[str, Any] = {"progress_callback": progress, "read_timeout_seconds": limit}
        if FASTMCP:
            options = {"progress_handler": progress, "timeout": limit}
        elif SDK < (2,) and limit is not None:
            options["read_timeout_seconds"] = timedelta(seconds=limit)
        result = await self._client.call_tool(tool, arguments, **options)
        return {
            "structured": _either(result, "structured_content", "structuredContent"),
            "text": result.content[0].text,
            "isError": _either(result, "is_error", "isError"),
        }

    async def still_serves(self) -> None:
        """Fail unless the connection works: a ping, which only the legacy revision has, and a call."""
        if not self._modern:
            await getattr(self._client, "ping" if FASTMCP else "send_ping")()
        assert not (await self.call("Still there?"))["isError"]


async def failure(call: Awaitable[Line]) -> Line:
    """Return what became of a call: its result, or its error in words and the data of that."""
    try:
        return {"result": await call}
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # each client has its own
        data = getattr(getattr(error, "error", error), "data", None)
        return {"error": f"{type(error).__name__}: {error}", "data": data}


@dataclass(frozen=True)
class Checks:
    """What a client is asked to do in a connection. Calls that it gives up without a cancel are kept as `left`."""

    connection: Connection
    fake: Fake
    cancels: bool
    left: list[str] = field(default_factory=list[str])

    async def connect(self) -> Line:
        await self.connection.still_serves()
        return {}

    async def list(self) -> Line:
        return {"tools": await self.connection.tools()}

    async def call(self) -> Line:
        tools = ("answer", "answer_detailed", "answer_quick")
        return {"answers": {tool: await self.connection.call(f"{tool}: 東京の天気は？", tool=tool) for tool in tools}}

    async def progress(self) -> Line:
        heard: list[Line] = []

        async def hear(value: float, total: float | None, message: str | None) -> None:
            heard.append({"progress": value, "message": message})

        return {"answer": await self.connection.call("Tell me slowly.", progress=hear), "heard": heard}

    async def cancel(self) -> Line:
        query = f"Cancelled, so never answered: {uuid4()}"
        call = asyncio.create_task(self.connection.call(query))
        await asyncio.to_thread(self.fake.wait_request, query)
        call.cancel()
        return await self._given_up(call, query)

    async def time_limit(self) -> Line:
        query = f"Over the limit, so never answered: {uuid4()}"
        return await self._given_up(self.connection.call(query, limit=2), query)

    async def _given_up(self, call: Awaitable[Line], query: str) -> Line:
        outcome = await failure(call)
        if self.cancels:
            await asyncio.to_thread(self.fake.wait_hang_up, query)
        else:
            self.left.append(query)
        await self.connection.still_serves()
        return outcome

    async def tool_error(self) -> Line:
        outcome = await failure(self.connection.call(""))
        await self.connection.still_serves()
        return outcome

    async def five_at_once(self) -> Line:
        queries = [f"question {number}." for number in range(5)]
        return {"answers": dict(zip(queries, await asyncio.gather(*map(self.connection.call, queries)), strict=True))}


Open = Callable[[Server], AbstractAsyncContextManager[Connection]]


async def conduct(
    opened: AbstractAsyncContextManager[Connection], fake: Fake, cancels: bool, names: Sequence[str]
) -> Line:
    """Let a client do some checks in one connection; return its line for each."""
    found: Line = {}
    async with asyncio.timeout(WAIT), opened as connection:
        checks = Checks(connection, fake, cancels)
        for check in names:
            try:
                found[check] = await getattr(checks, check.replace(" ", "_"))()
            except Exception:  # noqa: BLE001  # told of its own check
                found[check] = {"failed": traceback.format_exc()}
    for query in checks.left:
        fake.wait_hang_up(query)
    return found


def clients() -> list[Client]:
    """Return what is installed here. FastMCP brings the SDK with it, and is then the one to be tried."""

    def made(name: str, opened: Open, modern: bool, probes: bool, cancels: bool = True) -> Client:
        def run(server: Server, request: pytest.FixtureRequest) -> Line:
            fake: Fake = request.getfixturevalue("fake")
            found: Line = {"close": {}}
            # What is not cancelled is still in flight when the client leaves: it gets a connection of its own.
            for names in [[*GIVEN_UP, *OTHERS]] if cancels else [GIVEN_UP, OTHERS]:
                found |= asyncio.run(conduct(opened(server), fake, cancels, names))
            return found

        return Client(name, run, modern, probes, cancels)

    release = ".".join(map(str, FASTMCP or SDK))
    modes = [("auto", True, True), ("legacy", False, False), (MODERN, True, False)]
    if FASTMCP:
        return [made(f"FastMCP {release}, {mode}", _fastmcp(mode), *revision) for mode, *revision in modes]
    if not SDK:
        return []
    session = made(f"mcp {release} ClientSession", _session, False, False, cancels=SDK >= (2,))
    others = [made(f"mcp {release} Client, {mode}", _client(mode), *revision) for mode, *revision in modes]
    return [session, *(others if SDK >= (2,) else ())]


def _parameters(server: Server) -> Any:
    return import_module("mcp").StdioServerParameters(command=server.command, args=server.arguments, env=server.env)


@asynccontextmanager
async def _session(server: Server) -> AsyncGenerator[Connection]:
    mcp = import_module("mcp")
    async with mcp.stdio_client(_parameters(server)) as (read, write), mcp.ClientSession(read, write) as session:
        await session.initialize()
        yield Connection(session, modern=False)


def _client(mode: str) -> Callable[[Server], AbstractAsyncContextManager[Connection]]:
    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[Connection]:
        async with import_module("mcp").Client(_parameters(server), mode=mode) as client:
            yield Connection(client, modern=mode != "legacy")

    return opened


def _fastmcp(mode: str) -> Callable[[Server], AbstractAsyncContextManager[Connection]]:
    @asynccontextmanager
    async def opened(server: Server) -> AsyncGenerator[Connection]:
        transports = import_module("fastmcp.client.transports")
        transport = transports.StdioTransport(server.command, server.arguments, env=server.env, keep_alive=False)
        async with import_module("fastmcp").Client(transport, mode=mode) as client:
            yield Connection(client, modern=mode != "legacy")

    return opened
