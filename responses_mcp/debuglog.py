"""Where log lines go: stderr, and a file when debugging says so; never stdout (spec 8.1).

The decision is taken once, by `configure`. Every line passes the redactor. A client that does not drain our stderr
must not be able to stop us, so each stream has a thread of its own that writes, and lines beyond a bound are dropped
and counted.

`logging.handlers` has no such queue: the lock of `queue.Queue` is not reentrant, so a signal that closes the log could
wait for the line that it interrupted, and `QueueListener.stop` waits for its thread without a bound.
"""

from __future__ import annotations

import logging
import os
import re
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from typing import TextIO

from responses_mcp.errors import exhausted
from responses_mcp.secrets import Redactor

MAX_WAITING_LINES = 2_000
MAX_WAITING_BYTES = 8 * 1024 * 1024  # beside the first line, which may be of any size
FLUSH_SECONDS = 0.2

_root = logging.getLogger("responses_mcp")
# What ends a line for some reader, or moves a terminal's cursor; a tab may stay.
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class _LineFormatter(logging.Formatter):
    """One record, one line, without secrets."""

    def __init__(self, redact: Redactor, *, debug: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if debug else "openai-responses-mcp: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = self._redact(super().format(record))
        return _CONTROL.sub(lambda character: repr(character[0])[1:-1], line) + "\n"


class _LineWriter:
    """Writes lines to a binary stream from a daemon thread, which the first line starts."""

    def __init__(self, stream: RawIOBase) -> None:
        self._stream = stream
        self._changed = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._ended = False
        self._thread: threading.Thread | None = None

    def put(self, line: bytes) -> None:
        """Queue a line; drop it when the queue is full. Never waits for the stream."""
        with self._changed:
            if self._ended:
                return
            if len(self._lines) >= MAX_WAITING_LINES or (
                self._lines and self._waiting_bytes + len(line) > MAX_WAITING_BYTES
            ):
                self._dropped += 1
                return
            self._tell_dropped()
            self._lines.append(line)
            self._waiting_bytes += len(line)
            self._changed.notify()
            if self._thread is None:
                thread = threading.Thread(target=self._write_lines, name="responses-mcp-log", daemon=True)
                with suppress(RuntimeError):  # no more threads to be had: the log stays silent
                    thread.start()
                    self._thread = thread

    def end(self) -> None:
        """Take no more lines; the stream is closed when those queued have been written."""
        with self._changed:
            self._ended = True
            self._changed.notify()
            if self._thread is None:
                self._stream.close()

    def join(self, deadline: float) -> None:
        """Wait for that until `deadline` of `time.monotonic`."""
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._lines.append(b"(%d lines dropped here: nobody read them)\n" % self._dropped)
            self._dropped = 0

    def _next_line(self) -> bytes | None:
        with self._changed:
            if not self._lines:
                self._tell_dropped()
            while not self._lines:
                if self._ended:
                    return None
                self._changed.wait()
            line = self._lines.popleft()
            self._waiting_bytes = max(0, self._waiting_bytes - len(line))
            return line

    def _write_lines(self) -> None:
        with suppress(OSError, ValueError):  # the reader is gone, or the disk is full
            while (line := self._next_line()) is not None:
                self._write(memoryview(line))
        with self._changed:
            self._ended = True
            self._lines.clear()
        with suppress(OSError):
            self._stream.close()

    def _write(self, rest: memoryview) -> None:
        while rest:
            written = self._stream.write(rest)
            if written is None:  # somebody made it non-blocking, and it is full
                select.select((), (self._stream,), ())
            else:
                rest = rest[written:]


class LogHandler(logging.Handler):
    """Hands each line to all writers."""

    def __init__(self, writers: Sequence[_LineWriter]) -> None:
        super().__init__()
        self._writers = writers

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line with every writer."""
        try:
            line = self.format(record).encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001  # a log line is never worth an exception
            return
        for writer in self._writers:
            writer.put(line)

    def close(self) -> None:
        """Log nothing from now on. What is queued is written, for at most 0.2 s."""
        _root.removeHandler(self)
        deadline = time.monotonic() + FLUSH_SECONDS
        for writer in self._writers:
            writer.end()
        for writer in self._writers:
            writer.join(deadline)
        super().close()


def configure(*, debug: bool, debug_file: str | None, redact: Redactor, shown: str | None = None) -> LogHandler:
    """Send this package's log lines to stderr, all of them with `debug`, warnings and worse without.

    With `debug` and a `debug_file` the lines go there too: parents are created, the file is appended to and made
    readable by its owner only. `-` means stderr. A file that cannot be opened, or that is stdin or stdout, is a warning
    on stderr and nothing more. `shown` goes to stderr first, as it is.
    """
    writers: list[_LineWriter] = []
    if sys.__stderr__ is not None:  # else descriptor 2 is closed, or belongs to something else by now
        # A descriptor of its own: fd 2 may be pointed elsewhere later, and sys.stderr has buffers and an encoding.
        own = True
        try:
            fd = os.dup(2)
        except OSError:  # none is left, which has to be told all the same
            fd, own = 2, False
        with suppress(OSError):
            writers.append(_LineWriter(open(fd, "wb", buffering=0, closefd=own)))  # noqa: SIM115  # closed by it
            if shown is not None:
                writers[0].put(shown.encode() + b"\n")
    problem: str | None = None
    cure = "Choose another path for --debug."
    if debug and debug_file is not None and debug_file != "-":
        try:
            file = _open_to_append(Path(debug_file))
            if _is_one(file, 2, sys.__stderr__):
                file.close()
            else:
                writers.append(_LineWriter(file))
        except OSError as error:
            problem = error.strerror or type(error).__name__
            cure = exhausted(error) or cure
        except ValueError as error:  # a NUL in the path, or a file that we refuse
            problem = str(error)
    handler = LogHandler(writers)
    handler.setFormatter(_LineFormatter(redact, debug=debug))
    _root.addHandler(handler)
    _root.setLevel(logging.DEBUG if debug else logging.WARNING)
    _root.propagate = False
    if problem is not None:
        _root.warning(
            "the debug file %s cannot be opened (%s); logging to stderr only. %s",
            debug_file,
            problem,
            cure,
        )
    return handler


def _open_to_append(path: Path) -> RawIOBase:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without O_NONBLOCK, opening a pipe would wait for its reader; without O_NOCTTY, a terminal could become ours.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    file = open(os.open(path, flags, 0o600), "ab", buffering=0)  # noqa: PTH123, SIM115  # a descriptor, not a path
    try:
        _make_ours(file)
    except BaseException:
        file.close()
        raise
    return file


def _make_ours(file: RawIOBase) -> None:
    """Let nobody else read a file. Raises OSError, and ValueError for one that must not be written to."""
    if _is_one(file, 0, sys.__stdin__) or _is_one(file, 1, sys.__stdout__):
        raise ValueError("it is stdin or stdout, which are for the protocol")
    status = os.fstat(file.fileno())
    if stat.S_ISCHR(status.st_mode):  # a terminal, or the null device
        return
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
        raise ValueError("it is no file")
    if sys.platform != "win32":
        if status.st_uid != os.geteuid():
            raise ValueError("it belongs to another user, who could read it")
        if stat.S_IMODE(status.st_mode) != 0o600:
            os.fchmod(file.fileno(), 0o600)


def _is_one(file: RawIOBase, number: int, stream: TextIO | None) -> bool:
    """Tell whether an open file is what a standard descriptor leads to, under whatever name it was opened."""
    if stream is None:  # closed at the start: the number may belong to something else by now
        return False
    try:
        one, other = os.fstat(file.fileno()), os.fstat(number)
        if os.path.samestat(one, other):
            return not os.path.samestat(one, os.stat(os.devnull))  # noqa: PTH116  # where nothing does harm
        if sys.platform == "win32":
            return False
        # A terminal has more than one name; /dev/tty is whichever controls us.
        return os.isatty(number) and one.st_rdev in (other.st_rdev, os.stat("/dev/tty").st_rdev)  # noqa: PTH116
    except OSError:
        return False
