"""Response objects that the official types do not admit and that servers send all the same.

The first line of each docstring says what is deviant, the rest who sends it. `bodies.DEVIATIONS` names them
all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .items import Body, answer, response, usage, web_search_call

if TYPE_CHECKING:
    from collections.abc import Callable


def api_source() -> Body:
    """Return a source without a URL.

    The API lists its own data feeds (weather, sports, finance) among a search's sources.
    """
    body = answer("Sunny.", searches=[web_search_call(["weather tokyo"], ["https://www.jma.go.jp/"])])
    body["output"][0]["action"]["sources"].insert(0, {"type": "api", "name": "oai-weather"})
    return body


def missing_action() -> Body:
    """Return a search without its action.

    Compatible servers report that a search took place and nothing of what was searched.
    """
    body = answer("Searched somehow.", searches=[web_search_call()])
    del body["output"][0]["action"]
    return body


def missing_annotations() -> Body:
    """Return a text part without the list of annotations.

    Local model servers have no citations and leave the list out.
    """
    body = answer("Plain.")
    del body["output"][0]["content"][0]["annotations"]
    return body


def bare() -> Body:
    """Return only what carries the answer: no object, time, tools or usage, and a foreign id.

    Bridges from chat completions fill in no more than this.
    """
    part = {"type": "output_text", "text": "Bare."}
    item = {"type": "message", "role": "assistant", "content": [part]}
    return {"id": "chatcmpl-1", "model": "local-model", "output": [item]}


def unknown_item() -> Body:
    """Return an output item of a kind that the types do not know.

    The API gains kinds of items faster than its clients are updated.
    """
    body = answer("Known.")
    body["output"].insert(0, {"id": "nw_1", "type": "newly_invented_call", "status": "completed"})
    return body


def unknown_annotation() -> Body:
    """Return an annotation of a kind that the types do not know.

    Kinds of annotations grow as kinds of items do.
    """
    return answer("Known.", annotations=[{"type": "newly_invented_citation", "ref": "x"}])


def unknown_error_code() -> Body:
    """Return a failure whose code is not among the listed ones.

    The list of codes is open; an exhausted quota has been reported this way.
    """
    error = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
    return response([], status="failed", error=error, usage=None)


def usage_without_cache_writes() -> Body:
    """Return token counts without `cache_write_tokens`.

    The types require the field since caches can be written on purpose; older servers do not know it.
    """
    counts = usage()
    del counts["input_tokens_details"]["cache_write_tokens"]
    return answer("Counted the old way.", usage=counts)


DEVIATIONS: dict[str, Callable[[], Body]] = {
    sample.__name__: sample
    for sample in (
        api_source,
        missing_action,
        missing_annotations,
        bare,
        unknown_item,
        unknown_annotation,
        unknown_error_code,
        usage_without_cache_writes,
    )
}
"""Samples by name that the official types do not admit, though servers send them."""
