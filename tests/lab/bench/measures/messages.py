"""How many small requests a server answers in a second, when they come as fast as it takes them."""

from __future__ import annotations

import time

import trio

from tests.lab.bench.measures.conversation import Conversation, Record, UnfitError, conversation, each, request
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

FIRST = 500  # requests to warm up with, which tell how many more make a good length
SECONDS = 1.0
MOST = 100_000


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    async with conversation(subject, upstream) as talk:
        for method in ("ping", "tools/list"):
            await talk.ask(method)
            many = min(MOST, max(FIRST, int(SECONDS * FIRST / await seconds(talk, method, FIRST))))
            before = talk.processor_time()
            record("messages", method, "per s", many / await seconds(talk, method, many))
            cpu = each(before, talk.processor_time(), many, 1e6)
            if cpu is not None:
                record("message_cpu", method, "µs", cpu)


async def seconds(talk: Conversation, method: str, many: int) -> float:
    """Send so many requests in one go and return the seconds until the last answer."""
    data = b"".join([request(next(talk.numbers), method) for _ in range(many)])
    began = time.monotonic()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.write, data)
        while many > 0:
            lines = await talk.lines()
            many -= len(lines)
            if lines and b'"error"' in lines[-1]:  # a look at some of them costs nothing
                raise UnfitError(f"{method} was answered with {lines[-1][:200].decode(errors='replace')}")
    return talk.heard_at - began
