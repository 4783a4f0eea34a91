"""Progress notifications, made of what a tool says while it works.

Clients give up after silence, so there is a heartbeat; some fail under a flood, so messages are spaced and the newest
wins. Values only rise. The session drops what would come after the answer.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from responses_mcp.sanitization import sanitized

SPACING = 0.25  # seconds between two notifications of one call
HEARTBEAT = 12.0  # seconds of silence before the last message is repeated; clients allow 15 to 60
LONGEST_MESSAGE = 200


class ProgressReporter:
    """Spaces the messages of one call and repeats the last one during silence.

    `send(value, message)` must not wait. `beat` is the task that this needs; `stop` ends it.
    """

    def __init__(self, send: Callable[[float, str], None]) -> None:
        self._send = send
        self._began = trio.current_time()
        self._sent: float | None = None
        self._value = 0
        self._phase = "working"
        self._pending: str | None = None
        self._changed = trio.Event()
        self._scope = trio.CancelScope()

    def report(self, message: str) -> None:
        """Say what the call is doing: now, or a moment later if something was said just before."""
        # Cut first: the query that a search asked may be of any length.
        words = sanitized(message[: 4 * LONGEST_MESSAGE]).split()
        self._phase = " ".join(words)[:LONGEST_MESSAGE]
        self._pending = self._phase
        if trio.current_time() >= self._due():
            self._flush()
        self._changed.set()

    async def beat(self) -> None:
        """Send what was held back, and a heartbeat during silence, until `stop`."""
        with self._scope:
            while True:
                self._changed = trio.Event()
                with trio.move_on_at(self._due()):
                    await self._changed.wait()
                if trio.current_time() >= self._due():
                    self._flush()

    def stop(self) -> None:
        """End the task. Nothing is sent after this."""
        self._scope.cancel(reason="the call is over")

    def _due(self) -> float:
        """Return when the next notification may go out, or must."""
        if self._sent is None:
            return self._began if self._pending is not None else self._began + HEARTBEAT
        return self._sent + (SPACING if self._pending is not None else HEARTBEAT)

    def _flush(self) -> None:
        # The task may have been woken by its deadline in the very step in which the call ended.
        if self._scope.cancel_called:
            return
        now = trio.current_time()
        message = self._pending or f"{self._phase} ({now - self._began:.0f} s)"
        self._pending = None
        self._sent = now
        self._value += 1
        self._send(self._value, message)
