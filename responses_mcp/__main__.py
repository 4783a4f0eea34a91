"""The console script and `python -m responses_mcp`. Imports next to nothing, so that a signal finds a quiet process."""

from __future__ import annotations

import os
import signal
import sys

_ENDING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


def main() -> None:
    """Run the command line and exit with its code."""
    argv = sys.argv[1:]
    serving = "--stdio" in argv and argv[0].startswith("-")  # a command may have it among its words
    if serving:
        # A client may end us while we still import. Once serving, the handlers of `serve_descriptors` take over.
        for number in _ENDING:
            signal.signal(number, _end_quietly)
    from responses_mcp.cli import run  # noqa: PLC0415  # after the signals are in hand

    try:
        code = run(argv)
    except KeyboardInterrupt:
        code = 130
    if serving:
        # Without the interpreter's end: it would take OpenSSL down under a call's thread that was left behind while
        # loading certificates, and that crashes.
        os._exit(code)
    sys.exit(code)


def _end_quietly(number: int, frame: object) -> None:  # noqa: ARG001  # the signature of a signal handler
    try:
        if "responses_mcp.debuglog" in sys.modules:  # the client may have had answers by now, and the log tells of them
            import logging  # noqa: PLC0415  # complete by then: the module that imports debuglog needs it before

            logging.shutdown()
    finally:
        os._exit(0)  # whatever came of that: the log may have been half set up


if __name__ == "__main__":
    main()
