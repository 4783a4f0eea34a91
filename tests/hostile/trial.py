"""One mode of the hostile upstream against a live server: what the call became, and what it left behind."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from itertools import count

import trio

from responses_mcp.testing.client import McpClient
from tests.hostile.upstream import Ledger
from tests.hostile.upstream_modes import TRACE, Mode

LONGER = 20.0  # seconds beyond its deadline, after which a call, or the end of a connection, counts as stuck
SOON = 1.0  # seconds for what comes late
_turns = count(1)


class Stuck(Exception):
    """The server does not answer any more."""


@dataclass
class Outcome:
    """How a call ended; no problems means as it must. What a process shows besides is measured by `tests.lab.hostile`."""

    requests: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    ping: float = 0.0  # ms, the slowest
    growth: float = 0.0  # MiB
    peak: float = 0.0  # MiB
    left: int = 0  # descriptors
    tries: int = 1


class Asker:
    """Asks a server for modes, and for signs of life meanwhile."""

    def __init__(self, client: McpClient, ledger: Ledger) -> None:
        self.client = client
        self.ledger = ledger
        self._sending = trio.Lock()

    async def attempt(self, mode: Mode) -> Outcome:
        """Ask for the mode, and then for something ordinary, in which nothing of it may be left."""
        before, begun = len(self.ledger.asked[mode.name]), trio.current_time()
        became = await self.ask(mode, f"play {next(_turns)}: {mode.name}")
        if mode.tls in ("", "good") and not self.ledger.asked[mode.name][before:]:
            became = await self.ask(
                mode, f"play {next(_turns)}: {mode.name}"
            )  # the machine was busy until its deadline
        outcome = Outcome(0, trio.current_time() - begun)
        if not re.match(mode.becomes, became, re.DOTALL):
            outcome.problems.append(f"became {became[:300]!r}")
        await self._settle(mode, SOON)  # so that what comes late has come before the next question
        asked = self.ledger.asked[mode.name][before:]
        outcome.requests = len(asked)
        if outcome.requests > mode.requests:
            outcome.problems.append(f"{outcome.requests} requests")
        if mode.tls in ("", "good") and not mode.strict:
            question = f"after {mode.name}".replace("404", "a lost page")  # which no answer is found for
            became = await self.ask(mode, question)
            kept = [name for name in asked[0] if name not in mode.loses] if asked else []
            if f"The answer to: {question}" not in became:
                outcome.problems.append(f"then {became[:300]!r}")
            elif self.ledger.asked[question][-1] != kept:
                outcome.problems.append(f"then asked with {self.ledger.asked[question][-1]}")
        if not await self._settle(mode, LONGER):
            outcome.problems.append("the connection is still open")
        if TRACE in json.dumps(self.client.heard):
            outcome.problems.append("the key came out")
        return outcome

    async def _settle(self, mode: Mode, seconds: float) -> bool:
        """Wait for the end of the mode's plays, and tell whether they have ended."""
        with trio.move_on_after(seconds):
            await self.ledger.over(mode.name)
        return not self.ledger.playing[mode.name]

    async def ask(self, mode: Mode, question: str) -> str:
        """Ask, as a client that watches the progress, and return what became of the question, in words."""
        arguments = {"query": question, **({"domains": ["example.com"]} if mode.strict else {})}
        params = {"name": "answer", "arguments": arguments, "_meta": {"progressToken": question}}
        with trio.move_on_after(mode.seconds + LONGER):
            async with self._sending:
                call = await self.client.request("tools/call", params)
            message = await self.client.response(call)
            if "result" in message:
                result = message["result"]["structuredContent"]
                return f"answer: {result['answer']} {json.dumps(result['citations'], ensure_ascii=False)}"
            failure = message["error"]
            return f"error: {failure['data']['message']}" if failure["code"] == -32001 else f"a bug: {failure}"
        raise Stuck(f"no end after {mode.seconds + LONGER:g} s")

    async def ping(self) -> float:
        """Return the seconds until a ping was answered."""
        begun = time.perf_counter()
        async with self._sending:
            ping = await self.client.request("ping")
        self.client.heard.remove(await self.client.response(ping))
        return time.perf_counter() - begun
