"""`openai-responses-mcp demo`, beside what the README shows of it: who stops reading is no failure."""

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.settings.schema import SETTINGS
from tests.processes import COMMAND, MAIN, ROOT, WAIT, python, run


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_ctrl_c_reaches_the_demo_alone_and_ends_it_in_one_line() -> None:
    command = [COMMAND[0], "-u", *COMMAND[1:], "demo"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        while not running.stdout.readline().startswith(b"2. Tools"):
            pass
        others = subprocess.run(
            ["pgrep", "-g", str(running.pid)], capture_output=True, text=True, check=True, timeout=WAIT
        )
        assert others.stdout.split() == [str(running.pid)]
        running.send_signal(signal.SIGINT)
        assert running.stderr.read() == b"openai-responses-mcp: interrupted.\n"
        assert running.wait(WAIT) == 130


@pytest.mark.skipif(sys.platform == "win32", reason="needs a program that ends at once")
def test_a_server_that_ends_early_is_told_in_one_line(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", command=python("import sys\nsys.executable = '/bin/false'" + MAIN))
    assert (done.returncode, done.stderr) == (
        1,
        "openai-responses-mcp: the server ended early; 'openai-responses-mcp doctor' says why.\n",
    )


def test_the_demo_is_the_same_whatever_the_settings_of_the_user_are(tmp_path: Path) -> None:
    given: dict[str, Any] = {setting.env: "0" for setting in SETTINGS if setting.env} | {
        "SSL_CERT_FILE": str(tmp_path / "missing.pem"),
        "HTTP_PROXY": "http://127.0.0.1:9",
        "USAGE_LEDGER": "1",
        "RESEARCH_STATE_DIR": str(tmp_path / "state"),
    }
    done = run(tmp_path, "demo", **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert "used_search: true" in done.stdout
    assert not (tmp_path / "state").exists()
