"""Where log lines go: stderr, and a file when debugging says so; never stdout (spec 8.1).

`configure` decides once. Every line passes the redactor. A client that does not drain our stderr must not be able to
stop us: each stream has a daemon thread that writes, and lines beyond a bound are dropped and counted. Between them is
a `queue.SimpleQueue`, whose `put` a signal may interrupt and repeat. This is `logging.handlers.QueueHandler` without
that module: a start would wait 5 ms for what it imports.
"""

from __future__ import annotations

import logging
import math
import os
import re
import select
import stat
import sys
import threading
from contextlib import ExitStack, nullcontext, suppress
from io import RawIOBase
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from responses_mcp.errors import exhausted
from responses_mcp.secrets import Redactor

MAX_WAITING_LINES: Final = 2_000
MAX_WAITING_BYTES: Final = 8 * 1024 * 1024  # beside one line, which may be of any size
FLUSH_SECONDS = 0.2

_root = logging.getLogger("responses_mcp")
# What ends a line for some reader, or moves a terminal's cursor; a tab may stay.
_CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")


class LogHandler(logging.Handler):
    """Hands lines, without secrets and control characters, to a daemon thread that writes them to `stream`."""

    def __init__(self, stream: RawIOBase, redact: Redactor, format: str) -> None:  # noqa: A002  # as logging has it
        super().__init__()
        self.setFormatter(logging.Formatter(format))
        self._stream = stream
        self._redact = redact
        self._lines = SimpleQueue[bytes]()  # ends with an empty one
        self._taken, self._written = 0, 0.0  # bytes; the thread alone counts the second
        self._dropped = 0  # lines
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line, or drop it where too many wait. Never waits for the stream."""
        with suppress(Exception):  # a log line is never worth an exception
            line = _CONTROL.sub(lambda found: repr(found[0])[1:-1], self._redact(self.format(record)))
            self.put(line.encode("utf-8", "backslashreplace") + b"\n")

    def put(self, line: bytes) -> None:
        """Queue a line as it is."""
        waiting = self._taken - self._written
        if self._lines.qsize() >= MAX_WAITING_LINES or (waiting and waiting + len(line) > MAX_WAITING_BYTES):
            self._dropped += 1
            return
        self._tell_dropped()
        self._taken += len(line)
        self._lines.put(line)
        if self._thread is None:
            thread = threading.Thread(target=self._write_lines, name="responses-mcp-log", daemon=True)
            with suppress(RuntimeError):  # no more threads to be had: the log stays silent
                thread.start()
                self._thread = thread

    def close(self) -> None:
        """Log nothing from now on. What is queued is written, for at most 0.2 s."""
        _root.removeHandler(self)
        self._tell_dropped()
        self._lines.put(b"")
        if self._thread is None:
            self._stream.close()
        else:
            self._thread.join(FLUSH_SECONDS)
        super().close()

    def _tell_dropped(self) -> None:
        if self._dropped:
            self._lines.put(b"(%d lines dropped here: nobody read them)\n" % self._dropped)
            self._dropped = 0

    def _write_lines(self) -> None:
        with suppress(OSError, ValueError), self._stream:  # the reader is gone, or the disk is full
            while line := self._lines.get():
                rest = memoryview(line)
                while rest:
                    count = self._stream.write(rest)
                    if count is None:  # somebody made it non-blocking, and it is full
                        select.select((), (self._stream,), ())
                    else:
                        rest = rest[count:]
                self._written += len(line)
                if self._dropped and self._lines.empty():
                    with self.lock or nullcontext():  # of `emit`, which never waits
                        self._tell_dropped()
        self._written = -math.inf  # no room for more


def configure(*, debug: bool, debug_file: str | None, redact: Redactor, shown: str | None = None) -> ExitStack:
    """Send this package's log lines to stderr, all of them with `debug`, warnings and worse without.

    With `debug` and a `debug_file` the lines go there too: parents are created, the file is appended to and made
    readable by its owner only. `-` means stderr. A file that cannot be opened, or that is stdin, stdout or a terminal,
    is a warning on stderr and nothing more. `shown` goes to stderr first, as it is. Returns what closes the log.
    """
    form = "%(asctime)s %(levelname)s %(message)s" if debug else "openai-responses-mcp: %(message)s"
    handlers: list[LogHandler] = []
    warning = ""
    if sys.__stderr__ is not None:  # else descriptor 2 is closed, or belongs to something else by now
        # A descriptor of its own: fd 2 may be pointed elsewhere later, and sys.stderr has buffers and an encoding.
        try:
            fd = os.dup(2)
        except OSError:  # none is left, which has to be told all the same
            fd = 2
        with suppress(OSError):
            handlers.append(LogHandler(open(fd, "wb", buffering=0, closefd=fd != 2), redact, form))  # noqa: SIM115
            if shown is not None:
                handlers[0].put(shown.encode() + b"\n")
    if debug and debug_file is not None and debug_file != "-":
        try:
            file = _open_to_append(Path(debug_file))
            if file is not None:
                handlers.append(LogHandler(file, redact, form))
        except (OSError, ValueError) as error:  # a NUL in the path, too
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            cure = exhausted(error) or "Choose another path for --debug."
            warning = f"the debug file {debug_file} cannot be opened ({why}); logging to stderr only. {cure}"
    closing = ExitStack()
    for handler in handlers:
        _root.addHandler(handler)
        closing.callback(handler.close)
    _root.setLevel(logging.DEBUG if debug else logging.WARNING)
    _root.propagate = False
    if warning:
        _root.warning("%s", warning)
    return closing


def _open_to_append(path: Path) -> RawIOBase | None:
    """Open a file that nobody else can read; None for stderr. Raises ValueError for one that must not be written to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without O_NONBLOCK, opening a pipe would wait for its reader; without O_NOCTTY, a terminal could become ours.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    file = open(os.open(path, flags, 0o600), "ab", buffering=0)  # noqa: PTH123, SIM115  # a descriptor, not a path
    try:
        status = os.fstat(file.fileno())
        standard = enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__))
        used = [number for number, stream in standard if stream and os.path.samestat(status, os.fstat(number))]
        is_device = stat.S_ISCHR(status.st_mode)
        if is_device and not file.isatty():  # the null device, whatever else leads there
            return file
        if used == [2]:
            file.close()
            return None
        refused = {
            "it is stdin, stdout or a terminal, which are for the protocol": used or is_device,
            "it is no file": not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)),
            "it belongs to another user, who could read it": sys.platform != "win32" and status.st_uid != os.geteuid(),
        }
        if why := next((reason for reason, holds in refused.items() if holds), None):
            raise ValueError(why)  # noqa: TRY301  # the file is closed below
        if sys.platform != "win32":
            os.fchmod(file.fileno(), 0o600)
    except BaseException:
        file.close()
        raise
    return file
