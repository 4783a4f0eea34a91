"""Kill real servers with SIGKILL at random moments of their runs: `python -m tests.lab.kill_runs [--times N] [--seed S]`.

Each server begins a run and is killed within the time that the run takes, or right behind its end. All share one
folder. At the end one more server looks at all of them. Of each run the API must have seen one request at most, and
whoever asks must be told how it ended: with an answer, or that it may have been paid for and its id never came, or that
it was never asked for. The ledger must have a row for each answered run.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import trio

from responses_mcp.research.rows import ID_SECONDS
from responses_mcp.testing import FakeApi, open_fake_api
from responses_mcp.testing.client import McpClient
from responses_mcp.usage.ledger import FILE
from tests.processes import environment, server_process

AT_ONCE = 2  # servers
INTERVAL = 0.06  # seconds between two events of a response: a run takes about 1.2 s
LATEST = 3.0  # seconds after its call at which a server is killed
PATIENCE = 240.0  # seconds for the last server


@asynccontextmanager
async def running(home: Path, api: FakeApi) -> AsyncGenerator[McpClient]:
    """Start a server and kill it at the end of the block."""
    env = environment(
        home, api.base_url, MCP_TOOLSETS="research", USAGE_LEDGER="1", NO_PROXY="127.0.0.1", RESEARCH_MAX_RUNNING="1000"
    )
    async with server_process(env) as server:
        yield server.client
        server.process.kill()


async def ask(client: McpClient, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its object, or that it was refused and why."""
    result = (await client.call(tool, arguments))["result"]
    client.heard.clear()
    if result["isError"]:
        return {"status": "refused", "error": result["content"][0]["text"]}
    found: dict[str, Any] = result["structuredContent"]
    return found


async def one(number: int, home: Path, api: FakeApi, delay: float, places: trio.CapacityLimiter) -> None:
    """Let a server begin a run, and kill it after a while."""
    async with places, running(home, api) as client:
        await ask(client, "research_list")  # which loads what a run needs, so that most kills meet one
        await client.start_call("research", {"query": f"q{number}", "label": f"q{number}", "wait_seconds": 280})
        await trio.sleep(delay)


async def finish(home: Path, api: FakeApi, numbers: range) -> Counter[str]:
    """Have all runs finished by one server, and return how they ended; what is wrong begins with WRONG."""
    own = {f"q{number}" for number in numbers}
    ends: Counter[str] = Counter()
    answered: set[str] = set()
    async with running(home, api) as client:
        runs = {run["run_id"]: run["label"] for run in (await ask(client, "research_list", limit=100))["runs"]}
        markers = [response.request["input"].split()[0] for response in api.stored.responses.values()]
        paid = Counter(marker for marker in markers if marker in own)
        for run_id, question in runs.items():
            view = {"status": "running"}
            with trio.move_on_after(PATIENCE):
                while view["status"] == "running":
                    view = await ask(client, "research_result", run_id=run_id, wait_seconds=50)
            ends[_judged(view, question, paid[question])] += 1
            if view["status"] == "completed":
                answered.add(run_id)
    booked = in_ledger(home)
    for run_id in answered - booked:
        ends[f"WRONG: {run_id} is answered and not in the ledger"] += 1
    for marker, count in paid.items():
        if count > 1:
            ends[f"WRONG: {marker} was paid {count} times"] += 1
        if marker not in runs.values():
            ends[f"WRONG: {marker} was paid for and is not in the list"] += 1
    ends["no run was begun, and nothing asked"] = len(numbers) - len(runs)
    return +ends


def in_ledger(home: Path) -> set[str]:
    """Return the ids of the calls in the ledger of a home folder that used something."""
    (path,) = home.rglob(FILE)
    with closing(sqlite3.connect(path)) as connection:
        return {run_id for (run_id,) in connection.execute("SELECT id FROM calls WHERE total > 0")}


def _judged(view: dict[str, Any], question: str, paid: int) -> str:
    if view["status"] == "completed":
        right = paid == 1 and f"answer to: {question} " in view["answer"]
        return "answered" if right else f"WRONG: {question}, paid {paid} times: {view}"
    if view["status"] == "failed" and view["maybe_paid"] and "no id came back" in view["error"]:
        return f"its id never came, and that is said ({'paid' if paid else 'not paid'})"
    if view["status"] == "failed" and not view["maybe_paid"] and not paid:
        return "it was never asked for, and that is said"
    return f"WRONG: {question}, paid {paid} times: {view}"


async def kill(times: int, seed: int) -> Counter[str]:
    """Kill so many servers and return how their runs ended."""
    draw = random.Random(seed)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        async with open_fake_api() as api:
            api.stored.interval = INTERVAL
            for first in range(0, times, 90):  # as many as a list shows
                folder, numbers = Path(home, str(first)), range(first, min(first + 90, times))
                await trio.Path(folder).mkdir()
                places = trio.CapacityLimiter(AT_ONCE)
                async with trio.open_nursery() as nursery:
                    for number in numbers:
                        nursery.start_soon(one, number, folder, api, draw.uniform(0, LATEST), places)
                print(f"{numbers.stop} killed; now one server finishes what they left", flush=True)
                await trio.sleep(ID_SECONDS)
                ends += await finish(folder, api, numbers)
    return ends


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.kill_runs", description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"{options.times} servers, seed {options.seed}, process {os.getpid()}", flush=True)
    began = time.monotonic()
    ends = trio.run(kill, options.times, options.seed)
    for end, count in sorted(ends.items()):
        print(f"{count:>5}  {end}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if any(end.startswith("WRONG") for end in ends) else 0


if __name__ == "__main__":
    sys.exit(main())
