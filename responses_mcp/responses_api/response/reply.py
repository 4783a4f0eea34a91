"""A reply of the API, read as it comes: status, headers and body in, the Response object or an error out.

A reply is a stream of events, or JSON from servers that do not stream, or the body of an HTTP error. Of each at most
`most_bytes` are read, counted after decompression; of a stream that is the bound of each event.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from responses_mcp.errors import Progress, UnusableReply
from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.failures import LONGEST_READ, Head, http_error, refusal_in, response_error
from responses_mcp.responses_api.response.streaming import EventStream, ResponseStream, decode
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.secrets import Redact

LARGE_BYTES: Final = 32 * 1024  # of a reply, above which other tasks run before it is decoded
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"  # and a byte order mark, before a body
_FIELDS: Final = (b"event:", b"data:", b":", b"id:", b"retry:")  # how a stream begins, and no JSON
TOO_LONG: Final = "reply_too_long"  # code of the error for a reply that is so long whenever it is asked for


@dataclass(slots=True)
class ReplyBudget:
    """What all replies that are being read may hold together, and what they hold, in bytes."""

    most_bytes: int = 256 * 1024 * 1024
    held_bytes: int = 0


class ReplyReader:
    """Reads one reply: `begin`, then `feed` until it has enough or the body ends, then `finish`.

    What it holds counts against `budget` until it is closed. What errors quote has passed `redact`. `watcher` is told
    of a stream what `ResponseStream` tells; `on_head` the status and the headers.
    """

    def __init__(
        self,
        *,
        most_bytes: int,
        budget: ReplyBudget,
        redact: Redact,
        key_from: str = "OPENAI_API_KEY",
        watcher: Watcher = NOBODY,
        on_head: Callable[[int, Mapping[str, str]], None] | None = None,
    ) -> None:
        self.head = Head(0, {}, redact, key_from)
        self.progress: Progress = "refused"  # of the request, as far as the reply tells
        self.held_bytes = 0  # of the reply; they count against the budget
        self._most_bytes = most_bytes
        self._budget = budget
        self._on_head = on_head
        self._bill = watcher.bill
        self._gzip: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage]  # it has no other name
        self._is_success = False
        self._is_stream: bool | None = None  # until its first bytes tell
        self._body = bytearray()  # of what is no stream
        self._events = EventStream()
        self._stream = ResponseStream(watcher, redact, most_bytes=most_bytes)
        self._has_enough = False

    def close(self) -> None:
        """Hold nothing any more, though an error may refer to this object."""
        self._budget.held_bytes -= self.held_bytes
        self.held_bytes = 0
        self._body.clear()
        self._events, self._stream = EventStream(), ResponseStream(NOBODY, str, most_bytes=0)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the reply; names of headers are lower-case."""
        if self._on_head is not None:
            self._on_head(status, headers)
        self.head = self.head._replace(status=status, headers=headers)
        self._is_success = 200 <= status < 300
        self._is_stream = None if self._is_success else False
        if "gzip" in headers.get("content-encoding", "").lower():  # which was not asked for
            self._gzip = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body and tell whether they are enough; the reason of a failure may come behind.

        Raises `UnusableReply` for a reply that is too long.
        """
        if self._gzip is not None:
            with suppress(zlib.error):  # what is no gzip is no JSON either
                data = self._gzip.decompress(data, self._most_bytes + 1)  # of more than that the rest is lost
        had_enough = self._has_enough
        if had_enough and (not self._is_stream or self._events.held_bytes + len(data) > self._most_bytes):
            return True
        if self._is_stream is None and (begun := data.lstrip(_BLANK)):
            self._is_stream = begun.startswith(_FIELDS) or any(field.startswith(begun) for field in _FIELDS)
            self._body.clear()  # which were blanks
            data = begun
        is_long = False
        if self._is_stream:
            may_be_long = self._events.held_bytes + len(data) > self._most_bytes
            events = self._events.feed(data)
            is_long = may_be_long and any(len(event) > self._most_bytes for _, event in events)
            for event in events:
                self._has_enough = self._stream.take(event)
            self.progress = self._stream.progress
        else:
            self._body += data
            self._has_enough = not self._is_success and len(self._body) > LONGEST_READ  # of an HTML page
        held = len(self._body) + self._events.held_bytes
        if not had_enough and (is_long or held > self._most_bytes):
            raise UnusableReply(
                f"The API's reply is longer than {self._most_bytes} bytes; check openai.base_url, "
                "or raise request.max_reply_bytes.",
                status=self.head.status,
                code=TOO_LONG,
            )
        grown = held + self._stream.kept_bytes - self.held_bytes
        self.held_bytes += grown
        self._budget.held_bytes += grown
        if grown > 0 and not had_enough and self._budget.held_bytes > self._budget.most_bytes:
            self.close()  # until its connection is closed, all others that grow would be given up with it
            raise UnusableReply(
                f"All replies being read have more than {self._budget.most_bytes} bytes together, so this one was "
                "given up; ask again, and fewer questions at once.",
                maybe_paid=True,
            )
        return self._has_enough

    def finish(self) -> JsonObject:
        """Return the Response object, which ended well or is incomplete. Raises `UpstreamError` for anything else.

        The bill of `watcher` takes the Response however it ended.
        """
        response = self.response()
        if self._bill is not None:
            self._bill.take(response)
        if (error := response_error(response, self.head.redact, self.progress)) is not None:
            raise error
        return response

    def response(self, *, begins: bool = True, from_start: bool = True) -> JsonObject:
        """Return the Response object, in whatever state it is; see `ResponseStream.response` for `from_start`.

        Raises `UpstreamError` where there is none, and where an error came in place of one that `begins`.
        """
        is_named = "event-stream" in self.head.headers.get("content-type", "")
        if not (is_named if self._is_stream is None else self._is_stream):
            return self.json_object()
        response = self._stream.response(from_start=from_start)
        error = {"error": response.get("error")}
        if begins and self.progress == "refused" and (refusal := refusal_in(error, self.head, b"")) is not None:
            raise refusal
        return response

    def json_object(self) -> JsonObject:
        """Return the object that the body of a success is. Raises `UpstreamError` for anything else."""
        beginning = bytes(self._body[: LONGEST_READ + 1])
        if not self._is_success:
            raise http_error(self.head, beginning)
        try:
            value = decode(self._body)
        except ValueError:
            value = None
        if (refusal := refusal_in(value, self.head, beginning)) is not None:
            raise refusal
        if not isinstance(value, dict):
            raise http_error(self.head, beginning)
        self.progress = "accepted"
        return cast(JsonObject, value)
