import os
from dataclasses import replace
from functools import partial
from typing import Any

import trio
import trio.testing

from responses_mcp.runtime.server import Server
from responses_mcp.serving import serve
from responses_mcp.settings import Settings, load_settings
from responses_mcp.testing.client import McpClient


def said(message: dict[str, Any]) -> str:
    """Return the answer in a response, or why there is none."""
    if "error" in message:
        return str(message["error"]["data"]["message"])
    return str(message["result"]["structuredContent"]["answer"])


async def main() -> None:
    usual = load_settings(os.environ).settings
    brief = replace(usual, policy=replace(usual.policy, instructions="Answer in one sentence."))
    async with trio.open_nursery() as nursery:

        async def connect(settings: Settings) -> tuple[Server, McpClient]:
            ours, theirs = trio.testing.memory_stream_pair()  # or a socket, or the pipes of a process
            server: Server = await nursery.start(partial(serve, settings=settings), theirs, theirs)
            client = McpClient(ours, ours)
            nursery.start_soon(client.listen)
            await client.initialize()
            return server, client

        first, alice = await connect(usual)
        _, bob = await connect(brief)

        call = await alice.start_call("answer", {"query": "Which Python release is current?"})
        await alice.ask("ping")  # once this is answered, the server has read the call before it
        print("in flight:", first.in_flight)
        first.stop(grace=30)  # reads no more; what is in flight may finish within 30 seconds
        print(said(await alice.response(call)))

        print(said(await bob.call("answer", {"query": "And which of Trio?"})))
        await bob.end_input()  # the second server ends by itself
    print("both servers have ended")


if __name__ == "__main__":
    trio.run(main)
