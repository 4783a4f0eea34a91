"""The manuals as resources of the protocol: their list page by page, what a URI names, and proposals for its parts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from responses_mcp.errors import exhausted
from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.reading import read, scan
from responses_mcp.manuals.requests import ReadRequest, ScanRequest
from responses_mcp.manuals.requests.paths import Kind, file_type, name_of, parts_of
from responses_mcp.manuals.requests.uris import Place, Position, uri_of

MOST_COMPLETED: Final = 100
"""Values that a completion may have."""

_MOST_LISTED: Final = 200  # resources of a page
_MOST_IN_FOLDER: Final = 1000  # rows of a folder that is read
_MOST_CHARS: Final = 50_000  # of a file at once, as manual_scan allows
_DEEPEST: Final = 64  # levels of folders, as everywhere
_JSON: Final = "application/json"
_TYPES: Final = {"md": "text/markdown", "markdown": "text/markdown", "json": _JSON}
_TEXT: Final = "text/plain"  # as all other types are served


@dataclass(frozen=True, slots=True)
class Completed:
    """Proposals for a part of a URI: the first ones, and how many there are."""

    values: list[str]
    total: int


def list_resources(
    folder: Folder, after: Position | None, check: CancellationCheck
) -> tuple[list[dict[str, Any]], Position | None]:
    """Return a page of resources behind a position, and where the next page begins, None behind the last.

    First come all manuals, then their files, by manual and path. What cannot be looked at is left out. Of the files
    only those on the page are held, and the names in the folders that lead to them.
    """
    names = sorted(folder.manuals())  # by their ids, which positions name
    found: list[tuple[dict[str, Any], Position]] = []
    if after is None or after.path is None:
        rest = [name for name in names if after is None or name > after.manual_id]
        found = [(_manual(name), Position(name)) for name in islice(rest, _MOST_LISTED + 1)]
    if len(found) <= _MOST_LISTED:
        files = _files(folder, names, None if after is None or after.path is None else after, check)
        for manual_id, path in islice(files, _MOST_LISTED + 1 - len(found)):
            found.append((_file(folder, manual_id, path), Position(manual_id, path)))
    rows = [row for row, _ in found[:_MOST_LISTED]]
    return rows, found[_MOST_LISTED - 1][1] if len(found) > _MOST_LISTED else None


def read_resource(folder: Folder, place: Place, check: CancellationCheck) -> list[dict[str, Any]]:
    """Return the contents of a resource: the text of a file or section, or the list of a folder.

    Of a long text 50,000 characters come, and a second text that says under which URI it goes on. Raises `ManualsError`
    as `scan` and `read` do.
    """
    if place.is_folder:
        return [_listing(folder, place.manual_id, place.path, check)]
    uri = uri_of(place.manual_id, place.path)
    if place.line is None:
        request = ScanRequest(place.manual_id, place.path, None, place.char, _MOST_CHARS)
        page = scan(folder, request, check)
        text, following = page["text"], page["next_cursor"]["char_offset"]
        uri = uri if place.char is None else f"{uri}#char={place.char}"
    else:
        section, end = read(folder, ReadRequest(place.manual_id, place.path, place.line, _MOST_CHARS), check)
        text, following = section["text"], end.char_offset if section["truncated"] else None
        uri = f"{uri}#line={place.line}"
    contents = [{"uri": uri, "mimeType": _TYPES.get(file_type(place.path.strip()) or "", _TEXT), "text": text}]
    if following is not None:
        further = uri_of(place.manual_id, place.path, char=following)
        note = f"This is not all of it: {further} is what follows."
        contents.append({"uri": further, "mimeType": _TEXT, "text": note})
    return contents


def complete_manual_id(folder: Folder, typed: str) -> Completed:
    """Return the manuals whose id begins with what was typed, or else those that have it somewhere."""
    ids = folder.manuals()
    wanted = typed.casefold()
    found = [each for each in ids if each.casefold().startswith(wanted)]
    found = found or [each for each in ids if wanted in each.casefold()]
    return Completed(found[:MOST_COMPLETED], len(found))


def complete_path(folder: Folder, manual_id: str, typed: str, check: CancellationCheck) -> Completed:
    """Return the files and folders of a manual that go on from what was typed, one level at a time.

    Folders end in `/`. Nothing for a manual or a folder that is not there.
    """
    above, slash, name = typed.rpartition("/")
    try:
        children = folder.children(manual_id, above, check)
    except ManualsError:
        return Completed([], 0)
    wanted = name.casefold()
    found = [
        f"{above}{slash}{each}{'/' if kind == 'dir' else ''}"
        for each, kind in children
        if each.casefold().startswith(wanted)
    ]
    return Completed(found[:MOST_COMPLETED], len(found))


def _manual(manual_id: str) -> dict[str, Any]:
    name = name_of(manual_id)
    return {"uri": uri_of(manual_id), "name": name, "title": f"Manual {name}: list of files", "mimeType": _JSON}


def _file(folder: Folder, manual_id: str, path: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "uri": uri_of(manual_id, path),
        "name": path.rpartition("/")[2],
        "title": f"{name_of(manual_id)}/{path}",
        "mimeType": _TYPES.get(file_type(path) or "", _TEXT),
    }
    with suppress(ManualsError), folder.open(manual_id, path) as handle:  # it cannot be read now, but perhaps later
        row["size"] = os.fstat(handle.fileno()).st_size
    return row


def _files(
    folder: Folder, names: Sequence[str], after: Position | None, check: CancellationCheck
) -> Iterator[tuple[str, str]]:
    for manual_id in names:
        parts: Sequence[str] = ()
        if after is not None and manual_id <= after.manual_id:
            if manual_id < after.manual_id:
                continue
            parts = (after.path or "").split("/")
        for path in _below(folder, manual_id, "", parts, check):
            yield manual_id, path


def _below(folder: Folder, manual_id: str, above: str, after: Sequence[str], check: CancellationCheck) -> Iterator[str]:
    """Yield the paths of the files below a folder, in order of the names that lead to them, behind those of `after`."""
    for name, kind in _children(folder, manual_id, above, check):
        same = bool(after) and name == after[0]
        if after and not same and name < after[0]:
            continue
        if kind == "file":
            if not (same and len(after) == 1):
                yield above + name
        elif above.count("/") < _DEEPEST - 1:
            yield from _below(folder, manual_id, f"{above}{name}/", after[1:] if same else (), check)


def _children(folder: Folder, manual_id: str, path: str, check: CancellationCheck) -> list[tuple[str, Kind]]:
    """Return what is in a folder, nothing if it cannot be looked at."""
    try:
        return folder.children(manual_id, path, check)
    except ManualsError as error:
        if error.__cause__ is not None and exhausted(error.__cause__):
            raise
        return []


def _listing(folder: Folder, manual_id: str, path: str, check: CancellationCheck) -> dict[str, Any]:
    children = folder.children(manual_id, path, check)
    above = "".join(f"{name}/" for name in parts_of(path))
    rows = [
        {"uri": uri_of(manual_id, f"{above}{name}{'/' if kind == 'dir' else ''}"), "name": name, "kind": kind}
        for name, kind in children[:_MOST_IN_FOLDER]
    ]
    listed: dict[str, Any] = {"manual_id": manual_id, "path": above, "items": rows}
    if len(children) > len(rows):
        listed["note"] = f"These are {len(rows)} of {len(children)}; manual_search finds the others."
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return {"uri": uri_of(manual_id, above), "mimeType": _JSON, "text": text}
