"""Names of things under the manuals root: relative paths as clients write them, and the ids of `manual_ls`."""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections.abc import Mapping
from typing import Final, Literal

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.settings.model import FileType

ROOT_ID: Final = "manuals"
"""The id of the root itself (M2.1); no manual goes by it."""

NAMESAKE_ID: Final = "manual::manuals"
"""The id of a manual whose folder is called as the root is."""

MANUAL_ID: Final = f'the id of one manual, from manual_ls(id="{ROOT_ID}").items[].id'
"""What an id of a manual must be, as messages say it."""

Kind = Literal["dir", "file"]

_KINDS: Final[Mapping[str, Kind]] = {"dir": "dir", "file": "file"}
_TYPES: Final[Mapping[str, FileType]] = {
    "md": "md", "markdown": "markdown", "mdx": "mdx", "txt": "txt", "text": "txt", "rst": "rst", "adoc": "adoc",
    "asciidoc": "adoc", "org": "org", "html": "html", "htm": "html", "xhtml": "html", "ipynb": "ipynb", "docx": "docx",
    "pdf": "pdf", "man": "man", "mdoc": "man", "json": "json",
    **{f"{section}{kind}": "man" for section in "12345678" for kind in ("", "p", "m", "x", "ssl", "posix")},
}  # fmt: skip
_LONGEST_ENDING: Final = 10  # characters, with the dot
_LONGEST_PATH: Final = 4096  # characters; no system opens longer ones
_DRIVE: Final = re.compile(r"[A-Za-z]:(?:/|$)")
_DRIVE_ON_WINDOWS: Final = re.compile(r"[A-Za-z]:")
_NO_NAME_ON_WINDOWS: Final = re.compile(
    r'.*[<>:"|?*\x00-\x1f]|.*[. ]$|(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]) *(?:\.|$)', re.IGNORECASE | re.DOTALL
)
_IN_NO_NAME: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")
_CANNOT_BE_ASKED_FOR: Final = re.compile(r"\A\.|\A\s*\Z|[\\\0-\x1f\x7f-\x9f\ud800-\udfff]")


def file_type(path: str) -> FileType | None:
    """Return the type of a file that is served, by its extension in any case; None for all others."""
    _, dot, ending = path[-_LONGEST_ENDING:].rpartition(".")
    return _TYPES.get(ending.lower()) if dot else None


def ending_of(name: str) -> str:
    """Return the ending of a file's name, such as `.pdf`; nothing where there is none."""
    start, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if start and dot and ending.strip() else ""


def served_name(name: str) -> bool:
    """Tell whether an entry of a directory is one that clients can see: not hidden, and all of it can be shown.

    A name that is shown without some of its characters, which nobody sees, could not be asked for as it is shown.
    """
    if name.isascii():  # the same, and most names are: a look at all files of a manual comes by here for each
        return not name.startswith(".") and "\\" not in name and name.isprintable() and bool(name.strip())
    return _CANNOT_BE_ASKED_FOR.search(name) is None and _is_shown_whole(name)


def _is_shown_whole(text: str) -> bool:
    from responses_mcp.sanitization import sanitized  # noqa: PLC0415  # a start should not wait for its patterns

    return sanitized(text) == text


def parts_of(path: str, *, windows: bool = os.name == "nt") -> list[str]:
    r"""Return the names that make up a relative path; none for the place itself (`""`, `.`).

    `\` separates like `/`; empty names and `.` are dropped. Raises `invalid_path` for what cannot be a relative path
    below a manual, `forbidden` for hidden names. Messages do not repeat the path: it may be an absolute one.
    """
    text = path.replace("\\", "/")
    if len(text) > _LONGEST_PATH:
        raise _invalid("is too long")
    if _IN_NO_NAME.search(text):
        raise _invalid("holds characters that are in no name of a file that is served")
    start = text.lstrip()
    if start.startswith("/") or (_DRIVE_ON_WINDOWS if windows else _DRIVE).match(start):
        raise _invalid("is absolute")
    parts = [part for part in text.split("/") if part.strip() not in ("", ".")]
    if windows:  # no name ends so there, and outer blanks make no difference elsewhere
        parts = [part.rstrip(" ") for part in parts]
    for part in parts:
        if not part.isascii() and not _is_shown_whole(part):
            raise _invalid("holds characters that are in no name of a file that is served")
        if part.strip() == "..":
            raise _invalid("holds '..'")
        if part.startswith("."):
            raise ManualsError(
                "forbidden", "The path names a hidden file or folder, which is not served; take a path from manual_toc."
            )
        if windows and _NO_NAME_ON_WINDOWS.match(part):
            raise _invalid("holds a name that this system reserves")
    return parts


def lies_below(path: str, prefix: str) -> bool:
    """Tell whether a path is `prefix`, which has no slash at its end, or in that folder, however names are composed."""
    if not path.isascii():
        path = unicodedata.normalize("NFC", path)
    if not prefix.isascii():
        prefix = unicodedata.normalize("NFC", prefix)
    return path == prefix or path.startswith(f"{prefix}/")


def require_single_name(manual_id: str) -> None:
    """Raise `invalid_parameter` unless `manual_id` can be the name of a folder in the root; `forbidden` if hidden."""
    if manual_id == NAMESAKE_ID:
        return
    try:
        is_single = "/" not in manual_id and parts_of(manual_id) in ([manual_id], [manual_id.rstrip(" ")])
    except ManualsError as error:
        if error.code == "forbidden":
            raise
        is_single = False
    if not is_single:
        raise ManualsError("invalid_parameter", f"manual_id must be {MANUAL_ID}, and no path.")


def name_of(manual_id: str) -> str:
    """Return the name of the folder of a manual."""
    return ROOT_ID if manual_id == NAMESAKE_ID else manual_id


def id_of(name: str) -> str:
    """Return the id of the manual in a folder of that name."""
    return NAMESAKE_ID if name == ROOT_ID else name


def child_id(kind: Kind, manual_id: str, path: str) -> str:
    """Return the id of a file or folder in a manual: `kind::manual::path`, the path in unpadded url-safe base64."""
    packed = base64.urlsafe_b64encode(path.encode()).rstrip(b"=").decode()
    return f"{kind}::{manual_id}::{packed}"


def parse_child_id(identity: str) -> tuple[Kind, str, str] | None:
    """Return what `child_id` was given, None for an id of another form; raise `invalid_parameter` for a broken one."""
    start, mark, rest = identity.partition("::")
    kind = _KINDS.get(start)
    if not mark or kind is None:
        return None
    manual_id, mark, packed = rest.rpartition("::")
    try:
        path = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True).decode()
    except ValueError:
        path = ""
    if not mark or not manual_id or not path or child_id(kind, manual_id, path) != identity:
        raise ManualsError("invalid_parameter", "id is damaged; pass an id exactly as manual_ls returned it.")
    return kind, manual_id, path


def _invalid(why: str) -> ManualsError:
    return ManualsError("invalid_path", f"The path {why}; pass a path relative to the manual, as manual_toc lists it.")
