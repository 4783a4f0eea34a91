"""The seven manual tools as `tools/list` shows them (M2 to M7), and the template of resources."""

from __future__ import annotations

from functools import partial
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals import KINDS
from responses_mcp.toolsets.schema import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    OPEN,
    STRING,
    STRINGS,
    Definition,
    any_of,
    arguments_of,
    described,
    list_of,
    members,
    object_of,
    one_of,
    or_null,
)

INSTRUCTIONS: Final = (
    "For what the local manuals may tell, start with manual_search, then pass a row's ref to manual_read."
)
"""For the client's model, behind those of the answer tools."""

_definition: Final = partial(
    Definition, annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
)


def _text(description: str) -> JsonObject:
    return described(STRING, description)


def _number(description: str) -> JsonObject:
    return described(INTEGER, description)


def _cursor(also: str, page: JsonObject) -> JsonObject:
    """Return the schema of a cursor: `page`, an object, or the number `also` in it, which may be a text (M3.8)."""
    return any_of(described(page, f"next_cursor of the page before, or its {also}"), INTEGER, STRING)


_CHARS: Final = _number("default 12000")
_HEADING: Final = object_of(title=STRING, line_start=INTEGER)

DEFINITIONS: Final = (
    _definition(
        "manual_ls",
        "List manuals",
        "List the local manuals. manual_toc, manual_find, manual_read and manual_scan take an id from it. With an id "
        "from an earlier listing, list the folders and files directly inside.",
        arguments_of(id=_text("manual or folder; default: the list of manuals")),
        object_of(
            "id items",
            id=STRING,
            items=list_of(
                object_of(
                    **members(STRING, "id name"),
                    kind=one_of("dir file"),
                    path=STRING,
                    file_type=STRING,
                )
            ),
            **members(STRING, "next_id note"),
        ),
    ),
    _definition(
        "manual_toc",
        "Contents of a manual",
        "List a manual's files, with depth deep also their headings. For an overview or a file known by name; to look "
        "for content use manual_find. Over 200 files in scope is an error: narrow it with path_prefix.",
        arguments_of(
            "manual_id",
            manual_id=STRING,
            path_prefix=_text("a folder or file in the manual; needed with depth deep"),
            depth=one_of("shallow deep"),
            max_files=_number("default 20; at most 50 with depth deep or without path_prefix"),
            max_headings_per_file=_number("default 20"),
            cursor=_cursor("offset", object_of(offset=INTEGER)),
        ),
        object_of(
            "applied total_files next_cursor items",
            applied=OPEN,
            total_files=INTEGER,
            next_cursor=or_null(object_of(offset=INTEGER)),
            items=list_of(object_of(path=STRING, headings=list_of(_HEADING))),
            note=STRING,
        ),
    ),
    _definition(
        "manual_find",
        "Search a manual",
        "Search one manual for the sections that answer a question. Next read the best with manual_read. inline_hits "
        "returns the top hits at once; manual_hits pages through all. status says whether required_terms were found: "
        "if not, try other words.",
        arguments_of(
            "query manual_id required_terms",
            query=_text("the question, in the manual's language"),
            manual_id=STRING,
            required_terms=described({**STRINGS, "minItems": 1}, "1 or 2 words that the answer should contain"),
            inline_hits=arguments_of(limit=_number("default and most: 5")),
            budget=arguments_of(time_ms=_number("default 60000"), max_candidates=_number("default 200")),
            only_unscanned_from_trace_id=_text("trace_id of a find that ran out of time: begin with what it left out"),
            use_cache=BOOLEAN,
            expand_scope=described(BOOLEAN, "no effect"),
            include_claim_graph=described(BOOLEAN, "keep claims, evidences and edges for manual_hits"),
        ),
        object_of(
            "trace_id candidates status failure_reason next_actions",
            trace_id=STRING,
            candidates=INTEGER,
            status=STRING,
            failure_reason=or_null(STRING),
            note=STRING,
            inline_hits=OPEN,
            next_actions=list_of(OPEN),
        ),
    ),
    _definition(
        "manual_hits",
        "Hits of a search",
        "Page through what a manual_find found, by its trace_id. Pass a hit's ref to manual_read, with manual_id. "
        "integrated_top adds titles; unscanned lists files that the search did not reach.",
        arguments_of(
            "trace_id",
            trace_id=STRING,
            kind=described(one_of(" ".join(KINDS)), "default candidates"),
            offset=_number("default 0"),
            limit=_number("default 50"),
        ),
        object_of(
            "trace_id kind offset limit total items",
            **members(STRING, "trace_id kind manual_id"),
            **members(INTEGER, "offset limit total"),
            items=list_of(OPEN),
            note=STRING,
        ),
    ),
    _definition(
        "manual_read",
        "Read a section",
        "Read one section of a file, by a hit's ref. The same section asked for again goes on after it. "
        "For JSON files and free reading use manual_scan.",
        arguments_of(
            "ref",
            ref=arguments_of(
                "manual_id path",
                **members(STRING, "manual_id path"),
                start_line=_number("line of a heading; default: the first"),
            ),
            max_chars=_CHARS,
        ),
        object_of("text truncated applied", text=STRING, truncated=BOOLEAN, applied=OPEN, note=STRING),
    ),
    _definition(
        "manual_scan",
        "Read a file",
        "Read a file page by page, from any line: around a hit, or whole. Pass next_cursor back until eof is true.",
        arguments_of(
            "manual_id path",
            manual_id=STRING,
            path=STRING,
            start_line=_number("goes before cursor; default 1"),
            cursor=_cursor("char_offset", arguments_of(**members(INTEGER, "char_offset start_line"))),
            max_chars=_CHARS,
        ),
        object_of(
            "manual_id path text applied_range next_cursor eof truncated truncated_reason applied",
            **members(STRING, "manual_id path text"),
            applied_range=object_of(**members(INTEGER, "start_line end_line")),
            next_cursor=object_of(char_offset=or_null(INTEGER)),
            **members(BOOLEAN, "eof truncated"),
            truncated_reason=STRING,
            applied=OPEN,
        ),
    ),
    _definition(
        "manual_search",
        # Codex searches for tools by the words of titles, too, Claude Code by those of the description, but whole words
        # only: these are what people call manuals.
        "Search all manuals: handbooks, guides, policies, runbooks, internal documents, 社内規程・マニュアルの検索",
        "Start here: search every local manual, handbook, guide, policy, runbook, docs and error code list at once "
        "(handbooks, documentation, 社内規程), without manual_ls. Returns the best sections with the text "
        "around the match. Pass a row's ref to manual_read as it is; that of a .json row to manual_scan, as its "
        "arguments. complete false: reason says what was not searched.",
        object_of(
            "query",
            query=_text("the question, in the manuals' language"),
            limit=_number("default 5, most 20"),
            manual_id=_text("default: all manuals"),
            path_prefix=_text("a folder or file"),
        ),
        object_of(
            "results complete",
            results=list_of(
                object_of(
                    **members(STRING, "title above"),
                    **members(INTEGER, "line match_line char_offset"),
                    snippet=STRING,
                    score=NUMBER,
                    ref=OPEN,
                )
            ),
            complete=BOOLEAN,
            **members(STRING, "reason note"),
        ),
    ),
)

TEMPLATE: Final[JsonObject] = {
    "uriTemplate": "manual://{manual_id}/{+path}",
    "name": "manual",
    "title": "A file of a manual",
    "description": "A file, or with a path that ends in / the list of a folder. #line=N at the end gives the section "
    "whose heading is on that line, #char=N the text from that character on.",
}
