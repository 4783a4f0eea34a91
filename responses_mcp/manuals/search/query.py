"""What is asked: a question taken apart once, and handed down as it is."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Final

from responses_mcp.manuals.index.tokens import (
    BETWEEN,
    PART,
    PIECE,
    camel_parts,
    is_character,
    mixed_parts,
    of_piece,
    of_word,
    pairs,
    plain,
    solid_parts,
    tokens,
)
from responses_mcp.manuals.words import (
    CJK,
    KATAKANA_WORD,
    LONG_VOWEL,
    foldable,
    is_hiragana,
    normalise,
    prepared,
    runs,
)

GRAMMAR: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a about am an and any are as at be been being between but by can could did do does for from had has have "
        "he her his how i if in into is it its may me mean meaning might my no not of on or our please shall she "
        "should so some such than that the their them then there these they this those through to us was we were "
        "what when where which who whom whose why will with would you your",
    )
)
"""Words that say little of what is asked for."""

_HOW_MUCH: Final = ("far", "long", "many", "much", "often")  # which say how it is asked, behind "how"
_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_KANJI: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_KANA: Final = r"[\u3041-\u3096]"
_LAST_KANA: Final = re.compile(rf"(?<={_KANJI})[いみりきし]$")
_OKURIGANA: Final = re.compile(rf"(?<={_KANJI})(?:[いみりきし](?!{_KANA})|し(?={_KANA}))")
_COMPOUND: Final = re.compile(f"({_KANJI})[{BETWEEN}]?({_KANJI})(?:わせ|[{BETWEEN}])?")
# Where a word of one kanji ends: before a particle, or what is no kana; 使う goes on.
_ALONE: Final = re.compile(
    f"(?<![\u3005-\u3007\u3400-\u9fff]){_KANJI}(?=[をはがのにとでもやへ]|(?!{_KANA}|[\u3005-\u3007\u3400-\u9fff]))"
)
_WHICH: Final = "何"  # of which only the answer stands in a text: 何日
_VAGUE: Final = "何方事時物者等為様際私今"  # words of one kanji that say little, and mostly stand for others
_KANA_RUN: Final = re.compile(f"(?<![{CJK}])[\u3041-\u3096\u309d-\u309f]{{2,}}")
_KANA_GRAMMAR: Final = re.compile(
    "[あこそど](?:う|の|れ|ん|こ|ち|っち)|いつ|いく|なに|なぜ|なん|また|まだ|もう|でも|ですが|では|ので|から|まで|より|について"
    "|として|とか|する|した|して|され|ある|あり|いる|なる|なっ|でき|ください|たい|ため|とき|こと|もの|ほか|など|すぐ|すで|とても|よく|もし|だけ"
)
_PARTICLES: Final = "をはがのにとでもやへ"
_PARTICLE: Final = re.compile(f"[{_PARTICLES}]")
_HIRAGANA: Final = re.compile("[\u3041-\u3096\u309d-\u309f]")
_ASCII: Final = "[0-9a-z]"  # in a pattern; to compile one with all letters takes eight times as long
_JOINT: Final = "[-_.: ]{0,3}"
_SOLID: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PARTS: Final = re.compile(r"[^\W_]+")
_IN_CODE: Final = re.compile(r"`[^`]*`")
_CALLED: Final = re.compile(r"\(\)?")

_MOST_TERMS: Final = 80
_MOST_WORDS: Final = 40  # nobody types more, and a pasted page must not take the time of a hundred searches
_LONGEST_RUN: Final = 32  # characters of Japanese without a mark; more than one word
_MOST_KANA, _LONGEST_KANA = 8, 6  # words of hiragana, and characters of one

# What a token counts for beside others that are as rare.
_LITTLE: Final = 0.05  # a word of grammar
_KANA_PAIR: Final = 0.02  # a pair of hiragana, which is mostly grammar
_MIXED: Final = 0.3  # a pair that is half grammar
_LONE: Final = 0.6  # a word of one kanji, which stands in others, too
_CLOSED_UP: Final = 0.3  # a pair that the question has with a kana in it
_PART: Final = 0.5  # a part of a name
_OF_WORDS: Final = 0.5  # what a hyphen joins to one, if it is words
_LEAST_PART, _LEAST_WORD = 2, 4  # letters: those of each are more, and one word has so many
_TOGETHER: Final = 0.3  # the power of the number of its pairs by which each pair of a long word of katakana weighs less

_FEW_GRAMMAR, _MANY_GRAMMAR = 1, 3  # words of grammar: a list may begin with "how to"
_LISTED, _SPOKEN = 0.1, 0.25  # and the share of the words that they are


@dataclass(frozen=True, slots=True)
class Term:
    """A token of the question. `match` asks the index for it; a row has it where its tokens have one of the `needles`.

    `weight` is what it counts for beside others that are as rare; `part_of` is the token of the name that it is a part
    of.
    """

    token: str
    weight: float
    match: str
    needles: tuple[str, ...]
    part_of: str = ""
    in_name: str = ""  # how a row has it as a part of a name

    @property
    def is_telling(self) -> bool:
        """Tell whether this is more than grammar."""
        return self.weight > _LITTLE

    def stands_in(self, padded: str) -> bool:
        """Tell whether the tokens of a row have it."""
        needles = self.needles
        return needles[0] in padded or (len(needles) > 1 and needles[1] in padded)

    def hits(self, padded: str) -> int:
        """Count it in the tokens of a row, `padded` as `pad` does it."""
        found = padded.count(self.needles[0])
        return found if len(self.needles) == 1 else max(found, padded.count(self.needles[1]))


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the question as a reader sees it, folded, with its tokens and a pattern for folded text."""

    text: str
    tokens: tuple[str, ...]
    pattern: re.Pattern[str]
    root: str
    parts: tuple[str, ...] = ()  # of a name
    inflected: bool = False  # the pattern finds what begins alike; what has other tokens is another word

    @property
    def is_number(self) -> bool:
        """Tell whether this is a number, or a code with a digit in it."""
        return self.text.isascii() and any(map(str.isdigit, self.text))

    @property
    def is_latin(self) -> bool:
        """Tell whether this is a word, a name or a number of an alphabet."""
        return self.text[:1] < "\u3000"

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """Yield where it begins and ends in a folded text, in any form."""
        if self.root in folded:
            for found in self.pattern.finditer(folded):
                if not self.inflected or of_word(found[0]) == self.tokens[0]:
                    yield found.span()


@dataclass(frozen=True, slots=True)
class Query:
    """A question. `text` is folded; `title` are its tokens as a title with the same words has them.

    `words` are those that a reader sees in it, without grammar unless it has no others; `terms` are the tokens by which
    it is searched for, `phrases` what stands from each word to the next. `kana` may be words of hiragana. `grammar` is
    the number of words of grammar, `spoken` how far this is a sentence, from 0 to 1; `in_words` tells that it has no
    Japanese.
    """

    text: str
    title: str
    words: tuple[Word, ...]
    terms: tuple[Term, ...]
    phrases: tuple[str, ...]
    kana: tuple[str, ...]
    grammar: int
    spoken: float
    in_words: bool

    def counted(self, having: Mapping[str, int]) -> Query:
        """Return the question where so many sections have each term: parts of what nobody has whole count in full."""
        terms = (
            replace(each, weight=1.0, part_of="") if each.part_of and not having.get(each.part_of, 0) else each
            for each in self.terms
        )
        return replace(self, terms=tuple(terms))

    @property
    def language(self) -> str:
        """Return the code of the language of the question, as far as its letters tell; without others, English."""
        if self.in_words:
            return "en"
        return "ko" if _HANGUL.search(self.text) else "ja" if re.search(f"[{CJK}]", self.text) else ""

    @property
    def telling(self) -> list[Term]:
        """Return the terms that are more than grammar."""
        return [term for term in self.terms if term.is_telling]

    @property
    def tokens(self) -> frozenset[str]:
        """Return the tokens, of names the whole and the parts."""
        return frozenset(self.title.split())

    def with_words(self, kana: Iterable[str]) -> Query:
        """Return the question with some runs of hiragana as words: those that stand in titles."""
        weights = {pair: _katakana_weight(len(word)) for word in kana for pair in pairs(word)[: len(word) - 1]}
        if not weights:
            return self
        changed = tuple(replace(term, weight=weights.get(term.token, term.weight)) for term in self.terms)
        added = tuple(japanese_word(word) for word in kana)
        return replace(self, terms=changed, words=(*self.words, *added))


def query(question: str) -> Query:
    """Take a question apart."""
    written = prepared(question).replace(LONG_VOWEL, "")
    text = foldable(normalise(question))
    shouted = question.isupper()
    code = [found.span() for found in _IN_CODE.finditer(written)]
    weights: dict[str, Term] = {}
    words: list[Word] = []
    grammar_words: list[Word] = []
    said = grammar = 0
    before = ""
    for found in PIECE.finditer(written):
        piece = found[0]
        if _is_japanese(piece):
            for run in runs(piece):
                said += 1
                if is_hiragana(run) or run.startswith(_WHICH):
                    grammar += 1
                    grammar_words.append(japanese_word(run))
                else:
                    words += [japanese_word(run[at : at + _LONGEST_RUN]) for at in range(0, len(run), _LONGEST_RUN)]
            _add(weights, _japanese(piece))
            continue
        folded = plain(piece)
        of_it = of_piece(piece)
        if not of_it:
            continue
        said += 1
        is_grammar = folded in GRAMMAR or of_it[0] in GRAMMAR or (before == "how" and folded in _HOW_MUCH)
        before = folded
        named = (
            (piece.isupper() and len(piece) > 1 and not shouted)
            or any(begin < found.start() < end for begin, end in code)
            or _CALLED.match(written, found.end()) is not None
        )
        grammar += is_grammar and not named
        word = latin_word(piece, of_it)
        if is_grammar and not named:
            grammar_words.append(word)
            _add(weights, [_term(of_it[0], _LITTLE)])
        else:
            words.append(word)
            _add(weights, _latin(piece, of_it))
    terms = list(weights.values())[:_MOST_TERMS]
    if not words:
        terms = [replace(term, weight=max(term.weight, _MIXED)) for term in terms]
    chosen = list({word.text: word for word in words or grammar_words}.values())[:_MOST_WORDS]
    spoken = part(grammar, _FEW_GRAMMAR, _MANY_GRAMMAR) * part(grammar / max(said, 1), _LISTED, _SPOKEN)
    return Query(
        text,
        tokens(prepared(question)),
        tuple(chosen),
        tuple(terms),
        tuple(_between(text, one.text, other.text) for one, other in pairwise(chosen)),
        tuple(islice(dict.fromkeys(_kana_words(written)), _MOST_KANA)),
        grammar,
        spoken,
        text.isascii(),
    )


def part(number: float, least: float, most: float) -> float:
    """Return where a number lies between two others, from 0 to 1."""
    return min(max((number - least) / (most - least), 0.0), 1.0)


def pad(row_tokens: str) -> str:
    """Return the tokens of a row such that each has blanks on both sides; of two alike in a row one is counted."""
    return f" {row_tokens} "


def _add(terms: dict[str, Term], more: Iterable[Term]) -> None:
    for each in more:
        known = terms.get(each.token)
        if known is None or known.weight < each.weight:
            terms[each.token] = each


def _term(token: str, weight: float, parts: Iterable[str] = (), part_of: str = "") -> Term:
    if is_character(token):
        return Term(token, weight, f'"{token}" *', (f" {token}",), part_of)
    match, in_name = f'"{token}"', ""
    if token.isascii() and token.isalnum():
        match, in_name = f'("{token}" OR "{PART}{token}")', f" {PART}{token} "
    joined = " ".join(parts)
    if joined:
        return Term(token, weight, f'({match} OR "{joined}")', (f" {token} ", f" {joined} "), part_of, in_name)
    return Term(token, weight, match, (f" {token} ",), part_of, in_name)


def _latin(piece: str, of_it: list[str]) -> Iterator[Term]:
    """Yield the terms of a word or a name of an alphabet: as a whole, which its parts behind each other are too.

    Words joined by a hyphen mostly are words of their own as well, as in two-dimensional.
    """
    whole, *parts = (each for each in of_it if each[0] != PART or not each[1:])
    if not parts:
        parts = camel_parts(piece)
        yield _term(whole, 1.0, mixed_parts(piece) or parts)
        yield from (_term(each, _PART, part_of=whole) for each in parts)
        return
    lengths = [len(each) if each.isalpha() else 0 for each in parts]
    are_words = "-" in piece and min(lengths) > _LEAST_PART and max(lengths) >= _LEAST_WORD
    yield _term(whole, _OF_WORDS if are_words else 1.0, parts)
    for each in parts:
        if are_words:
            yield _term(each, 1.0)
        elif each != whole:
            yield _term(each, _PART, part_of=whole)


def _japanese(run: str) -> Iterator[Term]:
    """Yield the terms of a run of Japanese: its pairs, and words of one kanji."""
    together = {
        word[at : at + 2]: _katakana_weight(len(word))
        for word in KATAKANA_WORD.findall(run)
        for at in range(len(word) - 1)
    }
    many = max(len(run) - 1, 1)
    for at, token in enumerate(pairs(run)):
        if at >= many + (len(run) > 1):
            yield _term(token, _CLOSED_UP)
        elif at < many:
            hiragana = len(_HIRAGANA.findall(token))
            weight = _KANA_PAIR if hiragana == len(token) else _MIXED if hiragana else together.get(token, 1.0)
            yield _term(token, weight)
    for word in _ALONE.findall(run):
        if word not in _VAGUE:
            yield _term(word, _LONE)


def _katakana_weight(length: int) -> float:
    return math.pow(max(length - 1, 1), -_TOGETHER)


def _kana_words(written: str) -> Iterator[str]:
    """Yield what may be a word in the hiragana of a question: the beginnings of runs that are not behind kanji."""
    for run in _KANA_RUN.findall(written):
        ends = [particle.start() for particle in _PARTICLE.finditer(run, 2)] + [len(run)]
        for word in (run[:end] for end in ends if end <= _LONGEST_KANA):
            if not _KANA_GRAMMAR.match(word):
                yield word


def _is_japanese(piece: str) -> bool:
    return re.match(f"[{CJK}]", piece) is not None


def latin_word(piece: str, of_it: Sequence[str]) -> Word:
    """Make a word of a piece of an alphabet, with its tokens."""
    folded = plain(piece)
    parts = _PARTS.findall(folded) or [folded]
    of_solid = solid_parts(piece)
    if len(parts) == 1 and folded.isalpha() and len(of_solid) < 2:  # two make a name
        root = folded[: next((at for at, (a, b) in enumerate(zip(folded, of_it[0], strict=False)) if a != b), None)]
        root = root[: len(of_it[0])]
        letters = _ASCII if root.isascii() else r"[^\W_]"
        pattern = rf"{re.escape(root)}(?<!{letters}(?s:.{{{len(root)}}})){letters}*"
        return Word(folded, tuple(of_it), re.compile(pattern), root, inflected=True)
    if len(parts) == 1:
        parts = (
            [part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", piece)]
            if of_solid
            else [of_it[0]]
        )
    pattern = (
        f"{re.escape(folded)}|{_JOINT.join(map(re.escape, parts))}" if of_solid else _JOINT.join(map(re.escape, parts))
    )
    before = r"(?<![^\W_])(?:0x)?" if folded[:1].isalnum() else ""
    after = r"(?![^\W_])" if folded[-1:].isalnum() else ""
    of_name = tuple(of_solid or of_it[1:])
    return Word(folded, tuple(of_it), re.compile(f"{before}(?:{pattern}){after}"), "", of_name)


def japanese_word(word: str) -> Word:
    """Make a word of Japanese, which is found as it stands; two kanji also with a kana between them."""
    if re.fullmatch(f"{_KANJI}{{2}}", word):
        pattern = f"{word[0]}[{BETWEEN}]?{word[1]}"
    else:
        pattern = "".join(f"{re.escape(each)}{LONG_VOWEL}*" for each in word)
    return Word(word, tuple(pairs(word)[: max(len(word) - 1, 1)]), re.compile(pattern), word[0])


def stands_alone(word: str, text: str) -> bool:
    """Tell whether kanji in a text are sure to be a word: between particles, or what is no kana (not 決 of 決まり)."""
    at = text.find(word)
    while at >= 0:
        before, after = text[max(at - 1, 0) : at], text[at + len(word) : at + len(word) + 1]
        if all(each in _PARTICLES or not _HIRAGANA.match(each) for each in (before, after)):
            return True
        at = text.find(word, at + 1)
    return False


def _between(text: str, first: str, second: str) -> str:
    """Return the question from one word to the next: a phrase, if a text has it too."""
    start = text.find(first)
    end = text.find(second, start + len(first))
    return text[start : end + len(second)] if start >= 0 and end >= 0 else first + second


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """A term that the caller wants in what is found, as given (normalised), with the spellings that stand for it.

    A row has it if it has all of the terms of one spelling; `match` asks the index for that, and is empty if that would
    not find all of it, such as signs that are no tokens. Then, and where no row has it so, what holds the `literal` has
    it: a part of a word, too.
    """

    text: str
    spellings: tuple[tuple[Term, ...], ...]
    match: str
    literal: str

    @property
    def tokens(self) -> frozenset[str]:
        """Return the tokens of it as it is written."""
        return frozenset(
            token for spelling in self.spellings[:1] for each in spelling for token in each.needles[0].split()
        )

    def hits(self, padded: str) -> int:
        """Count how often the tokens of a row have it, `padded` as `pad` does it."""
        most = 0
        for spelling in self.spellings:
            if all(each.stands_in(padded) for each in spelling):
                most = max(most, min([each.hits(padded) for each in spelling]))
        return most


def required_term(text: str) -> RequiredTerm:
    """Make a required term of a normalised text; 取り扱い is found as 取り扱う and 取扱 too, and E104 as E-104."""
    folded = foldable(text)
    compound = _COMPOUND.fullmatch(folded)
    pair = "".join(compound.groups()) if compound else folded
    written = dict.fromkeys([folded, _LAST_KANA.sub("", folded), _OKURIGANA.sub("", folded), pair])
    every = [tuple(_required(each)) for each in written if len(each) > 1 or each == folded]
    spellings = tuple(each for each in every if each)
    match = " OR ".join(f"({' AND '.join(each.match for each in spelling)})" for spelling in spellings)
    known = "".join(PIECE.findall(folded)) == folded.replace(" ", "")
    return RequiredTerm(text, spellings, match if known else "", text)


def _required(text: str) -> Iterator[Term]:
    for piece in PIECE.findall(text):
        if _is_japanese(piece):
            run = pairs(piece)[: max(len(piece) - 1, 1)]
            if len(run) == 1:
                yield _term(run[0], 1.0)
            else:
                phrase = " ".join(run)
                yield Term(piece, 1.0, f'"{phrase}"', (f" {phrase} ",))
        else:
            for whole, *parts in filter(None, [of_piece(piece)]):
                yield _term(whole, 1.0, parts)
