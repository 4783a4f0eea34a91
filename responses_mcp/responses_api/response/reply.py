"""A reply of the API, read as it comes: status, headers and body in, the Response object or an error out.

At most `most_bytes` are read, counted after decompression; of a stream that bounds each event, and all that is kept.
Of a stream the result is the Response of the terminal event, completed from the events before where a server leaves
something out. Only that event is decoded, and those that tell of a phase; deltas are known by their first bytes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, cast

from responses_mcp.errors import ConnectionFailed, Progress, UnusableReply
from responses_mcp.json_types import JsonObject, as_object, text_at
from responses_mcp.responses_api.failures import LONGEST_READ, Head, kind_of, read_failure, reply_error, response_error
from responses_mcp.responses_api.response.parser import annotations_of, answer_messages, output_items
from responses_mcp.responses_api.response.streaming import Event, EventStream, decode, object_of
from responses_mcp.responses_api.response.web_pages import host_of
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import Redact

LARGE_BYTES: Final = 32 * 1024  # of a reply, above which other tasks run before it is decoded
TOO_LONG: Final = "reply_too_long"  # code of the error for a reply that is so long whenever it is asked for
_BLANK: Final = b" \t\r\n\xef\xbb\xbf"  # and a byte order mark, before a body
_FIELDS: Final = (b"event:", b"data:", b":", b"id:", b"retry:")  # how a stream begins, and no JSON
_MOST_KEPT: Final = 10_000  # events that may have to complete the output of the terminal one
_WRITTEN: Final = re.compile(rb'"delta"\s*+:\s*+"((?:[^"\\]++|\\.)*+)"', re.DOTALL)
_CITED: Final = re.compile(rb'"(?:url|file_id)"\s*+:\s*+("[^"]*+")')
_TERMINAL: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_OUTPUT: Final = (".delta", ".done", "_call.completed", ".annotation.added")  # how events of what was made end
_DELTA: Final = "response.output_text.delta"
_ADDED: Final = "response.output_item.added"
_ITEM: Final = "response.output_item.done"
_TEXT: Final = "response.output_text.done"
_KEPT: Final = frozenset(
    {
        *(_DELTA, _ITEM, _TEXT, "response.content_part.done"),
        *("response.output_text.annotation.added", "response.output_text_annotation.added"),
    }
)
_SEARCHING: Final = "response.web_search_call.searching"
_PHASES: Final = {(_DELTA, ""): "writing", (_SEARCHING, ""): "searching", (_ADDED, "reasoning"): "thinking"}


@dataclass(slots=True)
class ReplyBudget:
    """What all replies that are being read may hold together, and what they hold, in bytes."""

    most_bytes: int = 256 * 1024 * 1024
    held_bytes: int = 0


class ReplyReader:
    """Reads one reply: `begin`, then `feed` until it has enough or the body ends, then `finish`.

    What it holds counts against `budget` until it is closed. What errors quote has passed `redact`. `watcher` is told
    the phases, the text with secrets and all, and each event; `on_head` the status and the headers.
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
        self._watcher = watcher
        self._hears_deltas = watcher.on_text is not None or watcher.on_event is not None
        self._hears = self._hears_deltas or watcher.on_phase is not None
        self._gzip: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage]  # it has no other name
        self._is_stream: bool | None = None  # until its first bytes tell
        self._has_enough = False
        self._is_aside = False  # the message that is being written, which is not the final answer
        self._before: str | None = ""  # what is told before the next text, if anything
        self._hold_nothing()

    def _hold_nothing(self) -> None:
        self._body = bytearray()  # of what is no stream
        self._events = EventStream()
        self._kept: list[Event] = []  # in case the terminal event lacks what they tell
        self._written = bytearray()  # by deltas, as JSON has it; for the same case
        self._kept_bytes = 0  # of both
        self._end: Event | None = None
        self._error: bytes | None = None  # the event that tells of one
        self._odd = b""  # the last event of no known kind

    def close(self) -> None:
        """Hold nothing any more, though an error may refer to this object."""
        self._budget.held_bytes -= self.held_bytes
        self.held_bytes = 0
        self._hold_nothing()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the head of the reply; names of headers are lower-case."""
        if self._on_head is not None:
            self._on_head(status, headers)
        self.head = self.head._replace(status=status, headers=headers)
        if not self.head.is_success:
            self._is_stream = False
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
            for event in self._events.feed(data):
                is_long = is_long or (may_be_long and len(event[1]) > self._most_bytes)
                self._take(event)
        else:
            self._body += data
            self._has_enough = not self.head.is_success and len(self._body) > LONGEST_READ  # of an HTML page
        held = len(self._body) + self._events.held_bytes
        if not had_enough and (is_long or held > self._most_bytes):
            raise UnusableReply(
                f"The API's reply is longer than {self._most_bytes} bytes; check openai.base_url, "
                "or raise request.max_reply_bytes.",
                status=self.head.status,
                code=TOO_LONG,
            )
        grown = held + self._kept_bytes - self.held_bytes
        self.held_bytes += grown
        self._budget.held_bytes += grown
        if grown > 0 and not had_enough and self._budget.held_bytes > self._budget.most_bytes:
            self.close()  # until its connection is closed, all others that grow would be given up with it
            raise UnusableReply(
                f"All replies being read have more than {self._budget.most_bytes} bytes together, so this one was "
                "given up; ask again, with fewer questions at once.",
                maybe_paid=True,
            )
        return self._has_enough

    def _take(self, event: Event) -> None:
        """Take the next event. A failure and its reason may be two events."""
        kind, data = event
        had_enough = self._has_enough
        if kind in _TERMINAL:
            self._end, self._has_enough = self._end or event, True
        elif kind == "error" and (self._end is None or self._end[0] == "response.failed"):
            self._error, self._has_enough = self._error or data, True
        elif not kind.startswith("response.") and len(data) <= LONGEST_READ:
            self._odd = data
        if had_enough:
            return
        goes_on = kind == _DELTA and bool(self._written)
        if kind in _KEPT and self._kept_bytes + len(data) <= self._most_bytes:
            if kind != _DELTA and len(self._kept) < _MOST_KEPT:
                self._kept.append(event)
                self._kept_bytes += len(data)
            elif kind == _DELTA and (written := _WRITTEN.search(data)):
                self._written += written[1]
                self._kept_bytes += len(written[1])
        if goes_on and not self._hears_deltas:
            return
        if self.progress != "begun" and kind.startswith("response."):
            self.progress = "begun" if kind.endswith(_OUTPUT) else "accepted"
        if self._hears:
            self._tell(kind, data, goes_on=goes_on)

    def _tell(self, kind: str, data: bytes, *, goes_on: bool) -> None:
        """Tell the watcher of an event, which may be one of a text that `goes_on`."""
        watcher = self._watcher
        if watcher.on_event is not None:
            watcher.on_event(object_of(data))
        if watcher.on_phase is not None and not goes_on and (phase := _phase(kind, data, self.head.redact)):
            watcher.on_phase(phase)
        if (tell := watcher.on_text) is None or kind not in (_DELTA, _ADDED):
            return
        event = object_of(data)
        item = as_object(event.get("item"))
        if item.get("type") == "message":
            self._is_aside = item.get("phase") not in (None, "final_answer")
            self._before = "\n\n" if self._before is None else self._before
        elif (delta := text_at(event, "delta")) and not self._is_aside:
            if self._before is not None:
                tell(self._before)
            self._before = None
            tell(delta)

    def finish(self) -> JsonObject:
        """Return the Response object, which ended well or is incomplete. Raises `UpstreamError` for anything else.

        The bill of `watcher` takes the Response however it ended.
        """
        response = self.response()
        if self._watcher.bill is not None:
            self._watcher.bill.take(response)
        if (error := response_error(response, self.head.redact, self.progress)) is not None:
            raise error
        return response

    def response(self, *, begins: bool = True, from_start: bool = True) -> JsonObject:
        """Return the Response object, in whatever state it is.

        Its output, where the last event of a stream lacks some of it, is completed from the others. Of a stream that
        was not read `from_start` these are not all: it has the output of its last event, or none. Raises
        `UpstreamError` where there is none, and where an error came in place of one that `begins`.
        """
        is_named = "event-stream" in self.head.headers.get("content-type", "")
        if not (is_named if self._is_stream is None else self._is_stream):
            return self.json_object()
        if not self._has_enough:
            failure = read_failure({"error": _error_in(self._odd)}, str)
            if failure is None or kind_of(failure) == "unknown":
                said = "The API's stream ended before the answer was complete; ask again."
                raise ConnectionFailed(said, maybe_paid=True)
            self._error = self._odd
        kind, data = self._end or ("response.failed", b"")
        event = object_of(data)
        response = as_object(event.get("response"))
        told = response.get("error"), event.get("error"), self._error and _error_in(self._error)
        reasons = ({"error": each} for each in told if each)
        reason = next((each for each in reasons if read_failure(each, str)), JsonObject())
        if begins and self.progress == "refused" and (error := reply_error(self.head, reason, b"")) is not None:
            raise error
        output = output_items(response)
        if from_start:
            output = self._completed(output, data)
        elif not any(item.get("type") == "message" for item in output):
            output = []
        status = "failed" if reason else text_at(response, "status") or kind.removeprefix("response.")
        return {**response, **reason, "status": status, "output": output}

    def _completed(self, output: list[JsonObject], end: bytes) -> list[JsonObject]:
        """Return an output with the kinds of item, and the citations, that it lacks and other events than `end` have.

        Where no message was finished, the finished texts make one, or else the deltas. All citations go with the last
        text: which part they are of makes no difference to an answer.
        """
        output = [item for item in output if item.get("type") != "message" or item.get("content")]
        kinds = [item.get("type") for item in output]
        has_none = next(annotations_of(answer_messages(output)), None) is None
        cited = (name for _, data in self._kept if b"_citation" in data for name in _CITED.findall(data))
        lacks_citations = any(has_none or name not in end for name in cited)
        lacks_search = "web_search_call" not in kinds and any(b'"web_search_call"' in data for _, data in self._kept)
        if "message" in kinds and not lacks_citations and not lacks_search:
            return output
        told = [(kind, object_of(data)) for kind, data in self._kept]
        made = [as_object(event.get("item")) for kind, event in told if kind == _ITEM]
        if "message" not in [item.get("type") for item in made]:
            texts = [{"type": "output_text", "text": text_at(event, "text")} for kind, event in told if kind == _TEXT]
            if not texts and self._written:
                texts = [{"type": "output_text", **object_of(b'{"text":"%b"}' % bytes(self._written))}]
            made += [{"type": "message", "role": "assistant", "content": texts}] if texts else []
        items = [*(item for item in made if item.get("type") not in kinds), *output]
        messages = answer_messages(items)
        if lacks_citations and messages and messages[-1]:
            is_final = "final_answer" in [item.get("phase") for item in items]
            aside = {item.get("id") for item in items if is_final and item.get("phase") != "final_answer"} - {None}
            own = (event for _, event in told if event.get("item_id") not in aside)
            parts = ([each, as_object(each.get("part")), {"annotations": [each.get("annotation")]}] for each in own)
            known = {_name_of(annotation) for annotation in annotations_of(messages)}
            others = {_name_of(each): each for each in annotations_of([*parts, *answer_messages(made)])}
            more = [annotation for name, annotation in others.items() if name not in known]
            messages[-1][-1]["annotations"] = [*more, *annotations_of([messages[-1][-1:]])]
        return items

    def json_object(self) -> JsonObject:
        """Return the object that the body of a success is. Raises `UpstreamError` for anything else."""
        value = None
        with suppress(ValueError):
            value = decode(self._body) if self.head.is_success else None
        if (error := reply_error(self.head, value, bytes(self._body[: LONGEST_READ + 1]))) is not None:
            raise error
        self.progress = "accepted"
        return cast(JsonObject, value)


def _name_of(annotation: JsonObject) -> str:
    return str(annotation.get("url") or annotation.get("file_id"))


def _error_in(data: bytes) -> JsonObject | str:
    """Return the error that an event is: an object, or a text."""
    return object_of(data) or data.decode("utf-8", "replace").strip()


def _phase(kind: str, data: bytes, redact: Redact) -> str:
    """Return the phase that an event tells of, "" where it tells of none; of a search, what it asked or read."""
    item = as_object(object_of(data).get("item")) if kind in (_ADDED, _ITEM) else {}
    if kind != _ITEM or item.get("type") != "web_search_call":
        return _PHASES.get((kind, text_at(item, "type")), "")
    action = as_object(item.get("action"))
    if action.get("type") in ("open_page", "find_in_page"):
        # Redacted before: in small letters, a host would no longer show a secret.
        return f"reading {host_of(redact(sanitized(text_at(action, 'url')))) or 'a page'}"
    queries = action.get("queries")
    query = cast(list[object], queries)[0] if isinstance(queries, list) and queries else action.get("query")
    return f"searched: {query}" if query and isinstance(query, str) else "searched"
