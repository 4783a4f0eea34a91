"""The POST of a call from nothing but httpx on Trio: `python -m tests.lab.bench.bare_post COUNT WARM_UP`.

Prints the median of the milliseconds that a request took, and the milliseconds of processor time of each.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

import httpx
import trio

from responses_mcp.responses_api.request.arguments import Question
from responses_mcp.responses_api.request.payload import request_body
from responses_mcp.settings.model import Settings
from responses_mcp.settings.system_policy import SYSTEM_POLICY


async def post(count: int, warm_up: int) -> None:
    url = os.environ["OPENAI_BASE_URL"] + "/responses"
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "content-type": "application/json"}
    settings = Settings()
    profile = settings.model_profiles["answer"]
    defaults = settings.search.defaults
    bodies = []
    for number in range(warm_up + count):
        question = Question(
            query=f"bench 0 {number:08d}", recency_days=defaults.recency_days, max_results=defaults.max_results
        )
        fields = request_body(question, profile, instructions=SYSTEM_POLICY, today="2026-01-01")
        bodies.append(json.dumps(fields, ensure_ascii=False).encode())
    took: list[float] = []
    # Certificates are of no use here, and take long to load.
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1), verify=False) as client:

        async def ask(body: bytes) -> None:
            began = time.perf_counter()
            response = await client.post(url, headers=headers, content=body)
            took.append(1000 * (time.perf_counter() - began))
            response.raise_for_status()

        for body in bodies[:warm_up]:
            await ask(body)
        took.clear()
        ran = time.process_time()
        for body in bodies[warm_up:]:
            await ask(body)
        cpu = 1000 * (time.process_time() - ran) / count
    print(json.dumps([statistics.median(took), cpu]))


if __name__ == "__main__":
    trio.run(post, int(sys.argv[1]), int(sys.argv[2]))
