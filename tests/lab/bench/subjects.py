"""What is measured: this server, others with the same tools, and bare programs to compare with."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import responses_mcp
from tests.processes import COMMAND, ROOT


@dataclass(frozen=True)
class Subject:
    """A program to measure. `only` names the one measure that it is there for; a server has none."""

    key: str
    description: str  # one line, with versions
    command: list[str]
    only: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    reads_settings: bool = False  # whom to ask, from a file, as the environment does not tell it

    def settle(self, home: Path, base_url: str) -> None:
        """Write what the program reads of its home as it starts."""
        if self.reads_settings:
            folder = home / ".config" / "openai-responses-mcp"
            folder.mkdir(parents=True)
            (folder / "config.yaml").write_text(f"openai:\n  base_url: {base_url}\n", encoding="utf-8")

    def environment(self, home: str, base_url: str) -> dict[str, str]:
        """Return all that the program sees of the environment: as bare as a client gives it, and whom to ask."""
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        api = {"OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "sk-bench-0123456789", "NO_PROXY": "127.0.0.1"}
        return {**kept, **api, "HOME": home, **self.env}

    def limited(self, files: int | None) -> list[str]:
        """Return the command, for a process that can never have more than `files` open files."""
        if files is None:
            return self.command
        return ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *self.command]


def own() -> list[Subject]:
    """Return the subjects that need nothing but this environment."""
    python = f"Python {platform.python_version()}"
    trio, httpx = (f"{name} {metadata.version(name)}" for name in ("trio", "httpx"))
    path = {"PYTHONPATH": str(ROOT)}
    post = [sys.executable, "-m", "tests.lab.bench.bare_post"]
    ours = f"openai-responses-mcp {responses_mcp.__version__} on {python}"
    return [
        Subject("ours", ours, [*COMMAND, "--stdio"], env=path),
        Subject("python", f"{python} that starts and ends", [sys.executable, "-I", "-c", "pass"], "start"),
        Subject("trio", f"{python} that imports {trio}", [sys.executable, "-I", "-c", "import trio"], "start"),
        Subject("httpx", f"{python} that posts with {httpx} on {trio}, and nothing else", post, "overhead", path),
    ]


def original(folder: Path) -> Subject:
    """Return the server that this one replaces, built in `folder`. Raises OSError if there is none."""
    package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    commands = package.get("bin", {})
    named = [commands] if isinstance(commands, str) else list(commands.values())
    found = [folder / name for name in ["dist/index.js", *named] if (folder / name).is_file()]
    if not found:
        raise FileNotFoundError(f"no dist/index.js and no command of package.json in {folder}")
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=False).stdout.strip()
    description = f"{package.get('name')} {package.get('version')}, the original, on Node {node.removeprefix('v')}"
    return Subject("original", description, ["node", str(found[0].resolve()), "--stdio"], reads_settings=True)


def before(folder: Path) -> Subject:
    """Return another state of this server, checked out in `folder` with an environment in `.venv`.

    Raises OSError if there is none.
    """
    folder = folder.absolute()
    python = folder / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        raise FileNotFoundError(f"no .venv with a Python in {folder}")
    ran = ["git", "-C", str(folder), "log", "-1", "--format=%h of %cs"]
    state = subprocess.run(ran, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    command = [str(python), "-m", "responses_mcp", "--stdio"]
    return Subject("before", f"this server at {state}", command, env={"PYTHONPATH": str(folder)})


def raise_file_limit() -> None:
    """Let this process and its children have as many open files as the system allows."""
    if os.name != "posix":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = 20_000 if hard == resource.RLIM_INFINITY else min(hard, 20_000)
    if soft != resource.RLIM_INFINITY and soft < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
