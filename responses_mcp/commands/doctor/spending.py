"""What may be spent, and where runs and the ledger are kept: without either, calls fail though the key is right."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from responses_mcp.commands.findings import Finding, fail, ok, warn
from responses_mcp.commands.terminal import counted
from responses_mcp.research.runs_file import RunsFile
from responses_mcp.settings.model import Settings
from responses_mcp.usage.ledger import read_ledger
from responses_mcp.usage.limits import dollars


def check_spending(settings: Settings) -> Iterator[Finding]:
    """Look at the limits and at the folder of runs, where they are used."""
    folder = settings.research.state_dir
    limit = settings.limits.day_cost_usd
    if "research" in settings.toolsets or settings.usage.ledger or limit is not None:
        yield _folder(folder)
    for field in fields(settings.limits):
        if (most := getattr(settings.limits, field.name)) is not None and most <= 0:
            name = f"limits.{field.name} (LIMITS_{field.name.upper()})"
            yield fail("limits", f"{name} is {most:g}, so no request is made", "raise it, or leave it out")
    if limit and folder is not None:
        try:
            spent = sum(row.usd for row in read_ledger(folder, days=1, by="day") or ())
        except (sqlite3.Error, OSError) as error:
            yield warn("limits", f"the ledger cannot be read ({error})", f"check the folder {folder}")
            return
        told = f"{dollars(spent)} of {dollars(limit)} (limits.day_cost_usd) are spent today"
        if spent >= limit:
            fix = "raise it (LIMITS_DAY_COST_USD), or wait until 0:00 UTC"
            yield fail("limits", f"{told}, so no request is made", fix)
        else:
            yield ok("limits", told)


def _folder(folder: str | None) -> Finding:
    fix = "set research.state_dir (RESEARCH_STATE_DIR) to a folder that you may write to"
    if folder is None:
        return fail("state", "no folder is set for runs and the ledger", fix)
    if can_be_written(Path(folder)):
        going_on = RunsFile(Path(folder)).count_going_on()
        told = f"; {counted(going_on, 'run')} going on at the API" if going_on else ""
        return ok("state", f"runs and the ledger are kept in {folder}{told}")
    return fail("state", f"{folder} cannot be written to, so no run starts and no call is recorded", fix)


def can_be_written(folder: Path) -> bool:
    """Tell whether there can be files in a folder, which need not be there yet."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
