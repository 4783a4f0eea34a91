"""What a row shows: the words of the question as they stand in it, and the text around the best match."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from math import log2
from typing import Final, NamedTuple

from responses_mcp.manuals.files.snippets import LONGEST, Snippet, around, without_markup
from responses_mcp.manuals.files.texts import decoded
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.index.tokens import APART, PART, PIECE, of_piece
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.manuals.search.query import Query, RequiredTerm, is_japanese
from responses_mcp.manuals.search.reader import Row, Text
from responses_mcp.manuals.words import LONG_VOWEL, alike, normalise

_LONG: Final = 3_000  # characters; in a shorter section the match needs no line of its own
_LONG_LINE: Final = 1_000  # characters before the match in its own line, which then says too little
_CONTEXT: Final = 100  # characters before the match at which to begin in such a line
_WIDTH: Final = 160  # characters in which the words should stand together
_MOST_MATCHES: Final = 2_000
_PART_OF_NAME: Final = 0.4  # what a word weighs that is only a part of one
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
    """Where a token stands, and whether it is more than a part of a word there."""

    begin: int
    end: int
    token: str
    whole: bool = True


class Showing:
    """Shows rows for a question and its required terms."""

    def __init__(self, asked: Query, required: Sequence[RequiredTerm] = ()) -> None:
        weights = {token: 1.0 for word, of_it in asked.words.items() if is_japanese(word) for token in of_it}
        for term in asked.terms:
            if not is_japanese(term.token) and (term.is_telling or not weights):
                weights[term.token] = _PART_OF_NAME if term.part_of else 1.0
        self._names = {term.part_of for term in asked.terms if term.part_of}
        self._counted = {token for token, weight in weights.items() if weight > _PART_OF_NAME}
        self._required = [term.text for term in required]
        self._weights = (
            dict.fromkeys((token for term in required for token in (term.text, *term.tokens)), 1.0) | weights
        )
        self._known: dict[str, list[_Match]] = {}  # in what stands between blanks, because most comes again

    def show(self, row: Row, text: Text) -> Shown:
        """Return what a row shows."""
        json = file_type(row.path) == "json"
        plain = decoded(text.text) if json else text.text
        heads = f"{row.title}\n{text.above}\n{row.path.rpartition('.')[0]}"
        in_heads, matches = list(self._matches(heads)), list(self._matches(plain))
        if self._names.intersection(each.token for each in (*in_heads, *matches)):
            matches = [each for each in matches if self._weights[each.token] > _PART_OF_NAME]  # parts say nothing
        words = Counter[str]()
        for where, found in ((heads, in_heads), (plain, matches)):
            words.update(_words(where, [each for each in found if each.whole and each.token in self._counted]))
        if not matches:
            places = ((plain.lower().find(literal), literal) for literal in self._required)
            matches = [_Match(at, at + len(literal), literal) for at, literal in places if at >= 0]
        written = without_markup(plain) if file_type(row.path) in _WITH_MARKUP else plain
        if (visible := [each for each in matches if written[each.begin : each.end].strip()]) or not matches:
            plain, matches = written, visible
        above = " > ".join(map(shown_title, text.above.split(" > "))) if text.above else ""
        ordered = dict(sorted(words.items(), key=lambda item: (-item[1], item[0])))
        best = _window(sorted(matches), self._weights, plain)
        if best is None:
            return Shown(ordered, above, around("", "", plain[:_BESIDE]))
        begin, end = best
        snippet = around(plain[max(begin - _BESIDE, 0) : begin], plain[begin:end], plain[end : end + _BESIDE])
        column = begin - text.text.rfind("\n", 0, begin) - 1
        if "\n" not in text.text[:begin]:
            column += _LONG_LINE * text.goes_on
        long_line = column > _LONG_LINE
        line = text.line + text.text.count("\n", 0, begin)
        long = json or long_line or text.goes_on or row.length + line - row.line > _LONG  # blank lines before count
        offset = text.begin + begin - min(_CONTEXT, begin) if long_line else None
        return Shown(ordered, above, snippet, line if long else None, offset)

    def _matches(self, written: str) -> Iterator[_Match]:
        """Yield where tokens stand in a text as written."""
        text = alike(written)
        places = None
        if LONG_VOWEL in text:  # which tokens leave out
            places = [at for at, character in enumerate(text) if character != LONG_VOWEL] + [len(text)]
            text = text.replace(LONG_VOWEL, "")
        for each in islice(chain(self._in_words(text), self._in_japanese(text)), _MOST_MATCHES):
            yield each if places is None else each._replace(begin=places[each.begin], end=places[each.end])

    def _in_words(self, text: str) -> Iterator[_Match]:
        if all(map(is_japanese, self._weights)):
            return
        end = 0
        for chunk in text.split():
            begin = text.index(chunk, end)
            end = begin + len(chunk)
            found = self._known.get(chunk)
            if found is None:
                found = self._known[chunk] = [
                    _Match(*piece.span(), token, token == each)
                    for piece in PIECE.finditer(chunk)
                    if not is_japanese(piece[0])
                    for each in of_piece(piece[0])
                    if (token := each if each in self._weights else each.removeprefix(PART)) in self._weights
                ]
            for each in found:
                yield each._replace(begin=begin + each.begin, end=begin + each.end)

    def _in_japanese(self, text: str) -> Iterator[_Match]:
        for token in filter(is_japanese, self._weights):
            first, rest = token[0], token[1:]
            at = text.find(first)
            while at >= 0:
                if text.startswith(rest, at + 1):
                    yield _Match(at, at + len(token), token)
                elif (apart := APART.match(text, at)) is not None and apart[2] == rest:
                    yield _Match(at, at + 3, token)
                at = text.find(first, at + 1)


def _words(written: str, matches: Sequence[_Match]) -> Iterator[str]:
    """Yield the words that matches make, folded: pairs of Japanese that go on in each other are one."""
    begin = end = -1
    for each in sorted(matches):
        if each.begin >= end or not is_japanese(each.token):
            if begin >= 0:
                yield normalise(written[begin:end])
            begin = each.begin
        end = max(end, each.end)
    if begin >= 0:
        yield normalise(written[begin:end])


def _window(matches: Sequence[_Match], weights: Mapping[str, float], text: str) -> tuple[int, int] | None:
    """Return the beginning and the end of the stretch with the most words, of several the narrowest."""
    often = Counter(each.token for each in matches)
    worth = {token: weights[token] / (1 + log2(1 + many)) for token, many in often.items()}
    inside: deque[_Match] = deque()
    counts: Counter[str] = Counter()
    most, narrow = 0.0, 0
    best: tuple[int, int] | None = None
    for match in matches:
        inside.append(match)
        counts[match.token] += 1
        # What is too far away, and a word that comes again nearer to the others.
        while len(inside) > 1 and (match.end - inside[0].begin > _WIDTH or counts[inside[0].token] > 1):
            counts[inside.popleft().token] -= 1
        total = sum(worth[token] for token, many in counts.items() if many)
        first = inside[0]
        # What stands in one line belongs together.
        width = max(match.begin - first.end, 0) + _WIDTH * text.count("\n", first.begin, match.end)
        if total > most + 1e-9 or (total > most - 1e-9 and width < narrow):
            most, narrow, best = total, width, (first.begin, match.end)
    return best
