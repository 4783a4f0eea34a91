"""Calls within limits: what the result tells, what is refused before it is sent, and that a cancel leaves nothing held."""

import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from responses_mcp.asking import Asker
from responses_mcp.errors import ConnectionFailed, LimitReached, ServiceFailed, UpstreamError
from responses_mcp.settings.model import (
    LimitSettings,
    OpenAISettings,
    Profile,
    RequestSettings,
    ResearchSettings,
    ServerSettings,
    Settings,
    UsageSettings,
)
from responses_mcp.testing import Error, FakeApi, Hang, as_stream, bodies, open_fake_api
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.calls import USAGE
from responses_mcp.under_trio import opened
from responses_mcp.usage.bill import MAYBE_PAID, Call
from responses_mcp.usage.ledger import FILE, Row
from responses_mcp.usage.limits import Amount
from responses_mcp.usage.meter import Caller, Meter
from tests.processes import WAIT, environment, posix, python
from tests.responses_api.stub import KEY, Play, Reply, StubConnections, ok, refused, stub_api
from tests.usage.test_ledger import counted, rows

CALLER = Caller("answer")
GUESS = 0.2775  # of a question to gpt-5.2 with the effort medium, in US dollars
COST = (8512 * 1.75 + 733 * 14) / 1e6  # of a reply of the fake without a search


def asking(settings: Settings, *script: Play) -> tuple[Asker, Meter, StubConnections]:
    api, stub = stub_api(*script, max_retries=1)
    meter = Meter(settings)
    return Asker(settings, api=api, meter=meter), meter, stub


@asynccontextmanager
async def served(**sections: Any) -> AsyncGenerator[tuple[McpClient, FakeApi]]:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake:
            settings = Settings(
                openai=OpenAISettings(base_url=fake.base_url, api_key=KEY),
                request=RequestSettings(max_retries=1),
                **sections,
            )
            async with connected_client(settings) as client:
                yield client, fake


async def call(client: McpClient, tool: str = "answer", envelope: dict[str, Any] | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"name": tool, "arguments": {"query": "Why?"}}
    if envelope:
        params["_meta"] = envelope
    return await client.response(await client.request("tools/call", params))


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "modern-client", "version": "1"},
}


@pytest.mark.rule("spec 2.3")
@pytest.mark.parametrize("envelope", [{}, MODERN], ids=["legacy", "modern"])
async def test_a_result_tells_what_the_call_used_beside_what_the_contract_has(envelope: dict[str, Any]) -> None:
    async with served(server=ServerSettings(toolsets=("answer", "search"))) as (client, fake):
        fake.script(as_stream(bodies.unsearched()))
        result = (await call(client, envelope=envelope))["result"]
        assert result["_meta"][USAGE] == {
            "input_tokens": 8512,
            "cached_tokens": 0,
            "output_tokens": 733,
            "reasoning_tokens": 512,
            "total_tokens": 9245,
            "web_searches": 0,
            "service_tier": "default",
            "attempts": 1,
            "cost_usd": round(COST, 6),
            "prices_as_of": result["_meta"][USAGE]["prices_as_of"],
        }
        assert list(json.loads(result["content"][0]["text"])) == ["answer", "used_search", "citations", "model"]
        assert result["structuredContent"] == json.loads(result["content"][0]["text"])
        fake.script(as_stream(bodies.searched()))
        found = (await call(client, "chatgpt_o3_search", envelope))["result"]
        assert found["_meta"][USAGE]["web_searches"] >= 1


async def test_a_failure_that_cost_something_tells_it_where_a_result_has_the_place() -> None:
    async with served() as (client, fake):
        fake.script(Error(503, retry_after_ms="1"), as_stream(bodies.response([], usage=bodies.usage())))
        result = (await call(client, envelope=MODERN))["result"]
        assert result["isError"] is True
        assert (result["_meta"][USAGE]["attempts"], result["_meta"][USAGE]["total_tokens"]) == (2, 9245)
        fake.script(Error(503, retry_after_ms="1"), as_stream(bodies.response([], usage=bodies.usage())))
        assert "_meta" not in (await call(client))["error"]
        bad = await client.request("tools/call", {"name": "answer", "arguments": {}, "_meta": MODERN})
        assert USAGE not in (await client.response(bad))["result"]["_meta"]


async def test_over_a_limit_no_request_is_made_and_the_error_says_which() -> None:
    async with served(limits=LimitSettings(session_calls=1)) as (client, fake):
        fake.script(as_stream(bodies.unsearched()))
        assert "result" in await call(client)
        refused_call = await call(client, "answer_quick")
        assert refused_call["error"]["code"] == -32001
        assert "limits.session_calls" in refused_call["error"]["data"]["message"]
        assert len(fake.requests) == 1


async def test_calls_at_once_do_not_pass_a_limit_together() -> None:
    async with served(limits=LimitSettings(session_cost_usd=GUESS * 4.5)) as (client, fake):
        fake.script(*[as_stream(bodies.unsearched())] * 20)
        ids = [
            await client.request("tools/call", {"name": "answer", "arguments": {"query": f"{number}?"}})
            for number in range(20)
        ]
        outcomes = [await client.response(number) for number in ids]
        refusals = [outcome["error"]["data"]["message"] for outcome in outcomes if "error" in outcome]
        assert 4 <= len(fake.requests) == 20 - len(refusals) < 20
        assert "limits.session_cost_usd is $1.25; " in refusals[0]
        assert "$0.28 expected of this call" in refusals[0]


async def test_after_one_cheap_call_dear_ones_at_once_pass_a_limit_at_most_by_what_they_cost_above_their_guesses() -> (
    None
):
    dear = {**bodies.unsearched(), "usage": bodies.usage(input_tokens=200_000)}
    cost = (200_000 * 1.75 + 733 * 14) / 1e6
    async with served(limits=LimitSettings(session_cost_usd=0.6)) as (client, fake):
        fake.script(as_stream(bodies.unsearched()), *[as_stream(dear)] * 50)
        await call(client)
        params = {"name": "answer", "arguments": {"query": "Why?"}}
        ids = [await client.request("tools/call", params) for _ in range(50)]
        results = [outcome["result"] for number in ids if "result" in (outcome := await client.response(number))]
        spent = COST + sum(result["_meta"][USAGE]["cost_usd"] for result in results)
        assert 1 <= len(results) <= 3
        assert spent <= 0.6 + max(cost, len(results) * (cost - GUESS))


async def test_a_model_without_a_price_is_not_asked_under_a_limit_of_cost() -> None:
    profiles = {"answer": Profile(model="llama-9")}
    answers, _, stub = asking(Settings(model_profiles=profiles, limits=LimitSettings(session_cost_usd=1)))
    with pytest.raises(LimitReached, match=r"price of llama-9 is not known\. Add it under prices\.llama-9"):
        await answers.answer("Why?")
    assert stub.sent == []
    tiered = {"answer": Profile(model="gpt-5.2", request={"service_tier": "ultrafast"})}
    answers, _, _ = asking(Settings(model_profiles=tiered, limits=LimitSettings(session_cost_usd=1)))
    with pytest.raises(LimitReached, match=r"price of gpt-5\.2 with service_tier ultrafast is not known"):
        await answers.answer("Why?")
    answers, _, _ = asking(Settings(model_profiles=profiles, limits=LimitSettings(session_tokens=10**6)))
    answer = await answers.answer("Why?")
    assert answer.usage is not None
    assert answer.usage.cost_usd is None


@pytest.mark.clock("virtual")
@pytest.mark.parametrize(("play", "spent", "calls"), [
    (refused(400), 0.0, 1), (refused(500), 0.0, 1), (ConnectionFailed("Nobody there."), 0.0, 1),
    (ConnectionFailed("Cut.", maybe_paid=True), 0.2775, 1),
    (ok({"status": "failed", "error": {"code": "x"}, "usage": bodies.usage()}), COST, 1),
    (ok({"id": "resp_1", "status": "failed", "error": {"code": "x"}, "usage": None}), 0.0, 1),
    (ok({**bodies.unsearched(), "usage": None}), 0.2775, 1),
], ids=["refused", "failed", "not sent", "cut", "failed with usage", "failed without", "uncounted"])  # fmt: skip
async def test_a_call_is_settled_with_what_is_known_of_it(play: Play, spent: float, calls: int) -> None:
    answers, meter, _ = asking(Settings(limits=LimitSettings(session_cost_usd=9)), play)
    with suppress(UpstreamError):
        await answers.answer("Why?")
    counts, held = counted(meter)
    assert counts.usd == pytest.approx(spent)
    assert (counts.calls, held) == (calls, Amount())


@pytest.mark.clock("virtual")
async def test_an_error_knows_what_was_used() -> None:
    answers, _, _ = asking(Settings(), refused(503))
    with pytest.raises(ServiceFailed) as caught:
        await answers.answer("Why?")
    assert caught.value.usage == {"attempts": 2}


async def ask_and_cancel(answers: Asker, moment: int) -> None:
    """Ask, and cancel that after so many steps."""

    async def cancel_later(scope: trio.CancelScope) -> None:
        for _ in range(moment):
            await trio.lowlevel.cancel_shielded_checkpoint()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(cancel_later, nursery.cancel_scope)
        await answers.answer("Why?")
        nursery.cancel_scope.cancel()


async def test_a_cancel_at_any_moment_leaves_nothing_reserved_and_no_call_that_was_not_sent() -> None:
    limits = LimitSettings(session_cost_usd=9, session_calls=1000)
    moments = 0
    for moment in range(40):
        answers, meter, stub = asking(Settings(limits=limits), ok())
        await ask_and_cancel(answers, moment)
        spent, held = counted(meter)
        assert (spent.calls, held) == (len(stub.sent), Amount())
        moments += len(stub.sent)
    assert 10 < moments < 40, "it was cancelled before and after it was sent"


def today(folder: Path, by: str = "tool") -> list[Row]:
    return rows(folder, by, 1, None)


def with_ledger(folder: Path, **limits: float) -> Settings:
    return Settings(
        usage=UsageSettings(ledger=True),
        research=ResearchSettings(state_dir=str(folder)),
        limits=LimitSettings(**limits),  # type: ignore[arg-type]
    )


async def test_the_ledger_has_the_tool_and_the_client_of_each_call(tmp_path: Path) -> None:
    settings = with_ledger(tmp_path)
    async with served(usage=settings.usage, research=settings.research) as (client, fake):
        fake.script(*[as_stream(bodies.unsearched())] * 3)
        await call(client)
        await call(client, "answer_quick", MODERN)
    names = {by: [row.name for row in today(tmp_path, by)] for by in ("tool", "client")}
    assert names["tool"] == ["answer", "answer_quick"]
    assert "modern-client" in names["client"]
    assert b"Why?" not in (tmp_path / FILE).read_bytes()


@pytest.mark.parametrize("method", ["answer", "search"])
async def test_the_ledger_has_a_call_whose_host_is_cancelled_and_leaves_at_once(method: str, tmp_path: Path) -> None:
    sent = trio.Event()

    async def hanging() -> Reply:
        sent.set()
        await trio.sleep_forever()

    asker = Asker(with_ledger(tmp_path), api=stub_api(hanging)[0])
    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:

            async def host() -> None:
                async with opened(asker):
                    await getattr(asker, method)("Why?")

            nursery.start_soon(host)
            await sent.wait()
            nursery.cancel_scope.cancel(reason="the host leaves")
    assert [row.calls for row in today(tmp_path)] == [1]


async def test_the_row_is_on_disk_before_the_request_and_has_the_cost_with_the_answer(tmp_path: Path) -> None:
    settings, seen = with_ledger(tmp_path), list[tuple[float, float]]()

    async def looked() -> Reply:
        [row] = today(tmp_path)
        seen.append((row.usd, row.guessed))
        return ok()

    answers, _, _ = asking(settings, looked)
    await answers.answer("Why?")
    [row] = today(tmp_path)
    assert seen == [pytest.approx((GUESS, GUESS))]
    assert (row.usd, row.guessed, row.unsettled) == pytest.approx((COST, 0, 0))


async def test_what_another_server_holds_is_named_and_not_waited_for(tmp_path: Path) -> None:
    answers, _, stub = asking(with_ledger(tmp_path, day_cost_usd=0.5))
    other = Meter(with_ledger(tmp_path, day_cost_usd=0.5))
    async with other.call(CALLER, Profile()):
        with pytest.raises(LimitReached, match=r"\$0\.00 spent today, \$0\.28 held by running calls, \$0\.28 expected"):
            await answers.answer("Why?")
    await answers.answer("Why?")
    assert len(stub.sent) == 1
    assert [row.calls for row in today(tmp_path)] == [1]


async def test_with_a_broken_ledger_the_limit_of_the_day_is_kept_for_this_server(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    answers, _, stub = asking(with_ledger(tmp_path, day_cost_usd=COST * 1.5))
    await answers.answer("Why?")
    await answers.answer("Why?")
    with pytest.raises(LimitReached, match=r"limits\.day_cost_usd"):
        await answers.answer("Why?")
    assert len(stub.sent) == 2


async def test_a_run_is_settled_once_by_whichever_server_sees_its_end(tmp_path: Path) -> None:
    one, other = (Meter(with_ledger(tmp_path, session_cost_usd=9)) for _ in range(2))
    run = Call("run_1", time.time(), "research", "gpt-5.2")
    bill = await one.admit(run, Profile())
    bill.sending()
    assert counted(one)[1].usd == pytest.approx(2 * GUESS), "a call in background mode counts as two"
    await one.settle(run, bill.usage)
    assert counted(one)[0].usd == pytest.approx(2 * GUESS)
    used = other.usage_of("gpt-5.2", bodies.unsearched())
    for meter in (other, one, other):
        await meter.settle(run, used, response_id="resp_1")
        await meter.settle(run, MAYBE_PAID)
    spent, held = counted(one)
    assert spent.usd == pytest.approx(COST)
    assert held == Amount()
    assert counted(other)[0] == Amount(), "it is not of that session"
    [row] = today(tmp_path)
    assert (row.calls, row.usd, row.guessed) == pytest.approx((1, COST, 0))


async def test_without_limits_and_ledger_no_database_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "responses_mcp.usage.ledger", None)  # an import of it fails
    answers, _, _ = asking(Settings())
    await answers.answer("Why?")


KILLED = """
import os, signal, sys, trio
from pathlib import Path
from responses_mcp.settings.model import OpenAISettings, ResearchSettings, Settings, UsageSettings
from responses_mcp.asking import open_answers
from responses_mcp.testing import Hang, as_stream, bodies, open_fake_api

async def main():
    script = as_stream(bodies.unsearched()) if sys.argv[2] == "answered" else Hang()
    async with open_fake_api(script) as fake:
        settings = Settings(
            openai=OpenAISettings(base_url=fake.base_url, api_key="sk-test"),
            usage=UsageSettings(ledger=True), research=ResearchSettings(state_dir=sys.argv[1]),
        )
        async with trio.open_nursery() as nursery, open_answers(settings) as answers:
            if sys.argv[2] == "answered":
                await answers.answer("Why?")
            else:
                nursery.start_soon(answers.answer, "Why?")
                await fake.wait_requests(1)
            os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


@posix
@pytest.mark.parametrize(("moment", "cost", "guessed"), [("answered", COST, 0), ("asked", GUESS, GUESS)])
def test_a_server_that_is_killed_leaves_what_its_call_cost_or_its_guess(
    tmp_path: Path, moment: str, cost: float, guessed: float
) -> None:
    command = [*python(KILLED), str(tmp_path), moment]
    done = subprocess.run(command, env=environment(tmp_path), timeout=WAIT, check=False)
    assert done.returncode < 0
    [row] = today(tmp_path)
    assert (row.calls, row.usd, row.guessed) == pytest.approx((1, cost, guessed))


async def test_a_cancel_while_the_day_is_asked_leaves_no_row(tmp_path: Path) -> None:
    settings = with_ledger(tmp_path, day_cost_usd=1.0)
    for moment in range(12):
        answers, meter, stub = asking(settings)
        await ask_and_cancel(answers, moment)
        assert counted(meter)[1] == Amount()
        assert sum(row.calls for row in today(tmp_path)) == len(stub.sent)
        await answers.aclose()
        (tmp_path / FILE).unlink(missing_ok=True)


async def test_a_call_that_hangs_and_is_cancelled_counts_as_what_it_held(tmp_path: Path) -> None:
    settings = with_ledger(tmp_path)
    async with served(usage=settings.usage, research=settings.research) as (client, fake):
        fake.script(Hang())
        number = await client.request("tools/call", {"name": "answer", "arguments": {"query": "Why?"}})
        await fake.wait_requests(1)
        await client.notify("notifications/cancelled", {"requestId": number})
        await wait_all_tasks_blocked()
    [row] = today(tmp_path)
    assert (row.calls, row.usd, row.guessed) == pytest.approx((1, GUESS, GUESS))
