r"""Server-sent events, from bytes in any chunks (WHATWG HTML, 9.2.6 interpreting an event stream).

Lines end in LF, CR or CRLF; a line starting with a colon is a comment; several `data` lines of one event are joined by
LF; a blank line ends the event. Names and ids of events are not kept, since the Responses API repeats its event's name
inside the data.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_DATA = re.compile(rb"data(?:: ?|(?=[\r\n]))")
_BOM = b"\xef\xbb\xbf"


class EventStream:
    """Cuts a byte stream into the data of its events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._data: bytes | bytearray | None = None  # of the event that has begun; there can be millions of lines
        self._at_start = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes and return the data of the events they complete, whose invalid UTF-8 is to be U+FFFD.

        An event that the end of the stream cuts off is never returned, as the rules say.
        """
        self._buffer += chunk
        if self._at_start and not self._skip_byte_order_mark():
            return []
        events: list[bytes] = []
        while (end := self._line_end()) is not None:
            if end.start():
                self._take_field(end.start())
            elif self._data is not None:
                events.append(bytes(self._data))
                self._data = None
            del self._buffer[: end.end()]
            self._searched = 0
        return events

    def _skip_byte_order_mark(self) -> bool:
        """Drop a byte order mark at the very beginning; False while it cannot be told yet."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        self._at_start = False
        return True

    def _line_end(self) -> re.Match[bytes] | None:
        if self._after_cr and self._buffer:
            # The CR ended its line at once; an LF behind it belongs to the same line end.
            if self._buffer.startswith(b"\n"):
                del self._buffer[:1]
            self._after_cr = False
        end = _LINE_END.search(self._buffer, self._searched)
        if end is None:
            self._searched = len(self._buffer)
        else:
            self._after_cr = end.group() == b"\r" and end.end() == len(self._buffer)
        return end

    def _take_field(self, end: int) -> None:
        data = _DATA.match(self._buffer)
        if data is None:
            return
        with memoryview(self._buffer)[data.end() : end] as value:
            if self._data is None:
                self._data = bytes(value)
                return
            if isinstance(self._data, bytes):
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += value
