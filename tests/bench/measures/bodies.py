"""Very large replies and questions: how long they take, and how long pings wait meanwhile."""

from __future__ import annotations

import json
import time

import trio

from tests.bench.measures.conversation import (
    Conversation,
    Record,
    UnfitError,
    call,
    conversation,
    request,
    unanswered,
)
from tests.bench.subjects import Subject
from tests.bench.upstream import Upstream

CASES = {"20 MB": ("items", 100), "20 MB string": ("text", 0)}  # what is asked for, and how many other calls run
PING_EVERY = 0.002  # seconds
CALL_EVERY = 2  # pings
LATENCY = "200"  # ms for each of the other calls
LONG = 100_000  # bytes; an answer that is longer is left unread until nothing is timed any more
QUERY = 1_000_000  # characters


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    async with conversation(subject, upstream) as talk:
        await talk.calls(10)
        record("query", "1 MB", "ms", 1000 * await alone(talk, "0", "x" * QUERY))
        for case, (what, others) in CASES.items():
            record("body", case, "s", await alone(talk, what))
            record("body_ping", case, "ms", 1000 * await slowest_ping(talk, what, others))


async def alone(talk: Conversation, what: str, more: str = "") -> float:
    """Return the seconds that one call takes."""
    number = next(talk.numbers)
    data = call(number, what, more)
    began = time.monotonic()
    lines = await talk.answers(data, 1)
    seconds = talk.heard_at - began
    if unanswered(lines, [number]):
        raise UnfitError(f"the call failed: {lines[0][:300].decode(errors='replace')}")
    return seconds


async def slowest_ping(talk: Conversation, what: str, others: int) -> float:
    """Make one call, and beside it send pings and now and then one of `others`; return the seconds of the slowest ping.

    The others do not come in one burst: their start and their answers would hold up the pings more than the one does.
    """
    big, *rest = [next(talk.numbers) for _ in range(1 + others)]
    calls = (call(number, LATENCY) for number in rest)
    pings: dict[int, float] = {}  # when each was sent
    answers: list[bytes] = []
    slowest = 0.0

    async def send() -> None:
        await talk.write(call(big, what))
        while len(answers) <= others:
            ping = next(talk.numbers)
            beside = next(calls, b"") if ping % CALL_EVERY == 0 else b""
            pings[ping] = time.monotonic()
            await talk.write(request(ping, "ping") + beside)
            await trio.sleep(PING_EVERY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        while len(answers) <= others or pings:
            for line in await talk.lines():
                sent = pings.pop(json.loads(line)["id"], None) if len(line) < LONG else None
                if sent is None:
                    answers.append(line)
                else:
                    slowest = max(slowest, talk.heard_at - sent)
    if wrong := unanswered(answers, [big, *rest]):
        raise UnfitError(f"{len(wrong)} of {1 + others} calls beside pings failed")
    return slowest
