"""Send hostile input to a live server and see what it does."""

from __future__ import annotations

from itertools import count

import trio

from responses_mcp.protocol.jsonrpc import request_key
from responses_mcp.testing import FakeApi, Json, RecordedRequest, bodies
from responses_mcp.testing.client import McpClient
from tests.hostile.corpus import IN_FLIGHT, OK, Case
from tests.processes import memory

WAIT = 20.0
_pings = count(1)


class Gate:
    """Holds the call in flight until it is released."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.open = trio.Event()
        api.default = self.answer

    async def answer(self, request: RecordedRequest) -> Json:
        await self.open.wait()
        return Json(bodies.echo(request.json))

    async def begin(self, client: McpClient) -> None:
        self.open = trio.Event()
        await client.start_call("answer", {"query": "still in flight?"}, id=IN_FLIGHT)
        await self.api.wait_requests(len(self.api.requests) + 1)

    def release(self) -> None:
        self.open.set()


async def attack(client: McpClient, gate: Gate, case: Case) -> str | None:
    """Send one case while a call is in flight; say what is not as it should be."""
    try:
        with trio.fail_after(WAIT):
            await gate.begin(client)
            client.heard.clear()
            await client.send_bytes(case.data)
            await ping(client)
            while len(client.heard) < len(case.owed):
                await client.news()
            await ping(client)
            got = [
                (message.get("id"), OK if "result" in message else message["error"]["code"]) for message in client.heard
            ]
            if sorted(map(typed, got), key=repr) != sorted(map(typed, case.owed), key=repr):
                return f"owed {list(case.owed)!r:.200}, got {got!r:.200}"
            gate.release()
            client.heard.clear()
            answer = await client.response(IN_FLIGHT)
            if "still in flight?" not in answer.get("result", {}).get("structuredContent", {}).get("answer", ""):
                return f"the call in flight got {answer!r:.200}"
    except (trio.TooSlowError, EOFError, trio.BrokenResourceError) as error:
        return f"{type(error).__name__}: {error}; heard {client.heard!r:.200}"
    return None


def typed(pair: tuple[object, object]) -> tuple[object, object]:
    return (request_key(pair[0]), pair[1])


async def ping(client: McpClient) -> None:
    """Ask for a sign of life; neither question nor answer is kept."""
    id_ = await client.request("ping", id=f"sign of life {next(_pings)}")
    answer = await client.response(id_)
    client.heard.remove(answer)
    assert answer["result"] == {}


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process in MiB (Linux)."""
    found = memory(pid)
    assert found is not None
    return found[0]
