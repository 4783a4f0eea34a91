"""Where in a section the words of a question stand, and the text around that place.

The index holds folded text, so a place is looked for in the file itself, and only for the few rows that are shown. What
is said is true of the file as it is now; of a section that is not there any more nothing is said.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import log2
from pathlib import Path
from typing import Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.pages import Text, steadily
from responses_mcp.manuals.files.snippets import LONGEST, Snippet, around
from responses_mcp.manuals.files.texts import ESCAPE, with_characters, without_short_escapes
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.manuals.words import LETTER, normalise, stem, without_raised

_LONG: Final = 3_000  # characters; in a shorter section the match needs no line of its own
_LONG_LINE: Final = 1_000  # characters before the match in its own line, which then says too little
_CONTEXT: Final = 100  # characters before the match at which to begin in such a line
_ROW_OF_JSON: Final = 16_000  # characters that a row of the index has of a JSON file, escapes as what they stand for
_WIDTH: Final = 160  # characters in which the words should stand together
_SHARED: Final = 2 * _WIDTH  # of a piece and the next, so that no match is cut in two
_MOST_WORDS: Final = 32
_FAR: Final = 2**62  # characters: behind the end of every file
_PART: Final = 0.4  # what a word weighs that is only a part of one
_LONGEST_ABOVE: Final = 400  # characters
_MOST_FOLDED: Final = 8_192  # pieces, of which a text has a few hundred
_LONGEST_PIECE: Final = 12  # characters that are kept: a character has few marks, but a hostile one thousands

_LETTER: Final = re.compile(LETTER)
_JOINING: Final = re.compile("[\u0300-\u036f\u1160-\u11ff\u3099\u309a\uff9e\uff9f]")  # to the character before
_CHARACTERS: Final = re.compile(f"(?s:.){_JOINING.pattern}*")
_LONGEST_ESCAPE: Final = 6  # characters; two of them may be one
_ESCAPES: Final = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|" + _CHARACTERS.pattern
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A section to look into, as a search knows it: the line and title of its row, and the words that it holds.

    `words` are normalised, with how often they occur: the rare ones say more.
    """

    manual_id: str
    path: str
    line: int
    title: str
    words: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Passage:
    """The place of the best match. `above` are the headings above the section.

    `match_line` is there when the section is long, or JSON; `char_offset` when that line is long: a place for a cursor
    of `manual_scan`. Both are None where no word stands in the text.
    """

    above: str
    snippet: Snippet
    match_line: int | None = None
    char_offset: int | None = None


class _Stretch(NamedTuple):
    """The text of a section, without its heading, in characters of its file.

    With the headings below it and their texts it ends at `below`, where that is near.
    """

    begin: int
    end: int
    above: str = ""
    below: int = 0


def passages(folder: Folder, wanted: Sequence[Wanted], found: list[Passage | None], check: CancellationCheck) -> None:
    """Fill `found`, which has a place for each of `wanted`, as far as their files can be read and have them.

    The smallest files come first: where time runs out, a large one has taken it from itself alone.
    """
    places: dict[tuple[str, str], list[int]] = {}
    for number, each in enumerate(wanted):
        places.setdefault((each.manual_id, each.path), []).append(number)
    for (manual_id, path), numbers in sorted(places.items(), key=lambda item: _size(Path(folder.root, *item[0]))):
        check()

        def look(text: Text, numbers: Sequence[int] = numbers) -> list[Passage | None]:
            return _passages(text, [wanted[number] for number in numbers], check)

        try:
            _, seen = steadily(folder, manual_id, path, check, look)
        except ManualsError:  # it has gone, or cannot be read
            continue
        for number, passage in zip(numbers, seen, strict=True):
            found[number] = passage


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except (OSError, ValueError):  # who reads it will be told why
        return 0


def _passages(text: Text, wanted: Sequence[Wanted], check: CancellationCheck) -> list[Passage | None]:
    json = file_type(wanted[0].path) == "json"
    stretches = {} if json else _sections(text, wanted)
    found: list[Passage | None] = []
    for each in wanted:
        stretch = _row_of_json(text, each.line) if json else stretches.get(each.line)
        if json and stretch is not None:
            crumbs = next((place.crumbs for place in text.outline().places() if (place.end or _FAR) > each.line), ())
            stretch = stretch._replace(above=" > ".join(crumbs)[-_LONGEST_ABOVE:])
        found.append(None if stretch is None else _passage(text, stretch, each, json=json, check=check))
    return found


def _row_of_json(text: Text, line: int) -> _Stretch | None:
    """Return the text of the rows that begin on a line, of which one may begin at its end: it, and a row more."""
    try:
        begin = text.offset_of(line)
    except ManualsError:
        return None
    try:
        following = text.offset_of(line + 1)
    except ManualsError:  # it is the last line
        return _Stretch(begin, _FAR)
    return _Stretch(
        begin, following + _length_of_row(text.page(following, 6 * _ROW_OF_JSON, beyond_is_empty=True).text)
    )


def _length_of_row(text: str) -> int:
    """Return how much of a text of JSON becomes a row; the index has no escapes, which are of six characters."""
    length = end = 0
    for escape in ESCAPE.finditer(text):
        if length + escape.start() - end >= _ROW_OF_JSON:
            break
        length += escape.start() - end + 1
        end = escape.end()
    return end + _ROW_OF_JSON - length


def _sections(text: Text, wanted: Iterable[Wanted]) -> dict[int, _Stretch]:
    """Find the sections that begin on lines, and have the titles that are looked for, up to the next."""
    titles = {each.line: each.title for each in wanted}
    name = next(iter(wanted)).path.rpartition("/")[2]
    found: dict[int, _Stretch] = {}
    outline = text.outline()
    for place in outline.places():
        if (place.title or name) != titles.get(place.line):
            continue
        begin = _offset(text, place.text)
        end = _end(text, begin) if place.end is None else _offset(text, place.end)
        above = " > ".join(shown_title(each) for each in place.crumbs)[-_LONGEST_ABOVE:]
        found[place.line] = _Stretch(min(begin, end), end, above, end)
    for number, heading in enumerate(outline.headings):
        stretch = found.get(heading.line)
        if stretch is not None:
            below = next((each.line for each in outline.headings[number + 1 :] if each.level <= heading.level), None)
            found[heading.line] = stretch._replace(below=min(_offset(text, below), stretch.begin + 2 * LONGEST))
    return found


def _end(text: Text, begin: int) -> int:
    """Return where the file ends, if that is near a place; far away otherwise."""
    rest = text.page(begin, _LONG + 1, beyond_is_empty=True)
    return rest.end if rest.eof else _FAR


def _offset(text: Text, line: int | None) -> int:
    """Return where a line begins; far away where there is none."""
    if line is None:
        return _FAR
    try:
        return text.offset_of(line)
    except ManualsError:
        return _FAR


def _passage(text: Text, stretch: _Stretch, wanted: Wanted, *, json: bool, check: CancellationCheck) -> Passage:
    size = stretch.end - stretch.begin
    if size < LONGEST and not text.page(stretch.begin, size, beyond_is_empty=True).text.strip():
        stretch = stretch._replace(end=max(stretch.end, stretch.below))  # a heading with nothing but others under it
    best = _best(text, stretch, wanted.words, json=json, check=check)
    begin, line = (stretch.begin, None) if best is None else (best.begin, best.line)
    end = begin if best is None else best.end
    beside = 2 * LONGEST * (_LONGEST_ESCAPE if json else 1)  # more than is shown: what it is cut into is not
    first = max(begin - beside, stretch.begin)
    size = min(end + beside, stretch.end) - first
    excerpt = text.page(first, max(size, 0), beyond_is_empty=True).text
    cut = begin - first
    before, match, after = excerpt[:cut], excerpt[cut : cut + end - begin], excerpt[cut + end - begin :]
    context = min(_CONTEXT, cut)
    if json:
        context = cut - _escape_at(before, cut - context)
        before, match, after = map(_unescaped, (before, match, after))
    snippet = around(before, match, after)
    if best is None or line is None:
        return Passage(stretch.above, snippet)
    long_line = best.column > _LONG_LINE
    long = json or long_line or stretch.end - stretch.begin > _LONG
    return Passage(stretch.above, snippet, line if long else None, begin - context if long_line else None)


def _escape_at(text: str, at: int) -> int:
    """Return where an escape begins in which a place is, or, outside one, the place."""
    whole = (each for each in _ESCAPES.finditer(text, max(at - 2 * _LONGEST_ESCAPE, 0)) if each.end() > at)
    return next((each.start() for each in whole), at)


class _Best(NamedTuple):
    """The stretch of a file in which most of the words stand, and its line and column."""

    begin: int
    end: int
    line: int
    column: int


def _best(
    text: Text, stretch: _Stretch, words: Mapping[str, int], *, json: bool, check: CancellationCheck
) -> _Best | None:
    weights = dict(sorted(((word, 1 / (1 + log2(1 + count))) for word, count in words.items() if word), key=_rarest))
    weights = dict(list(weights.items())[:_MOST_WORDS])
    best: _Best | None = None
    most, enough = 0.0, sum({stem(word): weight for word, weight in weights.items()}.values())
    kept, place, line, column = "", stretch.begin, 0, 0
    for span in text.stretch(stretch.begin, stretch.end):
        check()
        raw = kept + span.text
        line = line or span.start.line
        plain = without_short_escapes(raw) if json else raw
        if not json or _at_most(plain, weights) > most:
            folded, lengths = _folded(plain, json=json)
            window = _window(folded, weights, most)
            if window is not None:
                most, first, last = window
                first, last = _raw(first, lengths), _raw(last, lengths)
                newline = raw.rfind("\n", 0, first)
                before = first - newline - 1 if newline >= 0 else column + first
                best = _Best(place + first, place + last, line + raw.count("\n", 0, first), before)
                if most >= enough:
                    break
        used = max(len(raw) - _SHARED, 0)
        newline = raw.rfind("\n", 0, used)
        column = used - newline - 1 if newline >= 0 else column + used
        line += raw.count("\n", 0, used)
        kept, place = raw[used:], place + used
    return best


def _at_most(raw: str, weights: Mapping[str, float]) -> float:
    """Return what the words in a text of JSON weigh together, wherever they stand.

    The row that was found may be a hundredth of its line, and to fold text with escapes such that places in it are
    known takes ten times as long as this.
    """
    if "\\u" in raw:
        decoded = raw.encode("raw_unicode_escape").decode("raw_unicode_escape", "replace")
        raw = decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two halves make one character
    text = normalise(raw)
    return sum({stem(word): weight for word, weight in weights.items() if word in text}.values())


def _rarest(item: tuple[str, float]) -> tuple[float, int, str]:
    word, weight = item
    return -weight, -len(word), word


def _window(folded: str, weights: Mapping[str, float], most: float) -> tuple[float, int, int] | None:
    """Return the weight, the beginning and the end of the stretch with the most words, if that is more than `most`.

    Of several, that is the one with the least between the first word and the last. Forms of one word count once.
    """
    events: list[tuple[int, int, str]] = []
    worth: dict[str, float] = {}
    for word, weight in weights.items():
        places, whole = _places(folded, word)
        root = stem(word)
        worth[root] = max(worth.get(root, 0.0), weight if whole else weight * _PART)
        events += [(begin, end, root) for begin, end in places]
    events.sort()
    inside: deque[tuple[int, int, str]] = deque()
    counts: Counter[str] = Counter()
    total = 0.0
    best: tuple[float, int, int] | None = None
    narrow = 0
    for begin, end, root in events:
        inside.append((begin, end, root))
        total += 0.0 if counts[root] else worth[root]
        counts[root] += 1
        while end - inside[0][0] > _WIDTH and len(inside) > 1:
            _, _, gone = inside.popleft()
            counts[gone] -= 1
            total -= 0.0 if counts[gone] else worth[gone]
        while counts[inside[0][2]] > 1:  # a word that comes again nearer to the others
            counts[inside.popleft()[2]] -= 1
        first, behind, _ = inside[0]
        # What stands in one line belongs together.
        width = max(begin - behind, 0) + _WIDTH * folded.count("\n", first, end)
        if total > most + 1e-9 or (total > most - 1e-9 and width < narrow):
            most, best, narrow = total, (total, first, end), width
    return best


def _places(folded: str, word: str) -> tuple[list[tuple[int, int]], bool]:
    """Return where a word stands as a word of its own, or else as a part of others; and whether it is the former."""
    begins, ends = _LETTER.match(word), _LETTER.match(word[-1:])
    whole: list[tuple[int, int]] = []
    parts: list[tuple[int, int]] = []
    at = folded.find(word)
    while at >= 0:
        end = at + len(word)
        part = (begins and at and _LETTER.match(folded, at - 1)) or (ends and _LETTER.match(folded, end))
        (parts if part else whole).append((at, end))
        at = folded.find(word, end)
    return whole or parts, bool(whole)


def _folded(raw: str, *, json: bool) -> tuple[str, list[tuple[int, int]] | None]:
    """Return a text as words are normalised, with all its blanks; and the lengths of what became of what.

    These are pairs of the length of a piece, before and after; None if each character stayed one.
    """
    raw = raw if raw.isascii() else without_raised(raw)
    if json and "\\u" in raw:
        pieces: Sequence[str] = _ESCAPES.findall(raw)
    elif raw.isascii():
        return raw.lower(), None
    elif _JOINING.search(raw):
        pieces = _CHARACTERS.findall(raw)
    else:
        alike = raw.translate(_FOLDED)
        if _NOT_ALIKE not in alike:
            return alike, None
        pieces = raw
    folded = [_folded_piece(piece) if len(piece) <= _LONGEST_PIECE else _fold(piece) for piece in pieces]
    return "".join(folded), list(zip(map(len, pieces), map(len, folded), strict=True))


_NOT_ALIKE: Final = "\0"  # which no text has: it is shown as the character that depicts it


class _Folding(dict[int, str]):
    """What single characters become, for `str.translate`: `_NOT_ALIKE` if that is not one character."""

    def __missing__(self, code: int) -> str:
        folded = _folded_piece(chr(code))
        if len(self) >= _MOST_FOLDED:
            self.clear()
        self[code] = folded if len(folded) == 1 else _NOT_ALIKE
        return self[code]


_FOLDED: Final = _Folding()


@lru_cache(_MOST_FOLDED)
def _folded_piece(piece: str) -> str:
    return _fold(piece)


def _fold(piece: str) -> str:
    text = _unescaped(piece) if len(piece) > 1 and piece.startswith("\\u") else piece
    return " " if text.isspace() else normalise(text)


def _raw(place: int, lengths: list[tuple[int, int]] | None) -> int:
    """Return where a place of folded text is in the raw one."""
    if lengths is None:
        return place
    raw = 0
    for (before, _), behind in zip(lengths, accumulate(after for _, after in lengths), strict=True):
        if behind > place:
            break
        raw += before
    return raw


def _unescaped(text: str) -> str:
    """Return a text with the characters that JSON writes as numbers, halves replaced, and blanks for its own."""
    text = without_short_escapes(text)
    if "\\u" not in text:
        return text
    return with_characters(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
