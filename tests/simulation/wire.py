"""The two streams between client and server, with a client that reads as it likes."""

from __future__ import annotations

import math
from collections import deque

import trio

from tests.simulation.transcript import Kind, Transcript

Pieces = list[tuple[float, bytes]]  # what one read gets, after so many seconds


class ToServer(trio.abc.ReceiveStream):
    """The server's input. Each piece is one read; nothing is mixed into what was fed before."""

    def __init__(self, transcript: Transcript, max_unsent_bytes: int) -> None:
        self._transcript = transcript
        self._max_unsent_bytes = max_unsent_bytes
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._news = trio.Event()
        self._read = 0
        self._waiting = False
        self.fed = 0
        self.ended = False

    def feed(self, pieces: Pieces) -> None:
        if not self._waiting and self._transcript.unsent_bytes > self._max_unsent_bytes:
            self._transcript.note(Kind.HELD)
        self._pieces.extend(pieces)
        self.fed += sum(len(data) for _, data in pieces)
        self._news.set()

    def end(self) -> None:
        self.ended = True
        self._news.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        self._waiting = True
        try:
            await trio.lowlevel.checkpoint()
            while not self._pieces:
                if self.ended:
                    self._transcript.note(Kind.INPUT_ENDED, self._transcript.in_flight)
                    return b""
                self._news = trio.Event()
                await self._news.wait()
            pause, data = self._pieces[0]
            if pause:
                await trio.sleep(pause)
        finally:
            self._waiting = False
        # No checkpoint from here to where the server acts on it, so what is noted now is what it knows.
        self._pieces.popleft()
        self._read += len(data)
        self._transcript.note(Kind.READ, self._read, self._transcript.in_flight)
        return data

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


class FromServer(trio.abc.SendStream):
    """The server's output, as far as the client takes it: at once, slowly, or not at all."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._room = math.inf  # bytes that fit into the pipe
        self._pause = 0.0  # seconds for each bite
        self._bite = 1 << 30
        self._gone = False
        self._moved = trio.Event()

    def stall(self, room: int) -> None:
        """Read nothing more; the pipe still takes `room` bytes."""
        self._transcript.note(Kind.STALL)
        self._room = room

    def resume(self, pause: float = 0.0, bite: int = 1 << 30) -> None:
        self._transcript.note(Kind.RESUME)
        self._room, self._pause, self._bite = math.inf, pause, bite
        self._move()

    def leave(self) -> None:
        self._transcript.note(Kind.GONE)
        self._gone = True
        self._move()

    def _move(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self._transcript.note(Kind.GIVE, bytes(data), self._transcript.in_flight)
        await trio.lowlevel.checkpoint()
        left = len(data)
        while left:
            if self._gone:
                self._transcript.note(Kind.BROKE)
                raise trio.BrokenResourceError
            if self._room == 0:
                await self._moved.wait()
                continue
            if self._pause:
                await trio.sleep(self._pause)
            taken = int(min(left, self._room, self._bite))
            self._room -= taken
            left -= taken
        self._transcript.note(Kind.WRITTEN)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
