"""What a call costs beside the upstream, which answers at once: a whole round trip, one call after the other.

And what it costs in processor time to read an answer that comes as one reply of JSON, and as a stream.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time

import trio

from tests.lab.bench.measures.conversation import (
    Conversation,
    Record,
    UnfitError,
    call,
    conversation,
    each,
    unanswered,
)
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import NO_STREAM, Upstream

CALLS = 500
ANSWERS = 200
WARM_UP = 20


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    if subject.only is not None:
        await bare(subject, upstream, record)
        return
    async with conversation(subject, upstream) as talk:
        for _ in range(WARM_UP):
            await talk.calls(1)
        took, cpu = await one_by_one(talk, "0", CALLS)
        record("overhead", "call", "ms", statistics.median(took))
        if cpu is not None:
            record("overhead_cpu", "call", "ms", cpu)
            record("call_cpu", "one by one", "ms", cpu)
        await in_both_forms(talk, record)


async def in_both_forms(talk: Conversation, record: Record) -> None:
    """Measure one answer in both forms; who does not ask for a stream gets none, and has no figure for it."""
    for what in ("json", "stream"):
        [first] = await talk.answers(call(next(talk.numbers), what), 1)
        if NO_STREAM.encode() in first:
            return
        _, cpu = await one_by_one(talk, what, ANSWERS)
        if cpu is not None:
            record("overhead_cpu", what, "ms", cpu)


async def one_by_one(talk: Conversation, what: str, many: int) -> tuple[list[float], float | None]:
    """Return the milliseconds that each of many calls took, and those of processor time for one of them."""
    lines: list[bytes] = []
    took: list[float] = []
    numbers = [next(talk.numbers) for _ in range(many)]
    before = talk.processor_time()
    for number in numbers:
        began = time.monotonic()
        lines += await talk.answers(call(number, what), 1)
        took.append(1000 * (talk.heard_at - began))
    cpu = each(before, talk.processor_time(), many, 1e3)
    if wrong := unanswered(lines, numbers):
        raise UnfitError(f"{len(wrong)} of {many} calls failed")
    return took, cpu


async def bare(subject: Subject, upstream: Upstream, record: Record) -> None:
    """Let a bare client of the upstream take the time of its own requests."""
    with tempfile.TemporaryDirectory() as home:
        env = subject.environment(home, upstream.base_url)
        command = [*subject.command, str(CALLS), str(WARM_UP)]
        ran = await trio.run_process(command, env=env, cwd=home, capture_stdout=True)
    wall, cpu = json.loads(ran.stdout)
    record("overhead", "call", "ms", wall)
    record("overhead_cpu", "call", "ms", cpu)
