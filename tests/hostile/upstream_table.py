"""Every mode of the hostile upstream against real server processes, as a table: `python -m tests.hostile upstream`.

The upstream is a process of its own, so that its work is in no ping. A ping that took too long may have been the
machine's fault, so its mode is played again, and counts when it is slow every time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from tests.bench.figures import memory
from tests.hostile.trial import Asker, Outcome, Stuck
from tests.hostile.upstream import MODES, Ledger, Upstream
from tests.hostile.upstream_modes import KEY, TRACE, Mode
from tests.processes import ROOT, ServerProcess, environment, server_process

SLOWEST_PING = 50.0  # ms
MOST_GROWTH = 32.0  # MiB
PING_PAUSE = 0.005  # seconds
TRIES = 3
SETTLED = 3.0  # seconds for memory and descriptors to come back
CONFIG = "search: {strict_domains: true}\n"


@dataclass
class Figures:
    """What was measured while a mode was played, and after it."""

    ping: float  # ms, the slowest
    growth: float  # MiB
    left: int  # descriptors
    tries: int = 1

    def misses(self) -> list[str]:
        """Return what is beyond its bound."""
        return [
            *([f"a ping took {self.ping:.0f} ms"] if self.ping > SLOWEST_PING else []),
            *([f"{self.growth:.0f} MiB more"] if self.growth > MOST_GROWTH else []),
            *([f"{self.left} descriptors left"] if self.left > 0 else []),
        ]


class Table:
    """Prints a line for each mode and keeps what the end of the table says."""

    def __init__(self) -> None:
        self.all: Counter[str] = Counter()
        self.good: Counter[str] = Counter()
        self.ping = self.growth = self.peak = 0.0
        self.beside: list[str] = []

    def add(self, mode: Mode, outcome: Outcome, figures: Figures) -> None:
        problems = outcome.problems + figures.misses()
        self.all[mode.group] += 1
        self.good[mode.group] += not problems
        self.ping, self.growth = max(self.ping, figures.ping), max(self.growth, figures.growth)
        again = f"  (played {figures.tries} times)" if figures.tries > 1 else ""
        print(
            f"{'FAIL' if problems else 'ok  '}  {mode.name:<58.58}{outcome.requests:>2} requests {outcome.seconds:>6.2f} s "
            f"ping {figures.ping:>6.1f} ms {figures.growth:>+6.1f} MiB {figures.left:>+3} fd  {'; '.join(problems)}{again}",
            flush=True,
        )

    def end(self) -> int:
        print()
        for group, number in self.all.items():
            print(f"{group:<26} {self.good[group]:>3} of {number}")
        print(f"{'all':<26} {self.good.total():>3} of {self.all.total()}")
        print(f"slowest ping {self.ping:.1f} ms, most growth {self.growth:.1f} MiB, peak memory {self.peak:.0f} MiB")
        print("\n".join(self.beside))
        return 0 if self.good.total() == self.all.total() and not self.beside else 1


async def main(wanted: str = "") -> int:
    """Play the modes whose names have `wanted` in them; return the exit code."""
    table = Table()
    alike: dict[tuple[object, ...], list[Mode]] = {}
    for mode in MODES:
        if wanted.lower() in mode.name.lower():
            alone = mode.name if mode.tls or mode.group == "parameters" else ""
            alike.setdefault((mode.seconds, mode.strict, alone), []).append(mode)
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "strict.yaml").write_text(CONFIG)
        async with upstream_process(Path(home) / "ca.pem") as (upstream, ledger):
            for modes in alike.values():
                while modes:
                    await _serve(modes, Path(home), upstream, ledger, table)
    return table.end()


@asynccontextmanager
async def upstream_process(ca: Path) -> AsyncGenerator[tuple[Upstream, Ledger]]:
    """Start the upstream and keep its ledger."""
    ledger = Ledger()
    command = [sys.executable, "-m", "tests.hostile.upstream", str(ca)]
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    try:
        rest = b""
        while b"\n" not in rest:
            rest += await process.stdout.receive_some()
        ports, _, rest = rest.partition(b"\n")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep, ledger, process.stdout, rest)
            yield Upstream(*json.loads(ports)), ledger
            nursery.cancel_scope.cancel()
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


async def _keep(ledger: Ledger, lines: trio.abc.ReceiveStream, rest: bytes) -> None:
    async for data in lines:
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            ledger.note(*json.loads(line))


async def _serve(modes: list[Mode], home: Path, upstream: Upstream, ledger: Ledger, table: Table) -> None:
    """Play modes, and take them from the list, as long as one server process is good for them."""
    first = modes[0]
    more = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_TIMEOUT": str(int(first.seconds * 1000)),
        "OPENAI_MAX_RETRIES": "1",
        "SSL_CERT_FILE": str(home / "ca.pem"),
    }
    arguments = ["--config", str(home / "strict.yaml")] if first.strict else []
    async with server_process(environment(home, upstream.base_url(first), **more), *arguments) as server:
        # What the first call costs is no growth, and the connection that it leaves is kept for the next.
        asker = Asker(server.client, ledger)
        await (asker.attempt(first) if first.tls else asker.ask(first, "Are you there?"))
        stuck = False
        while modes and not stuck:
            mode = modes.pop(0)
            outcome, figures = Outcome(0, 0.0), Figures(0.0, 0.0, 0)
            try:
                for tries in range(1, TRIES + 1):
                    outcome, figures = await _measure(server, asker, mode)
                    figures.tries = tries
                    if outcome.problems or figures.ping <= SLOWEST_PING:
                        break
            except* (Stuck, EOFError, trio.BrokenResourceError) as group:
                stuck = True
                outcome.problems += [f"{type(error).__name__}: {error}" for error in group.exceptions]
            table.add(mode, outcome, figures)
        table.peak = max(table.peak, _resident(server, peak=True))
    for trace in (TRACE, "Traceback"):
        if trace in server.stderr.decode(errors="replace"):
            table.beside.append(f"stderr of the server for {first.name!r} and its like has {trace!r}")


async def _measure(server: ServerProcess, asker: Asker, mode: Mode) -> tuple[Outcome, Figures]:
    # What a first call costs is no growth, and the connection that an ordinary one leaves is kept for the next.
    await (asker.attempt(mode) if mode.tls else asker.ask(mode, "Are you there?"))
    server.client.heard.clear()
    resident, descriptors = _resident(server), _descriptors(server)
    pings: list[float] = []
    over = trio.Event()

    async def ping() -> None:
        while not over.is_set():
            pings.append(await asker.ping() * 1000)
            await trio.sleep(PING_PAUSE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping)
        try:
            outcome = await asker.attempt(mode)
            with trio.move_on_after(SETTLED):
                while _descriptors(server) > descriptors or _resident(server) - resident > MOST_GROWTH:  # noqa: ASYNC110
                    await trio.sleep(PING_PAUSE)
        finally:
            over.set()
    return outcome, Figures(max(pings), _resident(server) - resident, _descriptors(server) - descriptors)


def _resident(server: ServerProcess, *, peak: bool = False) -> float:
    found = memory(server.process.pid)
    return found[peak] if found else 0.0


def _descriptors(server: ServerProcess) -> int:
    folder = Path(f"/proc/{server.process.pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0
