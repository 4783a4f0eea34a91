"""The server put together from settings: over any two streams, or over the descriptors of a process of its own."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from importlib import import_module

import trio

from responses_mcp.configured import configured_conversation, configured_toolsets
from responses_mcp.runtime.conversation import Conversation
from responses_mcp.runtime.server import Server, release, serve_conversation
from responses_mcp.runtime.stdio import receive_stream as reading_from
from responses_mcp.runtime.stdio import send_stream as writing_to
from responses_mcp.runtime.stdio import wait_reader_gone
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.toolsets.base import Toolset

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]

# What most calls need: now, when the first answers have been given, and not when a call waits for it.
import_module("responses_mcp.answers")

__all__ = ["configured_toolsets", "serve", "serve_descriptors"]


async def serve(  # started() is called by serve_conversation
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
    the end of input (see `serve_conversation`); raises nothing for what the peer does. Cancelling it ends all calls at
    once and closes their sockets.
    """
    owned = configured_toolsets(settings) if toolsets is None else list(toolsets)
    try:
        conversation = configured_conversation(settings, owned)
    except Exception:  # a toolset of the host's could not say what its tools are
        await release(owned, receive_stream, send_stream)  # noqa: ASYNC120  # shielded within
        raise
    await serve_conversation(
        receive_stream, send_stream, conversation, settings=settings.server, task_status=task_status
    )


async def serve_descriptors(wire_in: int, wire_out: int, conversation: Conversation, settings: ServerSettings) -> None:
    """Go on with `conversation` until the client closes its end, stops reading, or a signal asks to end.

    Must run in the main thread of a process of its own, which then takes no more notice of such signals. Closes the
    two descriptors.
    """
    _collect_rarely()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_when_nobody_reads, wire_out, nursery.cancel_scope)
        # First, since the streams make descriptors non-blocking that we share with the client.
        with _ended_by_signals(nursery.cancel_scope):
            await serve_conversation(reading_from(wire_in), writing_to(wire_out), conversation, settings=settings)
        nursery.cancel_scope.cancel(reason="serving has ended")


def _collect_rarely() -> None:
    """Let the collector take it for granted that what was imported stays, and look at the rest less often.

    As it is set by default, it takes a fifth of the processor time of many calls at once, and tens of milliseconds in
    one go while a long reply is read (docs/performance.md).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 200, 50)


@contextmanager
def _ended_by_signals(everything: trio.CancelScope) -> Generator[None]:
    """Let a signal cancel `everything`, and ignore what comes after the block.

    Clients that asked once ask again within a tenth of a second. Trio's receiver would put the old handlers back, which
    end the process at once, and that could leave the client's descriptors non-blocking.
    """
    token = trio.lowlevel.current_trio_token()

    def end(number: int, frame: object) -> None:  # noqa: ARG001  # the signature of a signal handler
        # Clients kill within a tenth of a second of asking, so there is no grace.
        token.run_sync_soon(everything.cancel, f"signal {number}")

    for number in _ENDING:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)


async def _end_when_nobody_reads(wire_out: int, everything: trio.CancelScope) -> None:
    await wait_reader_gone(wire_out)
    everything.cancel(reason="nobody reads stdout")
