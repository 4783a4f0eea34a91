"""The folder of manuals on disk: what is in it, and files opened such that nothing outside can be reached.

Each folder directly below the root is a manual. Files in the root itself belong to a manual with the root's name, or
with a number behind it where a folder has that name. Served are regular files of known types. Hidden entries are not,
nor what an `Exclusion` leaves out, and no symbolic link is followed at any level below the root, the folder of a manual
included; the root itself may be one. Nor are names served that hold a backslash, a control character, bytes that are no
text, or characters that nobody sees and the text does not need, such as a soft hyphen; a walk tells of them.

Paths are relative to their manual, with `/` between names. Composed and decomposed spellings (NFC, NFD) of a name find
the same file; the spelling on disk is the one given back.
"""

from __future__ import annotations

import errno
import os
import stat
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck, unchecked
from responses_mcp.manuals.errors import ErrorCode, ManualsError
from responses_mcp.manuals.files.directories import Directory, open_root
from responses_mcp.manuals.files.documents import Documents, content_of, document_of
from responses_mcp.manuals.files.exclusion import Exclusion, Nothing
from responses_mcp.manuals.formats import pdf
from responses_mcp.manuals.formats.document import Document, Unserved
from responses_mcp.manuals.requests.paths import (
    MANUAL_ID,
    ROOT_ID,
    Kind,
    ending_of,
    file_type,
    id_of,
    name_of,
    parts_of,
    require_single_name,
    served_name,
)
from responses_mcp.settings.model import FILE_TYPES, ManualsSettings

UNREADABLE: Final = "unreadable"
TOO_DEEP: Final = "too_deep"
UNSERVABLE: Final = "name_not_served"
OTHER_FORMAT: Final = "format_not_served"
NEEDS_EXTRA: Final = "needs_extra_documents"

DOCUMENTS: Final = frozenset(
    {
        *(".pdf", ".doc", ".odt", ".rtf", ".epub", ".ppt", ".pptx", ".odp", ".xls", ".xlsx", ".ods"),
        *(".djvu", ".chm", ".mobi", ".pages", ".numbers", ".key"),
    }
)
"""Endings of files that are there to be read: a search that leaves one out is not complete."""

EXCLUDED: Final = ("node_modules", "__pycache__", ".venv")
"""Patterns of what is left out unless settings say otherwise."""

LARGEST: Final = 16 * 1024 * 1024
"""Bytes of a file that is searched and read, unless settings say otherwise."""

_T = TypeVar("_T")
_DEEPEST: Final = 64  # levels of folders; each costs a descriptor while it is walked
_ENTRIES_BETWEEN_CHECKS: Final = 256
_GONE: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)  # deleted, or swapped for a file or a link
_TRIES: Final = 3  # of a file that changes while it is read
_FRESH_NS: Final = 2_000_000_000  # a file changed this recently may change again without its times telling
_NAMELESS: Final = "files"  # the manual of the files in a root whose name cannot be an id
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

    def is_fresh(self) -> bool:
        """Tell whether the file may change again without its stamp telling.

        The time of change (POSIX) cannot be set by anybody, so it is the better one; the other may lie in the future.
        """
        return time.time_ns() - (self.ctime_ns or self.mtime_ns) < _FRESH_NS


@dataclass(frozen=True, slots=True)
class _Open:
    """An open folder, with the names that lead to it as on disk, the id of its manual first.

    Files of types in `formats` are served. `is_root` tells that it is the root, of which only the files belong to the
    manual.
    """

    directory: Directory
    spelled: tuple[str, ...]
    exclusion: Exclusion
    formats: frozenset[str]
    is_root: bool = False

    def entered(self, directory: Directory, name: str) -> _Open:
        """Return the folder of that name in it, which `directory` is."""
        spelled = (*self.spelled, name if self.spelled else id_of(name))
        return _Open(directory, spelled, self.exclusion.entered(directory, name), self.formats)

    def entries(self, check: CancellationCheck) -> Iterator[tuple[os.DirEntry[str], Kind, str]]:
        """Yield the folders and files in it, each with the reason why it is not served, "" if it is.

        What is hidden or left out, and what is neither, is not there.
        """
        with self.directory.listing() as listing:
            for count, entry in enumerate(listing):
                if not count % _ENTRIES_BETWEEN_CHECKS:
                    check()
                name = entry.name
                kind: Kind = "dir" if entry.is_dir(follow_symlinks=False) else "file"
                if name.startswith(".") or (kind == "dir" and self.is_root):
                    continue
                if self.exclusion.leaves_out(name, is_folder=kind == "dir"):
                    continue
                if kind == "file" and not entry.is_file(follow_symlinks=False):
                    continue
                if kind == "file" and file_type(name) not in self.formats:
                    lacks = file_type(name) == "pdf" and pdf.folder_of_library() is None
                    yield entry, kind, NEEDS_EXTRA if lacks else OTHER_FORMAT
                else:
                    yield entry, kind, "" if served_name(name) else UNSERVABLE

    def served(self, check: CancellationCheck) -> list[tuple[str, Kind]]:
        """Return name and kind of what is served in it, by code point."""
        return sorted((entry.name, kind) for entry, kind, refused in self.entries(check) if not refused)


class Folder:
    """The manuals below `root`. Nothing is touched or remembered until a method is called; threads may share it.

    `exclude` are patterns of what is left out of all of them, `formats` the types of files that are served. Files of
    over `largest` bytes are not read.

    All methods raise `ManualsError` with one of the codes `invalid_parameter`, `invalid_path`, `forbidden`,
    `out_of_scope`, `not_found`, and `conflict` for what is there but cannot be read.
    """

    def __init__(
        self,
        root: Path,
        exclude: Iterable[str] = EXCLUDED,
        *,
        formats: Iterable[str] = FILE_TYPES,
        largest: int = LARGEST,
    ) -> None:
        self.root = os.fspath(root)
        self.largest = largest
        self._formats = frozenset(formats) - ({"pdf"} if pdf.folder_of_library() is None else set())
        self.documents = Documents()
        self._exclusion = Exclusion(exclude)

    @classmethod
    def of(cls, settings: ManualsSettings) -> Folder:
        """Return the folder that settings name, which must name one."""
        return cls(Path(settings.root or ""), settings.exclude, formats=settings.formats, largest=LARGEST)

    def manuals(self) -> list[str]:
        """Return the ids of the manuals, by code point of their names. A root that does not exist has none."""
        try:
            with closing(open_root(self.root)) as top:
                folders, files = self._in_root(top)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable_root(error) from error
        names = [*folders, self._own_name(folders)] if files else folders
        return [id_of(name) for name in sorted(names)]

    def _in_root(self, top: Directory) -> tuple[list[str], bool]:
        """Return the names of the folders in the root, and whether documents are in it, served or not."""
        folders: list[str] = []
        has_files = False
        for entry, kind, refused in self._top(top).entries(unchecked):
            if kind == "file":
                has_files = has_files or not refused or (refused != UNSERVABLE and ending_of(entry.name) in DOCUMENTS)
            elif not refused:
                folders.append(entry.name)
        return folders, has_files

    def _top(self, top: Directory, *, walked: bool = False) -> _Open:
        return _Open(top, (), Nothing() if walked else self._exclusion.entered(top), self._formats)

    def _own_name(self, folders: Iterable[str]) -> str:
        """Return the name of the manual of the files in the root, beside folders of these names."""
        root = os.path.basename(os.path.abspath(self.root))  # noqa: PTH100, PTH119
        name = root if served_name(root) else _NAMELESS
        taken = {_folded(each).casefold() for each in folders}
        number = 1
        while _folded(_numbered(name, number)).casefold() in taken:
            number += 1
        return _numbered(name, number)

    def _is_own(self, top: Directory, manual_id: str) -> bool:
        """Tell whether a manual is that of the files in the root."""
        name = _folded(name_of(manual_id))
        own = _folded(self._own_name(()))
        if not name.startswith(own):  # as nearly always, and the root need not be looked at
            return False
        folders, files = self._in_root(top)
        return files and name == _folded(self._own_name(folders))

    def require_manual(self, manual_id: str) -> str:
        """Return the id of a manual, spelled as its folder is on disk."""
        with self._inside(manual_id, ()) as found:
            return found.spelled[0]

    def children(self, manual_id: str, path: str, check: CancellationCheck) -> list[tuple[str, Kind]]:
        """Return name and kind of what is served directly in a folder of a manual, by code point."""
        with self._inside(manual_id, parts_of(path)) as found:
            try:
                return found.served(check)
            except OSError as error:
                raise _unreadable(_shown(path or manual_id), error) from error

    def walk(
        self,
        manual_id: str,
        check: CancellationCheck,
        left_out: dict[str, str],
        *,
        under: str = "",
        others: Counter[str] | None = None,
    ) -> Iterator[tuple[str, Stamp]]:
        """Yield path and stamp of every file below a manual or a folder of it, in no order; of `under` if it is a file.

        Adds to `left_out` the folders and files that are not searched, with the reason: `UNREADABLE`, `TOO_DEEP`,
        `UNSERVABLE` or `OTHER_FORMAT`, and counts in `others` the files of other types by their endings. What
        appears or vanishes meanwhile may be missing.
        """
        parts = parts_of(under)
        try:
            with self._inside(manual_id, parts) as found:
                start = "".join(f"{name}/" for name in found.spelled[1:])
                yield from _Walk(check, left_out, Counter() if others is None else others).below(found, start)
                return
        except ManualsError as error:
            if error.code != "not_found" or not parts:
                raise
        with self.open(manual_id, under) as handle:
            yield handle.name, Stamp.of(os.fstat(handle.fileno()))

    def has_files(self, manual_ids: Iterable[str], check: CancellationCheck) -> bool:
        """Tell whether there is a file to search in any of these manuals; one that cannot be read may have some."""
        try:
            return any(True for each in manual_ids for _ in self.walk(each, check, {}))
        except ManualsError:
            return True

    def open(self, manual_id: str, path: str, *, walked: bool = False) -> BinaryIO:
        """Open a file for reading; its `name` is the path as spelled on disk.

        A path that was just `walked` is not looked up again among those that are left out.
        """
        *above, name = parts_of(path) or [""]
        if not name:
            raise ManualsError("invalid_path", "path is empty; pass the path of a file as manual_toc lists it.")
        with self._inside(manual_id, above, walked=walked) as place:
            asked = "/".join([*above, name])
            directory = place.directory
            number, found = _at(
                directory, name, partial(_open_served, directory, place.formats), manual_id, asked, folder=False
            )
            if place.exclusion.leaves_out(found, is_folder=False):
                os.close(number)
                raise _left_out(manual_id, asked)

            def opener(_path: str, _flags: int) -> int:
                return number

            return open("/".join([*place.spelled[1:], found]), "rb", opener=opener)

    def document(self, manual_id: str, path: str, check: CancellationCheck) -> tuple[str, Stamp, Document]:
        """Return what is served of a file, with its path as spelled on disk and the stamp of its state."""
        for _ in range(_TRIES):
            with self.open(manual_id, path) as handle:
                stamp = Stamp.of(os.fstat(handle.fileno()))
                if stamp.size > self.largest:
                    message = f"'{handle.name}' is larger than {self.largest} bytes, the most that is read; split it."
                    raise ManualsError("conflict", message, path=handle.name)

                def made(handle: BinaryIO = handle) -> Document:
                    return document_of(handle.name, content_of(handle, self.largest, check), check)

                try:
                    key = (manual_id, handle.name, stamp)
                    document = made() if stamp.is_fresh() else self.documents.get(key, made)
                except Unserved as error:
                    message = f"No text can be read from '{handle.name}' ({error.reason})."
                    raise ManualsError("conflict", message, path=handle.name) from error
                if Stamp.of(os.fstat(handle.fileno())) == stamp:
                    return handle.name, stamp, document
        raise ManualsError(
            "conflict", f"'{path}' is being changed while it is read; ask again when it is complete.", path=path
        )

    @contextmanager
    def _inside(self, manual_id: str, parts: Sequence[str], *, walked: bool = False) -> Generator[_Open]:
        """Open a folder of a manual."""
        require_single_name(manual_id)
        if manual_id == ROOT_ID:
            message = f'manual_id must be {MANUAL_ID}, and not "{ROOT_ID}", which is the list of them all.'
            raise ManualsError("invalid_parameter", message, candidate_ids=self.manuals()[:_SHOWN])
        try:
            directory = open_root(self.root)
        except FileNotFoundError as error:
            raise _missing(manual_id, "") from error
        except OSError as error:
            raise _unreadable_root(error) from error
        place = self._top(directory, walked=walked)
        try:
            if self._is_own(directory, manual_id):
                if parts:
                    raise _missing(manual_id, "/".join(parts))
                yield replace(place, spelled=(id_of(self._own_name(self._in_root(directory)[0])),), is_root=True)
                return
            for name in (name_of(manual_id), *parts):
                path = "/".join(parts[: len(place.spelled)])
                try:
                    below, found = _at(directory, name, directory.enter, manual_id, path, folder=True)
                    left_out = place.exclusion.leaves_out(found, is_folder=True)
                except ManualsError as error:
                    if error.code == "not_found" and not place.spelled:
                        error.details["candidate_ids"] = self.manuals()[:_SHOWN]
                    raise
                directory.close()
                directory = below
                if left_out:
                    raise _left_out(manual_id, path)
                place = place.entered(directory, found)
            yield place
        finally:
            directory.close()


class _Walk(NamedTuple):
    """What a walk notes on its way; see `Folder.walk`."""

    check: CancellationCheck
    left_out: dict[str, str]
    others: Counter[str]

    def below(self, place: _Open, prefix: str, level: int = 1) -> Iterator[tuple[str, Stamp]]:
        """Yield path and stamp of the files below a folder, whose own path is `prefix`: empty, or ending in `/`."""
        folders: list[str] = []
        try:
            for entry, kind, refused in place.entries(self.check):
                name = entry.name
                if refused:
                    if refused != UNSERVABLE:
                        self.others[ending_of(name)] += 1
                    if refused == UNSERVABLE or ending_of(name) in DOCUMENTS:
                        self.left_out[prefix + _writable(name)] = refused
                elif kind == "dir":
                    folders.append(name)
                else:
                    try:
                        yield prefix + name, Stamp.of(entry.stat(follow_symlinks=False))
                    except OSError as error:
                        self._note(prefix + name, error)
        except OSError as error:
            self._note(prefix.rstrip("/"), error)
        for name in folders:
            if level == _DEEPEST:
                self.left_out[prefix + name] = TOO_DEEP
                continue
            try:
                below = place.directory.enter(name)
            except OSError as error:
                self._note(prefix + name, error)
                continue
            with closing(below):
                yield from self.below(place.entered(below, name), f"{prefix}{name}/", level + 1)

    def _note(self, path: str, error: OSError) -> None:
        """Note what cannot be looked at. Raises ManualsError where that is not to blame for it."""
        if shortage := exhausted(error):
            raise ManualsError("conflict", shortage) from error
        if error.errno not in _GONE:
            self.left_out[path] = UNREADABLE


def _writable(name: str) -> str:
    """Return a name that is not served such that somebody sees what is wrong with it."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(each if served_name(f"a{each}") or each == "\\" else f"<U+{ord(each):04X}>" for each in text)


def _open_served(directory: Directory, formats: frozenset[str], name: str) -> int:
    number = directory.open(name)
    if file_type(name) in formats and stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def _at(
    directory: Directory, name: str, act: Callable[[str], _T], manual_id: str, path: str, *, folder: bool
) -> tuple[_T, str]:
    """Do something to a name in a folder; return what it gives, and the name as spelled on disk."""
    try:
        try:
            return act(name), name
        except FileNotFoundError:
            name = _other_spelling(directory, name) or name
            return act(name), name
    except OSError as error:
        raise _refused(directory, name, error, manual_id, path, folder=folder) from error


def _other_spelling(directory: Directory, name: str) -> str | None:
    """Return the entry whose name differs from `name` only in composition (NFC, NFD) and outer blanks."""
    wanted = _folded(name)
    if name.isascii() and name == wanted:
        return None
    with directory.listing() as listing:
        found = [each.name for each in listing if served_name(each.name) and _folded(each.name) == wanted]
    return min(found, default=None)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip()


def _refused(
    directory: Directory, name: str, error: OSError, manual_id: str, path: str, *, folder: bool
) -> ManualsError:
    """Say why a name could not be opened as a folder, or as a file."""
    what = _shown(path) if path else f"Manual {_shown(manual_id)}"
    mode = 0
    try:
        mode = directory.mode(name)
    except OSError as missing:
        error = missing
    code: ErrorCode
    if stat.S_ISLNK(mode):
        code, why = "forbidden", "goes through a symbolic link, which is not followed"
    elif error.errno in (errno.ENAMETOOLONG, errno.EILSEQ):
        code, why = "invalid_path", "holds a name that this system does not allow"
    elif path and mode and folder != stat.S_ISDIR(mode):
        code, why = "not_found", "is a file, not a folder" if folder else "is a folder, not a file"
    elif error.errno == errno.ENOENT or (folder and mode and not stat.S_ISDIR(mode)):
        return _missing(manual_id, path)
    elif not folder and mode and (not stat.S_ISREG(mode) or error.errno == errno.EINVAL):
        code, why = "forbidden", "is not served: it is not a regular file of a served type"
    elif error.errno == errno.ELOOP:
        code, why = "out_of_scope", "leads out of the manual"
    else:
        return _unreadable(what, error, manual_id=manual_id, **({"path": path} if path else {}))
    return _error(code, f"{what} {why}", manual_id, path)


def _left_out(manual_id: str, path: str) -> ManualsError:
    what = _shown(path) if path else f"Manual {_shown(manual_id)}"
    return _error("forbidden", f"{what} is left out by manuals.exclude or a .gitignore file", manual_id, path)


def _missing(manual_id: str, path: str) -> ManualsError:
    what = f"Manual {_shown(manual_id)} has no {_shown(path)}" if path else f"There is no manual {_shown(manual_id)}"
    return _error("not_found", what, manual_id, path)


def _error(code: ErrorCode, cause: str, manual_id: str, path: str) -> ManualsError:
    if not path:
        return ManualsError(code, f"{cause}; take an id from manual_ls.", manual_id=manual_id)
    return ManualsError(code, f"{cause}; take a path from manual_toc or manual_ls.", manual_id=manual_id, path=path)


def _unreadable(what: str, error: OSError, **details: Any) -> ManualsError:
    why = error.strerror or type(error).__name__
    shortage = exhausted(error)
    cure = f". {shortage}" if shortage else "; give the server permission or mend the disk, then ask again."
    return ManualsError("conflict", f"{what} cannot be read ({why}){cure}", **details)


def _unreadable_root(error: OSError) -> ManualsError:
    if not isinstance(error, NotADirectoryError):
        return _unreadable("The folder of manuals", error)
    cure = "set manuals.root (MANUALS_ROOT) to the folder that has the manuals"
    return ManualsError("conflict", f"The folder of manuals is a file, not a folder; {cure}.")


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"


def _shown(name: str) -> str:
    return f"'{name[:_SHOWN_CHARS]}…'" if len(name) > _SHOWN_CHARS else f"'{name}'"
