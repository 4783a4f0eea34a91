"""One table in a TOML text, `[CONTAINER.NAME]`, found and changed without writing the rest anew."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from responses_mcp.commands.clients.files import (
    NOT_UNDERSTOOD,
    Change,
    NotUnderstood,
    Unmergeable,
    as_table,
    check_entry,
    newline_of,
)

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
# What is no string comes as the group; a string that never ends is one too, so that nobody looks for its end again.
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|\'[^\'\n]*+\'?|(#)')


class TomlDocument:
    """A text, and the entry in it."""

    def __init__(self, text: str, *, container: str, name: str) -> None:
        """Read the text; raises Unmergeable."""
        self._text = text
        self._container = container
        self._name = name
        self._newline = newline_of(text)
        self._root = _parsed(text)
        entries = as_table(self._root.get(container, {}))
        if entries is None:
            raise Unmergeable(f"{container} in it is not a table; correct that")
        self._entries = entries
        self.entries: Mapping[str, Any] = tomllib.loads(text).get(container, {})
        """All entries, by name."""
        self.entry: Any = self.entries.get(name)
        """The entry as it is now; None if there is none."""
        check_entry(self.entry)

    def changed(self, entry: Mapping[str, Any]) -> Change:
        """Return the text with this entry, which is a table at the end if it is new."""
        header = f"[{self._container}.{_key(self._name)}]"
        block = self._newline.join([header, *(f"{_key(key)} = {_value(value)}" for key, value in entry.items())])
        change = self._added(block) if self.entry is None else self._replaced(f"{block}{self._newline}")
        if not self._holds(change.text, {**self._entries, **_parsed(block)[self._container]}):
            raise Unmergeable(
                f"[{self._container}.{self._name}] cannot be put beside the way in which {self._container} is written "
                f"there; write each entry as a table of its own, [{self._container}.X]"
            )
        return change

    def removed(self) -> Change:
        """Return the text without the entry, which must be there, and without what stands below it."""
        change = self._replaced("")
        if not self._holds(change.text, {name: self._entries[name] for name in self._entries if name != self._name}):
            raise Unmergeable(
                f"[{self._container}.{self._name}] is no table of its own there, or stands in a text, too; remove the "
                "entry by hand"
            )
        return change

    def _holds(self, text: str, entries: Mapping[str, Any]) -> bool:
        """Tell whether a text says what this one says, with these entries."""
        try:
            found = _parsed(text)
        except Unmergeable:
            return False
        return {self._container: {}, **found} == {**self._root, self._container: entries}

    def _added(self, block: str) -> Change:
        between = "" if not self._text or self._text.endswith("\n") else self._newline
        if self._text.strip():
            between += self._newline
        return Change(f"{self._text}{between}{block}{self._newline}", drops_comments=False)

    def _replaced(self, block: str) -> Change:
        """Put the block, which ends with its line or is empty, in place of the table and of those below it.

        A line of a longer string that looks like a header is taken for one; `changed` finds what this breaks.
        """
        lines: list[str] = []
        gone: list[str] = []
        undecided: list[str] = []  # comments and blank lines: what stands above the next header belongs to it
        ours = False
        for line in self._text.split("\n"):
            path = _path(line)
            if path is not None:
                was_ours, ours = ours, path[:2] == (self._container, self._name)
                (gone if was_ours and ours else lines).extend(undecided)
                undecided = []
                if ours and not gone:
                    if not block and lines and not lines[-1].strip():
                        del lines[-1]  # the blank line that stands before a table
                    lines += block.split("\n")[:-1]
            if not ours:
                lines.append(line)
            elif line.strip() and not line.lstrip().startswith("#"):
                gone += [*undecided, line]
                undecided = []
            else:
                undecided.append(line)
        text = "\n".join([*lines, *undecided])
        comments = any(found[1] for found in _COMMENT.finditer("\n".join(gone)))
        return Change(f"{text}\n" if text.endswith("\r") else text, drops_comments=comments)


def _parsed(text: str) -> dict[str, Any]:
    try:
        # Numbers stay text: "not a number" is not equal to itself.
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        said = f"({reason[:1].lower()}{reason[1:]})"
        if _is_of_1_1(text, reason):
            raise NotUnderstood(f"{NOT_UNDERSTOOD} {said}") from error
        raise Unmergeable(f"it is not valid TOML {said}; correct that") from error
    except (ValueError, RecursionError) as error:
        raise Unmergeable("it holds a number that is too long, or is nested too deeply") from error


def _is_of_1_1(text: str, reason: str) -> bool:
    """Tell whether what TOML 1.0 refuses for this reason may be one of the few things that 1.1 takes (toml.io)."""
    if reason.startswith(("Invalid initial character for a key part", "Unclosed inline table")):
        return True  # a line end, a comment, or a comma at the end, within braces
    where = re.search(r"\(at line (\d+), column (\d+)\)$", reason)  # a name in it may look like that
    if where is None:
        return False
    line = text.split("\n")[int(where[1]) - 1]
    if reason.startswith("Unescaped"):
        return re.match(r".?\\?[ex]", line[max(0, int(where[2]) - 2) :]) is not None  # \e and \xHH
    return re.search(r"\d\d:\d\d(?!:?\d)", line) is not None  # a time without seconds


def _path(line: str) -> tuple[str, ...] | None:
    """Return the names in a header, which may be quoted and have a comment behind them; None for another line."""
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
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    table = as_table(value)
    if table is not None:
        inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in table.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast(Iterable[Any], value)))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _string(value) if isinstance(value, str) else str(value)
