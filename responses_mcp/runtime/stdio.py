"""The descriptors of the wire as Trio streams.

Terminals, which must stay blocking for others that share them, and everything on Windows go through `os.read` and
`os.write` in threads that may be left behind. (`sys.stdin.buffer` has a lock that aborts the interpreter when the
process ends during a read.)
"""

from __future__ import annotations

import os
import select
import sys

import trio

from responses_mcp.runtime.descriptors import needs_threads

CHUNK = 64 * 1024
_LOOK = 2.0  # seconds between two looks at a pipe of Windows
_PIPE_LOCAL_INFORMATION = 24
_CLOSING = 4


class _Threaded(trio.abc.AsyncResource):
    """A descriptor that worker threads read or write."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False
        # Of its own: threads that others left behind must not keep the wire from being read.
        self._limiter = trio.CapacityLimiter(1)

    async def aclose(self) -> None:
        """Leave the descriptor open: a thread may still sit in it, and its number must not be reused."""
        self._closed = True
        await trio.lowlevel.checkpoint()


class ThreadedReceiveStream(_Threaded, trio.abc.ReceiveStream):
    """Reads a descriptor. A cancelled read leaves its thread behind, waiting for input."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes."""
        if self._closed:
            raise trio.ClosedResourceError
        try:
            return await trio.to_thread.run_sync(
                os.read, self._fd, max_bytes or CHUNK, abandon_on_cancel=True, limiter=self._limiter
            )
        except OSError as error:
            raise trio.BrokenResourceError from error


class ThreadedSendStream(_Threaded, trio.abc.SendStream):
    """Writes a descriptor. A cancelled write leaves its thread behind."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data`."""
        with memoryview(data) as rest:
            sent = 0
            while sent < len(rest):
                if self._closed:
                    raise trio.ClosedResourceError
                # A copy of each piece, since an abandoned thread may outlive `data`.
                piece = bytes(rest[sent : sent + CHUNK])
                try:
                    sent += await trio.to_thread.run_sync(
                        os.write, self._fd, piece, abandon_on_cancel=True, limiter=self._limiter
                    )
                except OSError as error:
                    raise trio.BrokenResourceError from error

    async def wait_send_all_might_not_block(self) -> None:
        """Return at once: nothing is known about how full the other side is."""
        await trio.lowlevel.checkpoint()


def receive_stream(fd: int) -> trio.abc.ReceiveStream:
    """Wrap a descriptor to read from, which the stream then owns."""
    return ThreadedReceiveStream(fd) if needs_threads(fd) else trio.lowlevel.FdStream(fd)


def send_stream(fd: int) -> trio.abc.SendStream:
    """Wrap a descriptor to write to, which the stream then owns."""
    return ThreadedSendStream(fd) if needs_threads(fd) else trio.lowlevel.FdStream(fd)


async def wait_reader_gone(fd: int) -> None:
    """Return when nobody reads the pipe, socket or terminal `fd` any more; never, where that cannot be told.

    A server with nothing to write would otherwise learn of it only at the next answer.
    """
    if sys.platform == "win32":
        while _state_of(fd) != _CLOSING:  # noqa: ASYNC110  # no event tells of it
            await trio.sleep(_LOOK)
        return
    poll = select.poll()
    try:
        if needs_threads(fd):
            # A terminal is readable whenever somebody types, so only a thread can wait for nothing but its end.
            poll.register(fd, select.POLLHUP)
            limiter = trio.CapacityLimiter(1)
            await trio.to_thread.run_sync(poll.poll, abandon_on_cancel=True, limiter=limiter)
        else:
            poll.register(fd, select.POLLIN | select.POLLHUP)  # macOS reports nothing that was not asked for
            # The writing end of a pipe never becomes readable; what wakes this is the error condition.
            await trio.lowlevel.wait_readable(fd)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            return
    except (OSError, trio.ClosedResourceError):
        pass  # a file, a system that cannot watch this kind of descriptor, or we closed it ourselves
    await trio.sleep_forever()


def _state_of(fd: int) -> int:
    """Return the state of a pipe as `NtQueryInformationFile` has it; 0 for what is no pipe."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  # 10 ms that only Windows needs
        import msvcrt  # noqa: PLC0415

        status, state = (ctypes.c_void_p * 2)(), (ctypes.c_ulong * 10)()  # of which the ninth is NamedPipeState
        try:
            handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
        except OSError:
            return 0
        query = ctypes.windll.ntdll.NtQueryInformationFile
        if query(handle, status, state, ctypes.sizeof(state), _PIPE_LOCAL_INFORMATION) == 0:
            return state[8]
    return 0
