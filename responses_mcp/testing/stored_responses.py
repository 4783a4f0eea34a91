"""The responses that the fake API makes and keeps; those of the background can be streamed again and cancelled.

A response is what its age makes of it: its events are due one after the other, `interval` seconds apart, and all that
is asked about it is answered from those that are due. So no task works in the background, and no time is lost. One that
is not of the background is finished at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qs, unquote

import trio

from . import bodies
from .event_stream import stream_events
from .items import Body
from .replies import Closed, Ending, Error, Json, Pause, Reply, Step, chunk, event_bytes, last_chunk, stream_head

MOST_RESPONSES = 1000
MOST_LEVELS = 100
_NUMBER = re.compile(r"-1|[0-9]{1,9}")

Compose = Callable[[Mapping[str, Any]], Body]
"""Makes the finished response of a request. What the API echoes, such as `background`, is set afterwards."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong with one response in the background. By default nothing does.

    `id_never_sent` closes the connection of the POST before its first byte, though the response is made and paid for.
    `cut_after` ends streams, of the first `cuts`, behind the event with that number, or before any that follows it.
    `cancels_lost` closes the connections of so many requests to cancel, which have no effect. `late_cancels` is the
    status with which one is refused when the response has ended; None answers with the response. `stuck` stays in
    progress for ever. `gone_after` is the age in seconds from which on the response is not known any more.
    """

    id_never_sent: bool = False
    cut_after: int | None = None
    cuts: int = 1
    cancels_lost: int = 0
    late_cancels: int | None = None
    stuck: bool = False
    gone_after: float | None = None


@dataclass(eq=False, kw_only=True)
class StoredResponse:
    """One response. Times are `trio.current_time()`."""

    request: Mapping[str, Any] = field(repr=False)
    finished: Body = field(repr=False)
    events: list[Body] = field(repr=False)
    created: float
    interval: float
    faults: Faults
    cancelled: float | None = None
    streams: int = 0
    """How many times it was streamed."""

    cancels: int = 0
    """How many requests to cancel it have come, lost ones included."""

    @property
    def id(self) -> str:
        """The id of the response."""
        return cast("str", self.finished["id"])

    def due(self, now: float) -> int:
        """Return how many of the events have happened."""
        most = 3 if self.faults.stuck else len(self.events)
        until = now if self.cancelled is None else min(now, self.cancelled)
        return min(most, 1 + int((until - self.created) / self.interval + 1e-9)) if self.interval else most

    def body(self, now: float) -> Body:
        """Return the response object as it is by now."""
        due = self.due(now)
        if due == len(self.events):
            return self.finished
        status = "cancelled" if self.cancelled is not None else "queued" if due < 3 else "in_progress"
        done = [event["item"] for event in self.events[:due] if event["type"] == "response.output_item.done"]
        return {**self.finished, **_UNFINISHED, "status": status, "output": done}

    def ended(self, now: float) -> bool:
        """Tell whether nothing will happen any more."""
        return self.cancelled is not None or self.due(now) == len(self.events)


class StoredResponses:
    """The responses that were made, by id. The fake API has one of these as `stored`.

    `interval` and `faults` are those of the next response in the background, and of all that follow until they are
    changed.
    """

    compose: Compose
    """Makes the finished responses; at first `echo_in_form`."""

    interval: float
    """Seconds between two events of a response; at first 0, with which a response is finished at once."""

    faults: Faults
    """What goes wrong with the responses to come."""

    responses: dict[str, StoredResponse]
    """The last `MOST_RESPONSES` that were made, stored or not, in order: what would have been paid for."""

    def __init__(self) -> None:
        self.compose = echo_in_form
        self.interval = 0.0
        self.faults = Faults()
        self.responses = {}

    def create(self, wanted: Mapping[str, Any]) -> Reply:
        """Make a response, and reply with its stream or, if no stream is asked for, with what there is of it.

        It is stored unless ``store`` is false, which background mode does not admit, and can follow a stored one only
        (the API reference of ``POST /responses``).
        """
        background, store = wanted.get("background") is True, wanted.get("store") is not False
        if background and not store:
            return Error(400, "Background mode needs store=true.", param="store")
        previous = wanted.get("previous_response_id")
        if previous is not None and self._find(previous) is None:
            message = f"Previous response with id '{previous}' not found."
            return Error(400, message, code="previous_response_not_found", param="previous_response_id")
        finished = {
            **self.compose(wanted),
            "background": background,
            "previous_response_id": previous,
            "service_tier": wanted.get("service_tier") or "default",
            "store": store,
            "tools": wanted.get("tools", []),
        }
        events = _queued(stream_events(finished)) if background else stream_events(finished)
        interval = self.interval if background else 0.0
        if finished["completed_at"] is not None:
            takes = interval * (len(events) - 1)
            finished["completed_at"] = cast("int", finished["created_at"]) + int(takes)
            cast("Body", events[-1]["response"])["completed_at"] = finished["completed_at"]
        response = StoredResponse(
            request=wanted,
            finished=finished,
            events=events,
            created=trio.current_time(),
            interval=interval,
            faults=self.faults if background else Faults(),
        )
        self.responses[response.id] = response
        if len(self.responses) > MOST_RESPONSES:
            del self.responses[next(iter(self.responses))]
        if response.faults.id_never_sent:
            return Closed()
        return _Following(response) if wanted.get("stream") is True else Json(response.body(response.created))

    def answer(self, method: str, target: str) -> Reply:
        """Reply to a request for one response: GET it, streamed or not, or POST to cancel it.

        `target` is the path behind ``/responses/``, with its query. Only a response in the background can be cancelled
        or streamed again (the API reference of cancel; its guide to background mode).
        """
        path, _, asked = target.partition("#")[0].partition("?")
        name, _, what = path.partition("/")
        response = self._find(unquote(name))
        if response is None:
            return Json(_not_found(unquote(name)), 404)
        background = response.finished["background"]
        if (method, what) == ("POST", "cancel"):
            return self._cancel(response) if background else Error(400, "Cannot cancel a synchronous response.")
        if (method, what) != ("GET", ""):
            return Error(404, f"Invalid URL ({method} {target})", code="unknown_url")
        query = parse_qs(asked)
        if query.get("stream") == ["true"]:
            if not background:
                message = "This response cannot be streamed because it was not created with background=true."
                return Error(400, message, param="stream")
            after = query.get("starting_after", ["-1"])[0]
            if not _NUMBER.fullmatch(after):
                return Error(400, "starting_after is not the number of an event.", param="starting_after")
            return _Following(response, after=int(after))
        return Json(response.body(trio.current_time()))

    def _cancel(self, response: StoredResponse) -> Reply:
        response.cancels += 1
        if response.cancels <= response.faults.cancels_lost:
            return Closed()
        now = trio.current_time()
        if not response.ended(now):
            response.cancelled = now
        elif response.faults.late_cancels is not None:
            return Error(response.faults.late_cancels, "Cannot cancel a response that has ended.")
        return Json(response.body(now))

    def _find(self, name: object) -> StoredResponse | None:
        response = self.responses.get(name) if isinstance(name, str) else None
        if response is None or not response.finished["store"]:
            return None
        gone_after = response.faults.gone_after
        return None if gone_after is not None and trio.current_time() - response.created >= gone_after else response


@dataclass(frozen=True)
class _Following(Reply):
    """The events of a response behind number `after`, those to come included, each when it is due."""

    response: StoredResponse
    after: int = -1

    def steps(self, request_id: str) -> Iterator[Step]:
        """Yield events and pauses until the response has ended, or the stream is to be cut."""
        response, faults = self.response, self.response.faults
        response.streams += 1
        cut = faults.cut_after if faults.cut_after is not None and response.streams <= faults.cuts else None
        yield stream_head(request_id)
        sent = self.after + 1
        while True:
            now = trio.current_time()
            for event in response.events[sent : response.due(now)]:
                if cut is not None and sent > cut:
                    break
                yield chunk(event_bytes(event))
                sent += 1
            if cut is not None and sent > cut:
                yield Ending.CLOSE
                return
            if response.ended(trio.current_time()):
                # A response that was cancelled has no last event: the stream just ends.
                yield last_chunk()
                return
            yield Pause(max(response.interval, 0.001))


_UNFINISHED: Body = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}


def _queued(events: list[Body]) -> list[Body]:
    """Return the events of a response that has to wait for its turn first."""
    first = {**events[0], "response": {**events[0]["response"], "status": "queued"}}
    waits = {**first, "type": "response.queued"}
    return [{**event, "sequence_number": number} for number, event in enumerate([first, waits, *events[1:]])]


def _not_found(name: str) -> Body:
    message = f"Response with id '{name}' not found."
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def echo_in_form(request: Mapping[str, Any]) -> Body:
    """Return the echo of a request (`bodies.echo`).

    Where ``text.format`` has a JSON schema, the text is the least value of that schema, with the query in its texts.
    """
    body = bodies.echo(request)
    wanted = _object(_object(request.get("text")).get("format"))
    if wanted.get("type") == "json_schema":
        message = body["output"][-1]
        part = message["content"][0]
        # As the API does: with a format there are no annotations.
        text = json.dumps(least_value(_object(wanted.get("schema")), bodies.query_of(request)))
        message["content"] = [{**part, "text": text, "annotations": []}]
    return body


def _object(given: Any) -> Body:
    return cast("Body", given) if isinstance(given, dict) else {}


def _list(given: Any) -> list[Any]:
    return list(cast("Sequence[Any]", given)) if isinstance(given, list) else []


def least_value(schema: Mapping[str, Any], text: str, levels: int = MOST_LEVELS) -> Any:
    """Return a value that a plain JSON schema admits: what is required, as little as possible, `text` for a text.

    Null where the schema is none that is understood, or has more `levels`.
    """
    if choices := _list(schema.get("enum")):
        return choices[0]
    kinds: Any = schema.get("type", "object")
    kind = next(iter(_list(kinds)), None) if isinstance(kinds, list) else kinds
    if kind == "object" and levels:
        required, properties = _list(schema.get("required")), _object(schema.get("properties"))
        wanted = {name: _object(inner) for name, inner in properties.items() if name in required}
        return {name: least_value(inner, text, levels - 1) for name, inner in wanted.items()}
    plain: dict[str, Any] = {"string": text, "integer": 0, "number": 0, "boolean": False, "array": []}
    return plain.get(kind) if isinstance(kind, str) else None
