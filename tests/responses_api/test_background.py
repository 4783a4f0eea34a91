"""Asker in background mode, for profiles that ask for it: one request that is paid for, and nothing left behind.

- The request goes out in the background, stored and streamed; without the setting it is as it was.
- A stream that breaks is taken up behind its last event, and then the response is looked up, though that is refused.
- A call that is cancelled, or takes too long, cancels the response at the API; that takes a second at most.
- An answer that the last event leaves out is looked up, in a run of research as well.
- Where the API has no background mode, which costs nothing, it is asked without.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.asking import Asker, Watcher
from responses_mcp.errors import ConnectionFailed, DeadlineExceeded, UnusableReply, UpstreamError
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.settings.model import Profile, RequestSettings, Settings
from responses_mcp.testing import Error, Hang, Json, Reply, Sse, as_stream, bodies
from responses_mcp.testing.event_stream import stream_events
from tests.research.upstream import OPENAI, Upstream, asked_and_ended, slow

LONG = 2000.0  # seconds of virtual time
WITHOUT = Error(400, "Unsupported parameter: 'background'.", param="background")


def asking(upstream: Upstream, *, timeout_ms: int = 1_000_000, **profile: Any) -> Asker:
    request = RequestSettings(timeout_ms=timeout_ms)
    settings = Settings(
        openai=OPENAI,
        request=request,
        model_profiles=MappingProxyType({"answer": Profile(**{"background": True, **profile})}),
    )
    return Asker(settings, api=ResponsesApi(OPENAI, request, rng=lambda: 0.0, connect=upstream.connect))


def stopped(upstream: Upstream) -> list[bool]:
    """Return of each response that was made whether it has been cancelled."""
    return [response.cancelled is not None for response in upstream.stored.responses.values()]


async def test_the_request_goes_out_in_the_background_stored_and_streamed(autojump_clock: MockClock) -> None:
    upstream = slow()
    with trio.fail_after(LONG):
        answer = await asking(upstream).answer("why?")
    assert upstream.kinds == ["ask"]
    body = upstream.asked[0].json
    assert (body["background"], body["store"], body["stream"]) == (True, True, True)
    assert answer.text.startswith("The answer to: why?")
    assert answer.usage is not None
    assert (answer.usage.total_tokens, answer.usage.attempts, answer.usage.uncounted) == (9245, 1, 0)


@pytest.mark.parametrize("profile", [{"background": None}, {"background": False}, {"request": {"store": False}}])
async def test_without_the_setting_or_without_storage_it_does_not(
    autojump_clock: MockClock, profile: dict[str, Any]
) -> None:
    upstream = slow()
    upstream.script = [Error(401)]
    with trio.fail_after(LONG), pytest.raises(UpstreamError):
        await asking(upstream, **profile).answer("why?")
    assert "background" not in upstream.asked[0].json
    assert upstream.asked[0].json.get("store") == profile.get("request", {}).get("store")


async def test_a_stream_that_breaks_is_taken_up_behind_its_last_event(autojump_clock: MockClock) -> None:
    upstream = slow(cut_after=7)
    with trio.fail_after(LONG):
        answer = await asking(upstream).answer("why?")
    assert upstream.kinds == ["ask", "stream"]
    assert "starting_after=7" in upstream.asked[1].path
    assert answer.text.startswith("The answer to: why?")
    assert answer.usage is not None
    assert (answer.usage.total_tokens, answer.usage.attempts) == (9245, 1)


async def test_whoever_reads_the_text_along_is_told_it_from_its_beginning_again(autojump_clock: MockClock) -> None:
    upstream = slow(cut_after=16)
    told: list[str] = []
    with trio.fail_after(LONG):
        answer = await asking(upstream).answer("why?", watcher=Watcher(on_text=told.append))
    assert "starting_after" not in upstream.asked[1].path
    assert told == ["", ""]  # a line is told when it has ended
    assert answer.text.startswith("The answer to: why?")


async def test_an_id_that_never_came_is_a_failure_that_was_not_repeated(autojump_clock: MockClock) -> None:
    upstream = slow(id_never_sent=True)
    with trio.fail_after(LONG), pytest.raises(ConnectionFailed, match="may have been paid for"):
        await asking(upstream).answer("why?")
    assert upstream.kinds == ["ask"]


async def test_the_time_of_a_call_holds_with_and_without_background_mode_together(autojump_clock: MockClock) -> None:
    upstream = slow()
    upstream.script = [Error(429, retry_after="15"), replace(WITHOUT, latency=4.0), Hang()]
    with trio.fail_after(20.1), pytest.raises(DeadlineExceeded, match="within 20 s") as caught:
        await asking(upstream, timeout_ms=20_000).answer("why?")
    assert (upstream.kinds, caught.value.maybe_paid) == (["ask"] * 3, True)


async def test_a_response_that_the_api_has_forgotten_is_a_failure(autojump_clock: MockClock) -> None:
    upstream = slow(cut_after=3, cuts=9, gone_after=4.0)
    with trio.fail_after(LONG), pytest.raises(UpstreamError) as caught:
        await asking(upstream).answer("why?")
    assert "the answer is lost" in str(caught.value)
    assert caught.value.maybe_paid
    assert len(upstream.of("ask")) == 1


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize("seconds", [150.0, 1000.0])
async def test_look_ups_that_are_refused_are_tried_again_while_the_call_has_time(
    autojump_clock: MockClock, status: int, seconds: float
) -> None:
    upstream = slow(cut_after=3, cuts=99)
    answer = upstream.stored.answer
    refused = lambda *asked: Error(status) if trio.current_time() < seconds else answer(*asked)  # noqa: E731
    upstream.stored.answer = refused  # type: ignore[method-assign]
    if seconds > 300:
        with pytest.raises(DeadlineExceeded, match="may go on at the API"):
            await asking(upstream).answer("why?")
    else:
        assert (await asking(upstream).answer("why?")).text.startswith("The answer to: why?")
    assert len(upstream.of("ask")) == 1


async def test_a_cancelled_call_is_cancelled_at_the_api(autojump_clock: MockClock) -> None:
    upstream = slow(10.0)
    answers = asking(upstream)
    with trio.fail_after(LONG), trio.move_on_after(35) as call:
        await answers.answer("why?")
    assert call.cancelled_caught
    assert (upstream.kinds, stopped(upstream), upstream.open) == (["ask", "cancel"], [True], 0)
    assert trio.current_time() < 37


async def test_a_call_that_is_cancelled_before_its_id_has_come_waits_for_that_a_second_at_most(
    autojump_clock: MockClock,
) -> None:
    soon, late = slow(10.0), slow(10.0)
    soon.latency, late.latency = 0.4, 30.0
    for upstream in (soon, late):
        began = trio.current_time()
        with trio.fail_after(LONG), trio.move_on_after(0.1):
            await asking(upstream).answer("why?")
        assert trio.current_time() - began <= 1.2
        assert upstream.open == 0
    assert soon.kinds == ["ask", "cancel"]
    assert stopped(soon) == [True]
    assert late.kinds == ["ask"]


async def test_an_api_that_does_not_answer_the_cancel_holds_nobody_up(autojump_clock: MockClock) -> None:
    upstream = slow(10.0)
    with trio.fail_after(LONG), trio.move_on_after(35):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asking(upstream).answer, "why?")
            await trio.sleep(34)
            upstream.script = [Hang("headers")]
    assert trio.current_time() <= 36.1
    assert upstream.kinds == ["ask", "cancel"]


async def test_a_call_that_is_cancelled_before_it_was_sent_sends_nothing(autojump_clock: MockClock) -> None:
    upstream = slow()
    with trio.fail_after(LONG), trio.CancelScope() as scope:
        scope.cancel()
        await asking(upstream).answer("why?")
    assert upstream.kinds == []


async def test_a_call_that_takes_too_long_is_cancelled_at_the_api_and_names_the_setting(
    autojump_clock: MockClock,
) -> None:
    upstream = slow(stuck=True)
    with trio.fail_after(LONG), pytest.raises(DeadlineExceeded, match=r"raise request\.timeout_ms"):
        await asking(upstream, timeout_ms=60_000).answer("why?")
    assert stopped(upstream) == [True]
    assert trio.current_time() <= 61.1


async def test_a_silent_stream_is_given_up_and_taken_up_again(autojump_clock: MockClock) -> None:
    upstream = slow(400.0)
    with trio.fail_after(20_000):
        await asking(upstream, timeout_ms=20_000_000).answer("why?")
    assert upstream.kinds[:3] == ["ask", "stream", "look"]
    assert len(upstream.of("ask")) == 1


async def test_an_api_without_background_mode_is_asked_without(autojump_clock: MockClock) -> None:
    upstream = slow()
    upstream.script = [WITHOUT]
    with trio.fail_after(LONG):
        await asking(upstream).answer("why?")
    assert ["background" in asked.json for asked in upstream.asked] == [True, False]
    assert "store" not in upstream.asked[1].json


@pytest.mark.parametrize("refusal", [Error(429), Error(400, "Unsupported parameter: 'text'.", param="text")])
async def test_a_refusal_that_comes_when_nobody_waits_any_more_has_nothing_sent_again(
    autojump_clock: MockClock, refusal: Error
) -> None:
    upstream = slow()
    upstream.latency = 0.4
    upstream.script = [refusal]
    with trio.move_on_after(0.2):
        await asking(upstream).answer("why?")
    assert upstream.kinds == ["ask"]


@pytest.mark.parametrize(("upstream", "said", "maybe_paid"), [
    (slow(30.0), "cancelled at the API", True), (slow(30.0, cancels_lost=2), "cancelled at the API", True),
    (slow(30.0, cancels_lost=9), "may go on at the API and cost something", True),
    (slow(30.0, id_never_sent=True), "may go on at the API and cost something", True),
])  # fmt: skip
async def test_a_call_that_took_too_long_says_what_became_of_it_at_the_api(
    autojump_clock: MockClock, upstream: Upstream, said: str, maybe_paid: bool
) -> None:
    if upstream.stored.faults.id_never_sent:
        upstream.script = [Hang()]
    with trio.fail_after(LONG), pytest.raises(DeadlineExceeded, match=said) as caught:
        await asking(upstream, timeout_ms=5000).answer("why?")
    assert caught.value.maybe_paid == maybe_paid


async def test_what_a_listener_raises_ends_the_question_and_cancels_it_at_the_api(autojump_clock: MockClock) -> None:
    upstream = slow()

    def listen(phase: str) -> None:
        if phase == "writing":
            raise trio.BrokenResourceError

    with trio.fail_after(LONG), pytest.raises(trio.BrokenResourceError):
        await asking(upstream).answer("why?", watcher=Watcher(listen))
    assert upstream.kinds == ["ask", "cancel"]


WHOLE: dict[str, Any] = {**bodies.searched(), "id": "resp_1", "background": True, "store": True}
LEFT_OUT: dict[str, Any] = {**WHOLE, "output": []}


def without(*names: str) -> Json:
    return Json({name: value for name, value in WHOLE.items() if name not in names})


@pytest.mark.parametrize("by_run", [False, True], ids=["call", "run"])
@pytest.mark.parametrize(
    "looks",
    [
        [Json(WHOLE)],
        [without("status")],
        [without("id", "status")],
        [without("usage")],
        [Json({**WHOLE, "usage": None})],
    ],
    ids=["at once", "no status", "no more", "no usage", "empty usage"],
)
async def test_an_answer_that_the_last_event_leaves_out_is_looked_up_and_what_that_alone_told_holds(
    autojump_clock: MockClock, tmp_path: Path, looks: list[Reply], by_run: bool
) -> None:
    upstream = Upstream(script=[as_stream(LEFT_OUT), *looks])
    with trio.fail_after(60):
        if by_run:
            view = await asked_and_ended(upstream, tmp_path)
            answer = view.answer
        else:
            answer = await asking(upstream).answer("why?")
    assert answer is not None
    assert answer.usage is not None
    assert (bool(answer.text), answer.usage.total_tokens, answer.usage.uncounted) == (True, 9245, 0)
    assert upstream.kinds == ["ask", *["look"] * len(looks)]


@pytest.mark.parametrize("by_run", [False, True], ids=["call", "run"])
@pytest.mark.parametrize("look", [Json(LEFT_OUT), Error(404), Error(403), Error(500), Error(501)])
async def test_an_answer_that_is_left_out_and_cannot_be_looked_up_is_told_with_what_it_used(
    autojump_clock: MockClock, tmp_path: Path, look: Reply, by_run: bool
) -> None:
    upstream = Upstream(script=[as_stream(LEFT_OUT), *[look] * 20])
    usage: Mapping[str, Any] | None
    with trio.fail_after(90):
        if by_run:
            usage = (await asked_and_ended(upstream, tmp_path)).usage
        else:
            with pytest.raises(UnusableReply) as caught:
                await asking(upstream).answer("why?")
            usage = caught.value.usage
            assert caught.value.maybe_paid
    assert usage is not None
    assert (usage["total_tokens"], len(upstream.of("ask"))) == (9245, 1)


async def test_a_text_that_was_told_from_its_beginning_is_the_answer_where_the_last_event_leaves_it_out(
    autojump_clock: MockClock,
) -> None:
    events = stream_events(WHOLE)
    events[-1] = {**events[-1], "response": LEFT_OUT}
    upstream = Upstream(script=[Sse(events[:5], ending="cut"), Sse(events), *[Error(404)] * 9])
    told: list[str] = []
    with trio.fail_after(LONG):
        answer = await asking(upstream).answer("why?", watcher=Watcher(on_text=told.append))
    assert answer.text
    assert upstream.kinds == ["ask", "stream"]


async def test_a_call_whose_time_is_over_while_its_answer_is_left_out_tells_what_it_used(
    autojump_clock: MockClock,
) -> None:
    upstream = Upstream(script=[as_stream(LEFT_OUT), Hang()])
    with trio.fail_after(LONG), pytest.raises(DeadlineExceeded) as caught:
        await asking(upstream, timeout_ms=3000).answer("why?")
    assert caught.value.usage is not None
    assert (caught.value.usage["total_tokens"], upstream.kinds) == (9245, ["ask", "look"])


async def test_a_response_in_a_state_of_its_gateways_own_is_looked_up_until_it_has_ended(
    autojump_clock: MockClock,
) -> None:
    whole = {**bodies.searched(), "id": "resp_1", "background": True, "store": True}
    pending = {**whole, "status": "pending", "output": []}
    upstream = Upstream(script=[Json(pending), Json({**pending, "status": "running"}), Json(whole)])
    answer = await asking(upstream).answer("why?")
    assert answer.text
    assert upstream.kinds[0] == "ask"
    assert upstream.kinds.count("ask") == 1
