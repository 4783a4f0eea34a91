"""What a row shows: the words of the question as they stand in it, and the text around the best match."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from math import log2
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from responses_mcp.manuals.files.snippets import LONGEST, Snippet, around, without_markup
from responses_mcp.manuals.files.texts import decoded
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.manuals.search.candidates import Row, Text
from responses_mcp.manuals.search.query import (
    Query,
    RequiredTerm,
    Word,
    japanese_word,
    latin_word,
    query,
    required_term,
)
from responses_mcp.manuals.words import alike, foldable

if TYPE_CHECKING:
    from responses_mcp.json_types import JsonObject
    from responses_mcp.manuals.results.find_payload import Passage

_LONG: Final = 3_000  # characters; in a shorter section the match needs no line of its own
_LONG_LINE: Final = 1_000  # characters before the match in its own line, which then says too little
_CONTEXT: Final = 100  # characters before the match at which to begin in such a line
_WIDTH: Final = 160  # characters in which the words should stand together
_MOST_PLACES: Final = 200  # of a word
_LEAST_PART: Final = 3  # letters of a word that is looked for within names
_PART: Final = 0.4  # what a word weighs that is only a part of one
_BESIDE: Final = 12 * LONGEST  # characters, more than are shown: an escape of JSON takes six for one
_WITH_MARKUP: Final = ("md", "mdx")  # formats that are served as they are written


class Shown(NamedTuple):
    """What a row shows. `words` are those of the question as they stand in it, with their number, most often first.

    `above` are the headings above the section. `match_line` is there when the section is long, or JSON; `char_offset`
    when that line is long: a place for a cursor of `manual_scan`.
    """

    words: dict[str, int]
    above: str
    snippet: Snippet
    match_line: int | None = None
    char_offset: int | None = None


class _Match(NamedTuple):
    begin: int
    end: int
    word: str
    weight: float


def show(row: Row, text: Text, asked: Query, required: Sequence[RequiredTerm] = ()) -> Shown:
    """Return what a row shows for a question."""
    json = file_type(row.path) == "json"
    plain = decoded(text.text) if json else text.text
    folded = alike(plain)
    heads = alike(f"{row.title}\n{text.above}\n{row.path.rpartition('.')[0]}")
    counts: Counter[str] = Counter()
    matches: list[_Match] = []
    for word in asked.words:
        places = list(islice(word.places(folded), _MOST_PLACES))
        standing = [folded[begin:end] for begin, end in places]
        standing += [heads[begin:end] for begin, end in word.places(heads)]
        weight = 1.0
        if not standing:
            parts = list(_parts(word, foldable(f"{heads}\n{folded}")))
            places = [place for part in parts for place in islice(part.places(folded), _MOST_PLACES)]
            if not word.is_latin:
                standing = [folded[begin:end] for begin, end in places]
                standing += [heads[begin:end] for part in parts for begin, end in part.places(heads)]
            weight = _PART
        counts.update(standing)
        weight /= 1 + log2(1 + len(places))
        matches += [_Match(begin, end, word.text, weight) for begin, end in places]
    if not matches or required:
        for term in required:
            for word in _words_of(term):
                places = list(islice(word.places(folded), _MOST_PLACES))
                weight = 1 / (1 + log2(1 + len(places)))
                matches += [_Match(begin, end, word.text, weight) for begin, end in places]
    words = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    above = " > ".join(map(shown_title, text.above.split(" > "))) if text.above else ""
    written = without_markup(plain) if file_type(row.path) in _WITH_MARKUP else plain
    if (visible := [each for each in matches if written[each.begin : each.end].strip()]) or not matches:
        plain, matches = written, visible
    best = _window(sorted(matches), folded)
    if best is None:
        return Shown(words, above, around("", "", plain[:_BESIDE]))
    begin, end = best
    snippet = around(plain[max(begin - _BESIDE, 0) : begin], plain[begin:end], plain[end : end + _BESIDE])
    column = begin - text.text.rfind("\n", 0, begin) - 1
    if "\n" not in text.text[:begin]:
        column += _LONG_LINE * text.goes_on
    long_line = column > _LONG_LINE
    long = json or long_line or text.goes_on or row.length > _LONG
    line = text.line + text.text.count("\n", 0, begin)
    offset = text.begin + begin - min(_CONTEXT, begin) if long_line else None
    return Shown(words, above, snippet, line if long else None, offset)


def shown(payload: Mapping[str, Any], which: range) -> tuple[list[JsonObject], list[Passage]]:
    """Return some rows of what a find keeps, with their words and passages, which are made when they are asked for."""
    asked = query(payload["query"])
    required = [required_term(each) for each in payload["applied"]["required_terms"]]
    rows: list[JsonObject] = []
    passages: list[Passage] = []
    for at in which:
        row, text = payload["texts"][at]
        each = show(Row._make((*row, "", "", "")), Text(*text), asked, required)
        rows.append({**payload["candidates"][at], "matched_tokens": list(each.words), "token_hits": each.words})
        snippet = each.snippet.text, each.snippet.begin, each.snippet.end
        passages.append((each.above, snippet, each.match_line, each.char_offset))
    return rows, passages


def _parts(word: Word, text: str) -> Iterator[Word]:
    """Yield what a text has of a word that it lacks: parts of a name or a compound, of two characters or more."""
    if word.is_latin:
        yield from (latin_word(part, [part]) for part in word.parts)
        if not word.parts and len(word.tokens[0]) >= _LEAST_PART:
            yield Word(word.text, word.tokens, re.compile(re.escape(word.tokens[0])), word.tokens[0])
        return
    at = 0
    while at < len(word.text) - 1:
        end = at + 2
        if word.text[at:end] not in text:
            at += 1
            continue
        while end < len(word.text) and word.text[at : end + 1] in text:
            end += 1
        yield japanese_word(word.text[at:end])
        at = end


def _words_of(term: RequiredTerm) -> Iterator[Word]:
    yield Word(term.literal, (term.literal,), re.compile(re.escape(term.literal)), term.literal)
    for each in chain.from_iterable(term.spellings):
        token = each.token
        yield latin_word(token, [token]) if token[:1] < "\u3000" else japanese_word(token)


def _window(matches: Sequence[_Match], folded: str) -> tuple[int, int] | None:
    """Return the beginning and the end of the stretch with the most words, of several the narrowest."""
    inside: deque[_Match] = deque()
    counts: Counter[str] = Counter()
    total = most = 0.0
    narrow = 0
    best: tuple[int, int] | None = None
    for match in matches:
        inside.append(match)
        total += 0.0 if counts[match.word] else match.weight
        counts[match.word] += 1
        while match.end - inside[0].begin > _WIDTH and len(inside) > 1:
            gone = inside.popleft()
            counts[gone.word] -= 1
            total -= 0.0 if counts[gone.word] else gone.weight
        while counts[inside[0].word] > 1:  # a word that comes again nearer to the others
            counts[inside.popleft().word] -= 1
        # What stands in one line belongs together.
        first = inside[0]
        width = max(match.begin - first.end, 0) + _WIDTH * folded.count("\n", first.begin, match.end)
        if total > most + 1e-9 or (total > most - 1e-9 and width < narrow):
            most, narrow, best = total, width, (first.begin, match.end)
    return best
