"""A streamed response put together again, and the phases it goes through on the way.

The result is the Response that the terminal event carries. Some servers send that event with an empty `output`; then
the items that were finished stand in for it, and then the pieces of text. Whatever is not understood is passed over:
new kinds of events appear all the time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, cast
from urllib.parse import urlsplit

import trio

from responses_mcp.errors import ConnectionFailed
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.responses_api import json_slices
from responses_mcp.responses_api.reading import MOST_ITEMS, MOST_SOURCES
from responses_mcp.responses_api.sse import EventStream

PIECE = 8 * 1024  # bytes of an event stream between two looks at other tasks; it may consist of empty lines
_FIELD = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:event|data|id|retry)?:")
_LONGEST_URL = 8 * 1024  # characters, in which its host is looked for
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")


class ResponseStream:
    """Collects the events of one streamed response.

    `response` is None until the stream's terminal event has come.
    """

    def __init__(self) -> None:
        self.response: JsonObject | None = None
        self._items: dict[int, JsonObject] = {}
        self._parts: dict[tuple[int, int], JsonObject] = {}
        self._writing = False
        self._long = False  # there was a long event, which may live on in the response

    def finish(self) -> JsonObject:
        """Return the response. Raises `ConnectionFailed` when the stream ended before it was complete."""
        if self.response is None:
            raise ConnectionFailed("The API's stream ended before the answer was complete; ask again.", maybe_paid=True)
        return self.response

    def take(self, value: object) -> str | None:
        """Take the JSON value of the next event; return the phase it begins, if any, in words for a person.

        What is kept of an event is taken out of it.
        """
        if not isinstance(value, dict):
            return None
        event = cast(JsonObject, value)
        self._long = self._long or isinstance(value, json_slices.LongObject)
        kind = event.get("type")
        if kind in _TERMINAL:
            whole = self._complete(_object(event.pop("response", None)), str(kind))
            self.response = json_slices.LongObject(whole) if self._long else whole
            return None
        if kind == "error" or (kind is None and "error" in event):
            error = _object(event.get("error")) or event
            self.response = {"status": "failed", "error": {"code": error.get("code"), "message": error.get("message")}}
            return None
        return self._phase(str(kind), event)

    def _phase(self, kind: str, event: JsonObject) -> str | None:
        if kind == "response.output_item.done":
            item = _object(event.get("item"))
            if len(self._items) < MOST_ITEMS:
                self._items[_index(event, "output_index")] = item
                event.pop("item", None)
            return _searched(item) if item.get("type") == "web_search_call" else None
        if kind == "response.web_search_call.searching":
            return "searching"
        if kind == "response.output_text.annotation.added":
            annotations = self._part(event)["annotations"]
            if len(annotations) < MOST_SOURCES:
                annotations.append(event.pop("annotation", None))
        elif kind == "response.output_text.delta":
            self._part(event)["text"].append(_text(event.get("delta")))
            if not self._writing:
                self._writing = True
                return "writing"
        elif kind == "response.output_item.added" and _object(event.get("item")).get("type") == "reasoning":
            return "thinking"
        return None

    def _part(self, event: JsonObject) -> JsonObject:
        """Return the part that an event adds to; its text is kept in pieces until it is needed."""
        place = (_index(event, "output_index"), _index(event, "content_index"))
        part = self._parts.get(place, {"type": "output_text", "text": [], "annotations": []})
        if len(self._parts) < MOST_ITEMS:
            self._parts[place] = part
        return part

    def _complete(self, response: JsonObject, kind: str) -> JsonObject:
        output = _list(response.get("output")) or [item for _, item in sorted(self._items.items())]
        has_message = any(_object(item).get("type") == "message" for item in islice(output, MOST_ITEMS))
        if not has_message and self._parts:
            parts = [{**part, "text": "".join(part["text"])} for _, part in sorted(self._parts.items())]
            output = [*output, {"type": "message", "role": "assistant", "content": parts}]
        status = response.get("status") or kind.removeprefix("response.")
        return {**response, "status": status, "output": output}


class StreamListener:
    """Hears a reply and, if it is an event stream, tells its phases; see `connections.Listener`."""

    def __init__(self, on_phase: Callable[[str], None]) -> None:
        self._on_phase = on_phase
        self._events = EventStream()
        self._stream = ResponseStream()
        self.heard = False

    def begin(self, status: int, headers: Mapping[str, str]) -> bool:
        """Accept successful replies that say they are event streams and are not compressed."""
        kind, coding = headers.get("content-type", "").lower(), headers.get("content-encoding", "identity")
        self.heard = is_success(status) and kind.startswith("text/event-stream") and coding == "identity"
        return self.heard

    async def hear(self, chunk: bytes) -> bool:
        """Take a piece of the stream; enough is when the response is complete."""
        for start in range(0, len(chunk), PIECE):
            if start:
                await trio.lowlevel.checkpoint()
            for data in self._events.feed(chunk[start : start + PIECE]):
                try:
                    event = await json_slices.parse([data], errors="replace")
                except (ValueError, RecursionError):
                    continue  # `[DONE]`, and whatever else is no event
                if (phase := self._stream.take(event)) is not None:
                    self._on_phase(phase)
                await json_slices.let_go(event)
                if self._stream.response is not None:
                    return True  # what follows the terminal event is not ours to judge
        return False

    def finish(self) -> JsonObject:
        """Return the response; see `ResponseStream.finish`."""
        return self._stream.finish()


def is_success(status: int) -> bool:
    """Tell whether `status` is of the 200 class."""
    return 200 <= status < 300


def looks_like_events(pieces: list[bytes]) -> bool:
    """Tell whether a body is an event stream, whatever its content type says: no JSON text begins so."""
    return _FIELD.match(b"".join(pieces[:2])) is not None


def _searched(item: JsonObject) -> str | None:
    """Say what a finished search did: the query it asked or the page it read."""
    action = _object(item.get("action"))
    if action.get("type") in ("open_page", "find_in_page"):
        try:
            host = urlsplit(_text(action.get("url"))[:_LONGEST_URL]).hostname
        except ValueError:
            host = None
        return f"reading {host}" if host else "reading a page"
    queries = islice(_list(action.get("queries")), MOST_SOURCES)
    query = next((query for query in queries if isinstance(query, str)), None) or _text(action.get("query"))
    return f"searched: {query}" if query else "searched"


def _object(value: object) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(event: JsonObject, key: str) -> int:
    value = event.get(key)
    return value if type(value) is int else 0
