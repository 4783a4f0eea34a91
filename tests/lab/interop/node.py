"""The clients that run on Node: installed outside the repository, and driven line by line."""

import json
import os
import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.lab.interop.fake import Fake
from tests.lab.node import npm_install

SCRIPTS = Path(__file__).parent / "js"
WAIT = 90  # seconds; a bound for a stuck machine, not an expectation


@dataclass(frozen=True)
class Node:
    """Node of the release that the clients need, and what to start it with."""

    folder: Path
    env: dict[str, str]
    fake: Fake

    def conduct(self, script: str, *arguments: str, **env: str) -> dict[str, dict[str, Any]]:
        """Run a script of tests/lab/interop/js, tell it what the fake API sees, and return its line for each check."""
        found: dict[str, dict[str, Any]] = {}
        with self.started(str(self.folder / script), *arguments, **env) as process:
            limit = threading.Timer(WAIT, process.kill)
            limit.start()
            assert process.stdin
            assert process.stdout
            for text in process.stdout:
                line = json.loads(text)
                if "await" in line:
                    process.stdin.write(self._wait(line["await"], line["query"]) + "\n")
                    process.stdin.flush()
                else:
                    found[line.pop("check")] = line
            process.wait()
            limit.cancel()
        assert process.returncode == 0, f"{script} ended with {process.returncode}"
        return found

    def _wait(self, event: str, query: str) -> str:
        try:
            {"request": self.fake.wait_request, "hang_up": self.fake.wait_hang_up}[event](query)
        except trio.TooSlowError:
            return "not within the time"
        return "seen"

    def started(self, *command: str, **env: str) -> subprocess.Popen[str]:
        """Start Node, with pipes for stdin and stdout."""
        return subprocess.Popen(
            ["node", *command],
            executable=shutil.which("node", path=self.env["PATH"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**self.env, **env},
            encoding="utf-8",
        )

    def program(self, package: str, name: str) -> str:
        """Return the file behind a command that a package brings."""
        root = self.folder / "node_modules" / package
        return str(root / json.loads((root / "package.json").read_text(encoding="utf-8"))["bin"][name])


def install(folder: Path, fake: Fake, *, home: Path) -> Node:
    """Install what js/package.json names, unless it is there already, and put the scripts beside it."""
    try:
        npm_install(folder, SCRIPTS / "package.json")
    except FileNotFoundError as error:
        pytest.skip(f"{error}; the clients that run on Node need it")
    for script in SCRIPTS.glob("*.mjs"):  # modules are looked for beside the script that imports them
        shutil.copy(script, folder)
    own = folder / "node_modules" / ".bin"  # the clients' own Node comes before the machine's
    path = os.pathsep.join([str(own), os.environ["PATH"]])
    return Node(folder, {**os.environ, "PATH": path, "HOME": str(home)}, fake)
