"""From the bytes of an event stream to a Response object, and the phases that it passes through.

The result is the Response that the terminal event carries, completed from the events before where a server leaves
something out. Only that event is decoded, and those that tell of a phase; deltas are known by their first bytes.

Events are server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias, cast

from responses_mcp.errors import ConnectionFailed, Progress
from responses_mcp.json_types import JsonObject, as_object, text_at
from responses_mcp.responses_api.failures import read_failure
from responses_mcp.responses_api.response.parser import annotations_of, answer_messages, output_items
from responses_mcp.responses_api.response.web_pages import host_of
from responses_mcp.responses_api.watcher import Watcher
from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import Redact

MOST_VALUES: Final = 250_000  # in one JSON text: it is read in one go, which holds up everything else
_MOST_KEPT: Final = 10_000  # events that may have to complete the output of the terminal one
_LONGEST_NUMBER: Final = 15  # digits; reading one takes time in proportion to their square
_TYPE: Final = re.compile(rb'\s*+\{\s*+"type"\s*+:\s*+"(response\.(?!error")[a-z_.]++)"')
_WRITTEN: Final = re.compile(rb'"delta"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_OUTPUT: Final = (".delta", ".done", "_call.completed", ".annotation.added")  # how events of what was made end
_DELTA: Final = "response.output_text.delta"
_ADDED: Final = "response.output_item.added"
_ITEM: Final = "response.output_item.done"
_TEXT: Final = "response.output_text.done"
_KEPT: Final = frozenset({_DELTA, _ITEM, _TEXT, "response.content_part.done", "response.output_text.annotation.added"})
_SEARCHING: Final = "response.web_search_call.searching"
_PHASES: Final = {(_DELTA, ""): "writing", (_SEARCHING, ""): "searching", (_ADDED, "reasoning"): "thinking"}

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
    members = _object(data)
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


class ResponseStream:
    """Collects the events of one streamed response, of which it keeps at most `most_bytes`.

    `watcher` is told the phases, the text with secrets and all, and each event. `redact` is
    for what the phases quote only in part.
    """

    def __init__(self, watcher: Watcher, redact: Redact, *, most_bytes: int) -> None:
        self._watcher = watcher
        self._hears_deltas = watcher.on_text is not None or watcher.on_event is not None
        self._hears = self._hears_deltas or watcher.on_phase is not None
        self._redact = redact
        self._most_bytes = most_bytes
        self._kept: list[Event] = []  # in case the terminal event lacks what they tell
        self._written = bytearray()  # by deltas, as JSON has it; for the same case
        self.kept_bytes = 0  # of both
        self._end: Event | None = None
        self._error: bytes | None = None  # the event that tells of one
        self._has_ended = False  # by either
        self.progress: Progress = "refused"
        self._is_aside = False  # the message that is being written, which is not the final answer
        self._before: str | None = ""  # what is told before the next text, if anything

    def take(self, event: Event) -> bool:
        """Take the next event and tell whether the response has ended. A failure and its reason may be two events."""
        kind, data = event
        had_ended, goes_on = self._has_ended, False
        if kind in _TERMINAL:
            self._end, self._has_ended = self._end or event, True
        elif kind in _KEPT:
            goes_on = kind == _DELTA and bool(self._written)
            has_room = not had_ended and self.kept_bytes + len(data) <= self._most_bytes
            if has_room and kind == _DELTA and (written := _WRITTEN.search(data)):
                self._written += written[1]
                self.kept_bytes += len(written[1])
            elif has_room and kind != _DELTA and len(self._kept) < _MOST_KEPT:
                self._kept.append(event)
                self.kept_bytes += len(data)
        elif kind == "error" and (self._end is None or self._end[0] == "response.failed"):
            self._error, self._has_ended = self._error or data, True
        if had_ended or (goes_on and not self._hears_deltas):
            return had_ended
        if self.progress != "begun" and kind.startswith("response."):
            self.progress = "begun" if kind.endswith(_OUTPUT) else "accepted"
        if self._hears:
            self._tell(kind, data, goes_on)
        return self._has_ended

    def response(self, *, from_start: bool = True) -> JsonObject:
        """Return the Response object; its output, where the last event lacks some of it, is completed from the others.

        Of a stream that was not read `from_start` these are not all: it has the output of its last event, or none.
        Raises `ConnectionFailed` when the stream ended before it was complete.
        """
        if not self._has_ended:
            raise ConnectionFailed("The API's stream ended before the answer was complete; ask again.", maybe_paid=True)
        kind, data = self._end or ("response.failed", b"")
        event = _object(data)
        response = as_object(event.get("response"))
        errors = filter(None, (response.get("error"), event.get("error"), self._error and _object(self._error)))
        reason = next((each for error in errors if read_failure(each := {"error": error}, str)), JsonObject())
        output = output_items(response)
        if from_start:
            output = self._completed(output)
        elif not any(item.get("type") == "message" for item in output):
            output = []
        status = "failed" if reason else text_at(response, "status") or kind.removeprefix("response.")
        return {**response, **reason, "status": status, "output": output}

    def _tell(self, kind: str, data: bytes, goes_on: bool) -> None:
        """Tell the watcher of an event, which may be one of a text that `goes_on`."""
        watcher = self._watcher
        if watcher.on_event is not None:
            watcher.on_event(_object(data))
        if watcher.on_phase is not None and not goes_on and (phase := _phase(kind, data, self._redact)):
            watcher.on_phase(phase)
        if watcher.on_text is None or kind not in (_DELTA, _ADDED):
            return
        event = _object(data)
        item = as_object(event.get("item"))
        if item.get("type") == "message":
            self._is_aside = item.get("phase") not in (None, "final_answer")
            self._before = "\n\n" if self._before is None else self._before
        elif (delta := text_at(event, "delta")) and not self._is_aside:
            if self._before is not None:
                watcher.on_text(self._before)
            self._before = None
            watcher.on_text(delta)

    def _completed(self, output: list[JsonObject]) -> list[JsonObject]:
        """Return an output with the kinds of item, and the citations, that it lacks and other events have.

        Where no message was finished, the finished texts make one, or else the deltas. The citations come with the
        last text: which part they are of makes no difference to an answer.
        """
        output = [item for item in output if item.get("type") != "message" or item.get("content")]
        kinds = [item.get("type") for item in output]
        lacking = [] if "web_search_call" in kinds else [b'"web_search_call"']
        lacking += [b"_citation"] if next(annotations_of(answer_messages(output)), None) is None else []
        if "message" in kinds and not any(word in data for word in lacking for _, data in self._kept):
            return output
        told = [(kind, _object(data)) for kind, data in self._kept]
        made = [as_object(event.get("item")) for kind, event in told if kind == _ITEM]
        if "message" not in [item.get("type") for item in made]:
            texts = [{"type": "output_text", "text": text_at(event, "text")} for kind, event in told if kind == _TEXT]
            if not texts and self._written:
                texts = [{"type": "output_text", **_object(b'{"text":"%b"}' % bytes(self._written))}]
            made += [{"type": "message", "role": "assistant", "content": texts}] if texts else []
        items = [*(item for item in made if item.get("type") not in kinds), *output]
        messages = answer_messages(items)
        if messages and messages[-1] and not [*annotations_of(messages)]:
            rest = ([each, as_object(each.get("part")), {"annotations": [each.get("annotation")]}] for _, each in told)
            messages[-1][-1]["annotations"] = [*annotations_of([*answer_messages(made), *rest])]
        return items


def _object(data: bytes) -> JsonObject:
    """Return the object that is the data of an event, the empty one where it cannot be read."""
    try:
        return as_object(decode(data))
    except ValueError:
        return {}


def _phase(kind: str, data: bytes, redact: Redact) -> str:
    """Return the phase that an event tells of, "" where it tells of none; of a search, what it asked or read."""
    item = as_object(_object(data).get("item")) if kind in (_ADDED, _ITEM) else {}
    if kind != _ITEM or item.get("type") != "web_search_call":
        return _PHASES.get((kind, text_at(item, "type")), "")
    action = as_object(item.get("action"))
    if action.get("type") in ("open_page", "find_in_page"):
        # Redacted before: in small letters, a host would no longer show a secret.
        return f"reading {host_of(redact(sanitized(text_at(action, 'url')))) or 'a page'}"
    queries = action.get("queries")
    query = cast(list[object], queries)[0] if isinstance(queries, list) and queries else action.get("query")
    return f"searched: {query}" if query and isinstance(query, str) else "searched"
