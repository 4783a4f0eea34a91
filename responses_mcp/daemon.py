"""The server put together from settings: over any two streams, or over this process's stdin and stdout."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable

import trio

from responses_mcp import __version__
from responses_mcp.answers import Answers
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.runtime.server import Server, serve_tools
from responses_mcp.runtime.stdio import claimed_stdio, wait_reader_gone
from responses_mcp.runtime.stdio import receive_stream as reading_from
from responses_mcp.runtime.stdio import send_stream as writing_to
from responses_mcp.settings.model import Settings
from responses_mcp.toolsets.answer import INSTRUCTIONS, AnswerToolset
from responses_mcp.toolsets.base import Toolset


def configured_toolsets(settings: Settings) -> list[Toolset]:
    """Build the toolsets that `settings` turn on. Nothing is opened before a tool is called."""
    api = ResponsesApi(settings.openai, settings.request)
    toolsets: list[Toolset] = [AnswerToolset(Answers(settings, api=api), debug=settings.server.debug)]
    if "manuals" in settings.toolsets:
        from responses_mcp.toolsets.manuals import ManualsToolset  # noqa: PLC0415  # most servers have none

        toolsets.append(ManualsToolset(settings))
    if "search" in settings.toolsets:
        from responses_mcp.toolsets.search import SearchToolset  # noqa: PLC0415  # most servers have none
        from responses_mcp.websearch import WebSearch  # noqa: PLC0415

        toolsets.append(SearchToolset(WebSearch(settings, api=api)))
    return toolsets


async def serve(  # started() is called by serve_tools
    receive_stream: trio.abc.ReceiveStream,
    send_stream: trio.abc.SendStream,
    *,
    settings: Settings,
    toolsets: Iterable[Toolset] | None = None,
    task_status: trio.TaskStatus[Server] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve MCP to the peer behind two Trio streams, until it goes away.

    `toolsets` default to those that `settings` turn on. `task_status.started` gets a `Server`, to look at and to
    stop. Starts no run loop, touches no signals, descriptors, logging or environment. Closes both streams. Returns at
    the end of input (see `serve_tools`); raises nothing for what the peer does. Cancelling it ends all calls at once
    and closes their sockets.
    """
    await serve_tools(
        receive_stream,
        send_stream,
        toolsets=configured_toolsets(settings) if toolsets is None else toolsets,
        settings=settings.server,
        version=__version__,
        instructions=INSTRUCTIONS if settings.server.instructions else None,
        task_status=task_status,
    )


async def serve_stdio(settings: Settings) -> None:
    """Serve MCP on stdin and stdout until the client closes stdin, stops reading, or a signal asks to end.

    Must run in the main thread of a process of its own. Raises OSError when stdin or stdout is closed at the start.
    """
    with claimed_stdio() as (wire_in, wire_out):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_on_signal, nursery.cancel_scope)
            nursery.start_soon(_end_when_nobody_reads, wire_out, nursery.cancel_scope)
            await serve(reading_from(wire_in), writing_to(wire_out), settings=settings)
            nursery.cancel_scope.cancel(reason="serving has ended")


async def _end_on_signal(everything: trio.CancelScope) -> None:
    names = ["SIGINT", "SIGTERM"] if sys.platform == "win32" else ["SIGINT", "SIGTERM", "SIGHUP"]
    with trio.open_signal_receiver(*(getattr(signal, name) for name in names)) as signals:
        async for number in signals:
            # Clients kill within a tenth of a second of asking, so there is no grace.
            everything.cancel(reason=f"signal {number}")
            return


async def _end_when_nobody_reads(wire_out: int, everything: trio.CancelScope) -> None:
    await wait_reader_gone(wire_out)
    everything.cancel(reason="nobody reads stdout")
