"""A client of the fake API without any HTTP library between the test and the bytes."""

import json
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import trio

from responses_mcp.testing import FakeApi, open_fake_api
from tests.processes import WAIT


@asynccontextmanager
async def fake(*replies: Any, **options: Any) -> AsyncGenerator[FakeApi, None]:
    with trio.fail_after(WAIT):
        async with open_fake_api(*replies, **options) as api:
            yield api


@dataclass
class Received:
    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection, without any HTTP library between the test and the bytes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.buffer = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def ask(self, query: str = "hello", **fields: Any) -> Received:
        await self.send(post(query, **fields))
        return await self.receive()

    async def until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            data = await self.stream.receive_some()
            assert data, f"the connection ended before {mark!r}: {self.buffer!r}"
            self.buffer += data
        found, _, self.buffer = self.buffer.partition(mark)
        return found

    async def rest(self) -> bytes:
        while data := await self.stream.receive_some():
            self.buffer += data
        return self.buffer

    async def receive(self) -> Received:
        first, *lines = (await self.until(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = b""
        whole = True
        if headers.get("transfer-encoding") == "chunked":
            while size := int(await self.until(b"\r\n"), 16):
                body += await self.exactly(size)
                await self.until(b"\r\n")
            await self.until(b"\r\n")
        else:
            body = await self.exactly(int(headers["content-length"]))
            whole = len(body) == int(headers["content-length"])
        return Received(int(first.split()[1]), headers, body, whole)

    async def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            data = await self.stream.receive_some()
            if not data:
                break
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    async def reset(self) -> None:
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self.stream.aclose()


@asynccontextmanager
async def connected(api: FakeApi) -> AsyncGenerator[Client, None]:
    address = urlsplit(api.base_url)
    assert address.hostname is not None
    assert address.port is not None
    async with await trio.open_tcp_stream(address.hostname, address.port) as stream:
        yield Client(stream)


def post(query: str = "hello", target: str = "/v1/responses", **fields: Any) -> bytes:
    body = json.dumps({"model": "gpt-5.2", "input": query, **fields}).encode()
    return b"POST %b HTTP/1.1\r\nHost: fake\r\nContent-Length: %d\r\n\r\n%b" % (target.encode(), len(body), body)
