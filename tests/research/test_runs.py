"""Runs as a host sees them: one paid request each, whatever happens, and an end for everybody who asks.

- A run is one POST, in the background and stored. It is repeated only where it was refused or never carried.
- A stream that breaks is taken up behind its last event, and then looked up; an id that never came is a failure that
  says it may have been paid for.
- Waiting can be cancelled or come to an end, and the run goes on. A cancelled run is cancelled at the API, once.
- A run whose process is gone is found by the next one, unless its id was never known; of two servers one owns it.
"""

import itertools
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pytest
import trio
import trio.testing

from responses_mcp.errors import (
    AuthenticationFailed,
    BadArgument,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    RateLimited,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.research.outcome import RunView
from responses_mcp.research.runs_file import RunsFile
from responses_mcp.research.service import Research, open_research
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import Profile
from responses_mcp.testing import Closed, Error, Hang, Json, Reply, Sse, as_stream, bodies, open_fake_api
from responses_mcp.testing.event_stream import stream_events
from responses_mcp.usage.models import AS_OF
from tests.research.upstream import (
    KEY,
    OPENAI,
    Upstream,
    after,
    asked_and_ended,
    at_once,
    ended,
    in_file,
    researching,
    settings_for,
    slow,
    taken_up,
    written_in,
)

pytestmark = pytest.mark.clock("virtual")


async def left_going_on(upstream: Upstream, folder: Path, *, seconds: float, **options: Any) -> str:
    """Begin a run, let its server end after so many seconds, and return its id."""
    async with researching(upstream, folder, **options) as research:
        run_id = await research.start("why?")
        await trio.sleep(seconds)
    return run_id


# One request


async def test_a_question_becomes_one_request_in_the_background_and_its_answer_the_result(tmp_path: Path) -> None:
    upstream = slow()
    view = await asked_and_ended(upstream, tmp_path)
    (asked,) = upstream.asked
    assert {name: asked.json[name] for name in ("background", "store", "stream", "model")} == {
        "background": True,
        "store": True,
        "stream": True,
        "model": "gpt-5.2",
    }
    assert asked.json["input"].startswith("why?\n\n[Hints] today=")
    assert asked.json["tools"] == [{"type": "web_search"}]
    assert view.status == "completed"
    assert view.answer is not None
    assert view.answer.text.startswith("The answer to: why?")
    assert view.answer.used_search
    assert view.usage == {
        "input_tokens": 8512,
        "cached_tokens": 0,
        "output_tokens": 733,
        "reasoning_tokens": 512,
        "total_tokens": 9245,
        "web_searches": 1,
        "service_tier": "default",
        "attempts": 1,
        "cost_usd": 0.035158,
        "prices_as_of": AS_OF,
    }


async def test_a_stream_that_breaks_is_taken_up_behind_its_last_event(tmp_path: Path) -> None:
    upstream = slow(cut_after=7)
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, upstream.kinds) == ("completed", ["ask", "stream"])
    assert "starting_after=7" in upstream.asked[1].path


async def test_a_stream_that_is_taken_up_and_does_not_end_with_the_answer_is_followed_by_a_look(tmp_path: Path) -> None:
    whole = {**bodies.searched(), "id": "resp_1", "background": True, "store": True}
    events = stream_events(whole)
    events[-1] = {**events[-1], "response": {**whole, "output": []}}  # what came before the cut is not in the rest
    upstream = slow()
    upstream.script = [Sse(events[:9], ending="cut"), Sse(events[9:]), Json(whole)]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, upstream.kinds) == ("completed", ["ask", "stream", "look"])
    assert view.answer is not None
    assert view.answer.used_search


async def test_a_stream_that_breaks_again_and_again_is_looked_up_less_and_less_often(tmp_path: Path) -> None:
    upstream = slow(10.0, cut_after=3, cuts=100)
    view = await asked_and_ended(upstream, tmp_path)
    assert view.status == "completed"
    assert upstream.kinds[:3] == ["ask", "stream", "look"]
    assert set(upstream.kinds[3:]) == {"look"}
    times = [asked.at for asked in upstream.of("look")]
    waits = [round(later - earlier, 3) for earlier, later in itertools.pairwise(times)]
    assert waits[:4] == [2.0, 3.0, 4.5, 6.75]
    assert max(waits) == 10.0


async def test_an_id_that_never_came_is_a_failure_that_may_have_been_paid_for_and_is_not_asked_again(
    tmp_path: Path,
) -> None:
    upstream = slow(id_never_sent=True)
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", True, ["ask"])
    assert "may have been paid for" in str(view.error)


@pytest.mark.parametrize("refusal", [Error(429), Error(409), ConnectionFailed("No route.", retryable=True)])
async def test_what_was_refused_for_now_or_never_carried_is_repeated(refusal: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [refusal, refusal]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, upstream.kinds, len(upstream.stored.responses)) == ("completed", ["ask"] * 3, 1)


@pytest.mark.parametrize("failure", [Error(500), Error(502), Error(503), Error(408), Closed(), Hang("headers")])
async def test_what_may_be_worked_on_behind_a_failure_is_not_repeated(failure: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [failure]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", True, ["ask"])


@pytest.mark.parametrize("refusal", [Error(400, "Bad."), Error(401), Error(429, code="insufficient_quota")])
async def test_what_is_refused_for_good_costs_nothing_and_says_why(refusal: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [refusal]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, ["ask"])
    assert str(view.error)


async def test_a_run_whose_model_has_ended_says_which_setting_to_change(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(404, "The model has been deprecated.", code="model_not_found")]
    view = await asked_and_ended(upstream, tmp_path)
    assert "model_profiles.answer.model (MODEL_ANSWER)" in str(view.error)


def spent(seconds: int) -> dict[str, str]:
    told = {"limit-requests": "60", "remaining-requests": "0", "reset-requests": f"{seconds}s"}
    return {f"x-ratelimit-{name}": value for name, value in told.items()}


async def test_a_run_waits_for_the_rate_limit_and_says_so(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "Bad.", headers=spent(50))]
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("first"))
        run_id = await research.start("second")
        waiting = await research.result(run_id, wait_seconds=45)
        assert (waiting.status, waiting.phase) == ("running", "waiting for the API's rate limit, 50 s or more")
        view = await ended(research, run_id)
    assert (view.status, upstream.kinds[:2]) == ("completed", ["ask", "ask"])
    assert 50 <= upstream.asked[1].at - upstream.asked[0].at < 51


async def test_a_run_that_cannot_wait_so_long_for_the_rate_limit_is_sent_for_the_api_to_judge(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [
        Error(400, "Bad.", headers=spent(7_200)),
        Error(429, "Tomorrow.", headers={"retry-after": "7200"}),
    ]
    async with researching(upstream, tmp_path, timeout_ms=600_000) as research:
        await ended(research, await research.start("first"))
        view = await ended(research, await research.start("second"))
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, ["ask", "ask"])
    assert "Tomorrow" in str(view.error)


async def test_a_run_that_is_cancelled_while_it_waits_for_the_rate_limit_is_never_asked_for(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "Bad.", headers=spent(50))]
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("first"))
        run_id = await research.start("second")
        await research.result(run_id, wait_seconds=10)
        await research.cancel(run_id)
        view = await ended(research, run_id)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("cancelled", False, ["ask"])


async def test_a_server_that_does_not_stream_is_looked_up_until_it_is_done(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "Unsupported parameter: 'stream'", param="stream")]
    view = await asked_and_ended(upstream, tmp_path)
    assert view.status == "completed"
    assert [("stream" in asked.json) for asked in upstream.of("ask")] == [True, False]
    assert set(upstream.kinds[2:]) == {"look"}


async def test_a_stream_that_falls_silent_is_given_up_and_looked_up(tmp_path: Path) -> None:
    upstream = slow(1000.0)
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(400)
        assert upstream.kinds[:3] == ["ask", "stream", "look"]
        (response,) = upstream.stored.responses.values()
        response.interval = 1.0
        assert (await ended(research, run_id)).status == "completed"


async def test_look_ups_that_fail_for_a_while_are_tried_again(tmp_path: Path) -> None:
    upstream = slow(2.0, cut_after=3, cuts=9)
    async with researching(upstream, tmp_path, max_retries=0) as research:
        run_id = await research.start("why?")
        await trio.sleep(7.5)
        upstream.script = [Error(404), Error(500), Error(401), Closed(), Error(404), Error(404)]
        assert (await ended(research, run_id)).status == "completed"


async def test_a_response_that_the_api_forgets_is_lost_and_says_how_long_it_keeps_one(tmp_path: Path) -> None:
    upstream = slow(5.0, cut_after=3, cuts=9, gone_after=30.0)
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid) == ("failed", True)
    assert "ten minutes" in str(view.error)


async def test_a_run_that_is_stuck_is_cancelled_when_its_time_is_over(tmp_path: Path) -> None:
    upstream = slow(stuck=True)
    view = await asked_and_ended(upstream, tmp_path, timeout_ms=600_000)
    assert view.status == "failed"
    assert "research.timeout_ms" in str(view.error)
    assert upstream.kinds.count("cancel") == 1


async def test_the_time_of_a_run_begins_when_it_is_asked_whoever_goes_on_with_it(tmp_path: Path) -> None:
    upstream = slow(stuck=True)
    limits: dict[str, Any] = {"timeout_ms": 600_000, "max_running": 1}
    async with researching(upstream, tmp_path, **limits) as research:
        await research.start("the first")
        run = await research.start("the second")
        await trio.sleep(900)
        assert [asked.kind for asked in upstream.asked].count("cancel") == 1
    async with researching(upstream, tmp_path, **limits) as research:
        view = await ended(research, run)
    begun = upstream.of("ask")[1].at
    assert 600 <= begun < 610
    assert upstream.of("cancel")[1].at == begun + 600
    assert "longer than 600 s" in str(view.error)


async def test_a_run_takes_as_long_as_it_might_when_it_was_begun_whoever_takes_it_over(tmp_path: Path) -> None:
    upstream = slow(stuck=True)
    async with researching(upstream, tmp_path, timeout_ms=600_000) as research:
        run = await research.start("why?")
        await trio.sleep(120)
    async with researching(upstream, tmp_path, timeout_ms=60_000) as research:
        view = await ended(research, run)
    assert upstream.of("cancel")[0].at == 600
    assert "longer than 600 s" in str(view.error)


# Servers without a background mode

PLAIN: list[Any] = [Error(400, "Unknown parameter: 'background'.", param="background"), as_stream(bodies.searched())]


async def test_a_server_without_background_mode_answers_in_a_stream_that_this_process_holds(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = list(PLAIN)
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.durable, upstream.kinds) == ("completed", False, ["ask", "ask"])
    assert view.as_json()["durable"] is False
    assert [("background" in asked.json, "store" in asked.json) for asked in upstream.asked] == [
        (True, True),
        (False, False),
    ]
    async with researching(upstream, tmp_path) as research:
        later = await research.result(view.run_id)
        assert (later.status, later.maybe_paid, later.durable) == ("failed", True, False)
        assert "does not keep" in str(later.error)


@pytest.mark.parametrize("cut", ["cut", "hang"])
async def test_a_stream_that_nobody_keeps_is_lost_when_it_breaks_and_not_asked_for_again(
    cut: Literal["cut", "hang"], tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [PLAIN[0], replace(PLAIN[1], events=PLAIN[1].events[:5], ending=cut)]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", True, ["ask", "ask"])
    assert "keeps nothing" in str(view.error)


async def test_a_run_that_nobody_keeps_is_cancelled_by_closing_its_connection_at_once(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [PLAIN[0], replace(PLAIN[1], interval=10.0)]
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(25)
        began = trio.current_time()
        view = await research.cancel(run_id)
        assert (view.status, view.maybe_paid, view.confirmed) == ("cancelled", True, False)
        assert (trio.current_time() - began, upstream.open) == (0.0, 0)


# How it ends


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (bodies.incomplete_with_text, "incomplete", "cut off here"),
        (bodies.incomplete_without_text, "failed", "reasoning_effort"),
        (bodies.content_filter, "failed", "content filter"),
        (bodies.failed, "failed", "could not finish"),
        (bodies.no_message, "failed", "no text"),
        (bodies.refusal, "completed", "help with that"),
    ],
)
async def test_a_response_that_ends_otherwise_is_told_as_what_it_is(
    body: Any, status: str, said: str, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.stored.compose = lambda request: body()
    view = await asked_and_ended(upstream, tmp_path)
    assert view.status == status
    assert said in (view.answer.text if view.answer is not None else str(view.error))


@pytest.mark.parametrize("look", [Error(404), Json({**bodies.response([]), "status": "in_progress"})])
async def test_an_answer_that_the_api_has_only_after_it_said_that_it_had_ended_is_had_when_asked_for_again(
    look: Reply, tmp_path: Path
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        upstream.script = [as_stream(bodies.response([], background=True, store=True)), look]
        run = await research.start("why?")
        view = await ended(research, run)
        assert (view.status, view.maybe_paid) == ("failed", True)
        await trio.testing.wait_all_tasks_blocked()  # until its task is over
        upstream.script = [Json({**bodies.searched(), "background": True, "store": True})]
        view = await ended(research, run)
        assert (view.status, view.answer is not None, upstream.kinds.count("ask")) == ("completed", True, 1)
        assert await research.result(run) == view


async def test_a_schema_is_sent_along_and_the_data_is_part_of_the_result(tmp_path: Path) -> None:
    upstream = slow()
    schema = {
        "type": "object",
        "properties": {"why": {"type": "string"}},
        "required": ["why"],
        "additionalProperties": False,
    }
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, await research.start("why?", output_schema=schema))
        loose = {**schema, "additionalProperties": True}
        await ended(research, await research.start("why?", output_schema=loose))
    assert view.data == {"why": "why?"}
    formats = [asked.json["text"]["format"] for asked in upstream.of("ask")]
    assert formats[0] == {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}
    assert formats[1]["strict"] is False


async def test_what_narrows_the_search_goes_along(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await research.start(
            "why?",
            effort="deep",
            domains=["https://Example.com/path"],
            blocked_domains=["spam.example"],
            recency_days=7,
            location={"country": "JP", "city": "Tokyo"},
        )
        await trio.sleep(1)
    (asked,) = upstream.of("ask")
    assert asked.json["tools"] == [
        {
            "type": "web_search",
            "filters": {"allowed_domains": ["example.com"], "blocked_domains": ["spam.example"]},
            "user_location": {"type": "approximate", "country": "JP", "city": "Tokyo"},
        }
    ]
    assert asked.json["input"].endswith("recency_days=7")
    assert asked.json["reasoning"] == {"effort": "high"}


async def test_a_follow_up_goes_on_from_the_response_of_a_run_with_instructions_and_tools_again(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        first = await research.start("why?")
        with pytest.raises(BadArgument, match="continue_from"):
            await research.start("and then?", continue_from=first)
        await ended(research, first)
        await ended(research, await research.start("and then?", continue_from=first))
    before, after = upstream.of("ask")
    assert after.json["previous_response_id"] == next(iter(upstream.stored.responses))
    assert (after.json["instructions"], after.json["tools"]) == (before.json["instructions"], before.json["tools"])


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"query": " "}, "query"),
        *(({"query": wrong}, "query") for wrong in (None, b"q", ["q"])),
        ({"query": "q", "effort": "much"}, "effort"),
        ({"query": "q", "effort": 3}, "effort"),
        ({"query": "q", "domains": 3}, "domains"),
        ({"query": "q", "blocked_domains": [3]}, "blocked_domains"),
        ({"query": "q", "recency_days": "soon"}, "recency_days"),
        ({"query": "q", "location": "Tokyo"}, "location"),
        ({"query": "q", "location": {"city": 3}}, "location"),
        ({"query": "q", "output_schema": "object"}, "output_schema"),
        ({"query": "q", "domains": [""]}, r"domains has a name that is empty; it must be a list of texts like \["),
        ({"query": "q", "blocked_domains": ["a.jp", None]}, "blocked_domains has a name that is empty"),
        ({"query": "q", "domains": ["a.jp", ","]}, "domains has a name that is empty"),
        ({"query": "q", "domains": " , ,"}, "domains has a name that is empty"),
        ({"query": "q", "stores": [" "]}, "stores has a name that is empty"),
        ({"query": "q", "stores": 3}, r"stores is 3; it must be a list of texts like \[\"docs\"\]"),
        ({"query": "q", "continue_from": 3}, "continue_from"),
        ({"query": "q", "domains": [f"{number}.example" for number in range(101)]}, "domains"),
        ({"query": "q", "recency_days": -1}, "recency_days"),
        ({"query": "q", "location": {"planet": "Mars"}}, "location"),
        ({"query": "q", "location": {"country": "Japan"}}, "location.country"),
        ({"query": "q", "output_schema": {"type": "array"}}, "output_schema"),
        ({"query": "q", "output_schema": {"type": "object", "x": float("nan")}}, "output_schema"),
        ({"query": "q", "continue_from": "run_0"}, "continue_from"),
    ],
)
async def test_what_cannot_be_asked_is_refused_by_name_and_nothing_is_sent(
    arguments: dict[str, Any], names: str, tmp_path: Path
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        with pytest.raises(BadArgument, match=names):
            await research.start(**arguments)
    assert upstream.asked == []


@pytest.mark.parametrize("run_id", [3, None, "", b"run_1"])
async def test_what_is_no_id_of_a_run_is_refused(run_id: Any, tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        for ask in (research.result, research.cancel):
            with pytest.raises(BadArgument, match="run_id"):
                await ask(run_id)


async def test_domains_may_come_as_a_text_as_in_the_tools(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("q", domains="a.example, b.example"))
    assert upstream.asked[0].json["tools"][0]["filters"] == {"allowed_domains": ["a.example", "b.example"]}


# Waiting


async def test_a_wait_that_ends_early_tells_how_far_it_is_and_a_later_one_gets_the_answer(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        early = await research.result(run_id, wait_seconds=5.2)
        assert (early.running, early.seconds) == (True, 5.2)
        assert early.phase
        late = await research.result(run_id, wait_seconds=280)
        assert late.status == "completed"
        assert late.seconds < 60  # it did not wait longer than it took
        assert await research.result(run_id) == late
    assert upstream.kinds == ["ask"]


async def test_cancelling_a_wait_leaves_the_run_alone(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        with trio.move_on_after(3) as call:
            await research.result(run_id, wait_seconds=280)
        assert call.cancelled_caught
        assert (await ended(research, run_id)).status == "completed"
    assert upstream.kinds == ["ask"]


async def test_whoever_waits_is_told_the_phases_and_all_get_the_same(tmp_path: Path) -> None:
    upstream = slow()
    told: list[str] = []
    views: list[RunView] = []
    async with researching(upstream, tmp_path) as research, trio.open_nursery() as nursery:
        run_id = await research.start("why?")

        async def wait() -> None:
            views.append(await research.result(run_id, wait_seconds=100))

        for _ in range(3):
            nursery.start_soon(wait)
        await research.result(run_id, wait_seconds=100, on_phase=told.append)
    assert told[:2] == ["beginning", "asking gpt-5.2"]
    assert {"searching", "searched: why?", "writing"} <= set(told)
    assert len(set(map(repr, views))) == 1


async def test_events_tell_each_phase_and_at_last_the_end(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        run_id = await research.start("why?")
        async with aclosing(research.events(run_id)) as events:
            seen = [view async for view in events]
    assert [view.running for view in seen] == [True] * (len(seen) - 1) + [False]
    assert len({view.phase for view in seen}) == len(seen)


async def test_the_same_question_joins_a_run_that_goes_on_and_none_that_has_ended_or_was_cancelled(
    tmp_path: Path,
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        first = await research.start("why?", domains=["a.example"])
        assert await research.start("why?", domains=["a.example"]) == first
        others = {
            await research.start("why?"),
            await research.start("why?", domains=["a.example"], effort="deep"),
            await research.start("why?", domains=["a.example"], fresh=True),
        }
        assert len(others | {first}) == 4
        await ended(research, first)
        assert await research.start("why?", domains=["a.example"]) != first
        cancelled = await research.start("how?")
        await research.cancel(cancelled)
        assert await research.start("how?") != cancelled


@pytest.mark.parametrize(
    ("ending", "store", "may_come"),
    [
        ({"status": "completed"}, True, True),
        ({"status": "completed"}, False, False),  # nothing can be looked up
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, True, True),
        ({"status": "failed", "error": {"code": "server_error", "message": "Oh."}}, True, False),
    ],
)
async def test_an_answer_may_still_come_only_where_the_api_keeps_it_and_says_nothing_of_a_failure(
    tmp_path: Path, ending: dict[str, Any], store: bool, may_come: bool
) -> None:
    ended_empty = {**bodies.searched(), "background": True, "store": store, "output": [], **ending}
    upstream = Upstream(script=[as_stream(ended_empty), *[Json(ended_empty)] * 9])
    async with researching(upstream, tmp_path, store=store) as research:
        run = await research.start("why?")
        for _ in range(2):
            view = await ended(research, run)
            told = str(view.error)
            assert (view.status, view.maybe_paid) == ("failed", True)
            assert ("ask for the result again before you ask anew" in told) == may_come
            assert ("output limit" in told) == (ending["status"] == "incomplete")


async def test_who_takes_over_runs_waits_as_long_as_it_said_however_slow_the_disk_is(tmp_path: Path) -> None:
    upstream = slow(500.0)
    async with researching(upstream, tmp_path) as research:
        for number in range(8):
            await research.start(f"why {number}?")
        await trio.sleep(5)

    async def slowly(work: Callable[[], Any]) -> Any:
        await trio.sleep(2)
        return await at_once(work)

    async with researching(upstream, tmp_path, in_thread=slowly) as research:
        began = trio.current_time()
        await research.take_over(3)
        assert trio.current_time() - began <= 3


async def test_who_does_not_wait_for_runs_that_nobody_owns_has_them_taken_over_all_the_same(tmp_path: Path) -> None:
    upstream = slow(10.0)
    async with researching(upstream, tmp_path) as research:
        await research.list()
        await trio.sleep(1)  # it has looked for such runs, and will not for a while
        run = await left_going_on(upstream, tmp_path, seconds=3.0)
        await research.take_over(0)
        await trio.testing.wait_all_tasks_blocked()
        assert in_file(tmp_path, "SELECT id FROM run WHERE owner IS NOT NULL") == [(run,)]


async def test_a_question_whose_server_left_before_it_asked_is_asked_by_the_next(tmp_path: Path) -> None:
    upstream = slow(30.0)
    async with researching(upstream, tmp_path, max_running=1) as research:
        await research.start("the first")
        left = await research.start("why?")
        await trio.sleep(3)
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        again = await research.start("why?")
        assert (await ended(research, again)).status == "completed"
        assert again != left
        assert (await ended(research, left)).error == "It was never asked for, and cost nothing; ask again."


async def test_a_question_whose_server_was_killed_before_it_asked_is_asked_by_the_next_once_that_is_sure(
    tmp_path: Path,
) -> None:
    async with researching(slow(30.0), tmp_path, max_running=1) as research:
        await research.start("the first")
        left = await research.start("why?")
        await trio.sleep(3)
    in_file(tmp_path, "UPDATE run SET owner = 'killed', leased_until = ?", 1e9 + trio.current_time())
    began = trio.current_time()
    async with researching(slow(), tmp_path) as research:
        again = await research.start("why?")
        assert trio.current_time() - began < 10
        assert (await ended(research, again)).status == "completed"
        assert again != left
        assert (await ended(research, left)).error == "It was never asked for, and cost nothing; ask again."


async def test_the_same_question_about_something_else_joins_no_run(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        first, second = await research.start("what is A?"), await research.start("what is B?")
        await ended(research, first)
        await ended(research, second)
        runs = [await research.start("why?", continue_from=each) for each in (None, first, second)]
        assert len(set(runs)) == 3
        assert await research.start("why?", continue_from=second) == runs[2]


async def test_more_runs_than_the_limit_wait_in_order_and_are_told_their_place(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path, max_running=1) as research:
        ids = [await research.start(f"question {number}") for number in range(4)]
        await trio.sleep(1)
        views = [await research.result(run_id) for run_id in ids]
        assert [view.place for view in views] == [None, 0, 1, 2]
        gone = await research.cancel(ids[1])
        assert (gone.status, gone.maybe_paid, gone.confirmed) == ("cancelled", False, True)
        assert (await research.result(ids[2])).place == 0
        for run_id in (ids[0], *ids[2:]):
            assert (await ended(research, run_id)).status == "completed"
    asked = [asked.json["input"].split("\n")[0] for asked in upstream.of("ask")]
    assert asked == ["question 0", "question 2", "question 3"]
    assert upstream.open == 0


async def test_runs_wait_in_the_order_in_which_they_were_asked_for_also_at_once_and_beside_another_server(
    tmp_path: Path,
) -> None:
    called: dict[str, list[str]] = {"one": [], "two": []}

    async def ask(research: Research, name: str, number: int) -> None:
        called[name].append(query := f"{name} {number}?")
        await research.start(query)

    one, two = slow(), slow()
    async with (
        researching(one, tmp_path, max_running=1) as first,
        researching(two, tmp_path, max_running=1) as second,
        trio.open_nursery() as nursery,
    ):
        for _ in range(4):  # Trio runs the tasks of a moment in any order, also backwards
            for number in range(3):
                nursery.start_soon(ask, first, "one", len(called["one"]) + number)
                nursery.start_soon(ask, second, "two", len(called["two"]) + number)
            await trio.sleep(1)
        await trio.sleep(500)
    for name, upstream in (("one", one), ("two", two)):
        assert [asked.json["input"].split("\n")[0] for asked in upstream.of("ask")] == called[name]


# Cancelling


async def test_a_run_that_waits_is_told_so_as_soon_as_it_is_begun(tmp_path: Path) -> None:
    async with researching(slow(60.0), tmp_path, max_running=1) as research:
        await research.start("number 0?")
        for number in range(1, 20):  # tasks are woken in any order
            view = await research.result(await research.start(f"number {number}?"))
            assert (view.phase, view.place is not None) == ("waiting for its turn", True), number


async def test_a_cancel_is_told_to_the_api_which_confirms_it_and_nothing_is_asked_afterwards(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(5)
        view = await research.cancel(run_id)
        assert (view.status, view.confirmed, view.error) == ("cancelled", True, "The run was cancelled.")
        await trio.sleep(100)
        assert await research.cancel(run_id) == view
    assert upstream.kinds == ["ask", "cancel"]
    (response,) = upstream.stored.responses.values()
    assert response.cancelled is not None


async def test_a_cancel_that_is_lost_is_sent_again_and_one_without_an_answer_is_called_unconfirmed(
    tmp_path: Path,
) -> None:
    upstream = slow(60.0, cancels_lost=1)
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(5)
        assert (await research.cancel(run_id)).confirmed
        assert upstream.kinds == ["ask", "cancel", "cancel"]
        upstream.stored.faults = slow(cancels_lost=99).stored.faults
        run_id = await research.start("how?")
        await trio.sleep(5)
        view = await research.cancel(run_id)
        assert (view.status, view.confirmed, view.maybe_paid) == ("cancelled", False, True)
        assert "did not confirm" in str(view.error)


async def test_a_cancel_before_the_id_is_known_waits_for_it_a_moment(tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = 2.0
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(1)
        assert (await research.cancel(run_id)).confirmed
        assert trio.current_time() == 4.0  # the cancel is sent as soon as there is an id
        upstream.latency = 60.0
        run_id = await research.start("how?")
        await trio.sleep(1)
        before = trio.current_time()
        view = await research.cancel(run_id)
        assert (view.confirmed, view.maybe_paid) == (False, True)
        assert trio.current_time() - before < 10


async def test_a_cancel_between_two_tries_ends_it_at_once_and_nothing_more_is_sent(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(429, retry_after="30")]
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(5)
        view = await research.cancel(run_id)
        assert (view.status, view.maybe_paid) == ("cancelled", False)
        await trio.sleep(100)
    assert upstream.kinds == ["ask"]


async def test_a_run_that_was_done_before_its_cancel_keeps_its_answer(tmp_path: Path) -> None:
    upstream = slow(1.0, cut_after=3, cuts=9)
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(5)
        (response,) = upstream.stored.responses.values()
        response.interval = 0.001  # done while nobody looks
        view = await research.cancel(run_id)
        assert view.status == "completed"


@pytest.mark.parametrize("steps", range(12))
async def test_a_run_can_be_cancelled_at_each_step_from_the_first_one_on(steps: int, tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await after(steps)
        view = await research.cancel(run_id)
        assert (view.status, view.confirmed, view.error) == ("cancelled", True, "The run was cancelled.")
        await trio.sleep(100)
        assert await research.cancel(run_id) == view
    asked = upstream.of("ask")
    assert len(asked) == len(upstream.of("cancel"))
    assert view.maybe_paid == bool(asked)


@pytest.mark.parametrize("steps", range(8))
@pytest.mark.parametrize("seconds", [0, 4])
async def test_a_run_that_is_taken_over_can_be_cancelled_at_each_step(
    seconds: float, steps: int, tmp_path: Path
) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=seconds)
    async with researching(upstream, tmp_path) as research:
        await research.result(run_id)
        await after(steps)
        view = await research.cancel(run_id)
        assert (view.running, view.maybe_paid) == (False, bool(upstream.asked))
        await trio.sleep(100)
        assert await research.cancel(run_id) == view
    assert upstream.of("cancel") == upstream.asked[-1:]
    assert (len(upstream.of("ask")), view.status) == (1, "cancelled") or seconds == 0


async def test_a_run_whose_id_never_came_may_have_been_paid_for_also_where_it_is_cancelled_as_it_is_found(
    tmp_path: Path,
) -> None:
    upstream = slow()
    upstream.latency = 60.0
    run_id = await left_going_on(upstream, tmp_path, seconds=1)
    in_file(tmp_path, "UPDATE run SET cancel_asked = 1")
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run_id)
        assert (view.status, view.maybe_paid) == ("cancelled", True)
        assert "before its id was known" in str(view.error)
    assert upstream.kinds == ["ask"]


@pytest.mark.parametrize("steps", range(20))
async def test_at_no_time_a_row_has_ended_and_does_not_say_how(steps: int, tmp_path: Path) -> None:
    """A server that is lost in between would leave a run that nobody can end."""
    seen = set[tuple[str, bool]]()

    async def watched(work: Callable[[], Any]) -> Any:
        done = await at_once(work)
        seen.update(in_file(tmp_path, "SELECT state, status IS NOT NULL FROM run"))
        return done

    upstream = slow(0.0)
    async with researching(upstream, tmp_path, in_thread=watched) as research:
        run_id = await research.start("why?")
        await after(steps)
        await research.cancel(run_id)
    assert {state for state, has_status in seen if has_status != (state == "ended")} == set()
    assert ("ended", True) in seen


async def test_the_row_says_that_a_run_is_asked_for_before_it_is(tmp_path: Path) -> None:
    """Or a server that is lost just then has the next one say that nothing was paid for."""
    upstream = slow()
    said: list[str] = []
    send = upstream.send

    async def watched(request: Request, reader: Reader) -> None:
        async def sent() -> None:
            await request.on_send()  # what comes next is on the wire
            said.extend(state for (state,) in in_file(tmp_path, "SELECT state FROM run"))

        await send(replace(request, on_send=sent), reader)

    upstream.send = watched  # type: ignore[method-assign]
    async with researching(upstream, tmp_path) as research:
        await research.start("why?")
        await trio.sleep(1)
    assert said == ["asking"]


async def test_a_cancel_that_a_lost_server_left_undone_is_done_by_the_next(tmp_path: Path) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=4)
    in_file(tmp_path, "UPDATE run SET cancel_asked = 1")
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run_id)
        assert (view.status, view.confirmed) == ("cancelled", True)
    assert upstream.kinds == ["ask", "cancel"]


@pytest.mark.parametrize("known", [True, False])
async def test_a_row_that_has_ended_and_does_not_say_how_is_looked_up_or_may_have_been_paid_for(
    known: bool, tmp_path: Path
) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=4)
    forgotten = "" if known else ", response_id = NULL"
    in_file(tmp_path, f"UPDATE run SET state = 'ended'{forgotten}")
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run_id)
        assert (view.status, view.maybe_paid) == (("completed", False) if known else ("failed", True))
        assert "went wrong" not in str(view.error)
    assert len(upstream.of("ask")) == 1


# Several processes, and none


async def test_a_run_goes_on_at_the_api_while_no_server_runs_and_the_next_one_finds_it(tmp_path: Path) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=4)
    assert upstream.open == 0
    await trio.sleep(1000)
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run_id)
        assert view.status == "completed"
        assert (await research.list())[0]["run_id"] == run_id
    assert upstream.kinds.count("ask") == 1


async def test_the_answer_of_a_run_that_has_ended_is_looked_up_by_the_next_server_and_is_the_same(
    tmp_path: Path,
) -> None:
    upstream = slow()
    first = await asked_and_ended(upstream, tmp_path)
    async with researching(upstream, tmp_path) as research:
        assert await research.result(first.run_id) == first
        assert await research.result(first.run_id) == first
    assert upstream.kinds == ["ask", "look"]
    upstream.stored.responses.clear()
    async with researching(upstream, tmp_path) as research:
        with pytest.raises(UpstreamError, match=r"no longer has its answer.*ten minutes.*pays again"):
            await research.result(first.run_id)


async def test_of_two_servers_on_one_folder_one_owns_a_run_and_both_can_ask_and_cancel(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as one, researching(upstream, tmp_path) as other:
        run_id = await one.start("why?")
        assert await other.start("why?") == run_id
        assert (await ended(other, run_id)).answer == (await ended(one, run_id)).answer
        assert upstream.kinds == ["ask", "look"]
        run_id = await one.start("how?")
        await trio.sleep(3)
        view = await other.cancel(run_id)
        assert (view.status, view.confirmed) == ("cancelled", True)
        assert (await one.result(run_id)).status == "cancelled"


async def test_a_run_that_another_server_has_taken_over_is_left_to_it_at_once(tmp_path: Path) -> None:
    """As when a laptop sleeps for longer than the lease."""
    upstream = slow(10.0)
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(12)
        assert upstream.open == 1
        in_file(tmp_path, "UPDATE run SET owner = 'another', leased_until = ?", 1e9 + 200)
        asked = len(upstream.asked)
        waited = trio.current_time()
        view = await research.result(run_id, wait_seconds=7)
        assert (view.running, trio.current_time() - waited) == (True, 7)
        assert upstream.open == 0
        await trio.sleep(60)
        assert (await research.cancel(run_id)).running  # that is for the other to do
        assert len(upstream.asked) == asked


async def test_a_server_with_another_key_or_address_knows_nothing_of_the_runs(tmp_path: Path) -> None:
    from responses_mcp.settings.model import OpenAISettings
    from tests.research.upstream import BASE, settings_for

    upstream = slow()
    stranger = replace(settings_for(tmp_path), openai=OpenAISettings(base_url=BASE, api_key="sk-other"))
    run_id = await left_going_on(upstream, tmp_path, seconds=2)
    async with researching(upstream, tmp_path, settings=stranger) as research:
        assert await research.list() == []
        with pytest.raises(BadArgument, match="no run"):
            await research.result(run_id)


async def test_the_end_of_a_server_cancels_its_runs_where_that_is_wanted(tmp_path: Path) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=4, on_exit="cancel")
    assert upstream.kinds == ["ask", "cancel"]
    async with researching(upstream, tmp_path) as research:
        assert (await ended(research, run_id)).status == "cancelled"


async def test_a_cancel_at_the_end_of_a_server_that_is_lost_is_made_good_by_the_next(tmp_path: Path) -> None:
    upstream = slow(60.0, cancels_lost=1)
    run_id = await left_going_on(upstream, tmp_path, seconds=4, on_exit="cancel")
    async with researching(upstream, tmp_path) as research:
        assert (await ended(research, run_id)).status == "cancelled"
    assert upstream.kinds == ["ask", "cancel", "cancel"]


async def test_leaving_takes_a_second_at_most_also_where_the_api_is_silent(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path, on_exit="cancel") as research:
        await research.start("why?")
        await trio.sleep(4)
        upstream.latency = 1000.0
        before = trio.current_time()
    assert trio.current_time() - before <= 1.0


async def test_nothing_is_read_written_or_asked_before_the_first_use(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path / "state"):
        await trio.sleep(100)
    assert (upstream.asked, written_in(tmp_path)) == ([], b"")


async def test_a_folder_that_cannot_be_used_is_told_and_nothing_is_asked(tmp_path: Path) -> None:
    from responses_mcp.research.runs_file import RunsFileUnusable

    upstream = slow()
    (tmp_path / "state").write_text("a file, not a folder", encoding="utf-8")
    async with researching(upstream, tmp_path / "state") as research:
        with pytest.raises(RunsFileUnusable, match=r"research\.state_dir"):
            await research.start("why?")
    assert upstream.asked == []


async def test_no_folder_at_all_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    from responses_mcp.settings.model import Settings

    async with researching(slow(), tmp_path, settings=Settings(openai=OPENAI)) as research:
        with pytest.raises(ConfigError, match=r"research\.state_dir"):
            await research.start("why?")


async def test_the_list_has_questions_of_this_process_and_others_only_where_they_are_kept(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await research.start("a secret plan")
        await trio.sleep(1)
        await research.start("how?")
        await trio.sleep(1)
        listed = await research.list()
        assert [entry["question"] for entry in listed] == ["how?", "a secret plan"]
        assert listed[0]["status"] == "running"
        assert len(await research.list(1)) == 1
    written = written_in(tmp_path)
    assert b"secret plan" not in written
    async with researching(upstream, tmp_path, keep_questions=True) as research:
        assert all("question" not in entry for entry in await research.list())
        await research.start("a public plan")
    async with researching(upstream, tmp_path) as research:
        assert "a public plan" in [entry.get("question") for entry in await research.list()]


async def test_neither_key_nor_answer_is_written(tmp_path: Path) -> None:

    await asked_and_ended(slow(), tmp_path)
    written = written_in(tmp_path)
    assert KEY.encode() not in written
    assert b"The answer to" not in written


async def test_runs_are_forgotten_after_some_days(tmp_path: Path) -> None:
    upstream = slow()
    view = await asked_and_ended(upstream, tmp_path)
    await trio.sleep(86_000)
    async with researching(upstream, tmp_path, keep_days=1) as research:
        assert await research.result(view.run_id) == view
    await trio.sleep(400)
    async with researching(upstream, tmp_path, keep_days=1) as research:
        with pytest.raises(BadArgument, match="There is no run with that id"):
            await research.result(view.run_id)
        await trio.sleep(1)
        assert await research.list() == []


async def test_a_bug_in_one_run_ends_that_run_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        good = await research.start("why?")
        await trio.sleep(2)
        upstream.script = [RuntimeError("boom")]
        bad = await ended(research, await research.start("how?"))
        assert (bad.status, bad.maybe_paid) == ("failed", True)
        assert (await ended(research, good)).status == "completed"
    assert "this is a bug" in caplog.text


async def test_a_reply_as_json_that_is_already_complete_is_an_answer(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Json(bodies.searched())]
    assert (await asked_and_ended(upstream, tmp_path)).status == "completed"


async def test_a_404_may_mean_that_there_is_no_background_mode_and_is_asked_without_once(tmp_path: Path) -> None:
    unknown = Error(404, "Not found.", code="not_found")
    upstream = slow()
    upstream.script = [unknown, PLAIN[1]]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.durable) == ("completed", False)
    assert [asked.json.get("background") for asked in upstream.of("ask")] == [True, None]
    upstream.script = [unknown, unknown]
    view = await asked_and_ended(upstream, tmp_path / "other")
    assert (view.status, view.maybe_paid, len(upstream.of("ask"))) == ("failed", False, 4)
    assert "404 not_found" in str(view.error)


async def test_a_404_for_the_model_is_told_at_once(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(404, "No such model.", code="model_not_found")]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, upstream.kinds) == ("failed", ["ask"])


async def test_an_api_without_background_mode_is_not_asked_for_it_again(tmp_path: Path) -> None:
    upstream = slow()
    streamed = as_stream(bodies.searched())
    upstream.script = [Error(400, "Unsupported parameter: 'background'.", param="background"), streamed, streamed]
    async with researching(upstream, tmp_path) as research:
        views = [await ended(research, await research.start(query)) for query in ("one?", "two?")]
    assert [(view.status, view.durable) for view in views] == [("completed", False)] * 2
    assert ["background" in asked.json for asked in upstream.asked] == [True, False, False]


async def test_what_a_run_cost_is_the_same_for_who_took_it_over(tmp_path: Path) -> None:
    upstream = slow(5.0)
    async with researching(upstream, tmp_path) as research:
        left, whole = await research.start("one?"), await research.start("two?")
        await trio.sleep(20)

    async with researching(upstream, tmp_path) as research:
        taken = await ended(research, left)
        assert taken.usage is not None
        assert taken.usage["cost_usd"] == 0.035158
        assert (await ended(research, whole)).usage == taken.usage
        listed = {run["run_id"]: run for run in await research.list()}
    assert listed[left]["cost"] == taken.as_json()["cost"] == {"usd": 0.035158, "prices_as_of": AS_OF}
    assert listed[left]["usage"] == taken.as_json()["usage"]


async def test_a_run_that_nobody_told_the_cost_of_says_how_often_it_was_asked(tmp_path: Path) -> None:
    view = await asked_and_ended(slow(id_never_sent=True), tmp_path)
    assert view.usage == {"attempts": 1, "uncounted_attempts": 1}


async def test_blocked_domains_are_taken_out_of_the_citations_again_whoever_reads_them(tmp_path: Path) -> None:
    upstream = slow()
    answers = MappingProxyType({"answer": Profile(blocked_domains=("other.example",))})
    settings = replace(settings_for(tmp_path), model_profiles=answers)
    async with researching(upstream, tmp_path, settings=settings) as research:
        run_id = await research.start("why?", blocked_domains=["https://Example.com/page"])
        first = await ended(research, run_id)
    second = await taken_up(upstream, tmp_path, run_id)
    assert upstream.asked[0].json["tools"][0]["filters"]["blocked_domains"] == ["example.com", "other.example"]
    for view in (first, second):
        assert view.answer is not None
        assert [citation.url for citation in view.answer.citations if "example.com" in citation.url] == []
    assert first == second


async def test_stores_are_searched_by_their_configured_names_and_their_files_cited(tmp_path: Path) -> None:
    upstream = slow()
    settings = settings_for(tmp_path, stores=("docs=vs_1", "law=vs_2"))

    def composed(request: Any) -> Any:
        body = bodies.searched()
        part = next(item for item in body["output"] if item["type"] == "message")["content"][0]
        part["annotations"] = [{"type": "file_citation", "file_id": "file_1", "filename": "leave.md", "index": 3}]
        return body

    upstream.stored.compose = composed
    async with researching(upstream, tmp_path, settings=settings) as research:
        view = await ended(research, await research.start("why?", stores=["law"]))
        for wrong in (["vs_2"], ["law", "rules"]):
            with pytest.raises(BadArgument, match="it may have docs, law"):
                await research.start("why?", stores=wrong)
    assert upstream.asked[0].json["tools"] == [
        {"type": "web_search"},
        {"type": "file_search", "vector_store_ids": ["vs_2"]},
    ]
    assert view.answer is not None
    assert "leave.md" in [citation.url for citation in view.answer.citations]
    assert upstream.kinds == ["ask"]


async def test_without_stores_in_the_settings_none_can_be_named(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        with pytest.raises(BadArgument, match=r"none in research\.stores"):
            await research.start("why?", stores=["vs_1"])


@pytest.mark.clock("real")
async def test_a_run_that_is_cancelled_while_its_connection_is_made_is_never_sent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    connecting, go_on = trio.Event(), trio.Event()
    connect = trio.open_tcp_stream

    async def slowly(*args: Any, **given: Any) -> trio.SocketStream:
        connecting.set()
        await go_on.wait()
        return await connect(*args, **given)

    with trio.fail_after(20):
        async with open_fake_api() as api:
            settings = settings_for(tmp_path)
            settings = replace(settings, openai=replace(settings.openai, base_url=api.base_url))
            monkeypatch.setattr(trio, "open_tcp_stream", slowly)
            async with open_research(settings) as research:
                run_id = await research.start("why?")
                await connecting.wait()
                view = await research.cancel(run_id)
                go_on.set()
                assert (view.status, view.confirmed, view.maybe_paid) == ("cancelled", True, False)
                assert view.usage is None
            assert not api.requests


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda research: research.start("why?", fresh="maybe"), "fresh"),
        (lambda research: research.start("why?", location={1: "JP"}), "^location has a name that is not a text"),
        (lambda research: research.list("many"), "limit"),
        (lambda research: research.result("run_1", wait_seconds="long"), "wait_seconds"),
        (lambda research: research.result("run_1", wait_seconds=-1), "wait_seconds"),
        (lambda research: research.result(5), "^run_id is not a text; pass the one"),
        (lambda research: research.result(None), "^run_id is missing; pass the one"),
    ],
)
async def test_direct_calls_read_their_arguments_as_the_tools_do(
    call: Callable[[Any], Any], name: str, tmp_path: Path
) -> None:
    async with researching(slow(), tmp_path) as research:
        with pytest.raises(BadArgument, match=name):
            await call(research)
        assert await research.list(None) == []  # type: ignore[arg-type]


async def test_what_was_masked_in_a_question_is_told_with_its_answer(tmp_path: Path) -> None:
    secret = "ghp_" + "k3Jx9QmZ2vLtR8wYc5NbHs7GdFa1PeUi0oTq"
    async with researching(upstream := slow(), tmp_path) as research:
        view = await ended(research, await research.start(f"Why does {secret} fail?"))
    assert view.answer is not None
    assert sum(view.answer.masked.values()) == 1
    assert secret not in str(upstream.asked[0].json)


async def test_who_asks_again_and_again_lets_all_else_go_on_and_can_be_cancelled(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        run = await research.start("why?")
        for use in (research.result, research.cancel, lambda run: research.wait_for_id(run, 0)):
            with trio.testing.assert_checkpoints():
                await use(run)
            with trio.CancelScope() as scope:
                scope.cancel()
                await use(run)
            assert scope.cancelled_caught


async def test_a_run_that_nobody_followed_took_as_long_as_the_api_says(tmp_path: Path) -> None:
    upstream = slow(2.0)
    compose = upstream.stored.compose
    upstream.stored.compose = lambda wanted: {**compose(wanted), "created_at": int(1e9 + trio.current_time())}
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)
    (response,) = upstream.stored.responses.values()
    took = response.finished["completed_at"] - response.finished["created_at"]
    await trio.sleep(600)
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run)
        assert took - 1 <= view.seconds <= took + 1
        assert await research.result(run) == view


async def test_a_list_after_a_look_tells_how_a_run_has_ended_whose_server_was_killed(tmp_path: Path) -> None:
    upstream = slow()
    run = await left_going_on(upstream, tmp_path, seconds=1.5)
    in_file(tmp_path, "UPDATE run SET owner = 'gone', leased_until = ?", 1e9 + trio.current_time() + 10)
    await trio.sleep(60)
    async with researching(upstream, tmp_path) as research:
        await research.take_over(3)
        (listed,) = await research.list()
        assert (listed["status"], "cost" in listed, upstream.kinds[-1]) == ("completed", True, "look")
        assert (await research.result(run)).answer is not None
        await trio.sleep(20)
        assert (await research.list()) == [listed | {"seconds_ago": listed["seconds_ago"] + 20}]
    ((status, usage),) = in_file(tmp_path, "SELECT status, usage FROM run")
    assert (status, usage is not None, len(upstream.of("ask"))) == ("completed", True, 1)


def unsaid(upstream: Upstream, look: Reply) -> Upstream:
    """Have it say neither whether a response is in background mode nor whether it is stored; answer looks so."""

    def reply(asked: Any) -> Reply:
        if asked.kind != "ask":
            return look
        given = upstream.stored.compose(asked.json)
        return as_stream({key: value for key, value in given.items() if key not in ("background", "store")})

    upstream._reply = reply  # type: ignore[method-assign]
    return upstream


@pytest.mark.parametrize("look", [*map(Error, (400, 404, 405, 410)), Json({"error": "Returning 200 anyway"})])
async def test_an_answer_of_a_server_that_names_neither_background_nor_storage_is_looked_up(
    look: Reply, tmp_path: Path
) -> None:
    upstream = unsaid(slow(), look)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        view = await ended(research, run)
        assert (view.status, view.durable, upstream.kinds) == ("completed", False, ["ask", "look"])
        assert not await research.wait_for_id(run, 1)
        view = await ended(research, await research.start("and then?", continue_from=run))
        assert (view.status, view.durable, upstream.kinds) == ("completed", False, ["ask", "look"] * 2)
        assert len(upstream.of("ask")[1].json["input"]) == 3


async def test_an_answer_of_such_a_server_that_is_found_is_kept_and_so_are_those_of_all_further_runs(
    tmp_path: Path,
) -> None:
    upstream = slow()
    kept: dict[str, Any] = {**bodies.searched(), "id": "resp_1"}
    upstream.stored.compose = lambda _: kept
    upstream = unsaid(upstream, Json(kept))
    async with researching(upstream, tmp_path) as research:
        for _ in range(2):
            view = await ended(research, await research.start("why?"))
            assert (view.status, view.durable) == ("completed", True)
    assert upstream.kinds == ["ask", "look", "ask"]


@pytest.mark.parametrize("status", [404, 405])
async def test_an_answer_that_such_a_server_leaves_out_and_does_not_know_will_not_come(
    status: int, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.stored.compose = lambda _: {**bodies.searched(), "id": "resp_1", "output": []}
    view = await asked_and_ended(unsaid(upstream, Error(status)), tmp_path)
    assert (view.status, view.durable, "may still come" in str(view.error)) == ("failed", False, False)


async def test_a_look_at_such_an_answer_that_finds_another_one_tells_nothing_of_further_runs(tmp_path: Path) -> None:
    upstream = unsaid(slow(), Json({**bodies.searched(), "id": "resp_another"}))
    async with researching(upstream, tmp_path) as research:
        for _ in range(2):
            await ended(research, await research.start("why?"))
    assert upstream.kinds == ["ask", "look"] * 2


@pytest.mark.parametrize("look", [Hang(), Error(500), Closed()])
async def test_an_answer_of_such_a_server_waits_a_second_at_most_for_a_word_and_may_be_kept_without_one(
    look: Reply, tmp_path: Path
) -> None:
    upstream = unsaid(slow(), look)
    async with researching(upstream, tmp_path) as research:
        began = trio.current_time()
        view = await ended(research, await research.start("why?"))
        assert (view.status, view.durable) == ("completed", True)
        assert trio.current_time() <= began + 1
        upstream._reply = unsaid(slow(), Error(404))._reply  # type: ignore[method-assign]
        view = await ended(research, await research.start("how?"))
        assert (view.status, view.durable) == ("completed", False)


async def test_a_cancel_or_a_time_limit_while_an_answer_is_looked_up_so_comes_too_late(tmp_path: Path) -> None:
    upstream = unsaid(slow(), Hang())
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.testing.wait_all_tasks_blocked()
        assert upstream.kinds == ["ask", "look"]
        view = await research.cancel(run)
        assert (view.status, view.answer is not None) == ("completed", True)
    upstream = unsaid(slow(), Hang())
    async with researching(upstream, tmp_path, timeout_ms=1500) as research:
        upstream.latency = 1.0
        assert (await ended(research, await research.start("why?"))).status == "completed"


@pytest.mark.parametrize("on_exit", ["keep", "cancel"])
async def test_a_run_whose_answer_is_looked_up_so_has_it_when_its_server_is_left(on_exit: str, tmp_path: Path) -> None:
    upstream = unsaid(slow(), Hang())
    async with researching(upstream, tmp_path, on_exit=on_exit) as research:
        run = await research.start("why?")
        await trio.sleep(0.5)
    (row,) = RunsFile(tmp_path)._select("id = ?", (run,))
    assert (row.status, row.usage is not None, upstream.kinds) == ("completed", True, ["ask", "look"])


async def test_who_waits_for_the_id_of_a_run_is_told_whether_it_has_come(tmp_path: Path) -> None:
    async def slowly(work: Callable[[], Any]) -> Any:
        await trio.sleep(0.5)
        return await at_once(work)

    upstream = slow()
    upstream.latency = 5.0
    async with researching(upstream, tmp_path, in_thread=slowly) as research:
        run = await research.start("why?")
        assert not await research.wait_for_id(run, 1)
        assert await research.wait_for_id(run, 10)
        (row,) = RunsFile(tmp_path)._select("id = ?", (run,))
        assert row.response_id is not None
        await research.cancel(run)
        for wrong in ("run_1", "", None, 5):
            with pytest.raises(BadArgument, match="run"):
                await research.wait_for_id(wrong, 1)  # type: ignore[arg-type]
        with pytest.raises(BadArgument, match="seconds"):
            await research.wait_for_id(run, -1)


async def test_what_the_block_raises_as_it_is_cancelled_from_without_comes_out_alone(tmp_path: Path) -> None:
    async def leaving() -> None:
        async with researching(slow(), tmp_path) as research:
            await research.start("why?")
            try:
                await trio.sleep_forever()
            finally:
                raise OSError("not flushed")

    with pytest.raises(OSError, match="not flushed"), trio.move_on_after(1):
        await leaving()


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (Error(401), AuthenticationFailed, False),
        (Error(429, retry_after="90"), RateLimited, True),
        (Error(500), ServiceFailed, False),
        (as_stream(bodies.failed()), ServiceFailed, False),
    ],
)
async def test_a_run_that_failed_tells_its_host_by_type_and_not_in_words_alone(
    reply: Reply, kind: type[Exception], retryable: bool, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [reply]
    view = await asked_and_ended(upstream, tmp_path, max_retries=0)
    assert isinstance(view.failure, UpstreamError)
    assert (view.status, type(view.failure), view.failure.retryable) == ("failed", kind, retryable)
    assert view.failure.message in str(view.error)
    assert (view.failure.maybe_paid, view.failure.usage) == (view.maybe_paid, view.usage)
    assert view.usage is not None
    assert "failure" not in view.as_json()


async def test_a_run_that_took_too_long_tells_its_host_so_by_type(tmp_path: Path) -> None:
    view = await asked_and_ended(slow(interval=200.0), tmp_path, timeout_ms=60_000)
    assert isinstance(view.failure, DeadlineExceeded)
    assert (view.status, str(view.failure), view.failure.maybe_paid) == ("failed", view.error, True)


async def test_a_run_that_the_api_has_forgotten_tells_its_host_by_type_that_it_may_be_paid_for(tmp_path: Path) -> None:
    upstream = slow(gone_after=2, cut_after=1, cuts=9)
    view = await asked_and_ended(upstream, tmp_path)
    assert isinstance(view.failure, UnusableReply)
    assert (view.status, str(view.failure)) == ("failed", view.error)
    assert (view.failure.maybe_paid, view.failure.retryable) == (True, False)


async def test_a_run_older_than_runs_are_kept_is_not_listed(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("why?"))
    in_file(tmp_path, "UPDATE run SET created = created - 8 * 86400")
    async with researching(upstream, tmp_path) as research:
        assert await research.list() == []


async def test_a_run_older_than_runs_are_kept_is_not_gone_on_from(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await ended(research, run)
        in_file(tmp_path, "UPDATE run SET created = created - 8 * 86400")
        with pytest.raises(BadArgument, match="continue_from"):
            await research.start("and then?", continue_from=run)


async def test_a_run_that_goes_on_is_told_and_listed_however_old_it_is(tmp_path: Path) -> None:
    upstream = slow(10.0)
    async with researching(upstream, tmp_path) as research, researching(upstream, tmp_path) as other:
        run = await research.start("why?")
        await trio.sleep(5)
        in_file(tmp_path, "UPDATE run SET created = created - 8 * 86400")
        for each in (research, other):
            assert (await each.result(run)).running
            assert [listed["status"] for listed in await each.list()] == ["running"]


async def test_a_follow_up_is_asked_with_what_was_said_where_a_server_knows_no_previous_responses(
    tmp_path: Path,
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        first = await ended(research, await research.start("why?"))
        upstream.script = [Error(400, "llama.cpp does not support 'previous_response_id'.")]
        view = await ended(research, await research.start("and then?", continue_from=first.run_id))
    assert view.status == "completed"
    assert "previous_response_id" not in upstream.asked[-1].json


@pytest.mark.parametrize("code", ["my secret question", "秘密の質問secret"])
async def test_a_code_that_is_free_text_is_not_written_down(code: str, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "no", code=code)]
    view = await asked_and_ended(upstream, tmp_path)
    assert view.status == "failed"
    assert b"secret" not in written_in(tmp_path)
