"""One table in a TOML text, `[CONTAINER.NAME]`, found and changed without writing the rest anew."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, time
from typing import Any, Final, NamedTuple, cast

from responses_mcp.commands.text_edits import STRING, Edit, Unmergeable, as_table, edited, newline_of

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN: Final = re.compile(
    r'"""[^\\]*?(?:\\.[^\\]*?)*?(?:""""{0,2}|\Z)|' + rf"'''.*?(?:''''{{0,2}}|\Z)|{STRING}|'[^']*(?:'|\Z)|"
    r"#[^\n]*|[\[\]{}\n]|[^\s\"'#\[\]{}]+",
    re.DOTALL,
)


class _Section(NamedTuple):
    """A header with what follows it, up to the end of the last line that is more than a comment."""

    path: tuple[str, ...]
    start: int
    end: int


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
        self.entry: Any = tomllib.loads(text).get(container, {}).get(name)
        """The entry as it is now; None if there is none."""
        self._entries = entries

    def edits(self, entry: Mapping[str, Any]) -> tuple[Edit, ...]:
        """Return what makes the entry be so; one insertion at the end if there is no entry of that name."""
        edits = tuple(self._edits(entry))
        block = _parsed(self._block(entry))[self._container]
        expected = {**self._root, self._container: {**self._entries, **block}}
        try:
            same = _parsed(edited(self._text, edits)) == expected
        except Unmergeable:
            same = False
        if not same:
            raise Unmergeable(
                f"[{self._container}.{self._name}] cannot be put beside the way in which {self._container} is written "
                f"there; write each entry as a table of its own, [{self._container}.X]"
            )
        return edits

    def drops_comments(self, edits: Iterable[Edit]) -> bool:
        """Tell whether there are comments in what the edits replace."""
        gone = (_TOKEN.finditer(self._text[edit.start : edit.end]) for edit in edits)
        return any(token[0].startswith("#") for tokens in gone for token in tokens)

    def _edits(self, entry: Mapping[str, Any]) -> Iterator[Edit]:
        block = self._block(entry)
        if self.entry is None:
            end = len(self._text)
            between = "" if not self._text or self._text.endswith("\n") else self._newline
            yield Edit(end, end, between + (self._newline if self._text.strip() else "") + block + self._newline)
            return
        ours = [section for section in _sections(self._text) if section.path[:2] == (self._container, self._name)]
        for section in ours[:1]:
            yield Edit(section.start, section.end, block)
        for section in ours[1:]:
            newline = self._text.find("\n", section.end)
            yield Edit(section.start, len(self._text) if newline < 0 else newline + 1, "")

    def _block(self, entry: Mapping[str, Any]) -> str:
        lines = [f"{_key(key)} = {_value(value)}" for key, value in entry.items()]
        return self._newline.join([f"[{self._container}.{_key(self._name)}]", *lines])


def _parsed(text: str) -> dict[str, Any]:
    try:
        # Numbers stay text: "not a number" is not equal to itself.
        return tomllib.loads(text, parse_float=str)
    except tomllib.TOMLDecodeError as error:
        reason = str(error)
        raise Unmergeable(f"it is not valid TOML ({reason[:1].lower()}{reason[1:]})") from error
    except (ValueError, RecursionError) as error:
        raise Unmergeable("it holds a number that is too long, or is nested too deeply") from error


def _sections(text: str) -> Iterator[_Section]:
    """Yield the tables of a valid TOML text, in order; what comes before the first header is no table."""
    path: tuple[str, ...] | None = None
    start = end = depth = 0
    fresh, at = True, 0
    while (token := _TOKEN.search(text, at)) is not None:
        at = token.end()
        if token[0] == "\n":
            fresh = fresh or depth == 0
            continue
        if token[0][0] == "#":
            continue
        if token[0] == "[" and fresh:
            if path is not None:
                yield _Section(path, start, _end_of_line(text, end))
            start = token.start()
            at = end = _end_of_line(text, start)
            path = _path(text[start:end])
            continue
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        fresh = False
        end = at
    if path is not None:
        yield _Section(path, start, _end_of_line(text, end))


def _end_of_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    end = len(text) if newline < 0 else newline
    return end - 1 if text[end - 1 : end] == "\r" else end


def _path(header: str) -> tuple[str, ...]:
    """Return the names in a header, which may be quoted and have blanks and a comment around them."""
    names: list[str] = []
    found: Any = tomllib.loads(header)
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
    if isinstance(value, date | time):
        return value.isoformat()
    return _string(value) if isinstance(value, str) else repr(value)
