"""Limits hold for runs, too: reserved while one goes on, settled by what it used, and no request above them."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.answers import Answers
from responses_mcp.errors import LimitReached
from responses_mcp.research.service import open_research
from responses_mcp.settings.model import LimitSettings
from responses_mcp.testing import Error
from responses_mcp.usage.meter import Meter
from tests.research.upstream import at_once, settings_for, slow

WAIT = 600.0  # seconds of virtual time


async def test_a_run_above_a_limit_makes_no_request_and_says_which(autojump_clock: MockClock, tmp_path: Path) -> None:
    upstream = slow()
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_calls=1))
    with trio.fail_after(WAIT):
        async with open_research(settings, api=upstream.api(), in_thread=at_once, clock=trio.current_time) as research:
            first = await research.result(await research.start("one?"), wait_seconds=WAIT / 4)
            second = await research.result(await research.start("two?"), wait_seconds=WAIT / 4)
    assert (first.status, second.status) == ("completed", "failed")
    assert len(upstream.of("ask")) == 1
    assert second.error is not None
    assert "limits.session_calls" in second.error
    assert not second.maybe_paid


async def test_what_a_run_used_counts_when_it_has_ended_and_is_held_until_then(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    upstream = slow()
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_calls=1, session_tokens=1_000_000))
    meter = Meter(settings)
    with trio.fail_after(WAIT):
        async with open_research(
            settings, api=upstream.api(), meter=meter, in_thread=at_once, clock=trio.current_time
        ) as research:
            run = await research.start("one?")
            await trio.sleep(1)
            assert meter.caps.spent.tokens == 0
            await research.result(run, wait_seconds=WAIT / 4)
    assert meter.caps.spent.tokens == 9245
    assert meter.caps.calls == 1


async def test_a_run_that_may_be_worked_on_behind_a_failure_counts_as_what_it_had_reserved(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [Error(500)]
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_tokens=10_000))
    with trio.fail_after(WAIT):
        async with open_research(settings, api=upstream.api(), in_thread=at_once, clock=trio.current_time) as research:
            first = await research.result(await research.start("one?"), wait_seconds=WAIT / 4)
            second = await research.result(await research.start("two?"), wait_seconds=WAIT / 4)
    assert (first.maybe_paid, first.usage) == (True, {"attempts": 1, "uncounted_attempts": 1})
    assert "limits.session_tokens" in str(second.error)
    assert upstream.kinds == ["ask"]


async def test_an_answer_waits_for_a_run_that_holds_the_limit_no_longer_than_an_answer_may_take(
    autojump_clock: MockClock, tmp_path: Path
) -> None:
    upstream = slow(200.0)
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_tokens=100_000))
    meter = Meter(settings)
    async with open_research(
        settings, api=upstream.api(), meter=meter, in_thread=at_once, clock=trio.current_time
    ) as research:
        await research.start("one?")
        await trio.sleep(10)
        before = trio.current_time()
        with pytest.raises(LimitReached, match="held by calls that run"):
            await Answers(settings, api=upstream.api(), meter=meter).answer("two?")
        assert trio.current_time() - before == settings.request.timeout_ms / 1000
    assert len(upstream.of("ask")) == 1
