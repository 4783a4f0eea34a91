"""What `--debug PATH` may name: never what the protocol is spoken on, and nothing that others can read."""

import json
import logging
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.debug_lines import configured
from tests.processes import COMMAND, PING, PONG, WAIT, environment, posix, python, read_terminal, run

pytestmark = pytest.mark.rule("P5", "P13", "spec 8.1")

log = logging.getLogger("responses_mcp.somewhere")


def served(home: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return run(home, "--stdio", *arguments, stdin=PING, **more)


def is_refused(stderr: str) -> bool:
    lines = stderr.splitlines()
    return " WARNING the debug file " in lines[0] and "protocol" in lines[0] and "recv method=ping" in stderr


# Every way to name what stdout is. In Linux, the first three lead over /proc/self/fd.


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link", "/dev/stdin"])
@pytest.mark.parametrize("given", ["--debug", "DEBUG", "server.debug_file"])
def test_a_debug_file_that_is_the_wire_is_refused_and_the_log_goes_to_stderr(
    tmp_path: Path, name: str, given: str
) -> None:
    if name == "link":
        name = str(tmp_path / name)
        os.symlink("/dev/stdout", name)
    if given == "server.debug_file":
        (tmp_path / "config.yaml").write_text(
            json.dumps({"server": {"debug": True, "debug_file": name}}), encoding="utf-8"
        )
        done = served(tmp_path, "--config", "config.yaml")
    else:
        done = served(tmp_path, "--debug", name) if given == "--debug" else served(tmp_path, DEBUG=name)
    assert (done.returncode, done.stdout) == (0, PONG)
    assert is_refused(done.stderr)


@posix
@pytest.mark.parametrize("name", ["out", "linked"])
def test_the_file_into_which_stdout_leads_is_no_debug_file(tmp_path: Path, name: str) -> None:
    with (tmp_path / "out").open("wb") as out:
        os.link(tmp_path / "out", tmp_path / "linked")
        done = served(tmp_path, "--debug", name, stdout=out)
    assert (tmp_path / "out").read_text(encoding="utf-8") == PONG
    assert is_refused(done.stderr)


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/tty", "by its name"])
def test_a_terminal_that_is_stdout_is_no_debug_file(tmp_path: Path, name: str) -> None:
    import pty

    parent, child = pty.openpty()
    name = os.ttyname(child) if name == "by its name" else name
    # As the terminal that controls the process, which is what /dev/tty means.
    leader = f"import os, sys; os.setsid(); os.close(os.open({os.ttyname(child)!r}, os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [*python(leader), *COMMAND, "--stdio", "--debug", name],
        stdin=child,
        stdout=child,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    )
    os.close(child)
    try:
        os.write(parent, PING + b"\x04")  # and the end of input
        _, stderr = process.communicate(timeout=WAIT)
        said = read_terminal(parent)
    finally:
        process.kill()
        os.close(parent)
    assert b"recv method" not in said
    assert is_refused(stderr.decode())


@pytest.mark.parametrize("given", ["--debug", "DEBUG", "server.debug_file"])
def test_a_dash_means_stderr_and_no_file_of_that_name(tmp_path: Path, given: str) -> None:
    lower = {"server": {"debug": True, "debug_file": "-" if given == "server.debug_file" else "log"}}
    (tmp_path / "config.yaml").write_text(json.dumps(lower), encoding="utf-8")
    env: dict[str, Any] = {"DEBUG": "-"} if given == "DEBUG" else {}
    done = served(tmp_path, "--config", "config.yaml", *(["--debug", "-"] if given == "--debug" else []), **env)
    assert (done.returncode, done.stdout) == (0, PONG)
    assert done.stderr.count("recv method=ping") == 1
    assert "WARNING" not in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["config.yaml"]


@posix
def test_stderr_by_its_name_gets_each_line_once(tmp_path: Path) -> None:
    done = served(tmp_path, "--debug", "/dev/stderr")
    assert done.stderr.count("recv method=ping") == 1
    assert "logging to stderr only" in done.stderr


# Files


@posix
def test_a_pipe_with_a_reader_and_the_null_device_are_taken(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    with configured(debug_file=tmp_path / "fifo"), configured(debug_file=os.devnull):
        log.debug("one")
    assert os.read(reader, 1000).count(b"one") == 1
    os.close(reader)
    assert "WARNING" not in capfd.readouterr().err
