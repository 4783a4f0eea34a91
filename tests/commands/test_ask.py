"""`openai-responses-mcp ask` as a person or a script uses it: what is sent, what is shown where, and how it ends."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.settings.system_policy import SYSTEM_POLICY
from responses_mcp.testing import (
    Error,
    FakeApi,
    Hang,
    Reply,
    Sse,
    as_stream,
    bodies,
    stream_events,
)
from responses_mcp.testing.event_stream import TERMINAL
from tests.commands.online import KEY, WAIT, Command, Terminal, api, command, output
from tests.processes import COMMAND, environment, run
from tests.testing import samples

__all__ = ["api", "command"]

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")


def sent(api: FakeApi) -> Any:
    """Return the body of the one request."""
    [request] = api.requests
    return request.json


def asked(api: FakeApi) -> str:
    """Return the one question, without the hints behind it."""
    return str(sent(api)["input"].rpartition("\n\n[Hints]")[0])


# The answer


async def test_the_answer_and_its_sources_are_on_stdout_and_nothing_else_anywhere(
    api: FakeApi, command: Command
) -> None:
    api.script(*[as_stream(bodies.searched())] * 2)
    lines = output(await command("ask", "When was Python 3.14 released?")).splitlines()
    assert lines[0].startswith("Python 3.14 came out on 7 October 2025")
    assert lines[-3] == "Sources:"
    assert lines[-2].startswith(f"- {bodies.PEP} (")
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert sent(api)["instructions"] == SYSTEM_POLICY
    assert asked(api) == "When was Python 3.14 released?"
    answer = json.loads(output(await command("ask", "When?", "--json")))
    assert list(answer) == ["answer", "used_search", "citations", "model", "usage"]
    assert (answer["used_search"], answer["model"], answer["usage"]["total_tokens"]) == (True, "gpt-5.2", 9245)
    assert answer["citations"][0]["url"] == bodies.PEP


async def test_a_certificate_that_is_left_as_a_placeholder_is_ignored_and_told(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "$SSL_CERT_FILE")
    code, _, err = await command("ask", "Why?")
    assert (code, err) == (0, "SSL_CERT_FILE still holds a placeholder, so it is ignored.\n")


@pytest.mark.parametrize(
    ("option", "model"),
    [([], "gpt-a"), (["--detailed"], "gpt-d"), (["--quick"], "gpt-q"), (["--profile", "search"], "gpt-s")],
    ids=str,
)
async def test_the_profile_is_that_of_the_tool_of_the_same_name(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, option: list[str], model: str
) -> None:
    for name, value in (("ANSWER", "gpt-a"), ("DETAILED", "gpt-d"), ("QUICK", "gpt-q"), ("SEARCH", "gpt-s")):
        monkeypatch.setenv(f"MODEL_{name}", value)
    assert json.loads(output(await command("ask", *option, "Why?", "--json")))["model"] == model
    assert sent(api)["model"] == model


async def test_the_hints_are_sent_along_and_domains_may_be_json(api: FakeApi, command: Command) -> None:
    options = ["--domains", "a.jp, b.jp", "Why?", "--domains=c.jp", "--recency-days", "0", "--max-results", "9"]
    await command("ask", *options)
    assert sent(api)["input"].endswith(" recency_days=0, max_results=9, domains=a.jp b.jp c.jp")
    assert (await command("ask", "Why?", "--domains", '["a.jp", "b.jp"]'))[0] == 0
    assert api.requests[1].json["input"].endswith(" domains=a.jp b.jp")
    code, out, err = await command("ask", "Why?", "--domains", '["a.jp"')
    assert (code, out, len(api.requests), "; it must be a list of strings like [" in err) == (2, "", 2, True)


async def test_a_question_needs_no_quotation_marks_and_options_may_stand_anywhere(
    api: FakeApi, command: Command
) -> None:
    assert (await command("ask", "why", "is", "--quick", "the", "sky", "--json", "blue"))[0] == 0
    assert asked(api) == "why is the sky blue"


# Stdin


@pytest.mark.parametrize(
    ("arguments", "stdin", "question"),
    [
        ([], "\ufeff天気は？\r\n", "天気は？"),
        (["-"], "天気は？\n", "天気は？"),
        (["What fails?"], "Error: 42", "What fails?"),
        (["What fails?", "-"], "  line 1\nError: 42\n\n", "What fails?\n\n  line 1\nError: 42"),
        (["-", "What", "fails?"], "Error: 42", "What fails?\n\nError: 42"),
    ],
)
@pytest.mark.parametrize("pipe", [True, False])
async def test_stdin_is_the_question_or_goes_along_behind_it_where_it_is_asked_for(  # noqa: PLR0917
    api: FakeApi, command: Command, tmp_path: Path, arguments: list[str], stdin: str, question: str, pipe: bool
) -> None:
    (tmp_path / "text").write_bytes(stdin.encode())
    assert (await command("ask", *arguments, stdin=stdin.encode() if pipe else tmp_path / "text"))[0] == 0
    assert asked(api) == question


async def test_a_terminal_is_read_only_if_it_is_asked_for(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(b"Why?\n"))
    assert (await command("ask"))[0] == 2
    assert api.requests == []
    assert (await command("ask", "-"))[0] == 0
    assert asked(api) == "Why?"


@pytest.mark.parametrize(
    ("arguments", "data", "code", "said"),
    [
        ([], b"a\0b", 2, "stdin is not text in UTF-8; save it as UTF-8 first."),
        (["-"], "天気は？".encode("cp932"), 2, "stdin is not text in UTF-8; save it as UTF-8 first."),
        ([], b"x" * (2**20 + 1), 1, "stdin has more than 1 MiB; pass the part that matters."),
        (["-"], b" \n", 2, "There is nothing to ask; pass it in quotation marks or on stdin."),
        (["  "], b"the next line of a loop", 2, "There is nothing to ask; pass it in quotation marks or on stdin."),
    ],
    ids=["binary", "not UTF-8", "too much", "nothing", "a blank question"],
)
async def test_stdin_that_cannot_be_sent_is_refused(  # noqa: PLR0917
    api: FakeApi,
    command: Command,
    tmp_path: Path,
    arguments: list[str],
    data: bytes,
    code: int,
    said: str,
) -> None:
    (tmp_path / "text").write_bytes(data)
    assert await command("ask", *arguments, stdin=tmp_path / "text") == (code, "", f"openai-responses-mcp: {said}\n")
    assert api.requests == []


async def test_a_secret_that_was_masked_is_told(api: FakeApi, command: Command) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    code, out, err = await command("ask", f"Is {secret} a token?", "--json")
    assert (code, json.loads(out)["masked"]) == (0, {"GitHub token": 1})
    assert "Masked in the question before it was sent: GitHub token." in err
    assert secret not in out + err + asked(api)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_loop_over_questions_asks_every_one(tmp_path: Path) -> None:
    (tmp_path / "questions").write_text("one\ntwo\n\nthree\n", encoding="utf-8")
    loop = f'while read q; do {shlex.join(COMMAND)} ask "$q"; done < questions'
    done = run(tmp_path, command=["/bin/sh", "-c", loop], OPENAI_API_KEY="${X}")  # which none of them can use
    assert done.stderr.count("OPENAI_API_KEY holds an unexpanded placeholder") == 3


# Profile, debug log


async def test_a_profile_that_there_is_not_exits_2_and_names_those_that_there_are(
    api: FakeApi, command: Command
) -> None:
    code, out, err = await command("ask", "Why?", "--profile", "quick")
    assert (code, out, api.requests) == (2, "", [])
    assert err.endswith("profile is 'quick'; it must be one of answer, answer_detailed, answer_quick.\n")


@pytest.mark.parametrize("name", ["ask", "search"])
@pytest.mark.parametrize("how", ["option", "variable", "file"])
async def test_the_debug_log_can_be_had_and_has_no_key(  # noqa: PLR0917
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, how: str
) -> None:
    log = tmp_path / "debug.log"
    if how != "option":
        monkeypatch.setenv("DEBUG", "1" if how == "variable" else str(log))
    monkeypatch.setattr("os.dup", lambda _: os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    api.script(as_stream(bodies.unsearched()))
    await command(name, *(["--debug"] if how == "option" else []), "Why?")
    text = log.read_text(encoding="utf-8")
    assert "openai(client): ok status=200" in text
    assert KEY not in text


# Failures


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Error(401), "key"),
        (Error(500), "again later"),
        (as_stream(bodies.failed()), "The model could not finish"),
        (Error(400, message=f"no {KEY} here"), "no "),
    ],
)
async def test_what_goes_wrong_upstream_is_one_sentence_and_exits_1(
    api: FakeApi, command: Command, reply: Reply, said: str
) -> None:
    api.script(reply)
    code, out, err = await command("ask", "Why?", "--json")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("openai-responses-mcp: ")
    assert said.lower() in err.lower()
    told = json.loads(out)["error"]
    assert err == f"openai-responses-mcp: {told['message']}\n"
    assert told["type"] in {"AuthenticationFailed", "ServiceFailed", "RequestRefused"}
    assert told.get("status") == (reply.status if isinstance(reply, Error) else None)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("", "There is no API key: the environment variable OPENAI_API_KEY is not set. Set it in this shell: "),
        ("${OPENAI_API_KEY}", "OPENAI_API_KEY holds an unexpanded placeholder. Set it in this shell: "),
        (f"{KEY} {KEY}", "OPENAI_API_KEY has white space or a line break in it. Remove it."),
    ],
)
async def test_a_key_that_cannot_work_exits_2_with_a_cure_for_a_shell(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, key: str, said: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://api.invalid/v1")
    monkeypatch.setenv("OPENAI_API_KEY", key)
    code, out, err = await command("ask", "Why?")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert err.endswith(" 'openai-responses-mcp doctor' checks it.\n")
    assert "client" not in err


# A terminal


async def test_a_terminal_sees_the_phases_and_then_only_the_answer(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    api.script(as_stream(bodies.searched()))
    assert (await command("ask", "When?"))[0] == 0
    status, _, last = terminal.text.rpartition("\r")
    shown = [line.strip() for line in status.split("\r")]
    phases = ["asking gpt-5.2", "thinking", "searching", "searched: python 3.14 release date", "writing"]
    # On a busy machine a phase lasts for a tick of the clock, which shows it again.
    assert [phase for phase, _ in groupby(line.partition(" s  ")[2] for line in shown if line)] == phases
    assert status.endswith(" ")
    assert last.startswith("8,512 tokens in (0 cached), 733 out, ")


async def test_a_terminal_sees_the_text_while_it_is_written_and_never_the_key(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("OPENAI_API_TIMEOUT", "1000")
    text = f"The first sentence, which says that {KEY} was sent to it by somebody.\nAnd the second one is still to"
    events = stream_events(bodies.answer(text))
    last = max(number for number, event in enumerate(events) if event["type"] == "response.output_text.delta")
    api.script(Sse(events[: last + 1], ending="hang"))
    code, _, err = await command("ask", "Why?")
    assert code == 1
    assert "No answer within 1 s" in err
    assert " ".join(terminal.text.split()).startswith(
        "The first sentence, which says that [redacted] was sent to it by"
    )
    assert "canary" not in terminal.text


STREAMED = [name for name, body in samples.WELL_FORMED.items() if body().get("status", "completed") in TERMINAL]


@pytest.mark.parametrize("name", STREAMED)
async def test_a_terminal_has_the_same_answer_as_a_pipe(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    api.script(*[as_stream(samples.WELL_FORMED[name]())] * 2)
    code, out, _ = await command("ask", "Why?")
    monkeypatch.setattr(sys, "stdout", shown := Terminal())
    assert (await command("ask", "Why?"))[0] == code
    assert [line.rstrip() for line in shown.text.splitlines()] == [line.rstrip() for line in out.splitlines()]


# Real processes


@pytest.fixture
def shell(api: FakeApi, tmp_path: Path) -> dict[str, str]:
    return {**environment(tmp_path, api.base_url), "NO_PROXY": "127.0.0.1"}


@POSIX
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
async def test_a_signal_ends_it_and_the_api_sees_the_connection_close(
    api: FakeApi, shell: dict[str, str], number: signal.Signals, code: int
) -> None:
    api.script(Hang())
    with trio.fail_after(WAIT):
        process = await trio.lowlevel.open_process(
            [*COMMAND, "ask", "Why?"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=shell,
        )
        await api.wait_requests(1)
        process.send_signal(number)
        await api.wait_hang_ups(1)
        assert await process.wait() == code
        assert process.stdout is not None
        said = b"openai-responses-mcp: interrupted.\n" if code == 130 else b""
        assert await process.stdout.receive_some() == said
        await process.stdout.aclose()


@asynccontextmanager
async def at_a_terminal(shell: dict[str, str], *program: str) -> AsyncGenerator[int]:
    """Start a program on a terminal of its own; give the terminal's other end, to which Ctrl-C is written.

    A parent tells the program's exit code at its end. It stays, as a shell does: when the leader of a session ends, the
    terminal throws away what nobody has read.
    """
    import pty

    leader, follower = pty.openpty()
    parent = (
        "import fcntl, signal, subprocess, sys, termios\n"
        "fcntl.ioctl(0, termios.TIOCSCTTY)\n"
        "signal.signal(signal.SIGINT, lambda *_: None)\n"
        "print('ended', subprocess.run(sys.argv[1:]).returncode, flush=True)\n"
        "sys.stdin.read()\n"
    )
    try:
        try:
            command = [COMMAND[0], "-c", parent, *program]
            process = await trio.lowlevel.open_process(
                command, stdin=follower, stdout=follower, stderr=follower, env=shell, start_new_session=True
            )
        finally:
            os.close(follower)
        yield leader
    finally:
        os.close(leader)
    await process.wait()


async def shown_to_the_end(terminal: int) -> tuple[str, int]:
    """Return what a program showed on its terminal until its end, and its exit code."""
    shown = b""
    while not (end := re.search(rb"ended (-?\d+)\r\n", shown)):
        await trio.lowlevel.wait_readable(terminal)
        shown += os.read(terminal, 4096)
    return shown[: end.start()].decode(), int(end[1])


def press_ctrl_c(terminal: int) -> None:
    import termios

    os.write(terminal, termios.tcgetattr(terminal)[6][termios.VINTR])


@POSIX
async def test_ctrl_c_at_a_terminal_leaves_one_clean_line_and_ends_a_loop_of_questions(
    api: FakeApi, shell: dict[str, str]
) -> None:
    api.script(Hang(), Hang())
    loop = f"for q in one two three; do {shlex.join(COMMAND)} ask $q; done"
    for started in ((*COMMAND, "ask", "Why?"), ("sh", "-c", loop)):
        asked = len(api.requests)
        with trio.fail_after(WAIT):
            async with at_a_terminal(shell, *started) as terminal:
                await api.wait_requests(asked + 1)
                press_ctrl_c(terminal)
                await api.wait_hang_ups(asked + 1)
                shown, code = await shown_to_the_end(terminal)
        assert code in {-signal.SIGINT, 130}
        assert re.match(r"\r +\d+ s  asking gpt-5\.2", shown)
        assert shown.endswith(" \r\ropenai-responses-mcp: interrupted.\r\n")
        assert (shown.count("\n"), len(api.requests)) == (1, asked + 1)
