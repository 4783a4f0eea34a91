"""How much memory a server has when it has started, and after calls."""

from __future__ import annotations

import trio

from tests.lab.bench.measures.conversation import Record, UnfitError, conversation
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

CALLS = 1000
AT_ONCE = 10
LOOKS = (100, CALLS)  # calls
SETTLED = 0.5  # seconds after which a server has done what it puts off until its first answers are given


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    async with conversation(subject, upstream) as talk:

        def look(case: str) -> None:
            memory = talk.memory()
            if memory is not None:
                record("memory", case, "MiB", memory)

        await talk.ask("tools/list")
        await trio.sleep(SETTLED)
        look("idle")
        for done in range(AT_ONCE, CALLS + 1, AT_ONCE):
            if wrong := await talk.calls(AT_ONCE):
                raise UnfitError(f"{len(wrong)} of {AT_ONCE} calls failed")
            if done in LOOKS:
                look(str(done))
