"""From a client's raw JSON to a request (M2 to M7).

It is raw, because a layer that converts first takes `true` for 1; `arguments` says what passes for what. An argument
that a tool does not know is refused, so that nobody thinks it has worked. Within `ref`, `budget` and `inline_hits`
further members are ignored: refs are passed on as hits show them. All functions raise `ManualsError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
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
from responses_mcp.manuals.requests.paths import ROOT_ID, parts_of
from responses_mcp.manuals.words import normalise

_MOST_FILES: Final = 200
_MOST_FILES_AT_ONCE: Final = 50  # with headings, or over a whole manual
_MOST_HEADINGS: Final = 200
_LEAST_CHARS, _MOST_CHARS = 256, 50_000
_MOST_TERMS: Final = 2
_LONGEST_QUERY: Final = 10_000  # characters
_LONGEST_TERM: Final = 1_000
_MOST_CANDIDATE_IDS: Final = 50
_CONTROL: Final = re.compile("[\0-\x1f\x7f-\x9f]+")

# What a field must be, as messages say it.
_QUERY: Final = f"the question, a string of 1 to {_LONGEST_QUERY} characters"
_TERMS: Final = f"an array of 1 or 2 different words that hits should contain, each of 1 to {_LONGEST_TERM} characters"
_MANUAL_ID: Final = f'the id of one manual, from manual_ls(id="{ROOT_ID}").items[].id'
_PATH: Final = "a file of the manual, as manual_toc and manual_hits name it"
_TRACE_ID: Final = "the trace_id of an earlier manual_find"
_OF_A_REF: Final = ("match_line", "char_offset", "tool", "above", "snippet")  # what hits say beside the place
_REF: Final = "an object like {manual_id, path, start_line}, as in the hits of manual_hits"


def parse_ls(arguments: Mapping[str, Any]) -> LsRequest:
    """Read the arguments of `manual_ls`; an empty id stands for the root."""
    given = Arguments.of_tool("manual_ls", arguments, "id")
    if given.get("id", "") == "":
        return LsRequest()
    return LsRequest(given.text("id", "an id from an earlier manual_ls, or left out for the list of manuals"))


def parse_toc(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> TocRequest:
    """Read the arguments of `manual_toc`."""
    names = ("manual_id", "path_prefix", "max_files", "cursor", "depth", "max_headings_per_file")
    given = Arguments.of_tool("manual_toc", arguments, *names)
    manual_id = _manual_id(given, candidate_ids)
    prefix = _prefix(given)
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


def parse_find(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> FindRequest:
    """Read the arguments of `manual_find`; the limit of inline hits is lowered instead of refused (M4.41)."""
    names = (
        "query", "manual_id", "required_terms", "expand_scope", "only_unscanned_from_trace_id",
        "include_claim_graph", "use_cache", "inline_hits", "budget",
    )  # fmt: skip
    given = Arguments.of_tool("manual_find", arguments, *names)
    query = _query(given)
    budget = given.members("budget", "an object like {time_ms, max_candidates}") or Arguments({})
    inline = given.members("inline_hits", "an object like {limit}")
    earlier = None
    if given.get("only_unscanned_from_trace_id") is not None:
        earlier = given.text("only_unscanned_from_trace_id", _TRACE_ID)
    return FindRequest(
        query=query,
        manual_id=_manual_id(given, candidate_ids),
        required_terms=_required_terms(given),
        expand_scope=given.flag("expand_scope"),
        only_unscanned_from_trace_id=earlier,
        include_claim_graph=given.flag("include_claim_graph") or False,
        use_cache=given.flag("use_cache"),
        time_ms=budget.integer("time_ms", 60_000),
        max_candidates=budget.integer("max_candidates", 200),
        inline_hits=None
        if inline is None
        else min(inline.integer("limit", MOST_INLINE_HITS, most=math.inf), MOST_INLINE_HITS),
    )


def parse_search(arguments: Mapping[str, Any]) -> SearchRequest:
    """Read the arguments of `manual_search`; a limit over the most is lowered, and the root stands for all manuals."""
    given = Arguments.of_tool("manual_search", arguments, "query", "limit", "manual_id", "path_prefix")
    everywhere = given.get("manual_id", ROOT_ID) in (ROOT_ID, "")
    return SearchRequest(
        query=_query(given),
        limit=min(given.integer("limit", DEFAULT_FOUND, most=math.inf), MOST_FOUND),
        manual_ids=() if everywhere else (_manual_id(given, ()),),
        path_prefix=_prefix(given),
    )


def parse_hits(arguments: Mapping[str, Any]) -> HitsRequest:
    """Read the arguments of `manual_hits`."""
    given = Arguments.of_tool("manual_hits", arguments, "trace_id", "kind", "offset", "limit")
    trace_id = given.text("trace_id", _TRACE_ID)
    kind = given.get("kind", "candidates")
    if kind not in KINDS:
        raise given.wrong("kind", f"one of {', '.join(KINDS)}", kind)
    return HitsRequest(trace_id, str(kind), given.integer("offset", 0, least=0), given.integer("limit", 50))


def parse_read(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> ReadRequest:
    """Read the arguments of `manual_read`."""
    flat = [name for name in ("manual_id", "path", "start_line") if name in arguments]
    if flat and "ref" not in arguments:
        message = (
            f"{', '.join(flat)} belong{'s' * (len(flat) == 1)} into ref; pass ref: {{manual_id, path, start_line}}."
        )
        raise ManualsError("invalid_parameter", message, field="ref")
    given = Arguments.of_tool("manual_read", arguments, "ref", "max_chars", "scope")
    scope = given.get("scope", "section")
    if scope != "section":
        raise given.wrong("scope", '"section" or left out (manual_scan reads whole files)', scope)
    ref = given.members("ref", _REF)
    if ref is None:
        raise given.missing("ref", _REF)
    return ReadRequest(
        _manual_id(ref, candidate_ids),
        _path(ref),
        ref.integer_or_none("start_line"),
        _max_chars(given),
        ref.integer_or_none("match_line"),
        ref.integer_or_none("char_offset", least=0),
    )


def parse_scan(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> ScanRequest:
    """Read the arguments of `manual_scan`.

    `start_line` goes before the cursor (M7.1); in the cursor, `char_offset` goes before `start_line`, because it is the
    one that an earlier page gave out. The place of a match goes before both: the ref of a hit is taken as it is.
    """
    names = ("manual_id", "path", "start_line", "cursor", "max_chars")
    given = Arguments.of_tool("manual_scan", arguments, *names, allowed=_OF_A_REF)
    manual_id = _manual_id(given, candidate_ids)
    path = _path(given)
    start_line = given.integer_or_none("start_line")
    cursor = given.cursor("char_offset", "start_line")
    offset = cursor.integer_or_none("char_offset", least=0)
    line = cursor.integer_or_none("start_line")
    if start_line is not None:
        offset = None
    elif offset is None:
        start_line = line
    match_line, match = given.integer_or_none("match_line"), given.integer_or_none("char_offset", least=0)
    if match is not None:
        start_line, offset = None, match
    elif match_line is not None:
        start_line, offset = match_line, None
    return ScanRequest(manual_id, path, start_line, offset, _max_chars(given))


def _query(given: Arguments) -> str:
    query = given.text("query", _QUERY)
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


def _path(given: Arguments) -> str:
    """Return a path as it came: names of files may begin and end with blanks."""
    path = given.get("path")
    if path is None:
        raise given.missing("path", _PATH, "invalid_path")
    if not isinstance(path, str) or not path.strip():
        raise given.wrong("path", _PATH, path, "invalid_path")
    return path


def _manual_id(given: Arguments, candidate_ids: Sequence[str]) -> str:
    manual_id = given.text("manual_id", _MANUAL_ID)
    if manual_id == ROOT_ID:
        field = given.field("manual_id")
        details = {"candidate_ids": list(candidate_ids[:_MOST_CANDIDATE_IDS])} if candidate_ids else {}
        message = f'{field} must be {_MANUAL_ID}, and not "{ROOT_ID}", which is the list of them all.'
        raise ManualsError("invalid_parameter", message, field=field, **details)
    if "/" in manual_id or "\\" in manual_id or manual_id in (".", ".."):
        raise given.wrong("manual_id", f"{_MANUAL_ID}, and no path", manual_id)
    return manual_id


def _required_terms(given: Arguments) -> tuple[str, ...]:
    value = unquoted(given.get("required_terms"))
    if value is None:
        raise given.missing("required_terms", _TERMS)
    if not isinstance(value, list):
        raise given.wrong("required_terms", _TERMS, value)
    listed = cast(list[object], value)
    terms: dict[str, None] = {}
    for each in listed[:_MOST_TERMS]:
        term = normalise(_writable(each)) if isinstance(each, str) and len(each) <= _LONGEST_TERM else ""
        if not term:
            raise given.wrong("required_terms", _TERMS, each, link="an array with ")
        terms[term] = None
    if not 1 <= len(listed) <= _MOST_TERMS:
        raise given.wrong("required_terms", _TERMS, listed)
    return tuple(terms)


def _writable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which no database can hold, and without control characters."""
    return _CONTROL.sub(" ", text.encode("utf-8", "replace").decode("utf-8"))
