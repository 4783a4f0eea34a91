"""What is published beside the package: `python -m tests.published` writes into its files what the package says.

These are `server.json`, the entry of the MCP registry, `config/manifest.json`, the manifest of the bundle, and those of the
plugins: the version of `responses_mcp/__init__.py`, the Pythons of `pyproject.toml`, and the tools that are always there.
tests/test_bundle.py compares them.
"""

import json
import tomllib
from pathlib import Path
from typing import Any

from responses_mcp import __version__
from responses_mcp.asking import Asker
from responses_mcp.settings import Settings
from responses_mcp.toolsets.answer import AnswerToolset

ROOT = Path(__file__).parent.parent
FILES = [
    *(ROOT / name for name in ("server.json", "config/manifest.json")),
    *(
        ROOT / "config/plugins" / name
        for name in ("claude-code/.claude-plugin/plugin.json", "gemini/gemini-extension.json")
    ),
]


def with_facts(text: str) -> str:
    """Return the text of one of the files with what the package says now."""
    document: dict[str, Any] = json.loads(text)
    document["version"] = __version__
    for package in document.get("packages", []):
        package["version"] = __version__
    if "manifest_version" in document:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        document["compatibility"]["runtimes"]["python"] = project["requires-python"]
        tools = AnswerToolset(lambda: Asker(Settings())).tools
        document["tools"] = [
            {"name": tool.name, "description": tool.description.partition(". ")[0].rstrip(".") + "."} for tool in tools
        ]
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    for file in FILES:
        old = file.read_text(encoding="utf-8")
        if (new := with_facts(old)) != old:
            file.write_text(new, encoding="utf-8", newline="\n")
            print(f"{file.relative_to(ROOT)}: brought up to date")
