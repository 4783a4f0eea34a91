"""The folder of manuals on disk: what is in it, and files opened such that nothing outside can be reached.

Served are regular `.md` and `.json` files in folders directly below the root. Hidden entries are not, and no symbolic
link is followed at any level below the root, the folder of a manual included; the root itself may be one. Names that
JSON cannot carry, or that hold a backslash, count as hidden.

Paths are relative to their manual, with `/` between names. Composed and decomposed spellings (NFC, NFD) of a name find
the same file; the spelling on disk is the one given back.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

from responses_mcp.errors import exhausted
from responses_mcp.manuals.checks import Check
from responses_mcp.manuals.errors import ErrorCode, ManualsError
from responses_mcp.manuals.paths import ROOT_ID, Kind, file_type, parts_of, require_single_name, served_name
from responses_mcp.manuals.places import Place, open_root
from responses_mcp.manuals.texts import Anchors

_T = TypeVar("_T")
_DEEPEST: Final = 64  # levels of folders; each costs a descriptor while it is walked
_ENTRIES_AT_ONCE: Final = 256
_SHOWN: Final = 50  # manuals that an error about a wrong one lists
_SHOWN_CHARS: Final = 300  # of a name, in a message


class Stamp(NamedTuple):
    """What tells two states of a file apart: bytes, times in nanoseconds, and the file's number on its disk."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """Return the stamp of a file from its status."""
        if os.name == "nt":  # a directory's listing and an open file give different numbers and times there
            return cls(status.st_size, status.st_mtime_ns, 0, 0)
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


class Folder:
    """The manuals below `root`. Nothing is touched or remembered until a method is called; threads may share it.

    All methods raise `ManualsError` with one of the codes `invalid_parameter`, `invalid_path`, `forbidden`,
    `out_of_scope`, `not_found`, and `conflict` for what is there but cannot be read.
    """

    def __init__(self, root: Path) -> None:
        self._root = os.fspath(root)
        self.anchors = Anchors()

    def manuals(self) -> list[str]:
        """Return the names of the manuals, by code point. A root that does not exist has none."""
        try:
            with closing(open_root(self._root)) as top:
                return sorted(name for name, kind in _children(top) if kind == "dir" and name != ROOT_ID)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable("The folder of manuals", error) from error

    def require_manual(self, manual_id: str) -> str:
        """Return the name of a manual as it is on disk."""
        with self._inside(manual_id, ()) as (_, spelled):
            return spelled[0]

    def children(self, manual_id: str, path: str = "") -> Iterator[tuple[str, Kind]]:
        """Yield name and kind of what is served directly in a folder of a manual, in no order."""
        with self._inside(manual_id, parts_of(path)) as (place, _):
            try:
                yield from _children(place)
            except OSError as error:
                raise _unreadable(_shown(path or manual_id), error) from error

    def walk(self, manual_id: str, check: Check, *, unreadable: list[str] | None = None) -> Iterator[tuple[str, Stamp]]:
        """Yield path and stamp of every file below a manual, in no order.

        Appends to `unreadable` the folders and files that could not be looked at, and folders too deep to enter. What
        appears or vanishes meanwhile may be missing.
        """
        failed: list[str] = [] if unreadable is None else unreadable
        with self._inside(manual_id, ()) as (place, _):
            for prefix, entries in _below(place, "", check, failed):
                for entry in entries:
                    path = prefix + entry.name
                    try:
                        yield path, Stamp.of(entry.stat(follow_symlinks=False))
                    except FileNotFoundError:
                        continue
                    except OSError:
                        failed.append(path)

    def paths(
        self, manual_id: str, check: Check, *, under: str = "", unreadable: list[str] | None = None
    ) -> Iterator[str]:
        """Yield the path of every file below a folder of a manual, in no order; of `under` alone if it is a file.

        Nothing where there is no such folder or file. `unreadable` is as in `walk`.
        """
        parts = parts_of(under)
        try:
            with self._inside(manual_id, parts) as (place, spelled):
                start = "".join(f"{name}/" for name in spelled[1:])
                for prefix, entries in _below(place, start, check, [] if unreadable is None else unreadable):
                    yield from (prefix + entry.name for entry in entries)
                return
        except ManualsError as error:
            if error.code != "not_found" or not parts:
                raise
        self.require_manual(manual_id)
        try:
            yield self.resolve(manual_id, under)
        except ManualsError as error:
            if error.code != "not_found":
                raise

    def open(self, manual_id: str, path: str) -> BinaryIO:
        """Open a file for reading; its `name` is the path as spelled on disk."""
        *above, name = parts_of(path) or [""]
        if not name:
            raise ManualsError("invalid_path", "path is empty; pass the path of a file as manual_toc lists it.")
        with self._inside(manual_id, above) as (place, spelled):
            asked = "/".join([*above, name])
            number, found = _at(place, name, partial(_open_served, place), manual_id, asked, folder=False)

            def opener(_path: str, _flags: int) -> int:
                return number

            return open("/".join([*spelled[1:], found]), "rb", opener=opener)

    def resolve(self, manual_id: str, path: str) -> str:
        """Return the path of a file as spelled on disk."""
        with self.open(manual_id, path) as handle:
            return handle.name

    @contextmanager
    def _inside(self, manual_id: str, parts: Sequence[str]) -> Generator[tuple[Place, list[str]]]:
        """Open a folder of a manual; the list has the names that lead to it, as on disk, the manual's first."""
        require_single_name(manual_id)
        if manual_id == ROOT_ID:
            message = f"manual_id '{ROOT_ID}' names all manuals; pass the id of one, as manual_ls lists it."
            raise ManualsError("invalid_parameter", message, candidate_ids=self.manuals()[:_SHOWN])
        try:
            place = open_root(self._root)
        except FileNotFoundError as error:
            raise _missing(manual_id, "") from error
        except OSError as error:
            raise _unreadable("The folder of manuals", error) from error
        try:
            spelled: list[str] = []
            for name in (manual_id, *parts):
                path = "/".join(parts[: len(spelled)])
                try:
                    below, found = _at(place, name, place.enter, manual_id, path, folder=True)
                except ManualsError as error:
                    if error.code == "not_found" and not spelled:
                        error.details["candidate_ids"] = self.manuals()[:_SHOWN]
                    raise
                place.close()
                place = below
                spelled.append(found)
            yield place, spelled
        finally:
            place.close()


def _below(
    place: Place, prefix: str, check: Check, unreadable: list[str], level: int = 1
) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """Yield the files below an open folder: up to 256 of one folder, with its path, which ends in `/` unless empty."""
    folders: list[str] = []
    try:
        with place.listing() as listing:
            while entries := list(islice(listing, _ENTRIES_AT_ONCE)):
                check()
                files: list[os.DirEntry[str]] = []
                for entry in entries:
                    kind = _kind(entry)
                    if kind == "file":
                        files.append(entry)
                    elif kind == "dir":
                        folders.append(entry.name)
                yield prefix, files
    except OSError as error:
        _require_means(error)
        unreadable.append(prefix.rstrip("/"))
    for name in folders:
        if level == _DEEPEST:
            unreadable.append(prefix + name)
            continue
        try:
            below = place.enter(name)
        except OSError as error:
            _require_means(error)
            if _is_folder(place, name):
                unreadable.append(prefix + name)
            continue
        with closing(below):
            yield from _below(below, f"{prefix}{name}/", check, unreadable, level + 1)


def _children(place: Place) -> Iterator[tuple[str, Kind]]:
    with place.listing() as listing:
        for entry in listing:
            kind = _kind(entry)
            if kind is not None:
                yield entry.name, kind


def _kind(entry: os.DirEntry[str]) -> Kind | None:
    """Tell whether an entry is a folder or a file that is served, or neither."""
    name = entry.name
    if not served_name(name):
        return None
    if entry.is_dir(follow_symlinks=False):
        return "dir"
    return "file" if file_type(name) is not None and entry.is_file(follow_symlinks=False) else None


def _is_folder(place: Place, name: str) -> bool:
    try:
        return stat.S_ISDIR(place.mode(name))
    except OSError:
        return False


def _open_served(place: Place, name: str) -> int:
    number = place.open(name)
    if file_type(name) is not None and stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _at(
    place: Place, name: str, act: Callable[[str], _T], manual_id: str, path: str, *, folder: bool
) -> tuple[_T, str]:
    """Do something to a name in a folder; return what it gives, and the name as spelled on disk."""
    try:
        try:
            return act(name), name
        except FileNotFoundError:
            name = _other_spelling(place, name) or name
            return act(name), name
    except OSError as error:
        raise _refused(place, name, error, manual_id, path, folder=folder) from error


def _other_spelling(place: Place, name: str) -> str | None:
    """Return the entry whose name differs from `name` only in composition (NFC, NFD) and outer blanks."""
    wanted = _folded(name)
    if name.isascii() and name == wanted:
        return None
    with place.listing() as listing:
        found = [each.name for each in listing if served_name(each.name) and _folded(each.name) == wanted]
    return min(found, default=None)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


def _refused(place: Place, name: str, error: OSError, manual_id: str, path: str, *, folder: bool) -> ManualsError:
    """Say why a name could not be opened as a folder, or as a file."""
    what = _shown(path) if path else f"Manual {_shown(manual_id)}"
    mode = 0
    try:
        mode = place.mode(name)
    except OSError as missing:
        error = missing
    if stat.S_ISLNK(mode):
        return _error("forbidden", f"{what} leads over a symbolic link, which is not followed", manual_id, path)
    if error.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
        return _error("invalid_path", f"{what} holds a name that no file can have here", manual_id, path)
    if error.errno == errno.ENOENT or (folder and mode and not stat.S_ISDIR(mode)):
        return _missing(manual_id, path)
    if not folder and stat.S_ISDIR(mode):
        return _error("not_found", f"{what} is a folder, not a file", manual_id, path)
    if not folder and mode and not (stat.S_ISREG(mode) and file_type(name)):
        return _error("forbidden", f"{what} is not served: only ordinary .md and .json files are", manual_id, path)
    if error.errno == errno.ELOOP:
        return _error("out_of_scope", f"{what} leads out of the manual", manual_id, path)
    return _unreadable(what, error, manual_id=manual_id, **({"path": path} if path else {}))


def _missing(manual_id: str, path: str) -> ManualsError:
    if path:
        return _error("not_found", f"Manual {_shown(manual_id)} has no {_shown(path)}", manual_id, path)
    return _error("not_found", f"There is no manual {_shown(manual_id)}", manual_id, path)


def _error(code: ErrorCode, cause: str, manual_id: str, path: str) -> ManualsError:
    if not path:
        return ManualsError(code, f"{cause}; take an id from manual_ls.", manual_id=manual_id)
    return ManualsError(code, f"{cause}; take a path from manual_toc or manual_ls.", manual_id=manual_id, path=path)


def _unreadable(what: str, error: OSError, **details: Any) -> ManualsError:
    why = error.strerror or type(error).__name__
    shortage = exhausted(error)
    cure = f". {shortage}" if shortage else "; give the server permission or mend the disk, then ask again."
    return ManualsError("conflict", f"{what} cannot be read ({why}){cure}", **details)


def _require_means(error: OSError) -> None:
    """Raise ManualsError when it is not the file that is to blame: to leave it out would be wrong."""
    if shortage := exhausted(error):
        raise ManualsError("conflict", shortage) from error


def _shown(name: str) -> str:
    return f"'{name[:_SHOWN_CHARS]}…'" if len(name) > _SHOWN_CHARS else f"'{name}'"
