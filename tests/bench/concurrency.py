"""Many calls at once over a slow upstream: `python -m tests.bench.concurrency`.

Each call has a question of its own, and the fake API, a process of its own, answers with it after the given latency,
so that an answer given to the wrong call is found.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from typing import Any

import trio

from tests.bench.figures import ROOT, machine, server


async def measure(calls: int, rounds: int, latency: float, base_url: str) -> tuple[list[float], int]:
    wrong = 0
    seconds: list[float] = []
    async with server(base_url) as client:
        await client.call("answer", {"query": "warm-up"})
        for round_ in range(rounds):
            began = trio.current_time()
            asked = {}
            for index in range(calls):
                query = f"question {round_}.{index}."
                asked[await client.start_call("answer", {"query": query})] = query
            answers: dict[object, dict[str, Any]] = {}
            while len(answers) < calls:
                for message in client.heard:
                    if message.get("id") in asked:
                        answers[message["id"]] = message
                client.heard.clear()
                if len(answers) < calls:
                    await client.news()
            seconds.append(trio.current_time() - began)
            for call, query in asked.items():
                text = answers[call].get("result", {}).get("structuredContent", {}).get("answer", "")
                wrong += query not in text
    return seconds, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the API takes for an answer")
    options = parser.parse_args()
    fake = subprocess.Popen(
        [sys.executable, "-m", "responses_mcp.testing", "--latency", str(options.latency)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert fake.stdout
        base_url = fake.stdout.readline().split()[-1]
        print(machine())
        failed = 0
        for calls in options.calls:
            seconds, wrong = trio.run(measure, calls, options.rounds, options.latency, base_url)
            failed += wrong
            print(
                f"{calls} calls at once, {options.latency:g} s upstream: median {statistics.median(seconds):.3f} s, "
                f"worst {max(seconds):.3f} s of {options.rounds} rounds; wrong or failed answers: {wrong}"
            )
    finally:
        fake.terminate()
        fake.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
