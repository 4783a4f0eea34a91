"""The command that starts this program, as the configuration of a client should have it."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from responses_mcp.commands.terminal import NAME
from responses_mcp.settings.files import absolute


def this_executable() -> Path | None:
    """Return the absolute path of the script that this installation has, None where there is only the module."""
    folders = Path(sysconfig.get_path("scripts")), Path(sys.executable).parent
    return executable(sys.argv[0], *folders, windows=os.name == "nt")


def executable(program: str, *folders: Path, windows: bool) -> Path | None:
    """Return the script that runs as `program`, else that in the first of `folders` that has it.

    Links are not followed: the one in the user's `bin` outlives an update, what it leads to may not.
    """
    file = f"{NAME}.exe" if windows else NAME
    started = Path(program)
    places = [*([started.with_name(file)] if started.stem == NAME else []), *(folder / file for folder in folders)]
    return next((absolute(place) for place in places if place.is_file()), None)


def command_of(script: Path | None) -> tuple[str, ...]:
    """Return what starts a script; where there is none, what starts the module."""
    return (sys.executable, "-m", "responses_mcp") if script is None else (str(script),)
