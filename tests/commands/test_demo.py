"""`openai-responses-mcp demo`, beside what the README shows of it: who stops reading is no failure."""

import subprocess
import sys

import pytest

from tests.processes import COMMAND, ROOT, WAIT


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    command = [COMMAND[0], "-u", *COMMAND[1:], "demo"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith(b"openai-responses-mcp demo")
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(WAIT) == 0
