"""How long a cancelled call keeps its connection to the upstream, from the cancel to the end of the connection."""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

import trio

from tests.lab.bench.measures.conversation import Conversation, Record, UnfitError, call, cancel, conversation
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

ONE_BY_ONE = 100
AT_ONCE = 500
PATIENCE = 5.0  # seconds for calls to reach the upstream, and for cancels to do so


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
    # This server lets 256 requests go at once unless it is told otherwise; the others do not know the variable.
    enough = replace(subject, env={**subject.env, "OPENAI_MAX_CONNECTIONS": str(AT_ONCE)})
    async with conversation(enough, upstream) as talk:
        await talk.calls(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, talk)
            took = [await cancelled(talk, upstream, 1) for _ in range(ONE_BY_ONE)]
            record("cancel", "one", "ms", statistics.median(took))
            record("cancel", f"{AT_ONCE} at once", "ms", await cancelled(talk, upstream, AT_ONCE))
            nursery.cancel_scope.cancel()


async def read(talk: Conversation) -> None:
    """Read what some servers answer to a call that was cancelled; unread, it would hold them up."""
    while True:
        await talk.lines()


async def cancelled(talk: Conversation, upstream: Upstream, many: int) -> float:
    """Cancel so many calls at once; return the milliseconds until the upstream has seen the last connection end."""
    await upstream.reset()
    numbers = [next(talk.numbers) for _ in range(many)]
    await talk.write(b"".join([call(number, "hang") for number in numbers]))
    with trio.move_on_after(PATIENCE) as asking:
        await upstream.wait_open(many)
    if asking.cancelled_caught:
        raise UnfitError(f"not all of {many} calls at once reached the upstream in {PATIENCE:g} s")
    cancels = b"".join(map(cancel, numbers))
    began = time.monotonic()
    await talk.write(cancels)
    with trio.move_on_after(PATIENCE):
        return 1000 * (await upstream.wait_hung(many) - began)
    raise UnfitError(f"cancelled calls keep their connections for more than {PATIENCE:g} s")
