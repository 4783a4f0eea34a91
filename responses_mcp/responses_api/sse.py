"""Server-sent events as the HTML standard has them (https://html.spec.whatwg.org/multipage/server-sent-events.html).

Lines end in LF, CR or CRLF; a line starting with a colon is a comment; several `data` lines of one event are joined by
LF; a blank line ends the event.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LINE_END = re.compile(rb"[\r\n]")
_FIELD = re.compile(rb"(data|event)(?:: ?|(?=[\r\n]))")
# Whole lines that say nothing while no event has begun, blank ones among them.
_NOTHING = re.compile(rb"(?:(?!data|event)[^\r\n]*+(?:\r\n|\n|\r(?!\n|\Z)))++")
_CR = ord("\r")
_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event. Invalid UTF-8 in it is to be read as U+FFFD."""

    name: bytes
    data: bytes


class EventStream:
    """Cuts a byte stream into its events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._name = b""
        self._data: bytearray | None = None  # of the event that has begun
        self._at_start = True
        self._after_cr = False

    @property
    def held_bytes(self) -> int:
        """Return the size of the event that has begun."""
        return len(self._buffer) + (0 if self._data is None else len(self._data))

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events they complete; one that the stream's end cuts off is none."""
        buffer = self._buffer
        buffer += chunk
        if self._at_start and not self._skip_byte_order_mark():
            return []
        events: list[Event] = []
        at = 0
        if self._after_cr and buffer:
            # The CR ended its line at once; an LF behind it belongs to the same line end.
            at = int(buffer.startswith(b"\n"))
            self._after_cr = False
        while True:
            if self._data is None and not self._name and (nothing := _NOTHING.match(buffer, at)):
                at = nothing.end()
            end = _LINE_END.search(buffer, max(at, self._searched))
            if end is None:
                break
            if end.start() > at:
                self._take_field(at, end.start())
            else:
                if self._data is not None:
                    events.append(Event(self._name, bytes(self._data)))
                self._name, self._data = b"", None
            at = end.end()
            if buffer[at - 1] == _CR:
                self._after_cr = at == len(buffer)
                at += buffer.startswith(b"\n", at)
        del buffer[:at]
        self._searched = len(buffer)
        return events

    def _skip_byte_order_mark(self) -> bool:
        """Drop a byte order mark at the very beginning; False while it cannot be told yet."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        self._at_start = False
        return True

    def _take_field(self, start: int, end: int) -> None:
        field = _FIELD.match(self._buffer, start)
        if field is None:
            return
        with memoryview(self._buffer)[field.end() : end] as value:
            if field[1] == b"event":
                self._name = bytes(value)
            elif self._data is None:
                self._data = bytearray(value)
            else:
                self._data += b"\n"
                self._data += value
