"""The Python clients that are installed, behind one interface: `mcp` 1 and 2, and FastMCP."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tests.lab.interop.server import Server

MODERN = "2026-07-28"
Progress = Callable[[float, float | None, str | None], Awaitable[None]]


# Imported by name: no environment has them all, and that of the type checker has none of them.
def installed(package: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in version(package).split(".")[:2])
    except PackageNotFoundError:
        return ()


SDK, FASTMCP = installed("mcp"), installed("fastmcp")


class Answered:
    """The result of a call, whatever the client calls its parts."""

    def __init__(self, result: Any) -> None:
        self.structured = _either(result, "structured_content", "structuredContent")
        self.is_error: bool = _either(result, "is_error", "isError")
        self.text: str = result.content[0].text


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
    ) -> Answered:
        arguments = {"query": query}
        options: dict[str, Any] = {"progress_callback": progress, "read_timeout_seconds": limit}
        if FASTMCP:
            options = {"progress_handler": progress, "timeout": limit}
        elif SDK < (2,) and limit is not None:
            options["read_timeout_seconds"] = timedelta(seconds=limit)
        return Answered(await self._client.call_tool(tool, arguments, **options))

    async def still_serves(self) -> None:
        """Fail unless the connection works: a ping, which only the legacy revision has, and a call."""
        if not self._modern:
            await getattr(self._client, "ping" if FASTMCP else "send_ping")()
        assert not (await self.call("Still there?")).is_error


@dataclass(frozen=True)
class PythonClient:
    """A way to use a client. `cancels`: it tells the server when it gives up on a call."""

    name: str
    open: Callable[[Server], AbstractAsyncContextManager[Connection]]
    modern: bool
    probes: bool
    cancels: bool = True


def clients() -> list[PythonClient]:
    """Return what is installed here. FastMCP brings the SDK with it, and is then the one to be tried."""
    release = ".".join(map(str, FASTMCP or SDK))
    modes = [("auto", True, True), ("legacy", False, False), (MODERN, True, False)]
    if FASTMCP:
        return [PythonClient(f"FastMCP {release}, {mode}", _fastmcp(mode), *revision) for mode, *revision in modes]
    session = PythonClient(f"mcp {release} ClientSession", _session, False, False, cancels=SDK >= (2,))
    if SDK < (2,):
        return [session]
    return [
        session,
        *(PythonClient(f"mcp {release} Client, {mode}", _client(mode), *revision) for mode, *revision in modes),
    ]


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
