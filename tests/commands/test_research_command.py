"""`openai-responses-mcp research` as a person or a script uses it: the answer, the list, and what Ctrl-C does."""

import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

import pytest
import trio
from trio.testing import MockClock

from responses_mcp import cli
from responses_mcp.commands import research
from responses_mcp.research.runs import Research, open_research
from responses_mcp.settings import load_settings
from responses_mcp.settings.model import Settings
from responses_mcp.testing import FakeApi, Faults, Hang, as_stream, bodies
from tests.commands.online import KEY, WAIT, Command, api, command, output
from tests.processes import COMMAND, environment
from tests.research.upstream import Upstream, researching, slow

__all__ = ["api", "command"]

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
LISTING = 'run "openai-responses-mcp research list" to see those of the last 7 days.'
RUN = re.compile(r"run_[0-9a-f]{16}")


async def test_the_answer_is_on_stdout_and_the_run_in_the_list(api: FakeApi, command: Command) -> None:
    text = output(await command("research", "Why", "is", "the", "sky", "blue?"))
    assert text.startswith("The answer to: Why is the sky blue?")
    assert "\nSources:\n- https://example.com/" in text
    listed = output(await command("research", "list"))
    assert re.fullmatch(r"run_[0-9a-f]{16}  completed     0 min ago     \$0\.04\n", listed)
    [found] = json.loads(output(await command("research", "list", "--json")))["runs"]
    assert json.loads(output(await command("research", "show", found["run_id"], "--json")))["status"] == "completed"
    assert output(await command("research", "show", found["run_id"])) == text
    assert output(await command("research", "cancel", found["run_id"])) == "The run had already ended: completed.\n"
    assert [request.method for request in api.requests] == ["POST", "GET", "GET", "GET"]
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_what_is_asked_for_goes_along(api: FakeApi, command: Command, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(
        '{"type": "object", "properties": {"why": {"type": "string"}}, "required": ["why"]}', encoding="utf-8"
    )
    first = json.loads(output(await command("research", "Why?", "--json")))
    done = await command(
        *("research", "And then?", "--effort", "deep", "--domains", "a.example,b.example"),
        *("--schema", str(schema), "--continue", first["run_id"], "--fresh"),
    )
    assert json.loads(output(done)) == {"why": "And then?"}
    body = api.requests[1].json
    assert body["reasoning"] == {"effort": "high"}
    assert body["tools"][0]["filters"] == {"allowed_domains": ["a.example", "b.example"]}
    assert body["previous_response_id"] == next(iter(api.stored.responses))


async def test_stores_that_are_named_are_searched_too(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_STORES", "docs=vs_1,hr=vs_2")
    code, _, err = await command("research", "Why?", "--stores", "docs,hr")
    assert (code, err) == (0, ""), err
    [searched] = [tool for tool in api.requests[0].json["tools"] if tool["type"] == "file_search"]
    assert searched["vector_store_ids"] == ["vs_1", "vs_2"]
    code, _, err = await command("research", "Why?", "--stores", "nope")
    assert (code, "it may have docs, hr" in err) == (2, True), err


async def test_a_run_that_fails_is_said_on_stderr_and_ends_with_1(api: FakeApi, command: Command) -> None:
    api.stored.faults = Faults(id_never_sent=True)
    code, out, err = await command("research", "Why?")
    assert (code, out) == (1, "")
    assert "may have been paid for" in err
    code, out, err = await command("research", "Why?", "--json")
    assert (code, json.loads(out)["maybe_paid"], err) == (1, True, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["research"], "nothing to ask"),
        (["research", "Why?", "--effort", "much"], "invalid choice"),
        (["research", "Why?", "--schema", "absent.json"], "cannot be read"),
        (["research", "Why?", "--continue", "run_0"], "continue_from"),
        (["research", "show", "run_0"], f"There is no run with that id; {LISTING}\n"),
        (["research", "cancel", "nope"], f"There is no run with that id; {LISTING}\n"),
        (["research", "show"], "RUN"),
    ],
)
async def test_what_cannot_be_done_ends_with_2_and_nothing_is_asked(
    api: FakeApi, command: Command, arguments: list[str], said: str
) -> None:
    code, out, err = await command(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    code, out, err = await command("research", "list")
    assert (code, out, "no runs" in err, api.requests) == (0, "", True, [])


async def test_a_schema_that_is_none_is_refused(api: FakeApi, command: Command, tmp_path: Path) -> None:
    for data in (b"{", b"[]", b"[" * 100_000, b"\xff", b" " * 70_000):
        (tmp_path / "schema.json").write_bytes(data)
        code, _, err = await command("research", "Why?", "--schema", str(tmp_path / "schema.json"))
        assert (code, "schema.json" in err, api.requests) == (2, True, [])


@pytest.mark.parametrize("words", [["cancel me"], ["--json", "list all of them"]])
async def test_a_question_that_begins_as_a_command_does_is_asked(
    api: FakeApi, command: Command, words: list[str]
) -> None:
    code, out, err = await command("research", *words)
    assert (code, err) == (0, ""), err
    assert "The answer to: " in out


async def test_a_list_tells_how_runs_have_ended_that_nobody_followed(api: FakeApi, command: Command) -> None:
    api.stored.interval = 30.0
    settings = load_settings(os.environ, toolsets="answer,research").settings
    async with open_research(settings) as research:
        run = await research.start("Why?")
        while not api.stored.responses:  # noqa: ASYNC110
            await trio.sleep(0.01)
    for response in api.stored.responses.values():
        response.interval = 0.0
    code, out, err = await command("research", "list", "--json")
    assert (code, err) == (0, "")
    assert [(each["run_id"], each["status"]) for each in json.loads(out)["runs"]] == [(run, "completed")]


# Ctrl-C


@POSIX
async def test_an_interrupt_leaves_the_run_and_prints_its_id_with_which_its_answer_is_had(
    api: FakeApi, command: Command, tmp_path: Path
) -> None:
    api.stored.interval = 30.0
    env = {**environment(tmp_path, api.base_url, OPENAI_API_KEY=KEY), "NO_PROXY": "127.0.0.1"}
    with trio.fail_after(WAIT):
        process = await trio.lowlevel.open_process(
            [*COMMAND, "research", "Why?"], stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, env=env
        )
        await api.wait_requests(1)
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        said = b"".join([data async for data in process.stdout]).decode()
        assert await process.wait() == 130
        (run_id,) = set(RUN.findall(said))
        (response,) = api.stored.responses.values()
        assert (response.cancels, response.cancelled) == (0, None)
        response.interval = 0.0
        assert output(await command("research", "show", run_id)).startswith("The answer to: Why?")
        assert [request.method for request in api.requests].count("POST") == 1


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str
    seconds: float  # in the command's time, until all was left that it had opened


@dataclass
class Keyboard:
    """Runs the command in virtual time, with an API without sockets, and presses Ctrl-C in it."""

    upstream: Upstream
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str, at: Sequence[float] = (), leaving: str = "") -> Done:
        """Press Ctrl-C at these seconds, or as research is left, `within` its block or `behind` it."""
        ends: list[float] = []

        async def press() -> None:
            for moment in at:
                await trio.sleep_until(moment)
                signal.raise_signal(signal.SIGINT)

        @asynccontextmanager
        async def opened(settings: Settings) -> AsyncGenerator[Research]:
            try:
                async with researching(self.upstream, self.folder, settings=settings) as found:
                    trio.lowlevel.spawn_system_task(press)
                    yield found
                    if leaving == "within":
                        signal.raise_signal(signal.SIGINT)
            finally:
                ends.append(trio.current_time())
            if leaving == "behind":
                signal.raise_signal(signal.SIGINT)

        with self.monkeypatch.context() as patched:
            patched.setattr(research, "open_research", opened)
            patched.setattr(trio, "run", partial(trio.run, clock=MockClock(autojump_threshold=0)))
            code = cli.run(["research", *arguments])
        shown = self.capsys.readouterr()
        return Done(code, shown.out, shown.err, *ends)


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Keyboard:
    for name, value in (("OPENAI_API_KEY", KEY), ("RESEARCH_STATE_DIR", str(tmp_path))):
        monkeypatch.setenv(name, value)
    return Keyboard(slow(interval=30.0), tmp_path, monkeypatch, capsys)


@POSIX
def test_a_second_interrupt_cancels_the_run(keyboard: Keyboard) -> None:
    done = keyboard.run("Why?", at=[2, 3])
    assert (done.code, done.out) == (1, "")
    assert "Press Ctrl-C again to cancel it." in done.err
    assert "The run was cancelled." in done.err
    (response,) = keyboard.upstream.stored.responses.values()
    assert response.cancelled is not None


@POSIX
@pytest.mark.parametrize(("at", "code"), [([1], 130), ([1, 2], 1)])
def test_an_interrupt_before_the_id_has_come_tells_where_to_look(
    keyboard: Keyboard, at: list[float], code: int
) -> None:
    keyboard.upstream.script = [Hang()]
    done = keyboard.run("Why?", at=at)
    assert done.code == code
    assert ("may cost something" if code == 1 else "research show run_") in done.err
    assert keyboard.upstream.kinds == ["ask"]


@POSIX
def test_an_answer_that_comes_as_the_run_is_left_is_printed_and_not_thrown_away(
    keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_STORE", "false")
    keyboard.upstream.script = [replace(as_stream(bodies.searched()), latency=3.0)]
    done = keyboard.run("Why?", at=[2])
    assert "\nSources:\n- https://peps.python.org/" in done.out
    assert (done.code, done.seconds) == (0, 3.0)  # at once, not when no other Ctrl-C has come


@POSIX
@pytest.mark.parametrize("leaving", ["within", "behind"])
def test_an_interrupt_between_the_end_of_the_run_and_its_answer_loses_nothing(keyboard: Keyboard, leaving: str) -> None:
    done = keyboard.run("Why?", leaving=leaving)
    assert (done.code, done.out.partition(" (")[0]) == (0, "The answer to: Why?")


@POSIX
def test_an_interrupt_of_the_printing_says_how_to_have_the_answer(
    keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(research, "say_text", lambda _: signal.raise_signal(signal.SIGINT))
        done = keyboard.run("Why?")
    assert done.code == 130
    (run_id,) = RUN.findall(done.err)
    (response,) = keyboard.upstream.stored.responses.values()
    response.interval = 0.0  # it has ended, although the next command's time begins anew
    assert keyboard.run("show", run_id).out.startswith("The answer to: Why?")


@POSIX
def test_a_run_that_the_api_does_not_keep_ends_with_the_command_and_no_id_is_waited_for(
    keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESEARCH_STORE", "false")
    keyboard.upstream.script = [Hang()]
    done = keyboard.run("Why?", at=[2])
    assert "it ends with this command" in done.err
    assert (done.code, done.seconds) == (130, 5.0)  # the time for second thoughts


@POSIX
def test_a_third_interrupt_leaves_the_cancel_on_its_way_and_says_how_to_look(keyboard: Keyboard) -> None:
    keyboard.upstream.stored.faults = Faults(cancels_lost=1000)
    done = keyboard.run("Why?", at=[2, 3, 4])
    assert keyboard.upstream.of("cancel")[0].at == 3
    assert re.search(r"research show run_[0-9a-f]{16}", done.err)
    assert done.code == 130
