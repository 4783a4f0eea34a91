"""What holds for every test of a command: what it keeps, it keeps in a folder of the test."""

from pathlib import Path

import pytest

ELSEWHERE = (
    *(f"XDG_{kind}_HOME" for kind in ("CACHE", "CONFIG", "DATA", "STATE")),
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"),
)
"""Variables that name such a folder, here or for a client."""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let home, configuration, cache and state be in the folder of the test, on any system; processes inherit it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "AppData" / "Roaming"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "AppData" / "Local"))
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
