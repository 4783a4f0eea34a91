"""The measures: each takes the figures of one round of one subject."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import trio

from tests.lab.bench.conversation import (
    INITIALIZE,
    INITIALIZED,
    Conversation,
    Record,
    UnfitError,
    call,
    cancel,
    conversation,
    request,
    unanswered,
)
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import NO_STREAM
from tests.lab.upstream import Upstream

# The first answers


STARTS = 3  # processes a case and round, whose median counts
STUCK = 20.0  # seconds for one process

# What is written to a server at once, and how many answers that has.
CASES = {"initialize": (INITIALIZE, 1), "tools/list": (INITIALIZE + INITIALIZED + request(1, "tools/list"), 2)}


async def start(subject: Subject, upstream: Upstream, record: Record) -> None:
    """How long from the start of a process to its first answers, or for a bare program to its end."""
    for case, (said, answers) in CASES.items() if subject.only is None else [("exit", (b"", 0))]:
        ran = [await trio.to_thread.run_sync(run, subject, upstream.base_url, said, answers) for _ in range(STARTS)]
        record("start", case, "ms", statistics.median(wall for wall, _ in ran))
        if answers:
            record("start_cpu", case, "ms", statistics.median(cpu for _, cpu in ran))


def run(subject: Subject, base_url: str, said: bytes, answers: int) -> tuple[float, float]:
    """Run a process from its start to its end, in plain blocking calls, which cost least.

    Return the milliseconds until it had given its answers, or was gone if it has none to give, and the milliseconds of
    processor time that it took in all. Raises EOFError if it ends too early; one that is stuck is killed.
    """
    with tempfile.TemporaryDirectory() as home:
        env = subject.environment(home, base_url)
        began = time.perf_counter()
        process = subprocess.Popen(
            subject.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=home
        )
        stuck = threading.Timer(STUCK, process.kill)
        stuck.start()
        assert process.stdin
        assert process.stdout
        try:
            with process.stdin, process.stdout:
                os.write(process.stdin.fileno(), said)
                lines = 0
                while lines < answers:
                    data = os.read(process.stdout.fileno(), 65536)
                    if not data:
                        raise EOFError("the server ended before it had answered, or was stuck and killed")
                    lines += data.count(b"\n")
                wall = time.perf_counter() - began
        finally:
            _, status, used = os.wait4(process.pid, 0)
            gone = time.perf_counter() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            stuck.cancel()
    return 1000 * (wall if answers else gone), 1000 * (used.ru_utime + used.ru_stime)


SETTLED = 0.5  # seconds after which a server has done what it puts off until its first answers are given


async def memory(subject: Subject, upstream: Upstream, record: Record) -> None:
    """How much memory a server has when it has started, and after calls."""
    async with conversation(subject, upstream) as talk:
        await talk.ask("tools/list")
        await trio.sleep(SETTLED)
        record("memory", "idle", "MiB", talk.memory())
        for done in range(10, 1001, 10):
            if wrong := await talk.calls(10):
                raise UnfitError(f"{wrong} of 10 calls failed")
            if done in (100, 1000):
                record("memory", str(done), "MiB", talk.memory())


# Many at once


WARM_UP_MESSAGES = 500  # which tell how many more take about a second
MOST_MESSAGES = 100_000


async def messages(subject: Subject, upstream: Upstream, record: Record) -> None:
    """How many small requests a server answers in a second, when they come as fast as it takes them."""
    async with conversation(subject, upstream) as talk:
        for method in ("ping", "tools/list"):
            await talk.ask(method)
            a_second = int(WARM_UP_MESSAGES / await seconds(talk, method, WARM_UP_MESSAGES))
            many = min(MOST_MESSAGES, max(WARM_UP_MESSAGES, a_second))
            before = talk.processor_time()
            record("messages", method, "per s", many / await seconds(talk, method, many))
            record("message_cpu", method, "µs", talk.processor_time(before, many / 1e6))


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


LATENCY = "200"  # ms
FILES = 1024  # what many systems let a process have open


async def calls(subject: Subject, upstream: Upstream, record: Record) -> None:
    """Many calls at once over an upstream that takes 200 ms for each answer."""
    async with conversation(subject, upstream) as talk:
        await talk.calls(1)  # the first one loads what the others find there
        for many in (1, 10, 100, 500, 1000):
            before = talk.processor_time()
            await at_once(talk, many, str(many), record)
        record("call_cpu", f"{many} at once", "ms", talk.processor_time(before, many / 1e3))
    async with conversation(subject, upstream, files=FILES) as talk:
        await talk.calls(1)
        await at_once(talk, many, f"{many}/{FILES} files", record)


async def at_once(talk: Conversation, many: int, case: str, record: Record) -> None:
    numbers, data = talk.new_calls(many, LATENCY)
    began = time.monotonic()
    lines = await talk.answers(data, many)
    record("calls", case, "s", talk.heard_at - began)
    record("calls_failed", case, "calls", unanswered(lines, numbers))


# One by one


CALLS = 500
ANSWERS = 200
WARM_UP = 20


async def overhead(subject: Subject, upstream: Upstream, record: Record) -> None:
    """What a call costs beside the upstream, which answers at once: a whole round trip, one call after the other.

    And what it costs in processor time to read an answer that comes as one reply of JSON, and as a stream.
    """
    if subject.only is not None:
        await bare(subject, upstream, record)
        return
    async with conversation(subject, upstream) as talk:
        for _ in range(WARM_UP):
            await talk.calls(1)
        took, cpu = await one_by_one(talk, "0", CALLS)
        record("overhead", "call", "ms", statistics.median(took))
        record("overhead_cpu", "call", "ms", cpu)
        record("call_cpu", "one by one", "ms", cpu)
        for what in ("json", "stream"):
            [first] = await talk.answers(talk.new_calls(1, what)[1], 1)
            if NO_STREAM.encode() not in first:  # who does not ask for a stream has no figure for it
                record("overhead_cpu", what, "ms", (await one_by_one(talk, what, ANSWERS))[1])


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
    cpu = talk.processor_time(before, many / 1e3)
    if wrong := unanswered(lines, numbers):
        raise UnfitError(f"{wrong} of {many} calls failed")
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


# Cancels


CANCELS_AT_ONCE = 500
PATIENCE = 5.0  # seconds for calls to reach the upstream, and for cancels to do so


async def cancels(subject: Subject, upstream: Upstream, record: Record) -> None:
    """How long a cancelled call keeps its connection to the upstream, from the cancel to the end of the connection."""
    # This server lets 256 requests go at once unless it is told otherwise; the others do not know the variable.
    enough = replace(subject, env={**subject.env, "OPENAI_MAX_CONNECTIONS": str(CANCELS_AT_ONCE)})
    async with conversation(enough, upstream) as talk:
        await talk.calls(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, talk)
            took = [await cancelled(talk, upstream, 1) for _ in range(100)]
            record("cancel", "one", "ms", statistics.median(took))
            many = await cancelled(talk, upstream, CANCELS_AT_ONCE)
            record("cancel", f"{CANCELS_AT_ONCE} at once", "ms", many)
            nursery.cancel_scope.cancel()


async def read(talk: Conversation) -> None:
    """Read what some servers answer to a call that was cancelled; unread, it would hold them up."""
    while True:
        await talk.lines()


async def cancelled(talk: Conversation, upstream: Upstream, many: int) -> float:
    """Cancel so many calls at once; return the milliseconds until the upstream has seen the last connection end."""
    await upstream.ask("reset")
    numbers, data = talk.new_calls(many, "hang")
    await talk.write(data)
    with trio.move_on_after(PATIENCE) as asking:
        await upstream.ask("open", many)
    if asking.cancelled_caught:
        raise UnfitError(f"not all of {many} calls at once reached the upstream in {PATIENCE:g} s")
    cancels = b"".join(map(cancel, numbers))
    began = time.monotonic()
    await talk.write(cancels)
    with trio.move_on_after(PATIENCE):
        return 1000 * (float(await upstream.ask("hung", many)) - began)
    raise UnfitError(f"cancelled calls keep their connections for more than {PATIENCE:g} s")


# Large questions and replies


REPLIES = 100
PING_EVERY = 0.002  # seconds
QUERY = 1_000_000  # characters


async def bodies(subject: Subject, upstream: Upstream, record: Record) -> None:
    """How long a call with a very long question takes, and how long pings wait while large replies are read."""
    async with conversation(subject, upstream) as talk:
        await talk.calls(10)
        number = next(talk.numbers)
        data = call(number, more="x" * QUERY)
        began = time.monotonic()
        lines = await talk.answers(data, 1)
        record("query", "1 MB", "ms", 1000 * (talk.heard_at - began))
        if unanswered(lines, [number]):
            raise UnfitError(f"the call failed: {lines[0][:300].decode(errors='replace')}")
        record("body_ping", f"{REPLIES} of 1 MB", "ms", 1000 * await slowest_ping(talk, upstream))


async def slowest_ping(talk: Conversation, upstream: Upstream) -> float:
    """Let the large replies to many calls come together, and send pings meanwhile; return the seconds of the slowest.

    None is sent while the calls begin: so many at once hold up the pings too, but it is not what is asked here.
    """
    numbers, data = talk.new_calls(REPLIES, "large")
    await upstream.ask("reset")
    await talk.write(data)
    await upstream.ask("open", REPLIES)
    pings: dict[int, float] = {}  # when each was sent
    answers: list[bytes] = []
    slowest = 0.0

    async def send() -> None:
        while len(answers) < REPLIES:
            ping = next(talk.numbers)
            pings[ping] = time.monotonic()
            await talk.write(request(ping, "ping"))
            await trio.sleep(PING_EVERY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        nursery.start_soon(upstream.ask, "release")
        while len(answers) < REPLIES or pings:
            for line in await talk.lines():
                sent = pings.pop(json.loads(line)["id"], None)
                if sent is None:
                    answers.append(line)
                else:
                    slowest = max(slowest, talk.heard_at - sent)
    if wrong := unanswered(answers, numbers):
        raise UnfitError(f"{wrong} of {REPLIES} calls beside pings failed")
    return slowest


Measure = Callable[[Subject, Upstream, Record], Awaitable[None]]
MEASURES: dict[str, Measure] = {
    measure.__name__: measure for measure in (start, memory, messages, calls, overhead, cancels, bodies)
}
