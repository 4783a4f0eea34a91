"""From the bytes of an event stream to a Response object, and the phases that it passes through.

The result is the Response that the terminal event carries. Only that event is decoded, and those that tell of a phase;
deltas, of which there are hundreds, are known by their first bytes. Some servers send the terminal event with an empty
`output`; then the finished items replace it, or else the finished texts, or else the deltas. Unknown events are
skipped: new kinds appear all the time.

Events are server-sent events as the HTML standard has them (https://html.spec.whatwg.org/multipage/server-sent-events.html):
lines end in LF, CR or CRLF; a line starting with a colon is a comment; several `data` lines of one event are joined by
LF; a blank line ends the event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from responses_mcp.errors import ConnectionFailed, Progress, UnusableReply
from responses_mcp.json_types import JsonObject, as_object, text_at
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.failures import read_failure
from responses_mcp.responses_api.watcher import Place, Watcher
from responses_mcp.sanitization import sanitized

MOST_VALUES: Final = 250_000  # in one JSON text: it is read in one go, which holds up everything else
_MOST_KEPT = 10_000  # events that may have to replace the output of the terminal one
_LONGEST_URL = 8 * 1024  # characters, in which its host is looked for
_LONGEST_NUMBER: Final = 40  # digits; reading one takes time in proportion to their square
_MOST_NUMBER: Final = 10**15  # of events
_NUMBERED = re.compile(rb'\s*+\{\s*+"type"\s*+:\s*+"[^"\\]*+"\s*+,\s*+"sequence_number"\s*+:\s*+([0-9]{1,15}+)\s*+[,}]')
_WRITTEN = re.compile(rb'"delta"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
_WITH_RESPONSE: Final = (*_TERMINAL, "response.created", "response.queued", "response.in_progress")
_STATES: Final = tuple(name.removeprefix("response.") for name in _WITH_RESPONSE if name != "response.created")
_ERRORS: Final = ("error", "response.error")
_OUTPUT: Final = (".delta", ".done", "_call.completed", ".annotation.added")  # how events of what was made end
_DELTA: Final = "response.output_text.delta"
_ADDED: Final = "response.output_item.added"
_ITEM, _TEXT, _ANNOTATION = _KEPT = (
    "response.output_item.done",
    "response.output_text.done",
    "response.output_text.annotation.added",
)
# What can stand in an address, and is no step within one. Those of proxies are long.
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~=+@|-]{0,1023}")
_USUAL = re.compile(rb'\n*+(?:event: [^\n]*+\n)?data: (?=\s*+\{\s*+"type"\s*+:\s*+"(response\.[a-z_.]++)")')
_FIELD = re.compile(rb"^(data|event)(?:: ?([^\n]*)|$)", re.MULTILINE)
_COMMENTS = re.compile(rb"(?::[^\n]*+\n)++")


Event: TypeAlias = tuple[str, bytes]
"""Kind and data of one event: the type that its data names, else its name; invalid UTF-8 is to be read as U+FFFD."""


class EventStream:
    """Cuts a byte stream into its events."""

    def __init__(self) -> None:
        self._buffer = bytearray()  # from the beginning of an event, with LF for each line end
        self._searched = 0
        self._after_cr = False

    @property
    def held_bytes(self) -> int:
        """Return the size of the event that has begun."""
        return len(self._buffer)

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events they complete; one that the stream's end cuts off is none."""
        if self._after_cr and chunk:
            # The CR ended its line at once; an LF behind it belongs to the same line end.
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        buffer = self._buffer
        buffer += chunk
        if comments := _COMMENTS.match(buffer):  # of which some servers send megabytes without an empty line
            end = comments.end()
            del comments, buffer[:end]
            self._searched = 0
        end = buffer.rfind(b"\n\n", max(0, self._searched - 1))
        if end < 0:
            self._searched = len(buffer)
            return []
        with memoryview(buffer) as view:
            whole = bytes(view[:end])
        del buffer[: end + 2]
        self._searched = len(buffer)
        return [event for lines in whole.split(b"\n\n") if lines and (event := _event(lines))]


def _event(lines: bytes) -> Event | None:
    """Return the event that lines without an empty one between them make, None where they hold no data."""
    if (usual := _USUAL.match(lines)) and b"\n" not in (rest := lines[usual.end() :]):
        return usual[1].decode(), rest
    name, data = b"", bytearray()
    for field in _FIELD.finditer(lines):
        if field[1] == b"event":
            name = field[2] or b""
        else:
            data += b"\n%b" % (field[2] or b"")
    if not data:
        return None
    del data[:1]
    members = _object(bytes(data))
    kind = members.get("type") or name.decode("utf-8", "replace")
    if not isinstance(kind, str):
        kind = ""
    if not kind.startswith("response."):
        says_error = b"error" in name or members.get("object") == "error" or kind.lower().endswith("error")
        if says_error or ("error" in members and kind in ("", "message")):
            kind = "error"
    return kind, bytes(data)


def decode(data: bytes) -> object:
    """Return the value of a JSON text. Raises ValueError for what is none, and for more values than any reply has.

    Invalid UTF-8 is read as U+FFFD.
    """
    # Also counts what is within strings: quick, and at worst too strict. No text has more values than bytes.
    if len(data) > MOST_VALUES and len(data) - len(data.translate(None, b",[{")) > MOST_VALUES:
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        return _JSON.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _nothing(_: str) -> None:
    """Read NaN and the like, which JSON has not."""


def _integer(digits: str) -> int:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else -1  # which is no count of anything


_JSON: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_nothing)


class ResponseStream:
    """Collects the events of one streamed response, of which it keeps at most `most_bytes`.

    `watcher` is told the phases, the text with secrets and all, and with each event where the stream is. `redact` is
    for what the phases quote only in part.
    """

    def __init__(self, watcher: Watcher, redact: Redact, *, most_bytes: int) -> None:
        self._on_phase, self._on_text, self._on_place = watcher.on_phase, watcher.on_text, watcher.on_place
        self._redact = redact
        self._most_bytes = most_bytes
        self._kept: list[Event] = []
        self._written = bytearray()  # by deltas, as JSON has it
        self._end: Event | None = None
        self._error: bytes | None = None  # the event that tells of one
        self.kept_bytes = 0  # in case the terminal event has no output
        self.progress: Progress = "refused"
        self._skims = False  # deltas, of which nothing but the text is wanted
        self._asides = set[int]()  # messages that are not the final answer, by their place in the output
        self._told: int | None = None  # the message whose text was told last
        self._writes = False

    def take(self, event: Event) -> bool:
        """Take the next event and tell whether the response has ended. A failure and its reason may be two events."""
        kind, data = event
        if kind == _DELTA and self._skims:
            self._keep(event)
            return False
        ended = self._end is not None or self._error is not None
        if not ended and self.progress != "begun" and kind.startswith("response."):
            if kind.endswith(_OUTPUT):
                self.progress = "begun"
            elif kind in _WITH_RESPONSE:
                self.progress = "accepted"
        if not ended and self._on_place is not None:
            self._on_place(_place(kind, data, self._redact))
        if kind in _ERRORS:
            if self._error is None and (self._end is None or self._end[0] == "response.failed"):
                self._error = data
        elif kind in _TERMINAL:
            self._end = self._end or event
        elif not ended:
            self._keep(event)
            self._tell(kind, data)
            return False
        self._skims = False
        return True

    def response(self, *, from_start: bool = True) -> JsonObject:
        """Return the Response object; its output, where the last event lacks it, is made of the others.

        Of a stream that was not read `from_start` these are not all: it has the output of its last event, or none.
        Raises `ConnectionFailed` when the stream ended before it was complete, `UnusableReply` if its end is no JSON.
        """
        if self._end is None and self._error is None:
            cut = ConnectionFailed("The API's stream ended before the answer was complete; ask again.", maybe_paid=True)
            cut.advance("begun" if self.progress == "begun" else "accepted")
            raise cut
        kind, data = self._end or ("response.failed", b"{}")
        event, beside = _last(data), {} if self._error is None else _last(self._error)
        response = as_object(event.get("response"))
        errors = filter(None, (response.get("error"), event.get("error"), beside))
        reason = next((each for error in errors if read_failure(each := {"error": error}, str)), None)
        output = response.get("output")
        items = cast(list[object], output) if isinstance(output, list) else []
        if from_start:
            items = self._completed(items)
        elif not any(as_object(item).get("type") == "message" for item in items):
            items = []
        status = text_at(response, "status") or kind.removeprefix("response.")
        found: JsonObject = {**response, "status": status, "output": items}
        return found if reason is None else {**found, **reason, "status": "failed"}

    def _keep(self, event: Event) -> None:
        kind, data = event
        if self.kept_bytes + len(data) > self._most_bytes:
            return
        if kind == _DELTA and (written := _WRITTEN.search(data)):
            self._written += written[1]
            self.kept_bytes += len(written[1])
        elif kind in _KEPT and len(self._kept) < _MOST_KEPT:
            self._kept.append(event)
            self.kept_bytes += len(data)

    def _tell(self, kind: str, data: bytes) -> None:
        """Tell the watcher of an event that is not the last."""
        if self._on_text is not None and kind in (_DELTA, _ADDED):
            self._tell_text(self._on_text, kind, _object(data))
        if self._on_phase is not None:
            phase = ""
            if kind == _DELTA and not self._writes:
                phase = "writing"
            elif kind == "response.web_search_call.searching":
                phase = "searching"
            elif kind in (_ITEM, _ADDED):
                item = as_object(_object(data).get("item"))
                if kind == _ADDED and item.get("type") == "reasoning":
                    phase = "thinking"
                elif kind == _ITEM and item.get("type") == "web_search_call":
                    phase = _searched(item, self._redact)
            if phase:
                self._on_phase(phase)
        if kind == _DELTA:
            self._writes = True
            self._skims = self._on_text is None and self._on_place is None

    def _tell_text(self, on_text: Callable[[str], None], kind: str, event: JsonObject) -> None:
        index = _index(event, "output_index")
        if kind == _ADDED:
            is_final = as_object(event.get("item")).get("phase") in (None, "final_answer")
            if not is_final and len(self._asides) < _MOST_KEPT:
                self._asides.add(index)
        elif (delta := text_at(event, "delta")) and index not in self._asides:
            if self._told != index:
                on_text("" if self._told is None else "\n\n")
            self._told = index
            on_text(delta)

    def _completed(self, output: list[object]) -> list[object]:
        """Return an output with what it lacks and other events have: messages, searches, or annotations."""
        items = [as_object(item) for item in output]
        messages = [_content(item) for item in items if item.get("type") == "message"]
        bare = {id(part) for parts in messages for part in parts if not part.get("annotations")}
        has_searches = any(item.get("type") == "web_search_call" for item in items)
        cites = bool(bare) and any(b"_citation" in data for _, data in self._kept)
        if messages and not cites and (has_searches or not any(b'"web_search_call"' in data for _, data in self._kept)):
            return output
        made, parts = self._made()
        if not output:
            return list(made)
        if not messages:
            return [*output, *(item for item in made if item.get("type") == "message")]
        for (index, place), part in sorted(parts.items(), key=lambda each: each[0]):
            # Where items are left out of the last event, the message has another place in it.
            own = items[index] if 0 <= index < len(items) and items[index].get("type") == "message" else {}
            content = _content(own) or messages[-1]
            lacking = content[place] if 0 <= place < len(content) else content[-1] if content else {}
            if id(lacking) in bare:
                lacking["annotations"] = [*(lacking.get("annotations") or ()), *(part.get("annotations") or ())]
        return [*(each for each in made if each.get("type") == "web_search_call" and not has_searches), *output]

    def _made(self) -> tuple[list[JsonObject], dict[tuple[int, int], JsonObject]]:
        """Return the finished items, and the parts of the messages among them by their places in the output.

        Where no message is finished, the finished texts make one, or else the deltas.
        """
        finished = sorted(self._events(_ITEM), key=lambda event: _index(event, "output_index"))
        items = [as_object(event.get("item")) for event in finished]
        parts = {
            (_index(event, "output_index"), place): part
            for event, item in zip(finished, items, strict=True)
            if item.get("type") == "message"
            for place, part in enumerate(_content(item))
        }
        if not any(item.get("type") == "message" for item in items):
            for event in self._events(_TEXT):
                at = _index(event, "output_index"), _index(event, "content_index")
                parts[at] = {"type": "output_text", "text": text_at(event, "text")}
            if not parts and self._written:  # of which part it is was not kept
                parts[0, 0] = {"type": "output_text", **_object(b'{"text":"%b"}' % bytes(self._written))}
            content = [part for _, part in sorted(parts.items(), key=lambda each: each[0])]
            items += [{"type": "message", "role": "assistant", "content": content}] if content else []
        bare = {id(part) for part in parts.values() if not part.get("annotations")}
        for event in self._events(_ANNOTATION):
            at = _index(event, "output_index"), _index(event, "content_index")
            part = parts.get(at) or next(iter(parts.values()), None)
            if part is not None and id(part) in bare:
                part["annotations"] = [*(part.get("annotations") or ()), event.get("annotation")]
        return items, parts

    def _events(self, kind: str) -> list[JsonObject]:
        return [_object(data) for each, data in self._kept if each == kind]


def usable_id(value: object, redact: Redact) -> str | None:
    """Return the id of a Response, None for what is none: it is asked for by that, and kept, so it holds no secret."""
    usable = isinstance(value, str) and _ID.fullmatch(value) is not None and redact(value) == value
    return cast(str, value) if usable else None


def as_response(found: JsonObject, redact: Redact) -> JsonObject:
    """Return a Response without an `id` or a `status` that cannot be one; without an id, only the API's own are."""
    wrong = {"id"} if usable_id(found.get("id"), redact) is None else set[str]()
    status = found.get("status")
    if not isinstance(status, str) or (wrong and status not in _STATES):
        wrong.add("status")
    return {name: value for name, value in found.items() if name not in wrong} if wrong else found


def _place(kind: str, data: bytes, redact: Redact) -> Place:
    """Return where an event is; only that of a kind that has the response is decoded, or one in another order."""
    numbered = _NUMBERED.match(data)
    if numbered and kind not in _WITH_RESPONSE:
        return Place(int(numbered[1]))
    event = _object(data)
    number = event.get("sequence_number")
    usable = type(number) is int and 0 <= number <= _MOST_NUMBER
    response = as_object(event.get("response"))
    return Place(number if usable else None, usable_id(response.get("id"), redact), not keeps_nothing(response))


def keeps_nothing(response: JsonObject) -> bool:
    """Tell whether a Response says that the API works on it in the foreground, or does not store it."""
    return response.get("background") is False or response.get("store") is False


def _last(data: bytes) -> JsonObject:
    try:
        return as_object(decode(data))
    except ValueError as error:
        raise UnusableReply(f"The last event of the API's stream cannot be read: {error}; ask again.") from error


def _object(data: bytes) -> JsonObject:
    try:
        return as_object(decode(data))
    except ValueError:
        return {}


def _searched(item: JsonObject, redact: Redact) -> str:
    """Return the phase that a finished search stands for: the query it asked or the page it read.

    The URL is redacted here: its host alone, in small letters, would no longer show a secret.
    """
    action = as_object(item.get("action"))
    if action.get("type") in ("open_page", "find_in_page"):
        try:
            host = urlsplit(redact(sanitized(text_at(action, "url")))[:_LONGEST_URL]).hostname
        except ValueError:
            host = None
        return f"reading {host}" if host else "reading a page"
    queries = action.get("queries")
    asked = cast(list[object], queries)[:_MOST_KEPT] if isinstance(queries, list) else []
    query = next((query for query in asked if isinstance(query, str)), None) or text_at(action, "query")
    return f"searched: {query}" if query else "searched"


def _content(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return [as_object(part) for part in cast(list[object], content)] if isinstance(content, list) else []


def _index(event: JsonObject, key: str) -> int:
    value = event.get(key)
    return value if type(value) is int else 0
