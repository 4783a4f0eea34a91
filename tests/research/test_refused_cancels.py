"""Cancels that the API does not take: sent again while that may help, and no paid answer is lost over them.

- One that is refused for a while is sent again, after the wait that the API asks for, for a minute at most.
- One that is refused because the response has ended leaves the run its answer, whoever cancelled it.
- One that is refused for good, or goes on failing, is told as not confirmed, and sent again by each later look.
"""

from pathlib import Path

import pytest
import trio

from responses_mcp.research.view import RunView
from responses_mcp.testing import Error, Reply
from tests.research.upstream import Asked, Upstream, researching, slow, taken_up

pytestmark = pytest.mark.clock("virtual")


async def cancelled(upstream: Upstream, folder: Path, *replies: Error) -> RunView:
    """Cancel a run after some seconds, of which the API says at first what is given."""
    async with researching(upstream, folder) as research:
        run = await research.start("why?")
        await trio.sleep(5)
        upstream.script = [*replies]
        return await research.cancel(run)


@pytest.mark.parametrize("refusal", [Error(429), Error(500), Error(429, headers={"retry-after": "4"})])
async def test_a_cancel_that_is_refused_for_a_while_gets_through(refusal: Error, tmp_path: Path) -> None:
    view = await cancelled(slow(interval=60.0), tmp_path, refusal, refusal, refusal)
    assert (view.status, view.confirmed) == ("cancelled", True)


@pytest.mark.parametrize(("asked", "confirmed"), [(9, True), (40, True), (300, False)])
async def test_a_cancel_waits_as_long_as_the_api_asks_for_which_is_a_minute_at_most(
    asked: int, *, confirmed: bool, tmp_path: Path
) -> None:
    upstream = slow(interval=60.0)
    view = await cancelled(upstream, tmp_path, Error(429, headers={"retry-after": str(asked)}))
    assert (view.status, view.confirmed) == ("cancelled", confirmed)
    times = [cancel.at for cancel in upstream.of("cancel")]
    assert len(times) == 1 + confirmed
    assert times[-1] - times[0] >= asked * confirmed


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422, 500])
async def test_a_cancel_that_is_refused_because_the_response_has_ended_leaves_the_answer(
    status: int, tmp_path: Path
) -> None:
    upstream = slow(cut_after=2, cuts=9, late_cancels=status)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)
        (response,) = upstream.stored.responses.values()
        response.interval = 0.01  # it ends while it is not looked at
        view = await research.cancel(run)
    assert (view.status, view.maybe_paid) == ("completed", False), view
    assert view.answer is not None


@pytest.mark.parametrize("status", [400, 409])
async def test_a_run_whose_time_was_over_while_no_server_was_there_keeps_its_answer(
    status: int, tmp_path: Path
) -> None:
    upstream = slow(late_cancels=status)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)
    await trio.sleep(8 * 3600)
    assert (await taken_up(upstream, tmp_path, run)).status == "completed"


async def test_a_cancel_that_is_refused_for_good_is_told_as_not_confirmed(tmp_path: Path) -> None:
    upstream = slow(interval=60.0)
    upstream.cancels = Error(403)
    view = await cancelled(upstream, tmp_path)
    assert (view.status, view.confirmed, view.maybe_paid) == ("cancelled", False, True)
    assert len(upstream.of("cancel")) == 1


async def test_a_cancel_that_goes_on_failing_is_sent_again_for_a_while_and_no_longer(tmp_path: Path) -> None:
    upstream = slow(interval=60.0)
    view = await cancelled(upstream, tmp_path, *(Error(500) for _ in range(99)))
    assert (view.confirmed, view.maybe_paid) == (False, True)
    assert 3 <= len(upstream.of("cancel")) <= 8
    assert upstream.asked[-1].at - upstream.of("cancel")[0].at <= 30


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_cancel_that_was_not_confirmed_is_sent_again_by_each_later_look(
    *, elsewhere: bool, tmp_path: Path
) -> None:
    upstream = slow(interval=60.0)
    upstream.cancels = Error(503)
    async with researching(upstream, tmp_path) as research, researching(upstream, tmp_path) as other:
        run = await research.start("why?")
        await trio.sleep(5)
        assert not (await research.cancel(run)).confirmed
        assert [each["status"] for each in await research.list()] == ["cancelled"]
        asked, upstream.cancels = len(upstream.asked), None
        view = await (other if elsewhere else research).result(run)
        assert (view.status, view.confirmed) == ("cancelled", True)
        assert await research.result(run) == await research.cancel(run) == view
    assert set(upstream.kinds[asked:]) == {"cancel"}


@pytest.mark.parametrize("status", [403, 503])
async def test_a_run_that_cannot_be_looked_up_is_cancelled_all_the_same(status: int, tmp_path: Path) -> None:
    upstream = slow(200.0, cut_after=0)
    answer = upstream._reply
    upstream._reply = lambda asked: (  # type: ignore[method-assign]
        Error(status) if asked.kind in ("look", "stream") else answer(asked)
    )
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        assert "cannot be looked up" in (await research.result(run, wait_seconds=100)).phase
        view = await research.cancel(run)
    assert (view.status, view.confirmed, len(upstream.of("cancel"))) == ("cancelled", True, 1)
    (response,) = upstream.stored.responses.values()
    assert response.body(trio.current_time())["status"] == "cancelled"


async def test_a_cancel_of_which_only_the_confirmation_was_lost_is_found_confirmed_later(tmp_path: Path) -> None:
    upstream = slow(interval=2000.0)
    answer = upstream._reply

    def reply(asked: Asked) -> Reply:
        given = answer(asked)  # which carries out the cancel
        return Error(503) if asked.kind in ("cancel", "look") and trio.current_time() < 90 else given

    upstream._reply = reply  # type: ignore[method-assign]
    async with researching(upstream, tmp_path, timeout_ms=60_000) as research:
        run = await research.start("why?")
        view = await research.result(run, wait_seconds=89)
        assert (view.status, view.confirmed) == ("failed", False)
        assert "may go on" in str(view.error)
        await trio.sleep(60)
        later = await research.result(run)
        assert (later.status, later.confirmed) == ("failed", True)
        assert "took longer than 60 s" in str(later.error)
        assert "may go on" not in str(later.error)
        asked = len(upstream.asked)
        assert await research.cancel(run) == later
    assert len(upstream.asked) == asked
    assert (await taken_up(upstream, tmp_path, run)).confirmed


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_an_answer_that_came_though_its_cancel_was_not_confirmed_is_had_when_it_is_asked_for(
    *, elsewhere: bool, tmp_path: Path
) -> None:
    upstream = slow(8.0)
    upstream.cancels = Error(503)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)
        assert not (await research.cancel(run)).confirmed
        await trio.sleep(900)
        if not elsewhere:
            assert (await research.result(run)).status == "completed"
    view = await taken_up(upstream, tmp_path, run)
    assert (view.status, view.answer is not None, len(upstream.of("ask"))) == ("completed", True, 1)


async def test_a_cancel_while_nothing_can_be_read_does_not_lose_the_answer(tmp_path: Path) -> None:
    upstream = slow(1.0, cut_after=0)
    answer = upstream._reply
    upstream._reply = lambda asked: (  # type: ignore[method-assign]
        answer(asked) if asked.kind == "ask" or trio.current_time() > 300 else Error(403)
    )
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        assert (await research.result(run, wait_seconds=200)).running
        assert not (await research.cancel(run)).confirmed
        await trio.sleep(400)
        view = await research.result(run)
    assert (view.status, view.answer is not None) == ("completed", True)


async def test_a_cancel_of_a_run_that_another_process_has_sent_after_a_refusal_here_reaches_the_api(
    tmp_path: Path,
) -> None:
    upstream = slow(interval=60.0)
    upstream.script = [Error(429, headers={"retry-after": "50"})]
    async with researching(upstream, tmp_path) as one, researching(upstream, tmp_path) as two:
        run = await one.start("why?")
        await trio.sleep(5)
        assert await two.start("why?") == run
        await trio.sleep(5)
        with trio.fail_after(5):
            view = await one.cancel(run)
    assert (view.status, view.confirmed, upstream.kinds.count("cancel")) == ("cancelled", True, 1)
