"""The command that starts this program: an installed script where there is one, links as they are."""

import os
import sys
from pathlib import Path

import pytest

from responses_mcp.commands.clients import command_of, executable, this_executable
from responses_mcp.commands.terminal import NAME


@pytest.mark.parametrize(
    ("program", "windows", "files", "found"),
    [
        ("bin/openai-responses-mcp", False, ["bin/openai-responses-mcp"], "bin/openai-responses-mcp"),
        ("S/openai-responses-mcp", True, ["S/openai-responses-mcp.exe"], "S/openai-responses-mcp.exe"),
        ("S/openai-responses-mcp.exe", True, ["S/openai-responses-mcp.exe"], "S/openai-responses-mcp.exe"),
        ("x/__main__.py", False, ["py/openai-responses-mcp"], "py/openai-responses-mcp"),
        ("", False, ["py/openai-responses-mcp"], "py/openai-responses-mcp"),
        ("x/__main__.py", False, ["x/__main__.py", "x/openai-responses-mcp"], None),
        ("bin/openai-responses-mcp", False, [], None),
    ],
)
def test_the_script_is_the_one_that_runs_or_that_is_in_the_folders_of_this_python(
    tmp_path: Path, program: str, windows: bool, files: list[str], found: str | None
) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    expected = None if found is None else tmp_path / found
    started = str(tmp_path / program) if program else ""
    assert executable(started, tmp_path / "none", tmp_path / "py", windows=windows) == expected


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").touch()
    (tmp_path / NAME).symlink_to("real")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / NAME)])
    assert command_of(this_executable()) == (str(tmp_path / NAME),)


def test_without_a_script_the_module_is_started() -> None:
    assert command_of(None) == (sys.executable, "-m", "responses_mcp")
