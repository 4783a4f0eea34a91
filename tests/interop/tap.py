"""Stands between a client and the server that it starts: `python tap.py FOLDER COMMAND...`.

Everything is passed on unchanged, signals and the exit code too. FOLDER gets one file per process, with one JSON list
per line of the conversation: ">" for the client's, "<" for the server's, "signal" and "exit" for what ended it.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any


def note(record: int, kind: str, what: Any) -> None:
    # One list is one write without a buffer, in a signal handler too, and the file is right even after a SIGKILL.
    os.write(record, json.dumps([kind, what]).encode() + b"\n")


def copy(source: IO[bytes], sink: IO[bytes], record: int, kind: str) -> None:
    try:
        for line in iter(source.readline, b""):
            note(record, kind, line.decode("utf-8", "replace"))
            sink.write(line)
            sink.flush()
        sink.close()
    except OSError:
        return  # the one side is gone; the other will see the end of its input


def main(folder: str, *command: str) -> int:
    name = Path(folder, f"{time.monotonic_ns()}-{os.getpid()}.jsonl")  # sorts by the start of the process
    record = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder)
    assert server.stdin
    assert server.stdout

    def pass_on(number: int, _: object) -> None:
        note(record, "signal", signal.Signals(number).name)
        server.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    inward = (sys.stdin.buffer, server.stdin, record, ">")
    threading.Thread(target=copy, args=inward, daemon=True).start()
    copy(server.stdout, sys.stdout.buffer, record, "<")
    note(record, "exit", server.wait())
    return server.returncode


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(abs(code))  # the thread may sit in a read of stdin, which would hold up an orderly exit
