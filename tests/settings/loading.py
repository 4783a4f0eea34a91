"""Loading from texts, in a home of its own, so that no test sees the machine it runs on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from responses_mcp.settings import LoadedSettings, load_settings

CANARY = "sk-canary-0123456789abcdefghij"


def usual_place(home: Path) -> Path:
    """The file that is read without --config."""
    return home / ".config" / "openai-responses-mcp" / "config.yaml"


def load(
    home: Path,
    yaml: str | bytes | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    debug: bool | str | None = None,
    toolsets: str | None = None,
) -> LoadedSettings:
    """Load with an optional file in the usual place."""
    if yaml is not None:
        path = usual_place(home)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(yaml.encode() if isinstance(yaml, str) else yaml)
    return load_settings(environ or {}, home=home, debug=debug, toolsets=toolsets, windows=False)


def problem(loaded: LoadedSettings) -> str:
    """The one problem there is."""
    assert loaded.problems == loaded.settings.problems
    assert len(loaded.problems) == 1, loaded.problems
    return loaded.problems[0]


def warning(loaded: LoadedSettings) -> str:
    """The one warning there is, of a configuration without problems."""
    assert loaded.problems == ()
    assert len(loaded.warnings) == 1, loaded.warnings
    return loaded.warnings[0]


def clean(loaded: LoadedSettings) -> LoadedSettings:
    """The same settings, which have neither problems nor warnings."""
    assert loaded.problems == loaded.settings.problems == ()
    assert loaded.warnings == ()
    return loaded


def value_of(settings: object, key: str) -> object:
    """The value at a dotted key of a tree; None where a profile on the way is absent."""
    value: Any = settings
    for part in key.split("."):
        value = value.get(part) if hasattr(value, "get") else getattr(value, part, None)
    return value
