"""What clients ask of the manuals: a frozen request for each tool, read from the JSON as it came (contract 2 to 7).

They see raw JSON, because a layer that converts first takes `true` for 1; `manuals.arguments` says what passes for
what. An argument that a tool does not know is refused, so that nobody thinks it has worked. Within `ref`, `budget` and
`inline_hits` further members are ignored: refs are passed on as hits show them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from responses_mcp.manuals import KINDS
from responses_mcp.manuals import arguments as read
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.paths import ROOT_ID, parts_of
from responses_mcp.manuals.words import normalise

DEFAULT_CHARS: Final = 12_000
MOST_INLINE_HITS: Final = 5

_MOST_FILES: Final = 200
_MOST_FILES_AT_ONCE: Final = 50  # with headings, or over a whole manual
_MOST_HEADINGS: Final = 200
_LEAST_CHARS, _MOST_CHARS = 256, 50_000
_MOST_TERMS_GIVEN: Final = 100  # of which at most two are different
_LONGEST_QUERY: Final = 10_000  # characters
_LONGEST_TERM: Final = 1_000
_MOST_CANDIDATE_IDS: Final = 50

# What a field must be, as messages say it.
_QUERY: Final = f"the question, a string of 1 to {_LONGEST_QUERY} characters"
_TERMS: Final = f"an array of 1 or 2 different words that hits should contain, each of 1 to {_LONGEST_TERM} characters"
_MANUAL_ID: Final = f'the id of one manual, from manual_ls(id="{ROOT_ID}").items[].id'
_PATH: Final = "a file of the manual, as manual_toc and manual_hits name it"
_TRACE_ID: Final = "the trace_id of an earlier manual_find"
_REF: Final = "an object like {manual_id, path, start_line}, as in the hits of manual_hits"


@dataclass(frozen=True, slots=True)
class LsRequest:
    """List what is directly under `id`: the root, a manual, or a folder in one."""

    id: str = ROOT_ID


@dataclass(frozen=True, slots=True)
class TocRequest:
    """List `max_files` files of a manual from `offset` on; `deep` with up to `max_headings_per_file` headings each."""

    manual_id: str
    path_prefix: str = ""
    depth: Literal["shallow", "deep"] = "shallow"
    max_files: int = 20
    offset: int = 0
    max_headings_per_file: int = 20


@dataclass(frozen=True, slots=True)
class FindRequest:
    """Search one manual. `required_terms` are one or two, normalised and different.

    `expand_scope` is only reported back. `use_cache` None leaves it to the settings. `inline_hits` is the number of
    hits to send along, None for none. `time_ms` bounds the search in milliseconds, `max_candidates` its result.
    """

    query: str
    manual_id: str
    required_terms: tuple[str, ...]
    expand_scope: bool | None = None
    only_unscanned_from_trace_id: str | None = None
    include_claim_graph: bool = False
    use_cache: bool | None = None
    time_ms: int = 60_000
    max_candidates: int = 200
    inline_hits: int | None = None


@dataclass(frozen=True, slots=True)
class HitsRequest:
    """Show `limit` rows of one kind from `offset` on, of the find that `trace_id` names."""

    trace_id: str
    kind: str = "candidates"
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read the section whose heading is at `start_line` (1-based), or the first one, up to `max_chars` characters."""

    manual_id: str
    path: str
    start_line: int | None = None
    max_chars: int = DEFAULT_CHARS


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Read a file from `start_line` (1-based) on, or from `char_offset`, or from its beginning. At most one is set."""

    manual_id: str
    path: str
    start_line: int | None = None
    char_offset: int | None = None
    max_chars: int = DEFAULT_CHARS


def parse_ls(arguments: Mapping[str, Any]) -> LsRequest:
    """Read the arguments of `manual_ls`; an empty id stands for the root. Raises `ManualsError`."""
    given = read.known("manual_ls", arguments, "id")
    if given.get("id", "") == "":
        return LsRequest()
    return LsRequest(read.text(given, "id", "an id from an earlier manual_ls, or left out for the list of manuals"))


def parse_toc(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> TocRequest:
    """Read the arguments of `manual_toc`. Raises `ManualsError`."""
    names = ("manual_id", "path_prefix", "max_files", "cursor", "depth", "max_headings_per_file")
    given = read.known("manual_toc", arguments, *names)
    manual_id = _manual_id(given, "manual_id", candidate_ids)
    prefix = given.get("path_prefix", "")
    if not isinstance(prefix, str):
        raise read.wrong("path_prefix", "a file or folder of the manual, as a string", prefix)
    prefix = "/".join(parts_of(prefix))
    depth = given.get("depth", "shallow")
    folded = depth.strip().casefold() if isinstance(depth, str) else depth
    if folded not in ("shallow", "deep"):
        raise read.wrong("depth", '"shallow" or "deep"', depth)
    deep = folded == "deep"
    if deep and not prefix:
        raise read.missing("path_prefix", 'a file or folder of the manual with depth "deep", or use depth "shallow"')
    when = ' with depth "deep"' if deep else "" if prefix else " without path_prefix"
    return TocRequest(
        manual_id=manual_id,
        path_prefix=prefix,
        depth="deep" if deep else "shallow",
        max_files=read.integer(given, "max_files", 20, most=_MOST_FILES_AT_ONCE if when else _MOST_FILES, when=when),
        offset=_toc_offset(given.get("cursor", 0)),
        max_headings_per_file=read.integer(given, "max_headings_per_file", 20, most=_MOST_HEADINGS),
    )


def parse_find(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> FindRequest:
    """Read the arguments of `manual_find`. Raises `ManualsError`."""
    names = (
        "query", "manual_id", "required_terms", "expand_scope", "only_unscanned_from_trace_id",
        "include_claim_graph", "use_cache", "inline_hits", "budget",
    )  # fmt: skip
    given = read.known("manual_find", arguments, *names)
    query = read.text(given, "query", _QUERY)
    if len(query) > _LONGEST_QUERY:
        raise read.wrong("query", _QUERY, query)
    budget = read.members(given, "budget", "an object like {time_ms, max_candidates}") or {}
    inline = read.members(given, "inline_hits", "an object like {limit}")
    earlier = None
    if "only_unscanned_from_trace_id" in given:
        earlier = read.text(given, "only_unscanned_from_trace_id", _TRACE_ID)
    return FindRequest(
        query=_writable(query),
        manual_id=_manual_id(given, "manual_id", candidate_ids),
        required_terms=_required_terms(given.get("required_terms")),
        expand_scope=read.flag(given, "expand_scope"),
        only_unscanned_from_trace_id=earlier,
        include_claim_graph=read.flag(given, "include_claim_graph") or False,
        use_cache=read.flag(given, "use_cache"),
        time_ms=read.integer(budget, "budget.time_ms", 60_000),
        max_candidates=read.integer(budget, "budget.max_candidates", 200),
        inline_hits=None if inline is None else _inline_limit(inline),
    )


def parse_hits(arguments: Mapping[str, Any]) -> HitsRequest:
    """Read the arguments of `manual_hits`. Raises `ManualsError`."""
    given = read.known("manual_hits", arguments, "trace_id", "kind", "offset", "limit")
    trace_id = read.text(given, "trace_id", _TRACE_ID)
    kind = given.get("kind", "candidates")
    if kind not in KINDS:
        raise read.wrong("kind", f"one of {', '.join(KINDS)}", kind)
    return HitsRequest(
        trace_id=trace_id,
        kind=kind,
        offset=read.integer(given, "offset", 0, least=0),
        limit=read.integer(given, "limit", 50),
    )


def parse_read(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> ReadRequest:
    """Read the arguments of `manual_read`. Raises `ManualsError`."""
    given = read.known("manual_read", arguments, "ref", "max_chars", "scope")
    if given.get("scope", "section") != "section":
        raise read.wrong("scope", '"section" or left out (manual_scan reads whole files)', given["scope"])
    ref = read.members(given, "ref", _REF)
    if ref is None:
        raise read.missing("ref", _REF)
    return ReadRequest(
        manual_id=_manual_id(ref, "ref.manual_id", candidate_ids),
        path=_path(ref, "ref.path"),
        start_line=read.integer_or_none(ref, "ref.start_line"),
        max_chars=_max_chars(given),
    )


def parse_scan(arguments: Mapping[str, Any], *, candidate_ids: Sequence[str] = ()) -> ScanRequest:
    """Read the arguments of `manual_scan`. Raises `ManualsError`.

    `start_line` goes before the cursor (contract 7); in the cursor, `char_offset` goes before `start_line`, because it
    is the one that an earlier page gave out.
    """
    given = read.known("manual_scan", arguments, "manual_id", "path", "start_line", "cursor", "max_chars")
    manual_id = _manual_id(given, "manual_id", candidate_ids)
    path = _path(given, "path")
    start_line = read.integer_or_none(given, "start_line")
    offset, line = _scan_place(given.get("cursor"))
    if start_line is not None:
        offset = None
    elif offset is None:
        start_line = line
    return ScanRequest(
        manual_id=manual_id, path=path, start_line=start_line, char_offset=offset, max_chars=_max_chars(given)
    )


def _toc_offset(cursor: object) -> int:
    if isinstance(cursor, dict):
        return read.integer(_place(cast(Mapping[str, Any], cursor), "offset"), "cursor.offset", 0, least=0)
    meaning = "next_cursor of the page before, an object like {offset}, or that integer of 0 or more"
    return read.whole("cursor", cursor, least=0, meaning=meaning)


def _scan_place(cursor: object) -> tuple[int | None, int | None]:
    """Return the character offset and the line that a cursor names."""
    if cursor is None:
        return None, None
    if isinstance(cursor, dict):
        place = _place(cast(Mapping[str, Any], cursor), "char_offset", "start_line")
        offset = read.integer_or_none(place, "cursor.char_offset", least=0)
        return offset, read.integer_or_none(place, "cursor.start_line")
    meaning = "next_cursor of the page before, an object like {char_offset}, or that integer of 0 or more"
    return read.whole("cursor", cursor, least=0, meaning=meaning), None


def _place(cursor: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """Return a cursor, unless it is one of something else: to ignore that would silently start over."""
    if cursor and cursor.keys().isdisjoint(names):
        raise read.wrong("cursor", f"an object with {' or '.join(names)}", next(iter(cursor)), link="one with ")
    return cursor


def _inline_limit(inline: Mapping[str, Any]) -> int:
    """Return the limit of inline hits: the one number that is lowered instead of refused (contract 4)."""
    return min(read.integer(inline, "inline_hits.limit", MOST_INLINE_HITS, most=math.inf), MOST_INLINE_HITS)


def _max_chars(given: Mapping[str, Any]) -> int:
    return read.integer(given, "max_chars", DEFAULT_CHARS, least=_LEAST_CHARS, most=_MOST_CHARS)


def _path(given: Mapping[str, Any], field: str) -> str:
    """Return a path as it came: names of files may begin and end with blanks."""
    path = given.get("path")
    if path is None:
        raise read.missing(field, _PATH, "invalid_path")
    if not isinstance(path, str) or not path.strip():
        raise read.wrong(field, _PATH, path, "invalid_path")
    return path


def _manual_id(given: Mapping[str, Any], field: str, candidate_ids: Sequence[str]) -> str:
    manual_id = read.text(given, field, _MANUAL_ID)
    if manual_id == ROOT_ID:
        details = {"candidate_ids": list(candidate_ids[:_MOST_CANDIDATE_IDS])} if candidate_ids else {}
        message = f'{field} must be {_MANUAL_ID}, and not "{ROOT_ID}", which is the list of them all.'
        raise ManualsError("invalid_parameter", message, field=field, **details)
    if "/" in manual_id or "\\" in manual_id or manual_id in (".", ".."):
        raise read.wrong(field, f"{_MANUAL_ID}, and no path", manual_id)
    return manual_id


def _required_terms(value: object) -> tuple[str, ...]:
    if value is None:
        raise read.missing("required_terms", _TERMS)
    if not isinstance(value, list):
        raise read.wrong("required_terms", _TERMS, value)
    listed = cast(list[object], value)
    terms: dict[str, None] = {}
    for given in listed[: _MOST_TERMS_GIVEN + 1]:
        term = normalise(_writable(given)) if isinstance(given, str) and len(given) <= _LONGEST_TERM else ""
        if not term:
            raise read.wrong("required_terms", _TERMS, given, link="an array with ")
        terms[term] = None
    if not 1 <= len(terms) <= 2 or len(listed) > _MOST_TERMS_GIVEN:
        raise read.wrong("required_terms", _TERMS, listed)
    return tuple(terms)


def _writable(text: str) -> str:
    """Return `text` without halves of surrogate pairs, which no database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
