"""What there is: `manual_ls` and `manual_toc` (M2 and M3).

The first lists what is directly in the root, in a manual, or in a folder of one; the second the files of a manual page
by page, with their headings if wanted.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from itertools import accumulate
from typing import Any, Final

from responses_mcp.manuals.cancellation import CancellationCheck, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.files.unserved import why_empty
from responses_mcp.manuals.requests import LsRequest, TocRequest
from responses_mcp.manuals.requests.paths import ROOT_ID, Kind, child_id, file_type, name_of, parse_child_id, parts_of

MOST_LISTED: Final = 1000
"""Rows of `manual_ls` at once."""

_FURTHER: Final = re.compile(r"further::(\d{1,9})::(.+)", re.DOTALL)
_MOST_IN_SCOPE: Final = 200  # files (M3.7)
_PROPOSED: Final = 20  # folders in the details of `needs_narrow_scope`


def list_children(folder: Folder, request: LsRequest, check: CancellationCheck = unchecked) -> dict[str, Any]:
    """Return `{id, items}`: a row for each child, sorted by name, with the id to list or the path to read it.

    Of very many, `MOST_LISTED` come at once, with `next_id` for the next ones. A `note` says so, or why there is none
    in the root. Raises `ManualsError`: `invalid_parameter` for the id of a file, a
    damaged id, or no id at all.
    """
    further = _FURTHER.fullmatch(request.id)
    start, identity = (int(further[1]), further[2]) if further else (0, request.id)
    if identity == ROOT_ID:
        rows: list[dict[str, Any]] = [{"id": each, "name": name_of(each), "kind": "dir"} for each in folder.manuals()]
        why_none = why_there_is_none(folder.root) if not rows else ""
    else:
        kind, manual_id, path = parse_child_id(identity) or ("dir", identity, "")
        if kind == "file":
            raise ManualsError(
                "invalid_parameter", "id names a file, which has no children; read it with manual_read or manual_scan."
            )
        above = f"{path}/" if path else ""
        rows = [_row(manual_id, above + name, name, each) for name, each in folder.children(manual_id, path, check)]
        why_none = why_empty(folder, manual_id, path, check) if not rows else ""
    end = start + MOST_LISTED
    listed: dict[str, Any] = {"id": request.id, "items": rows[start:end]}
    if why_none:
        listed["note"] = why_none
    elif end < len(rows):
        listed["next_id"] = f"further::{end}::{identity}"
        told = f"Items {start + 1} to {end} of {len(rows)}"
        listed["note"] = f"{told}; manual_ls with next_id as id lists more, manual_find searches all."
    return listed


def why_there_is_none(root: str) -> str:
    """Say why there is no manual in the root, and what to do."""
    where, cure = f"The folder of manuals, '{root}',", "set manuals.root (MANUALS_ROOT) to the folder that has them."
    if not os.path.lexists(root):
        return f"{where} does not exist; create it and put the manuals there, or {cure}"
    return f"{where} has no folder and no served file. Put the manuals there, or {cure}"


def _row(manual_id: str, path: str, name: str, kind: Kind) -> dict[str, Any]:
    row: dict[str, Any] = {"id": child_id(kind, manual_id, path), "name": name, "kind": kind}
    return row if kind == "dir" else {**row, "path": path, "file_type": file_type(name)}


def table_of_contents(folder: Folder, request: TocRequest, check: CancellationCheck) -> dict[str, Any]:
    """Return a page of the files at or below `path_prefix`, by code point of their paths.

    Raises `ManualsError`: `needs_narrow_scope` if these are more than 200, `invalid_parameter` for an offset beyond
    them, `not_found` for a prefix that is nowhere, and what `Folder` does. A file that cannot be read has a `note`
    instead of headings, and so has a page without files; folders that cannot be read or served are named under
    `unreadable`.
    """
    prefix = "/".join(parts_of(request.path_prefix))
    deep = request.depth == "deep"
    left_out: dict[str, str] = {}
    manual_id = folder.require_manual(request.manual_id)
    found = [path for path, _ in folder.walk(manual_id, check, left_out, under=prefix)]
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
        "items": [
            _with_headings(folder, manual_id, path, most, check) if deep else {"path": path, "headings": []}
            for path in page
        ],
    }
    if not total:
        contents["note"] = why_empty(folder, manual_id, prefix, check)
    if left_out:
        contents["unreadable"] = sorted(left_out)[:_PROPOSED]
    return contents


def _with_headings(folder: Folder, manual_id: str, path: str, most: int, check: CancellationCheck) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    if file_type(path) != "json":
        name = name.rpartition(".")[0]
    try:
        listed = folder.document(manual_id, path, check)[2].headings[:most]
    except ManualsError as error:
        return {"path": path, "headings": [], "note": error.message}
    rows = [{"title": shown_title(each.title) or name, "line_start": each.line} for each in listed]
    return {"path": path, "headings": rows or [{"title": name, "line_start": 1}]}


def _too_wide(manual_id: str, prefix: str, found: list[str], check: CancellationCheck) -> ManualsError:
    where = f"'{prefix}'" if prefix else f"Manual '{manual_id}'"
    told = f"{where} has {len(found)} files, more than the {_MOST_IN_SCOPE} that can be listed"
    folders = _folders_that_fit(found, check)
    if not folders:
        cure = "and no folder in it has fewer; pass the path of one file as path_prefix, or use manual_find."
        return ManualsError("needs_narrow_scope", f"{told}, {cure}", total_files=len(found))
    cure = f"pass a folder as path_prefix, such as '{folders[0]['path_prefix']}', or use manual_find."
    return ManualsError("needs_narrow_scope", f"{told}; {cure}", total_files=len(found), folders=folders)


def _folders_that_fit(found: list[str], check: CancellationCheck) -> list[dict[str, Any]]:
    """Return the largest folders with few enough files, none of them in another."""
    sizes = Counter({"": len(found)})
    for count, path in enumerate(found):
        if not count % 1024:
            check()
        sizes.update(accumulate(path.split("/")[:-1], "{}/{}".format))
    fitting = [
        (-files, path) for path, files in sizes.items() if files <= _MOST_IN_SCOPE < sizes[path.rpartition("/")[0]]
    ]
    return [{"path_prefix": path, "files": -files} for files, path in sorted(fitting)[:_PROPOSED]]
