"""Many calls at once over an upstream that takes 200 ms for each answer."""

from __future__ import annotations

import time

from tests.lab.bench.measures.conversation import Conversation, Record, call, conversation, each, unanswered
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

LATENCY = "200"  # ms
FILES = 1024  # what many systems let a process have open
CASES = (1, 10, 100, 500, 1000)


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    async with conversation(subject, upstream) as talk:
        await talk.calls(1)  # the first one loads what the others find there
        for many in CASES:
            before = talk.processor_time()
            await at_once(talk, many, str(many), record)
            cpu = each(before, talk.processor_time(), many, 1e3)
            if cpu is not None and many == CASES[-1]:
                record("call_cpu", f"{many} at once", "ms", cpu)
    async with conversation(subject, upstream, files=FILES) as talk:
        await talk.calls(1)
        await at_once(talk, CASES[-1], f"{CASES[-1]}/{FILES} files", record)


async def at_once(talk: Conversation, many: int, case: str, record: Record) -> None:
    numbers = [next(talk.numbers) for _ in range(many)]
    data = b"".join([call(number, LATENCY) for number in numbers])
    began = time.monotonic()
    lines = await talk.answers(data, many)
    record("calls", case, "s", talk.heard_at - began)
    record("calls_failed", case, "calls", len(unanswered(lines, numbers)))
