"""One entry in a JSON text, `{CONTAINER: {NAME: entry}}`, found and changed without writing the rest anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn

from responses_mcp.commands.clients.files import Unmergeable, as_table, newline_of

Dialect = Literal["json", "json with comments", "jsonc"]
"""What a client reads: plain JSON, comments too, or comments and trailing commas."""

_UNIT: Final = "  "
# A string that never ends is one too, so that nobody looks for its end again.
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_BLANK: Final = re.compile(r"[ \t\r\n]*")
# What is kept comes as the group: strings, and a comment that never ends.
_COMMENT: Final = re.compile(rf"//[^\r\n]*|/\*.*?\*/|({_STRING}|/\*.*)", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf",(?=[ \t\r\n]*[}}\]])|({_STRING})", re.DOTALL)
_LINE_END: Final = re.compile(r"[ \t]*\r?\n")
_REST_OF_LINE: Final = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")


class _Member(NamedTuple):
    """Where a member of an object is: its key, and its value from `start` to `end`."""

    key: int
    start: int
    end: int


class JsonDocument:
    """A text, and the entry in it.

    Offsets are those of the text: comments and trailing commas are replaced by blanks, not removed, before it is read.
    """

    def __init__(self, text: str, *, container: str, name: str, dialect: Dialect) -> None:
        """Read the text; raises Unmergeable."""
        self._text = text
        self._container = container
        self._name = name
        self._dialect: Dialect = dialect
        self._uncommented = text if dialect == "json" else _without(_COMMENT, text)
        self._plain = _without(_TRAILING_COMMA, self._uncommented) if dialect == "jsonc" else self._uncommented
        self._top = _skip(self._plain, 0)
        self.root = _object_in(self._plain)
        """All that the text says."""
        entries = as_table(self.root.get(container, {}))
        if entries is None:
            raise Unmergeable(f'"{container}" in it is not an object; correct that')
        self.entries: Mapping[str, Any] = entries
        """All entries, by name."""
        self.entry: Any = entries.get(name)
        """The entry as it is now; None if there is none."""

    def changed(self, entry: Mapping[str, Any]) -> str:
        """Return the text with this entry, which is the first of the entries if it is new."""
        start, end, new = self._replacement(entry)
        text = f"{self._text[:start]}{new}{self._text[end:]}"
        return self._checked(text, {**self.entries, self._name: entry})

    def removed(self) -> str:
        """Return the text without the entry, which must be there; a comment behind it on its line goes with it."""
        text = self._text
        for start, end in reversed(self._cuts()):
            text = f"{text[:start]}{text[end:]}"
        return self._checked(text, {name: self.entries[name] for name in self.entries if name != self._name})

    def _checked(self, text: str, entries: Mapping[str, Any]) -> str:
        """Return the text if it has these entries and all else reads as before; raises Unmergeable."""
        again = JsonDocument(text, container=self._container, name=self._name, dialect=self._dialect)
        if again.root != {**self.root, self._container: entries}:
            raise Unmergeable("this program cannot edit its layout; change the entry by hand")
        return text

    def _cuts(self) -> list[tuple[int, int]]:
        """Return from where to where the text goes with the entry: one comma, and its lines."""
        container = self._member(self._top, self._container)
        members = [] if container is None else list(self._members(container.start))
        at = max(number for number, (name, _) in enumerate(members) if name == self._name)
        start, end = members[at][1].key, members[at][1].end
        cuts: list[tuple[int, int]] = []
        after = _skip(self._uncommented, end)
        if self._uncommented[after] == ",":
            end = after + 1
        elif at:  # the comma before it is one too many
            comma = _skip(self._plain, members[at - 1][1].end)
            cuts.append((comma, comma + 1))
        if self._dialect != "json" and (comments := _REST_OF_LINE.match(self._text, end)):
            end = comments.end()
        line = self._text.rfind("\n", 0, start) + 1
        rest = _LINE_END.match(self._text, end)
        if rest is not None and not self._text[line:start].strip(" \t"):
            start, end = line, rest.end()
        return [*cuts, (start, end)]

    def _replacement(self, entry: Mapping[str, Any]) -> tuple[int, int, str]:
        """Return from where to where the text is to be replaced, and by what."""
        end = len(self._text)
        if self._top == end:  # nothing in it, or comments
            newline = newline_of(self._text)
            between = newline if self._text and not self._text.endswith(("\n", "\r")) else ""
            return end, end, between + self._lines({self._container: {self._name: entry}}, "") + newline
        found = self._member(self._top, self._container)
        if found is None:
            return self._insertion(self._top, self._container, {self._name: entry})
        old = self._member(found.start, self._name)
        if old is None:
            return self._insertion(found.start, self._name, entry)
        return old.start, old.end, self._lines(entry, self._indent(old.key))

    def _insertion(self, start: int, name: str, value: Mapping[str, Any]) -> tuple[int, int, str]:
        """Return what makes a member the first one of the object that starts there."""
        newline, here = newline_of(self._text), start + 1
        first = _skip(self._plain, here)
        if self._dialect != "json" and (comments := _REST_OF_LINE.match(self._text, here)):
            here = comments.end()  # those behind the brace stay there
        empty = self._plain[first] == "}"
        outer = self._indent(start)
        on_lines = not empty and "\n" in self._text[start:first]
        indent = self._indent(first) if on_lines else outer + self._unit
        member = f"{newline}{indent}{json.dumps(name)}: {self._lines(value, indent)}{'' if empty else ','}"
        if "\n" not in self._text[here:first]:
            member += newline + (outer if empty else indent)
        return here, here, member

    def _member(self, start: int, name: str) -> _Member | None:
        """Return the member of that name in the object that starts there; of several the last one, which counts."""
        return dict(self._members(start)).get(name)

    def _members(self, start: int) -> Iterator[tuple[str, _Member]]:
        """Yield the members of the object that starts there, with their names."""
        plain, decode = self._plain, json.JSONDecoder().raw_decode
        at = _skip(plain, start + 1)
        while plain[at] != "}":
            key, after = decode(plain, at)
            value = _skip(plain, _skip(plain, after) + 1)
            _, end = decode(plain, value)
            yield key, _Member(at, value, end)
            at = _skip(plain, end)
            if plain[at] == ",":
                at = _skip(plain, at + 1)

    def _indent(self, at: int) -> str:
        """Return the blanks at the start of the line."""
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def _unit(self) -> str:
        """By how much each level is indented."""
        first = _skip(self._plain, self._top + 1)
        return self._indent(first).removeprefix(self._indent(self._top)) or _UNIT

    def _lines(self, value: Mapping[str, Any], indent: str) -> str:
        unit = self._unit if self._top < len(self._text) else _UNIT
        return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", newline_of(self._text) + indent)


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Return the text with blanks in place of what the pattern finds outside of strings."""
    return pattern.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)


def _object_in(text: str) -> dict[str, Any]:
    if not text.strip(" \t\r\n"):
        return {}
    try:
        root = as_table(json.loads(text, parse_constant=_refuse))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Unmergeable(f"it is not valid JSON ({where}: {error.msg}); correct that") from error
    except (ValueError, RecursionError) as error:
        raise Unmergeable("it holds a number that is not valid JSON, or is nested too deeply") from error
    if root is None:
        raise Unmergeable("it holds something other than one JSON object")
    return root


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
