"""The simulation in small: some schedules, the same each time. `nox -s lab -- simulation` runs many more, and others."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frames import Frames
from tests.simulation.model import check
from tests.simulation.run import simulate

SCHEDULES = 400
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.rule("P2")
def test_whatever_happens_in_whatever_order_the_promises_hold() -> None:
    failures = {}
    for seed in range(SCHEDULES):
        verdict = check(simulate(seed))
        if verdict.violations:
            failures[seed] = verdict.violations
    assert failures == {}  # python -m tests.lab.simulation calls --replay SEED


def test_a_seed_replays_to_the_last_event() -> None:
    for seed in range(0, 200, 10):
        assert simulate(seed) == simulate(seed)


def test_a_seed_replays_in_another_process() -> None:
    # There the order in sets of texts is another one.
    script = "from tests.simulation.test_simulation import told; print(told())"
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == told()


def told() -> str:
    """Return a digest of all that happens in some runs."""
    return hashlib.sha256(repr([simulate(seed) for seed in range(7, 200, 10)]).encode()).hexdigest()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_both_framings_are_read_in_any_pieces(size: int) -> None:
    data = b'Content-Length: 9\r\n\r\n{"a": 17}{"b": 2}\nContent-Length: 2\r\n\r\n{}'
    frames = Frames()
    found = [body for start in range(0, len(data), size) for body in frames.feed(data[start : start + size])]
    assert found == [b'{"a": 17}', b'{"b": 2}', b"{}"]
    assert frames.rest == b""


@pytest.mark.parametrize("data", [b"Content-Length: 3\r\n\r\n{}Content-Length: 2\r\n\r\n{}", b"x" * 40, b"\n{}"])
def test_what_is_neither_a_frame_nor_a_line_is_an_error(data: bytes) -> None:
    frames = Frames()
    with pytest.raises(ValueError, match="no header"):
        frames.feed(data + b"." * 40)
