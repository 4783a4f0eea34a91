"""Files that settings come from, and the user's folders: read with a size limit, and a reason in words."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from responses_mcp.errors import exhausted


class Unread(NamedTuple):
    """Why there is no content: `reason` follows "got" in a message; `missing` means there is no such file."""

    reason: str
    missing: bool = False


def expanded(text: str, home: Path | None) -> Path:
    """Return a path with a leading `~` replaced by the home folder; other users' homes are not looked up."""
    return home / text[2:] if home is not None and text[:2] in {"~", "~/", "~\\"} else Path(text)


def absolute(path: Path) -> Path:
    """Return a path from the root: a relative one starts at the working directory, if there is one."""
    try:
        return path.absolute()
    except OSError:  # the working directory was removed
        return path


def user_folder(
    kind: Literal["cache", "state"], environ: Mapping[str, str], home: Path | None, *, windows: bool
) -> Path | None:
    """Return the user's folder for caches, or for what is to be kept. It need not exist; None without a home."""
    named = environ.get("LOCALAPPDATA" if windows else f"XDG_{kind.upper()}_HOME", "")
    if named and (windows or Path(named).is_absolute()):  # the XDG specification wants others ignored
        return Path(named)
    usual = ".cache" if kind == "cache" else ".local/state"
    return home and home / ("AppData/Local" if windows else usual)


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
        if len(content) > limit:
            return Unread(f"a file over {limit // 1024} KiB")
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unread(f"bytes that are not UTF-8, the first at offset {error.start}")
    except (FileNotFoundError, NotADirectoryError, ValueError):  # a NUL in the path
        return Unread("no such file", missing=True)
    except OSError as error:
        if exhausted(error):
            raise
        return Unread(f"a failure to read it, {(error.strerror or type(error).__name__).lower()}")
