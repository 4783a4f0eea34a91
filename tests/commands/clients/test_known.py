"""The clients: where each keeps its servers, what an entry of ours is there, and the command that starts this program."""

import os
import sys
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Literal

import pytest

from responses_mcp.commands.clients.known import CLIENTS, Machine, command_of, this_executable
from responses_mcp.commands.terminal import NAME
from responses_mcp.settings import load_settings

PASSED = {"MODEL_ANSWER": "m"}
SHORT = {"OPENAI_API_TIMEOUT": "55000", "ANSWER_EFFORT": "low"}


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").touch()
    (tmp_path / NAME).symlink_to("real")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / NAME)])
    assert command_of(this_executable()) == (str(tmp_path / NAME),)


def elsewhere(system: Literal["linux", "mac", "windows"], **environ: str) -> Machine:
    kind: type[PurePath] = PureWindowsPath if system == "windows" else PurePosixPath
    home = {"linux": "/home/ann", "mac": "/Users/ann", "windows": "C:\\Users\\ann"}[system]
    return Machine(system=system, home=kind(home), folder=kind(home, "project"), environ=environ, command=("x",))


@pytest.mark.parametrize(
    ("client", "machine", "path"),
    [
        ("claude-code", elsewhere("linux"), "/home/ann/.claude.json"),
        ("claude-code", elsewhere("linux", CLAUDE_CONFIG_DIR="/c"), "/c/.claude.json"),
        (
            "claude-desktop",
            elsewhere("mac"),
            "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", elsewhere("windows", APPDATA="D:\\R"), "D:\\R\\Claude\\claude_desktop_config.json"),
        ("claude-desktop", elsewhere("linux"), "/home/ann/.config/Claude/claude_desktop_config.json"),
        ("vscode", elsewhere("linux", XDG_CONFIG_HOME="/x"), "/x/Code/User/mcp.json"),
        ("codex", elsewhere("windows", CODEX_HOME="D:\\codex"), "D:\\codex\\config.toml"),
        ("codex", elsewhere("linux", CODEX_HOME="here"), "/home/ann/project/here/config.toml"),
        ("gemini", elsewhere("linux", GEMINI_CLI_HOME="/g"), "/g/.gemini/settings.json"),
        ("zed", elsewhere("linux", XDG_CONFIG_HOME="/x"), "/x/zed/settings.json"),
        ("zed", elsewhere("mac", XDG_CONFIG_HOME="/x"), "/Users/ann/.config/zed/settings.json"),
        ("zed", elsewhere("windows", APPDATA="D:\\R"), "D:\\R\\Zed\\settings.json"),
        ("goose", elsewhere("mac", XDG_CONFIG_HOME="/x"), "/x/goose/config.yaml"),
        ("goose", elsewhere("windows", APPDATA="D:\\R"), "D:\\R\\Block\\goose\\config\\config.yaml"),
        ("opencode", elsewhere("mac", XDG_CONFIG_HOME="/x"), "/x/opencode/opencode.json"),
        ("opencode", elsewhere("windows", APPDATA="D:\\R"), "C:\\Users\\ann\\.config\\opencode\\opencode.json"),
    ],
)
def test_the_file_is_where_the_client_looks_for_it(client: str, machine: Machine, path: str) -> None:
    assert str(CLIENTS[client].user_file(machine)) == path


SEARCH = {"MCP_TOOLSETS": "answer,search", "SEARCH_TIMEOUT_MS": "30000", "SEARCH_MAX_ATTEMPTS": "3"}


@pytest.mark.parametrize(
    ("client", "environ", "part"),
    [
        ("claude-code", {}, {"timeout": 330_000}),
        ("claude-code", {"OPENAI_API_TIMEOUT": "60001"}, {"timeout": 91_000}),
        ("gemini", {**SEARCH, "OPENAI_API_TIMEOUT": "1000"}, {"timeout": 120_000}),
        ("codex", {"OPENAI_API_TIMEOUT": "600000"}, {"tool_timeout_sec": 630, "startup_timeout_sec": 30}),
        ("vscode", {}, {"type": "stdio"}),
        ("zed", {"OPENAI_API_TIMEOUT": "60000"}, {"timeout": 90}),
        ("claude-desktop", SEARCH, {"env": {**PASSED, **SHORT, "SEARCH_MAX_ATTEMPTS": "1"}}),
        ("opencode", {}, {"type": "local", "timeout": 330_000}),
        ("goose", {}, {"type": "stdio", "enabled": True, "timeout": 330, "env_keys": ["OPENAI_API_KEY"]}),
        ("codex", {}, {"env_vars": ["OPENAI_API_KEY", *PASSED]}),
    ],
)
def test_the_client_waits_a_little_longer_than_the_server_and_passes_on_what_it_would_not(
    client: str, environ: dict[str, str], part: dict[str, Any]
) -> None:
    entry = CLIENTS[client].entry(("x",), load_settings(environ).settings, PASSED, {})
    assert {key: entry[key] for key in part} == part


@pytest.mark.parametrize(
    ("client", "entry", "seconds"),
    [
        ("codex", {"tool_timeout_sec": 90.0}, 90),
        ("codex", {"tool_timeout_sec": True}, 60),
        ("claude-code", {"timeout": "soon"}, None),
        ("claude-desktop", {"timeout": 91_000}, 60),
        ("windsurf", {}, None),
    ],
)
def test_an_entry_says_how_long_its_client_waits(client: str, entry: dict[str, Any], seconds: float | None) -> None:
    assert CLIENTS[client].waits(entry) == seconds
