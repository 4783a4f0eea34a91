"""The programs of the pages: each does what its page says."""

import asyncio
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import assert_type

import pytest
import trio

from responses_mcp.asking import Asker, Watcher, open_answers
from responses_mcp.errors import KeyUnusable
from responses_mcp.settings import Settings
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import FakeApi, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.embedding.hosts import settings_for
from tests.processes import ROOT, run

NAMES = {
    "embedding": (*("ask", "own_manuals", "served", "own_tool", "test_headline", "asyncio_thread"),),
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
    assert "2 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("ask", ["Which Python release is current?", "https://example.com/"]),
        ("served", ["in flight: 1", "Which Python", "the server has ended"]),
        ("own_tool", ["'answer', 'answer_detailed', 'answer_quick', 'timer'", "{'waited': "]),
        ("search", ["Trio cancel scopes https://example.com/"]),
        ("research", ["asking", "'answer': 'The answer to: What changed in the tax law of 2026?"]),
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


@pytest.mark.parametrize("name", ["ask", "served"])
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


def test_the_program_about_manuals_finds_reads_and_is_told_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    example("own_manuals").main()
    said = capsys.readouterr().out
    assert "{'ref': {'path': 'care.md', 'start_line': 3}" in said
    assert "A pump may run dry for ten seconds." in said
    assert "not_found Manual 'pumps' has no 'missing.md'" in said


async def test_an_asyncio_program_asks_in_another_thread(
    environment: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_asyncio() -> None:
        asyncio.run(asyncio.wait_for(example("asyncio_thread").main(), WAIT))

    async with open_fake_api() as api:
        environment.setenv("OPENAI_BASE_URL", api.base_url)
        with trio.fail_after(WAIT):
            await trio.to_thread.run_sync(run_asyncio, abandon_on_cancel=True)
    assert answer_to("Which Python release is current?") in capsys.readouterr().out


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
