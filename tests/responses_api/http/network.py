"""What lies between a client and the fake API in the world: TLS and proxies, as small as they can be."""

import json
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
import trio
import trustme
from trio.testing import MockClock, wait_all_tasks_blocked

from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request
from responses_mcp.responses_api.http.network import ConnectionPool
from responses_mcp.settings.model import OpenAISettings, RequestSettings
from responses_mcp.testing import FakeApi
from tests.responses_api.stub import Reply

Stream: TypeAlias = trio.SocketStream | trio.SSLStream[trio.SocketStream]
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the machine's environment says of proxies and certificates."""
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no name resolve, without a question to the network, which may take its time."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Give a port on which nobody listens: it is taken, or anybody else might come to listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@asynccontextmanager
async def real_api(
    base_url: str,
    *,
    api_key: str | None = None,
    timeout_ms: int = 300_000,
    max_retries: int = 0,
    max_connections: int = 512,
) -> AsyncGenerator[ResponsesApi]:
    """Give an API over real sockets that waits next to nothing between its requests."""
    request = RequestSettings(timeout_ms=timeout_ms, max_retries=max_retries, max_connections=max_connections)
    api = ResponsesApi(OpenAISettings(base_url=base_url, api_key=api_key), request)
    try:
        yield api
    finally:
        await api.aclose()


@asynccontextmanager
async def connections(fake: FakeApi, limit: int = 512) -> AsyncGenerator[ConnectionPool]:
    opened = await open_connections(fake.base_url, limit=limit)
    try:
        yield opened
    finally:
        await opened.aclose()


async def ask(over: ConnectionPool, fake: FakeApi, query: str = "hello") -> Reply:
    body = json.dumps({"model": "gpt-5.2", "input": query}).encode()
    return await post(over, f"{fake.base_url}/responses", body)


async def post(over: ConnectionPool, url: str, body: bytes = b"{}") -> Reply:
    reply = Reply()
    await over.send(Request("POST", url, {b"content-type": b"application/json"}, body), reply)
    return reply


async def gone(fake: FakeApi, down_to: int = 0) -> None:
    """Wait until the fake has few open connections. The caller sets the deadline."""
    while True:  # the fake tells nobody when a connection ends
        await trio.lowlevel.checkpoint()
        if fake.open_connections <= down_to:
            return


async def cancel_when_asked(scope: trio.CancelScope, fake: FakeApi, requests: int = 1) -> None:
    """Cancel when the request is known to have arrived, however slow the machine is."""
    await fake.wait_requests(requests)
    await wait_all_tasks_blocked(0.02)  # long enough to be amid the reply where there is one
    scope.cancel()


async def jump_when_asked(clock: MockClock, fake: FakeApi, requests: int = 1) -> None:
    """Let a minute pass when the request is known to have arrived."""
    await fake.wait_requests(requests)
    await wait_all_tasks_blocked(0.02)
    clock.jump(60)


async def pump(source: Stream, sink: Stream) -> None:
    """Carry bytes until either side ends; the other is then closed."""
    try:
        while data := await source.receive_some():
            await sink.send_all(bytes(data))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
        await trio.aclose_forcefully(sink)


async def splice(one: Stream, other: Stream) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pump, one, other)
        nursery.start_soon(pump, other, one)


@asynccontextmanager
async def listening(
    serve: Callable[[Stream], Awaitable[None]], tls: ssl.SSLContext | None = None
) -> AsyncGenerator[int]:
    """Serve connections on a port of this machine, over TLS if a context is given."""

    async def handle(socket_stream: trio.SocketStream) -> None:
        stream: Stream = socket_stream
        if tls is not None:
            stream = trio.SSLStream(socket_stream, tls, server_side=True, https_compatible=True)
        try:
            await serve(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError, EOFError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port: int = listeners[0].socket.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, handle, listeners)
        yield port
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def tls_front(
    base_url: str, ca: trustme.CA, host: str = "localhost", *, until: datetime | None = None
) -> AsyncGenerator[str]:
    """Give the base URL under which the plain API at `base_url` is reached over TLS, with a certificate `until` then.

    Without that it goes on.
    """
    target = urlsplit(base_url)

    async def serve(stream: Stream) -> None:
        async with await trio.open_tcp_stream(target.hostname or "", target.port or 0) as upstream:
            await splice(stream, upstream)

    async with listening(serve, server_context(ca, "localhost", REMOTE, until=until)) as port:
        yield f"https://{host}:{port}{target.path}"


def server_context(ca: trustme.CA, *hosts: str, until: datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*hosts, not_after=until).configure_cert(context)
    return context


REMOTE = "api.example"  # what the proxy takes for this machine, which is reached without one under its own names


@dataclass
class Proxy:
    """A proxy and the request heads that it saw; `refusal` is what it answers instead of connecting."""

    refusals: list[bytes] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def lines(self) -> list[str]:
        return [head.partition("\r\n")[0] for head in self.heads]

    async def serve(self, stream: Stream) -> None:
        head, rest = await self._head(stream)
        self.heads.append(head)
        method, target, _ = head.split(" ", 2)
        if self.refusals:
            await stream.send_all(self.refusals.pop(0))
            return
        where = urlsplit(f"//{target}" if method == "CONNECT" else target)
        async with await trio.open_tcp_stream(
            "127.0.0.1" if where.hostname == REMOTE else where.hostname or "", where.port or 80
        ) as upstream:
            if method == "CONNECT":
                await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                origin_form = head.replace(target, where.path, 1)
                await upstream.send_all(origin_form.encode() + b"\r\n\r\n" + rest)
            await splice(stream, upstream)

    async def _head(self, stream: Stream) -> tuple[str, bytes]:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = await stream.receive_some()
            if not piece:
                raise EOFError
            data += piece
        head, _, rest = data.partition(b"\r\n\r\n")
        return head.decode(), rest


@asynccontextmanager
async def open_proxy(*refusals: bytes, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Proxy]:
    """Serve a proxy for CONNECT and for plain http."""
    proxy = Proxy(list(refusals))
    async with listening(proxy.serve, tls) as proxy.port:
        yield proxy


def trust(monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, path: "os.PathLike[str]") -> None:
    """Put the CA where SSL_CERT_FILE says."""
    ca.cert_pem.write_to_path(path)
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(path))
