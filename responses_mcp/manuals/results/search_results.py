"""What a search of all manuals found, and the form in which clients get it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.manuals.files.snippets import LONGEST, Snippet
from responses_mcp.manuals.files.unserved import in_words
from responses_mcp.manuals.requests.paths import file_type

TIME_BUDGET: Final = "time_budget"
"""Why rows, or files, are missing that a search with more time would have looked at."""

_DOUBTFUL: Final = 0.06  # where nothing scores more, the question may be about something that no manual has
_LITTLE: Final = 0.25  # and where no section has more of the question
_ROOM, _ROWS_IN_IT = 2_500, 5  # characters of JSON for so many rows, and what else is said
# Characters of a title, of the headings above and of a snippet: the first that leave room enough.
_SHAPES: Final = ((80, 300, LONGEST), (80, 100, 150), (80, 0, 100), (40, 0, 40))
_MOST_TOLD: Final = 3  # reasons, of manuals
_MOST_UNKNOWN, _LONGEST_WORD = 4, 24  # words that are told; longer ones are none
_NOTHING: Final = "Nothing matches; try other words."
_WEAK: Final = "Nothing matches well; these results may be about something else."
_LEFT_OUT: Final = "Results were left out for lack of room; raise limit, or narrow the search with path_prefix."


@dataclass(frozen=True, slots=True)
class SearchRow:
    """A section that was found. `line` is that of its heading; in JSON, the one that a row of the index begins on.

    `above` are the titles of the headings above it. `score` is from 0 to 1. In a long section, and in JSON,
    `match_line` is the line of the best match, and where that line is long, `char_offset` a place a little before it in
    the file, in characters. `snippet` is the text around the match.
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

    def as_json(self) -> JsonObject:
        """Return the row as clients get it. Its `ref` is what `manual_read` takes, or the tool that it names."""
        found = place(self.match_line, self.char_offset)
        return {
            "title": self.title,
            **({"above": self.above} if self.above else {}),
            "line": self.line,
            **found,
            "snippet": self.snippet.text if self.snippet is not None else "",
            "score": round(self.score, 2),
            "ref": {"manual_id": self.manual_id, **ref_of(self.path, self.line, found)},
        }

    def cut(self, title: int, above: int, snippet: int) -> SearchRow:
        """Return it with so many characters of its title, of the nearest headings above, and of its snippet."""
        crumbs = self.above
        while len(crumbs) > above:
            crumbs = crumbs.partition(" > ")[2]
        name = self.title if len(self.title) <= title else f"{self.title[: title - 1]}…"
        return replace(self, title=name, above=crumbs, snippet=self.snippet and self.snippet.cut(snippet))


def place(match_line: int | None, char_offset: int | None) -> JsonObject:
    """Return the fields that tell where in a long section, or in JSON, the best match is."""
    found = {"match_line": match_line, "char_offset": char_offset}
    return {name: value for name, value in found.items() if value is not None}


def ref_of(path: str, line: int, found: JsonObject) -> JsonObject:
    """Return where a section is, with the place `found` of its match, as the tool that reads the file takes it."""
    if file_type(path) != "json":
        return {"path": path, "start_line": line, **found}
    if "char_offset" in found:
        return {"tool": "manual_scan", "path": path, "cursor": found["char_offset"]}
    return {"tool": "manual_scan", "path": path, "start_line": found.get("match_line", line)}


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
        return "some files" if self.files is None else f"{self.files:,} file{'s' * (self.files != 1)}"


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The sections that fit best, the best first, and what was not searched.

    `not_by_meaning` says why they were not, or not all, compared by meaning, where there is a provider of vectors.
    `no_such_path` is the path that was asked for, if nothing is at or below it. `others` counts files that may have a
    text and are not served, by their endings; they are looked for where nothing fits well. `unknown` are words of the
    question that no manual has; `covered` is what part of it the best rows have, by how rare words are.
    """

    rows: tuple[SearchRow, ...]
    unsearched: tuple[Unsearched, ...] = ()
    not_by_meaning: str | None = None
    no_such_path: str | None = None
    others: Mapping[str, int] = field(default_factory=dict[str, int])
    unknown: tuple[str, ...] = ()
    covered: float = 1.0

    @property
    def complete(self) -> bool:
        """Tell whether everything was searched that may have a text."""
        return not self.unsearched and not self.others

    @property
    def was_in_time(self) -> bool:
        """Tell whether nothing is missing that a search with more time would have looked at."""
        return not any(each.reason == TIME_BUDGET for each in self.unsearched)

    @property
    def fits_badly(self) -> bool:
        """Tell whether nothing was found, or nothing that has enough of the question."""
        return not self.rows or self.rows[0].score < _DOUBTFUL or self.covered < _LITTLE

    @property
    def reason(self) -> str | None:
        """Return why it is not complete, in words."""
        most_first = sorted(self.unsearched, key=lambda each: -(each.files or math.inf))
        told = [f"{each.manual_id}: {each.number} not searched ({each.reason})" for each in most_first[:_MOST_TOLD]]
        if (more := len(most_first) - _MOST_TOLD) > 0:
            told.append(f"and {more} more reason{'s' * (more > 1)}")
        if not self.was_in_time:
            told.append("search again to continue")
        if self.others:
            told.append(in_words(self.others))
        return "; ".join(told) or None

    @property
    def note(self) -> str | None:
        """Return what is to be said when nothing was found, or nothing good, or something could not be done."""
        if self.no_such_path is not None:
            return f"Nothing is at or below {self.no_such_path!r}; check the path."
        told: list[str | None] = []
        if self.fits_badly:
            told.append(_WEAK if self.rows else _NOTHING)
        words = [each for each in self.unknown if len(each) <= _LONGEST_WORD][:_MOST_UNKNOWN]
        if words and self.rows and self.was_in_time:
            where = "any manual searched" if self.complete else "what was searched"
            told.append(f"Not found in {where}: {', '.join(words)}. Check the spelling.")
        return " ".join(filter(None, [*told, self.not_by_meaning])) or None

    def as_json(self, *, more: str = "") -> JsonObject:
        """Return all of it, as a command for people shows it; `more` is added to the note."""
        note = " ".join(filter(None, (self.note, more)))
        return {
            "results": [row.as_json() for row in self.rows],
            "complete": self.complete,
            **({"reason": self.reason} if self.reason else {}),
            **({"note": note} if note else {}),
        }

    def brief(self) -> JsonObject:
        """Return the form that clients get: at most 2,500 characters for five rows, and 500 for each more.

        Where there is not enough room headings above, snippets and titles are cut; then rows go.
        """
        room = _ROOM * max(len(self.rows), _ROWS_IN_IT) // _ROWS_IN_IT
        answer = self.as_json()
        for many in range(len(self.rows), 0, -1):
            for shape in _SHAPES:
                cut = replace(self, rows=tuple(row.cut(*shape) for row in self.rows[:many]))
                answer = cut.as_json(more=_LEFT_OUT if many < len(self.rows) else "")
                if len(json.dumps(answer, ensure_ascii=False, separators=(",", ":"))) <= room:
                    return answer
        return answer
