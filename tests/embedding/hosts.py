"""What the tests of embedding share: settings made by hand, and streams of several kinds with a peer at the other end."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeAlias

import trio
import trio.testing

from responses_mcp.settings import OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import FakeApi

Ends: TypeAlias = tuple[trio.abc.ReceiveStream, trio.abc.SendStream]
Streams: TypeAlias = Callable[[], AbstractAsyncContextManager[tuple[Ends, Ends]]]


def settings_for(api: FakeApi, *, max_retries: int = 0) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=api.base_url, api_key="test-key-0123456789"),
        request=RequestSettings(max_retries=max_retries, trust_env=False),
    )


@asynccontextmanager
async def memory() -> AsyncGenerator[tuple[Ends, Ends]]:
    ours, theirs = trio.testing.memory_stream_pair()
    yield (ours, ours), (theirs, theirs)


@asynccontextmanager
async def one_way_streams() -> AsyncGenerator[tuple[Ends, Ends]]:
    to_them, from_us = trio.testing.memory_stream_one_way_pair()
    to_us, from_them = trio.testing.memory_stream_one_way_pair()
    yield (from_them, to_them), (from_us, to_us)


@asynccontextmanager
async def sockets() -> AsyncGenerator[tuple[Ends, Ends]]:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listeners[0]:
        ours = await trio.open_tcp_stream("127.0.0.1", listeners[0].socket.getsockname()[1])
        theirs = await listeners[0].accept()
    async with ours, theirs:
        yield (ours, ours), (theirs, theirs)


KINDS: list[Streams] = [memory, one_way_streams, sockets]
