"""A streamed response put together again, and the phases it goes through on the way.

The result is the Response that the terminal event carries. Only that event is decoded, and those that tell of a phase;
deltas, of which there are hundreds, are known by their first bytes. Some servers send the terminal event with an empty
`output`; then the items that were finished stand in for it, then the texts, and then what the deltas spell. Whatever is
not understood is passed over: new kinds of events appear all the time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, cast
from urllib.parse import urlsplit

from responses_mcp.errors import ConnectionFailed, UnusableReply
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.shapes import as_object, text_at
from responses_mcp.responses_api.sse import Event

MOST_VALUES: Final = 250_000  # in one JSON text: it is read in one go, which holds up everything else
_MOST_KEPT = 10_000  # events that may have to stand in for the terminal one
_LONGEST_URL = 8 * 1024  # characters, in which its host is looked for
_TYPE = re.compile(rb'\s*+\{\s*+"type"\s*+:\s*+"([^"\\]*+)"')
_WRITTEN = re.compile(rb'"delta"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_LONGEST_NUMBER: Final = 40  # digits; reading one takes time in proportion to their square
_DELTA: Final = "response.output_text.delta"
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_ITEM, _TEXT, _ANNOTATION = _KEPT = (
    "response.output_item.done",
    "response.output_text.done",
    "response.output_text.annotation.added",
)


def decode(data: bytes) -> object:
    """Return the value of a JSON text. Raises ValueError for what is none, and for more values than any reply has.

    Invalid UTF-8 is read as U+FFFD.
    """
    # Counted within strings, too, which is quick and errs on the safe side.
    if len(data) - len(data.translate(None, b",[{")) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        return json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"), parse_int=_integer)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else 0


class ResponseStream:
    """Collects the events of one streamed response; `kept_bytes` of them at the moment, at most `most_bytes`.

    `on_phase`, if given, is told the phases, in words for a person; `redact` is for what they quote only in part.
    """

    def __init__(self, on_phase: Callable[[str], None] | None, redact: Redact, *, most_bytes: int) -> None:
        self._on_phase = on_phase
        self._redact = redact
        self._most_bytes = most_bytes
        self._kept: list[tuple[str, bytes]] = []
        self._written = bytearray()  # by deltas, as JSON has it
        self._end: tuple[str, bytes] | None = None
        self._events_bytes = 0
        self._writing = False

    def take(self, event: Event) -> bool:
        """Take the next event and tell whether it was the last of the response."""
        kind = _kind(event)
        if kind in _TERMINAL or kind == "error":
            self._end = (kind, event.data)
            return True
        if self.kept_bytes + len(event.data) <= self._most_bytes:
            self._keep(kind, event.data)
        if self._on_phase is not None and (phase := self._phase(kind, event.data)) is not None:
            self._on_phase(phase)
        return False

    def response(self) -> JsonObject:
        """Return the Response object.

        Raises `ConnectionFailed` when the stream ended before it was complete, `UnusableReply` if its end is no JSON.
        """
        if self._end is None:
            raise ConnectionFailed("The API's stream ended before the answer was complete; ask again.", maybe_paid=True)
        kind, data = self._end
        try:
            event = as_object(decode(data))
        except ValueError as error:
            raise UnusableReply(f"The last event of the API's stream cannot be read: {error}; ask again.") from error
        if kind == "error":
            said = as_object(event.get("error")) or event
            return {"status": "failed", "error": {"code": said.get("code"), "message": said.get("message")}}
        response = as_object(event.get("response"))
        output = response.get("output")
        if not (isinstance(output, list) and output):
            output = self._stand_in()
        elif not any(as_object(item).get("type") == "message" for item in cast(list[object], output)):
            output = [*cast(list[object], output), *self._texts()]
        return {**response, "status": response.get("status") or kind.removeprefix("response."), "output": output}

    @property
    def kept_bytes(self) -> int:
        """Return the size of what may have to stand in for the terminal event's output."""
        return self._events_bytes + len(self._written)

    def _keep(self, kind: str, data: bytes) -> None:
        if kind == _DELTA and (written := _WRITTEN.search(data)):
            self._written += written[1]
        elif kind in _KEPT and len(self._kept) < _MOST_KEPT:
            self._kept.append((kind, data))
            self._events_bytes += len(data)

    def _phase(self, kind: str, data: bytes) -> str | None:
        if kind == _DELTA:
            before, self._writing = self._writing, True
            return None if before else "writing"
        if kind == "response.web_search_call.searching":
            return "searching"
        if kind in (_ITEM, "response.output_item.added"):
            item = as_object(_object(data).get("item"))
            if kind != _ITEM:
                return "thinking" if item.get("type") == "reasoning" else None
            return _searched(item, self._redact) if item.get("type") == "web_search_call" else None
        return None

    def _stand_in(self) -> list[JsonObject]:
        events = sorted(self._events(_ITEM), key=lambda event: _index(event, "output_index"))
        items = [as_object(event.get("item")) for event in events]
        return items if any(item.get("type") == "message" for item in items) else [*items, *self._texts()]

    def _texts(self) -> list[JsonObject]:
        """Return the message that the finished texts make, or else the deltas, if there are any."""
        parts: dict[tuple[int, int], JsonObject] = {}
        for event in self._events(_TEXT):
            part: JsonObject = {"type": "output_text", "text": text_at(event, "text"), "annotations": []}
            parts[_index(event, "output_index"), _index(event, "content_index")] = part
        if not parts and self._written:  # of which part it is was not kept
            parts[0, 0] = {"type": "output_text", **_object(b'{"text":"%b"}' % bytes(self._written)), "annotations": []}
        for event in self._events(_ANNOTATION):
            at = _index(event, "output_index"), _index(event, "content_index")
            if (cited := parts.get(at) or next(iter(parts.values()), None)) is not None:
                cited["annotations"].append(event.get("annotation"))
        content = [part for _, part in sorted(parts.items())]
        return [{"type": "message", "role": "assistant", "content": content}] if content else []

    def _events(self, kind: str) -> list[JsonObject]:
        return [_object(data) for each, data in self._kept if each == kind]


def _kind(event: Event) -> str:
    """Return the type of an event: its data's own word, which stands at the beginning; or else its name."""
    found = _TYPE.match(event.data)
    word = found[1] if found else event.name
    if word:
        return word.decode("utf-8", "replace")
    members = _object(event.data)
    kind = members.get("type", "error" if "error" in members else "")
    return kind if isinstance(kind, str) else ""


def _object(data: bytes) -> JsonObject:
    try:
        return as_object(decode(data))
    except ValueError:
        return {}


def _searched(item: JsonObject, redact: Redact) -> str | None:
    """Say what a finished search did: the query it asked or the page it read.

    The URL is redacted here, because a host is but a part of it, and in small letters.
    """
    action = as_object(item.get("action"))
    if action.get("type") in ("open_page", "find_in_page"):
        try:
            host = urlsplit(redact(text_at(action, "url"))[:_LONGEST_URL]).hostname
        except ValueError:
            host = None
        return f"reading {host}" if host else "reading a page"
    queries = action.get("queries")
    asked = cast(list[object], queries)[:_MOST_KEPT] if isinstance(queries, list) else []
    query = next((query for query in asked if isinstance(query, str)), None) or text_at(action, "query")
    return f"searched: {query}" if query else "searched"


def _index(event: JsonObject, key: str) -> int:
    value = event.get(key)
    return value if type(value) is int else 0
