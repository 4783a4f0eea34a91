"""What of a folder of manuals is not served, in words: for people and agents, who wonder where their files are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from responses_mcp.errors import installing
from responses_mcp.manuals.cancellation import CancellationCheck, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.formats import pdf
from responses_mcp.manuals.requests.paths import served_name

_MOST_KINDS: Final = 3  # that are named
_MOST_NAMED: Final = 3
_NO_TEXT: Final = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".ico", ".bmp", ".avif", ".heic", ".tif", ".tiff"),
        *(".mp3", ".wav", ".ogg", ".mp4", ".webm", ".mov", ".avi", ".woff", ".woff2", ".ttf", ".otf", ".eot"),
        *(".css", ".scss", ".map", ".zip", ".gz", ".tgz", ".xz", ".bz2", ".7z", ".tar", ".lock", ".sqlite", ".db"),
        *(".so", ".dll", ".exe", ".bin", ".o", ".a", ".class", ".jar", ".pyc"),
    }
)

NO_FILES: Final = "No file has a format that can be searched."
"""What is said where there are manuals, but nothing in them is served."""


def other_kinds(
    folder: Folder, manual_ids: Iterable[str], check: CancellationCheck = unchecked, *, under: str = ""
) -> dict[str, int]:
    """Count the files of manuals, or of a folder in them, that are not served for their format, by their endings.

    Those without an ending are under `""`. Hidden files, and what cannot be looked at, do not count.
    """
    others: Counter[str] = Counter()
    for each in manual_ids:
        try:
            for _ in folder.walk(each, check, {}, under=under, others=others):
                pass
        except ManualsError:
            continue
    return dict(others)


def why_empty(folder: Folder, manual_id: str, under: str, check: CancellationCheck) -> str:
    """Say that there is no file of a served format in a manual or a folder of it, and what there is instead."""
    others = in_words(readable(other_kinds(folder, [manual_id], check, under=under)))
    return f"{NO_FILES} {others}." if others else NO_FILES


def readable(kinds: Mapping[str, int]) -> dict[str, int]:
    """Return those of counted files that may have a text, by their endings."""
    return {ending: files for ending, files in kinds.items() if ending not in _NO_TEXT}


def about_links(root: str) -> tuple[str, str] | None:
    """Say which links to folders are in the root, where none is followed, and what to do; None if there are none."""
    try:
        with os.scandir(root) as listing:
            links = sorted(
                each.name for each in listing if served_name(each.name) and each.is_symlink() and each.is_dir()
            )
    except OSError:
        return None
    named = ", ".join(links[:_MOST_NAMED])
    if len(links) > _MOST_NAMED:
        named += f" and {len(links) - _MOST_NAMED:,} more"
    one, several = ("is a symbolic link", "folder itself"), ("are symbolic links", "folders themselves")
    are, themselves = one if len(links) == 1 else several
    return (f"{named} {are}, and so not served", f"move or copy the {themselves} there") if links else None


def in_words(kinds: Mapping[str, int]) -> str:
    """Say how many files of other formats there are, the most frequent first; nothing if there are none."""
    if not kinds:
        return ""
    most = sorted(kinds, key=lambda ending: (-kinds[ending], not ending, ending))[:_MOST_KINDS]
    named = [f"{kinds[ending]:,} {ending or 'without an ending'}" for ending in most]
    if len(kinds) > _MOST_KINDS:
        named.append("and others")
    cure = f"; for .pdf, {installing('documents')}" if ".pdf" in kinds and pdf.folder_of_library() is None else ""
    total = sum(kinds.values())
    files = "1 file of another format is" if total == 1 else f"{total:,} files of other formats are"
    return f"{files} not served ({', '.join(named)}){cure}"
