"""Kill real servers with SIGKILL at random moments of their runs: `python -m tests.lab.kill_runs [--times N] [--rounds N]`.

Each server begins a run and is killed within the time that the run takes, or right behind its end. All share one
folder. At the end one more server looks at all of them. Of each run the API must have seen one request at most, and
whoever asks must be told how it ended: with an answer, or that it may have been paid for and its id never came, or that
it was never asked for. The ledger must have a row for each answered run.

In each round, five callers ask two servers the same question, and four times one of the servers is killed, and another
takes its place. There must be one run and one request. Then one server begins a run and the other cancels it, which
must reach the API within two seconds.
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
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import trio

from responses_mcp.research.runs import ID_SECONDS
from responses_mcp.testing import FakeApi, open_fake_api
from responses_mcp.testing.client import McpClient
from responses_mcp.usage.ledger import FILE
from tests.processes import environment, server_process

AT_ONCE = 2  # servers
INTERVAL = 0.06  # seconds between two events of a response: a run takes about 1.2 s
LATEST = 3.0  # seconds after its call at which a server is killed
PATIENCE = 240.0  # seconds for the last server
CALLERS = 5
KILLS = 4
LONG = 0.5  # seconds between two events, so that a run outlives all kills
PROMPT = 2.0  # seconds within which a cancel reaches the API


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


class Place:
    """Where there is always a server, or soon another one."""

    def __init__(self, home: Path, api: FakeApi) -> None:
        self.client: McpClient | None = None
        self._home, self._api = home, api
        self._killed = trio.Event()

    async def serve(self) -> None:
        while True:
            async with running(self._home, self._api) as client:
                self.client = client
                await self._killed.wait()
                self._killed, self.client = trio.Event(), None

    def kill(self) -> None:
        self._killed.set()


async def asked_until_told(places: list[Place], query: str, draw: random.Random, told: set[str]) -> None:
    """Ask as a client does that begins anew with another server when its own is gone; tell the id of the run."""
    await trio.sleep(draw.uniform(0, 4))
    while True:
        with trio.move_on_after(2.0):
            client = draw.choice(places).client
            if client is not None:
                with suppress(Exception):  # whatever the end of a server looks like
                    found = await ask(client, "research", query=query, label=query, wait_seconds=0)
                    told.add(found["run_id"])
                    return
        await trio.sleep(0.1)


async def shared(number: int, home: Path, api: FakeApi, draw: random.Random) -> list[str]:
    """Have one question asked by many while servers are killed, then cancel another run; return what is wrong."""
    query, told = f"s{number}", set[str]()
    places = [Place(home, api), Place(home, api)]
    async with trio.open_nursery() as nursery:
        for place in places:
            nursery.start_soon(place.serve)
        async with trio.open_nursery() as callers:
            for _ in range(CALLERS):
                callers.start_soon(asked_until_told, places, query, draw, told)
            for _ in range(KILLS):
                await trio.sleep(draw.uniform(0.2, 1.5))
                draw.choice(places).kill()
        nursery.cancel_scope.cancel()
    async with running(home, api) as sender, running(home, api) as other:
        listed = [run for run in (await ask(sender, "research_list", limit=100))["runs"] if run["label"] == query]
        posts = sum(response.request["input"].split()[0] == query for response in api.stored.responses.values())
        # There is no request if a server was killed between the row that says that it sends it, and the request itself.
        is_one = (len(listed), len(told)) == (1, 1) and posts <= 1
        wrong = [] if is_one else [f"{len(listed)} runs, {told}, {posts} requests"]
        run_id = (await ask(sender, "research", query=f"c{number}", wait_seconds=1, fresh=True))["run_id"]
        began = trio.current_time()
        await ask(other, "research_cancel", run_id=run_id)
        took = [each.arrived - began for each in api.requests if each.target.endswith("/cancel")]
        if not took or took[0] > PROMPT:
            wrong.append(f"a cancel reached the API after {took} s")
        print(f"{query}: {posts} request, {len(told)} run, a cancel after {took} s: {wrong or 'well'}", flush=True)
    return wrong


async def share(rounds: int, seed: int) -> Counter[str]:
    """Have so many questions shared, and return what is wrong."""
    draw = random.Random(seed)
    wrong: Counter[str] = Counter()
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as home:
            async with open_fake_api() as api:
                api.stored.interval = LONG
                for each in await shared(number, Path(home), api, draw):
                    wrong[f"WRONG: {each}"] += 1
    return wrong


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
    parser.add_argument("--times", type=int, default=200, help="servers that are killed, each with a run of its own")
    parser.add_argument("--rounds", type=int, default=10, help="questions that many ask while servers are killed")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    options = parser.parse_args()
    print(f"{options.times} servers, seed {options.seed}, process {os.getpid()}", flush=True)
    began = time.monotonic()
    ends = trio.run(kill, options.times, options.seed) + trio.run(share, options.rounds, options.seed)
    for end, count in sorted(ends.items()):
        print(f"{count:>5}  {end}")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if any(end.startswith("WRONG") for end in ends) else 0


if __name__ == "__main__":
    sys.exit(main())
