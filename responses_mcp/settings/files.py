"""Reading the configuration file (spec 5.2) and those that it names: with a size limit, and a reason in words.

PyYAML is imported when there is a file to read and not before, because it is most of what a start would cost; the
part that needs it is `yaml_file`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.errors import exhausted
from responses_mcp.settings.findings import Findings, place

LIMIT: Final = 128 * 1024
"""Bytes that a configuration file may have; reading more would hold up the start by seconds."""


class Unread(NamedTuple):
    """Why there is no content: `reason` follows "got" in a message; `missing` means there is no such file."""

    reason: str
    missing: bool = False


def expanded(text: str, home: Path | None, *, windows: bool = False) -> Path:
    """Return a path with a leading `~` replaced by the home folder; other users' homes are not looked up."""
    if home is not None and (text == "~" or text.startswith("~/") or (windows and text.startswith("~\\"))):
        return home / text[2:]
    return Path(text)


def absolute(path: Path) -> Path:
    """Return a path from the root: a relative one starts at the working directory, if there is one."""
    try:
        return path.absolute()
    except OSError:  # the working directory was removed
        return path


def cache_folder(environ: Mapping[str, str], home: Path | None, *, windows: bool, mac: bool) -> Path | None:
    """Return the folder for the user's caches, which need not exist; None for a user without a home."""
    if windows and environ.get("LOCALAPPDATA"):
        return Path(environ["LOCALAPPDATA"])
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification wants relative paths ignored.
    if not windows and not mac and named.is_absolute():
        return named
    if home is None:
        return None
    if windows:
        return home / "AppData" / "Local"
    return home / "Library" / "Caches" if mac else home / ".cache"


def state_folder(environ: Mapping[str, str], home: Path | None, *, windows: bool, mac: bool) -> Path | None:
    """Return the folder for what is to be kept, which need not exist; None for a user without a home."""
    if windows:
        return cache_folder(environ, home, windows=True, mac=mac)
    named = Path(environ.get("XDG_STATE_HOME", ""))
    if not mac and named.is_absolute():
        return named
    kept = Path("Library", "Application Support") if mac else Path(".local", "state")
    return None if home is None else home / kept


def read_text(path: Path, limit: int) -> str | Unread:
    """Read a UTF-8 file of at most `limit` bytes, without its byte order mark.

    Raises OSError only if this process can open no file at all.
    """
    try:
        # Opening a pipe would wait for somebody to write, and standard input belongs to the client.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and str(path) != os.devnull:
            return Unread("a folder" if stat.S_ISDIR(mode) else "something that is not a regular file")
        with path.open("rb") as file:
            content = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Unread("no such file", missing=True)
    except OSError as error:
        if exhausted(error):
            raise
        return Unread(f"a failure to read it, {(error.strerror or type(error).__name__).lower()}")
    except ValueError:  # a NUL in the path
        return Unread("no such file", missing=True)
    if len(content) > limit:
        return Unread(f"a file over {limit // 1024} KiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unread(f"bytes that are not UTF-8, the first at offset {error.start}")


class ConfigFile(NamedTuple):
    """What a file gave: values by dotted key. A profile's own key is there if the file names the profile."""

    path: Path
    values: Mapping[str, object]


def read_config(path: Path, findings: Findings) -> ConfigFile | None:
    """Read a configuration file, None if it is not there. What is wrong inside it becomes findings.

    A file that is there and cannot be used gives one problem and no values, so that everything keeps its default.
    """
    text = read_text(path, LIMIT)
    values: dict[str, object] = {}
    if not isinstance(text, Unread):
        from responses_mcp.settings.yaml_file import values_in  # noqa: PLC0415 - the only way to PyYAML

        values = values_in(path, text, findings)
    elif text.missing:
        return None
    else:
        findings.problem(
            f"config file: expected a YAML file in UTF-8 of at most {LIMIT // 1024} KiB, got {text.reason}",
            where=place(path),
            cure="give the path of such a file or cure this one",
        )
    return ConfigFile(path, values)
