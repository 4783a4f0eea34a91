"""Runs that the API does not keep (`research.store: false`): held by the server, and followed up by what was said.

- The request asks for no storage and no background mode, and for reasoning in a form that can be sent back.
- A follow-up has what was said before as its input, also over several runs.
- When the server is gone the result says so, and a follow-up names the reason; nothing is asked then.
- What was said is on no disk.
"""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.errors import BadArgument
from responses_mcp.research.outcome import RunView
from responses_mcp.research.service import Research
from responses_mcp.settings.model import Profile
from responses_mcp.testing import Error, Sse, as_stream, bodies, stream_events
from tests.research.upstream import Upstream, asked_and_ended, ended, researching, settings_for, slow, written_in

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
    assert asked.json["include"] == ["web_search_call.action.sources", "reasoning.encrypted_content"]
    assert not view.durable


async def test_a_profile_that_stores_nothing_is_obeyed(tmp_path: Path) -> None:
    upstream = Upstream()
    profiles = MappingProxyType({"answer": Profile(request={"store": False})})
    settings = replace(settings_for(tmp_path), model_profiles=profiles)
    async with researching(upstream, tmp_path, settings=settings) as research:
        assert not (await answered(research, "why?")).durable
    assert upstream.asked[0].json["store"] is False


async def test_a_follow_up_sends_what_was_said_with_the_encrypted_reasoning(tmp_path: Path) -> None:
    upstream = Upstream()
    async with researching(upstream, tmp_path, store=False) as research:
        first = await answered(research, "one?")
        second = await answered(research, "two?", continue_from=first.run_id)
        third = await answered(research, "three?", continue_from=second.run_id)
    assert third.answer is not None
    assert third.answer.text.startswith("The answer to: three?")
    bodies_sent = [asked.json for asked in upstream.asked]
    assert not any("previous_response_id" in body for body in bodies_sent)
    said = bodies_sent[2]["input"]
    assert [item.get("role") or item["type"] for item in said] == [
        *("user", "reasoning", "web_search_call", "assistant"),
        *("user", "reasoning", "web_search_call", "assistant"),
        "user",
    ]
    assert said[1]["encrypted_content"].startswith("gAAAA")
    assert said[0]["content"] == bodies_sent[0]["input"]
    assert said[-1]["content"].startswith("three?")


async def test_reasoning_that_cannot_be_sent_back_leaves_the_texts(tmp_path: Path) -> None:
    upstream = Upstream()
    upstream.script = [as_stream(bodies.searched() | {"output": [bodies.reasoning(), *bodies.searched()["output"]]})]
    async with researching(upstream, tmp_path, store=False) as research:
        first = await answered(research, "one?")
        await answered(research, "two?", continue_from=first.run_id)
    roles = [(item["role"], type(item["content"])) for item in upstream.asked[1].json["input"]]
    assert roles == [("user", str), ("assistant", str), ("user", str)]


async def test_the_next_server_says_that_the_answer_and_what_was_said_are_gone_and_asks_nothing(tmp_path: Path) -> None:
    upstream = Upstream()
    async with researching(upstream, tmp_path, store=False) as research:
        first = await answered(research, "a secret question?")
    async with researching(upstream, tmp_path, store=False) as research:
        view = await research.result(first.run_id)
        assert (view.status, view.maybe_paid) == ("failed", True)
        assert "does not keep" in str(view.error)
        with pytest.raises(BadArgument, match="no longer here"):
            await research.start("more?", continue_from=first.run_id)
    assert upstream.kinds == ["ask"]
    written = written_in(tmp_path)
    assert b"secret question" not in written
    assert b"gAAAA" not in written


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


async def test_only_so_many_conversations_are_remembered(tmp_path: Path) -> None:
    async with researching(Upstream(), tmp_path, store=False) as research:
        runs = [(await answered(research, f"{number}?")).run_id for number in range(34)]
        with pytest.raises(BadArgument, match="no longer here"):
            await research.start("more?", continue_from=runs[0])
        await answered(research, "more?", continue_from=runs[-1])


async def test_a_connection_that_is_lost_loses_the_run(tmp_path: Path) -> None:
    upstream = Upstream()
    upstream.script = [Sse(stream_events(bodies.searched())[:5], ending="cut")]
    view = await asked_and_ended(upstream, tmp_path, store=False)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", True, ["ask"])


async def test_nobody_waits_for_an_id_that_will_not_come(tmp_path: Path) -> None:
    for refused in (False, True):
        upstream = Upstream(latency=30.0)
        if refused:
            upstream.script = [Error(400, "background is not supported")]
        async with researching(upstream, tmp_path, store=refused) as research:
            run = await research.start("why?", fresh=True)
            began = trio.current_time()
            assert not await research.wait_for_id(run, 50)
            assert trio.current_time() - began < 1 + 30 * refused
