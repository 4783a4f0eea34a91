"""The programs of the pages: each does what its page says."""

import asyncio
import re
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import assert_type

import pytest
import trio

from responses_mcp.asking import Asker, Watcher, open_answers
from responses_mcp.errors import KeyUnusable
from responses_mcp.settings import Settings
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import Error, FakeApi, Hang, Json, RecordedRequest, Reply, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.embedding.hosts import settings_for
from tests.processes import ROOT, run
from tests.responses_api.http.network import jump_when_asked

NAMES = {
    "embedding": (
        *("ask", "first_answer", "phases", "web_search", "own_manuals", "own_embedder", "two_servers", "own_tool"),
        *("test_headline", "asyncio_thread", "guest_mode"),
    ),
    "research": ("research",),
    "search": ("search",),
}  # of the programs of each page, in their order; no other page has one
PROGRAMS: dict[str, str] = {}
for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
    texts = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    PROGRAMS |= dict(zip(NAMES.get(page.stem, ()), texts, strict=True))
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation


def example(name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(PROGRAMS[name], name, "exec"), vars(module))
    return module


def answer_to(query: str) -> str:
    return f"The answer to: {query}"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Give the programs an environment with a key and nothing else of ours."""
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)
    for name, value in {
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "test-key-0123456789",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("no_proxy", raising=False)
    return monkeypatch


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    file = tmp_path / "test_headline.py"
    file.write_text(PROGRAMS["test_headline"], encoding="utf-8")
    ran = run(tmp_path, "-q", "-p", "no:cacheprovider", str(file), command=[sys.executable, "-m", "pytest"])
    assert "4 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("ask", ["Which Python release is current?", "https://example.com/"]),
        ("phases", ["... asking gpt-5.2\n... thinking\n... searching\n", "... writing", "What is new in Trio?"]),
        ("two_servers", ["in flight: 1", "Which Python", "And which of Trio?", "both servers have ended"]),
        ("own_tool", ["'answer', 'answer_detailed', 'answer_quick', 'timer'", "{'waited': "]),
        ("web_search", ["structured concurrency https://example.com/"]),
        ("search", ["Trio cancel scopes https://example.com/"]),
        ("research", ["running ", "completed ", "'answer': 'The answer to: What changed in the tax law of 2026?"]),
    ],
)
async def test_a_program_runs_against_the_fake_api(
    name: str, printed: list[str], environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_fake_api() as api:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        with trio.fail_after(WAIT):
            await example(name).main()
    heard = capsys.readouterr().out
    assert [text for text in printed if text not in heard] == []


@pytest.mark.parametrize("name", ["ask", "phases", "first_answer", "web_search", "two_servers"])
async def test_a_program_without_a_key_ends_with_the_cause_and_not_with_a_group_of_errors(
    name: str, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    environment.delenv("OPENAI_API_KEY")
    told = ""
    with trio.fail_after(WAIT):
        try:
            await example(name).main()
        except KeyUnusable as error:
            told = str(error)
    assert "There is no API key: the environment variable OPENAI_API_KEY is not set." in capsys.readouterr().out + told


async def test_the_second_of_two_servers_has_instructions_of_its_own(environment: pytest.MonkeyPatch) -> None:
    async with open_fake_api() as api:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        with trio.fail_after(WAIT):
            await example("two_servers").main()
        usual, brief = (request.json["instructions"] for request in api.requests)
    assert "one sentence" not in usual
    assert brief == "Answer in one sentence."


async def test_the_first_of_three_answers_wins_and_the_rest_is_cancelled_upstream(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def only_the_second(request: RecordedRequest) -> Reply:
        if request.json["model"] != "second":
            return Hang()
        await api.wait_requests(3)
        return Json(bodies.searched())

    async with open_fake_api(only_the_second) as api:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        for variable, model in {"MODEL_QUICK": "first", "MODEL_ANSWER": "second", "MODEL_DETAILED": "third"}.items():
            environment.setenv(variable, model)
        with trio.fail_after(WAIT):
            await example("first_answer").main()
            await api.wait_hang_ups(2)
        hung_up = {request.json["model"] for request in api.requests if request.hung_up is not None}
        answered = {request.json["model"] for request in api.requests if request.answered is not None}
    assert (hung_up, answered) == ({"first", "third"}, {"second"})
    assert capsys.readouterr().out.startswith("second: ")


async def test_each_question_has_a_time_limit_and_a_failure_leaves_the_others_alone(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mock_clock: trio.testing.MockClock
) -> None:
    mock_clock.rate = 1
    environment.setenv("OPENAI_MAX_RETRIES", "0")
    async with open_fake_api(Error(400), Hang(), Hang()) as api, trio.open_nursery() as nursery:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        nursery.start_soon(jump_when_asked, mock_clock, api, 3)
        with trio.fail_after(60 + WAIT):
            await example("first_answer").main(patience=60)
            await api.wait_hang_ups(2)
    said = capsys.readouterr().out
    assert "failed: " in said
    assert said.endswith("Nobody answered.\n")


@pytest.mark.clock("virtual")
async def test_the_tool_of_the_page_says_how_far_it_is_and_ends_in_time() -> None:
    timer = example("own_tool").Timer()
    async with connected_client(Settings(), toolsets=[timer]) as client:
        call = {"name": "timer", "arguments": {"seconds": 3600}, "_meta": {"progressToken": "p"}}
        asked = await client.request("tools/call", call, id="long")
        await trio.sleep(60)
        client.server.stop(grace=5)
        result = (await client.response(asked))["result"]
        told = [message["params"]["message"] for message in client.heard if message.get("method")]
        assert result["structuredContent"] == {"waited": 64.9}
        assert told[0] == "call long: 3600.0 s left"
        assert told[-1] < "call long: 5"  # the end came nearer


async def test_the_tool_of_the_page_refuses_what_it_cannot_use() -> None:
    async with connected_client(Settings(), toolsets=[example("own_tool").Timer()]) as client:
        result = (await client.call("timer", {"seconds": "soon"}))["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("seconds: expected a number")


def test_the_program_about_manuals_finds_reads_and_is_told_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_manuals").main()
    said = capsys.readouterr().out
    assert "{'ref': {'path': 'care.md', 'start_line': 3}" in said
    assert "A pump may run dry for ten seconds." in said
    assert "not_found Manual 'pumps' has no 'missing.md'" in said


def test_the_program_about_vectors_gives_them_and_compares_by_them(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_embedder").main()
    assert capsys.readouterr().out == "sections with vectors: 1\ncare.md 1\n"


async def run_under_asyncio(name: str, environment: pytest.MonkeyPatch) -> None:
    """Run a program of asyncio against a fake API."""

    def run_asyncio() -> None:
        asyncio.run(asyncio.wait_for(example(name).main(), WAIT))

    async with open_fake_api() as api:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        with trio.fail_after(WAIT):
            await trio.to_thread.run_sync(run_asyncio, abandon_on_cancel=True)


async def test_a_server_runs_inside_asyncio_as_a_guest(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_under_asyncio("guest_mode", environment)
    said = capsys.readouterr().out
    assert '"serverInfo"' in said
    assert answer_to("Why?") in said


async def test_an_asyncio_program_asks_in_another_thread(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await run_under_asyncio("asyncio_thread", environment)
    assert answer_to("Which Python release is current?") in capsys.readouterr().out


@pytest.mark.parametrize("name", ["asyncio_thread", "guest_mode"])
async def test_a_cancel_in_asyncio_such_as_ctrl_c_ends_what_runs_under_trio(
    name: str, environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    async def main() -> None:
        task = asyncio.create_task(example(name).main())
        running.append((asyncio.get_running_loop(), task))
        with suppress(asyncio.CancelledError):
            await task

    environment.setenv("MCP_DRAIN_TIMEOUT_MS", "0")
    async with open_fake_api(Hang()) as api, trio.open_nursery() as nursery:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        with trio.fail_after(WAIT):
            nursery.start_soon(partial(trio.to_thread.run_sync, lambda: asyncio.run(main()), abandon_on_cancel=True))
            await api.wait_requests(1)
            loop, task = running[0]
            loop.call_soon_threadsafe(task.cancel)
            await api.requests[0].wait_hung_up()


async def test_what_the_examples_say_of_a_callback_that_raises_is_so() -> None:
    class Unwatched(Exception):
        pass

    def stop_listening(phase: str) -> None:
        raise Unwatched(phase)

    async def ask(api: FakeApi) -> None:
        async with open_answers(settings_for(api)) as answers:
            result = await assert_type(answers, Asker).answer("Why?", watcher=Watcher(stop_listening))
            assert_type(result.text, str)

    async with open_fake_api() as api:
        with pytest.raises(Unwatched):
            await ask(api)
