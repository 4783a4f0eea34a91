"""The configuration files of clients: read whole, and replaced in one step, with a copy of the old file beside it."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, cast

_BOM: Final = b"\xef\xbb\xbf"
_NEW: Final = 0o666  # less what the user's umask takes away
_NOBODY_ELSE: Final = 0o600  # until the rights are set
_MOST_BYTES: Final = 64 * 2**20


class Unmergeable(Exception):  # the cause, as the second half of a sentence
    """The file cannot be read, or has no place for an entry; the message says where and what to do."""


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def as_table(value: object) -> dict[str, Any] | None:
    """Return an object of JSON or a table of TOML as what it is, None for any other value."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def texts_in(value: object) -> list[str]:
    """Return the texts in a list, nothing for any other value."""
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


class ClientFile:
    """A file as it was when it was read; `text` is empty if there is none.

    A symbolic link stands for what it leads to. A byte order mark is kept, and is no part of `text`.
    """

    def __init__(self, path: Path) -> None:
        """Read the file; raises Unmergeable for what is no UTF-8 text, or cannot be read."""
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        try:
            self._status, self._content = _read(self._path)
        except OSError as error:
            raise Unmergeable(f"it cannot be read ({reason_of(error)})") from error
        self._mark = _BOM if self._content.startswith(_BOM) else b""
        try:
            self.text = self._content[len(self._mark) :].decode()
        except UnicodeDecodeError as error:
            raise Unmergeable(f"it is not UTF-8 (at byte {error.start + len(self._mark)})") from error

    def replace(self, text: str, *, private: bool = False) -> Path | None:
        """Put a text in place of the old one and return the path of the copy of the old one, None if there was none.

        A new file that is `private` can be read by its owner alone; an existing file keeps its rights. Readers see the
        old file or the new one, never a part. Raises Unmergeable if the file is read-only, or has changed since it was
        read, and OSError.
        """
        if self._status is not None and not self._status.st_mode & stat.S_IWRITE:
            # Replacing it would succeed, against what somebody wanted.
            raise Unmergeable("it is read-only; make it writable if that is not on purpose")
        content = self._mark + text.encode()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as undo:
            kept = None if self._status is None else self._written(".bak", self._content, _NOBODY_ELSE, undo)
            rights = _NEW if self._status is None and not private else _NOBODY_ELSE
            temporary = self._written(".new", content, rights, undo)
            if _read(self._path)[1] != self._content:
                raise Unmergeable("another program changed it meanwhile; run this again")
            temporary.replace(self._path)
            undo.pop_all()
        return kept

    def _written(self, suffix: str, content: bytes, rights: int, undo: ExitStack) -> Path:
        """Write a new file beside this one and return its path; `undo` removes it. An older copy keeps its name."""
        for number in count(1):
            beside = self._path.with_name(f"{self._path.name}{suffix}{'' if number == 1 else number}")
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
                file = os.open(beside, flags, rights)
            except FileExistsError:
                continue
            undo.callback(beside.unlink, missing_ok=True)
            with open(file, "wb") as stream:  # noqa: PTH123  # a number, not a path
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            if self._status is not None:
                _give_rights(beside, self._status)
            return beside
        raise AssertionError  # there are always more numbers


def _read(path: Path) -> tuple[os.stat_result | None, bytes]:
    """Return the status and the content of a file, None and nothing if there is no file."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None, b""
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for somebody to write
        raise Unmergeable("it is not a regular file")
    if status.st_size > _MOST_BYTES:
        raise Unmergeable(f"it has more than {_MOST_BYTES // 2**20} MiB")
    return status, path.read_bytes()


def _give_rights(path: Path, status: os.stat_result) -> None:
    """Copy owner and mode to a file, as far as permitted: a file changed by root must keep its owner."""
    with suppress(OSError, AttributeError):  # which Windows has not
        os.chown(path, status.st_uid, status.st_gid)
    with suppress(OSError):  # after the owner, because a change of the owner takes rights away
        path.chmod(stat.S_IMODE(status.st_mode))


def reason_of(error: OSError) -> str:
    """Return the system's word for a failure."""
    return (error.strerror or type(error).__name__).lower()
