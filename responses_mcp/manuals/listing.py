"""`manual_ls`: what is directly in the root, in a manual, or in a folder of one (contract, manual_ls)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from responses_mcp.manuals.checks import Check, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.paths import ROOT_ID, Kind, child_id, file_type, parse_child_id
from responses_mcp.manuals.requests import LsRequest

_SORTED_AT_ONCE: Final = 1024  # names; more would keep all other threads waiting


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
