"""Stands between a client and the server that it starts: `python tap.py FOLDER COMMAND...`.

Everything is passed on unchanged: signals, the exit code, and that one side has closed or lost interest. FOLDER gets one
file per process, with a JSON list per line of the conversation: ">" for the client's, "<" for the server's, "signal" and
"exit" for what ended it.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

STDIN, STDOUT = 0, 1


class Side:
    """What one side writes: noted line by line, and passed on as it comes."""

    def __init__(self, record: int, kind: str) -> None:
        self._record = record
        self._kind = kind
        self._rest = b""

    def pass_on(self, data: bytes, to: int) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            note(self._record, self._kind, line.decode("utf-8", "replace"))
        while data:
            data = data[os.write(to, data) :]


def note(record: int, kind: str, what: object) -> None:
    # One list is one write without a buffer, in a signal handler too, and the file is right even after a SIGKILL.
    os.write(record, json.dumps([kind, what]).encode() + b"\n")


def inward(side: Side, to: int) -> None:
    try:
        while data := os.read(STDIN, 65536):
            side.pass_on(data, to)
    except OSError:
        return  # the server is gone, and the other direction sees that, too
    os.close(to)


def outward(side: Side, source: int) -> None:
    """Pass on until the server has closed its output or the client no longer reads it."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    poll.register(STDOUT, 0)  # tells only of errors, such as that nobody reads
    try:
        while STDOUT not in (ready := dict(poll.poll())):
            if source not in ready or not (data := os.read(source, 65536)):
                break
            side.pass_on(data, STDOUT)
    except OSError:
        pass  # the client went while it was written to
    os.close(source)


def main(folder: str, *command: str) -> int:
    name = Path(folder, f"{time.monotonic_ns()}-{os.getpid()}.jsonl")  # sorts by the start of the process
    record = os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    (from_us, to_server), (from_server, to_us) = os.pipe(), os.pipe()
    server = subprocess.Popen(command, stdin=from_us, stdout=to_us, cwd=folder)
    os.close(from_us)
    os.close(to_us)

    def send_on(number: int, _: object) -> None:
        note(record, "signal", signal.Signals(number).name)
        server.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, send_on)
    threading.Thread(target=inward, args=(Side(record, ">"), to_server), daemon=True).start()
    outward(Side(record, "<"), from_server)
    note(record, "exit", server.wait())
    return server.returncode


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    os._exit(abs(code))  # the thread may sit in a read of stdin, which would hold up an orderly exit
