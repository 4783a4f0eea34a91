"""Limits: the words of a refusal, and that random schedules of calls keep every limit as `limits.py` promises."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.errors import LimitReached
from responses_mcp.settings.model import LimitSettings, ModelPrice, Profile, ResearchSettings, Settings, UsageSettings
from responses_mcp.testing import bodies
from responses_mcp.usage.bill import Call
from responses_mcp.usage.limits import NOTHING, Amount, dollars, require_room
from responses_mcp.usage.meter import Caller, Meter
from responses_mcp.usage.models import PriceList, guess
from tests.usage.test_ledger import NOW, counted

SCHEDULES = 200
PRICES = {name: ModelPrice(input=price, output=0, web_search=0) for name, price in (("small", 1), ("large", 7))}
PROFILES = [
    Profile(model="small", reasoning_effort="none"),
    Profile(model="small", reasoning_effort="high"),
    Profile(model="large", reasoning_effort="none", background=True),
]


def refusal(name: str, *, limit: float, spent: Amount, held: Amount = NOTHING) -> str:
    with pytest.raises(LimitReached) as caught:
        require_room({name: limit}, Amount(1, 60_000, 0.3), spent, held)
    return str(caught.value)


def test_a_refusal_names_limit_spent_held_estimate_and_setting() -> None:
    assert refusal("session_cost_usd", limit=1, spent=Amount(usd=0.7), held=Amount(1, usd=0.25)) == (
        "No request was made: limits.session_cost_usd is $1.00; $0.70 spent in this session, $0.25 held by running "
        "calls, $0.30 expected of this call. Raise it (LIMITS_SESSION_COST_USD), or ask again when the running calls "
        "have ended."
    )
    assert refusal("day_cost_usd", limit=1, spent=Amount(usd=1.2)) == (
        "No request was made: limits.day_cost_usd is $1.00; $1.20 spent today, $0.00 held by running calls, $0.30 "
        "expected of this call. Raise it (LIMITS_DAY_COST_USD), or wait until 0:00 UTC."
    )
    assert refusal("session_calls", limit=2, spent=Amount(calls=2)) == (
        "No request was made: limits.session_calls is 2; 2 spent in this session, 0 held by running calls, 1 expected "
        "of this call. Raise it (LIMITS_SESSION_CALLS), or begin a new session."
    )
    assert refusal("session_calls", limit=0, spent=NOTHING).endswith("Raise it (LIMITS_SESSION_CALLS).")
    assert "is 1,500; 2,000 spent" in refusal("session_tokens", limit=1500, spent=Amount(tokens=2000))


def test_a_call_that_does_not_fit_goes_alone_while_the_limit_is_not_reached() -> None:
    require_room({"day_cost_usd": 0.2}, Amount(usd=5.0), Amount(usd=0.1), NOTHING)
    for limit, running in ((0.1, 0), (0.2, 1), (0.0, 0)):
        assert refusal("day_cost_usd", limit=limit, spent=Amount(usd=0.1), held=Amount(running))


@pytest.mark.parametrize(("usd", "text"), [(0, "$0.00"), (0.0042, "$0.0042"), (0.01, "$0.01"), (12.345, "$12.35")])
def test_dollars_are_shown_such_that_little_is_not_nothing(usd: float, text: str) -> None:
    assert dollars(usd) == text


@dataclass
class Truth:
    """What really happens in a schedule: the costs that nobody knows beforehand, and what is spent and held."""

    limit: float
    spent: float = 0.0
    running: dict[int, tuple[float, float]] = field(default_factory=dict[int, tuple[float, float]])  # guess, cost
    killed: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  # guess, and how long it runs
    beyond: float = 0.0  # what the sentence allows since the last admission
    most_beyond: float = 0.0
    refused: int = 0
    admitted: int = 0

    def room(self, at: float) -> tuple[float, int, float]:
        """Return what is counted, how many calls run, and what is spent, for a call that began then."""
        held = [guessed for guessed, _ in self.running.values()]
        spent = self.spent + sum(guessed for guessed, until in self.killed if until <= at)
        held += [guessed for guessed, until in self.killed if until > at]
        return spent + sum(held), len(held), spent

    def admit(self, number: int, at: float, guessed: float, cost: float) -> None:
        counted, running, spent = self.room(at)
        fits = counted + guessed <= self.limit + 1e-9
        assert fits or (not running and spent < self.limit)
        self.running[number] = guessed, cost
        self.admitted += 1
        self.beyond = sum(max(0.0, cost - guessed) for guessed, cost in self.running.values()) if fits else cost

    def refuse(self, guessed: float, room: tuple[float, int, float]) -> None:
        counted, running, spent = room
        assert counted + guessed > self.limit, "it fits with its guess"
        assert running or spent >= self.limit - 1e-6, "it could have gone alone"
        self.refused += 1

    def kill(self, number: int, until: float) -> None:
        """Leave the row of a call behind, whose server is gone."""
        guessed, _ = self.running.pop(number)
        self.killed.append((guessed, until))

    def settle(self, number: int, spent: float) -> None:
        del self.running[number]
        self.spent += spent
        assert self.spent <= self.limit + self.beyond + 1e-6
        self.most_beyond = max(self.most_beyond, self.spent - self.limit)


BEGAN = ContextVar[float]("BEGAN", default=NOW)  # when the call of this task began


def now() -> float:
    return NOW + trio.current_time()


class Server:
    """One server with its meter, and what it has learnt of the costs of each kind of call."""

    def __init__(self, truth: Truth, rng: random.Random, settings: Settings) -> None:
        self.truth, self.rng = truth, rng
        self.settings = settings
        self.meter = self.new_meter()
        self.dearest: dict[Profile, float] = {}

    def new_meter(self) -> Meter:
        return Meter(self.settings, now=now, in_thread=self.slowly)

    async def slowly(self, work: Callable[[], Any]) -> Any:
        """Do what the ledger does in a thread, and tell a refusal what was spent and held at that moment."""
        await trio.sleep(self.rng.choice((0, 0.01, 0.3)))
        room = self.truth.room(BEGAN.get())
        try:
            return work()
        except LimitReached as error:
            error.args = (*error.args, room)
            raise

    async def ask(self, number: int, *, tame: bool) -> None:
        rng, truth, profile = self.rng, self.truth, self.rng.choice(PROFILES)
        await trio.sleep(rng.uniform(0, 30))
        use = guess(profile, background=bool(profile.background))
        estimate = PriceList(PRICES).cost(profile.model, use) or 0.0
        cost = estimate * (rng.random() if tame else rng.choice((0.01, 0.5, 1.0, 3.0, 40.0)))
        tokens = int(cost * 1e6 / PRICES[profile.model].input)
        cost = tokens * PRICES[profile.model].input / 1e6
        fate = rng.choice(("counted", "counted", "counted", "counted", "unsent", "refused", "lost", "cancelled"))
        guessed, at = max(estimate, self.dearest.get(profile, 0.0)), now()
        BEGAN.set(at)
        try:
            if self.settings.usage.ledger and rng.random() < 0.1:
                guessed, takes = estimate, rng.uniform(0, 15)
                call = Call(str(number), at, "answer", profile.model, None, takes)
                await self.new_meter().admit(call, profile, background=bool(profile.background))
                truth.admit(number, at, guessed, guessed)
                truth.kill(number, int(at + takes) + 1)
                return
            with trio.CancelScope() as scope:
                async with self.meter.call(Caller("answer"), profile) as bill:
                    truth.admit(number, at, guessed, cost if fate == "counted" else guessed)
                    await self.work(bill, fate, tokens, scope)
        except LimitReached as error:
            truth.refuse(guessed, error.args[-1] if isinstance(error.args[-1], tuple) else truth.room(at))
            return
        spent = {"counted": cost, "unsent": 0.0, "refused": 0.0}.get(fate, guessed)
        truth.settle(number, spent)
        if fate == "counted":
            self.dearest[profile] = max(cost, self.dearest.get(profile, 0.0))

    async def work(self, bill: Any, fate: str, tokens: int, scope: trio.CancelScope) -> None:
        if fate == "unsent":
            return
        bill.sending()
        await trio.sleep(self.rng.uniform(0, 10))
        if fate == "refused":
            bill.not_billed()
        elif fate == "counted":
            bill.take(bodies.response([], usage={"input_tokens": tokens, "output_tokens": 0}, tool_usage=None))
        elif fate == "cancelled":
            scope.cancel()
            await trio.lowlevel.checkpoint()


async def play(rng: random.Random, folder: Path, *, tame: bool) -> Truth:
    """Play one schedule: several servers keep the day's limit over one ledger, or one keeps that of its session."""
    limit = rng.choice((0.01, 0.1, 0.5, 2.0))
    truth = Truth(limit)
    of_day = LimitSettings(day_cost_usd=limit)
    settings = Settings(
        prices=PRICES, usage=UsageSettings(ledger=True), limits=of_day, research=ResearchSettings(state_dir=str(folder))
    )
    servers = rng.choice((1, 0, 0, 2, 3))
    if not servers:
        settings, servers = Settings(prices=PRICES, limits=LimitSettings(session_cost_usd=limit)), 1
    meters = [Server(truth, rng, settings) for _ in range(servers)]
    async with trio.open_nursery() as nursery:
        for number in range(rng.randrange(5, 20)):
            nursery.start_soon(partial(rng.choice(meters).ask, number, tame=tame))
    for server in meters:
        await server.meter.aclose()
    assert not truth.running
    assert all(counted(server.meter)[1] == NOTHING for server in meters)
    return truth


@pytest.mark.parametrize("tame", [True, False], ids=["costs up to the guess", "any costs"])
def test_random_schedules_pass_a_limit_no_further_than_promised_and_refuse_nobody_who_fits(
    tmp_path: Path, *, tame: bool
) -> None:
    played = [
        trio.run(
            partial(play, random.Random(seed), tmp_path / str(seed), tame=tame),
            clock=trio.testing.MockClock(autojump_threshold=0),
        )
        for seed in range(SCHEDULES // 2)
    ]
    assert sum(truth.refused for truth in played) > SCHEDULES
    assert sum(truth.admitted for truth in played) > SCHEDULES
    assert any(truth.most_beyond > 0 for truth in played), "some calls go alone"
    assert sum(len(truth.killed) for truth in played) > SCHEDULES // 10
