"""Reading the YAML file (contract 5.2): what it gave, or what was wrong with it.

PyYAML is imported when there is a file to read and not before, because it is most of what a start would cost; the
part that needs it is `yaml_nodes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from responses_mcp.settings.files import Unread, read_text
from responses_mcp.settings.findings import place

if TYPE_CHECKING:
    from pathlib import Path

    from responses_mcp.settings.findings import Findings, Part
    from responses_mcp.settings.values import Given

LIMIT: Final = 128 * 1024
"""Bytes that a configuration file may have; reading more would hold up the start by seconds."""


class ConfigFile(NamedTuple):
    """What a file gave: values by dotted key. A profile's own key is there if the file names the profile."""

    path: Path
    values: dict[str, Given]

    @property
    def source(self) -> str:
        """The file as a source of values."""
        return f"yaml:{self.path}"

    def where(self, given: Given) -> tuple[Part, ...]:
        """Return the place of a value, as message parts."""
        return place(self.path, given.line)


def read_config(path: Path, findings: Findings) -> ConfigFile | Unread:
    """Read a configuration file. What is wrong inside it becomes findings; `Unread` means that it is not there.

    A file that is there and cannot be used gives one problem and no values, so that everything keeps its default.
    """
    text = read_text(path, LIMIT)
    values: dict[str, Given] = {}
    if not isinstance(text, Unread):
        from responses_mcp.settings.yaml_nodes import values_in  # noqa: PLC0415 - the only way to PyYAML

        values = values_in(path, text, findings)
    elif text.missing:
        return text
    else:
        findings.problem(
            f"config file: expected a YAML file in UTF-8 of at most {LIMIT // 1024} KiB, ",
            f"got {text.reason} (from ",
            *place(path),
            "); give the path of such a file or cure this one.",
        )
    return ConfigFile(path, values)
