"""The configuration of a command: that of the server, but a problem ends it."""

from __future__ import annotations

from collections.abc import Mapping

from responses_mcp.commands.terminal import WRONG, Stop, remark
from responses_mcp.settings import Settings, load_settings


def configured(environ: Mapping[str, str], config_path: str | None) -> Settings:
    """Load the settings and say what deserves a look; raises Stop when there are problems."""
    loaded = load_settings(environ, config_path=config_path)
    for warning in loaded.warnings:
        remark(warning)
    if loaded.problems:
        raise Stop(*loaded.problems, code=WRONG)
    return loaded.settings
