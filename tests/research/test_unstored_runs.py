"""Runs that the API does not keep (`research.store: false`): held by the server that asks, and followed up by nobody.

- The request asks for no storage and no background mode.
- A follow-up is refused, and nothing is asked then.
- When the server is gone the result says so. What was said is on no disk.
"""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.errors import BadArgument
from responses_mcp.research.runs import Research
from responses_mcp.research.view import RunView
from responses_mcp.settings.model import Profile
from responses_mcp.testing import Error
from tests.research.upstream import Upstream, ended, researching, settings_for, slow, written_in

pytestmark = pytest.mark.clock("virtual")


async def answered(research: Research, query: str, **more: Any) -> RunView:
    view = await ended(research, await research.start(query, **more))
    assert view.status == "completed", view
    return view


async def test_nothing_is_kept_at_the_api_and_the_result_says_that_it_lives_with_the_server(tmp_path: Path) -> None:
    upstream = Upstream()
    async with researching(upstream, tmp_path, store=False) as research:
        view = await answered(research, "why?")
    (asked,) = upstream.asked
    assert (asked.json["store"], "background" in asked.json) == (False, False)
    assert asked.json["include"] == ["web_search_call.action.sources"]
    assert not view.durable


async def test_a_profile_that_stores_nothing_is_obeyed(tmp_path: Path) -> None:
    upstream = Upstream()
    profiles = MappingProxyType({"answer": Profile(request={"store": False})})
    settings = replace(settings_for(tmp_path), model_profiles=profiles)
    async with researching(upstream, tmp_path, settings=settings) as research:
        assert not (await answered(research, "why?")).durable
    assert upstream.asked[0].json["store"] is False


async def test_the_next_server_says_that_the_answer_is_gone_and_asks_nothing(tmp_path: Path) -> None:
    upstream = Upstream()
    async with researching(upstream, tmp_path, store=False) as research:
        first = await answered(research, "a secret question?")
    async with researching(upstream, tmp_path, store=False) as research:
        view = await research.result(first.run_id)
        assert (view.status, view.maybe_paid) == ("failed", True)
        assert "does not keep" in str(view.error)
        with pytest.raises(BadArgument, match="whose answer the API keeps"):
            await research.start("more?", continue_from=first.run_id)
    assert upstream.kinds == ["ask"]
    written = written_in(tmp_path)
    assert b"secret question" not in written


async def test_another_server_asks_itself_and_joins_no_run_whose_answer_it_could_not_show(tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = 10.0
    async with researching(upstream, tmp_path, store=False) as one, researching(upstream, tmp_path, store=False) as two:
        run = await one.start("why?")
        await trio.sleep(1)
        assert await one.start("why?") == run
        assert (await answered(two, "why?")).run_id != run
        assert (await ended(one, run)).status == "completed"
    assert upstream.kinds == ["ask", "ask"]


async def test_who_joined_before_the_api_refused_to_keep_the_run_is_told_who_has_its_answer(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "Unsupported parameter: 'background'", param="background", latency=2.0)]
    async with researching(upstream, tmp_path) as one, researching(upstream, tmp_path) as two:
        run = await one.start("why?")
        await trio.sleep(1)
        assert await two.start("why?") == run
        assert (await ended(one, run)).status == "completed"
        view = await ended(two, run)
    assert (view.status, view.maybe_paid) == ("failed", True)
    assert "only the server that asked" in str(view.error)


async def test_only_so_many_answers_are_remembered(tmp_path: Path) -> None:
    async with researching(Upstream(), tmp_path, store=False) as research:
        runs = [(await answered(research, f"{number}?")).run_id for number in range(34)]
        assert [(await research.result(runs[number])).status for number in (0, -1)] == ["failed", "completed"]
        with pytest.raises(BadArgument, match="whose answer the API keeps"):
            await research.start("more?", continue_from=runs[-1])
