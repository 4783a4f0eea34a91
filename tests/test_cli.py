"""The command line as a person or a client uses it: output, exit codes, and a start that never fails in silence."""

import json
import os
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from responses_mcp import __version__, cli
from responses_mcp.protocol.framing import encode_frame
from responses_mcp.testing import Error, Hang, answer_by_echo, open_fake_api
from tests.processes import (
    COMMAND,
    HANDSHAKE,
    MAIN,
    PING,
    PONG,
    WAIT,
    environment,
    ids,
    posix,
    python,
    read_terminal,
    run,
    server_process,
)

pytestmark = pytest.mark.rule("spec 5.5")

KEY = "sk-canary-4a7d1ed414474e4033ac29ccb8653d9b"


def write_config(home: Path, text: str) -> Path:
    path = home / ".config" / "openai-responses-mcp" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_prints_only_the_version(tmp_path: Path, option: str) -> None:
    done = run(tmp_path, option)
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [__version__], "")


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, "file"])
def test_no_arguments_print_the_help(tmp_path: Path, stdin: int | str) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (tmp_path / "file").open("rb") as file:
        bare = run(tmp_path, stdin=file if isinstance(stdin, str) else stdin)
    helped = run(tmp_path, "--help")
    assert (bare.returncode, helped.returncode) == (0, 0)
    assert bare.stdout == helped.stdout
    assert bare.stdout.count("\n") <= 24
    for option in ("--stdio", "--show-config", "--config", "--debug", "--toolsets", "--version", "demo"):
        assert option in bare.stdout


def test_no_arguments_and_a_pipe_serve(tmp_path: Path) -> None:
    assert run(tmp_path, stdin=PING).stdout == PONG


@posix
def test_no_arguments_and_a_socket_serve(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(PING)
        ours.shutdown(socket.SHUT_WR)
        done = run(tmp_path, stdin=theirs)
    assert (done.returncode, done.stdout, done.stderr) == (0, PONG, "")


@posix
def test_a_terminal_is_told_that_a_client_is_waited_for(tmp_path: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    os.write(leader, PING + b"\x04")  # Ctrl-D, the end of the input
    done = run(tmp_path, "--stdio", stdin=follower, stderr=follower)
    os.close(follower)
    shown = read_terminal(leader).decode()
    os.close(leader)
    assert "openai-responses-mcp: waiting for an MCP client, but stdin is a terminal;" in shown
    assert "openai-responses-mcp ask" in shown
    assert done.stdout == PONG


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["aks", "why"], "there is no command aks; did you mean ask?"),
        (["serach"], "there is no command serach; did you mean search?"),
        (["What is new in Python?"], "there is no command What is new in Python?; there are ask, search,"),
        (["extra"], "there is no command extra; there are ask, search,"),
        (["--stido"], "there is no option --stido; did you mean --stdio?"),
        (["--stdio", "--toolset=a"], "there is no option --toolset; did you mean --toolsets?"),
        (["--zzz"], "there is no option --zzz\n"),
        (["--config", "c.yaml"], "nothing to do; add --stdio to serve, or a command: ask, search,"),
    ],
)
def test_a_mistake_in_the_command_line_is_told_with_what_was_meant(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run(arguments)
    assert f"openai-responses-mcp: error: {told}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["sk-proj-{}"],
        ["sk-{}", "is", "my", "key"],
        ["--api-key=sk-proj-{}"],
        ["set-key", "sk-proj-{}"],
        ["configure", "the", "key", "sk-{}"],
        ["--stdio", "x", "sk-{}"],
    ],
)
def test_a_key_on_the_command_line_is_not_shown_again_and_told_where_it_belongs(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run([word.format("canary0123456789abcdef") for word in words])
    told = capsys.readouterr().err
    assert "canary" not in told
    assert (
        "openai-responses-mcp: error: an argument looks like a secret and is not shown; put a key into OPENAI_API_KEY"
        in told
    )


@pytest.mark.parametrize("option", [["--config", "missing.yaml"], ["--config=missing.yaml"]])
@pytest.mark.parametrize("command", [["ask", "Why?"], ["search", "x"], ["manuals", "find", "x"]])
def test_the_configuration_may_be_named_before_the_command(
    capsys: pytest.CaptureFixture[str], option: list[str], command: list[str]
) -> None:
    assert cli.run([*option, *command]) == 2
    assert "got no such file (from missing.yaml)" in capsys.readouterr().err


def test_the_default_list_of_tools_stays_under_4_kb(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", stdin=HANDSHAKE)
    listed = done.stdout.splitlines()[1]
    assert [tool["name"] for tool in json.loads(listed)["result"]["tools"]] == [
        "answer",
        "answer_detailed",
        "answer_quick",
    ]
    assert len(listed.encode()) < 4000


def test_show_config_prints_one_document_on_stderr(tmp_path: Path) -> None:
    done = run(tmp_path, "--show-config", OPENAI_API_KEY=KEY, MAX_CITATIONS="5")
    assert (done.returncode, done.stdout) == (0, "")
    shown = json.loads(done.stderr)
    assert shown["version"] == __version__
    assert shown["effective"]["policy"]["max_citations"] == 5
    assert shown["sources"]["policy.max_citations"] == "env:MAX_CITATIONS"
    assert KEY not in done.stderr


def test_show_config_with_a_problem_exits_2(tmp_path: Path) -> None:
    done = run(tmp_path, "--show-config", MAX_CITATIONS="many")
    assert (done.returncode, done.stdout) == (2, "")
    (told,) = json.loads(done.stderr)["problems"]
    assert told.startswith("policy.max_citations: ")


def test_the_debug_log_of_a_process_begins_with_the_first_chunk(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", "--debug", stdin=encode_frame(PING.strip()))
    stages = [line.split(" DEBUG ")[1].partition("=")[0] for line in done.stderr.splitlines()]
    assert stages[:4] == ["stdin chunk", "headerEnd", "recv method", "recv json"]


@pytest.mark.parametrize("asked", ["on the command line", "in the file"])
def test_show_config_together_with_stdio_prints_and_serves(tmp_path: Path, asked: str) -> None:
    if asked == "in the file":
        write_config(tmp_path, "server: {show_config_on_start: true}\n")
    done = run(tmp_path, "--stdio", *(["--show-config"] if asked == "on the command line" else []), stdin=PING)
    assert (done.returncode, done.stdout) == (0, PONG)
    assert json.loads(done.stderr)["version"] == __version__


@posix
@pytest.mark.parametrize("closing", ["2>&-", "2>/dev/full"])
def test_a_stderr_that_takes_nothing_does_not_keep_the_server_from_starting(tmp_path: Path, closing: str) -> None:
    shell = ["/bin/sh", "-c", f"exec {shlex.join(COMMAND)} --stdio --show-config {closing}"]
    done = run(tmp_path, stdin=PING, command=shell)
    assert (done.returncode, done.stdout) == (0, PONG)


@posix
def test_a_stderr_that_nobody_reads_does_not_keep_the_server_from_starting(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    os.set_blocking(writer, True)
    try:
        done = run(tmp_path, "--stdio", "--show-config", stdin=PING, stderr=writer)
    finally:
        os.close(reader)
        os.close(writer)
    assert (done.returncode, done.stdout) == (0, PONG)


def test_the_configuration_is_shown_before_all_lines_of_the_log_and_is_not_in_its_file(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", "--show-config", "--debug", str(tmp_path / "log"))
    shown, end = json.JSONDecoder().raw_decode(done.stderr)
    assert shown["version"] == __version__
    assert done.stderr[end:] == "\n" + (tmp_path / "log").read_text(encoding="utf-8")


def test_unknown_keys_are_warnings_on_stderr_and_the_server_runs(tmp_path: Path) -> None:
    write_config(tmp_path, "request: {max_retrys: 5}\n")
    done = run(tmp_path, "--stdio", stdin=PING)
    assert done.stdout == PONG
    assert "max_retrys" in done.stderr
    assert "max_retries" in done.stderr


async def test_a_proxy_or_certificate_that_the_client_left_as_a_placeholder_is_ignored_and_told(tmp_path: Path) -> None:
    left = {"HTTP_PROXY": "$HTTP_PROXY", "http_proxy": "%http_proxy%", "SSL_CERT_FILE": "${SSL_CERT_FILE}"}
    if sys.platform == "win32":  # where letters are the same in both cases
        del left["http_proxy"]
    async with (
        open_fake_api() as api,
        server_process(environment(tmp_path, api.base_url.replace("127.0.0.1", "localhost"), **left)) as server,
    ):
        with trio.fail_after(WAIT):
            answer = await server.client.call("answer", {"query": "x"})
        assert "result" in answer
    for name in left:
        assert f"{name} still holds a placeholder, so it is ignored" in server.stderr.decode()


@pytest.mark.rule("P10")
async def test_a_config_problem_does_not_stop_the_start_and_every_call_tells_it(tmp_path: Path) -> None:
    write_config(tmp_path, "request: {max_retries: many}\npolicy: {max_citations: 99}\n")
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        with trio.fail_after(WAIT):
            tools = await server.client.ask("tools/list")
            failures = [await server.client.call("answer", {"query": "x"}) for _ in range(2)]
        assert len(tools["result"]["tools"]) == 3
        for failure in failures:
            assert failure["error"]["code"] == -32001
            assert "request.max_retries" in failure["error"]["data"]["message"]
            assert "policy.max_citations" in failure["error"]["data"]["message"]
        assert api.requests == []
    stderr = server.stderr.decode()
    assert stderr.count("request.max_retries") == 1
    assert stderr.count("policy.max_citations") == 1


def test_line_mode_answers_frames_in_lines(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", stdin=encode_frame(PING[:-1]), MCP_LINE_MODE="1")
    assert done.stdout == PONG


# Debug


async def test_the_debug_log_has_the_contract_s_lines_on_stderr_and_in_the_file_and_never_the_key(
    tmp_path: Path,
) -> None:
    log = tmp_path / "logs" / "debug.log"
    env = environment(tmp_path, OPENAI_API_KEY=KEY)
    async with open_fake_api() as api:
        api.script(Error(503, message=f"upstream said {KEY} is fine", retry_after_ms="1"), answer_by_echo, Hang())
        env["OPENAI_BASE_URL"] = api.base_url
        async with server_process(env, "--debug", str(log)) as server:
            with trio.fail_after(WAIT):
                await server.client.call("answer", {"query": "東京は？", "max_results": 3})
                hanging = await server.client.start_call("answer", {"query": "second"})
                await server.client.cancel(hanging, "user pressed\nEscape")
                await server.client.ask("ping")
        assert any(request.headers["authorization"] == f"Bearer {KEY}" for request in api.requests)
    written, stderr = log.read_text(encoding="utf-8"), server.stderr.decode()
    for text in (written, stderr):
        assert KEY not in text
        for line in (
            "stdin chunk=",
            "recv method=initialize",
            "send line bytes=",
            "send json=",
            "server: tools/call name=answer argsKeys=['max_results', 'query'] queryLen=4",
            "answer: profile=answer model=gpt-5.2 supports={verbosity:true, reasoning:true}",
            "answer: request summary tools=web_search(on) reasoning=on text.verbosity=on",
            "openai(client): error attempt=1 status=503 name=ServiceFailed",
            f"cancelled requestId={hanging} reason=user pressed\\nEscape",
        ):
            assert line in text, line
    if sys.platform != "win32":
        assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.rule("P12")
async def test_without_debug_nothing_of_questions_answers_policy_or_key_is_logged(tmp_path: Path) -> None:
    env = environment(tmp_path, OPENAI_API_KEY=KEY)
    async with open_fake_api() as api:
        env["OPENAI_BASE_URL"] = api.base_url
        api.script(Error(400, message=f"bad {KEY}"), Error(401, message=f"Incorrect API key provided: {KEY}"))
        async with server_process(env) as server:
            with trio.fail_after(WAIT):
                answers = [await server.client.call("answer", {"query": "a secret question"}) for _ in range(3)]
    assert server.stderr == b""
    assert KEY not in json.dumps(answers)


async def test_debug_adds_status_type_and_name_to_errors(tmp_path: Path) -> None:
    async with (
        open_fake_api(Error(401)) as api,
        server_process(environment(tmp_path, api.base_url, DEBUG="1")) as server,
    ):
        with trio.fail_after(WAIT):
            failed = await server.client.call("answer", {"query": "x"})
    assert failed["error"]["data"].keys() == {"message", "status", "type", "name"}
    assert failed["error"]["data"]["status"] == 401


# Start


LISTING = "import atexit, json, sys\natexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))"


def loaded_modules(home: Path) -> set[str]:
    discover = b'{"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{}}}\n'
    done = run(home, "--stdio", stdin=HANDSHAKE + discover, command=python(LISTING + MAIN))
    assert ids(done.stdout) == [1, 2, 3]
    return set(json.loads(done.stderr))


def test_the_handshake_is_answered_without_httpx_and_without_yaml(tmp_path: Path) -> None:
    modules = loaded_modules(tmp_path)
    assert modules >= {"trio", "responses_mcp.asking"}  # what calls need is loaded behind the first answers
    unwanted = {"httpx", "httpcore", "h11", "yaml", "anyio", "openai", "mcp"}
    if sys.platform != "win32":  # there Trio makes its pipes with it
        unwanted.add("asyncio")
    assert not modules & unwanted


def test_yaml_is_loaded_only_if_there_is_a_file(tmp_path: Path) -> None:
    write_config(tmp_path, "policy: {max_citations: 2}\n")
    modules = loaded_modules(tmp_path)
    assert "yaml" in modules
    assert "httpx" not in modules


def test_the_demo_shows_a_whole_exchange(tmp_path: Path) -> None:
    done = run(tmp_path, "demo")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "FAKE",
        "answer_quick",
        "Sources:",
        "used_search: true",
        "nothing about the call",
        "exits with code 0",
    ):
        assert text in done.stdout
    assert "utm_source" not in done.stdout
