"""JSON: cut at keys, with the path of keys above and the nearest name as the title.

Characters that are written as numbers are shown as such, and JSON on few long lines is indented; all other files are
served as they are. What is no JSON, or only nearly, is read as far as that goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import MOST_HEADINGS, Document, Heading

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]:,]|[^\s"{}\[\]:,]++', re.DOTALL)
_ESCAPE: Final = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\.", re.DOTALL
)
_UNSHOWN: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")  # what has to be escaped, and halves of characters
_NAMES: Final = {name: rank for rank, name in enumerate(("summary", "title", "name", "operationId", "label", "id"))}
_LONGEST_NAME: Final = 120  # characters; a longer text is no name
_WHOLE: Final = 4000  # characters of what has a name and is not cut
_NAMELESS: Final = 1500  # the same, of what has no name, nor anything in it
_SLIGHT: Final = 40  # characters of what is no row of its own
_SLIGHT_NAMELESS: Final = 120  # the same, of what has no name, nor anything in it
_DEEPEST: Final = 60  # levels that are cut
_LONG_LINES: Final = 200  # characters that lines have on the average where JSON is not meant to be read
_MOST_GROWN: Final = 5  # times its size that the indentation of JSON may take
_TOKENS_BETWEEN_CHECKS: Final = 4096


@dataclass(slots=True)
class _Container:
    """An object or an array: where it begins, with its key, and ends; `members` are where its members begin.

    Members that are no row of their own are None, one for all that stand side by side. `has_names` tells that something
    in it has a name.
    """

    begin: int
    key: str
    is_object: bool
    end: int = 0
    name: str = ""
    rank: int = len(_NAMES)
    has_names: bool = False
    members: list[tuple[int, _Container | None]] = field(default_factory=list["tuple[int, _Container | None]"])

    @property
    def is_slight(self) -> bool:
        """Whether it is too short for a row of its own."""
        return self.end - self.begin < (_SLIGHT if self.name or self.has_names else _SLIGHT_NAMELESS)

    def add_none(self, begin: int) -> None:
        """Add a member that is no row of its own."""
        if not self.members or self.members[-1][1] is not None:
            self.members.append((begin, None))


def convert(text: str, check: CancellationCheck) -> Document:
    """Return what is served of JSON, cut at keys."""
    if "\\u" in text:
        text = _ESCAPE.sub(_character, text)
    if text.lstrip()[:1] in ("{", "[") and len(text) > _LONG_LINES * (text.count("\n") + 2):
        text = _indented(text, check)
    return Document(text, _Headings(text).of(_read(text, check)), has_preamble=False)


def _character(escape: re.Match[str]) -> str:
    """Return the character that an escape stands for; the escape where it is half of one, or has to be escaped."""
    if escape[1]:
        return chr(0x10000 + ((int(escape[1], 16) & 0x3FF) << 10) + (int(escape[2], 16) & 0x3FF))
    if escape[3]:
        character = chr(int(escape[3], 16))
        if character not in '"\\' and not _UNSHOWN.match(character):
            return character
    return escape[0]


def _indented(text: str, check: CancellationCheck) -> str:
    """Return JSON with each member on a line, empty ones apart; or as it is, where that would grow too much."""
    parts: list[str] = []
    pieces: list[str] = []  # of joined parts, which take far less
    room = _MOST_GROWN * len(text)  # or a file of brackets alone would take a hundred times its size
    level = 0
    before = ""
    for number, token in enumerate(_TOKEN.finditer(text)):
        if not number % _TOKENS_BETWEEN_CHECKS:
            check()
            pieces.append("".join(parts))
            parts.clear()
        mark = token[0]
        closes = mark in ("}", "]")
        level = max(level - closes, 0)
        if (closes and before not in ("{", "[")) or (before in ("{", "[", ",") and not closes):
            parts.append("\n" + "  " * min(level, _DEEPEST))
            room -= len(parts[-1])
            if room < 0:
                return text
        parts.append(": " if mark == ":" else mark)
        level += mark in ("{", "[")
        before = mark
    return "".join((*pieces, *parts))


def _read(text: str, check: CancellationCheck) -> _Container:
    """Return all of a text as the members of one container; what is too deep to be cut is one member of any kind."""
    whole = _Container(0, "", is_object=False, end=len(text))
    open_ones = [whole]
    key: str | None = None
    key_begin = 0
    valued = False  # whether a colon came behind the key
    deeper = 0  # levels below those that are cut
    for number, token in enumerate(_TOKEN.finditer(text)):
        if not number % _TOKENS_BETWEEN_CHECKS:
            check()
        mark, top = token[0], open_ones[-1]
        if deeper:
            deeper += (mark in ("{", "[")) - (mark in ("}", "]"))
        elif mark == ":":
            valued = key is not None
        elif mark == ",":
            key, valued = None, False
        elif mark in ("}", "]"):
            key, valued = None, False
            if len(open_ones) > 1:
                open_ones.pop().end = token.end()
                above = open_ones[-1]
                above.has_names = above.has_names or top.has_names or bool(top.name)
                if top.is_slight and (above is not whole or len(whole.members) > MOST_HEADINGS):
                    above.add_none(above.members.pop()[0])
        elif top.is_object and key is None and mark[0] == '"':
            key, key_begin = mark.strip('"'), token.start()
        else:
            begin = key_begin if valued else token.start()
            if mark in ("{", "[") and len(open_ones) > _DEEPEST:
                top.add_none(begin)
                deeper = 1
            elif mark in ("{", "["):
                container = _Container(begin, key or "", mark == "{", len(text))
                top.members.append((begin, container))
                open_ones.append(container)
            else:
                top.add_none(begin)
                rank = _NAMES.get(key or "", len(_NAMES))
                if mark[0] == '"' and rank < top.rank and 2 < len(mark) <= _LONGEST_NAME:
                    top.name, top.rank = mark[1:-1], rank
            key, valued = None, False
    return whole


class _Headings:
    """Makes headings of containers, on the lines where they begin."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at, self._line = 0, 1
        self._found = [Heading(1, 1, "", 0, ())]

    def of(self, whole: _Container) -> list[Heading]:
        """Return the headings of all that is to be cut."""
        for begin, top in whole.members:
            if top is not None:
                self._put(begin, "", ())
                self._cut(top, "", (), 1)
        return self._found

    def _cut(self, container: _Container, title: str, path: tuple[str, ...], depth: int) -> None:
        size = container.end - container.begin
        whole = _WHOLE if container.name and path else 0 if container.has_names else _NAMELESS
        if size <= whole or depth == _DEEPEST or len(self._found) >= MOST_HEADINGS:
            return
        inside = True  # whether the last heading is that of the container
        for begin, member in container.members:
            if member is None:
                if not inside:
                    self._put(begin, title, path)
                inside = True
                continue
            named = member.name or title
            below = (*path, member.key) if container.is_object else path
            self._put(member.begin, named or (below[-1] if below else ""), below)
            self._cut(member, named, below, depth + 1)
            inside = False

    def _put(self, begin: int, title: str, path: tuple[str, ...]) -> None:
        self._line += self._text.count("\n", self._at, begin)
        self._at = begin
        heading = Heading(self._line, 1, title, 0, path)
        if self._found[-1].line < self._line and len(self._found) < MOST_HEADINGS:
            self._found.append(heading)
