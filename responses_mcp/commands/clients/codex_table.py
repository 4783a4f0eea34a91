"""One table in a TOML text, `[CONTAINER.NAME]`: read, appended, cut; other lines stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, cast

from responses_mcp.commands.clients.files import Unmergeable, as_table, newline_of

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_BLANK_OR_COMMENT: Final = re.compile(r"[ \t]*(?:#.*)?\r?\n?")


class CodexTable:
    """A text, and the entry in it."""

    def __init__(self, text: str, *, container: str, name: str) -> None:
        """Read the text; raises Unmergeable."""
        self._text = text
        self._path = (container, name)
        self._root = _parsed(text)
        if as_table(self._root.get(container, {})) is None:
            raise Unmergeable(f"{container} in it is not a table; correct that")
        self.entries: Mapping[str, Any] = tomllib.loads(text).get(container, {})
        """All entries, by name."""
        self.entry: Any = self.entries.get(name)
        """The entry as it is now; None if there is none."""

    def changed(self, entry: Mapping[str, Any]) -> str:
        """Return the text with this entry at its end, in place of the old one."""
        container, name = self._path
        newline, text = newline_of(self._text), self._cut()
        lines = [f"[{container}.{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in entry.items())]
        block = "".join(f"{line}{newline}" for line in lines)
        end = "" if not text or text.endswith("\n") else newline
        blank = newline if text.strip() else ""
        return self._checked(f"{text}{end}{blank}{block}", _parsed(block)[container])

    def removed(self) -> str:
        """Return the text without the entry, which must exist, and without the tables below it."""
        return self._checked(self._cut(), {})

    def _cut(self) -> str:
        """Return the text without the entry; comments above the next header stay.

        A line of a longer string that looks like a header is treated as one; `_checked` finds what this breaks.
        """
        if self.entry is None:
            return self._text
        lines: list[str] = re.findall(r"[^\n]*\n|[^\n]+", self._text)
        headers = [(at, path) for at, line in enumerate(lines) if (path := _path(line)) is not None]
        kept: list[str] = []
        for (start, path), (end, _) in pairwise([(0, ()), *headers, (len(lines), ())]):
            first = start
            if path[:2] == self._path:
                if kept and not kept[-1].strip():
                    kept.pop()
                first = end
                while _BLANK_OR_COMMENT.fullmatch(lines[first - 1]):
                    first -= 1
            kept += lines[first:end]
        return "".join(kept)

    def _checked(self, text: str, ours: Mapping[str, Any]) -> str:
        """Return the text if everything but our entry reads as before; raises Unmergeable."""
        container, name = self._path
        others = {each: entry for each, entry in self._root.get(container, {}).items() if each != name}
        with suppress(Unmergeable):
            if {container: {}, **_parsed(text)} == {**self._root, container: {**others, **ours}}:
                return text
        raise Unmergeable(f"[{container}.{name}] is not a separate table; change the entry by hand")


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=str)  # "not a number" is not equal to itself
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        raise Unmergeable(f"it is not valid TOML 1.0 ({said[:1].lower()}{said[1:]})") from error
    except (ValueError, RecursionError) as error:
        raise Unmergeable("it holds a number that is too long, or is nested too deeply") from error


def _path(line: str) -> tuple[str, ...] | None:
    """Return the names in a header; None for another line."""
    if not line.lstrip().startswith("["):
        return None
    try:
        found: Any = tomllib.loads(line.strip())
    except (ValueError, RecursionError):
        return None
    names: list[str] = []
    while found and found != [{}]:
        [name] = found
        names.append(name)
        found = found[name]
    return tuple(names)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    if (table := as_table(value)) is not None:
        inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in table.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast(Iterable[Any], value)))}]"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
