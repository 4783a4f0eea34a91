"""`openai-responses-mcp research` as a person or a script uses it: the answer, the list, and what Ctrl-C does."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from responses_mcp.research.service import open_research
from responses_mcp.settings import load_settings
from responses_mcp.testing import Error, FakeApi, Faults, Hang, RecordedRequest, Reply, as_stream
from responses_mcp.testing.stored_responses import thoughtful_echo
from tests.commands.online import KEY, WAIT, Command, api, command, output
from tests.processes import COMMAND, MAIN, environment, python

__all__ = ["api", "command"]

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
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
    assert output(await command("research", "cancel", found["run_id"])) == "The run had ended already: completed.\n"
    assert [request.method for request in api.requests] == ["POST", "GET", "GET", "GET"]
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_the_ledger_has_the_command_line_as_the_client(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USAGE_LEDGER", "true")
    output(await command("research", "Why?"))
    assert "command line" in output(await command("usage", "--by", "client"))


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
        (["research", "show", "run_0"], "no run with that id"),
        (["research", "cancel", "run_0"], "no run with that id"),
        (["research", "show"], "RUN"),
    ],
)
async def test_what_cannot_be_done_ends_with_2_and_nothing_is_asked(
    api: FakeApi, command: Command, arguments: list[str], said: str
) -> None:
    code, out, err = await command(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert api.requests == []


@pytest.mark.parametrize("data", [b"{", b"[]", b"[" * 100_000, b"\xff", b" " * 70_000])
async def test_a_schema_that_is_none_is_refused(api: FakeApi, command: Command, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_bytes(data)
    code, _, err = await command("research", "Why?", "--schema", str(tmp_path / "schema.json"))
    assert code == 2
    assert "schema.json" in err


@pytest.mark.parametrize("words", [["cancel me"], ["--json", "list all of them"]])
async def test_a_question_that_begins_as_a_command_does_is_asked(
    api: FakeApi, command: Command, words: list[str]
) -> None:
    code, out, err = await command("research", *words)
    assert (code, err) == (0, ""), err
    assert "The answer to: " in out


@pytest.mark.parametrize("action", ["show", "cancel"])
async def test_a_run_that_is_not_there_is_told_with_the_command_that_lists_those_that_are(
    api: FakeApi, command: Command, action: str
) -> None:
    code, out, err = await command("research", action, "nope")
    listing = 'run "openai-responses-mcp research list" to see those of the last 7 days.'
    assert (code != 0, out) == (True, "")
    assert f"There is no run with that id; {listing}\n" in err


async def test_no_runs_are_an_empty_list(api: FakeApi, command: Command) -> None:
    code, out, err = await command("research", "list")
    assert (code, out) == (0, "")
    assert "no runs" in err


async def test_a_list_tells_how_runs_have_ended_that_nobody_followed(api: FakeApi, command: Command) -> None:
    api.stored.interval = 0.2
    settings = load_settings({**os.environ, "RESEARCH_ON_EXIT": "keep"}, toolsets="answer,research").settings
    async with open_research(settings) as research:
        run = await research.start("Why?")
        assert await research.wait_for_id(run, WAIT)
    await trio.sleep(3)
    code, out, err = await command("research", "list", "--json")
    assert (code, err) == (0, "")
    assert [(each["run_id"], each["status"]) for each in json.loads(out)["runs"]] == [(run, "completed")]


# Real processes


async def started(
    api: FakeApi, home: Path, *arguments: str, program: Sequence[str] = COMMAND, **more: str
) -> trio.Process:
    return await trio.lowlevel.open_process(
        [*program, "research", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**environment(home, api.base_url, OPENAI_API_KEY=KEY), "NO_PROXY": "127.0.0.1", **more},
    )


async def rest_of(process: trio.Process) -> str:
    assert process.stdout is not None
    data = b""
    async for chunk in process.stdout:
        data += chunk
    await process.wait()
    return data.decode()


async def interrupted(process: trio.Process) -> str:
    """Press Ctrl-C, and return what has been said when another may follow."""
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    said = b""
    while b"Press Ctrl-C again" not in said:
        said += await process.stdout.receive_some()
    return said.decode()


@POSIX
async def test_an_interrupt_leaves_the_run_and_prints_its_id_with_which_its_answer_is_had(
    api: FakeApi, command: Command, tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        api.stored.interval = 30.0
        process = await started(api, tmp_path, "Why?")
        await api.wait_requests(1)
        process.send_signal(signal.SIGINT)
        said = await rest_of(process)
        assert process.returncode == 130
        (run_id,) = set(RUN.findall(said))
        (response,) = api.stored.responses.values()
        assert (response.cancels, response.cancelled) == (0, None)
        response.interval = 0.0
        assert output(await command("research", "show", run_id)).startswith("The answer to: Why?")
        assert [request.method for request in api.requests].count("POST") == 1


@POSIX
async def test_a_second_interrupt_cancels_the_run(api: FakeApi, tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        api.stored.interval = 30.0
        process = await started(api, tmp_path, "Why?")
        await api.wait_requests(1)
        await interrupted(process)
        process.send_signal(signal.SIGINT)
        assert "The run was cancelled." in await rest_of(process)
        assert process.returncode == 1
        (response,) = api.stored.responses.values()
        assert response.cancelled is not None


@POSIX
@pytest.mark.parametrize("times", [1, 2])
async def test_an_interrupt_before_the_id_has_come_says_what_may_be_lost(
    api: FakeApi, command: Command, times: int, tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        api.script(Hang())
        process = await started(api, tmp_path, "Why?")
        await api.wait_requests(1)
        said = await interrupted(process)
        if times == 2:
            process.send_signal(signal.SIGINT)
        rest = said.partition("again")[2] + await rest_of(process)
        assert "goes on without" not in rest
        assert "may cost something" in rest
        assert process.returncode == (130 if times == 1 else 1)
        assert len(api.requests) == 1


@POSIX
@pytest.mark.parametrize("store", ["true", "false"])
async def test_an_interrupt_while_the_api_lets_nothing_through_says_that_it_costs_nothing(
    api: FakeApi, store: str, tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        api.script(Error(429, headers={"retry-after": "50"}))
        process = await started(api, tmp_path, "Why?", RESEARCH_STORE=store)
        await api.wait_requests(1)
        process.send_signal(signal.SIGINT)
        assert "ends with this command, and costs nothing" in await rest_of(process)
        assert process.returncode == 130
        assert len(api.requests) == 1


@POSIX
async def test_an_answer_that_comes_as_the_run_is_left_is_printed_and_not_thrown_away(
    api: FakeApi, tmp_path: Path
) -> None:
    said_it = trio.Event()

    async def in_the_end(request: RecordedRequest) -> Reply:
        await said_it.wait()
        return as_stream(thoughtful_echo(request.json))

    with trio.fail_after(WAIT):
        api.script(in_the_end)
        process = await started(api, tmp_path, "Why?", RESEARCH_STORE="false")
        await api.wait_requests(1)
        assert "it ends with this command" in await interrupted(process)
        said_it.set()
        began = trio.current_time()
        rest = await rest_of(process)
        assert rest.startswith("The answer to: Why?")
        assert process.returncode == 0
        assert trio.current_time() - began < 2.5  # of the 3 s in which another Ctrl-C would cancel it


# An interrupt that comes as research is left: first within its block, then behind it.
INTERRUPTED_AS_IT_IS_LEFT = """
import signal
from contextlib import asynccontextmanager
from responses_mcp.commands import research

@asynccontextmanager
async def leaving(settings, opened=research.open_research):
    async with opened(settings) as found:
        yield found
        {}
    {}

research.open_research = leaving
"""
INTERRUPTED_AS_IT_IS_PRINTED = """
import signal
from responses_mcp.commands import research
research.say_text = lambda _: signal.raise_signal(signal.SIGINT)
"""


@POSIX
@pytest.mark.parametrize(
    "where", [("signal.raise_signal(signal.SIGINT)", ""), ("", "signal.raise_signal(signal.SIGINT)")]
)
async def test_an_interrupt_between_the_end_of_the_run_and_its_answer_loses_nothing(
    api: FakeApi, where: tuple[str, str], tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        process = await started(api, tmp_path, "Why?", program=python(INTERRUPTED_AS_IT_IS_LEFT.format(*where) + MAIN))
        assert (await rest_of(process)).startswith("The answer to: Why?")
        assert process.returncode == 0


@POSIX
async def test_an_interrupt_of_the_printing_says_how_to_have_the_answer(
    api: FakeApi, command: Command, tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        process = await started(api, tmp_path, "Why?", program=python(INTERRUPTED_AS_IT_IS_PRINTED + MAIN))
        said = await rest_of(process)
        assert process.returncode == 130
        (run_id,) = RUN.findall(said)
        assert output(await command("research", "show", run_id)).startswith("The answer to: Why?")


@POSIX
async def test_a_run_that_the_api_does_not_keep_ends_with_the_command_and_no_id_is_waited_for(
    api: FakeApi, tmp_path: Path
) -> None:
    with trio.fail_after(WAIT):
        api.script(Hang())
        process = await started(api, tmp_path, "Why?", RESEARCH_STORE="false")
        await api.wait_requests(1)
        await interrupted(process)
        assert "The run ended with this command" in await rest_of(process)
        assert process.returncode == 130


@POSIX
async def test_a_third_interrupt_leaves_the_cancel_to_go_on_and_says_how_to_look(api: FakeApi, tmp_path: Path) -> None:
    with trio.fail_after(WAIT):
        api.stored.interval = 60.0
        api.stored.faults = Faults(cancels_lost=1000)
        process = await started(api, tmp_path, "Why?")
        await api.wait_requests(1)
        await interrupted(process)
        process.send_signal(signal.SIGINT)
        await api.wait_requests(2)  # the cancel
        process.send_signal(signal.SIGINT)
        said = await rest_of(process)
        assert re.search(r"has not confirmed the cancel yet; .* research show run_[0-9a-f]{16}", said)
        assert process.returncode == 130
