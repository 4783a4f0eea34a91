"""What a client asks first, answered before Trio is imported.

The import takes longer than all else in a start, and clients wait for the handshake and the list of tools before they
show anything. Both are answered by the session alone. So the prologue reads and writes until a call wants to run or
the client pauses, and hands the conversation over as it is, be it in the middle of a message.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import suppress

from responses_mcp.runtime.conversation import Conversation

# Seconds without input after which the client is taken to have asked what it needs. On a busy machine Claude Code asks
# for the tools up to .18 s after the handshake, and would have to wait for the import.
PAUSE = 0.2
LONGEST = 1.0  # seconds after which it ends though the client goes on: only the server notices that nobody reads
CHUNK = 64 * 1024


def prologue(conversation: Conversation, read: Callable[[], bytes | None], write: Callable[[bytes], int]) -> None:
    """Serve until there is something to do that takes more than an answer.

    `read` returns the next bytes, b"" at the end of the input, None when nothing came for a while. `write` returns how
    many bytes it could write without waiting.
    """
    session = conversation.session
    while not (conversation.events or conversation.unwritten or conversation.input_ended):
        data = read()
        if data is None:
            return
        conversation.receive(data)
        while not conversation.unwritten and (data := session.take_output()):
            conversation.unwritten = data[write(data) :]
            if not conversation.unwritten:
                session.output_written()


def prologue_on_descriptors(conversation: Conversation, wire_in: int, wire_out: int) -> None:
    """Run the prologue on two descriptors that are no terminals; what is wrong with them shows later."""
    to_read, to_write = select.poll(), select.poll()
    to_read.register(wire_in, select.POLLIN)
    to_write.register(wire_out, select.POLLOUT)
    end = time.monotonic() + LONGEST

    def read() -> bytes | None:
        try:
            return os.read(wire_in, CHUNK) if time.monotonic() < end and to_read.poll(1000 * PAUSE) else None
        except OSError:
            return None

    def write(data: bytes) -> int:
        # A pipe that is ready takes so much without waiting. To make it non-blocking would do so for all who share it,
        # for good if a signal ends us here.
        sent = 0
        with suppress(OSError):
            while sent < len(data) and to_write.poll(0):
                sent += os.write(wire_out, data[sent : sent + select.PIPE_BUF])
        return sent

    prologue(conversation, read, write)
