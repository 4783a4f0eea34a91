"""The configuration files of clients: read whole, and replaced in one step with what was there kept beside them."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.commands.text_edits import Unmergeable

_BOM: Final = b"\xef\xbb\xbf"
_NEW: Final = 0o666  # less what the user's umask takes away
_NOBODY_ELSE: Final = 0o600  # until the rights are set
_MOST_BYTES: Final = 64 * 2**20
_MOST_LINKS: Final = 40


class ClientFile:
    """A file as it was when it was read; `text` is empty if there is none.

    A symbolic link stands for what it leads to. A byte order mark is kept, and is no part of `text`.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises Unmergeable for what is no UTF-8 text, and OSError."""
        self._path = _target(path)
        self._old, self._content = _read(self._path)
        self._mark = _BOM if self._content.startswith(_BOM) else b""
        try:
            self.text = self._content[len(self._mark) :].decode()
        except UnicodeDecodeError as error:
            raise Unmergeable(f"it is not UTF-8 (at byte {error.start + len(self._mark)})") from error

    def replace(self, text: str) -> Path | None:
        """Put a text in place of the old one and return where the old one is kept, None if there was none.

        Readers see the old file or the new one, never a part. Raises Unmergeable if the file has changed since it was
        read, and OSError.
        """
        content = self._mark + text.encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            kept = None if self._old is None else _written(self._path, ".bak", self._content, self._old, undo)
            temporary = _written(self._path, ".new", content, self._old, undo)
            if _read(self._path) != (self._old, self._content):
                raise Unmergeable("it has been changed meanwhile; run this again")
            temporary.replace(self._path)
            undo.pop_all()
        return kept


class _Rights(NamedTuple):
    """Whose a file is, and who may do what with it."""

    mode: int
    owner: int
    group: int


def _read(path: Path) -> tuple[_Rights | None, bytes]:
    """Return the rights and the content of a file, None and nothing if there is no file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, b""
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody to write
        raise Unmergeable("it is not a regular file")
    if not status.st_mode & stat.S_IWRITE:  # replacing it would succeed, against what somebody wanted
        raise Unmergeable("it is read-only; make it writable if that is not on purpose")
    if status.st_size > _MOST_BYTES:
        raise Unmergeable(f"it has more than {_MOST_BYTES // 2**20} MiB")
    return _Rights(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid), path.read_bytes()


def _target(path: Path) -> Path:
    """Return what links lead to, where they lead to something."""
    for _ in range(_MOST_LINKS):
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise Unmergeable("it is a symbolic link that leads to itself")


def _written(path: Path, suffix: str, content: bytes, rights: _Rights | None, undo: ExitStack) -> Path:
    """Write a new file beside another and return its path; `undo` removes it. One that is there keeps its name."""
    for number in count(1):
        beside = path.with_name(f"{path.name}{suffix}{'' if number == 1 else number}")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            file = os.open(beside, flags, _NEW if rights is None else _NOBODY_ELSE)
        except FileExistsError:
            continue
        undo.callback(beside.unlink, missing_ok=True)
        with open(file, "wb") as stream:  # noqa: PTH123  # a number, not a path
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if rights is not None:
            _give(beside, rights)
        return beside
    raise AssertionError  # there are always more numbers


def _give(path: Path, rights: _Rights) -> None:
    """Give a file the rights of another, as far as we may: root must not take a file from its owner."""
    with suppress(OSError):
        if hasattr(os, "chown"):
            os.chown(path, rights.owner, rights.group)
    with suppress(OSError):  # after the owner, because a change of the owner takes rights away
        path.chmod(rights.mode)
