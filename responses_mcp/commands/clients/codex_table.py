"""One table in a TOML text, `[CONTAINER.NAME]`: read, appended, replaced where it stands, cut; other lines stay."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from responses_mcp.commands.clients.files import Change, Unmergeable, as_table, newline_of

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


class CodexTable:
    """A text, and the entry in it."""

    def __init__(self, text: str, *, container: str, name: str) -> None:
        """Read the text; raises Unmergeable."""
        self._text = text
        self._path = (container, name)
        self._root = _parsed(text)
        entries = as_table(self._root.get(container, {}))
        if entries is None:
            raise Unmergeable(f"{container} in it is not a table; correct that")
        self.entries: Mapping[str, Any] = tomllib.loads(text).get(container, {})
        """All entries, by name."""
        self.entry: Any = self.entries.get(name)
        """The entry as it is now; None if there is none."""

    def changed(self, entry: Mapping[str, Any]) -> Change:
        """Return the text with this entry: in its old place, else at the end."""
        container, name = self._path
        newline = newline_of(self._text)
        lines = [f"[{container}.{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in entry.items())]
        block = "".join(f"{line}{newline}" for line in lines)
        if self.entry is not None:
            return self._checked(self._cut(block), _parsed(block)[container])
        end = "" if not self._text or self._text.endswith("\n") else newline
        blank = newline if self._text.strip() else ""
        return self._checked(
            Change(f"{self._text}{end}{blank}{block}", drops_comments=False), _parsed(block)[container]
        )

    def removed(self) -> Change:
        """Return the text without the entry, which must exist, and without the tables below it."""
        return self._checked(self._cut(""), {})

    def _checked(self, change: Change, ours: Mapping[str, Any]) -> Change:
        """Return the change if everything but our entry reads as before; raises Unmergeable."""
        container, name = self._path
        others = {each: entry for each, entry in self._root.get(container, {}).items() if each != name}
        try:
            after = _parsed(change.text)
        except Unmergeable:
            after = {}
        if {container: {}, **after} != {**self._root, container: {**others, **ours}}:
            raise Unmergeable(f"[{container}.{name}] is not a separate table; change the entry by hand")
        return change

    def _cut(self, block: str) -> Change:
        """Return the text with `block`, whole lines or nothing, in place of the table and of those below it.

        A line of a longer string that looks like a header is treated as one; `_checked` finds what this breaks.
        """
        kept: list[str] = []
        gone: list[str] = []
        after: list[str] = []  # comments and blank lines, which belong to the next header
        ours = False
        for line in re.findall(r"[^\n]*\n|[^\n]+", self._text):
            path = _path(line)
            if path is not None:
                was_ours, ours = ours, path[:2] == self._path
                (gone if was_ours and ours else kept).extend(after)
                after = []
                if ours and not gone:
                    if not block and kept and not kept[-1].strip():
                        del kept[-1]  # the blank line before a table
                    kept.append(block)
            if not ours:
                kept.append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                gone += [*after, line]
                after = []
            else:
                after.append(line)
        return Change("".join([*kept, *after]), drops_comments="#" in "".join(gone))


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
