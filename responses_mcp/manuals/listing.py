"""What there is: `manual_ls` and `manual_toc` (contract, manual_ls and manual_toc).

The first lists what is directly in the root, in a manual, or in a folder of one; the second the files of a manual page
by page, with their headings if wanted.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from responses_mcp.manuals.checks import Check, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.paths import ROOT_ID, Kind, child_id, file_type, parse_child_id, parts_of
from responses_mcp.manuals.requests import LsRequest, TocRequest
from responses_mcp.manuals.sections import headings
from responses_mcp.manuals.texts import ENOUGH_OF_A_LINE, Lines, spans

_SORTED_AT_ONCE: Final = 1024  # names; more would keep all other threads waiting
_MOST_IN_SCOPE: Final = 200  # files; the contract's hard limit
_MOST_AT_ONCE: Final = 50  # files on a page with headings, or of a whole manual
_PROPOSED: Final = 20  # folders in the details of `needs_narrow_scope`


def list_children(folder: Folder, request: LsRequest, check: Check = unchecked) -> dict[str, Any]:
    """Return `{id, items}`: a row for each child, sorted by name, with the id to list or the path to read it.

    Raises `ManualsError`: `invalid_parameter` for the id of a file, a damaged id, or no id at all.
    """
    if request.id == ROOT_ID:
        rows: list[dict[str, Any]] = [{"id": name, "name": name, "kind": "dir"} for name in folder.manuals()]
        return {"id": request.id, "items": rows}
    kind, manual_id, path = parse_child_id(request.id) or ("dir", request.id, "")
    if kind == "file":
        raise ManualsError(
            "invalid_parameter", "id names a file, which has no children; read it with manual_read or manual_scan."
        )
    children = _in_order(folder.children(manual_id, path), check)
    start = f"{path}/" if path else ""
    return {"id": request.id, "items": [_row(manual_id, start + name, name, each) for name, each in children]}


def _row(manual_id: str, path: str, name: str, kind: Kind) -> dict[str, Any]:
    row: dict[str, Any] = {"id": child_id(kind, manual_id, path), "name": name, "kind": kind}
    return row if kind == "dir" else {**row, "path": path, "file_type": file_type(name)}


def _in_order(children: Iterator[tuple[str, Kind]], check: Check) -> Iterator[tuple[str, Kind]]:
    runs: list[list[tuple[str, Kind]]] = []
    while run := sorted(islice(children, _SORTED_AT_ONCE)):
        check()
        runs.append(run)
    for count, child in enumerate(heapq.merge(*runs)):
        if not count % _SORTED_AT_ONCE:
            check()
        yield child


def table_of_contents(folder: Folder, request: TocRequest, check: Check) -> dict[str, Any]:
    """Return a page of the files at or below `path_prefix`, by code point of their paths.

    Raises `needs_narrow_scope` if these are more than 200, `invalid_parameter` for an offset beyond them, and what
    `Folder.paths` does. A file that cannot be read has no headings but a `note`; folders that cannot be are named under
    `unreadable`.
    """
    prefix = "/".join(parts_of(request.path_prefix))
    deep = request.depth == "deep"
    if deep and not prefix:
        raise ManualsError(
            "invalid_parameter", 'path_prefix is needed with depth "deep"; pass a file or folder, or depth "shallow".'
        )
    if (deep or not prefix) and request.max_files > _MOST_AT_ONCE:
        when = 'with depth "deep"' if deep else "without path_prefix"
        raise ManualsError("invalid_parameter", f"max_files is above {_MOST_AT_ONCE} {when}; pass at most that.")
    unreadable: list[str] = []
    manual_id = folder.require_manual(request.manual_id)
    found = list(folder.paths(manual_id, check, under=prefix, unreadable=unreadable))
    total = len(found)
    if total > _MOST_IN_SCOPE:
        raise _too_wide(manual_id, prefix, found, check)
    found.sort()
    if request.offset > total:
        raise ManualsError(
            "invalid_parameter",
            f"cursor.offset {request.offset} is beyond the end: there are {total} files; start again without a cursor.",
            total_files=total,
        )
    page = found[request.offset : request.offset + request.max_files]
    end = request.offset + len(page)
    most = request.max_headings_per_file
    contents: dict[str, Any] = {
        "applied": {
            "manual_id": manual_id,
            "path_prefix": prefix,
            "depth": request.depth,
            "max_files": request.max_files,
            "include_headings": deep,
            "max_headings_per_file": most,
            "offset": request.offset,
        },
        "total_files": total,
        "next_cursor": {"offset": end} if end < total else None,
        "items": [_with_headings(folder, manual_id, path, most, check) if deep else _alone(path) for path in page],
    }
    if unreadable:
        contents["unreadable"] = sorted(unreadable)[:_PROPOSED]
    return contents


def _alone(path: str) -> dict[str, Any]:
    return {"path": path, "headings": []}


def _with_headings(folder: Folder, manual_id: str, path: str, most: int, check: Check) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    if file_type(path) == "json":
        return {"path": path, "headings": [{"title": name, "line_start": 1}]}
    try:
        with folder.open(manual_id, path) as handle:
            listed = list(islice(headings(Lines(spans(handle, check), ENOUGH_OF_A_LINE)), most))
    except ManualsError as error:
        return {**_alone(path), "note": error.message}
    rows = [{"title": each.title, "line_start": each.line} for each in listed]
    return {"path": path, "headings": rows or [{"title": name[: -len(".md")], "line_start": 1}]}


def _too_wide(manual_id: str, prefix: str, found: list[str], check: Check) -> ManualsError:
    where = f"'{prefix}'" if prefix else f"Manual '{manual_id}'"
    told = f"{where} has {len(found)} files, more than the {_MOST_IN_SCOPE} that can be listed"
    folders = _folders_that_fit(found, check)
    if not folders:
        return ManualsError(
            "needs_narrow_scope",
            f"{told}, and no folder in it has fewer; pass the path of one file as path_prefix, or use manual_find.",
            total_files=len(found),
        )
    cure = f"pass a folder as path_prefix, such as '{folders[0]['path_prefix']}', or use manual_find."
    return ManualsError("needs_narrow_scope", f"{told}; {cure}", total_files=len(found), folders=folders)


def _folders_that_fit(found: list[str], check: Check) -> list[dict[str, Any]]:
    """Return the largest folders with few enough files, none of them in another."""
    sizes: Counter[str] = Counter()
    for count, path in enumerate(found):
        if not count % 1024:
            check()
        at = path.find("/")
        while at >= 0:
            sizes[path[:at]] += 1
            at = path.find("/", at + 1)
    fitting = [
        (-files, path)
        for path, files in sizes.items()
        if files <= _MOST_IN_SCOPE < sizes.get(path.rpartition("/")[0], len(found))
    ]
    return [{"path_prefix": path, "files": -files} for files, path in sorted(fitting)[:_PROPOSED]]
