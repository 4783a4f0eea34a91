"""Where runs and the ledger are kept: without that folder, calls fail though the key is right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from responses_mcp.commands.findings import Finding, fail, ok
from responses_mcp.commands.terminal import counted
from responses_mcp.research.runs_file import RunsFile
from responses_mcp.settings.model import Settings


def check_state(settings: Settings) -> Iterator[Finding]:
    """Look at the folder of runs and ledger, if one of them, or a limit of the day, is in use."""
    if not ("research" in settings.toolsets or settings.usage.ledger or settings.limits.day_cost_usd is not None):
        return
    folder = settings.research.state_dir
    fix = "set research.state_dir (RESEARCH_STATE_DIR) to a folder that you may write to"
    if folder is None:
        yield fail("state", "no folder is set for runs and the ledger", fix)
    elif _can_be_written(Path(folder)):
        going_on = RunsFile(Path(folder)).count_going_on()
        told = f"; {counted(going_on, 'run')} going on at the API" if going_on else ""
        yield ok("state", f"runs and the ledger are kept in {folder}{told}")
    else:
        yield fail("state", f"{folder} cannot be written to, so no run starts and no call is recorded", fix)


def _can_be_written(folder: Path) -> bool:
    """Tell whether there can be files in a folder, which need not be there yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
