"""What runs: Python, this program, and the path that a client's configuration should have."""

from __future__ import annotations

import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from responses_mcp import __version__
from responses_mcp.commands.doctor.findings import Finding, ok, warn
from responses_mcp.commands.executable import this_executable
from responses_mcp.commands.terminal import NAME

# Environments that uvx, `uv run --with` and `pipx run` throw away when they like.
_THROWN_AWAY: Final = ("archive-v0", "builds-v0", ".cache", "Caches")


def check_program() -> Iterator[Finding]:
    """Say which Python and which executable this is."""
    implementation, version = platform.python_implementation(), platform.python_version()
    yield ok("python", f"{implementation} {version} on {platform.platform()}")
    yield _executable(this_executable())


def _executable(path: Path | None) -> Finding:
    keep = f'install it for good, with "uv tool install {NAME}" or "pipx install {NAME}"'
    if path is None:
        return warn(
            "program",
            f"{NAME} {__version__}, without an executable of its own",
            f'{keep}, or give your client the command "{sys.executable}" with the arguments -m responses_mcp --stdio',
        )
    what = f"{NAME} {__version__}; the path for your client's configuration is {path}"
    if _is_temporary(path.resolve()):
        return warn("program", f"{what}, which is in a folder for temporary files", keep)
    return ok("program", what)


def _is_temporary(path: Path) -> bool:
    return path.is_relative_to(Path(tempfile.gettempdir()).resolve()) or any(
        name in path.parts for name in _THROWN_AWAY
    )
