"""The server put together from settings: over any two streams, or over the descriptors of a process of its own."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Callable, Generator, Iterable
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
from responses_mcp.under_trio import require_trio

log = logging.getLogger(__name__)

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)]
_LOOK_AT_PARENT = 2.0  # seconds between two looks
QUIET_SECONDS = 3.0  # without a message or an answer, after which a server without a parent has no client either
_WANTED_BY_CALLS = "responses_mcp.asking"  # imported when serving begins, rather than when a call waits for it

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

    Starts no run loop; touches no signals, descriptors, logging or environment. Cancelling it ends all calls at once
    and closes their sockets.

    Args:
      receive_stream: What the peer sends. Closed by this function.
      send_stream: What the peer reads; may be the same stream. Closed by this function.
      settings: As loaded or made by hand. The environment is not asked.
      toolsets: The tools to offer, by default those that `settings` turn on. Closed by this function, so one list
          serves one peer.
      task_status: `await nursery.start(serve, ...)` gives a `Server`, to look at and to stop.

    Returns:
      When the input has ended, or the server was stopped, and the calls then in flight have been answered or were
      cancelled at the end of their grace; at once when the peer no longer reads.

    Raises:
      NotUnderTrio: It was called outside of Trio.
      Exception: What a toolset raises when it is asked for its tools. Nothing for what the peer does. Ctrl-C that
          strikes a task of the server comes out as it is, in no group.
    """
    require_trio()
    owned = configured_toolsets(settings) if toolsets is None else list(toolsets)
    try:
        import_module(_WANTED_BY_CALLS)
        conversation = configured_conversation(settings, owned)
    except BaseException:
        await release(owned, receive_stream, send_stream)  # noqa: ASYNC102, ASYNC120  # shielded within
        raise
    await serve_conversation(
        receive_stream, send_stream, conversation, settings=settings.server, task_status=task_status
    )


async def serve_descriptors(
    wire_in: int, wire_out: int, conversation: Conversation, settings: ServerSettings, parent: int
) -> None:
    """Go on with a conversation until the client closes its end, stops reading, or a signal asks to end.

    Must run in the main thread of a process of its own, which takes no more notice of such signals afterwards. Closes
    both descriptors and the conversation's toolsets. `parent` is what `os.getppid()` was when the process began: this
    also ends when that process is gone, no call is in flight and nothing was heard for some seconds. Raises `OSError`
    if the descriptors cannot be used.
    """
    import_module(_WANTED_BY_CALLS)
    _freeze_imported_objects()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_end_when_nobody_reads, wire_out, nursery.cancel_scope)
        if settings.watch_parent:
            nursery.start_soon(_end_when_parent_is_gone, parent, conversation, nursery.cancel_scope)
        # First, since the streams make descriptors non-blocking that we share with the client.
        with _cancelled_by_signals(nursery.cancel_scope):
            await serve_conversation(reading_from(wire_in), writing_to(wire_out), conversation, settings=settings)
        nursery.cancel_scope.cancel(reason="serving has ended")


def _freeze_imported_objects() -> None:
    """Freeze imported objects and collect less often; the start has turned the collector off.

    By default the collector takes a fifth of the processor time of many calls at once, and tens of milliseconds in one
    go while a long reply is read (docs/performance.md).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 200, 50)
    gc.enable()


@contextmanager
def _cancelled_by_signals(everything: trio.CancelScope) -> Generator[None]:
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


async def wait_parent_gone(parent: int, getppid: Callable[[], int] = os.getppid) -> None:
    """Return when the parent of this process is not `parent` any more; never where that is none to lose.

    A process whose parent ends gets another one, init or a subreaper. Windows leaves the old number in place.
    """
    if parent <= 1 or os.name == "nt":  # an orphan, or the child of a container's first process
        await trio.sleep_forever()
    while getppid() == parent:  # noqa: ASYNC110  # no event tells of it on every system
        await trio.sleep(_LOOK_AT_PARENT)


async def _end_when_parent_is_gone(parent: int, conversation: Conversation, everything: trio.CancelScope) -> None:
    """End although the pipes are open: another child of the client that is gone may hold their other ends.

    A client that goes on without the launcher of its server is heard, or waits for an answer.
    """
    await wait_parent_gone(parent)
    heard, session = -1, conversation.session
    while heard != conversation.heard or session.unanswered() or session.unsent_bytes:
        heard = conversation.heard
        await trio.sleep(QUIET_SECONDS)
    log.warning(
        "the process that started this server is gone, and nothing was heard for %g s, so it ends; if a client still "
        "uses it, set server.watch_parent (MCP_WATCH_PARENT) to false",
        QUIET_SECONDS,
    )
    everything.cancel(reason="the parent is gone")


async def _end_when_nobody_reads(wire_out: int, everything: trio.CancelScope) -> None:
    await wait_reader_gone(wire_out)
    everything.cancel(reason="nobody reads stdout")
