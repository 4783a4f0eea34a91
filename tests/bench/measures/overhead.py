"""What a call costs beside the upstream, which answers at once: a whole round trip, one call after the other."""

from __future__ import annotations

import json
import statistics
import tempfile
import time

import trio

from tests.bench.measures.conversation import Record, UnfitError, call, conversation, each, unanswered
from tests.bench.subjects import Subject
from tests.bench.upstream import Upstream

CALLS = 500
WARM_UP = 20


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    if subject.only is not None:
        await bare(subject, upstream, record)
        return
    async with conversation(subject, upstream) as talk:
        for _ in range(WARM_UP):
            await talk.calls(1)
        lines: list[bytes] = []
        took: list[float] = []
        numbers = [next(talk.numbers) for _ in range(CALLS)]
        before = talk.processor_time()
        for number in numbers:
            began = time.monotonic()
            lines += await talk.answers(call(number), 1)
            took.append(1000 * (talk.heard_at - began))
        cpu = each(before, talk.processor_time(), CALLS, 1e3)
        if wrong := unanswered(lines, numbers):
            raise UnfitError(f"{len(wrong)} of {CALLS} calls failed")
        record("overhead", "call", "ms", statistics.median(took))
        if cpu is not None:
            record("overhead_cpu", "call", "ms", cpu)
            record("call_cpu", "one by one", "ms", cpu)


async def bare(subject: Subject, upstream: Upstream, record: Record) -> None:
    """Let a bare client of the upstream take the time of its own requests."""
    with tempfile.TemporaryDirectory() as home:
        env = subject.environment(home, upstream.base_url)
        command = [*subject.command, str(CALLS), str(WARM_UP)]
        ran = await trio.run_process(command, env=env, cwd=home, capture_stdout=True)
    wall, cpu = json.loads(ran.stdout)
    record("overhead", "call", "ms", wall)
    record("overhead_cpu", "call", "ms", cpu)
