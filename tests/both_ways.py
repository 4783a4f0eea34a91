"""Two ways to start a conversation: in Trio from its first byte on, and by a prologue that hands it over."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing

from responses_mcp.configured import configured_conversation
from responses_mcp.protocol.framing import encode_frame, encode_line
from responses_mcp.runtime.prologue import prologue
from responses_mcp.runtime.server import serve_conversation
from responses_mcp.settings.model import Settings
from responses_mcp.testing.client import ServedClient
from responses_mcp.toolsets.base import Toolset

HANDSHAKE = (
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
)


@asynccontextmanager
async def client_after_prologue(
    settings: Settings, *, toolsets: Iterable[Toolset] | None = None, framed: bool = False, initialize: bool = True
) -> AsyncGenerator[ServedClient]:
    """Do what `connected_client` does, with the handshake made by a prologue."""
    ours, theirs = trio.testing.memory_stream_pair()
    conversation = configured_conversation(settings, toolsets)
    said = bytearray()

    def write(data: bytes) -> int:
        said.extend(data)
        return len(data)

    if initialize:
        encode = encode_frame if framed else encode_line
        pieces = iter([encode(json.dumps(message).encode()) for message in HANDSHAKE])
        prologue(conversation, lambda: next(pieces, None), write)
        await theirs.send_all(said)
    async with trio.open_nursery() as nursery:
        serving = partial(serve_conversation, theirs, theirs, conversation, settings=settings.server)
        client = ServedClient(ours, await nursery.start(serving), framed=framed)
        await nursery.start(client.listen)
        if initialize:
            await client.response(0)
        yield client
        nursery.cancel_scope.cancel(reason="the test is over")


@pytest.fixture(params=["in Trio", "by a prologue"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tests of a module that imports this run both ways."""
    if request.param == "by a prologue":
        monkeypatch.setattr(request.module, "connected_client", client_after_prologue)
