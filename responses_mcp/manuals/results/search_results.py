"""What a search of all manuals found, and the form in which clients get it."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.files.snippets import Snippet
from responses_mcp.manuals.files.unserved import NO_FILES, in_words
from responses_mcp.manuals.requests.paths import file_type

LOWEST_SCORE: Final = 0.03
"""What scores less is not shown beside what scores several times as much."""

OUT_OF_TIME: Final = "time_budget"
"""Why files are missing that a search with more time would have looked at."""

_DOUBTFUL: Final = 0.06  # where nothing scores more, the question may be about something that no manual has
_LITTLE: Final = 0.25  # and where no section has more of the question
_ROOM: Final = 2_500  # characters of JSON for five rows, and what else is said
_ROWS_IN_IT: Final = 5
# Characters of the headings above and of a title, as long as snippets have so many on the average; fewer say nothing.
_SHAPES: Final = ((400, 80, 150), (100, 80, 150), (40, 80, 120), (0, 80, 60), (0, 60, 40), (0, 24, 20))
_MOST_TOLD: Final = 3  # reasons, of manuals
_NOTHING: Final = "Nothing that was searched matches; try other words."
_NO_PATH: Final = "Nothing is at or below {}; check the path."
_UNKNOWN: Final = "{} has, spelled like this: {}."
_MOST_UNKNOWN, _LONGEST_WORD = 4, 24  # words that are told, and characters of each
_WEAK: Final = "Nothing matches well; these may be about something else."
_LEFT_OUT: Final = "Rows were left out for lack of room; a larger limit has more, and path_prefix names one folder."
_AGAIN: Final = "search again to go on"
_LESS: Final = "ask in fewer words, or name manual_id or path_prefix"


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A section that was found. `line` is that of its heading; in JSON, the one that a row of the index begins on.

    `above` are the titles of the headings above it. `score` is from 0 to 1. In a long section, and in JSON,
    `match_line` is the line of the best match, and where that line is long, `char_offset` a place a little before it in
    the file, in characters. `snippet` is the text around the match, None if the file has changed since it was indexed.
    `has_word` is false where of the words of the question there are only parts, such as those of names.
    """

    manual_id: str
    path: str
    title: str
    above: str
    line: int
    score: float
    match_line: int | None = None
    char_offset: int | None = None
    snippet: Snippet | None = None
    has_word: bool = True

    @property
    def ref(self) -> JsonObject:
        """Return the `ref` with which `manual_read` shows it; for JSON, the arguments of the tool that it names."""
        ref: JsonObject = {**tool_of(self.path), "manual_id": self.manual_id, "path": self.path}
        if file_type(self.path) != "json":
            return {**ref, "start_line": self.line, **self.place}
        if self.char_offset is not None:
            return {**ref, "cursor": self.char_offset}
        return {**ref, "start_line": self.match_line or self.line}

    @property
    def place(self) -> JsonObject:
        """Return `match_line` and `char_offset`, as far as they are known."""
        return place(self.match_line, self.char_offset)

    def as_json(self) -> JsonObject:
        """Return the row as clients get it; its manual and path are in `ref`."""
        return {
            "title": self.title,
            **({"above": self.above} if self.above else {}),
            "line": self.line,
            **self.place,
            "snippet": self.snippet.text if self.snippet is not None else "",
            "score": round(self.score, 2),
            "ref": self.ref,
        }


def meant_by(path: str | None, names: Collection[str], manual: str, below: str) -> str:
    """Say what may be meant by a path that is nowhere, if it begins with the name of a manual; else nothing.

    `manual` and `below` are how those who ask name a manual and a path in it, with {} in the place of either.
    """
    manual_id, _, rest = (path or "").partition("/")
    if manual_id not in names:
        return ""
    return f"Did you mean {manual.format(manual_id)}{below.format(rest) if rest else ''}?"


def tool_of(path: str) -> JsonObject:
    """Return the field that names the tool which takes the ref of a hit, where that is not `manual_read`."""
    return {"tool": "manual_scan"} if file_type(path) == "json" else {}


def place(match_line: int | None, char_offset: int | None) -> JsonObject:
    """Return the fields that tell where in a long section, or in JSON, the best match is."""
    found = {"match_line": match_line, "char_offset": char_offset}
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Unsearched:
    """What of a manual was not searched, and why: so many `files`, None if nobody knows how many.

    Reasons are those of `manual_hits` kind `unscanned`, such as `time_budget` or `too_large`.
    """

    manual_id: str
    reason: str
    files: int | None

    @property
    def number(self) -> str:
        """Return how many files they are, in words."""
        if self.files is None:
            return "some files"
        return f"{self.files:,} file{'' if self.files == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The sections that fit best, the best first, and what was not searched.

    `no_such_path` is the path that was asked for, if nothing is at or below it, and `meant` what may have
    been meant. `not_by_meaning` says why they were
    not, or not all, compared by meaning, where there is a provider of vectors. `others` counts files that may have a
    text and are not served, by their endings; they are looked for where nothing fits well. `no_files` tells that
    there are none to search at all. `covered` is what part of the question the best rows have, from 0 to 1, by how rare
    its words are. `slow` tells that there was no time to search all that is indexed, which would be so again.
    """

    rows: tuple[SearchRow, ...]
    unsearched: tuple[Unsearched, ...] = ()
    not_by_meaning: str | None = None
    no_such_path: str | None = None
    meant: str = ""
    others: Mapping[str, int] = field(default_factory=dict[str, int])
    no_files: bool = False
    unknown: tuple[str, ...] = ()
    covered: float = 1.0
    slow: bool = False

    @property
    def complete(self) -> bool:
        """Tell whether everything was searched that may have a text."""
        return not self.unsearched and not self.others

    @property
    def was_in_time(self) -> bool:
        """Tell whether nothing is missing that a search with more time would have looked at."""
        return not any(each.reason == OUT_OF_TIME for each in self.unsearched)

    @property
    def fits_badly(self) -> bool:
        """Tell whether nothing was found, or nothing that has enough of the question."""
        return not self.rows or self.rows[0].score < _DOUBTFUL or self.covered < _LITTLE

    @property
    def reason(self) -> str | None:
        """Return why it is not complete, in words."""
        if self.complete:
            return None
        most_first = sorted(self.unsearched, key=lambda each: -(each.files or math.inf))
        told = [f"{each.manual_id}: {each.number} not searched ({each.reason})" for each in most_first[:_MOST_TOLD]]
        if len(most_first) > _MOST_TOLD:
            more = len(most_first) - _MOST_TOLD
            told.append(f"and {more} more reason{'s' * (more > 1)}")
        if not self.was_in_time:
            told.append(_LESS if self.slow else _AGAIN)
        if self.others:
            told.append(in_words(self.others))
        return "; ".join(told)

    @property
    def note(self) -> str | None:
        """Return what is to be said when nothing was found, or nothing good, or something could not be done."""
        if self.no_such_path is not None:
            return _NO_PATH.format(repr(self.no_such_path)) + (f" {self.meant}" if self.meant else "")
        fits = None
        if self.fits_badly:
            fits = _WEAK if self.rows else NO_FILES if self.no_files else _NOTHING
        unknown = None
        if self.unknown and self.rows and self.was_in_time:
            told = [_cut(each, _LONGEST_WORD) for each in self.unknown[:_MOST_UNKNOWN]]
            more = " and others" if len(self.unknown) > _MOST_UNKNOWN else ""
            nobody = "No manual searched" if self.complete else "Nothing that was searched"
            unknown = _UNKNOWN.format(nobody, f"{', '.join(told)}{more}")
        return " ".join(filter(None, (fits, unknown, self.not_by_meaning))) or None

    def as_json(self) -> JsonObject:
        """Return all of it, as a command for people shows it."""
        return self._with([row.as_json() for row in self.rows])

    def brief(self) -> JsonObject:
        """Return the form that clients get: at most 2,500 characters for five rows, and 500 for each more.

        Where there is not enough room snippets are cut, then the headings above and long titles; then rows go.
        """
        rows, left_out = list(self.rows), False
        room = _ROOM * max(len(rows), _ROWS_IN_IT) // _ROWS_IN_IT
        shown = self._with([])
        while rows:
            for above, title, snippet in _SHAPES:
                shorter = [_shortened(row, above, title) for row in rows]
                shown = self._with([replace(row, snippet=None).as_json() for row in shorter], left_out=left_out)
                left = room - _size(shown)
                if left >= snippet * len(rows):
                    return self._with(_fitted(shorter, left), left_out=left_out)
            if len(rows) == 1:  # whose names alone are longer
                break
            rows, left_out = rows[:-1], True
        return shown

    def _with(self, rows: list[JsonObject], *, left_out: bool = False) -> JsonObject:
        note = " ".join(filter(None, (self.note, _LEFT_OUT if left_out else None)))
        return {
            "results": rows,
            "complete": self.complete,
            **({"reason": self.reason} if self.reason else {}),
            **({"note": note} if note else {}),
        }


def _shortened(row: SearchRow, above: int, title: int) -> SearchRow:
    """Return a row with so many characters of the headings above it, the nearest ones whole, and of its title."""
    crumbs = row.above
    while len(crumbs) > above and crumbs:
        crumbs = crumbs.partition(" > ")[2]
    return replace(row, above=crumbs, title=_cut(row.title, title))


def _cut(text: str, most: int) -> str:
    """Return a text with so many characters at most, and the mark of what is cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _fitted(rows: Sequence[SearchRow], left: int) -> list[JsonObject]:
    """Return rows with snippets that take no more than `left` characters together: those that are short leave more."""
    shown: dict[int, JsonObject] = {}
    order = sorted(range(len(rows)), key=lambda number: _length(rows[number].snippet))
    for done, number in enumerate(order):
        row = rows[number]
        share = left // (len(rows) - done)
        snippet = None if row.snippet is None else _within(row.snippet, share)
        shown[number] = replace(row, snippet=snippet).as_json()
        left -= _length(snippet)
    return [shown[number] for number in range(len(rows))]


def _within(snippet: Snippet, most: int) -> Snippet:
    """Cut a snippet until its JSON has `most` characters at most: quotation marks take two."""
    shorter, size = snippet, most
    while _length(shorter) > most and size > 0:
        shorter = snippet.cut(size)
        size -= max(_length(shorter) - most + 1, 2) // 2  # what takes two gives two back
    return shorter


def _length(snippet: Snippet | None) -> int:
    return _size(snippet.text) - 2 if snippet is not None else 0


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
