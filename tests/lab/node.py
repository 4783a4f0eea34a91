"""Packages of npm that the laboratory needs, installed outside the repository."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

INSTALL_WAIT = 300  # seconds; a bound for a stuck machine, not an expectation


def npm_install(folder: Path, manifest: Path) -> None:
    """Install what a package.json names, unless it is there already. Raises FileNotFoundError without npm."""
    npm = shutil.which("npm")
    if npm is None:
        raise FileNotFoundError("npm is not installed")
    done, wanted = folder / "installed.json", manifest.read_text(encoding="utf-8")
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(manifest, folder)
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        subprocess.run(command, cwd=folder, check=True, timeout=INSTALL_WAIT)
        done.write_text(wanted, encoding="utf-8")
