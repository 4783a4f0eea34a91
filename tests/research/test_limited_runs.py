"""Limits hold for runs, too: reserved while one goes on, settled by what it used, and no request above them."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from responses_mcp.asking import Asker
from responses_mcp.errors import LimitReached
from responses_mcp.settings.model import LimitSettings
from responses_mcp.testing import Error
from responses_mcp.usage.meter import Meter
from tests.research.upstream import ended, researching, settings_for, slow
from tests.usage.test_ledger import counted

pytestmark = pytest.mark.clock("virtual")


async def test_a_run_above_a_limit_makes_no_request_and_says_which(tmp_path: Path) -> None:
    upstream = slow()
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_calls=1))
    async with researching(upstream, tmp_path, settings=settings) as research:
        first = await ended(research, await research.start("one?"))
        second = await ended(research, await research.start("two?"))
    assert (first.status, second.status) == ("completed", "failed")
    assert len(upstream.of("ask")) == 1
    assert second.error is not None
    assert "limits.session_calls" in second.error
    assert not second.maybe_paid


async def test_what_a_run_used_counts_when_it_has_ended_and_is_held_until_then(tmp_path: Path) -> None:
    upstream = slow()
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_calls=1, session_tokens=1_000_000))
    meter = Meter(settings)
    async with researching(upstream, tmp_path, settings=settings, meter=meter) as research:
        run = await research.start("one?")
        await trio.sleep(1)
        assert counted(meter)[0].tokens == 0
        await ended(research, run)
    assert counted(meter)[0][:2] == (1, 9245)


async def test_a_run_that_may_be_worked_on_behind_a_failure_counts_as_what_it_had_reserved(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(500)]
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_tokens=10_000))
    async with researching(upstream, tmp_path, settings=settings) as research:
        first = await ended(research, await research.start("one?"))
        second = await ended(research, await research.start("two?"))
    assert (first.maybe_paid, first.usage) == (True, {"attempts": 1, "uncounted_attempts": 1})
    assert "limits.session_tokens" in str(second.error)
    assert upstream.kinds == ["ask"]


async def test_an_answer_that_does_not_fit_beside_a_run_is_refused_at_once(tmp_path: Path) -> None:
    upstream = slow(200.0)
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_tokens=150_000))
    meter = Meter(settings)
    async with researching(upstream, tmp_path, settings=settings, meter=meter) as research:
        await research.start("one?")
        await trio.sleep(10)
        before = trio.current_time()
        with pytest.raises(LimitReached, match="120,000 held by running calls, 60,000 expected"):
            await Asker(settings, api=upstream.api(), meter=meter).answer("two?")
        assert trio.current_time() == before
    assert len(upstream.of("ask")) == 1


async def test_a_run_that_does_not_fit_beside_another_fails_without_a_request(tmp_path: Path) -> None:
    upstream = slow(50.0)
    settings = replace(settings_for(tmp_path), limits=LimitSettings(session_tokens=150_000))
    async with researching(upstream, tmp_path, settings=settings) as research:
        first = await research.start("one?")
        second = await ended(research, await research.start("two?"))
        assert (second.status, second.maybe_paid) == ("failed", False)
        assert "limits.session_tokens" in str(second.error)
        assert (await ended(research, first)).status == "completed"
    assert len(upstream.of("ask")) == 1
