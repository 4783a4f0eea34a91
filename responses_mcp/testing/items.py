"""Constructors for the parts of a response object, shaped as the API shapes them.

Every call makes new ids, so that no two answers can be taken for one another.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Body: TypeAlias = dict[str, Any]
"""A JSON object: a response, an item of its output, a part, an annotation."""

_serial = itertools.count(1)


def _new_id(prefix: str) -> str:
    return f"{prefix}_{next(_serial):048x}"


def url_citation(url: str, title: str, start: int, end: int) -> Body:
    """Return an annotation that cites a page; `start` and `end` count code points of its part's text."""
    return {"type": "url_citation", "url": url, "title": title, "start_index": start, "end_index": end}


def cite(text: str, url: str, title: str = "") -> Body:
    """Return the `url_citation` for the first ``([…](url))`` link to `url` that the model wrote into `text`.

    Raises ValueError if there is no such link.
    """
    end = text.index(f"]({url}))") + len(f"]({url}))")
    return url_citation(url, title, text.rindex("([", 0, end), end)


def file_citation(file_id: str, filename: str, index: int) -> Body:
    """Return an annotation that cites a file of a vector store."""
    return {"type": "file_citation", "file_id": file_id, "filename": filename, "index": index}


def output_text(text: str, annotations: Iterable[Body] = ()) -> Body:
    """Return a text part of a message."""
    return {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}


def refusal_part(text: str) -> Body:
    """Return the part that stands in place of text when the model declines."""
    return {"type": "refusal", "refusal": text}


def message(parts: Iterable[Body], phase: str | None = None, *, status: str = "completed") -> Body:
    """Return a message item; `phase` is "commentary" or "final_answer" on the models that tell them apart."""
    item: Body = {
        "id": _new_id("msg"),
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": list(parts),
    }
    if phase is not None:
        item["phase"] = phase
    return item


def reasoning(summaries: Iterable[str] = (), *, content: Iterable[str] | None = None) -> Body:
    """Return a reasoning item: with summaries if the request asked for them, with content on open models."""
    item: Body = {
        "id": _new_id("rs"),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text} for text in summaries],
    }
    if content is not None:
        item["content"] = [{"type": "reasoning_text", "text": text} for text in content]
    return item


def web_search_call(
    queries: Sequence[str] = (), sources: Iterable[str] | None = None, status: str = "completed"
) -> Body:
    """Return a search; `sources` are URLs, or None if the request's ``include`` did not ask for them."""
    action: Body = {"type": "search", "queries": list(queries)}
    if queries:
        action["query"] = queries[0]  # the older, single form, which is still sent beside the list
    if sources is not None:
        action["sources"] = [{"type": "url", "url": url} for url in sources]
    return _search_item(action, status)


def open_page(url: str | None, status: str = "completed") -> Body:
    """Return the call by which the model opens a page that a search found."""
    return _search_item({"type": "open_page", "url": url}, status)


def find_in_page(url: str, pattern: str, status: str = "completed") -> Body:
    """Return the call by which the model looks for a pattern within an open page."""
    return _search_item({"type": "find_in_page", "url": url, "pattern": pattern}, status)


def _search_item(action: Body, status: str) -> Body:
    return {"id": _new_id("ws"), "type": "web_search_call", "status": status, "action": action}


def usage(input_tokens: int = 8512, output_tokens: int = 733, reasoning_tokens: int = 512) -> Body:
    """Return token counts; `output_tokens` includes `reasoning_tokens`."""
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": input_tokens + output_tokens,
    }


def response(output: Iterable[Body], *, model: str = "gpt-5.2", status: str = "completed", **fields: Any) -> Body:
    """Return a whole response object; `fields` replace or add top-level fields."""
    items = list(output)
    now = int(time.time())
    searches = sum(item["type"] == "web_search_call" for item in items)
    body: Body = {
        "id": _new_id("resp"),
        "object": "response",
        "created_at": now,
        "status": status,
        "background": False,
        "completed_at": now if status == "completed" else None,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "max_tool_calls": None,
        "model": model,
        "output": items,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": "medium", "summary": None},
        "safety_identifier": None,
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [
            {
                "type": "web_search",
                "filters": None,
                "search_context_size": "medium",
                "user_location": {
                    "type": "approximate",
                    "city": None,
                    "country": "US",
                    "region": None,
                    "timezone": None,
                },
            }
        ],
        "tool_usage": {
            "image_gen": {
                "input_tokens": 0,
                "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
                "output_tokens": 0,
                "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
                "total_tokens": 0,
            },
            "web_search": {"num_requests": searches},
        },
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": usage(),
        "user": None,
        "metadata": {},
    }
    return {**body, **fields}


def answer(
    text: str,
    *,
    model: str = "gpt-5.2",
    annotations: Iterable[Body] = (),
    searches: Iterable[Body] = (),
    phase: str | None = None,
    **fields: Any,
) -> Body:
    """Return a response that is one message, after the given searches; `fields` as for `response`."""
    return response([*searches, message([output_text(text, annotations)], phase)], model=model, **fields)
