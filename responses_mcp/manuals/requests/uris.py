"""Names of manuals, folders and files as URIs, `manual://guide/api/auth.md`, and the cursors of their list.

The manual's id and the path are percent-encoded. A path that ends in `/`, or is empty, names a folder or the manual.
`#line=12` at the end names the section whose heading is there, `#char=50000` the text from that character on.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from responses_mcp.manuals.errors import ManualsError

TEMPLATE: Final = "manual://{manual_id}/{+path}"
"""The URI of anything in a manual, as RFC 6570 writes such."""

_SCHEME: Final = "manual://"
_LONGEST: Final = 40_000  # characters of a URI or cursor: a path of 4,096, each of its characters in nine
# Only these are fragments: a name with a number sign need not be encoded, as clients that fill in the template do not.
_FRAGMENT: Final = re.compile(r"(.*)#(line|char)=(\d{1,12})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Place:
    """What a URI names: a file if `path` is not empty and does not end in `/`, maybe from a line or a character on."""

    manual_id: str
    path: str
    line: int | None = None
    char: int | None = None

    @property
    def is_folder(self) -> bool:
        """Whether it is a manual or a folder in one."""
        return not self.path or self.path.endswith("/")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a list has come: to a manual, or with a `path` through all manuals and to a file of this one."""

    manual_id: str
    path: str | None = None


def uri_of(manual_id: str, path: str = "", *, char: int | None = None) -> str:
    """Return the URI of a file, of a folder if `path` ends in `/`, of the manual without one."""
    fragment = "" if char is None else f"#char={char}"
    return f"{_SCHEME}{quote(manual_id, safe='')}/{quote(path, safe='/')}{fragment}"


def parse_uri(uri: str) -> Place:
    """Return what a URI names, decoded once; whether there is such a thing, and may be read, is for `Folder` to say.

    Raises `invalid_path` for another scheme, for what is too long and for bytes that are not UTF-8.
    """
    if len(uri) > _LONGEST:
        raise _invalid("is too long")
    if not uri[: len(_SCHEME)].lower() == _SCHEME:
        raise _invalid("does not begin with manual://")
    rest = uri[len(_SCHEME) :]
    line = char = None
    if (fragment := _FRAGMENT.fullmatch(rest)) is not None:
        rest = fragment[1]
        line = int(fragment[3]) if fragment[2] == "line" else None
        char = int(fragment[3]) if fragment[2] == "char" else None
    name, _, path = rest.partition("/")
    return Place(_decoded(name), _decoded(path), line, char)


def cursor_of(position: Position) -> str:
    """Return a position as a client gets it."""
    text = position.manual_id if position.path is None else f"{position.manual_id}\0{position.path}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def parse_cursor(cursor: str) -> Position:
    """Return the position that `cursor_of` was given; raise `invalid_parameter` for what it never returns.

    A cursor that somebody made up is no danger: its names are only compared with those that there are.
    """
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode() if len(cursor) <= _LONGEST else ""
    except ValueError:
        text = ""
    manual_id, mark, path = text.partition("\0")
    position = Position(manual_id, path if mark else None)
    if not manual_id or "\0" in path or (mark and not path) or cursor_of(position) != cursor:
        raise ManualsError("invalid_parameter", "cursor is damaged; pass nextCursor unchanged, or none to begin again.")
    return position


def _decoded(text: str) -> str:
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        raise _invalid("holds bytes that are not UTF-8") from None


def _invalid(why: str) -> ManualsError:
    return ManualsError("invalid_path", f"The URI {why}; take one from resources/list, or write {TEMPLATE}.")
