"""The MCP client for tests."""

from __future__ import annotations

import trio

from responses_mcp.settings.model import Settings
from responses_mcp.testing.client import connected_client


async def test_tasks_share_a_client_and_each_gets_the_response_to_its_own_request() -> None:
    heard: dict[str, str] = {}
    async with connected_client(Settings()) as client:

        async def ask(method: str) -> None:
            answer = await client.ask(method, {"cursor": method * 50_000})
            heard[method] = "unknown" if "error" in answer else "known"

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for method in ("tools/list", "no/such", "ping", "none/either"):
                    nursery.start_soon(ask, method)
    assert heard == {"tools/list": "known", "no/such": "unknown", "ping": "known", "none/either": "unknown"}
