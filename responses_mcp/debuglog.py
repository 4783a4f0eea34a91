"""Where log lines go: stderr, and a file when debugging says so; never stdout (contract 8.1).

The decision is taken once, by `configure`. Every line passes the redactor. A client that does not drain our stderr
must not be able to stop us, so a thread of its own does the writing, and lines beyond a bound are dropped and counted.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from responses_mcp.redaction import Redactor

MAX_WAITING_LINES = 2_000
FLUSH_SECONDS = 0.2

_root = logging.getLogger("responses_mcp")


class _LineFormatter(logging.Formatter):
    """One record, one line, without secrets."""

    def __init__(self, redact: Redactor, *, debug: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s" if debug else "openai-responses-mcp: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = self._redact(super().format(record))
        return line.replace("\r", "\\r").replace("\n", "\\n") + "\n"


class LogThread(logging.Handler):
    """Writes lines to binary streams from a daemon thread, which the first line starts."""

    def __init__(self, streams: list[IO[bytes]]) -> None:
        super().__init__()
        self._streams = streams
        self._lines: queue.Queue[bytes | None] = queue.Queue(MAX_WAITING_LINES)
        self._dropped = 0
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; drop it when the queue is full."""
        try:
            line = self.format(record).encode("utf-8", "backslashreplace")
        except Exception:  # noqa: BLE001  # a log line is never worth an exception
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_lines, name="responses-mcp-log", daemon=True)
            self._thread.start()
        if self._dropped:
            line = b"(%d lines dropped here: nobody read them)\n" % self._dropped + line
        try:
            self._lines.put_nowait(line)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def _write_lines(self) -> None:
        while (line := self._lines.get()) is not None:
            for stream in list(self._streams):
                try:
                    stream.write(line)
                    stream.flush()
                except BlockingIOError:
                    continue  # somebody made our stderr non-blocking and it is full: that line is lost
                except (OSError, ValueError):
                    self._streams.remove(stream)

    def close(self) -> None:
        """Write what is queued, for at most 0.2 s, and end the thread."""
        if self._thread is not None:
            try:
                self._lines.put(None, timeout=FLUSH_SECONDS)
            except queue.Full:
                pass
            else:
                self._thread.join(FLUSH_SECONDS)
        super().close()


def configure(*, debug: bool, debug_file: str | None, redact: Redactor) -> LogThread:
    """Send this package's log lines to stderr, all of them with `debug`, warnings and worse without.

    With `debug` and a `debug_file` the lines go there too: parents are created, the file is appended to and is
    readable by its owner only. A file that cannot be opened is a warning on stderr and nothing more.
    """
    streams: list[IO[bytes]] = []
    with suppress(OSError):  # started without a stderr
        # A descriptor of its own: fd 2 may be pointed elsewhere later, and sys.stderr has buffers and an encoding.
        streams.append(open(os.dup(2), "wb", buffering=0))  # noqa: SIM115, PTH123  # lives as long as the process
    problem: OSError | None = None
    if debug and debug_file is not None:
        try:
            path = Path(debug_file)
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            streams.append(open(descriptor, "ab", buffering=0))  # noqa: SIM115, PTH123
        except OSError as error:
            problem = error
    handler = LogThread(streams)
    handler.setFormatter(_LineFormatter(redact, debug=debug))
    _root.addHandler(handler)
    _root.setLevel(logging.DEBUG if debug else logging.WARNING)
    _root.propagate = False
    if problem is not None:
        _root.warning(
            "the debug file %s cannot be opened (%s); logging to stderr only. Choose another path for --debug.",
            debug_file,
            problem.strerror,
        )
    return handler
