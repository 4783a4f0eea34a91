"""Large questions and replies: how long a call takes, and how long pings wait meanwhile."""

from __future__ import annotations

import json
import time

import trio

from tests.lab.bench.measures.conversation import (
    Conversation,
    Record,
    UnfitError,
    call,
    conversation,
    request,
    unanswered,
)
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

CALLS = 100
PING_EVERY = 0.002  # seconds
QUERY = 1_000_000  # characters


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    async with conversation(subject, upstream) as talk:
        await talk.calls(10)
        record("query", "1 MB", "ms", 1000 * await long_question(talk))
        record("body_ping", f"{CALLS} of 1 MB", "ms", 1000 * await slowest_ping(talk, upstream))


async def long_question(talk: Conversation) -> float:
    """Return the seconds that a call with a very long question takes."""
    number = next(talk.numbers)
    data = call(number, more="x" * QUERY)
    began = time.monotonic()
    lines = await talk.answers(data, 1)
    seconds = talk.heard_at - began
    if unanswered(lines, [number]):
        raise UnfitError(f"the call failed: {lines[0][:300].decode(errors='replace')}")
    return seconds


async def slowest_ping(talk: Conversation, upstream: Upstream) -> float:
    """Let the large replies to many calls come together, and send pings meanwhile; return the seconds of the slowest.

    None is sent while the calls begin: so many at once hold up the pings too, but it is not what is asked here.
    """
    numbers = [next(talk.numbers) for _ in range(CALLS)]
    await upstream.reset()
    await talk.write(b"".join([call(number, "large") for number in numbers]))
    await upstream.wait_open(CALLS)
    pings: dict[int, float] = {}  # when each was sent
    answers: list[bytes] = []
    slowest = 0.0

    async def send() -> None:
        while len(answers) < CALLS:
            ping = next(talk.numbers)
            pings[ping] = time.monotonic()
            await talk.write(request(ping, "ping"))
            await trio.sleep(PING_EVERY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(upstream.release)
        while len(answers) < CALLS or pings:
            for line in await talk.lines():
                sent = pings.pop(json.loads(line)["id"], None)
                if sent is None:
                    answers.append(line)
                else:
                    slowest = max(slowest, talk.heard_at - sent)
    if wrong := unanswered(answers, numbers):
        raise UnfitError(f"{len(wrong)} of {CALLS} calls beside pings failed")
    return slowest
