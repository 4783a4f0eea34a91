"""One soak: load in phases, quiet moments between them, and the end."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import trio

from tests.lab.soak.client import PIPE, open_server
from tests.lab.soak.expected import COLLISION
from tests.lab.soak.ledger import Ledger
from tests.lab.soak.library import Library
from tests.lab.soak.mix import Mix
from tests.lab.soak.plays import FAULTS, KINDS
from tests.lab.soak.samples import KEPT_IDLE, Sample, growth, look
from tests.lab.upstream import open_upstream

PHASES = ((1, 1), (3, 1), (10, 2), (30, 3), (60, 4), (100, 4), (150, 3), (200, 3))  # calls in flight, weight
AT_ONCE = 16  # messages in one write
OVERDUE = 25.0  # seconds
SETTLING = 5.0  # seconds for what was cancelled to be gone
QUIET = 0.7  # seconds in which nothing may happen
EVERY = 2.0  # seconds between two looks
SLOW_PHASES = 0.1  # of all
SLOWLY = ((0.0, 0.004, 2048), (0.0, 0.05, 16384), (2.0, 0.0, PIPE))  # seconds once and before each read, and its bytes
SLOW_CALLS = 150  # in such a phase
AFTER_SLOWNESS = 2.0  # seconds for what has piled up
ENOUGH = 20  # violations
EVERYTHING = 20_000  # calls among which everything comes up
CANCELS = ("silent after its cancel", "answered before its cancel", "refused: the id is in flight")
MANUAL_CALLS = 4_000  # at the beginning
LAST_CALLS = 20  # that are in flight when stdin is closed
AFTER_THE_END = 15.0  # seconds; the server gives its last calls 10


class Soak:
    """A run, and what came of it: the quiet moments, the largest figures, and the last ones of the upstream."""

    def __init__(self, seed: int, calls: int, seconds: float, show: Callable[[Sample], None]) -> None:
        self.calls = calls
        self.seconds = seconds
        self.ledger = Ledger()
        self.mix = Mix(seed, self.ledger, Library(), manual_calls=min(MANUAL_CALLS, calls // 20))
        self.quiet: list[Sample] = []
        self.figures: dict[str, Any] = {}
        self.slowest_ping = self.most_memory = 0.0
        self.most_descriptors = 0
        self.elapsed = 0.0
        self._show = show
        self._quiet_calls = min(5_000, max(200, calls // 40))
        self._quiet_seconds = min(60.0, max(4.0, seconds / 40))
        self._most = 0.0
        self._in_flight = 0

    async def run(self) -> None:
        """Soak until the calls are made or the time is over, whichever comes first."""
        with tempfile.TemporaryDirectory() as home:
            async with (
                open_upstream("tests.lab.soak.upstream") as self.upstream,
                open_server(home, self.upstream.base_url, self.ledger) as self.peer,
            ):
                self._began = trio.current_time()
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._look_now_and_then)
                        await self._to_the_end()
                        nursery.cancel_scope.cancel()
                except* (trio.TooSlowError, trio.BrokenResourceError, EOFError) as group:
                    code = self.peer.process.returncode
                    for error in group.exceptions:
                        self.ledger.wrong(f"the conversation broke down, exit code {code}: {error!r}")
                if self.peer.stderr:
                    self.ledger.wrong(f"stderr is not empty: {self.peer.stderr.decode(errors='replace')}")

    @property
    def _now(self) -> float:
        return trio.current_time() - self._began

    @property
    def _over(self) -> bool:
        over = self.mix.calls >= self.calls or self._now >= self.seconds
        return over or self.peer.ended.is_set() or len(self.ledger.violations) >= ENOUGH

    async def _to_the_end(self) -> None:
        await self.peer.send(self.mix.hello(trio.current_time()))
        await self._answered()
        next_calls, next_time = self._quiet_calls, self._quiet_seconds
        while not self._over:
            await self._phase()
            if self.mix.calls >= next_calls or self._now >= next_time:
                await self._quiet()
                next_calls, next_time = self.mix.calls + self._quiet_calls, self._now + self._quiet_seconds
        if not self.quiet or self.quiet[-1].calls < self.mix.calls:
            await self._quiet()
        await self._end()

    async def _phase(self) -> None:
        """Keep so many calls in flight for a while."""
        rng = self.mix.rng
        [target] = rng.choices([target for target, _ in PHASES], [weight for _, weight in PHASES])
        until = min(self.calls, self.mix.calls + target * rng.randrange(3, 12))
        slowly = rng.random() < SLOW_PHASES
        if slowly:
            self.peer.stall, self.peer.pause, self.peer.bite = rng.choice(SLOWLY)
            self.ledger.read_slowly_until = float("inf")
            until = min(until, self.mix.calls + SLOW_CALLS)
        while self.mix.calls < until and not self._over:
            now = trio.current_time()
            data = self.mix.cancels(now)
            room = target - self.ledger.in_flight
            for _ in range(min(room, AT_ONCE)):
                data += self.mix.turn(now)
            self._in_flight = max(self._in_flight, self.ledger.in_flight)
            if data:
                await self._send(data)
            if room < AT_ONCE:
                await self.peer.news(min(self.mix.next_cancel(), now + 1))
            else:
                await trio.lowlevel.checkpoint()
        if slowly:
            self.peer.pause, self.peer.bite = 0.0, PIPE
            self.ledger.read_slowly_until = trio.current_time() + AFTER_SLOWNESS

    async def _send(self, data: bytes) -> None:
        if self.mix.rng.random() < 0.05:
            cut = self.mix.rng.randrange(len(data))
            await self.peer.send(data[:cut])
            await trio.sleep(0.002)
            data = data[cut:]
        await self.peer.send(data)

    async def _quiet(self) -> None:
        """Let everything end, see that nothing goes on, and take the figures."""
        if self.mix.rng.random() < 0.3:
            await self.peer.send(self.mix.cancel_everything(trio.current_time()))
        await self._answered()
        await self._released(KEPT_IDLE)
        before = await self.upstream.ask("forget")
        await trio.sleep(QUIET)
        after = await self.upstream.ask("figures")
        if after["requests"] != before["requests"]:
            self.ledger.wrong(f"{after['requests'] - before['requests']} requests were made when nothing was asked")
        self._note(after)
        if sample := look(self.peer.process.pid, self._now, self.mix.calls):
            most, slowest = max(self._most, sample.memory), self.ledger.slowest_ping
            sample = replace(
                sample, connections=after["open"], most=most, in_flight=self._in_flight, slowest_ping=slowest
            )
            self.quiet.append(sample)
            self._show(sample)
        self._most = self._in_flight = 0
        self.ledger.slowest_ping = 0.0

    async def _answered(self) -> None:
        """Wait until nothing is owed, with the cancels that are due meanwhile."""
        deadline = trio.current_time() + OVERDUE
        while not self.ledger.settled and trio.current_time() < deadline and not self.peer.ended.is_set():
            if data := self.mix.cancels(trio.current_time()):
                await self.peer.send(data)
            await self.peer.news(min(self.mix.next_cancel(), trio.current_time() + 0.2))
        if not self.ledger.settled:
            self.ledger.wrong(f"not answered: {self.ledger.overdue(float('inf'))[:10]}")

    async def _released(self, kept: int) -> dict[str, Any]:
        """Wait until the upstream has seen all connections close but so many idle ones."""
        deadline = trio.current_time() + SETTLING
        while True:
            seen = await self.upstream.ask("figures")
            if seen["under_way"] == 0 and seen["open"] <= kept:
                return seen
            if trio.current_time() > deadline:
                self.ledger.wrong(
                    f"{seen['under_way']} requests are under way on {seen['open']} connections for nobody"
                )
                return seen
            await trio.sleep(0.1)

    def _note(self, figures: dict[str, Any]) -> None:
        self.figures = figures
        self.elapsed = self._now
        self.slowest_ping = max(self.slowest_ping, self.ledger.slowest_ping)
        for violation in figures["violations"]:
            self.ledger.wrong(violation)
        if self.ledger.outcomes[COLLISION] > figures["treated"].get("idle", 0):
            self.ledger.wrong(f"{self.ledger.outcomes[COLLISION]} connections broke that the upstream did not close")

    async def _end(self) -> None:
        """Close stdin with calls in flight: they are answered, the process ends, and so do its connections."""
        for _ in range(LAST_CALLS):
            await self.peer.send(self.mix.turn(trio.current_time()))
        await self.peer.stdin.aclose()
        with trio.move_on_after(AFTER_THE_END):
            await self.peer.ended.wait()
            await self.peer.process.wait()
        if self.peer.process.returncode != 0:
            self.ledger.wrong(f"the exit code is {self.peer.process.returncode}")
        if owed := self.ledger.overdue(float("inf")):
            self.ledger.wrong(f"not answered at the end: {owed[:10]}")
        figures = await self._released(0)
        self._note(figures)
        for violation in (*growth(self.quiet), *self._never()):
            self.ledger.wrong(violation)

    def _never(self) -> list[str]:
        """Say what did not come up in a run that is long enough for all of it."""
        if self.mix.calls < EVERYTHING:
            return []
        treated, outcomes = self.figures["treated"], self.ledger.outcomes
        came_up = {f"request: {kind}": treated.get(kind, 0) for kind in KINDS}
        came_up |= {f"answer: {fault}": outcomes[f"answer: {fault}"] for fault in FAULTS}
        came_up |= {outcome: outcomes[outcome] for outcome in CANCELS}
        came_up |= {
            "progress": self.ledger.progress,
            "frames": self.peer.frames.framed,
            "lines": self.peer.frames.lines,
        }
        return [f"never came up: {what}" for what, count in came_up.items() if not count]

    async def _look_now_and_then(self) -> None:
        """Take the memory and the descriptors of a busy server too, and see that nobody waits for ever."""
        while True:
            sample = look(self.peer.process.pid, self._now, self.mix.calls)
            if sample is not None:
                self._most = max(self._most, sample.memory)
                self.most_memory = max(self.most_memory, sample.memory)
                self.most_descriptors = max(self.most_descriptors, sample.descriptors)
            if not self.peer.pause and (late := self.ledger.overdue(trio.current_time() - OVERDUE)):
                self.ledger.wrong(f"not answered for {OVERDUE:g} s: {late[:10]}")
            await trio.sleep(EVERY)
