"""The fake API as a process of its own: ``python -m responses_mcp.testing``.

It prints one line, ``listening http://127.0.0.1:PORT/v1``, serves until SIGTERM or SIGINT, and exits with 0.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import trio

from .fake_api import EventName, Observer, RecordedRequest, answer_by_echo, open_fake_api
from .replies import Error, Hang, Reply

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; return the exit code. Raises OSError for a port or a record that cannot be had."""
    options = _parse(argv)
    with ExitStack() as stack:
        observer: Observer | None = None
        if options.record is not None:
            # One line is one write, so that a reader who waits for an event does not wait for a buffer.
            record = stack.enter_context(options.record.open("a", buffering=1, encoding="utf-8"))
            observer = partial(_record, record)
        trio.run(_serve, options, observer)
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m responses_mcp.testing",
        description="Serve a fake of OpenAI's Responses API on 127.0.0.1 until SIGTERM or SIGINT.",
    )
    parser.add_argument("--port", type=int, default=0, help="port to listen on (default: any free one)")
    for name, seconds in (
        ("latency", "silence before each reply to a plain call"),
        ("interval", "time between events of background responses"),
    ):
        parser.add_argument(f"--{name}", type=float, default=0, metavar="SECONDS", help=seconds)
    status = "answer plain calls, not those in background mode, with this error status"
    parser.add_argument("--status", type=int, default=200, metavar="N", help=status)
    parser.add_argument("--hang", action="store_true", help="never answer plain calls")
    record = "append a JSON line for each request, answer and hang-up; times are time.monotonic()"
    parser.add_argument("--record", type=Path, metavar="FILE", help=record)
    return parser.parse_args(argv)


async def _serve(options: argparse.Namespace, observer: Observer | None) -> None:
    def reply(request: RecordedRequest) -> Reply:
        if options.hang:
            return Hang()
        usual = answer_by_echo(request) if options.status == 200 else Error(options.status)
        return replace(usual, latency=options.latency)

    # The signals are caught before the line is printed: who has read it may send one at once.
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with open_fake_api(reply, port=options.port, observer=observer) as api:
            api.stored.interval = options.interval
            sys.stdout.write(f"listening {api.base_url}\n")
            sys.stdout.flush()
            async for _ in signals:
                return


def _record(file: TextIO, event: EventName, request: RecordedRequest) -> None:
    line = {"event": event, "index": request.index, "at": time.monotonic()}
    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
