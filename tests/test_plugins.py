"""The plugins for Claude Code and Gemini CLI: they start the server as `install` would, and say one thing.

That their makers accept them is for the makers' commands: docs/clients/README.md names them.
"""

import json
from typing import Any

import pytest

from responses_mcp import __version__
from responses_mcp.commands.clients.known import CLIENTS
from responses_mcp.commands.terminal import NAME
from responses_mcp.serving import configured_toolsets
from responses_mcp.settings.model import ManualsSettings, Settings
from tests.bundle import ROOT

PLUGINS = ROOT / "config/plugins"
COMMAND = (NAME, "--stdio")

pytestmark = [
    pytest.mark.skipif(not PLUGINS.exists(), reason="plugins are in a checkout"),
]


def document(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((PLUGINS / name).read_text(encoding="utf-8"))
    return found


def skill() -> tuple[str, str]:
    """Return the front matter of the skill and what follows it."""
    text = (PLUGINS / "claude-code/skills/look-it-up/SKILL.md").read_text(encoding="utf-8")
    _, front, body = text.split("---\n", 2)
    return front, body.lstrip("\n")


def test_each_plugin_starts_the_server_as_install_would_with_the_command_on_the_path() -> None:
    claude, gemini = document("claude-code/.mcp.json"), document("gemini/gemini-extension.json")
    assert claude == {"mcpServers": {"openai-responses": CLIENTS["claude-code"].entry(COMMAND, Settings(), {}, {})}}
    assert gemini["mcpServers"] == {"openai-responses": CLIENTS["gemini"].entry(COMMAND, Settings(), {}, {})}
    assert "trust" not in gemini["mcpServers"]["openai-responses"]  # extensions may not


def test_both_plugins_tell_the_model_the_same() -> None:
    front, body = skill()
    assert body == (PLUGINS / "gemini" / document("gemini/gemini-extension.json")["contextFileName"]).read_text("utf-8")
    assert front.startswith("name: look-it-up\ndescription: Use when ")
    assert front.count("\n") == 2


def test_the_text_names_only_tools_that_there_are() -> None:
    toolsets = configured_toolsets(Settings(manuals=ManualsSettings(root="manuals")))
    tools = {tool.name for toolset in toolsets for tool in toolset.tools}
    named = {word for word in skill()[1].split("`")[1::2] if word.startswith(("answer", "manual_"))}
    assert {"answer", "answer_detailed", "answer_quick", "manual_search", "manual_read"} <= named <= tools


def test_the_marketplace_has_the_plugin_under_its_name_and_the_version_of_the_package() -> None:
    plugin, [listed] = (
        document("claude-code/.claude-plugin/plugin.json"),
        document(".claude-plugin/marketplace.json")["plugins"],
    )
    assert (listed["name"], listed["source"]) == (plugin["name"], "./claude-code")
    assert (listed["description"], plugin["version"]) == (plugin["description"], __version__)
    assert document("gemini/gemini-extension.json")["description"] == plugin["description"]
