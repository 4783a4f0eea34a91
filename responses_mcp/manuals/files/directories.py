"""Open directories, in which names are looked up without ever following a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

_JUNCTION: Final = 0xA0000003  # IO_REPARSE_TAG_MOUNT_POINT of Windows: as good as a symbolic link
_HAS_DESCRIPTORS: Final = (
    os.open in os.supports_dir_fd
    and os.stat in os.supports_dir_fd
    and os.scandir in os.supports_fd
    and hasattr(os, "O_NOFOLLOW")
)
_READ: Final = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
_READ_FILE: Final = _READ | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not make us wait
_READ_ROOT: Final = _READ | getattr(os, "O_DIRECTORY", 0)
_READ_FOLDER: Final = _READ_ROOT | getattr(os, "O_NOFOLLOW", 0)

Listing = AbstractContextManager[Iterator[os.DirEntry[str]]]


class DirectoryByDescriptor:
    """Held by its descriptor: whatever is moved or linked above it meanwhile, names are looked up in it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def enter(self, name: str) -> Directory:
        """Open the folder of that name."""
        return DirectoryByDescriptor(os.open(name, _READ_FOLDER, dir_fd=self._descriptor))

    def open(self, name: str) -> int:
        """Open the file of that name and return its descriptor; it need not be a regular file."""
        return os.open(name, _READ_FILE, dir_fd=self._descriptor)

    def mode(self, name: str) -> int:
        """Return the mode of what has that name; a junction counts as a symbolic link."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_mode

    def listing(self) -> Listing:
        """Return what is in the folder, as `os.scandir` does."""
        return os.scandir(self._descriptor)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


class DirectoryByPath:
    """Known by its resolved path, where the system (Windows) looks nothing up relative to a descriptor.

    Every name must resolve to itself. That refuses links, junctions, and short names like `GIT~1` alike.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def enter(self, name: str) -> Directory:
        """Return the folder of that name."""
        path = self._itself(name)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return DirectoryByPath(path)

    def open(self, name: str) -> int:
        """Open the file of that name and return its descriptor."""
        path = self._itself(name)
        before = os.lstat(path)
        descriptor = os.open(path, _READ_FILE)
        if not os.path.samestat(before, os.fstat(descriptor)):
            os.close(descriptor)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return descriptor

    def mode(self, name: str) -> int:
        """Return the mode of what has that name."""
        found = os.lstat(f"{self._path}{os.sep}{name}")
        return stat.S_IFLNK if getattr(found, "st_reparse_tag", 0) == _JUNCTION else found.st_mode

    def listing(self) -> Listing:
        """Return what is in the folder."""
        return os.scandir(self._path)

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _itself(self, name: str) -> str:
        path = f"{self._path.rstrip(os.sep)}{os.sep}{name}"
        if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return path


Directory = DirectoryByDescriptor | DirectoryByPath
"""Methods take one name in the directory, and raise `OSError` rather than follow a link."""


def open_root(path: str) -> Directory:
    """Open a folder by its path, links in it followed."""
    return (
        DirectoryByDescriptor(os.open(path, _READ_ROOT))
        if _HAS_DESCRIPTORS
        else DirectoryByPath(os.path.realpath(path))
    )
