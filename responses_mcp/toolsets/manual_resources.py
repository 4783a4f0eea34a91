"""The manuals as resources: `resources/list`, `resources/templates/list`, `resources/read` and `completion/complete`.

Params come as the client sent them. What it got wrong is refused with -32602, what does not exist as its revision says,
what the server cannot do now with -32603.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from responses_mcp.toolsets.base import CallContext, Feature, Fetched, Method, Refused, RpcError
from responses_mcp.toolsets.prompts import ASK_MANUAL

if TYPE_CHECKING:
    from responses_mcp.manuals.service import Manuals

_TEMPLATE: Final[JsonObject] = {
    "uriTemplate": "manual://{manual_id}/{+path}",
    "name": "manual",
    "title": "A file of a manual",
    "description": "A file, or with a path that ends in / the list of a folder. #line=N at the end gives the section "
    "whose heading is on that line, #char=N the text from that character on.",
}

_Work = Callable[["Manuals", Mapping[str, Any]], Awaitable[Fetched]]


def features(opened: Callable[[], Manuals]) -> Sequence[Feature]:
    """Return what manuals offer beside their tools; `opened` gives them, and raises ManualsError."""

    def methods(works: Mapping[str, _Work]) -> Mapping[str, Method]:
        return {name: Method(partial(_answered, opened, work)) for name, work in works.items()}

    return (
        Feature(
            capability="resources",
            listings={"resources/templates/list": {"resourceTemplates": [_TEMPLATE]}},
            methods=methods({"resources/list": _list, "resources/read": _read}),
        ),
        Feature(capability="completions", methods=methods({"completion/complete": _complete})),
    )


async def _answered(
    opened: Callable[[], Manuals],
    work: _Work,
    context: CallContext,  # noqa: ARG001  # a handler gets it
    params: Mapping[str, Any],
) -> Fetched | Refused:
    try:
        return await work(opened(), params)
    except ManualsError as error:
        missing = params["uri"] if error.code == "not_found" and "uri" in params else None
        code = INTERNAL_ERROR if error.code == "conflict" else INVALID_PARAMS
        return Refused(RpcError(code, error.message), missing)


async def _list(manuals: Manuals, params: Mapping[str, Any]) -> Fetched:
    from responses_mcp.manuals.requests.uris import cursor_of, parse_cursor  # noqa: PLC0415  # a start need not wait
    from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415

    cursor = params.get("cursor")
    rows, position = await manuals.resources(None if cursor is None else parse_cursor(_text(params, "cursor")))
    further = {} if position is None else {"nextCursor": cursor_of(position)}
    return Fetched(sanitized_json({"resources": rows, **further}), cacheable=True)


async def _read(manuals: Manuals, params: Mapping[str, Any]) -> Fetched:
    from responses_mcp.manuals.requests.uris import parse_uri  # noqa: PLC0415  # a start should not wait for it
    from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415

    contents = await manuals.resource(parse_uri(_text(params, "uri")))
    return Fetched(sanitized_json({"contents": contents}), cacheable=True)


async def _complete(manuals: Manuals, params: Mapping[str, Any]) -> Fetched:
    ref, argument = as_object(params.get("ref")), as_object(params.get("argument"))
    name, typed = _text(argument, "name"), _text(argument, "value")
    if ref.get("type") == "ref/resource":
        known: Sequence[str] = ("manual_id", "path") if ref.get("uri") == _TEMPLATE["uriTemplate"] else ()
    else:
        known = ("manual_id",) if (ref.get("type"), ref.get("name")) == ("ref/prompt", ASK_MANUAL.name) else ()
    if name not in known:
        raise ManualsError("invalid_parameter", "There is nothing to complete under that ref and name.")
    if name == "manual_id":
        completed = await manuals.complete(None, typed)
    else:
        chosen = as_object(as_object(params.get("context")).get("arguments")).get("manual_id")
        completed = await manuals.complete(chosen if isinstance(chosen, str) else "", typed)
    values = completed.values
    more = {"total": completed.total, "hasMore": completed.total > len(values)}
    return Fetched({"completion": {"values": values, **more}})


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ManualsError("invalid_parameter", f"Invalid params: {name} must be a string.")
    return value
