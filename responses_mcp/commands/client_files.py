"""The configuration files of clients: read whole, and replaced in one step with what was there kept beside them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

from responses_mcp.commands.text_edits import Unmergeable

_BOM: Final = b"\xef\xbb\xbf"
_NEW: Final = 0o666  # less what the user's umask takes away
_MOST_LINKS: Final = 40


class ClientFile:
    """A file as it was when it was read; `text` is empty if there is none.

    A symbolic link stands for what it leads to. A byte order mark is kept, and is no part of `text`.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises Unmergeable for what is no UTF-8 text, and OSError."""
        self._path = _target(path)
        self._mode, self._content = _read(self._path)
        self._mark = _BOM if self._content.startswith(_BOM) else b""
        try:
            self.text = self._content[len(self._mark) :].decode()
        except UnicodeDecodeError as error:
            raise Unmergeable(f"it is not UTF-8 (at byte {error.start + len(self._mark)})") from error

    @property
    def exists(self) -> bool:
        """Whether there was a file."""
        return self._mode is not None

    def replace(self, text: str) -> Path | None:
        """Put a text in place of the old one and return where the old one is kept, None if there was none.

        Readers see the old file or the new one, never a part. Raises Unmergeable if the file has changed since it was
        read, and OSError.
        """
        content = self._mark + text.encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = _written(self._path, ".new", content, _NEW if self._mode is None else self._mode)
        try:
            if self._mode is not None:
                with suppress(OSError):
                    temporary.chmod(self._mode)
            self._check_that_it_is_the_same()
            kept = None if self._mode is None else _written(self._path, ".bak", self._content, self._mode)
            temporary.replace(self._path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return kept

    def _check_that_it_is_the_same(self) -> None:
        if _read(self._path) != (self._mode, self._content):
            raise Unmergeable("it has been changed meanwhile; run this again")


def _read(path: Path) -> tuple[int | None, bytes]:
    """Return the permissions and the content of a file, None and nothing if there is no file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, b""
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody to write
        raise Unmergeable("it is not a regular file")
    return stat.S_IMODE(status.st_mode), path.read_bytes()


def _target(path: Path) -> Path:
    """Return what links lead to, where they lead to something."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise Unmergeable("it is a symbolic link that leads to itself")


def _written(path: Path, suffix: str, content: bytes, mode: int) -> Path:
    """Write a new file beside another and return its path; one that is there already keeps its name."""
    for number in count(1):
        beside = path.with_name(f"{path.name}{suffix}{'' if number == 1 else number}")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        except FileExistsError:
            continue
        with open(file, "wb") as stream:  # noqa: PTH123  # a number, not a path
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        return beside
    raise AssertionError  # there are always more numbers
