"""From the bytes of an event stream to its events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from responses_mcp.json_types import JsonObject, as_object, text_at

MOST_VALUES: Final = 250_000  # in one JSON text: it is read in one go, which holds up everything else
_LONGEST_NUMBER: Final = 15  # digits; reading one takes time in proportion to their square
_TYPE: Final = re.compile(rb'\s*+\{\s*+"type"\s*+:\s*+"(response\.(?!error")[a-z_.]++)"')

Event: TypeAlias = tuple[str, bytes]  # its kind, the type or name that it has, or "error"; and its data


class EventStream:
    """Cuts a byte stream into its events."""

    def __init__(self) -> None:
        self._line = bytearray()  # the beginning of a line
        self._name, self._data = b"", bytearray()  # of the event that has begun
        self._after_cr = False

    @property
    def held_bytes(self) -> int:
        """Return the size of the event that has begun."""
        return len(self._line) + len(self._data)

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events they complete; one that the stream's end cuts off is none."""
        if self._after_cr:  # which ended its line at once; an LF behind it belongs to the same line end
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, end, rest = chunk.partition(b"\n")
        self._line += first
        if not end:
            return []
        lines = [bytes(self._line), *rest.split(b"\n")]
        self._line[:] = lines.pop()
        events: list[Event] = []
        name, held = self._name, self._data
        for line in lines:
            if line.startswith(b"data:"):
                held += line[5:] + b"\n"
            elif not line:
                if data := bytes(held):
                    known = _TYPE.match(data)
                    events.append((known[1].decode() if known else _kind(name, data), data))
                    held.clear()
                name = b""
            elif line.startswith(b"event:"):
                name = line[6:].strip()
        self._name = name
        return events


def _kind(name: bytes, data: bytes) -> str:
    """Return the kind of an event whose data do not begin with it."""
    members = object_of(data)
    kind = text_at(members, "type") or name.decode("utf-8", "replace")
    says_error = b"error" in name or members.get("object") == "error" or kind.lower().endswith("error")
    return "error" if says_error or (members.get("error") and not kind.startswith("response.")) else kind


def decode(data: bytes | bytearray) -> object:
    """Return the value of a JSON text. Raises ValueError for what is none, and for more values than any reply has.

    Invalid UTF-8 is read as U+FFFD, NaN and the like as null.
    """
    # Also counts what is within strings: quick, and at worst too strict. No text has more values than bytes.
    if len(data) > MOST_VALUES and len(data) - len(data.translate(None, b",[{")) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        return _JSON.decode(data.decode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


_JSON: Final = json.JSONDecoder(
    parse_int=lambda digits: int(digits) if len(digits) <= _LONGEST_NUMBER else -1,  # which is no count of anything
    parse_constant=lambda _: None,
)


def object_of(data: bytes) -> JsonObject:
    """Return the object that is the data of an event, the empty one where it cannot be read."""
    try:
        return as_object(decode(data))
    except ValueError:
        return {}
