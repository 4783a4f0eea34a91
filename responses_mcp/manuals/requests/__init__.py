"""Requests to the manuals: a frozen one for each tool. `parsing` makes them from a client's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from responses_mcp.manuals.requests.paths import ROOT_ID

DEFAULT_CHARS: Final = 12_000
MOST_INLINE_HITS: Final = 5
DEFAULT_FOUND: Final = 5
MOST_FOUND: Final = 20
"""Rows of `manual_search`."""


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
    required_terms: Sequence[str]
    expand_scope: bool | None = None
    only_unscanned_from_trace_id: str | None = None
    include_claim_graph: bool = False
    use_cache: bool | None = None
    time_ms: int = 60_000
    max_candidates: int = 200
    inline_hits: int | None = None


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Search all manuals, or those of `manual_ids`, for the `limit` sections that fit best.

    `path_prefix` is a folder or a file in them. `time_ms` bounds all of it in milliseconds.
    """

    query: str
    limit: int = DEFAULT_FOUND
    manual_ids: Sequence[str] = ()
    path_prefix: str = ""
    time_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class HitsRequest:
    """Show `limit` rows of one kind from `offset` on, of the find that `trace_id` names."""

    trace_id: str
    kind: str = "candidates"
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read the section whose heading is at `start_line` (1-based), or the first one, up to `max_chars` characters.

    `match_line`, or `char_offset` in the file, is where a search found its best match: what is read has it. With
    `any_line`, `start_line` may be any line of the section.
    """

    manual_id: str
    path: str
    start_line: int | None = None
    max_chars: int = DEFAULT_CHARS
    match_line: int | None = None
    char_offset: int | None = None
    any_line: bool = False


@dataclass(frozen=True, slots=True)
class ScanRequest:
    """Read a file from `start_line` (1-based) on, or from `char_offset`, or from its beginning. At most one is set."""

    manual_id: str
    path: str
    start_line: int | None = None
    char_offset: int | None = None
    max_chars: int = DEFAULT_CHARS
