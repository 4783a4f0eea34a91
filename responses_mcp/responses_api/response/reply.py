"""A reply of the API, read as it comes: status, headers and body in, the Response object or an error out.

A reply is a stream of events, or JSON from servers that do not stream, or the body of an HTTP error. Of each at most
`most_bytes` are read, counted after decompression; of a stream that is the bound of each event.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self, cast

from responses_mcp.errors import Progress, UnusableReply, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.failures import (
    LONGEST_READ,
    Head,
    http_error,
    refusal_in,
    response_error,
)
from responses_mcp.responses_api.response.streaming import Event, EventStream, ResponseStream, decode
from responses_mcp.responses_api.watcher import NOBODY, Watcher

BUDGET_BYTES: Final = 256 * 1024 * 1024  # of all replies that are being read
LARGE_BYTES: Final = 32 * 1024  # of a reply, above which other tasks run before it is decoded
_WHOLE_STREAM: Final = 16  # times the bound of an event: no stream of an answer is so long
# An event stream, whatever its name: no JSON text begins so.
_EVENTS = re.compile(rb"(?:event|data|id|retry)?:")
_MARK: Final = b"\xef\xbb\xbf"  # of byte order
TOO_LONG: Final = "reply_too_long"
"""The `code` of the error for a reply that is longer than may be read, whenever it is asked for."""
_LONGEST_FIELD: Final = len(_MARK + b"event:")


class ReplyBudget:
    """What all replies that are being read hold together, in bytes."""

    def __init__(self, most_bytes: int = BUDGET_BYTES) -> None:
        self._most_bytes = most_bytes
        self.held_bytes = 0

    def change(self, by: int) -> None:
        """Hold so many bytes more, or fewer. Raises `UnusableReply` when they are too many."""
        self.held_bytes += by
        if by > 0 and self.held_bytes > self._most_bytes:
            raise UnusableReply(
                f"All replies being read have more than {self._most_bytes} bytes together, so this one was given up; "
                "ask again, and fewer questions at once.",
                maybe_paid=True,
            )


class ReplyReader:
    """Reads one reply: `begin`, then `feed` until it has enough or the body ends, then `finish`.

    What it holds counts against `budget` until its `with` block ends. What errors quote has passed `redact`.
    `watcher` is told of a stream what `ResponseStream` tells; `on_head` the status and the headers.
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
        self._most_bytes = most_bytes
        self._on_head = on_head
        self._budget = budget
        self.progress: Progress = "refused"  # of the request, as far as the reply tells
        self.held_bytes = 0  # of the reply; they count against the budget
        self._has_enough = False
        self.head = Head(0, {}, redact, key_from)
        self._gzip: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage]  # it has no other name
        self._body: list[bytes] = []  # in pieces: to put it together with each of them would take longer
        self._body_bytes = 0
        self._read_bytes = 0
        self._events: EventStream | None = None
        self._stream = ResponseStream(watcher, redact, most_bytes=most_bytes)
        self._named = False  # an event stream
        self._sure = False  # of what kind it is

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Not left to the collector: a traceback that passes here holds this object, and an error its traceback.
        self._release()

    def _release(self) -> None:
        self._budget.change(-self.held_bytes)
        self.held_bytes = self._body_bytes = 0
        self._body.clear()
        self._events = None
        self._stream = ResponseStream(NOBODY, str, most_bytes=0)

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the reply; names of headers are lower-case."""
        if self._on_head is not None:
            self._on_head(status, headers)
        self.head = self.head._replace(status=status, headers=headers)
        coding = headers.get("content-encoding", "").strip().lower()
        if coding in ("gzip", "x-gzip"):  # not asked for
            self._gzip = zlib.decompressobj(16 + zlib.MAX_WBITS)
        elif coding not in ("", "identity"):
            raise self._unreadable()
        self._sure = not self._is_success
        self._named = headers.get("content-type", "").lower().startswith("text/event-stream")

    def feed(self, data: bytes) -> bool:
        """Take the next bytes of the body and tell whether they are enough; the reason of a failure may come behind.

        Raises `UnusableReply` for a reply that is too long or compressed in a broken way.
        """
        if self._has_enough:
            if self._events is not None and self._gzip is None and self.held_bytes + len(data) <= self._most_bytes:
                self._take(self._events.feed(data))
            return True
        if self._gzip is not None:
            try:
                data = self._gzip.decompress(data, self._most_bytes + 1)  # of more than that the rest is lost
            except zlib.error:
                raise self._unreadable() from None
        self._read_bytes += len(data)
        if not self._sure:
            data = self._find_kind(data)
        if self._events is None:
            receiving, whole = self._keep(data), self._most_bytes
        else:
            self._take(self._events.feed(data))
            receiving, whole = self._events.held_bytes, self._most_bytes * _WHOLE_STREAM
        if receiving > self._most_bytes or len(data) > self._most_bytes or self._read_bytes > whole:
            raise self._too_long()
        held = receiving + self._stream.kept_bytes
        change, self.held_bytes = held - self.held_bytes, held
        try:
            self._budget.change(change)
        except UnusableReply:
            # Now: until its connection is closed, all others that grow would be given up with it.
            self._release()
            raise
        return self._is_over

    def finish(self, seen: Callable[[JsonObject], None] | None = None) -> JsonObject:
        """Return the Response object, which ended well or is incomplete. Raises `UpstreamError` for anything else.

        `seen` is shown the Response however it ended.
        """
        response = self.response()
        if seen is not None:
            seen(response)
        if (error := response_error(response, self.head.redact, self.progress)) is not None:
            raise error
        return response

    def response(self, *, begins: bool = True, from_start: bool = True) -> JsonObject:
        """Return the Response object, in whatever state it is; see `ResponseStream.response` for `from_start`.

        Raises `UpstreamError` where there is none, and where an error came in place of one that `begins`.
        """
        if self._events is None and (self._sure or not self._named):
            return self.json_object()
        response = self._stream.response(from_start=from_start)
        if begins and self.progress == "refused" and (error := self._refusal({"error": response.get("error")})):
            raise error
        return response

    def _refusal(self, value: object) -> UpstreamError | None:
        return refusal_in(value, self.head, b"".join(self._body[:3]))

    def json_object(self) -> JsonObject:
        """Return the object that the body of a success is. Raises `UpstreamError` for anything else."""
        if not self._is_success:
            raise http_error(self.head, b"".join(self._body))
        if self._gzip is not None and not self._gzip.eof:
            raise self._unreadable()
        try:
            value = decode(b"".join(self._body))
        except ValueError:
            value = None
        if (refusal := self._refusal(value)) is not None:
            raise refusal
        if not isinstance(value, dict):
            raise http_error(self.head, b"".join(self._body[:3]))
        self.progress = "accepted"
        return cast(JsonObject, value)

    @property
    def _is_over(self) -> bool:
        return self._has_enough or (self._gzip is not None and self._gzip.eof)

    @property
    def _is_success(self) -> bool:
        return 200 <= self.head.status < 300

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if len(event[1]) > self._most_bytes and not self._has_enough:
                raise self._too_long()
            self._has_enough = self._stream.take(event)
        self.progress = self._stream.progress

    def _find_kind(self, data: bytes) -> bytes:
        """Return what is to be read, once its first bytes tell what it is; blanks before it say nothing."""
        data = b"".join([*self._body, data]).lstrip().removeprefix(_MARK)
        self._body.clear()
        self._body_bytes = 0
        if len(data) < _LONGEST_FIELD:
            self._keep(data)
            return b""
        self._sure = True
        if _EVENTS.match(data) or (self._named and not data.startswith(b"{")):
            self._events = EventStream()
        return data

    def _keep(self, data: bytes) -> int:
        if not self._is_success:
            data = data[: LONGEST_READ + 1 - self._body_bytes]  # the rest of an HTML page says nothing
        self._body.append(data)
        self._body_bytes += len(data)
        self._has_enough = not self._is_success and self._body_bytes > LONGEST_READ
        return self._body_bytes

    def _too_long(self) -> UnusableReply:
        return UnusableReply(
            f"The API's reply is longer than {self._most_bytes} bytes; check openai.base_url, "
            "or raise request.max_reply_bytes.",
            status=self.head.status,
            code=TOO_LONG,
        )

    def _unreadable(self) -> UnusableReply:
        return UnusableReply(
            "The API's reply is compressed in a broken or unknown way; "
            "check what lies between here and openai.base_url.",
            status=self.head.status,
            retryable=not self._is_success and http_error(self.head, b"").retryable,
        )
