"""JSON of many megabytes, read and let go of in slices, so that a task can let others run in between.

`json.loads` holds up everything for as long as it takes, in a thread as well, because it never lets go of the
interpreter. Here it is given a window of the text at a time. A value that ends inside the window is read by it whole;
of an object or array that does not, the members are read one by one.

A slice is about a millisecond of work, unless a single string is longer than the window.
"""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar, cast

import trio

WINDOW = 64 * 1024  # bytes; what is not longer is read in one piece
RUN = 500  # elements that are read, or values that are let go of, between two yields
MEMBERS = 100  # of an object, which take longer

_SPACE = re.compile(r"[ \t\n\r]*")
_COMMA = re.compile(r"[ \t\n\r]*,")
_IN_STRING = re.compile(r'(?:[^"\\]+|\\.)*', re.DOTALL)
_IN_WORD = re.compile(r"[-+.0-9A-Za-z]*")
_IN_NUMBERS = "0123456789.eE+-"
_DECODE = json.JSONDecoder().raw_decode

T = TypeVar("T")
R = TypeVar("R")


class LongObject(dict[str, Any]):
    """A JSON object that was read in slices, and should be let go of in slices."""


async def parse(pieces: list[bytes], *, errors: str = "surrogatepass") -> Any:
    """Return the value of a JSON document in UTF-8, cut into `pieces`, letting other tasks run when it is long.

    The pieces of a long one are replaced by b"" as they are read: to free all of them at once would take a while.
    `errors` says what to do about invalid UTF-8, as for `bytes.decode`. Raises ValueError for what is no JSON, and
    RecursionError for what is nested too deeply: a thousand times, or half as often around megabytes.
    """
    if sum(map(len, pieces)) <= WINDOW:
        return json.loads(b"".join(pieces).decode("utf-8", errors).removeprefix("\ufeff"))
    begun: list[object] = []
    try:
        value = await _between_others(parse_in_slices(pieces, errors=errors, begun=begun))
    except (ValueError, RecursionError):
        await _between_others(let_go_in_slices(begun))  # noqa: ASYNC120  # to a cancel it is all the same
        raise
    return LongObject(cast(dict[str, Any], value)) if isinstance(value, dict) else value


async def let_go(value: object) -> None:
    """Empty a long object or an array, letting other tasks run: to drop the last reference would free it in one go."""
    if isinstance(value, LongObject | list):
        await _between_others(let_go_in_slices(cast(object, value)))


async def read_and_let_go(value: T, read: Callable[[T], R]) -> R:
    """Return what `read` makes of `value`, or raise what it raises, and let go of the value."""
    try:
        made = read(value)
    except Exception:
        await let_go(value)  # noqa: ASYNC120  # to a cancel it is all the same
        raise
    await let_go(value)
    return made


async def _between_others(slices: Generator[None, None, T]) -> T:
    # Around the first and the last slice as well: what comes before and after takes its own milliseconds.
    while True:
        await trio.lowlevel.checkpoint()
        try:
            next(slices)
        except StopIteration as end:
            value = cast(T, end.value)
            break
    await trio.lowlevel.checkpoint()
    return value


def parse_in_slices(
    pieces: list[bytes], *, errors: str = "surrogatepass", window: int = WINDOW, begun: list[object] | None = None
) -> Generator[None, None, Any]:
    """Return what `json.loads` returns, emptying `pieces`; yield after each slice. `window` is 4 bytes at least.

    Where it fails, `begun` has the long objects and arrays that were not read to their ends.
    """
    place = _Place(pieces, errors, window, [] if begun is None else begun)
    value = yield from _value(place)
    if (yield from place.next()):
        raise ValueError("there is more behind the value")
    return value


def let_go_in_slices(value: object) -> Generator[None, None, None]:
    """Empty all objects and arrays in `value`; yield after each slice."""
    rest = [value]
    done = 0
    while rest:
        each = rest[-1]
        part: list[object] = []
        if isinstance(each, dict):
            members = cast(dict[object, object], each)
            part = [members.popitem()[1] for _ in range(min(RUN, len(members)))]
        elif isinstance(each, list):
            elements = cast(list[object], each)
            part = elements[-RUN:]
            del elements[-RUN:]
        if not (part and each):
            rest.pop()
        rest += [member for member in part if isinstance(member, dict | list)]
        done += 1 + len(part)
        if done >= RUN:
            done = 0
            del part  # so that it is this slice that frees it
            yield


class _Place:
    """A place in a document, and the text from there to the end of the window."""

    def __init__(self, pieces: list[bytes], errors: str, window: int, begun: list[object]) -> None:
        self.begun = begun
        self._pieces = _cut(pieces, window)
        self._decode = codecs.getincrementaldecoder("utf-8")(errors).decode
        self._window = window
        self.text = ""
        self.at = 0  # characters of the text before the place
        self.last = False  # the text reaches to the end of the document
        self.move()
        self.text = self.text.removeprefix("\ufeff")

    @property
    def full(self) -> bool:
        """Tell whether what begins here has had a whole window."""
        return self.last or len(self.text) - self.at >= self._window // 4  # the most bytes that a character takes

    def move(self) -> None:
        """Drop the text before the place, and add a window behind it."""
        pieces: list[bytes] = []
        size = 0
        for piece in self._pieces:
            pieces.append(piece)
            size += len(piece)
            if size >= self._window:
                break
        else:
            self.last = True
        # The decoder keeps a character that is cut for the next window.
        self.text = self.text[self.at :] + self._decode(b"".join(pieces), self.last)
        self.at = 0

    def skip_space(self) -> int:
        """Go behind the white space of the text, and return the place."""
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.at

    def next(self) -> Generator[None, None, str]:
        """Skip white space; return the character there, "" at the end of the document."""
        while self.skip_space() == len(self.text) and not self.last:
            yield
            self.move()
        return self.text[self.at : self.at + 1]

    def take(self, characters: str) -> Generator[None, None, str]:
        """Skip white space and one of `characters`, which is returned."""
        found = yield from self.next()
        if not found or found not in characters:
            raise ValueError(f"one of {characters} was expected")
        self.at += 1
        return found

    def take_run(self, elements: list[Any]) -> bool:
        """Move elements that a comma follows to `elements`, quickly; tell whether there may be more of them."""
        for _ in range(RUN):
            try:
                value, end = _DECODE(self.text, self.skip_space())
            except ValueError:
                return False
            if (comma := _COMMA.match(self.text, end)) is None:
                return False
            elements.append(value)
            self.at = comma.end()
        return True

    def take_scalar(self) -> Generator[None, None, str]:
        """Take a string, number or word whose end may be many windows away; return its text."""
        pieces: list[str] = []
        quoted = self.text[self.at] == '"'
        if quoted:
            pieces.append('"')
            self.at += 1
        inside = _IN_STRING if quoted else _IN_WORD
        while True:
            end = match.end() if (match := inside.match(self.text, self.at)) else self.at
            pieces.append(self.text[self.at : end])
            self.at = end
            # Behind the last piece is what ends the scalar, or the first half of an escape.
            if self.last or self.text[end : end + 1] not in ("", "\\"):
                break
            yield
            self.move()
        if quoted and self.text[self.at : self.at + 1] == '"':
            pieces.append('"')
            self.at += 1
        return "".join(pieces)


def _cut(pieces: list[bytes], window: int) -> Iterator[bytes]:
    """Take the pieces away one after the other, none of them longer than the window."""
    for number, piece in enumerate(pieces):
        pieces[number] = b""
        for start in range(0, len(piece), window):
            yield piece[start : start + window]


def _value(place: _Place) -> Generator[None, None, Any]:
    first = yield from place.next()
    while True:
        try:
            value, end = _DECODE(place.text, place.at)
        except ValueError:
            if place.last:
                raise
        else:
            # A number may go on behind the window, and of "1.5" cut to "1." the decoder takes the 1.
            if place.last or (end < len(place.text) and place.text[end] not in _IN_NUMBERS):
                place.at = end
                return value
        yield
        if first not in ("{", "["):
            return json.loads((yield from place.take_scalar()))
        if place.full:
            long: Any = {} if first == "{" else []
            place.begun.append(long)
            yield from (_members(place, long) if first == "{" else _elements(place, long))
            place.begun.pop()
            return long
        place.move()


def _members(place: _Place, members: dict[str, Any]) -> Generator[None, None, None]:
    yield from place.take("{")
    if (yield from place.next()) == "}":
        yield from place.take("}")
        return
    for count in itertools.count(1):
        if (yield from place.next()) != '"':
            raise ValueError("a name was expected")
        name = yield from _value(place)
        yield from place.take(":")
        members[name] = yield from _value(place)
        if (yield from place.take(",}")) == "}":
            return
        if count % MEMBERS == 0:
            yield


def _elements(place: _Place, elements: list[Any]) -> Generator[None, None, None]:
    yield from place.take("[")
    if (yield from place.next()) == "]":
        yield from place.take("]")
        return
    while True:
        while place.take_run(elements):
            yield
        elements.append((yield from _value(place)))
        if (yield from place.take(",]")) == "]":
            return
