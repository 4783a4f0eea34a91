"""A short run of the soak: `nox -s soak` is the long one."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.smoke

HERE = Path(__file__).parents[2]


@pytest.mark.skipif(sys.platform == "win32", reason="the upstream reads its commands from a pipe without threads")
def test_a_few_hundred_calls_of_every_kind_go_as_they_should() -> None:
    command = [sys.executable, "-m", "tests.soak", "--calls", "400", "--seed", "20261122"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-4000:]
    assert done.stdout.endswith("seed 20261122: all is well\n")
