import os
from collections.abc import Mapping, Sequence
from typing import Any

import trio

from responses_mcp.serving import configured_toolsets
from responses_mcp.settings import load_settings
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolFailure, ToolSuccess

SECONDS: dict[str, Any] = {"type": "object", "properties": {"seconds": {"type": "number"}}, "required": ["seconds"]}


class Timer:
    """One tool that waits, and tells how long it has waited."""

    @property
    def tools(self) -> Sequence[Tool]:
        return [
            Tool(
                name="timer",
                title="Timer",
                description="Wait for some seconds, or for as long as there is time.",
                input_schema=SECONDS,
                output_schema={"type": "object", "properties": {"waited": {"type": "number"}}},
                handler=self.wait,
            )
        ]

    async def wait(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        seconds = arguments.get("seconds")
        if not isinstance(seconds, int | float) or seconds < 0:
            raise ToolError(ToolFailure("seconds: expected a number from 0 on; pass one."))
        began = trio.current_time()
        # The deadline comes nearer when the server is asked to stop, so it is asked for again and again.
        while (left := min(began + seconds, context.deadline() - 0.1) - trio.current_time()) > 0:
            if context.report is not None:
                context.report(f"call {context.request_id}: {left:.1f} s left")
            await trio.sleep(min(left, 0.25))
        waited = round(trio.current_time() - began, 1)
        return ToolSuccess(f"waited {waited} s", {"waited": waited})

    async def aclose(self) -> None:
        """Hold nothing, close nothing."""


async def main() -> None:
    settings = load_settings(os.environ).settings
    async with connected_client(settings, toolsets=[*configured_toolsets(settings), Timer()]) as client:
        tools = (await client.ask("tools/list"))["result"]["tools"]
        print([tool["name"] for tool in tools])
        print((await client.call("timer", {"seconds": 0.1}))["result"]["structuredContent"])


if __name__ == "__main__":
    trio.run(main)
