"""From a client's raw JSON to a request (M2 to M7).

It is raw, because a layer that converts first takes `true` for 1; `arguments` says what passes for what. An argument
that a tool does not know is refused, so that nobody thinks it has worked. Within `ref`, `budget` and `inline_hits`
further members are ignored: refs are passed on as hits show them. All functions raise `ManualsError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from responses_mcp.json_types import unquoted
from responses_mcp.manuals import KINDS
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import (
    DEFAULT_CHARS,
    DEFAULT_FOUND,
    MOST_FOUND,
    MOST_INLINE_HITS,
    FindRequest,
    HitsRequest,
    LsRequest,
    ReadRequest,
    ScanRequest,
    SearchRequest,
    TocRequest,
)
from responses_mcp.manuals.requests.arguments import Arguments
from responses_mcp.manuals.requests.paths import MANUAL_ID, ROOT_ID, parts_of
from responses_mcp.manuals.words import normalise

_MOST_FILES: Final = 200
_MOST_FILES_AT_ONCE: Final = 50  # with headings, or over a whole manual
_MOST_HEADINGS: Final = 200
_LEAST_CHARS, _MOST_CHARS = 256, 50_000
_MOST_TERMS: Final = 2
_LONGEST_QUERY: Final = 10_000  # characters
_LONGEST_TERM: Final = 1_000
_CONTROL: Final = re.compile("[\0-\x1f\x7f-\x9f]+")

# What a field must be, as messages say it.
_QUERY: Final = f"the question, a string of 1 to {_LONGEST_QUERY} characters"
_TERMS: Final = f"an array of 1 or 2 different words that hits should contain, each of 1 to {_LONGEST_TERM} characters"
_PATH: Final = "a file of the manual, as manual_toc and manual_hits name it"
_TRACE_ID: Final = "the trace_id of an earlier manual_find"
_OF_A_REF: Final = ("match_line", "char_offset", "tool", "above", "snippet")  # what hits say beside the place
_REF: Final = "an object like {manual_id, path, start_line}, as in the hits of manual_hits"


def parse_ls(arguments: Mapping[str, Any]) -> LsRequest:
    """Read the arguments of `manual_ls`; an empty id stands for the root."""
    given = Arguments.of_tool("manual_ls", arguments, "id")
    if given.get("id", "") == "":
        return LsRequest()
    return LsRequest(given.text("id", "an id from an earlier manual_ls, or left out for the list of manuals").strip())


def parse_toc(arguments: Mapping[str, Any]) -> TocRequest:
    """Read the arguments of `manual_toc`."""
    names = ("manual_id", "path_prefix", "max_files", "cursor", "depth", "max_headings_per_file")
    given = Arguments.of_tool("manual_toc", arguments, *names)
    manual_id, prefix = _manual_id(given), _prefix(given)
    depth = given.get("depth", "shallow")
    folded = depth.strip().casefold() if isinstance(depth, str) else depth
    if folded not in ("shallow", "deep"):
        raise given.wrong("depth", '"shallow" or "deep"', depth)
    deep = folded == "deep"
    if deep and not prefix:
        raise given.missing("path_prefix", 'a file or folder of the manual with depth "deep", or use depth "shallow"')
    when = ' with depth "deep"' if deep else "" if prefix else " without path_prefix"
    return TocRequest(
        manual_id=manual_id,
        path_prefix=prefix,
        depth="deep" if deep else "shallow",
        max_files=given.integer("max_files", 20, most=_MOST_FILES_AT_ONCE if when else _MOST_FILES, when=when),
        offset=given.cursor("offset").integer("offset", 0, least=0),
        max_headings_per_file=given.integer("max_headings_per_file", 20, most=_MOST_HEADINGS),
    )


def parse_find(arguments: Mapping[str, Any]) -> FindRequest:
    """Read the arguments of `manual_find`; the limit of inline hits is lowered instead of refused (M4.41)."""
    names = (
        "query", "manual_id", "required_terms", "expand_scope", "only_unscanned_from_trace_id",
        "include_claim_graph", "use_cache", "inline_hits", "budget",
    )  # fmt: skip
    given = Arguments.of_tool("manual_find", arguments, *names)
    query = _query(given)
    budget = given.members("budget", "an object like {time_ms, max_candidates}") or Arguments({})
    inline = given.members("inline_hits", "an object like {limit}")
    earlier = given.get("only_unscanned_from_trace_id")
    hits = None if inline is None else inline.integer("limit", MOST_INLINE_HITS, most=math.inf)
    return FindRequest(
        query=query,
        manual_id=_manual_id(given),
        required_terms=_required_terms(given),
        expand_scope=given.flag("expand_scope"),
        only_unscanned_from_trace_id=None
        if earlier is None
        else given.text("only_unscanned_from_trace_id", _TRACE_ID).strip(),
        include_claim_graph=given.flag("include_claim_graph") or False,
        use_cache=given.flag("use_cache"),
        time_ms=budget.integer("time_ms", 60_000),
        max_candidates=budget.integer("max_candidates", 200),
        inline_hits=None if hits is None else min(hits, MOST_INLINE_HITS),
    )


def parse_search(arguments: Mapping[str, Any]) -> SearchRequest:
    """Read the arguments of `manual_search`; a limit over the most is lowered, and the root stands for all manuals."""
    given = Arguments.of_tool("manual_search", arguments, "query", "limit", "manual_id", "path_prefix")
    everywhere = given.get("manual_id", ROOT_ID) in (ROOT_ID, "")
    return SearchRequest(
        query=_query(given),
        limit=min(given.integer("limit", DEFAULT_FOUND, most=math.inf), MOST_FOUND),
        manual_ids=() if everywhere else (_manual_id(given),),
        path_prefix=_prefix(given),
    )


def parse_hits(arguments: Mapping[str, Any]) -> HitsRequest:
    """Read the arguments of `manual_hits`."""
    given = Arguments.of_tool("manual_hits", arguments, "trace_id", "kind", "offset", "limit")
    trace_id = given.text("trace_id", _TRACE_ID).strip()
    kind = given.get("kind", "candidates")
    if kind not in KINDS:
        raise given.wrong("kind", f"one of {', '.join(KINDS)}", kind)
    return HitsRequest(trace_id, str(kind), given.integer("offset", 0, least=0), given.integer("limit", 50))


def parse_read(arguments: Mapping[str, Any]) -> ReadRequest:
    """Read the arguments of `manual_read`."""
    if "path" in arguments and "ref" not in arguments:
        message = "manual_id, path, start_line belong into ref; pass ref: {manual_id, path, start_line}."
        raise ManualsError("invalid_parameter", message, field="ref")
    given = Arguments.of_tool("manual_read", arguments, "ref", "max_chars", "scope")
    scope = given.get("scope", "section")
    if scope != "section":
        raise given.wrong("scope", '"section" or left out (manual_scan reads whole files)', scope)
    ref = given.members("ref", _REF)
    if ref is None:
        raise given.missing("ref", _REF)
    return ReadRequest(
        _manual_id(ref),
        ref.text("path", _PATH, "invalid_path"),  # as it came: names of files may begin and end with blanks
        ref.integer("start_line", None),
        _max_chars(given),
        ref.integer("match_line", None),
        ref.integer("char_offset", None, least=0),
    )


def parse_scan(arguments: Mapping[str, Any]) -> ScanRequest:
    """Read the arguments of `manual_scan`.

    `start_line` goes before the cursor (M7.1); in the cursor, `char_offset` goes before `start_line`, because it is the
    one that an earlier page gave out. The place of a match goes before both: the ref of a hit is taken as it is.
    """
    names = ("manual_id", "path", "start_line", "cursor", "max_chars")
    given = Arguments.of_tool("manual_scan", arguments, *names, allowed=_OF_A_REF)
    manual_id, path = _manual_id(given), given.text("path", _PATH, "invalid_path")
    cursor = given.cursor("char_offset", "start_line")
    places = (
        (None, given.integer("char_offset", None, least=0)),
        (given.integer("match_line", None), None),
        (given.integer("start_line", None), None),
        (None, cursor.integer("char_offset", None, least=0)),
        (cursor.integer("start_line", None), None),
    )
    line, offset = next((place for place in places if place != (None, None)), (None, None))
    return ScanRequest(manual_id, path, line, offset, _max_chars(given))


def _query(given: Arguments) -> str:
    query = given.text("query", _QUERY).strip()
    if len(query) > _LONGEST_QUERY:
        raise given.wrong("query", _QUERY, query)
    return _writable(query)


def _prefix(given: Arguments) -> str:
    prefix = given.get("path_prefix", "")
    if not isinstance(prefix, str):
        raise given.wrong("path_prefix", "a file or folder of the manual, as a string", prefix)
    return "/".join(parts_of(prefix))


def _max_chars(given: Arguments) -> int:
    return given.integer("max_chars", DEFAULT_CHARS, least=_LEAST_CHARS, most=_MOST_CHARS)


def _manual_id(given: Arguments) -> str:
    return given.text("manual_id", MANUAL_ID).strip()


def _required_terms(given: Arguments) -> tuple[str, ...]:
    value = unquoted(given.get("required_terms"))
    if value is None:
        raise given.missing("required_terms", _TERMS)
    if not isinstance(value, list):
        raise given.wrong("required_terms", _TERMS, value)
    listed = cast(list[object], value)
    if not 1 <= len(listed) <= _MOST_TERMS:
        raise given.wrong("required_terms", _TERMS, listed)
    terms: dict[str, None] = {}
    for each in listed:
        term = normalise(_writable(each)) if isinstance(each, str) and len(each) <= _LONGEST_TERM else ""
        if not term:
            raise given.wrong("required_terms", _TERMS, each, link="an array with ")
        terms[term] = None
    return tuple(terms)


def _writable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which no database can hold, and without control characters."""
    return _CONTROL.sub(" ", text.encode("utf-8", "replace").decode("utf-8"))
