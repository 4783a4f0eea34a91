"""A host written against the public names, as a user writes it. Only type-checked, by `nox -s types`, strictly.

What stands here must stay valid: a change that makes a checker complain breaks hosts.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, assert_type

import trio

from responses_mcp.asking import Asker, open_answers
from responses_mcp.errors import UpstreamError
from responses_mcp.runtime.server import Server
from responses_mcp.serving import configured_toolsets, serve
from responses_mcp.settings import OpenAISettings, Settings, load_settings
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolFailure, Toolset, ToolSuccess


async def ask_without_mcp(environ: Mapping[str, str]) -> str:
    async with open_answers(load_settings(environ).settings) as answers:
        assert_type(answers, Asker)
        try:
            result = await answers.answer("Which Python release is current?", recency_days=30)
        except UpstreamError as error:
            return str(error)
        return assert_type(result.text, str)


class Clock:
    """A toolset of the host's own; nothing of ours is subclassed."""

    @property
    def tools(self) -> Sequence[Tool]:
        schema: dict[str, Any] = {"type": "object"}
        return [Tool(name="clock", title="Clock", description="Tell the time.", input_schema=schema, handler=self.tell)]

    async def tell(self, context: CallContext, arguments: Mapping[str, Any]) -> ToolSuccess:
        if arguments:
            raise ToolError(ToolFailure(f"{context.request_id}: the clock takes no arguments"))
        return ToolSuccess(str(trio.current_time()))

    async def aclose(self) -> None:
        """Hold nothing, close nothing."""


async def start_in_a_nursery(nursery: trio.Nursery, stream: trio.SocketStream) -> Server:
    settings = Settings(openai=OpenAISettings(base_url="http://127.0.0.1:8080/v1"))
    toolsets: list[Toolset] = [*configured_toolsets(settings), Clock()]
    server: Server = await nursery.start(partial(serve, settings=settings, toolsets=toolsets), stream, stream)
    assert_type(server.in_flight, int)
    return server


async def pass_the_task_status_on(
    stream: trio.SocketStream, *, task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED
) -> None:
    await serve(stream, stream, settings=Settings(), task_status=task_status)
