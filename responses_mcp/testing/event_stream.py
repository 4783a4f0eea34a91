"""The events by which the API streams a response: `as_stream` turns a response object into them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from .replies import Sse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .items import Body

# A short text still comes in a few deltas, and a long one does not come in thousands.
MOST_DELTAS = 64
USUAL_DELTA = 24

TERMINAL = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "failed": "response.failed",
}


def as_stream(body: Mapping[str, Any], *, empty_terminal: bool = False) -> Sse:
    """Return `stream_events` as a reply. Use `dataclasses.replace` to cut it, chunk it or slow it down."""
    return Sse(stream_events(body, empty_terminal=empty_terminal))


def stream_events(body: Mapping[str, Any], *, empty_terminal: bool = False) -> list[Body]:
    """Return the events of a response that ends completed, incomplete or failed, in the API's order.

    The events are numbered. As from the API, a search is announced without its action, which comes when the
    item is done. With `empty_terminal` the last event's response has an empty ``output``, as some compatible
    servers send it. Raises ValueError for a body in any other state: its stream would have no end. A body
    without a status counts as completed.
    """
    status = body.get("status", "completed")
    if status not in TERMINAL:
        message = f"a response that is {status!r} has no last event"
        raise ValueError(message)
    unfinished = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}
    started: Body = {**body, **unfinished, "status": "in_progress", "output": []}
    ended: Body = {**body, "output": []} if empty_terminal else dict(body)
    events: list[Body] = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
    ]
    for index, item in enumerate(body["output"]):
        events += _item_events(item, index)
    events.append({"type": TERMINAL[status], "response": ended})
    return [{"type": event["type"], "sequence_number": number, **event} for number, event in enumerate(events)]


def _item_events(item: Body, index: int) -> Iterator[Body]:
    where = {"output_index": index, "item_id": item.get("id", f"item_{index}")}
    yield {"type": "response.output_item.added", "output_index": index, "item": _announced(item)}
    if item["type"] == "web_search_call":
        for step in ("in_progress", "searching", "completed"):
            # There is no event for a search that failed: its item is done without having been completed.
            if step != "completed" or item.get("status") == "completed":
                yield {"type": f"response.web_search_call.{step}", **where}
    for position, summary in enumerate(item.get("summary", [])):
        yield from _summary_events(summary, {**where, "summary_index": position})
    for position, part in enumerate(item.get("content") or []):
        yield from _part_events(part, {**where, "content_index": position})
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _announced(item: Body) -> Body:
    early = {key: value for key, value in item.items() if key != "action"}
    for later in {"content", "summary"} & early.keys():
        early[later] = []
    if "status" in early:
        early["status"] = "in_progress"
    return early


def _summary_events(part: Body, where: Body) -> Iterator[Body]:
    name = "response.reasoning_summary"
    yield {"type": f"{name}_part.added", **where, "part": {**part, "text": ""}}
    for delta in _deltas(part["text"]):
        yield {"type": f"{name}_text.delta", **where, "delta": delta}
    yield {"type": f"{name}_text.done", **where, "text": part["text"]}
    yield {"type": f"{name}_part.done", **where, "part": part}


def _part_events(part: Body, where: Body) -> Iterator[Body]:
    # The field that holds the text is called "refusal" in a refusal, and so are its events.
    name = "refusal" if part["type"] == "refusal" else part["type"]
    key = "refusal" if name == "refusal" else "text"
    extra: Body = {"logprobs": []} if name == "output_text" else {}
    annotations = part.get("annotations", [])
    empty: Body = {**part, key: "", **({"annotations": []} if "annotations" in part else {})}
    yield {"type": "response.content_part.added", **where, "part": empty}
    for delta in _deltas(part[key]):
        yield {"type": f"response.{name}.delta", **where, "delta": delta, **extra}
    for position, annotation in enumerate(annotations):
        told = {"annotation_index": position, "annotation": annotation}
        yield {"type": "response.output_text.annotation.added", **where, **told}
    yield {"type": f"response.{name}.done", **where, key: part[key], **extra}
    yield {"type": "response.content_part.done", **where, "part": part}


def _deltas(text: str) -> Iterator[str]:
    size = max(1, min(USUAL_DELTA, -(-len(text) // 3)), -(-len(text) // MOST_DELTAS))
    starts = itertools.takewhile(lambda start: start < len(text), itertools.count(0, size))
    return (text[start : start + size] for start in starts)
