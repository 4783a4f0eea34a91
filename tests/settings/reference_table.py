"""Print the tables of settings in `docs/reference/config-reference.md`; a test keeps the page equal to them."""

from __future__ import annotations

import sys
from typing import Final

from responses_mcp.settings.schema import PROFILES, SETTINGS, Setting

BEGIN: Final = "<!-- settings table: begin (python -m tests.settings.reference_table) -->"
END: Final = "<!-- settings table: end -->"

FIRST: Final = (
    *("openai.base_url", "model_profiles.*.model", "model_profiles.*.reasoning_effort", "model_profiles.*.verbosity"),
    *("request.timeout_ms", "policy.max_citations", "server.toolsets", "manuals.root", "limits.session_cost_usd"),
    "server.debug",
)
"""The settings that matter to most people."""


def settings_table() -> str:
    """Return what is between the markers: a table of the first settings, and one of the others."""
    rows = {row.key: row for row in map(_shared, SETTINGS)}
    others = [key for key in rows if key not in FIRST]
    return "\n".join(
        [
            *("The ten that matter first:", "", *_table([rows[key] for key in FIRST])),
            *("", "All others:", "", *_table([rows[key] for key in others])),
        ]
    )


def _table(rows: list[Setting]) -> list[str]:
    lines = ["| Key | Value | Default | ENV | Meaning |", "| --- | --- | --- | --- | --- |"]
    return lines + [
        f"| `{row.key}` | {row.form.expected} | {_default(row)} | {_env(row)} | {row.doc} |" for row in rows
    ]


def _shared(row: Setting) -> Setting:
    """Return a row of a profile as one of the first, under a name that stands for all."""
    parts = row.key.split(".")
    if parts[0] != "model_profiles":
        return row
    field = ".".join(parts[2:])
    of_all = [each for each in SETTINGS if each.key in {f"model_profiles.{name}.{field}" for name in PROFILES}]
    env = ", ".join(each.env for each in of_all if each.env) or None
    return of_all[0]._replace(key=f"model_profiles.*.{field}", env=env)


def _default(row: Setting) -> str:
    if row.default is None:
        return "not set"
    if isinstance(row.default, bool):
        return f"`{str(row.default).lower()}`"
    if isinstance(row.default, tuple):
        return ", ".join(f"`{each}`" for each in row.default) or "empty"
    return f"`{row.default}`" if isinstance(row.default, str | int | float) else "empty"


def _env(row: Setting) -> str:
    return ", ".join(f"`{name}`" for name in row.env.split(", ")) if row.env is not None else ""


if __name__ == "__main__":
    sys.stdout.write(f"{settings_table()}\n")
