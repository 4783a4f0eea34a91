"""The seven manual tools as `tools/list` shows them (M2 to M7).

Each input has one plain type and is optional by being left out, though null is taken too: clients and models' APIs
refuse lists of types, and combinators at the root. A cursor has no type, because it may be several things (M3.8).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals import KINDS

# Without readOnlyHint Codex refuses the call and Claude Code runs calls one after the other.
ANNOTATIONS: Final = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}


INSTRUCTIONS: Final = (
    "For what the local manuals may tell, start with manual_search, then pass a row's ref to manual_read."
)
"""For the client's model, behind those of the answer tools."""


class Definition(NamedTuple):
    """A tool without what does it."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject


def _object(required: str = "", **properties: Any) -> JsonObject:
    """Return the schema of an object; `required` names members, separated by blanks."""
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def _list(items: JsonObject, **bounds: int) -> JsonObject:
    return {"type": "array", "items": items, **bounds}


def _text(description: str) -> JsonObject:
    return {"type": "string", "description": description}


def _number(description: str, minimum: int = 1, **bounds: int) -> JsonObject:
    return {"type": "integer", "minimum": minimum, **bounds, "description": description}


_STRING: Final = {"type": "string"}
_BOOLEAN: Final = {"type": "boolean"}
_INTEGER: Final = {"type": "integer"}
_ANY_OBJECT: Final = {"type": "object"}
_CHARS: Final = _number("default 12000", 256, maximum=50_000)
_MANUAL: Final = _text("a manual's id, from manual_ls")

DEFINITIONS: Final = (
    Definition(
        "manual_ls",
        "List manuals",
        "List the local manuals. manual_toc, manual_find, manual_read and manual_scan take an id from it. With an id "
        "from an earlier listing, list the folders and files directly inside.",
        _object(id=_text("manual or folder; default: the list of manuals")),
        _object(
            "id items",
            id=_STRING,
            items=_list(
                _object(
                    "id name kind",
                    id=_STRING,
                    name=_STRING,
                    kind={"type": "string", "enum": ["dir", "file"]},
                    path=_STRING,
                    file_type={"type": "string", "enum": ["md", "json"]},
                )
            ),
            next_id=_STRING,
            note=_STRING,
        ),
    ),
    Definition(
        "manual_toc",
        "Contents of a manual",
        "List a manual's files, with depth deep also their headings. For an overview or a file known by name; to look "
        "for content use manual_find. Over 200 files in scope is an error: narrow it with path_prefix.",
        _object(
            "manual_id",
            manual_id=_MANUAL,
            path_prefix=_text("a folder or file in the manual; needed with depth deep"),
            depth={"type": "string", "enum": ["shallow", "deep"]},
            max_files=_number("default 20; at most 50 with depth deep or without path_prefix", maximum=200),
            max_headings_per_file=_number("default 20", maximum=200),
            cursor={"description": "next_cursor of the page before, or its offset"},
        ),
        _object(
            "applied total_files next_cursor items",
            applied=_ANY_OBJECT,
            total_files=_INTEGER,
            next_cursor={"type": ["object", "null"], "properties": {"offset": _INTEGER}},
            items=_list(
                _object(
                    "path headings",
                    path=_STRING,
                    headings=_list(_object("title line_start", title=_STRING, line_start=_INTEGER)),
                )
            ),
        ),
    ),
    Definition(
        "manual_find",
        "Search a manual",
        "Search one manual for the sections that answer a question. Next read the best with manual_read. inline_hits "
        "returns the top hits at once; manual_hits pages through all. status says whether required_terms were found: "
        "if not, try other words.",
        _object(
            "query manual_id required_terms",
            query=_text("the question, in the manual's language"),
            manual_id=_MANUAL,
            required_terms={**_list(_STRING, minItems=1), "description": "1 or 2 words that the answer should contain"},
            inline_hits=_object(limit=_number("default and most: 5")),
            budget=_object(time_ms=_number("default 60000"), max_candidates=_number("default 200")),
            only_unscanned_from_trace_id=_text("trace_id of a find that ran out of time: begin with what it left out"),
            use_cache=_BOOLEAN,
            expand_scope={**_BOOLEAN, "description": "no effect"},
            include_claim_graph={**_BOOLEAN, "description": "keep claims, evidences and edges for manual_hits"},
        ),
        _object(
            "trace_id candidates status failure_reason next_actions",
            trace_id=_STRING,
            candidates=_INTEGER,
            status=_STRING,
            failure_reason={"type": ["string", "null"]},
            note=_STRING,
            inline_hits=_ANY_OBJECT,
            next_actions=_list(_ANY_OBJECT),
        ),
    ),
    Definition(
        "manual_hits",
        "Hits of a search",
        "Page through what a manual_find found, by its trace_id. Pass a hit's ref to manual_read, with manual_id. "
        "integrated_top adds titles; unscanned lists files that the search did not reach.",
        _object(
            "trace_id",
            trace_id=_STRING,
            kind={**_STRING, "enum": list(KINDS), "description": "default candidates"},
            offset=_number("default 0", 0),
            limit=_number("default 50"),
        ),
        _object(
            "trace_id kind offset limit total items",
            trace_id=_STRING,
            kind=_STRING,
            manual_id=_STRING,
            offset=_INTEGER,
            limit=_INTEGER,
            total=_INTEGER,
            items=_list(_ANY_OBJECT),
            note=_STRING,
        ),
    ),
    Definition(
        "manual_read",
        "Read a section",
        "Read one section of a Markdown file, by a hit's ref. The same section asked for again goes on after it. "
        "For JSON files and free reading use manual_scan.",
        _object(
            "ref",
            ref=_object(
                "manual_id path",
                manual_id=_STRING,
                path=_STRING,
                start_line=_number("line of a heading; default: the first"),
            ),
            max_chars=_CHARS,
        ),
        _object("text truncated applied", text=_STRING, truncated=_BOOLEAN, applied=_ANY_OBJECT, note=_STRING),
    ),
    Definition(
        "manual_scan",
        "Read a file",
        "Read a Markdown or JSON file page by page, from any line: around a hit, or whole. Pass next_cursor back "
        "until eof is true.",
        _object(
            "manual_id path",
            manual_id=_MANUAL,
            path=_STRING,
            start_line=_number("goes before cursor; default 1"),
            cursor={"description": "next_cursor of the page before, or its char_offset"},
            max_chars=_CHARS,
        ),
        _object(
            "manual_id path text applied_range next_cursor eof truncated truncated_reason applied",
            manual_id=_STRING,
            path=_STRING,
            text=_STRING,
            applied_range=_object("start_line end_line", start_line=_INTEGER, end_line=_INTEGER),
            next_cursor=_object("char_offset", char_offset={"type": ["integer", "null"]}),
            eof=_BOOLEAN,
            truncated=_BOOLEAN,
            truncated_reason=_STRING,
            applied=_ANY_OBJECT,
        ),
    ),
    Definition(
        "manual_search",
        # Codex searches for tools by the words of titles, too, Claude Code by those of the description, but whole words
        # only: these are what people call manuals.
        "Search all manuals: handbooks, guides, policies, runbooks, internal documents, 社内規程・マニュアルの検索",
        "Start here: search every local manual, handbook, guide, policy, runbook, docs and error code list at once "
        "(handbooks, documentation, 社内規程), without manual_ls. Returns the best sections with the text "
        "around the match. Pass a row's ref to manual_read as it is; that of a .json row to manual_scan, as its "
        "arguments. "
        "complete false: reason says what was not searched.",
        _object(
            "query",
            query=_text("the question, in the manuals' language"),
            limit=_number("default 5, most 20"),
            manual_id=_text("default: all manuals"),
            path_prefix=_text("a folder or file"),
        ),
        _object(
            "results complete",
            results=_list(
                _object(
                    manual_id=_STRING,
                    path=_STRING,
                    title=_STRING,
                    above=_STRING,
                    line=_INTEGER,
                    match_line=_INTEGER,
                    char_offset=_INTEGER,
                    snippet=_STRING,
                    score={"type": "number"},
                    ref=_ANY_OBJECT,
                )
            ),
            complete=_BOOLEAN,
            reason=_STRING,
            note=_STRING,
        ),
    ),
)
