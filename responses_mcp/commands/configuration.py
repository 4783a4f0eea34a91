"""The configuration of a command: that of the server, but a problem ends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_mcp.commands.terminal import WRONG, Stop, remark
from responses_mcp.settings import Settings, load_settings


def configured(environ: Mapping[str, str], config_path: str | None, **more: Any) -> Settings:
    """Load the settings, with what else `load_settings` takes; say what deserves a look. Raises Stop for problems."""
    loaded = load_settings(environ, config_path=config_path, **more)
    for warning in loaded.warnings:
        remark(warning)
    if loaded.problems:
        raise Stop(*loaded.problems, code=WRONG)
    return loaded.settings
