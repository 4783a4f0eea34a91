"""The process on its real descriptors: every kind of stdin, and a clean wire."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import trio

from responses_mcp.testing import open_fake_api
from tests.processes import CALL, COMMAND, HANDSHAKE, MAIN, WAIT, environment, ids, posix, python, run, server_process

pytestmark = pytest.mark.rule("spec 2")


async def test_a_regular_file_as_stdin_and_stdout_gets_every_answer(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(HANDSHAKE + CALL[:-1])
    async with open_fake_api() as api:

        def served() -> subprocess.CompletedProcess[str]:
            with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
                return run(tmp_path, "--stdio", stdin=stdin, stdout=stdout, base_url=api.base_url)

        done = await trio.to_thread.run_sync(served)
    assert (done.returncode, done.stderr) == (0, "")
    written = (tmp_path / "out").read_text(encoding="utf-8")
    assert ids(written) == [1, 2, 3]
    assert '"structuredContent":{"answer":' in written


def test_the_null_device_as_stdin_ends_at_once(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@posix
def test_a_socket_as_stdin_and_stdout(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(HANDSHAKE)
        ours.shutdown(socket.SHUT_WR)
        done = run(tmp_path, "--stdio", stdin=theirs, stdout=theirs)
        theirs.close()
        output = b""
        while data := ours.recv(65536):
            output += data
    assert (done.returncode, done.stderr) == (0, "")
    assert ids(output.decode()) == [1, 2]


@posix
def test_a_terminal_as_stdin_and_stdout_is_read_in_threads_and_stays_blocking(tmp_path: Path) -> None:
    import pty
    import tty

    parent, child = pty.openpty()
    tty.setraw(child)
    process = subprocess.Popen(
        [*COMMAND, "--stdio"], stdin=child, stdout=child, stderr=subprocess.PIPE, env=environment(tmp_path)
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
    assert ids(output.decode()) == [1, 2]


@posix
@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1), (0, 1, 2), (2,), (1, 2)])
def test_descriptors_closed_at_the_start_end_the_process_with_a_word_or_are_done_without(
    tmp_path: Path, closed: tuple[int, ...]
) -> None:
    closing = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
    done = run(tmp_path, stdin=HANDSHAKE, command=["/bin/sh", "-c", f"exec {shlex.join(COMMAND)} --stdio {closing}"])
    assert "Traceback" not in done.stderr
    if closed == (2,):
        assert done.returncode == 0
        assert ids(done.stdout) == [1, 2]
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert 2 in closed or "stdin or stdout cannot be used" in done.stderr


STRAY = """
import os, subprocess
from responses_mcp.toolsets.answer import AnswerToolset
real = AnswerToolset._answer

async def noisy(self, *args):
    print("stray print")
    os.write(1, b"stray write\\n")
    subprocess.run(["echo", "stray child"])
    subprocess.run(["cat"], timeout=30)
    return await real(self, *args)

AnswerToolset._answer = noisy
"""


@pytest.mark.rule("P5")
@posix
async def test_stray_prints_and_children_cannot_touch_the_wire(tmp_path: Path) -> None:
    async with (
        open_fake_api() as api,
        server_process(environment(tmp_path, api.base_url), command=python(STRAY + MAIN)) as server,
    ):
        with trio.fail_after(WAIT):
            assert "result" in await server.client.call("answer", {"query": "x"})  # a stray byte would fail the client
    assert sorted(server.stderr.splitlines()) == [b"stray child", b"stray print", b"stray write"]


@pytest.mark.rule("spec 2.1")
@pytest.mark.parametrize("locale", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "cp932"}])
async def test_text_is_utf_8_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    async with open_fake_api() as api:
        env = environment(tmp_path, api.base_url, **locale)
        # The link of an editable installation is read in the encoding of the locale, which has no word for every path.
        env["PYTHONPATH"] += os.pathsep + sysconfig.get_path("purelib")
        async with server_process(env, command=[sys.executable, "-S", *COMMAND[1:]]) as server:
            with trio.fail_after(WAIT):
                answer = await server.client.call("answer", {"query": "今日の天気は？ ☔ 𠮷"})
    assert "今日の天気は？ ☔ 𠮷" in answer["result"]["structuredContent"]["answer"]
    assert api.requests[0].json is not None
    assert api.requests[0].json["input"].startswith("今日の天気は？ ☔ 𠮷\n\n[Hints] today=")


@pytest.mark.parametrize("argument", ["--stdio", "help"])
def test_the_collector_of_garbage_works_again_behind_the_start(argument: str, tmp_path: Path) -> None:
    tells = "import atexit, gc, sys\natexit.register(lambda: print(gc.isenabled(), file=sys.stderr))"
    done = run(tmp_path, argument, stdin=HANDSHAKE, command=python(tells + MAIN))
    assert done.stderr.strip() == "True"
