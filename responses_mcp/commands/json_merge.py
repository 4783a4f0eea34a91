"""One entry in a JSON text, `{CONTAINER: {NAME: entry}}`, found and changed without writing the rest anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, NoReturn

from responses_mcp.commands.text_edits import STRING, Edit, Unmergeable, as_table, edited, newline_of

Dialect = Literal["json", "json with comments", "jsonc"]
"""What a client reads: plain JSON, comments too, or comments and trailing commas."""

_UNIT: Final = "  "
_WIDEST: Final = 1000  # characters of indentation
_BLANK: Final = re.compile(r"[ \t\r\n]*")
# What is kept comes as the group: strings, and a comment that never ends.
_COMMENT: Final = re.compile(rf"//[^\r\n]*|/\*.*?\*/|({STRING}|/\*.*)", re.DOTALL)
_TRAILING_COMMA: Final = re.compile(rf",(?=[ \t\r\n]*[}}\]])|({STRING})", re.DOTALL)
_REST_OF_LINE: Final = re.compile(r"(?:[ \t]*/\*[^\r\n]*?\*/)*(?:[ \t]*//[^\r\n]*)?")


class _Member(NamedTuple):
    """Where a member of an object is: its key, and its value from `start` to `end`."""

    name: str
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
        self._with_commas = text if dialect == "json" else _without(_COMMENT, text)
        self._plain = _without(_TRAILING_COMMA, self._with_commas) if dialect == "jsonc" else self._with_commas
        self._root = _object_in(self._plain)
        self._newline = newline_of(text)
        self._start = _skip(self._plain, 0)
        self._members_of_root = self._members(self._start) if self._root else []
        entries = as_table(self._root.get(container, {}))
        if entries is None:
            raise Unmergeable(f'"{container}" in it is not an object; correct that')
        self._entries = entries
        self.entry: Any = entries.get(name)
        """The entry as it is now; None if there is none."""

    def edits(self, entry: Mapping[str, Any]) -> tuple[Edit, ...]:
        """Return what makes the entry be so; only insertions if there is no entry of that name."""
        edits = self._edits(entry)
        entries = {**self._entries, self._name: entry}
        if _object_in(self._read_again(edited(self._text, edits))) != {**self._root, self._container: entries}:
            raise Unmergeable("it is written in a way that was not understood; add the entry by hand")
        return edits

    def drops_comments(self, edits: Iterable[Edit]) -> bool:
        """Tell whether there are comments in what the edits replace."""
        spans = [slice(edit.start, edit.end) for edit in edits]
        return any(self._text[span] != self._with_commas[span] for span in spans)

    def _read_again(self, text: str) -> str:
        return JsonDocument(text, container=self._container, name=self._name, dialect=self._dialect)._plain  # noqa: SLF001

    def _edits(self, entry: Mapping[str, Any]) -> tuple[Edit, ...]:
        end = len(self._text)
        if self._start == end:  # nothing in it, or comments
            between = self._newline if self._text and not self._text.endswith(("\n", "\r")) else ""
            whole = self._over_lines({self._container: {self._name: entry}}, "")
            return (Edit(end, end, between + whole + self._newline),)
        found = _last(self._members_of_root, self._container)
        if found is None:
            return self._added(self._start, self._container, {self._name: entry})
        old = _last(self._members(found.start), self._name)
        if old is None:
            return self._added(found.start, self._name, entry)
        on_lines = self._indent_before(old.key) is not None or "\n" in self._text[old.start : old.end]
        value = self._over_lines(entry, self._indent_of_line(old.key)) if on_lines else self._in_line(entry)
        return (Edit(old.start, old.end, value),)

    def _added(self, start: int, name: str, value: Mapping[str, Any]) -> tuple[Edit, ...]:
        """Return what adds a member to the object that starts there, as the last one and in the object's style."""
        members = self._members(start)
        if not members:
            return self._first(start, name, value)
        end = members[-1].end
        comma = self._with_commas.find(",", end, _skip(self._plain, end))
        indent = self._indent_before(members[-1].key)
        after = end if comma < 0 else comma + 1
        last = "" if comma < 0 else ","
        if indent is None:
            member = f"{json.dumps(name)}{self._colon}{self._in_line(value)}{last}"
            blank = " " if self._colon.endswith(" ") else ""
            return (Edit(after, after, f"{blank if last else ',' + blank}{member}"),)
        here = self._after_comments(after)
        member = f"{self._newline}{indent}{json.dumps(name)}: {self._over_lines(value, indent)}{last}"
        return (*([] if last else [Edit(end, end, ",")]), Edit(here, here, member))

    def _first(self, start: int, name: str, value: Mapping[str, Any]) -> tuple[Edit, ...]:
        """Return what adds a member to the empty object that starts there."""
        here = start + 1
        close = _skip(self._plain, here)
        closed_on_another_line = "\n" in self._text[here:close]
        if start != self._start and "\n" not in self._text[self._start :].rstrip():
            return (Edit(here, here, f"{json.dumps(name)}{self._colon}{self._in_line(value)}"),)
        outer = self._indent_of_line(start)
        indent = outer + self._unit
        member = f"{self._newline}{indent}{json.dumps(name)}: {self._over_lines(value, indent)}"
        if closed_on_another_line:
            here = self._after_comments(here)
            return (Edit(here, here, member),)
        return (Edit(here, here, f"{member}{self._newline}{outer}"),)

    def _members(self, start: int) -> list[_Member]:
        """Return the members of the object that starts there."""
        plain, decode = self._plain, json.JSONDecoder().raw_decode
        members: list[_Member] = []
        at = _skip(plain, start + 1)
        while plain[at] != "}":
            name, after_key = decode(plain, at)
            value = _skip(plain, _skip(plain, after_key) + 1)
            _, end = decode(plain, value)
            members.append(_Member(name, at, value, end))
            at = _skip(plain, end)
            if plain[at] == ",":
                at = _skip(plain, at + 1)
        return members

    def _after_comments(self, at: int) -> int:
        """Return where the comments end that follow on the same line."""
        found = None if self._dialect == "json" else _REST_OF_LINE.match(self._text, at)
        return at if found is None else found.end()

    def _indent_before(self, at: int) -> str | None:
        """Return the blanks from the start of the line up to there; None if there is more than blanks."""
        start = self._text.rfind("\n", max(at - _WIDEST, 0), at) + 1
        return before if start and not (before := self._text[start:at]).strip(" \t") else None

    def _indent_of_line(self, at: int) -> str:
        line = self._text[self._text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    @property
    def _unit(self) -> str:
        """By how much each level is indented."""
        for member in self._members_of_root:
            indent = self._indent_before(member.key)
            if indent:
                return indent.removeprefix(self._indent_of_line(self._start)) or _UNIT
        return _UNIT

    @property
    def _colon(self) -> str:
        """What is between a name and its value, where all is on one line."""
        members = self._members_of_root
        return ":" if members and self._plain[members[0].start - 1] == ":" else ": "

    def _over_lines(self, value: Mapping[str, Any], indent: str) -> str:
        text = json.dumps(value, ensure_ascii=False, indent=self._unit if self._start < len(self._text) else _UNIT)
        return text.replace("\n", self._newline + indent)

    def _in_line(self, value: Mapping[str, Any]) -> str:
        comma = ", " if self._colon.endswith(" ") else ","
        return json.dumps(value, ensure_ascii=False, separators=(comma, self._colon))


def _without(pattern: re.Pattern[str], text: str) -> str:
    """Return the text with blanks in place of what the pattern finds outside of strings."""
    return pattern.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)


def _object_in(text: str) -> dict[str, Any]:
    if not text.strip(" \t\r\n"):
        return {}
    try:
        root = as_table(json.loads(text, parse_constant=_refuse))
    except json.JSONDecodeError as error:
        raise Unmergeable(f"it is not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})") from error
    except (ValueError, RecursionError) as error:
        raise Unmergeable("it holds a number that is no JSON, or is nested too deeply") from error
    if root is None:
        raise Unmergeable("it holds something other than one JSON object")
    return root


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _last(members: list[_Member], name: str) -> _Member | None:
    """Return the last member of that name, which is the one that counts."""
    return next((member for member in reversed(members) if member.name == name), None)
