"""Standard input and output, claimed so that nothing else can touch the wire.

The wire moves to private duplicates of descriptors 0 and 1; then 0 becomes the null device and 1 becomes stderr for
everybody else, so a stray `print` or a child process corrupts nothing.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress


def needs_threads(fd: int) -> bool:
    """Tell whether only threads can wait for the descriptor `fd`; see `runtime.stdio`."""
    return sys.platform == "win32" or os.isatty(fd)


@contextmanager
def claimed_stdio() -> Generator[tuple[int, int]]:
    """Give out private descriptors for the wire, with 0 and 1 diverted until the end of the block.

    The caller owns the two descriptors. Raises OSError when the process was started without stdin or stdout.
    """
    if sys.__stdin__ is None or sys.__stdout__ is None:
        # Closed at the start: by now the number may belong to something else, such as Trio's own descriptors.
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    wire_in, wire_out = os.dup(0), os.dup(1)
    saved_in, saved_out = os.dup(0), os.dup(1)
    blocking = [sys.platform == "win32" or os.get_blocking(fd) for fd in (0, 1)]
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415  # exists on Windows only

        for fd in (wire_in, wire_out):
            msvcrt.setmode(fd, os.O_BINARY)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(null, 0)
        os.dup2(2 if sys.__stderr__ is not None else null, 1)
        yield wire_in, wire_out
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()  # what a stray print left in the buffer must not reach the wire's descriptor later
        os.dup2(saved_in, 0)
        os.dup2(saved_out, 1)
        # Others may share them. Trio's streams put back what each found, which is wrong if both are one socket.
        for fd in (0, 1):
            if sys.platform != "win32":
                os.set_blocking(fd, blocking[fd])
        for fd in (null, saved_in, saved_out):
            os.close(fd)
