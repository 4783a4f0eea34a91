"""What runs: Python, this program, and the path that a client's configuration should have."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from responses_mcp import __version__
from responses_mcp.commands.doctor.findings import Finding, ok, warn
from responses_mcp.commands.terminal import NAME

_FILE: Final = f"{NAME}.exe" if os.name == "nt" else NAME
# Environments that uvx, `uv run --with` and `pipx run` throw away when they like.
_THROWN_AWAY: Final = ("archive-v0", "builds-v0", ".cache", "Caches")


def check_program() -> Iterator[Finding]:
    """Say which Python and which executable this is."""
    implementation, version = platform.python_implementation(), platform.python_version()
    yield ok("python", f"{implementation} {version} on {platform.platform()}")
    yield _executable(executable())


def executable() -> Path | None:
    """Return the absolute path of the installed command, links as they are; None where there is only the module."""
    started = Path(sys.argv[0])
    places = [
        *([started.with_name(_FILE)] if started.stem == NAME else []),
        Path(sysconfig.get_path("scripts"), _FILE),
        Path(sys.executable).with_name(_FILE),
    ]
    found = next((place for place in places if place.is_file()), None)
    return None if found is None else found.absolute()


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
