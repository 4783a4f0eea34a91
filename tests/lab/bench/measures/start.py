"""How long from the start of a process to its first answers, or for a bare program to its end."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time

import trio

from tests.lab.bench.measures.conversation import INITIALIZE, INITIALIZED, Record, request
from tests.lab.bench.subjects import Subject
from tests.lab.bench.upstream import Upstream

STARTS = 3  # processes a case and round, whose median counts
PATIENCE = 20.0  # seconds for one process

# What is written to a server at once, and how many answers that has.
CASES = {
    "initialize": (INITIALIZE, 1),
    "tools/list": (INITIALIZE + INITIALIZED + request(1, "tools/list"), 2),
}


async def measure(subject: Subject, upstream: Upstream, record: Record) -> None:
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
        stuck = threading.Timer(PATIENCE, process.kill)
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
