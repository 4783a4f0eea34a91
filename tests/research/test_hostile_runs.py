"""What no API and no server of ours says: in replies, in the file of runs, and about the file itself.

A run ends with a word on it, other runs go on, and the answer that was paid for is told.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import trio

from responses_mcp.errors import BadArgument, ConnectionFailed, ResponsesMcpError, UpstreamError
from responses_mcp.research.inquiry import checked
from responses_mcp.research.runs import Research, open_research
from responses_mcp.research.runs_file import FILE, RunsFileUnusable
from responses_mcp.research.view import RunView
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.model import LimitSettings, ModelPrice, Profile, RequestSettings, UsageSettings
from responses_mcp.testing import Error, Hang, Json, Reply, Sse, as_stream, bodies
from responses_mcp.testing.items import message, output_text
from responses_mcp.trace_context import TRACE
from responses_mcp.usage.meter import Caller, Meter
from tests.research.upstream import (
    KEY,
    OPENAI,
    Upstream,
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
from tests.usage.test_ledger import counted, rows

pytestmark = pytest.mark.clock("virtual")

WAIT = 5_000.0
CREATED = {"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "status": "in_progress"}}


def created(**response: Any) -> dict[str, Any]:
    return {**CREATED, "response": {**CREATED["response"], **response}}  # type: ignore[dict-item]


def completed(**response: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": {**bodies.searched(), **response}}


async def answered(upstream: Upstream, folder: Path, **options: Any) -> tuple[RunView, list[str]]:
    """Ask, and again afterwards; return how the first run ended, and the states of all, the newest first."""
    async with researching(upstream, folder, **options) as research:
        view = await ended(research, await research.start("why?"))
        upstream.script.clear()
        assert (await ended(research, await research.start("how?"))).status == "completed"
        return view, [run["status"] for run in await research.list()]


async def has_id(folder: Path) -> None:
    """Wait until a run would outlive its process."""
    while in_file(folder, "SELECT count(*) FROM run WHERE response_id IS NOT NULL") == [(0,)]:  # noqa: ASYNC110
        await trio.sleep(0.01)


@dataclass
class File:
    """The use of the file of runs, which another process may lock; that is told after `patience` seconds."""

    patience: float = 0.0
    locked: bool = False

    async def __call__(self, work: Callable[[], Any]) -> Any:
        if self.locked:
            await trio.sleep(self.patience)
            raise RunsFileUnusable("another process holds its lock")
        return await at_once(work)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


# Replies


@pytest.mark.parametrize("number", [2**70, -5, True, 1.5, "7", None])
async def test_the_number_of_an_event_may_be_anything(number: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Sse([{**CREATED, "sequence_number": number}, completed(id="resp_1")])]
    view, listed = await answered(upstream, tmp_path)
    assert (view.status, listed) == ("completed", ["completed", "completed"])


@pytest.mark.parametrize("named", ["..", ".", "a/../../x?y=1#z", "\ud800x", "z" * 200_000, "", 7, ["x"], KEY])
async def test_an_id_that_cannot_stand_in_an_address_is_none_and_is_written_nowhere(named: Any, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Sse([created(id=named)], ending="cut")]
    view, _ = await answered(upstream, tmp_path)
    assert (view.status, view.maybe_paid, upstream.kinds[:2]) == ("failed", True, ["ask", "ask"])
    upstream.script = [Sse([created(id=named), completed(id=named)])]
    view, _ = await answered(upstream, tmp_path)
    assert view.status == "completed"
    assert KEY.encode() not in written_in(tmp_path)
    assert in_file(tmp_path, "SELECT count(*) FROM run WHERE length(response_id) > 1000") == [(0,)]


@pytest.mark.parametrize("status", [["completed"], {"a": 1}, 5, None, "dreaming"])
async def test_a_status_may_be_anything(status: Any, tmp_path: Path) -> None:
    upstream = slow()
    found = {**bodies.searched(), "id": "resp_1"}
    upstream.script = [Sse([CREATED], ending="cut"), Error(500), Json({**found, "status": status})]
    if status == "dreaming":  # which may come to an end
        upstream.script.append(Json(found))
    view, listed = await answered(upstream, tmp_path, max_retries=0)
    assert (view.status, listed) == ("completed", ["completed", "completed"])


async def test_an_end_in_words_that_no_file_takes_keeps_no_other_from_being_written(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [ConnectionFailed("No route to \ud800.")]
    view, listed = await answered(upstream, tmp_path)
    assert (view.status, sorted(listed)) == ("failed", ["completed", "failed"])


async def test_an_error_in_the_stream_says_nothing_of_the_response_which_is_looked_up(tmp_path: Path) -> None:
    upstream = slow()
    error = {"type": "error", "code": "server_error", "message": "a hiccup"}
    upstream.script = [Sse([CREATED, error]), Sse([error]), Json({**bodies.searched(), "id": "resp_1"})]
    view, _ = await answered(upstream, tmp_path)
    assert (view.status, upstream.kinds[:3]) == ("completed", ["ask", "stream", "look"])


LIMITED: dict[str, Any] = {"code": 429, "message": "Too many."}
OVERLOADED: dict[str, Any] = {"type": "service_unavailable_error", "code": "server_is_overloaded"}


@pytest.mark.parametrize("reply", [Sse([{"type": "error", "error": LIMITED}]), Json({"error": LIMITED})])
async def test_a_rate_limit_told_with_status_200_is_waited_for_and_costs_nothing(reply: Reply, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [reply]
    view, _ = await answered(upstream, tmp_path)
    assert (view.status, upstream.kinds[:2]) == ("completed", ["ask", "ask"])
    upstream = slow()
    upstream.script = [reply] * 4
    view, _ = await answered(upstream, tmp_path)
    assert (view.status, view.maybe_paid, "Too many." in str(view.error)) == ("failed", False, True)


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Vector store with id 'vs_gone' not found.", "tools[1].vector_store_ids"),
        ("Vector store with id 'vs_gone' not found.", None),
        ("Invalid schema for response_format 'answer': In context=('properties', 'store'), 'type' is missing.", None),
        ("Invalid value at 'background'.", "input"),
        ("The background of this picture is too large.", None),
    ],
)
async def test_a_refusal_of_something_else_is_none_of_background_mode(
    message: str, param: str | None, tmp_path: Path
) -> None:
    upstream = slow()
    refusal = Error(400, message, param=param)
    upstream.script = [refusal] if param else [refusal, refusal]  # once more, in case it meant background mode
    async with researching(upstream, tmp_path) as research:
        first = await ended(research, await research.start("why?"))
        second = await ended(research, await research.start("how?"))
    assert (first.status, first.maybe_paid) == ("failed", False)
    assert (second.status, second.durable) == ("completed", True)


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: store",
        "body.store: must be false",
        "Unknown parameter: 'background'.",
        "`store` is not supported here",
        "background mode is not available",
    ],
)
async def test_a_refusal_of_background_mode_in_any_words_has_it_asked_without(message: str, tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, message)]
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, await research.start("why?"))
        assert (view.status, view.durable) == ("completed", False)
    assert ["background" in asked.json for asked in upstream.of("ask")] == [True, False]


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_repeat_without_a_parameter_that_waits_for_the_rate_limit_counts_as_not_sent(
    is_cancelled: bool, tmp_path: Path
) -> None:
    upstream = slow()
    nothing_left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "50s"}
    upstream.script = [Error(400, "Unsupported parameter", param="text.verbosity", headers=nothing_left)]
    settings = replace(settings_for(tmp_path), model_profiles=MappingProxyType({"answer": Profile(verbosity="low")}))
    async with researching(upstream, tmp_path, settings=settings) as research:
        run = await research.start("why?")
        await trio.sleep(20)
        assert "rate limit" in (await research.result(run)).phase
        if is_cancelled:
            assert (await research.cancel(run)).maybe_paid is False
            assert upstream.kinds == ["ask"]
        else:
            assert (await ended(research, run)).status == "completed"


async def test_what_background_mode_was_refused_with_is_no_cause_of_what_is_lost_later(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(400, "background mode is not available"), Hang()]
    view = await asked_and_ended(upstream, tmp_path)
    assert (view.status, view.maybe_paid) == ("failed", True)
    assert "not available" not in (view.error or "")


# Money


async def spent_by(upstream: Upstream, folder: Path, use: Callable[[Research], Any]) -> Meter:
    settings = replace(settings_for(folder), limits=LimitSettings(session_cost_usd=9))
    meter = Meter(settings)
    async with researching(upstream, folder, settings=settings, meter=meter) as research:
        await use(research)
    return meter


async def test_a_run_that_was_cancelled_counts_as_what_it_had_reserved(tmp_path: Path) -> None:
    async def use(research: Research) -> None:
        run = await research.start("why?")
        await trio.sleep(5)
        assert (await research.cancel(run)).confirmed

    meter = await spent_by(slow(), tmp_path, use)
    spent, held = counted(meter)
    assert (spent.usd > 0, held.usd) == (True, 0)


async def test_who_gives_up_before_a_run_is_begun_is_not_made_to_wait_and_nothing_is_asked(tmp_path: Path) -> None:
    async def slowly(work: Callable[[], Any]) -> Any:
        await trio.sleep(2)
        return await at_once(work)

    upstream = slow()
    async with researching(upstream, tmp_path, in_thread=slowly) as research:
        for seconds in (0, 0.5):
            with trio.move_on_after(seconds) as call:
                await research.start(f"why {seconds}?")
            assert call.cancelled_caught
            assert trio.current_time() <= seconds
        await trio.sleep(100)
        assert await research.list() == []
    assert upstream.asked == []


async def test_who_asks_what_has_just_been_cancelled_gets_an_answer(tmp_path: Path) -> None:
    async def slowly(work: Callable[[], Any]) -> Any:
        await trio.sleep(0.5)
        return await at_once(work)

    upstream = slow(interval=60.0)
    async with researching(upstream, tmp_path, in_thread=slowly) as research, trio.open_nursery() as nursery:
        run = await research.start("why?")
        await trio.sleep(5)
        upstream.cancels = Error(500)
        nursery.start_soon(research.cancel, run)
        again = await research.start("why?")
        assert again != run
        upstream.stored.interval = 1.0
        assert (await ended(research, again)).status == "completed"


async def test_a_client_that_names_itself_by_the_key_leaves_it_in_no_file(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        await ended(research, await research.start("why?", client=f"client {KEY}"))
    assert in_file(tmp_path, "SELECT client FROM run") == [("client [redacted]",)]


async def test_what_is_asked_about_runs_of_others_belongs_to_no_call_s_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(tmp_path)
    settings = replace(settings, request=replace(settings.request, propagate_trace=True))
    upstream = slow(30.0)
    async with researching(upstream, tmp_path, settings=settings) as other:
        await other.start("why?")
        await trio.sleep(1)
    traces: list[object] = []
    send = upstream.send

    async def noted(request: Request, reader: Reader) -> None:
        traces.append(TRACE.get())
        await send(request, reader)

    monkeypatch.setattr(upstream, "send", noted)
    async with researching(upstream, tmp_path, settings=settings) as research, trio.open_nursery() as nursery:

        async def call() -> None:
            TRACE.set({"baggage": "user=alice"})
            await research.list()

        nursery.start_soon(call)
        await trio.sleep(100)
    assert traces
    assert not any(traces)


async def test_a_run_whose_server_is_killed_while_it_waits_for_the_rate_limit_cost_nothing(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Error(429, headers={"retry-after": "30"})]
    written = "SELECT sent IS NOT NULL, response_id IS NOT NULL FROM run"
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(6)
        assert in_file(tmp_path, written) == [(0, 0)]
        upstream.latency = 2.0
        await trio.sleep(25)
        assert in_file(tmp_path, written) == [(1, 0)]
        assert (await ended(research, run)).status == "completed"


async def test_a_phase_is_told_in_some_words_however_long_the_search_is(tmp_path: Path) -> None:
    search = {"type": "web_search_call", "action": {"type": "search", "query": "why? " * 100_000}}
    upstream = Upstream(script=[Sse([CREATED, {"type": "response.output_item.done", "item": search}], ending="hang")])
    async with researching(upstream, tmp_path) as research:
        view = await research.result(await research.start("why?"), wait_seconds=1)
    assert view.phase.startswith("searched: why?")
    assert len(view.phase) <= 200


# Rows


HOSTILE: list[tuple[str, Any]] = [
    *(("usage", each) for each in ("hello", "[" * 100_000, 5)),
    *((name, each) for name in ("created", "may_take") for each in ("abc", None, b"x")),
    *(("status", each) for each in ("weird", 5)),
    *(("response_id", each) for each in (5, b"\xff", "..", "a/b", "z" * 5000)),
    *(("ended", "zz"), ("sent", "zz")),
]


def spoilt(folder: Path, written: str, values: list[tuple[str, Any]]) -> list[str]:
    """Put in place of the only run one for each column with a value, otherwise as that was; return their ids."""
    names = ", ".join(name for _, name, *_ in in_file(folder, "PRAGMA table_info(run)") if name != "id")
    [(sound,)] = in_file(folder, "SELECT id FROM run")
    ids = [f"run_{number:016x}" for number, _ in enumerate(values)]
    for each, (column, value) in zip(ids, values, strict=True):
        in_file(folder, f"INSERT INTO run (id, {names}) SELECT ?, {names} FROM run WHERE id = ?", each, sound)
        in_file(folder, f"UPDATE run SET {column} = {written} WHERE id = ?", value, each)
    in_file(folder, "DELETE FROM run WHERE id = ?", sound)
    return ids


async def test_a_row_of_a_run_that_was_sent_and_has_no_id_may_have_been_paid_for(tmp_path: Path) -> None:
    upstream = slow(interval=60.0)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)
    in_file(tmp_path, "UPDATE run SET response_id = NULL")
    view = await taken_up(upstream, tmp_path, run)
    assert (view.running, view.maybe_paid) == (False, True)
    assert upstream.kinds == ["ask"]
    assert 60 <= trio.current_time() < 75


async def test_an_id_that_comes_when_the_run_was_given_up_brings_it_back(tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = 70.0
    async with researching(upstream, tmp_path) as one, researching(upstream, tmp_path) as two:
        run = await one.start("why?")
        await trio.sleep(1)
        upstream.latency = 0.0
        assert (await ended(two, run)).maybe_paid
        assert trio.current_time() < 70
        await trio.sleep(30)
        assert (await ended(one, run)).status == "completed"
        assert (await two.result(run)).status == "completed"
    assert len(upstream.of("ask")) == 1


async def test_a_run_at_prices_without_a_date_is_read_again(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    model = settings.model_profiles["answer"].model
    settings = replace(settings, prices={model: ModelPrice(input=1.0, output=2.0)})
    upstream = slow()
    async with researching(upstream, tmp_path, settings=settings) as research:
        run = await research.start("why?")
        view = await ended(research, run)
        assert view.usage is not None
        assert view.usage["cost_usd"] > 0
    async with researching(upstream, tmp_path, settings=settings) as research:
        assert (await research.result(run)).usage == view.usage


@pytest.mark.parametrize("running", [True, False])
async def test_rows_that_are_not_ours_are_not_there_and_in_nobodys_way(running: bool, tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("why?"))
    if running:
        in_file(tmp_path, "UPDATE run SET status = NULL, ended = NULL")
    bad = spoilt(tmp_path, "?", HOSTILE)
    async with researching(upstream, tmp_path) as research:
        good = await research.start("how?")
        assert (await ended(research, good)).status == "completed"
        assert [run["run_id"] for run in await research.list()] == [good]
        json.dumps(list(await research.list()), allow_nan=False)
        for each in bad:
            with pytest.raises(BadArgument, match="no run with that id"):
                await research.result(each)
        await trio.sleep(100)  # somebody looks for what has no owner, again and again


async def test_rows_with_text_that_is_no_utf_8_are_in_nobodys_way(tmp_path: Path) -> None:
    upstream = slow()
    async with researching(upstream, tmp_path) as research:
        await ended(research, await research.start("why?"))
    columns = ("label", "reason", "effort", "model", "usage", "status", "account", "id")
    spoilt(tmp_path, "CAST(? AS TEXT)", [(column, b"\xff\xfe") for column in columns])
    async with researching(upstream, tmp_path) as research:
        good = await research.start("how?")
        assert (await ended(research, good)).status == "completed"
        assert good in [run["run_id"] for run in await research.list()]


@pytest.mark.parametrize("run_id", ["\ud800", "run_é", "x" * 100_000])
async def test_what_cannot_be_the_id_of_a_run_is_the_id_of_none(run_id: str, tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        with pytest.raises(BadArgument, match="no run with that id"):
            await research.result(run_id)
        with pytest.raises(BadArgument, match="continue_from"):
            await research.start("why?", continue_from=run_id)


# The file


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_run_whose_file_goes_away_is_written_down_anew_and_its_answer_told(how: str, tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(2)
        _empty(tmp_path)
        if how == "replaced":
            (tmp_path / FILE).write_bytes(b"something else" * 1000)
        assert (await ended(research, run)).status == "completed"
        assert [each["status"] for each in await research.list()] == ["completed"]


@pytest.mark.parametrize("store", [True, False])
async def test_an_end_that_cannot_be_written_is_told_at_once_and_written_later(
    store: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = File()
    async with researching(slow(), tmp_path, in_thread=file, store=store) as research:
        run = await research.start("why?")
        await trio.sleep(2)
        file.locked = True
        view = await ended(research, run)
        assert view.status == "completed"
        await trio.sleep(40)
        assert caplog.text.count("cannot be written for now") == store
        file.locked = False
        assert [each["status"] for each in await research.list()] == ["completed"]
        await trio.sleep(60)
        assert await research.result(run) == view
        assert [each["status"] for each in await research.list()] == ["completed"]


@pytest.mark.parametrize("with_server", [True, False])
async def test_a_call_that_is_cancelled_cancels_its_run_also_where_the_api_is_slow(
    *, with_server: bool, tmp_path: Path
) -> None:
    upstream = slow(interval=60.0)
    calling = trio.CancelScope()

    async def call(research: Research) -> None:
        body: dict[str, Any] = {"model": "gpt-5.2", "input": "why?"}
        with calling:
            await research.answer(body, Profile(), Caller("answer", None), seconds=WAIT)

    async with trio.open_nursery() as nursery, researching(upstream, tmp_path) as research:
        nursery.start_soon(call, research)
        await trio.sleep(5)
        if with_server:
            nursery.cancel_scope.cancel()
            await trio.lowlevel.checkpoint_if_cancelled()
        upstream.latency = 3.0
        calling.cancel()
        await trio.sleep(10)
    assert upstream.kinds == ["ask", "cancel"]
    assert in_file(tmp_path, "SELECT status, confirmed FROM run") == [("cancelled", 1)]


@pytest.mark.parametrize("steps", range(12))
async def test_a_cancel_that_is_on_its_way_when_its_server_ends_is_sent_all_the_same(
    steps: int, tmp_path: Path
) -> None:
    upstream = slow(interval=60.0)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(research.cancel, run)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    if steps > 2:  # before, nobody had asked for it
        assert upstream.kinds[:2] == ["ask", "cancel"], upstream.kinds
        assert [response.cancelled is None for response in upstream.stored.responses.values()] == [False]


async def test_who_waits_for_a_run_when_research_is_closed_is_told_so(tmp_path: Path) -> None:
    upstream = slow(interval=60.0)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(3)

    async def wait() -> None:
        with pytest.raises(ResponsesMcpError, match="is closed"):
            await ended(research, run)

    async with trio.open_nursery() as nursery:
        async with researching(upstream, tmp_path) as research:
            await research.list()
            nursery.start_soon(wait)
            await trio.sleep(3)
        await trio.sleep(100)


async def test_what_is_asked_of_research_that_is_closed_is_refused_and_written_nowhere(tmp_path: Path) -> None:
    async with researching(slow(), tmp_path) as research:
        await research.list()
    for use in (research.start("why?"), research.list(), research.result("run_1")):
        with pytest.raises(ResponsesMcpError, match="is closed"):
            await use
    assert in_file(tmp_path, "SELECT count(*) FROM run") == [(0,)]


# What an API makes of what one question asks for


SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
WITHOUT_VERBOSITY = Json(
    {"error": {"message": "Unsupported value: 'low'. Supported values are: 'medium'.", "param": "text.verbosity"}},
    status=400,
)


async def test_a_refusal_of_verbosity_costs_no_run_its_schema(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [WITHOUT_VERBOSITY]
    async with researching(upstream, tmp_path) as research:
        for _ in range(2):
            run = await research.start("why?", output_schema=SCHEMA, fresh=True)
            await ended(research, run)
    first, *others = [asked.json["text"] for asked in upstream.of("ask")]
    assert first.keys() == {"format", "verbosity"}
    assert [other.keys() for other in others] == [{"format"}, {"format"}]


@pytest.mark.parametrize(
    ("given", "param", "cure"),
    [
        ({"output_schema": SCHEMA}, "text.format.schema", "Check text.format.schema, "),
        (
            {"location": {"timezone": "Mars/X"}},
            "tools[0].user_location.timezone",
            "Check tools[0].user_location.timezone, ",
        ),
    ],
)
async def test_what_one_question_asks_for_is_never_left_out_and_its_refusal_is_told_and_costs_nothing(
    given: dict[str, Any], param: str, cure: str, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [Json({"error": {"message": "'pattern' is not permitted.", "param": param}}, status=400)]
    async with researching(upstream, tmp_path) as research:
        refused = await ended(research, await research.start("why?", **given))
        assert (refused.status, refused.maybe_paid, len(upstream.asked)) == ("failed", False, 1)
        assert "'pattern' is not permitted." in str(refused.error)
        assert cure in str(refused.error)
        await ended(research, await research.start("why?", **given))
    bodies_sent = [asked.json for asked in upstream.of("ask")]
    assert bodies_sent[0] == bodies_sent[1]


@pytest.mark.parametrize("status", ["completed", "incomplete"])
@pytest.mark.parametrize("text", ["Because.", "[1]", '{"a":', '{"a": NaN}', '{"a": 1e999}'])
async def test_an_answer_that_is_no_object_of_the_schema_is_told_as_it_is(
    status: str, text: str, tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [as_stream(bodies.response([message([output_text(text)])], status=status))]
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?", output_schema=SCHEMA)
        view = await ended(research, run)
        assert (view.status, view.data) == (status, None)
        assert view.answer is not None
        assert view.answer.text.startswith(text)
        assert "not a JSON object" in str(json.loads(json.dumps(view.as_json(), allow_nan=False))["error"])


async def test_an_object_in_a_fence_of_markdown_is_the_data(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [as_stream(bodies.response([message([output_text('```json\n{"a": "b"}\n```')])]))]
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, await research.start("why?", output_schema=SCHEMA))
    assert (view.data, view.error) == ({"a": "b"}, None)


def test_a_schema_that_is_nested_too_deeply_is_refused_before_anything_is_sent() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(200):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(BadArgument, match="nested"):
        checked({"output_schema": schema})


@pytest.mark.parametrize("name", ["domains", "blocked_domains"])
def test_more_domains_than_a_search_takes_are_refused_before_anything_is_sent(name: str) -> None:
    with pytest.raises(BadArgument, match=f"{name} has more than 100 domains"):
        checked({name: [f"a{number}.jp" for number in range(101)]})


# Silence, and what the API does not keep


async def test_silence_ends_no_stream_that_cannot_be_taken_up_again(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [replace(as_stream(bodies.searched()), interval=400.0)]
    async with researching(upstream, tmp_path, store=False, timeout_ms=36_000_000) as research:
        view = await research.result(await research.start("why?"), wait_seconds=50_000)
    assert (view.status, upstream.kinds) == ("completed", ["ask"])


@pytest.mark.parametrize("said", [{"background": False}, {"background": True, "store": False}])
async def test_an_api_that_ignores_background_mode_keeps_nothing_and_that_is_told(
    said: dict[str, Any], tmp_path: Path
) -> None:
    upstream = slow()
    upstream.script = [Sse([created(**said), completed(id="resp_1", **said)], interval=5.0)]
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(1)
        assert not (await research.result(run)).durable
        view = await ended(research, run)
        assert (view.status, view.durable) == ("completed", False)
        with pytest.raises(BadArgument, match="whose answer the API keeps"):
            await research.start("and then?", continue_from=run)
    assert upstream.kinds == ["ask"]


# Answers that cannot be had


async def test_an_answer_that_is_too_long_to_be_read_is_told_at_once_and_had_with_a_higher_limit(
    tmp_path: Path,
) -> None:
    upstream, runs = slow(), list[str]()

    async def told_with(most: int) -> RunView:
        request = RequestSettings(max_reply_bytes=most)
        api = ResponsesApi(OPENAI, request, rng=lambda: 0.0, connect=upstream.connect)
        clock = lambda: 1e9 + trio.current_time()  # noqa: E731
        async with open_research(settings_for(tmp_path), api=api, in_thread=at_once, clock=clock) as research:
            runs.append(runs[0] if runs else await research.start("why?"))
            return await research.result(runs[0], wait_seconds=WAIT)

    with pytest.raises(UpstreamError, match=r"request\.max_reply_bytes"):
        await told_with(1000)
    assert len(upstream.asked) < 8
    await trio.sleep(60)  # until it has ended
    assert (await told_with(2_000_000)).status == "completed"


@pytest.mark.parametrize(("refusal", "seconds"), [(Error(404), 50.0), (Error(403), 300.0)])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_look_ups_that_are_refused_are_told_and_end_no_run(
    refusal: Error, seconds: float, *, elsewhere: bool, tmp_path: Path
) -> None:
    upstream = slow(20.0, cut_after=0)
    answer = upstream.stored.answer
    at_first = lambda *asked: refusal if trio.current_time() < seconds else answer(*asked)  # noqa: E731
    upstream.stored.answer = at_first  # type: ignore[method-assign]
    async with researching(upstream, tmp_path) as research, researching(upstream, tmp_path) as other:
        run = await research.start("why?")
        told = await (other if elsewhere else research).result(run, wait_seconds=seconds - 2)
        assert (told.running, "cannot be looked up" in told.phase) == (True, True)
        assert [each["status"] for each in await research.list()] == ["running"]
        assert (await ended(other if elsewhere else research, run)).status == "completed"
    assert len(upstream.of("ask")) == 1


async def test_a_response_that_the_api_does_not_know_for_a_minute_is_lost_for_good(tmp_path: Path) -> None:
    upstream = slow(20.0, cut_after=0)
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(5)
    upstream.stored.answer, answer = lambda *_: Error(404), upstream.stored.answer  # type: ignore[method-assign]
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, run)
        assert (view.status, view.maybe_paid, trio.current_time() > 60) == ("failed", True, True)
        assert "no longer knows" in str(view.error)
        upstream.stored.answer = answer  # type: ignore[method-assign]
        assert await research.result(run) == view


async def test_a_refusal_that_comes_after_the_cancel_ends_the_run_at_once_and_it_cost_nothing(tmp_path: Path) -> None:
    upstream = slow()
    upstream.latency = 2.0
    upstream.script = [Error(429, headers={"retry-after": "30"})]
    async with researching(upstream, tmp_path) as research:
        run = await research.start("why?")
        await trio.sleep(1)
        view = await research.cancel(run)
        assert trio.current_time() < 3
    assert (view.status, view.maybe_paid, upstream.kinds) == ("cancelled", False, ["ask"])


# What is written down


@pytest.mark.parametrize("question", ["Why Kanazawa?", 'Of "Kanazawa",\nand why?', "金沢?", "Kanazawa"])
async def test_no_word_of_the_api_is_written_as_it_may_repeat_the_question(question: str, tmp_path: Path) -> None:
    upstream = slow()
    refusals: list[Reply] = [
        Json({"detail": [{"type": "extra", "loc": ["body", "x"], "msg": f"No: {question}"}]}, status=422),
        Json({"error": {"message": f"Cannot answer {json.dumps(question)}.", "param": "input"}}, status=422),
        Json({"error": {"message": f"No model for {question}.", "code": "model_not_found"}}, status=404),
        Error(400, "No.", code=question),
        Sse([created(), {"type": "response.failed", "response": {"id": "resp_1", "error": {"message": question}}}]),
    ]
    for refusal in refusals:
        upstream.script = [refusal]
        async with researching(upstream, tmp_path) as research:
            run = await research.start(question, fresh=True)
            view = await ended(research, run)
            assert view.status == "failed"
        async with researching(upstream, tmp_path) as research:
            again = await research.result(run)
        assert view.error != again.error  # in which it is told to who asked
        assert (again.error or "").partition(".")[0].removesuffix(")") in (view.error or "")
    kept = in_file(tmp_path, "SELECT reason FROM run")
    assert [reason for (reason,) in kept if "Kanazawa" in reason or "金沢" in reason or r"\u" in reason] == []
    assert b"Kanazawa" not in written_in(tmp_path)


@pytest.mark.clock("real")
async def test_who_joined_a_run_that_another_process_sends_leaves_its_guess_in_the_ledger(tmp_path: Path) -> None:
    upstream = slow(0.5)
    upstream.script = [Error(429, retry_after="1")]
    settings = replace(settings_for(tmp_path), usage=UsageSettings(ledger=True))
    with trio.fail_after(60):
        async with (
            open_research(settings, api=upstream.api()) as one,
            open_research(settings, api=upstream.api()) as two,
        ):
            run = await one.start("why?")
            await trio.sleep(0.3)
            assert await two.start("why?") == run
            await has_id(tmp_path)
            await trio.sleep(1.5)  # in which the first process learns that it is too late to send
            (left,) = rows(tmp_path, "day", 1, None)
            assert (left.calls, left.guessed > 0) == (1, True)
            view = await two.result(run, wait_seconds=40)
    (settled,) = rows(tmp_path, "day", 1, None)
    assert view.usage is not None
    assert (settled.calls, settled.guessed) == (1, 0)
    assert settled.usd == pytest.approx(view.usage["cost_usd"])


@pytest.mark.clock("real")
@pytest.mark.parametrize(
    ("ending", "held", "booked"),
    [
        ({"usage": None}, True, 0),
        ({"status": "failed", "error": {"code": "server_error", "message": "Oh."}, "output": []}, False, 9245),
    ],
    ids=["without usage", "failed"],
)
async def test_what_a_look_finds_later_replaces_what_was_held_where_it_tells_what_was_used(
    ending: dict[str, Any], held: bool, booked: int, tmp_path: Path
) -> None:
    upstream = slow(9.0)
    limits = LimitSettings(day_cost_usd=1.0)
    settings = replace(settings_for(tmp_path), usage=UsageSettings(ledger=True), limits=limits)
    with trio.fail_after(60):
        async with open_research(settings, api=upstream.api()) as research:
            run = await research.start("why?")
            await has_id(tmp_path)
        (known,) = upstream.stored.responses
        found = Json({**bodies.searched(), "id": known, **ending})
        upstream.stored.answer = lambda method, target: found  # type: ignore[method-assign]
        async with open_research(settings, api=upstream.api()) as research:
            assert ((await research.result(run)).answer is not None) == ("status" not in ending)
    (row,) = rows(tmp_path, "tool", 1, None)
    assert (row.calls, row.guessed > 0) == (1, held)
    assert row.input_tokens + row.output_tokens == booked


@pytest.mark.clock("real")
async def test_a_run_whose_server_was_killed_is_in_the_ledger_of_who_finishes_it(tmp_path: Path) -> None:
    upstream = slow(0.05)
    settings = replace(settings_for(tmp_path), usage=UsageSettings(ledger=True))
    with trio.fail_after(60):
        async with open_research(settings_for(tmp_path), api=upstream.api()) as research:  # one that writes no ledger
            run = await research.start("why?", client="編集\u200b者\n" * 100)
            await has_id(tmp_path)
        async with open_research(settings, api=upstream.api()) as research:
            view = await research.result(run, wait_seconds=40)
    (caller,) = rows(tmp_path, "client", 1, None)
    assert caller.name == ("編集者 " * 34)[:100].strip()
    (row,) = rows(tmp_path, "tool", 1, None)
    assert view.usage is not None
    assert (row.name, row.calls, row.input_tokens, row.guessed) == ("research", 1, view.usage["input_tokens"], 0)


async def test_an_api_that_says_only_in_the_end_that_it_keeps_nothing_is_believed(tmp_path: Path) -> None:
    upstream = slow()
    upstream.script = [Sse([created(background=True), completed(id="resp_1", background=False)])]
    async with researching(upstream, tmp_path) as research:
        view = await ended(research, await research.start("why?"))
        assert (view.status, view.durable) == ("completed", False)
    async with researching(upstream, tmp_path) as research:
        assert "does not keep" in str((await research.result(view.run_id)).error)
    assert upstream.kinds == ["ask"]
