"""What of a folder is left out on purpose: by patterns of the settings, and by `.gitignore` files on the way.

Patterns are those of git: `*` and `?` stop at a slash, `**` does not; a slash before the end ties a pattern to its
folder, one at the end means folders only, `!` takes an exclusion back, and the last pattern that fits decides. Patterns
of the settings stand above those of files, and files below above those of the folders that they are in.
"""

from __future__ import annotations

import fnmatch
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from responses_mcp.manuals.files.directories import Directory

_IGNORED: Final = ".gitignore"
_LARGEST: Final = 64 * 1024  # bytes of such a file that are read
_MOST_RULES: Final = 1000  # of a file
_ANY: Final = "**"
_WILD: Final = re.compile(r"[*?\[\\]")
_ESCAPED: Final = re.compile(r"\\(.)")


class _Rule(NamedTuple):
    """A pattern, as the patterns of the names that make it up; an untied one fits at every level."""

    names: tuple[str, ...]
    tied: bool
    folders_only: bool
    taken_back: bool

    def fits(self, parts: Sequence[str], *, is_folder: bool) -> bool:
        """Tell whether it fits a path below its folder."""
        if self.folders_only and not is_folder:
            return False
        if not self.tied:
            return _fits(self.names[0], parts[-1])
        return _path_fits(self.names, parts)


class _Rules(NamedTuple):
    """The rules of one folder, the last one first, and how many names lead to the folder."""

    level: int
    rules: tuple[_Rule, ...]

    def decision(self, parts: Sequence[str], *, is_folder: bool) -> bool | None:
        """Return whether a path is left out, None where nothing is said of it."""
        below = parts[self.level :]
        return next((not rule.taken_back for rule in self.rules if rule.fits(below, is_folder=is_folder)), None)


class Exclusion:
    """What is left out of one folder, which is reached by the names `parts` from the root."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._rules: tuple[_Rules, ...] = (_Rules(0, tuple(_rules(patterns))),)  # what stands above others comes first
        self._parts: tuple[str, ...] = ()
        self._names = _untied(self._rules)

    def entered(self, directory: Directory, *names: str) -> Exclusion:
        """Return what is left out of a folder that these names lead to from here, which is none for the root."""
        below = Exclusion(())
        below._parts = (*self._parts, *names)
        lines = tuple(_rules(_lines_of(directory)))
        added = (_Rules(len(below._parts), lines),) if lines else ()
        below._rules = (*self._rules[:1], *added, *self._rules[1:])
        below._names = _untied(below._rules) if lines else self._names
        return below

    def leaves_out(self, name: str, *, is_folder: bool) -> bool:
        """Tell whether an entry of the folder is left out."""
        if self._names is not None and name not in self._names:
            return False  # as nearly always, and a walk asks for each file
        parts = (*self._parts, name)
        decisions = (each.decision(parts, is_folder=is_folder) for each in self._rules)
        return next((each for each in decisions if each is not None), False)


class Nothing(Exclusion):
    """Leaves out nothing, and reads no rules on the way: for files that a walk has just yielded."""

    def __init__(self) -> None:
        super().__init__(())

    def entered(self, directory: Directory, *names: str) -> Exclusion:
        """Return what is left out of any folder."""
        del directory, names
        return self


def _untied(levels: Iterable[_Rules]) -> frozenset[str] | None:
    """Return the names that are left out wherever they stand, if there are no other patterns."""
    rules = [rule for level in levels for rule in level.rules]
    if any(rule.tied or rule.taken_back or _WILD.search(rule.names[0]) for rule in rules):
        return None
    return frozenset(rule.names[0] for rule in rules)


def _lines_of(directory: Directory) -> list[str]:
    try:
        descriptor = directory.open(_IGNORED)
    except OSError:  # there is none
        return []
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return []
        return os.read(descriptor, _LARGEST).decode("utf-8-sig", "replace").split("\n")
    except OSError:
        return []
    finally:
        os.close(descriptor)


def _rules(lines: Iterable[str]) -> Iterator[_Rule]:
    found = [rule for line in lines if (rule := _rule(line)) is not None]
    return reversed(found[:_MOST_RULES])


def _rule(line: str) -> _Rule | None:
    pattern = line.rstrip("\r\n")
    while pattern.endswith(" ") and not pattern.endswith("\\ "):
        pattern = pattern[:-1]
    taken_back = pattern.startswith("!")
    pattern = pattern[taken_back:]
    if not pattern or pattern.startswith("#"):
        return None
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    tied = "/" in pattern
    names = tuple(filter(None, pattern.split("/")))
    return _Rule(names, tied, folders_only, taken_back) if names else None


def _path_fits(names: Sequence[str], parts: Sequence[str]) -> bool:
    """Tell whether names fit parts, where `**` stands for any number of them; at the end for at least one.

    After a mismatch only the last `**` takes one more part: what earlier ones took fits as well as anything else.
    """
    at = part = 0
    again: tuple[int, int] | None = None
    while part < len(parts):
        if at < len(names) and names[at] == _ANY:
            if at == len(names) - 1:
                return True
            again = (at + 1, part)
            at += 1
        elif at < len(names) and _fits(names[at], parts[part]):
            at, part = at + 1, part + 1
        elif again is not None:
            again = (again[0], again[1] + 1)
            at, part = again
        else:
            return False
    return at == len(names)


def _fits(pattern: str, name: str) -> bool:
    return name == pattern if _WILD.search(pattern) is None else _compiled(pattern).match(name) is not None


@lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    escaped = _ESCAPED.sub(lambda found: f"[{found[1]}]", pattern).replace("[^", "[!")
    try:
        return re.compile(fnmatch.translate(escaped))
    except re.error:
        return re.compile(r"(?!)")
