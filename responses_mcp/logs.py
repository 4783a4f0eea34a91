"""Where log lines go: stderr, and a file when debugging says so; never stdout (spec 8.1).

A client that does not drain our stderr must not stop us: a daemon thread writes each stream, and lines beyond a bound
are dropped. A signal may interrupt `SimpleQueue.put`. `logging.handlers` would cost a start 5 ms.
"""

from __future__ import annotations

import logging
import os
import re
import select
import stat
import sys
import threading
from contextlib import ExitStack, suppress
from io import RawIOBase
from pathlib import Path
from queue import SimpleQueue

from responses_mcp.errors import PROGRAM, exhausted
from responses_mcp.secrets import Redactor

MAX_WAITING = 8 * 1024 * 1024  # bytes, beside one line, which may be of any size
FLUSH_SECONDS = 0.2

_root = logging.getLogger("responses_mcp")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")  # what ends a line, or moves a cursor


class LogHandler(logging.Handler):
    """Hands all lines, without secrets and control characters, to a daemon thread that writes them to `stream`."""

    def __init__(self, stream: RawIOBase, redact: Redactor, form: str) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(form))
        self._stream, self._redact = stream, redact
        self._lines = SimpleQueue[bytes | None]()  # None ends it
        self._taken = self._written = 0  # bytes; each is counted in one thread alone, so no lock is needed
        self._thread = threading.Thread(target=self._write_lines, name="responses-mcp-log", daemon=True)
        _root.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line, or drop it where too many wait. Never waits for the stream."""
        with suppress(Exception):  # a log line is never worth an exception
            line = _CONTROL.sub(lambda found: repr(found[0])[1:-1], self._redact(self.format(record)))
            self.put(line.encode("utf-8", "backslashreplace") + b"\n")

    def put(self, line: bytes) -> None:
        """Queue a line as it is. The first one starts the thread. Raises RuntimeError if there is no thread left."""
        if self._taken - self._written < MAX_WAITING:
            self._taken += len(line)
            self._lines.put(line)
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Log nothing from now on. What is queued is written, for at most 0.2 s."""
        _root.removeHandler(self)
        if self._thread.ident is None:  # one that began now could meet the interpreter's end, and would print that
            self._stream.close()
        else:
            self._lines.put(None)
            self._thread.join(FLUSH_SECONDS)
        super().close()

    def _write_lines(self) -> None:
        with suppress(OSError, ValueError), self._stream:  # the reader is gone, or the disk is full
            while (line := self._lines.get()) is not None:
                rest = memoryview(line)
                while rest:
                    count = self._stream.write(rest)
                    if count is None:  # somebody made it non-blocking, and it is full
                        select.select((), (self._stream,), ())
                    rest = rest[count or 0 :]
                self._written += len(line)


def configure(*, debug: bool, debug_file: str | None, redact: Redactor, shown: str | None = None) -> ExitStack:
    """Send this package's log lines to stderr, all of them with `debug`, warnings and worse without.

    With `debug` they also go to a `debug_file` other than `-`, appended, readable by its owner only. One that cannot be
    opened, or is a terminal or a standard stream, is a warning. `shown` goes to stderr first. Returns what ends it, and
    puts back how the package logged before.
    """
    closing = ExitStack()
    closing.callback(_root.setLevel, _root.level)
    closing.callback(setattr, _root, "propagate", _root.propagate)
    form = "%(asctime)s %(levelname)s %(message)s" if debug else f"{PROGRAM}: %(message)s"
    _root.setLevel(logging.DEBUG if debug else logging.WARNING)
    _root.propagate = False
    with suppress(OSError, RuntimeError):
        if sys.__stderr__ is not None:  # else descriptor 2 is closed, or belongs to something else by now
            stderr = LogHandler(open(os.dup(2), "wb", buffering=0), redact, form)  # noqa: PTH123, SIM115
            closing.callback(stderr.close)
            if shown is not None:
                stderr.put(shown.encode() + b"\n")
    if debug and debug_file is not None and debug_file != "-":
        try:
            closing.callback(LogHandler(_open_to_append(Path(debug_file)), redact, form).close)
        except (OSError, ValueError) as error:  # a NUL in the path, too
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            cure = exhausted(error) or "Choose another path for --debug."
            _root.warning("the debug file %s cannot be opened (%s); logging to stderr only. %s", debug_file, why, cure)
    return closing


def _open_to_append(path: Path) -> RawIOBase:
    """Open a file, which nobody else can read if it is new. Raises OSError, and ValueError for one of the protocol."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without O_NONBLOCK, opening a pipe would wait for its reader; without O_NOCTTY, a terminal could become ours.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    with ExitStack() as refused:
        file = refused.enter_context(open(os.open(path, flags, 0o600), "ab", buffering=0))  # noqa: PTH123
        status = os.fstat(file.fileno())
        is_device = stat.S_ISCHR(status.st_mode)  # the null device may be any of them
        for number, stream in enumerate((sys.__stdin__, sys.__stdout__, sys.__stderr__)):
            if file.isatty() or (stream and not is_device and os.path.samestat(status, os.fstat(number))):
                raise ValueError("it is a terminal or a standard stream, which are for the protocol")
        refused.pop_all()
    return file
