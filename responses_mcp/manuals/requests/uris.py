"""Names of manuals, folders and files as URIs, `manual://guide/api/auth.md`.

The manual's id and the path are percent-encoded. A path that ends in `/`, or is empty, names a folder or the manual.
`#line=12` at the end names the section whose heading is there, `#char=50000` the text from that character on.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from responses_mcp.manuals.errors import ManualsError

TEMPLATE: Final = "manual://{manual_id}/{+path}"
"""The URI of anything in a manual, as RFC 6570 writes such."""

_SCHEME: Final = "manual://"
_LONGEST: Final = 40_000  # characters of a URI: a path of 4,096, each of its characters in nine
# Only these are fragments: a name with a number sign need not be encoded, as clients that fill in the template do not.
_FRAGMENT: Final = re.compile(r"(.*)#(line|char)=(\d{1,12})", re.DOTALL)


class Place(NamedTuple):
    """What a URI names: a file if `path` is not empty and does not end in `/`, maybe from a line or a character on."""

    manual_id: str
    path: str = ""
    line: int | None = None
    char: int | None = None


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
    rest, line, char = uri[len(_SCHEME) :], None, None
    if (fragment := _FRAGMENT.fullmatch(rest)) is not None:
        rest = fragment[1]
        line, char = (int(fragment[3]) if fragment[2] == each else None for each in ("line", "char"))
    try:
        manual_id, _, path = (unquote_to_bytes(each).decode() for each in rest.partition("/"))
    except UnicodeError:
        raise _invalid("holds bytes that are not UTF-8") from None
    return Place(manual_id, path, line, char)


def _invalid(why: str) -> ManualsError:
    return ManualsError("invalid_path", f"The URI {why}; take one from resources/list, or write {TEMPLATE}.")
