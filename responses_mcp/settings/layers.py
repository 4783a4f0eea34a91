"""One setting at a time: environment over YAML file over default (spec 5.1), and where the value came from.

A wrong value is a problem, and its default takes its place, not the value of the layer below: what a person tried to
override should not come back unseen.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from responses_mcp.secrets import is_unfilled
from responses_mcp.settings.files import ConfigFile, absolute, expanded
from responses_mcp.settings.findings import Findings, Part, place
from responses_mcp.settings.schema import BY_KEY
from responses_mcp.settings.setting import BadValue, Outside, Setting, from_text, from_yaml

IN_FILE: Final = "file"
"""The origin of what the file says; others are `env NAME`, an option such as `--debug`, and `default`."""


class Layers:
    """The values decided so far, and what to decide the others from."""

    def __init__(
        self, environ: Mapping[str, str], file: ConfigFile, home: Path | None, findings: Findings, *, windows: bool
    ) -> None:
        self.environ = environ
        self.file = file
        self.findings = findings
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self._home = home
        self._windows = windows

    def env(self, name: str | None) -> str:
        """Return a variable without surrounding blanks; an empty one counts as unset."""
        return self.environ.get(name, "").strip() if name is not None else ""

    def origin(self, key: str) -> str | None:
        """Return where a key is set, the environment before the file; None if in neither."""
        name = BY_KEY[key].env
        if self.env(name):
            return f"env {name}"
        return IN_FILE if key in self.file.values else None

    def pick(self, key: str) -> None:
        """Decide one setting: environment, else file, else default."""
        setting = BY_KEY[key]
        # DEBUG sets two keys at once and is decided elsewhere.
        text = self.env(setting.env) if setting.kind != "debug" else ""
        if key == "server.line_mode" and text != "1":
            text = ""  # "1" switches it on, anything else says nothing (spec 5.4)
        if text:
            self.accept(key, self.read(setting, text, str(setting.env)), f"env {setting.env}")
        elif key in self.file.values:
            self.accept(key, from_yaml(setting, self.file.values[key], self.findings), IN_FILE)
        else:
            self.values[key], self.sources[key] = setting.default, "default"

    def read(self, setting: Setting, text: str, name: str) -> object:
        """Read the text of a variable for a setting; a client may have left in it what it should have replaced."""
        if is_unfilled(text):
            cure = f"set {name} where the client is started, or take it out of the client's entry"
            return BadValue(("a placeholder left unfilled (not shown)",), cure=cure)
        return from_text(setting, text, self.findings)

    def accept(self, key: str, value: object, origin: str) -> None:
        """Take a value and its origin; a refused one becomes a problem, and its default takes its place.

        A number out of range becomes a warning, and one within it takes its place.
        """
        setting = BY_KEY[key]
        if isinstance(value, Outside):
            what = (f"{key}: expected {setting.expected}, got ", *value.got, f", so {value.within} is used")
            self.findings.warning(*what, where=self.where(origin), cure=_cure(setting, origin))
            value = value.within if setting.kind == "integer" else float(value.within)
        if isinstance(value, BadValue):
            expected, cure = value.expected or setting.expected, value.cure or _cure(setting, origin)
            what = (f"{key}: expected {expected}, got ", *value.got)
            self.findings.problem(*what, where=self.where(origin), cure=cure)
            value, origin = setting.default, "default"
        elif (
            setting.kind in {"path", "folder"} and isinstance(value, str) and (key, value) != ("server.debug_file", "-")
        ):
            path = expanded(value, self._home, windows=self._windows)
            path = self.file.path.parent / path if origin == IN_FILE else path
            # A folder is opened later, maybe from another working directory.
            value = str(absolute(path) if setting.kind == "folder" else path)
        self.values[key], self.sources[key] = value, self.source_of(origin)

    def where(self, origin: str) -> tuple[Part, ...]:
        """Return the place a value came from, as the `where` of a finding."""
        return place(self.file.path) if origin == IN_FILE else (f"from {origin}",)

    def source_of(self, origin: str) -> str:
        """Return the place a value came from, as `sources` has it."""
        if origin == IN_FILE:
            return f"yaml:{self.file.path}"
        if origin.startswith("env "):
            return f"env:{origin.removeprefix('env ')}"
        return f"cli:{origin}" if origin.startswith("--") else origin


def _cure(setting: Setting, origin: str) -> str:
    if origin == IN_FILE:
        return "correct or remove it"
    if origin.startswith("--"):
        return "correct the option or leave it out"
    return "set it to a number or unset it" if setting.kind in {"integer", "number"} else "correct it or unset it"
