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
    from collections.abc import Callable, Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until a signal comes; return the exit code."""
    options = _parse(argv)
    with ExitStack() as stack:
        observer: Observer | None = None
        if options.record is not None:
            # One line is one write, so that a reader who waits for an event does not wait for a buffer.
            try:
                record = stack.enter_context(Path(options.record).open("a", buffering=1, encoding="utf-8"))
            except OSError as error:
                sys.stderr.write(
                    f"--record: {options.record} cannot be written ({error.strerror}); name another file.\n"
                )
                return 1
            observer = partial(_record, record)
        try:
            trio.run(_serve, options, observer)
        except OSError as error:
            sys.stderr.write(f"port {options.port} cannot be listened on ({error.strerror}); choose another.\n")
            return 1
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m responses_mcp.testing",
        description="Serve a fake of OpenAI's Responses API on 127.0.0.1 until SIGTERM or SIGINT.",
    )
    parser.add_argument(
        "--port", type=_number(int, 0, 65_535), default=0, help="port to listen on (default: any free one)"
    )
    parser.add_argument(
        "--latency",
        type=_number(float, 0, 86_400),
        default=0,
        metavar="SECONDS",
        help="silence before each reply to a plain call",
    )
    parser.add_argument(
        "--status",
        type=_number(int, 200, 599),
        default=200,
        metavar="N",
        help="answer plain calls, not those in background mode, with this error status",
    )
    parser.add_argument(
        "--interval", type=float, default=0, metavar="SECONDS", help="time between events of background responses"
    )
    parser.add_argument("--hang", action="store_true", help="never answer plain calls")
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="append a JSON line for each request, answer and hang-up; times are time.monotonic()",
    )
    return parser.parse_args(argv)


def _number(kind: type[int | float], least: int, most: int) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be a number from {least} to {most}, got {text!r}")
        return number

    return read


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
