"""Runs as a host sees them: one paid request each, whatever happens, and an end for everybody who asks.

- A run is one POST, in the background and stored. It is repeated only where it was refused or never carried.
- A stream that breaks is taken up behind its last event, and then looked up; an id that never came is a failure that
  says it may have been paid for.
- Waiting can be cancelled or come to an end, and the run goes on. A cancelled run is cancelled at the API, once.
- Nobody owns a run: any process with its row looks at it, cancels it, and sends it if nobody has.
"""

import itertools
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
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
    LimitReached,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UpstreamError,
)
from responses_mcp.research.runs import open_research
from responses_mcp.research.runs_file import FILE, OLDER
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import Profile
from responses_mcp.testing import Closed, Error, Hang, Json, Reply, as_stream, bodies
from responses_mcp.testing.stored_responses import echo_in_form
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
from tests.testing import samples

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


@pytest.mark.parametrize(
    "refusal",
    [
        Error(400, "Bad."),
        Error(401),
        Error(429, code="insufficient_quota"),
        Error(404, "Gone.", code="model_not_found"),
    ],
)
async def test_what_is_refused_for_good_costs_nothing_and_says_why(refusal: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [refusal]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds) == ("failed", False, ["ask"])
    assert str(view.error)


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


async def test_a_server_that_does_not_stream_is_looked_up_until_it_is_done(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "Unsupported parameter: 'stream'", param="stream")]
    view = await asked_and_ended(upstream, tmp_path)
    assert view.status == "completed"
    assert [("stream" in asked.json) for asked in upstream.of("ask")] == [True, False]
    assert set(upstream.kinds[2:]) == {"look"}


async def test_a_run_takes_as_long_as_it_might_when_it_was_begun_whoever_takes_it_over(tmp_path: Path) -> None:
    upstream = slow(stuck=True)
    async with researching(upstream, tmp_path, timeout_ms=600_000) as research:
        run = await research.start("why?")
        await trio.sleep(120)
    async with researching(upstream, tmp_path, timeout_ms=60_000) as research:
        view = await ended(research, run)
    assert 600 <= upstream.of("cancel")[0].at <= 610
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
    assert "does not keep the run" in str(view.error)


async def test_a_run_that_nobody_keeps_is_cancelled_by_closing_its_connection_at_once(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [PLAIN[0], replace(PLAIN[1], interval=10.0)]
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(25)
        began = trio.current_time()
        view = await research.cancel(run_id)
        assert (view.status, view.maybe_paid, view.confirmed) == ("cancelled", True, False)
        await trio.testing.wait_all_tasks_blocked()
        assert (trio.current_time() - began, upstream.open) == (0.0, 0)


# How it ends


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (samples.incomplete_with_text, "incomplete", "cut off here"),
        (samples.incomplete_without_text, "failed", "reasoning_effort"),
        (samples.content_filter, "failed", "content filter"),
        (bodies.failed, "failed", "could not finish"),
        (samples.no_message, "failed", "no text"),
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
        with pytest.raises(BadArgument, match="still running; wait for it"):
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
        ({"query": "q", "domains": [""]}, r"domains has an empty name; it must be a list of strings like \["),
        ({"query": "q", "blocked_domains": ["a.jp", None]}, "blocked_domains has an empty name"),
        ({"query": "q", "domains": ["a.jp", ","]}, "domains has an empty name"),
        ({"query": "q", "domains": " , ,"}, "domains has an empty name"),
        ({"query": "q", "stores": [" "]}, "stores has an empty name"),
        ({"query": "q", "stores": ["vs_1"]}, r"none in research\.stores"),
        ({"query": "q", "stores": 3}, r"stores is 3; it must be a list of strings like \[\"docs\"\]"),
        ({"query": "q", "continue_from": 3}, "continue_from"),
        ({"query": "q", "continue_from": " "}, "continue_from is not the run_id"),
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


# Waiting


async def test_the_same_question_joins_a_run_that_goes_on_and_none_that_has_ended_or_was_cancelled(
    tmp_path: Path,
) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        first = await research.start("why?", domains=["a.example"])
        assert await research.start("why?", domains=["a.example"], label="another") == first
        others = {
            await research.start("why?"),
            await research.start("why?", domains=["a.example"], effort="deep"),
            await research.start("why?", domains=["a.example"], fresh=True),
            await research.start("why?", domains=["a.example"], max_tool_calls=3),
            await research.start("why?", domains=["a.example"], blocked_domains=["a.jp"]),
            await research.start("why?", domains=["a.example"], recency_days=3),
        }
        assert len(others | {first}) == 7
        await ended(research, first)
        assert await research.start("why?", domains=["a.example"]) != first
        cancelled = await research.start("how?")
        await research.cancel(cancelled)
        assert await research.start("how?") != cancelled


async def test_the_same_question_about_something_else_joins_no_run(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        first, second = await research.start("what is A?"), await research.start("what is B?")
        await ended(research, first)
        await ended(research, second)
        runs = [await research.start("why?", continue_from=each) for each in (None, first, second)]
        assert len(set(runs)) == 3
        assert await research.start("why?", continue_from=second) == runs[2]


async def test_more_runs_than_the_limit_are_refused_and_the_refusal_names_those_that_go_on(tmp_path: Path) -> None:
    upstream = slow()
    async with (
        researching(upstream, tmp_path, max_running=2) as one,
        researching(upstream, tmp_path, max_running=2) as two,
    ):
        runs = [await one.start("first?"), await two.start("second?")]
        for research in (one, two):
            with pytest.raises(LimitReached, match=r"research\.max_running") as caught:
                await research.start("third?")
            assert all(run in str(caught.value) for run in runs)
            assert await research.start("first?") == runs[0]  # which costs nothing
        for run in runs:
            await ended(one, run)
        assert (await ended(two, await two.start("third?"))).status == "completed"
    assert len(upstream.of("ask")) == 3


async def test_runs_that_ended_while_nobody_looked_take_no_place(tmp_path: Path) -> None:
    upstream = slow()
    await left_going_on(upstream, tmp_path, seconds=3)
    await trio.sleep(100)
    async with researching(upstream, tmp_path, max_running=1) as research:
        assert (await ended(research, await research.start("how?"))).status == "completed"


async def test_a_run_that_is_not_sent_yet_is_sent_by_who_joins_it_and_by_one_of_them(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(429, retry_after="50")]
    async with researching(upstream, tmp_path) as one:
        run = await one.start("why?")
        await trio.sleep(10)
        async with researching(upstream, tmp_path) as two:
            assert await two.start("why?") == run
            view = await ended(two, run)
            assert upstream.of("ask")[1].at < 20
        assert (await ended(one, run)).answer == view.answer
    assert (view.status, len(upstream.stored.responses)) == ("completed", 1)


async def test_a_run_whose_server_was_killed_before_it_was_sent_was_never_asked_for(tmp_path: Path) -> None:
    run = await left_going_on(slow(), tmp_path, seconds=3)
    in_file(tmp_path, "UPDATE run SET status = NULL, sent = NULL, response_id = NULL")
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        assert (await research.result(run)).phase == "waiting to be sent"
        view = await ended(research, run)
        assert (view.status, view.error) == ("failed", "No request was sent, so the run cost nothing; ask again.")
    assert (view.maybe_paid, upstream.asked, trio.current_time() < 150) == (False, [], True)


async def test_a_run_that_waits_too_long_to_be_sent_ends_and_cost_nothing(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(429, retry_after="59")] * 9
    view = await asked_and_ended(upstream, tmp_path, max_retries=9)
    assert (view.status, view.maybe_paid) == ("failed", False)
    assert 100 < trio.current_time() < 150


async def test_a_row_says_that_its_request_is_sent_before_it_is(tmp_path: Path) -> None:
    """Or a server that is killed just then has the next one say that nothing was paid for."""
    upstream = slow()
    said: list[bool] = []
    send = upstream.send

    async def watched(request: Request, reader: Reader) -> None:
        async def sent() -> None:
            await request.watcher.before_sending()  # what comes next is on the wire
            said.extend(sent is not None for (sent,) in in_file(tmp_path, "SELECT sent FROM run"))

        await send(replace(request, watcher=replace(request.watcher, on_send=sent, bill=None)), reader)

    upstream.send = watched  # type: ignore[method-assign]
    async with researching(upstream, tmp_path) as research:
        await research.start("why?")
        await trio.sleep(1)
    assert said == [True]


async def test_a_look_that_shows_another_response_is_none(tmp_path: Path) -> None:
    upstream = slow()
    run = await left_going_on(upstream, tmp_path, seconds=3)
    await trio.sleep(100)
    async with researching(upstream, tmp_path) as research:
        upstream.script = [Json({**bodies.searched(), "id": "resp_another"})] * 3
        assert (await research.result(run)).running
        upstream.script = []
        assert (await ended(research, run)).status == "completed"


async def test_rows_of_the_older_file_are_read_and_it_is_not_written(tmp_path: Path) -> None:
    upstream = slow()
    run = await left_going_on(upstream, tmp_path, seconds=3)
    await trio.sleep(100)
    with closing(sqlite3.connect(tmp_path / OLDER)) as connection, connection:
        names = {name: name for (_, name, *_) in in_file(tmp_path, "PRAGMA table_info(run)")}
        names |= {"kept": "durable", "label": "question"}
        connection.execute(f"CREATE TABLE run ({', '.join(names.values())})")
        row = in_file(tmp_path, f"SELECT {', '.join(names)} FROM run")[0]
        connection.execute(f"INSERT INTO run VALUES ({', '.join('?' * len(names))})", row)
        connection.execute("PRAGMA application_id = 1869770098")
        connection.execute("PRAGMA user_version = 3")
    (tmp_path / FILE).unlink()
    before = (tmp_path / OLDER).read_bytes()
    async with researching(upstream, tmp_path) as research:
        assert (await ended(research, run)).status == "completed"
        assert [entry["run_id"] for entry in await research.list()] == [run]
    assert (tmp_path / OLDER).read_bytes() == before


async def test_a_run_may_be_bounded_in_searches_and_cost(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        with pytest.raises(LimitReached, match="max_cost_usd"):
            await research.start("why?", max_cost_usd=0.0001)
        await ended(research, await research.start("why?", max_cost_usd=100, max_tool_calls=7))
    assert [asked.json["max_tool_calls"] for asked in upstream.of("ask")] == [7]


async def test_an_answer_tells_what_was_read_and_a_running_run_what_was_searched(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research, researching(upstream, tmp_path) as other:
        run = await research.start("why?")
        await trio.sleep(14)
        for each in (research, other):
            assert (await each.result(run)).searches == 1
        view = await ended(research, run)
    assert view.sources_read
    assert view.as_json()["sources_read"] == list(view.sources_read)


async def test_the_list_says_what_the_result_would_of_a_run_that_another_process_has_left(tmp_path: Path) -> None:
    upstream = slow(1.0)
    async with researching(upstream, tmp_path) as other:
        assert await other.list() == []
        async with researching(upstream, tmp_path) as research:
            run = await research.start("why?")
            await trio.sleep(5)
        assert [each["status"] for each in await other.list()] == ["running"]
        await trio.sleep(60)
        (listed,) = await other.list()
        assert listed["status"] == "completed"
        assert listed["cost"]["usd"] > 0
        assert (await other.result(run)).status == "completed"
    assert len(upstream.of("ask")) == 1


async def test_a_look_at_a_running_run_tells_what_it_has_used_so_far_where_the_api_does(tmp_path: Path) -> None:
    upstream = slow(60.0)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(5)
    used = {"input_tokens": 1_000, "output_tokens": 20, "total_tokens": 1_020}
    name = next(iter(upstream.stored.responses))
    upstream.script = [Json({"id": name, "status": "in_progress", "output": [], "usage": used})] * 2
    async with researching(upstream, tmp_path) as research:
        shown = (await research.result(run)).as_json()
        assert (shown["status"], shown["usage"]["total_tokens"]) == ("running", 1_020)
        assert shown["cost"]["usd"] > 0


async def test_the_seconds_of_a_run_do_not_follow_a_clock_that_is_set(tmp_path: Path) -> None:
    upstream, ahead = slow(1.0), 0.0
    clock = lambda: 1e9 + ahead + trio.current_time()  # noqa: E731
    api = upstream.api()
    async with open_research(settings_for(tmp_path), api=api, in_thread=at_once, clock=clock) as research:
        run = await research.start("why?")
        await trio.sleep(10)
        ahead = -3_600.0
        assert (await research.result(run)).seconds == 10.0
        view = await ended(research, run)
        ahead = 3_600.0
    took = trio.current_time()
    assert 10.0 < view.seconds <= took
    async with open_research(settings_for(tmp_path), api=api, in_thread=at_once, clock=clock) as research:
        assert (await research.result(run)).seconds == view.seconds


async def test_data_that_does_not_fit_its_schema_is_told_with_the_text(tmp_path: Path) -> None:
    upstream = slow()
    upstream.stored.compose = lambda wanted: {**echo_in_form(wanted), "text": wanted["text"]}
    schema = {"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, await research.start("why?", output_schema=schema))
        assert (view.data, view.error) == ({"why": "why?"}, None)
        wrong = {**schema, "properties": {"why": {"type": "string"}}, "required": ["why", "who"]}
        view = await ended(research, await research.start("why?", output_schema=wrong))
        assert "has no 'who'" in str(view.error)
        assert view.answer is not None


# Cancelling


async def test_a_cancel_before_the_id_is_known_waits_for_it_a_moment(tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = 2.0
    async with researching(upstream, tmp_path) as research:
        run_id = await research.start("why?")
        await trio.sleep(1)
        assert (await research.cancel(run_id)).confirmed
        assert 4.0 <= trio.current_time() < 4.1  # the cancel is sent as soon as there is an id
        upstream.latency = 60.0
        run_id = await research.start("how?")
        await trio.sleep(1)
        before = trio.current_time()
        view = await research.cancel(run_id)
        assert (view.confirmed, view.maybe_paid) == (False, True)
        assert trio.current_time() - before < 10


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


async def test_a_cancel_that_a_lost_server_left_undone_is_done_by_the_next(tmp_path: Path) -> None:
    upstream = slow()
    run_id = await left_going_on(upstream, tmp_path, seconds=4)
    in_file(tmp_path, "UPDATE run SET cancel_asked = 1")
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run_id)
        assert (view.status, view.confirmed) == ("cancelled", True)
    assert set(upstream.kinds[1:]) == {"cancel"}


# Several processes, and none


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
        view = await research.result(first.run_id, wait_seconds=100)
        assert re.search(r"no longer has its answer.*ten minutes.*pays again", view.error or "")
        assert (view.status, view.maybe_paid, type(view.failure)) == ("completed", True, RequestRefused)
        assert trio.current_time() < 100


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


async def test_a_list_has_the_labels_and_efforts_of_runs_and_no_question_is_written(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await research.start("a secret plan", label="  plan\nB ", effort="quick")
        await trio.sleep(1)
        await research.start("how?")
        await trio.sleep(1)
    async with researching(upstream, tmp_path) as research:
        listed = await research.list()
        assert [(entry.get("label"), entry["effort"]) for entry in listed] == [(None, "standard"), ("plan B", "quick")]
        assert listed[0]["status"] == "running"
        assert len(await research.list(1)) == 1
    assert b"secret plan" not in written_in(tmp_path)


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


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda research: research.start("why?", fresh="maybe"), "fresh"),
        (lambda research: research.start("why?", location={1: "JP"}), "^location may have country, region"),
        (lambda research: research.list("many"), "limit"),
        (lambda research: research.result("run_1", wait_seconds="long"), "wait_seconds"),
        (lambda research: research.result("run_1", wait_seconds=-1), "wait_seconds"),
        (lambda research: research.result(5), "^run_id is 5; it must be a text"),
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


async def test_who_asks_again_and_again_lets_all_else_go_on_and_can_be_cancelled(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        run = await research.start("why?")
        for use in (research.result, research.cancel):
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


async def test_a_run_that_goes_on_is_told_and_listed_however_old_it_is(tmp_path: Path) -> None:
    upstream = slow(10.0)
    async with researching(upstream, tmp_path) as research, researching(upstream, tmp_path) as other:
        run = await research.start("why?")
        await trio.sleep(5)
        in_file(tmp_path, "UPDATE run SET created = created - 8 * 86400")
        for each in (research, other):
            assert (await each.result(run)).running
            assert [listed["status"] for listed in await each.list()] == ["running"]
