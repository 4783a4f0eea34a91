"""Print the table of settings in `docs/reference/config-reference.md`; a test keeps the page equal to it."""

from __future__ import annotations

import sys
from typing import Final

from responses_mcp.settings.schema import FALLBACKS, PROFILES, SETTINGS, SHARED_FIELDS
from responses_mcp.settings.setting import Setting

BEGIN: Final = "<!-- settings table: begin (python -m tests.settings.reference_table) -->"
END: Final = "<!-- settings table: end -->"


def settings_table() -> str:
    """Return the Markdown table of every setting, without the markers."""
    lines = ["| Key | Value | Default | ENV | Meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `{setting.key}` | {setting.expected} | {_default(setting)} | {_env(setting)} | {setting.doc} |"
        for setting in map(_shared, SETTINGS)
        if setting is not None
    ]
    return "\n".join(lines)


def _shared(setting: Setting) -> Setting | None:
    """Return a row of what every profile may hold for the first of them alone, under a name that stands for all."""
    parts = setting.key.split(".")
    if parts[0] != "model_profiles" or parts[2] in SHARED_FIELDS:
        return setting
    parts[1], profile = "*", parts[1]
    return setting._replace(key=".".join(parts)) if profile == PROFILES[0] else None


def _default(setting: Setting) -> str:
    value = FALLBACKS.get(setting.key, setting.default)
    if value is None:
        return f"as `{PROFILES[0]}`" if setting.key.startswith("model_profiles.") else "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str | int | float):
        return f"`{value}`"
    return "empty"


def _env(setting: Setting) -> str:
    return f"`{setting.env}`" if setting.env is not None else ""


if __name__ == "__main__":
    sys.stdout.write(f"{settings_table()}\n")
