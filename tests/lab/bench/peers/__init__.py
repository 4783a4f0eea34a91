"""Servers to compare with: the same three tools, written with the official SDKs for Python and for TypeScript.

Each is what a developer would write who knows the SDK and wants a quick server: its low-level API, OpenAI's own
client, one client for all calls, and nothing that the tools do not need. Schemas, instructions and request bodies are
those of this server, so that all subjects of a benchmark read and write the same.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from responses_mcp.asking import Asker
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import SYSTEM_POLICY
from responses_mcp.toolsets.answer import INSTRUCTIONS, AnswerToolset
from tests.lab.bench.subjects import Subject
from tests.lab.node import INSTALL_WAIT, npm_install

HERE = Path(__file__).parent
PACKAGES = ["mcp==2.3.*", "openai==3.54.*"]


def install(folder: Path) -> list[Subject]:
    """Install the peers into `folder`, unless they are there already, and return them.

    This blocks, for a minute or so the first time. One that cannot be installed is left out, with a line on stderr.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "settings.json"
    settings.write_text(json.dumps(_settings(), ensure_ascii=False, indent=1), encoding="utf-8")
    peers: list[Subject] = []
    for key, installer in {"python-sdk": _python, "typescript-sdk": _typescript}.items():
        try:
            description, command = installer(folder / key)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{key} is left out: {error}", file=sys.stderr)
        else:
            peers.append(Subject(key, description, [*command, str(settings)]))
    return peers


def _sent(profile: Profile) -> dict[str, str]:
    return {name: getattr(profile, name) for name in ("model", "reasoning_effort", "verbosity")}


def _settings() -> dict[str, object]:
    """Return what both servers read as they start: what clients are shown, and what goes into each request."""
    settings = Settings()
    tools = [tool.definition for tool in AnswerToolset(lambda: Asker(settings)).tools]
    profiles = settings.model_profiles
    return {
        "tools": tools,
        "instructions": INSTRUCTIONS,
        "policy": settings.policy.instructions or SYSTEM_POLICY,
        "profiles": {tool["name"]: _sent(profiles.get(tool["name"], profiles["answer"])) for tool in tools},
        "recency_days": settings.search.defaults.recency_days,
        "max_results": settings.search.defaults.max_results,
        "max_citations": settings.policy.max_citations,
    }


def _python(folder: Path) -> tuple[str, list[str]]:
    python = str(folder.joinpath(*(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python"))))
    done, wanted = folder / "installed.txt", " ".join([sys.version, *PACKAGES])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        _said(sys.executable, "-m", "venv", "--clear", str(folder))
        _said(python, "-m", "pip", "install", "--quiet", *PACKAGES)
        done.write_text(wanted, encoding="utf-8")
    report = "from importlib.metadata import version; print(*map(version, ('mcp', 'openai')))"
    mcp, openai = _said(python, "-I", "-c", report).split()
    description = f"mcp {mcp} with openai {openai} on Python {platform.python_version()}"
    # Isolated: neither PYTHONPATH nor a user's packages may come before what is installed here.
    return description, [python, "-I", str(HERE / "python_sdk_server.py")]


def _typescript(folder: Path) -> tuple[str, list[str]]:
    manifest = HERE / "typescript" / "package.json"
    npm_install(folder, manifest)
    # Modules are looked for beside the script that imports them.
    shutil.copy(HERE / "typescript" / "server.mjs", folder)
    # The release that the packages need, which may not be the machine's; the file itself, so that no shell starts it.
    node = str(folder / "node_modules" / "node" / "bin" / ("node.exe" if os.name == "nt" else "node"))
    wanted = json.loads(manifest.read_text(encoding="utf-8"))["dependencies"]
    named = " with ".join(f"{package} {wanted[package]}" for package in ("@modelcontextprotocol/sdk", "openai"))
    description = f"{named} on Node {_said(node, '--version').removeprefix('v')}"
    return description, [node, str(folder / "server.mjs")]


def _said(*command: str) -> str:
    """Return what a command printed; what it has to say of a failure is on stderr."""
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", timeout=INSTALL_WAIT, check=True)
    return done.stdout.strip()
