"""The configuration files of clients: read whole, and replaced in one step with what was there kept beside them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

_BOM: Final = b"\xef\xbb\xbf"
_NEW: Final = 0o666  # less what the user's umask takes away
_NOBODY_ELSE: Final = 0o600  # until the rights are set
_MOST_BYTES: Final = 64 * 2**20
_DEEPEST: Final = 64  # levels of an entry
_MOST_BITS: Final = 1024  # of a number in it


class Unmergeable(Exception):  # the cause, as the second half of a sentence
    """The file cannot be read, or has no place for an entry; the message says where and what to do."""


class NotUnderstood(Unmergeable):  # the cause, as above
    """The client may read the file all the same, because it reads more than this program does."""


class Change(NamedTuple):
    """A text with an entry in it, and whether comments stood in what was replaced."""

    text: str
    drops_comments: bool


def newline_of(text: str) -> str:
    """Return how the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


def as_table(value: object) -> dict[str, Any] | None:
    """Return an object of JSON or a table of TOML as what it is, None for any other value."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else None


def texts_in(value: object) -> list[str]:
    """Return the texts in a list, nothing for any other value."""
    return [each for each in cast("list[object]", value) if isinstance(each, str)] if isinstance(value, list) else []


def variables_in(value: object) -> list[str]:
    """Return the names in a list of variables; one of Codex's may be a table that has the name in it."""
    each = cast("list[object]", value) if isinstance(value, list) else []
    return texts_in([(as_table(one) or {}).get("name", one) for one in each])


def as_variable(value: object) -> object:
    """Return a number, or true or false, as the text that a variable can have; other values as they are."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) and not _is_too_long(value) else value


def check_entry(entry: object) -> None:
    """Raise Unmergeable for an entry that cannot be written anew: no client has such, but a file may."""
    level = [entry]
    for _ in range(_DEEPEST):
        if any(map(_is_too_long, level)):
            raise Unmergeable("the entry holds a number that is too long; correct that")
        level = [value for each in level for value in _inside(each)]
        if not level:
            return
    raise Unmergeable("the entry is nested too deeply; correct that")


def _is_too_long(value: object) -> bool:
    """Tell whether a value is a number of so many digits that Python may not write them."""
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def _inside(value: object) -> Iterable[object]:
    return (as_table(value) or {}).values() if not isinstance(value, list) else cast(Iterable[object], value)


class ClientFile:
    """A file as it was when it was read; `text` is empty if there is none.

    A symbolic link stands for what it leads to. A byte order mark is kept, and is no part of `text`.
    """

    def __init__(self, path: Path, *, mark: bool = True) -> None:
        """Read the file, in which a `mark` may be; raises Unmergeable for what is no UTF-8 text, and OSError."""
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        if self._path.is_symlink():
            raise Unmergeable("it is a symbolic link that leads to itself")
        self._status, self._content = _read(self._path)
        self._mark = _BOM if self._content.startswith(_BOM) else b""
        if self._mark and not mark:
            raise Unmergeable("it is not valid JSON to this client, for its byte order mark; save it without one")
        try:
            self.text = self._content[len(self._mark) :].decode()
        except UnicodeDecodeError as error:
            raise Unmergeable(f"it is not UTF-8 (at byte {error.start + len(self._mark)})") from error

    def replace(self, text: str, *, private: bool = False) -> Path | None:
        """Put a text in place of the old one and return where the old one is kept, None if there was none.

        A file that is `private` can be read by its owner alone, if it is new; one that is there keeps its rights.
        Readers see the old file or the new one, never a part. Raises Unmergeable if the file is read-only, or has
        changed since it was read, and OSError.
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
                raise Unmergeable("it has been changed meanwhile; run this again")
            temporary.replace(self._path)
            undo.pop_all()
        return kept

    def _written(self, suffix: str, content: bytes, rights: int, undo: ExitStack) -> Path:
        """Write a new file beside this one and return its path; `undo` removes it. One that is there keeps its name."""
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
    with suppress(OSError):
        if hasattr(os, "chown"):
            os.chown(path, status.st_uid, status.st_gid)
    with suppress(OSError):  # after the owner, because a change of the owner takes rights away
        path.chmod(stat.S_IMODE(status.st_mode))
