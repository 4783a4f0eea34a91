"""The process on its real descriptors: every kind of stdin, and a clean wire."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from responses_mcp.testing import open_fake_api
from tests.processes import COMMAND, WAIT, environment, server_process

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX descriptors and signals")

HANDSHAKE = b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'


def messages(output: bytes) -> list[dict]:
    return [json.loads(line) for line in output.split(b"\n")[:-1]]


def run(home: Path, stdin, stdout=subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, "--stdio"],
        stdin=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env=environment(home, **env),
        cwd=home,
        timeout=WAIT,
        check=False,
    )


def test_a_regular_file_as_stdin_and_stdout(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HANDSHAKE)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        done = run(tmp_path, stdin, stdout)
    assert (done.returncode, done.stderr) == (0, b"")
    assert [m["id"] for m in messages((tmp_path / "out").read_bytes())] == [1, 2]


async def test_messages_piped_in_from_a_file_are_all_answered_into_a_file(tmp_path: Path) -> None:
    call = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":"still there?"}}}'
    (tmp_path / "in").write_bytes(HANDSHAKE + call)
    async with open_fake_api() as api:
        with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout, trio.fail_after(WAIT):
            done = await trio.run_process(
                [*COMMAND, "--stdio"],
                stdin=stdin,
                stdout=stdout,
                capture_stderr=True,
                env=environment(tmp_path, api.base_url),
                cwd=tmp_path,
            )
    assert (done.returncode, done.stderr) == (0, b"")
    answers = messages((tmp_path / "out").read_bytes())
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert "still there?" in answers[2]["result"]["structuredContent"]["answer"]


def test_the_null_device_as_stdin_ends_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@posix
def test_a_socket_as_stdin_and_stdout(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = subprocess.Popen(
            [*COMMAND, "--stdio"],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.PIPE,
            env=environment(tmp_path),
            cwd=tmp_path,
        )
        theirs.close()
        ours.settimeout(WAIT)
        ours.sendall(HANDSHAKE)
        ours.shutdown(socket.SHUT_WR)
        output = b""
        while data := ours.recv(65536):
            output += data
        _, stderr = process.communicate(timeout=WAIT)
    assert (process.returncode, stderr) == (0, b"")
    assert [m["id"] for m in messages(output)] == [1, 2]


@posix
def test_a_terminal_as_stdin_and_stdout_is_read_in_threads_and_stays_blocking(tmp_path: Path) -> None:
    import pty
    import tty

    parent, child = pty.openpty()
    tty.setraw(child)
    process = subprocess.Popen(
        [*COMMAND, "--stdio"],
        stdin=child,
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    try:
        os.write(parent, HANDSHAKE)
        output = b""
        while output.count(b"\n") < 2:
            output += os.read(parent, 65536)
        assert os.get_blocking(child)
        # A read is waiting in a thread just now; the process must end all the same.
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=WAIT)
    finally:
        process.kill()
        os.close(parent)
        os.close(child)
    assert (process.returncode, stderr) == (0, b"")
    assert [m["id"] for m in messages(output)] == [1, 2]


@posix
@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2), (2,), (1, 2)])
def test_descriptors_closed_at_the_start_end_the_process_with_a_word_or_are_done_without(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    closing = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    shell = f"exec {sys.executable} -m responses_mcp --stdio {closing}"
    done = subprocess.run(
        ["/bin/sh", "-c", shell],
        input=HANDSHAKE,
        capture_output=True,
        env=environment(tmp_path),
        cwd=tmp_path,
        timeout=WAIT,
        check=False,
    )
    assert b"Traceback" not in done.stderr
    if closed == (2,):
        assert done.returncode == 0
        assert [m["id"] for m in messages(done.stdout)] == [1, 2]
    else:
        assert (done.returncode, done.stdout) == (1, b"")
        assert 2 in closed or b"stdin or stdout cannot be used" in done.stderr


STRAY = """
import os, subprocess, sys
import responses_mcp.toolsets.answer as answer
real = answer.AnswerToolset._call
async def noisy(self, *args):
    print("stray print")
    os.write(1, b"stray write\\n")
    subprocess.run(["echo", "stray child"])
    subprocess.run(["cat"], timeout=30)
    return await real(self, *args)
answer.AnswerToolset._call = noisy
sys.argv = ["openai-responses-mcp", "--stdio"]
from responses_mcp.__main__ import main
main()
"""


@posix
async def test_stray_prints_and_children_cannot_touch_the_wire(tmp_path: Path) -> None:
    async with open_fake_api() as api:
        process = await trio.lowlevel.open_process(
            [sys.executable, "-c", STRAY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(tmp_path, api.base_url),
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        call = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"answer","arguments":{"query":"x"}}}\n'
        await process.stdin.send_all(HANDSHAKE + call)
        output = b""
        with trio.fail_after(WAIT):
            while output.count(b"\n") < 3:
                output += await process.stdout.receive_some()
            await process.stdin.aclose()
            stderr = b"".join([data async for data in process.stderr])
            await process.wait()
        await process.stdout.aclose()
    assert [m["id"] for m in messages(output)] == [1, 2, 3]
    assert sorted(stderr.splitlines()) == [b"stray child", b"stray print", b"stray write"]


@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "cp932"}])
async def test_text_is_utf_8_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url, **locale)) as server:
        with trio.fail_after(WAIT):
            answer = await server.client.call("answer", {"query": "今日の天気は？ ☔ 𠮷"})
    assert "今日の天気は？ ☔ 𠮷" in answer["result"]["structuredContent"]["answer"]
    assert api.requests[0].json is not None
    assert api.requests[0].json["input"].startswith("今日の天気は？ ☔ 𠮷\n\n[Hints] today=")
