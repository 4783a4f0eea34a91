"""What of a folder of manuals is not served: for people, who wonder where their files are.

The tools tell of files beside the manuals only: else, to an agent what is not served does not exist.
"""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from responses_mcp.manuals.files.directories import Directory, open_root
from responses_mcp.manuals.requests.paths import file_type, name_of, served_name

_DEEPEST: Final = 64  # levels of folders, as of what is served
_MOST_KINDS: Final = 3  # that are named
_MOST_NAMED: Final = 3
_FIRST_PAGES: Final = ("index.md", "contents.md", "toc.md", "目次.md")  # a folder of manuals has none

SET_ROOT: Final = "set manuals.root (MANUALS_ROOT) to"
"""How people name the folder of manuals, unless a command has been told."""

NO_FILES: Final = "There is no .md or .json file to search; put the manuals there as such files."
"""What is said where there are manuals, but nothing in them is served."""


def other_kinds(root: str, manual_id: str) -> dict[str, int]:
    """Count the files of a manual that are not served for their kind, by their endings.

    Hidden files, and what cannot be looked at, do not count.
    """
    counts: Counter[str] = Counter()
    try:
        with closing(open_root(root)) as top, closing(top.enter(name_of(manual_id))) as manual:
            counts.update(_endings(manual))
    except OSError:
        pass
    return dict(counts)


def _endings(directory: Directory, level: int = 1) -> Iterator[str]:
    folders: list[str] = []
    with directory.listing() as listing:
        for entry in listing:
            if not served_name(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            elif file_type(entry.name) is None and entry.is_file(follow_symlinks=False):
                yield Path(entry.name).suffix.lower()
    for name in folders if level < _DEEPEST else ():
        try:
            with closing(directory.enter(name)) as below:
                yield from _endings(below, level + 1)
        except OSError:
            continue


def loose_files(root: str) -> list[str]:
    """Return the names of Markdown and JSON files that lie in the root itself, and so in no manual; no README."""
    return [name for name in _loose(root) if file_type(name) is not None]


def loose_kinds(root: str) -> dict[str, int]:
    """Count the other files that lie in the root itself, by their endings; no README."""
    return dict(Counter(Path(name).suffix.lower() for name in _loose(root) if file_type(name) is None))


def _loose(root: str) -> list[str]:
    try:
        with os.scandir(root) as listing:
            return sorted(
                entry.name
                for entry in listing
                if served_name(entry.name)
                and entry.name.lower().partition(".")[0] != "readme"
                and entry.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def about_links(root: str) -> tuple[str, str] | None:
    """Say which links to folders are in the root, where none is followed, and what to do; None if there are none."""
    try:
        with os.scandir(root) as listing:
            links = sorted(
                each.name for each in listing if served_name(each.name) and each.is_symlink() and each.is_dir()
            )
    except OSError:
        return None
    if not links:
        return None
    are = "is a symbolic link" if len(links) == 1 else "are symbolic links"
    themselves = "folder itself" if len(links) == 1 else "folders themselves"
    return f"{names_in_words(links)} {are}, and so not served", f"move or copy the {themselves} there"


def root_of_one(manual: str, name_it: str) -> str:
    """Say how to have a folder served that is a manual itself; `name_it` is how the folder above it is named."""
    above, home = Path(manual).parent, os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111  # Path raises without one
    # All that is there would be manuals: of a person, or of all.
    if os.path.realpath(above) in (above.anchor, home, os.path.dirname(home)):  # noqa: PTH120
        return f"put it into a new folder, and {name_it} that folder"
    return f'{name_it} "{above}"' if " " in str(above) else f"{name_it} {above}"


def about_loose(loose: Sequence[str], root: str, manuals: int, name_it: str) -> tuple[str, str, str]:
    """Say of files beside so many manuals what they are, what to do, and what instead if `root` is a manual itself.

    The last is "" where there are fewer files than manuals, and none is the first page of one. See
    `root_of_one` for `name_it`.
    """
    are, them = ("is", "it") if len(loose) == 1 else ("are", "them")
    itself = len(loose) >= manuals or any(
        unicodedata.normalize("NFC", each).casefold() in _FIRST_PAGES for each in loose
    )
    instead = f"if that is a manual itself, {root_of_one(root, name_it)}" if itself else ""
    return f"{names_in_words(loose)} {are} not in any manual", f"put {them} into a folder of {root}", instead


def about_beside(root: str) -> str | None:
    """Say to an agent which files are not searched, because they are beside the manuals; None if there are none."""
    loose = loose_files(root)
    if not loose:
        return None
    return (
        f"Files beside the manuals are not searched: {names_in_words(loose)}. A manual is a folder; if the one with "
        f"these files is a manual itself, {root_of_one(root, SET_ROOT)}."
    )


def in_words(kinds: Mapping[str, int]) -> str:
    """Say how many files of other kinds there are, the most frequent first; nothing if there are none."""
    if not kinds:
        return ""
    most = sorted(kinds, key=lambda ending: (-kinds[ending], not ending, ending))[:_MOST_KINDS]
    named = [f"{kinds[ending]:,} {ending or 'without an ending'}" for ending in most]
    if len(kinds) > _MOST_KINDS:
        named.append("and others")
    total = sum(kinds.values())
    files = "1 file of another kind is" if total == 1 else f"{total:,} files of other kinds are"
    return f"{files} not served ({', '.join(named)})"


def names_in_words(names: Sequence[str]) -> str:
    """Return some names as a list for a sentence, with how many more there are."""
    if len(names) <= _MOST_NAMED:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED:,} more"
