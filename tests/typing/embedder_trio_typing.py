"""A host that still annotates with trio-typing and starts our server in its own nursery.

Run by `nox -s typing_compat`, and type-checked there without mypy's plugin. Outside that session trio-typing is never
installed, because its stubs take the place of Trio's own types.
"""

import json
from typing import Any

import trio
import trio.testing
import trio_typing

from responses_mcp.runtime.server import Server
from responses_mcp.serving import serve
from responses_mcp.settings import Settings


class Host:
    """Keeps what `serve` reports, as hosts do to stop it later."""

    def __init__(self) -> None:
        self.server: Server | None = None

    async def run_server(
        self,
        receive: trio.abc.ReceiveStream,
        send: trio.abc.SendStream,
        *,
        task_status: trio_typing.TaskStatus[Server],
    ) -> None:
        """Run the server as a child task of the host; `nursery.start` gives its `task_status`."""
        # Its stubs say that this cannot be asked; at run time it is what Trio passes, and hosts ask it.
        assert isinstance(task_status, trio_typing.TaskStatus)  # type: ignore[misc]
        await serve(receive, send, settings=Settings(), task_status=task_status)


async def ask(stream: trio.abc.Stream, message: dict[str, Any]) -> Any:
    """Send one message as a line and return the answer."""
    await stream.send_all(json.dumps(message).encode() + b"\n")
    line = bytearray()
    while not line.endswith(b"\n"):
        data = await stream.receive_some()
        assert data, "the server closed the stream instead of answering"
        line += data
    return json.loads(line)


async def main() -> None:
    """Start the server, shake hands, list the tools and let it end."""
    ours, theirs = trio.testing.memory_stream_pair()
    host = Host()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            host.server = await nursery.start(host.run_server, theirs, theirs)
            assert isinstance(host.server, Server)
            hello: dict[str, Any] = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "host"},
            }
            answer = await ask(ours, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
            assert answer["result"]["serverInfo"]["name"] == "openai-responses-mcp"
            answer = await ask(ours, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
            assert "answer" in [tool["name"] for tool in answer["result"]["tools"]]
            assert host.server.in_flight == 0
            host.server.stop(grace=1)
    print("trio_typing.TaskStatus is what nursery.start passes through serve().")


if __name__ == "__main__":
    trio.run(main)
