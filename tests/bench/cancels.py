"""How long a cancelled call keeps its upstream socket: `python -m tests.bench.cancels`.

A real server process, a fake API on a real socket that never answers. One call after the other is started, cancelled
once the API has its request, and timed until the API sees the connection close; then as many at once.
"""

from __future__ import annotations

import argparse
import sys

import trio

from responses_mcp.testing import Hang, open_fake_api
from tests.bench.figures import machine, server, spread


async def measure(count: int, out: list[str]) -> bool:
    async with open_fake_api() as api, server(api.base_url) as client:
        api.default = Hang()
        one_by_one: list[float] = []
        cancelled: set[object] = set()
        for index in range(count):
            call = await client.start_call("answer", {"query": f"slow {index}"})
            await api.wait_requests(index + 1)
            began = trio.current_time()
            await client.cancel(call)
            cancelled.add(call)
            await api.wait_hang_ups(index + 1)
            one_by_one.append(1000 * (trio.current_time() - began))
        out.append(f"{len(one_by_one)} of {count} cancels closed the upstream socket, one by one: {spread(one_by_one)}")
        calls = [await client.start_call("answer", {"query": f"burst {index}"}) for index in range(count)]
        await api.wait_requests(2 * count)
        began = trio.current_time()
        for call in calls:
            await client.cancel(call)
        cancelled.update(calls)
        await api.wait_hang_ups(2 * count)
        out.append(f"{count} at once: all closed {1000 * (trio.current_time() - began):.1f} ms after the first cancel")
        await client.ask("ping")
        late = [message for message in client.heard if message.get("id") in cancelled]
        out.append(f"responses for cancelled ids: {len(late)}")
        return not late


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for the whole run")
    options = parser.parse_args()
    lines = [machine()]

    async def bounded() -> bool:
        with trio.fail_after(options.timeout):
            return await measure(options.count, lines)

    clean = trio.run(bounded)
    print("\n".join(lines))
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
