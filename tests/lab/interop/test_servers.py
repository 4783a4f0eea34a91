"""An independent Responses API, @copilotkit/aimock: what `ask` makes of it (`nox -s lab -- interop`)."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import pytest

from responses_mcp.settings.time_zone import today_in
from tests.lab.interop.node import Node
from tests.processes import environment, read_terminal

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals and a terminal of POSIX")

# It reports searches, but neither sources nor annotations, so the tool stands for what was consulted.
ANSWER = f"Python 3.14 came out on 7 October 2025, says its release schedule.\n\nSources:\n- web_search ({today_in('Asia/Tokyo')})"


@dataclass
class Mock:
    """A running server, and what it says of each exchange when that is over."""

    process: subprocess.Popen[str]
    lines: Queue[dict[str, Any]] = field(default_factory=Queue)

    def __post_init__(self) -> None:
        Thread(target=self._listen, daemon=True).start()
        self.url: str = self.line()["url"]

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self.lines.put(json.loads(line))

    def line(self) -> dict[str, Any]:
        return self.lines.get(timeout=WAIT)


@pytest.fixture(scope="module")
def mock(node: Node) -> Iterator[Mock]:
    with node.started(str(node.folder / "aimock.mjs")) as process:
        try:
            yield Mock(process)
        finally:
            process.kill()


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(mock: Mock, tmp_path: Path) -> Start:
    """Return a function that starts `ask`."""
    more = {"NO_PROXY": "127.0.0.1", "OPENAI_MAX_RETRIES": "0", "PYTHONUTF8": "1", "PYTHONPATH": ""}
    env = environment(tmp_path, mock.url, **more)

    def run(*arguments: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "responses_mcp", "ask", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=env,
            encoding="utf-8",
        )

    return run


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=WAIT)
    return process.returncode, out, err


def test_it_answers(mock: Mock, start: Start) -> None:
    code, out, err = ended(start("When was the release?", "--json"))
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found.pop("usage")["attempts"] == 1
    assert found == {"answer": ANSWER, "used_search": True, "citations": [], "model": "gpt-5.2"}
    assert mock.line() == {"path": "/v1/responses", "finished": True}


@POSIX
def test_its_stream_is_told_as_phases_on_a_terminal(mock: Mock, start: Start) -> None:
    import pty

    leader, follower = pty.openpty()
    process = start("When was the release?", stderr=follower)
    os.close(follower)
    code, out, _ = ended(process)
    shown = read_terminal(leader).decode()
    os.close(leader)
    assert code == 0
    assert out == f"{ANSWER}\n"
    phases = [line.partition(" s  ")[2].strip() for line in shown.split("\r") if " s  " in line]
    assert list(dict.fromkeys(phases)) == [
        *("asking gpt-5.2", "thinking", "searched: python 3.14 release date", "searched: pep 745", "writing")
    ]
    assert mock.line()["finished"]


@POSIX
def test_ctrl_c_closes_the_connection_amid_the_answer(mock: Mock, start: Start) -> None:
    import pty

    leader, follower = pty.openpty()
    process = start("Answer slowly.", stderr=follower)
    os.close(follower)
    shown = ""
    while "writing" not in shown:
        shown += os.read(leader, 4096).decode()
    process.send_signal(signal.SIGINT)
    assert mock.line() == {"path": "/v1/responses", "finished": False}
    assert ended(process)[:2] == (-signal.SIGINT, "")
    os.close(leader)


@pytest.mark.parametrize(
    ("query", "said"), [("Are you busy?", "limits the rate"), ("Be cut off.", "ask again"), ("Unknown?", "404")]
)
def test_its_failures_are_told_in_a_sentence(mock: Mock, start: Start, query: str, said: str) -> None:
    code, out, err = ended(start(query))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said in err.lower()
    mock.line()
