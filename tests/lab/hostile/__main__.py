"""The hostile corpus against real server processes, as tables: `python -m tests.lab.hostile`.

First the input, then the upstreams that misbehave; `python -m tests.lab.hostile upstream [WORDS]` takes only the second,
those with WORDS in their names. The upstream is a process of its own, so that its work is in no ping. A ping that took
too long may have been the machine's fault, so its mode is played again, and counts when it is slow every time.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from responses_mcp.testing import open_fake_api
from tests.hostile.attack import Gate, attack
from tests.hostile.corpus import CASES
from tests.hostile.trial import Asker, Outcome, Stuck
from tests.hostile.upstream import MODES, Ledger, Upstream
from tests.hostile.upstream_modes import KEY, TRACE, Mode
from tests.lab.upstream import open_upstream
from tests.processes import ServerProcess, environment, memory, server_process

SLOWEST_PING = 50.0  # ms
MOST_GROWTH = 32.0  # MiB
PAUSE = 0.005  # seconds between pings
TRIES = 3
SETTLED = 3.0  # seconds for memory and descriptors to come back


async def send_input() -> int:
    with tempfile.TemporaryDirectory() as home:
        async with open_fake_api() as api, server_process(environment(Path(home), api.base_url)) as server:
            gate = Gate(api)
            await attack(server.client, gate, CASES[0])
            before, _ = _memory(server)
            survived: Counter[str] = Counter()
            for case in CASES:
                problem = await attack(server.client, gate, case)
                survived[case.group] += problem is None
                print(f"{'FAIL' if problem else 'ok  '}  {case.group:<15} {case.name:<50} {problem or ''}")
            after, _ = _memory(server)
    print()
    for group, total in Counter(case.group for case in CASES).items():
        print(f"{group:<16} {survived[group]:>3} of {total}")
    print(f"{'all':<16} {survived.total():>3} of {len(CASES)}")
    print(f"resident memory  {before:.1f} MiB before, {after:.1f} MiB after; stderr: {len(server.stderr)} bytes")
    return 0 if survived.total() == len(CASES) and not server.stderr else 1


async def play_upstream(wanted: str) -> int:
    """Play the modes whose names have `wanted` in them; return the exit code."""
    alike: dict[tuple[object, ...], list[Mode]] = {}
    for mode in MODES:
        if wanted.lower() in mode.name.lower():
            alone = mode.name if mode.tls or mode.group == "parameters" else ""  # a port, or a fallback, of its own
            alike.setdefault((mode.seconds, mode.strict, alone), []).append(mode)
    outcomes: list[tuple[Mode, Outcome]] = []
    with tempfile.TemporaryDirectory() as home:
        async with _upstream(Path(home) / "ca.pem") as (upstream, ledger):
            for modes in alike.values():
                await _play(modes, Path(home), upstream, ledger, outcomes)
    every = Counter(mode.group for mode, _ in outcomes)
    good = Counter(mode.group for mode, outcome in outcomes if not outcome.problems)
    print("", *(f"{group:<26} {good[group]:>3} of {number}" for group, number in every.items()), sep="\n")
    print(f"{'all':<26} {good.total():>3} of {every.total()}")
    ping, growth, peak = (max(getattr(each, name) for _, each in outcomes) for name in ("ping", "growth", "peak"))
    print(f"slowest ping {ping:.1f} ms, most growth {growth:.1f} MiB, peak {peak:.0f} MiB")
    return 0 if good == every else 1


def _line(mode: Mode, outcome: Outcome) -> str:
    return (
        f"{'FAIL' if outcome.problems else 'ok  '}  {mode.name:<58.58}{outcome.requests:>2} requests "
        f"{outcome.seconds:>6.2f} s  ping {outcome.ping:>6.1f} ms {outcome.growth:>+6.1f} MiB {outcome.left:>+3} fd  "
        f"{'; '.join(outcome.problems)}{f'  (played {outcome.tries} times)' if outcome.tries > 1 else ''}"
    )


@asynccontextmanager
async def _upstream(ca: Path) -> AsyncGenerator[tuple[Upstream, Ledger]]:
    """Start the upstream and keep its ledger."""
    ledger = Ledger()

    async def keep() -> None:
        while True:
            ledger.note(*await running.line())

    async with open_upstream("tests.hostile.upstream", str(ca)) as running, trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        yield Upstream(*running.place), ledger
        nursery.cancel_scope.cancel()


async def _play(
    modes: list[Mode], home: Path, upstream: Upstream, ledger: Ledger, outcomes: list[tuple[Mode, Outcome]]
) -> None:
    """Play modes of one kind; a server process that did not survive one is followed by another."""
    first = modes[0]
    more = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_API_TIMEOUT": str(int(first.seconds * 1000)),
        "OPENAI_MAX_RETRIES": "1",
        "SSL_CERT_FILE": str(home / "ca.pem"),
    }
    config = home / "config.yaml"
    config.write_text(f"search: {{strict_domains: {str(first.strict).lower()}}}\n", encoding="utf-8")
    left = iter(modes)
    alive = False
    while not alive:
        alive = True
        async with server_process(
            environment(home, upstream.base_url(first), **more), "--config", str(config)
        ) as server:
            asker = Asker(server.client, ledger)
            for mode in left:
                outcome = Outcome()
                try:
                    for tries in range(1, TRIES + 1):
                        outcome = await _measured(server, asker, mode)
                        outcome.tries = tries
                        if outcome.ping <= SLOWEST_PING or len(outcome.problems) > 1:
                            break
                except* (Stuck, EOFError, trio.BrokenResourceError) as group:
                    outcome.problems += [f"{type(error).__name__}: {error}" for error in group.exceptions]
                    alive = False
                said = server.stderr.decode(errors="replace")
                outcome.problems += [f"stderr has {words!r}" for words in (TRACE, "Traceback") if words in said]
                print(_line(mode, outcome), flush=True)
                outcomes.append((mode, outcome))
                if not alive:
                    break


async def _measured(server: ServerProcess, asker: Asker, mode: Mode) -> Outcome:
    # What a first call costs is no growth, and the connection that an ordinary one leaves is kept for the next.
    await (asker.attempt(mode) if mode.tls else asker.ask(mode, "Are you there?"))
    server.client.heard.clear()
    (resident, _), descriptors = _memory(server), _descriptors(server)
    pings: list[float] = []
    over = trio.Event()

    async def ping() -> None:
        while not over.is_set():
            pings.append(await asker.ping() * 1000)
            await trio.sleep(PAUSE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ping)
        outcome = await asker.attempt(mode)
        with trio.move_on_after(SETTLED):
            while _descriptors(server) > descriptors or _memory(server)[0] - resident > MOST_GROWTH:  # noqa: ASYNC110
                await trio.sleep(PAUSE)
        over.set()
    now, outcome.peak = _memory(server)
    outcome.ping, outcome.growth, outcome.left = max(pings), now - resident, _descriptors(server) - descriptors
    if outcome.ping > SLOWEST_PING:
        outcome.problems.append(f"a ping took {outcome.ping:.0f} ms")
    if outcome.growth > MOST_GROWTH:
        outcome.problems.append(f"{outcome.growth:.0f} MiB more")
    if outcome.left > 0:
        outcome.problems.append(f"{outcome.left} descriptors left")
    return outcome


def _memory(server: ServerProcess) -> tuple[float, float]:
    return memory(server.process.pid) or (0.0, 0.0)


def _descriptors(server: ServerProcess) -> int:
    folder = Path(f"/proc/{server.process.pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


if __name__ == "__main__":
    code = 0 if sys.argv[1:] else trio.run(send_input)
    sys.exit(code | trio.run(play_upstream, " ".join(sys.argv[2:])))
