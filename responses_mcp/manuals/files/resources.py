"""The manuals as resources of the protocol: their list page by page, what a URI names, and proposals for its parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.reading import read, scan
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.paths import Kind, file_type, name_of, parts_of
from responses_mcp.manuals.requests.uris import Place, uri_of

_MOST_LISTED: Final = 200  # resources of a page
_MOST_IN_FOLDER: Final = 1000  # rows of a folder that is read
_MOST_CHARS: Final = 50_000  # of a file at once, as manual_scan allows
_DEEPEST: Final = 64  # levels of folders, as everywhere
_JSON: Final = "application/json"
_TYPES: Final = {"md": "text/markdown", "markdown": "text/markdown", "json": _JSON}
_TEXT: Final = "text/plain"  # as all other types are served


def list_resources(
    folder: Folder, after: Place | None, check: CancellationCheck
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of resources behind a place, and the URI behind which the next page begins, None behind the last.

    First come all manuals, then their files, by manual and path. What cannot be looked at is left out. Of the files
    only those on the page are held, and the names in the folders that lead to them.
    """
    found = list(islice(_rows(folder, after or Place(""), check), _MOST_LISTED + 1))
    page = found[:_MOST_LISTED]
    return page, page[-1]["uri"] if len(found) > len(page) else None


def _rows(folder: Folder, after: Place, check: CancellationCheck) -> Iterator[dict[str, Any]]:
    ids = sorted(folder.manuals())  # which URIs name
    if not after.path:
        for each in ids:
            if each > after.manual_id:
                title = f"Manual {name_of(each)}: list of files"
                yield {"uri": uri_of(each), "name": name_of(each), "title": title, "mimeType": _JSON}
    for each in ids:
        if not after.path or each >= after.manual_id:
            passed = after.path.split("/") if after.path and each == after.manual_id else ()
            for path in _below(folder, each, "", passed, check):
                name, title = path.rpartition("/")[2], f"{name_of(each)}/{path}"
                yield {"uri": uri_of(each, path), "name": name, "title": title, "mimeType": _type_of(path)}


def _below(folder: Folder, manual_id: str, above: str, after: Sequence[str], check: CancellationCheck) -> Iterator[str]:
    """Yield the paths of the files below a folder, in order of the names that lead to them, behind those of `after`."""
    try:
        children: list[tuple[str, Kind]] = folder.children(manual_id, above, check)
    except ManualsError as error:
        if error.__cause__ is not None and exhausted(error.__cause__):
            raise
        return
    for name, kind in children:
        same = bool(after) and name == after[0]
        if after and not same and name < after[0]:
            continue
        if kind == "file":
            if not (same and len(after) == 1):
                yield above + name
        elif above.count("/") < _DEEPEST - 1:
            yield from _below(folder, manual_id, f"{above}{name}/", after[1:] if same else (), check)


def read_resource(folder: Folder, place: Place, check: CancellationCheck) -> list[dict[str, Any]]:
    """Return the contents of a resource: the text of a file or section, or the list of a folder.

    Of a long text 50,000 characters come, and a second text that says under which URI it goes on. Raises `ManualsError`
    as `scan` and `read` do.
    """
    manual_id, path, line, char = place
    if not path or path.endswith("/"):
        return [_listing(folder, manual_id, path, check)]
    uri = uri_of(manual_id, path, char=char)
    if line is None:
        page = scan(folder, ScanRequest(manual_id, path, None, char, _MOST_CHARS), check)
        text, following = page["text"], page["next_cursor"]["char_offset"]
    else:
        section, end = read(folder, ReadRequest(manual_id, path, line, _MOST_CHARS), check)
        text, following = section["text"], end.char_offset if section["truncated"] else None
        uri = f"{uri}#line={line}"
    contents = [{"uri": uri, "mimeType": _type_of(path.strip()), "text": text}]
    if following is not None:
        further = uri_of(manual_id, path, char=following)
        note = f"This is not all of it: {further} is what follows."
        contents.append({"uri": further, "mimeType": _TEXT, "text": note})
    return contents


def completions(folder: Folder, manual_id: str | None, typed: str, check: CancellationCheck) -> list[str]:
    """Return the manuals whose id begins with what was typed; or with a manual, its paths that do, level by level.

    Folders end in `/`. Nothing for a manual or a folder that is not there.
    """
    if manual_id is None:
        return [each for each in folder.manuals() if each.casefold().startswith(typed.casefold())]
    above, slash, name = typed.rpartition("/")
    try:
        children = folder.children(manual_id, above, check)
    except ManualsError:
        return []
    found = [(each, kind) for each, kind in children if each.casefold().startswith(name.casefold())]
    return [f"{above}{slash}{each}{'/' if kind == 'dir' else ''}" for each, kind in found]


def _type_of(path: str) -> str:
    return _TYPES.get(file_type(path) or "", _TEXT)


def _listing(folder: Folder, manual_id: str, path: str, check: CancellationCheck) -> dict[str, Any]:
    children = folder.children(manual_id, path, check)
    above = "".join(f"{name}/" for name in parts_of(path))
    rows = [
        {"uri": uri_of(manual_id, f"{above}{name}{'/' if kind == 'dir' else ''}"), "name": name, "kind": kind}
        for name, kind in children[:_MOST_IN_FOLDER]
    ]
    listed: dict[str, Any] = {"manual_id": manual_id, "path": above, "items": rows}
    if len(children) > len(rows):
        listed["note"] = f"Shown: {len(rows)} of {len(children)}; manual_search finds the others."
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return {"uri": uri_of(manual_id, above), "mimeType": _JSON, "text": text}
