"""How fast the server is gone, with calls in flight: `python -m tests.lab.bench.ends`.

SIGINT, SIGTERM and SIGHUP, a client that is killed, and a client that closes stdin with nothing in flight. Measured
from the act to the end of the process; the API must have seen every connection close, and stderr must be empty.
"""

from __future__ import annotations

import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import trio

from responses_mcp.testing import FakeApi, Hang, open_fake_api
from tests.lab.bench.results import load, machine
from tests.processes import COMMAND, environment, memory, program

CALLS = 50
ROUNDS = 5
SERVER = [*COMMAND, "--stdio"]
# Stands in for a client that dies: it passes its own pipes on to the server and can be killed alone.
CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
while True:
    server.stdin.write(sys.stdin.buffer.readline()); server.stdin.flush()
"""


def handshake_and_calls(calls: int) -> bytes:
    call = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"answer","arguments":{"query":"x"}}}\n'
    initialize = b'{"jsonrpc":"2.0","id":0,"method":"initialize"}\n'
    return initialize + b"".join(call % number for number in range(1, calls + 1))


async def gone(pid: int) -> None:
    """Wait until a process that is not our child has ended."""
    while memory(pid) is not None:  # noqa: ASYNC110  # nobody tells of it
        await trio.sleep(0.002)


async def end(api: FakeApi, how: str, home: str) -> tuple[float, str]:
    """Run one server to its end; return the milliseconds it took, and what it said on stderr."""
    calls = 0 if how == "stdin closed, idle" else CALLS
    before = len(api.requests)
    command = [sys.executable, "-c", CLIENT, *SERVER] if how == "client killed" else SERVER
    env = environment(Path(home), api.base_url, NO_PROXY="127.0.0.1")
    with tempfile.TemporaryFile() as stderr:
        async with program(command, stderr=stderr, env=env) as (process, stdin, stdout):
            pid = int(await stdout.receive_some()) if how == "client killed" else process.pid
            await stdin.send_all(handshake_and_calls(calls))
            await api.wait_requests(before + calls)
            if not calls:
                await stdout.receive_some()
            began = time.perf_counter()
            if how == "client killed":
                process.kill()
            elif how == "stdin closed, idle":
                await stdin.aclose()
            else:
                process.send_signal(getattr(signal, how))
            await gone(pid) if how == "client killed" else await process.wait()
            took = 1000 * (time.perf_counter() - began)
            await api.wait_hang_ups(before + calls)
        stderr.seek(0)
        said = stderr.read().decode()
    if how != "client killed" and process.returncode != 0:
        said += f"exit code {process.returncode}"
    return took, said


async def main() -> int:
    print(*machine().values(), f"load {load()}", sep=", ")
    failed = False
    with tempfile.TemporaryDirectory() as home:
        async with open_fake_api() as api:
            api.default = Hang()
            for how in ("SIGINT", "SIGTERM", "SIGHUP", "client killed", "stdin closed, idle"):
                rounds: list[tuple[float, str]] = []
                with trio.fail_after(120):
                    for _ in range(ROUNDS):
                        rounds.append(await end(api, how, home))  # noqa: PERF401  # flake8-async sees no await there
                took = [milliseconds for milliseconds, _ in rounds]
                said = "".join(text for _, text in rounds)
                failed = failed or bool(said)
                calls = 0 if "idle" in how else CALLS
                print(
                    f"{how:<20} {calls:>3} calls in flight: gone after median {statistics.median(took):.0f} ms, worst "
                    f"{max(took):.0f} ms; {calls} of {calls} upstream sockets closed; stderr: {said or 'empty'}"
                )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(trio.run(main))
