"""What the manual tools and the methods of resources do: read what came, ask the manuals, answer in the compact form.

Also what is remembered of a client between its calls. The first call imports this module: a start should not wait for
Trio and for what reads arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.manuals.embeddings.embedder import USED
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import HitsRequest
from responses_mcp.manuals.requests.parsing import (
    parse_find,
    parse_hits,
    parse_ls,
    parse_read,
    parse_scan,
    parse_search,
    parse_toc,
)
from responses_mcp.manuals.requests.uris import parse_uri
from responses_mcp.manuals.service import Manuals
from responses_mcp.sanitization import sanitized_json
from responses_mcp.toolsets.base import CallContext, Fetched
from responses_mcp.toolsets.calls import Done

if TYPE_CHECKING:
    from responses_mcp.manuals.files.reading import ReadEnd

MOST_COMPLETED: Final = 100
"""Values that a completion may have."""

_AFTER_A_LISTING: Final = ("manual_toc", "manual_find", "manual_read", "manual_scan")
_MOST_READS: Final = 256  # files of one client whose last section is remembered


@dataclass(eq=False, slots=True)
class _Conversation:
    """What is remembered of a client on one stream: a listing, and the last section it read of each file."""

    listed: bool = False
    reads: dict[tuple[str, str], ReadEnd] = field(default_factory=dict[tuple[str, str], "ReadEnd"])


def _memory(context: CallContext) -> _Conversation:
    """Return what is remembered of the client, for this call alone where nothing may be.

    Clients of a revision without state between requests, and callers without a server, need no listing.
    """
    if context.memory is None:
        return _Conversation(listed=True)
    conversation: _Conversation = context.memory.setdefault("manuals", _Conversation())
    return conversation


def _require_listing(context: CallContext, tool: str) -> None:
    """Refuse a client before its first listing (M2.4)."""
    if tool in _AFTER_A_LISTING and not _memory(context).listed:
        message = f"{tool} needs a successful manual_ls earlier in the same session; call manual_ls first."
        raise ManualsError("invalid_parameter", message, required_first_call="manual_ls")


async def _find(manuals: Manuals, context: CallContext, arguments: Mapping[str, Any]) -> JsonObject:
    """Search, and return the compact form, which alone is public (M4.39)."""
    request = parse_find(arguments)
    found = await manuals.find(request, on_phase=context.report)
    result: JsonObject = {
        "trace_id": found["trace_id"],
        "candidates": found["summary"]["candidates"],
        "status": found["applied"]["required_effect_status"],
        "failure_reason": found["applied"]["required_failure_reason"],
    }
    notes = [found["note"]] if "note" in found else []
    if (why := found["applied"].get("meaning_failure_reason")) is not None:
        notes.append(f"Ranked by {found['applied']['ranked_by']}. {why}")
    if notes:
        result["note"] = " ".join(notes)
    if request.inline_hits is not None:
        hits = HitsRequest(found["trace_id"], "integrated_top", 0, request.inline_hits)
        result["inline_hits"] = await manuals.hits_with_passages(hits)
    return {**result, "next_actions": []}


async def _read(manuals: Manuals, context: CallContext, arguments: Mapping[str, Any]) -> JsonObject:
    """Read a section; the same one asked for again goes on where the last answer ended (M6.7).

    Agents that share a connection share this memory: nothing in a call tells whose it is.
    """
    request = parse_read(arguments)
    result, end = await manuals.read(request)
    reads, file = _memory(context).reads, (end.manual_id, end.path)
    last = reads.get(file)
    # A match elsewhere in the section is another place to read.
    elsewhere = request.match_line is not None or request.char_offset is not None
    if last is not None and last.line == end.line and not (elsewhere and last.begun != end.begun):
        result, end = await manuals.read(request, after=last)
    reads.pop(file, None)  # the file read last stands last
    reads[file] = end
    if len(reads) > _MOST_READS:
        del reads[next(iter(reads))]
    return result


async def answer(name: str, manuals: Manuals, context: CallContext, arguments: Mapping[str, Any]) -> Done:
    """Do the work of a tool. Raises `ManualsError` for what the client can understand."""
    used: dict[str, int] = {}
    USED.set(used)  # of this call's task
    _require_listing(context, name)
    match name:
        case "manual_ls":
            result = await manuals.ls(parse_ls(arguments))
        case "manual_toc":
            result = await manuals.toc(parse_toc(arguments))
        case "manual_find":
            result = await _find(manuals, context, arguments)
        case "manual_hits":  # a trace id says it all
            result = await manuals.hits_with_passages(parse_hits(arguments))
        case "manual_read":
            result = await _read(manuals, context, arguments)
        case "manual_scan":
            result = await manuals.scan(parse_scan(arguments))
        case _:
            result = (await manuals.search(parse_search(arguments), on_phase=context.report)).brief()
    if name in ("manual_ls", "manual_search"):  # the second is ours: it names manuals, so it stands for the first
        _memory(context).listed = True
    # Here and not where the text is read: places in a file count its characters, whatever they are.
    return Done(sanitized_json(result), used)


async def fetch(name: str, manuals: Manuals, params: Mapping[str, Any]) -> Fetched:
    """Do the work of a method, whose params come as the client sent them. Raises `ManualsError`."""
    match name:
        case "resources/list":
            cursor = params.get("cursor")
            rows, last = await manuals.resources(None if cursor is None else parse_uri(_text(params, "cursor")))
            further = {} if last is None else {"nextCursor": last}
            return Fetched(sanitized_json({"resources": rows, **further}), cacheable=True)
        case "resources/read":
            contents = await manuals.resource(parse_uri(params["uri"]))
            return Fetched(sanitized_json({"contents": contents}), cacheable=True)
        case _:
            return await _complete(manuals, params)


async def _complete(manuals: Manuals, params: Mapping[str, Any]) -> Fetched:
    """Complete the id of a manual, or a path in the manual that has been chosen, wherever these names stand."""
    name, typed = _text(as_object(params.get("argument")), "name"), _text(as_object(params.get("argument")), "value")
    if name not in {"manual_id", "path"}:
        raise ManualsError("invalid_parameter", "There is nothing to complete under that name.")
    chosen = as_object(as_object(params.get("context")).get("arguments")).get("manual_id", "")
    manual_id = None if name == "manual_id" else chosen if isinstance(chosen, str) else ""
    found = await manuals.complete(manual_id, typed)
    more = {"total": len(found), "hasMore": len(found) > MOST_COMPLETED}
    return Fetched({"completion": {"values": found[:MOST_COMPLETED], **more}})


def _text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise ManualsError("invalid_parameter", f"Invalid params: {name} must be a string.")
    return value
