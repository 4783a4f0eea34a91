"""What is asked: a question taken apart once, and handed down as it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import Final

from responses_mcp.manuals.index.tokens import (
    BETWEEN,
    FIRST_OF_JAPANESE,
    PART,
    PIECE,
    camel_parts,
    is_character,
    mixed_parts,
    of_piece,
    pairs,
    plain,
    tokens,
)
from responses_mcp.manuals.words import CJK, LONG_VOWEL, foldable, is_hiragana, normalise, prepared, runs

GRAMMAR: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a about am an and any are as at be been being between but by can could did do does for from had has have "
        "he her his how i if in into is it its may me mean meaning might my no not of on or our please shall she "
        "should so some such than that the their them then there these they this those through to was we were "
        "what when where which who whom whose why will with would you your",
    )
)
"""Words that say little of what is asked for."""

# What only asks, before and behind what is asked for.
_ASKING: Final = re.compile(
    r"\s*(?:(?:can|could|would) you |please )?(?:what(?:'s| is| are| does| do)|how (?:far|long|many|much|often)"
    r"|how (?:do|does|can|to)(?: i| you)?(?: use)?|(?:describe|explain|show|tell)(?: me)?(?: about)?) (?:an? |the )?"
)
_ASKED: Final = re.compile(r" (?:do|mean|work)\W*$")
_LONGEST_NAME: Final = 3  # words, of what is asked for by "What does ... do?"
_ASKING_IN_JAPANESE: Final = re.compile(
    r"(?:(?:について|に関して|のこと|を){0,2}(?:詳しく|くわしく)?(?:教え|おしえ|説明し)て(?:ほしい|欲しい|ください|下さい|くれ)?"
    r"|(?:とは(?:何|なん|なに)?|って(?:何|なん|なに))(?:ですか|でしょうか|か)?)[。?？!！]*$"
)
_WHICH: Final = "何"  # of which only the answer stands in a text: 何日
_KANJI: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_COMPOUND: Final = re.compile(f"({_KANJI})[{BETWEEN}]?({_KANJI})(?:わせ|[{BETWEEN}])?")
# Where a word of one kanji ends: before a particle, or what is no kana; 使う goes on.
_ALONE: Final = re.compile(
    f"(?<![\u3005-\u3007\u3400-\u9fff]){_KANJI}(?=[をはがのにとでもやへ]|(?![\u3041-\u3096\u3005-\u3007\u3400-\u9fff]))"
)
_KATAKANA_WORD: Final = re.compile(r"[\u30a1-\u30fa\u30fd-\u30ff]{3,}")  # cut as meant, unlike most of Japanese
_KANA_RUN: Final = re.compile(f"(?<![{CJK}])[\u3041-\u3096\u309d-\u309f]{{2,}}")
_PARTICLE: Final = re.compile("[をはがのにとでもやへ]")
_HIRAGANA: Final = re.compile("[\u3041-\u3096\u309d-\u309f]")
_HANGUL: Final = re.compile("[\uac00-\ud7af]")
_IN_CODE: Final = re.compile(r"`[^`]*`")
_CALLED: Final = re.compile(r"\(\)?")
_SIGILS: Final = ("#", "@", "$", "<", "{", "%")

_LONGEST: Final = 10_000  # characters
_MOST_TERMS: Final = 80
_MOST_WORDS: Final = 40  # nobody types more, and a pasted page must not take the time of a hundred searches
_MOST_KANA, _LONGEST_KANA = 8, 6  # words of hiragana, and characters of one

# What a token counts for beside others that are as rare.
_LITTLE: Final = 0.05  # a word of grammar
_KANA_PAIR: Final = 0.02  # a pair of hiragana, which is mostly grammar
_MIXED: Final = 0.3  # a pair that is half grammar, or that the question has with a kana in it
_LONE: Final = 0.6  # a word of one kanji, which stands in others, too
_PART: Final = 0.5  # a part of a name
_TOGETHER: Final = 0.3  # the power of the number of its pairs by which each pair of a long word of katakana weighs less

_FEW_GRAMMAR, _MANY_GRAMMAR = 1, 3  # words of grammar: a list may begin with "how to"
_LISTED, _SPOKEN = 0.1, 0.25  # and the share of the words that they are


@dataclass(frozen=True, slots=True)
class Sought:
    """What a row has where its tokens, `padded` as `pad` does it, have one of the `needles`; `match` asks the index."""

    match: str
    needles: tuple[str, ...]

    def stands_in(self, padded: str) -> bool:
        """Tell whether a row has it."""
        for needle in self.needles:  # noqa: SIM110  # `any` takes three times as long, and searches ask 2,000 times
            if needle in padded:
                return True
        return False

    def hits(self, padded: str) -> int:
        """Count it in a row."""
        if len(self.needles) == 1:
            return padded.count(self.needles[0])
        return max(map(padded.count, self.needles), default=0)


@dataclass(frozen=True, slots=True)
class Term(Sought):
    """A token of the question.

    `weight` is what it counts for beside others that are as rare; `part_of` is the token of the name that it is a part
    of, `in_name` how a row has it as a part of a name.
    """

    token: str
    weight: float
    part_of: str = ""
    in_name: str = ""

    @property
    def is_telling(self) -> bool:
        """Tell whether this is more than grammar."""
        return self.weight > _LITTLE


@dataclass(frozen=True, slots=True)
class Query:
    """A question. `text` is folded; `title` are its tokens as a title with the same words has them.

    `words` are those that a reader sees in it, without grammar unless it has no others, each with its tokens; `terms`
    are the tokens by which it is searched for, `phrases` what stands from each word to the next, or a name.
    `kana` may be words of hiragana. `spoken` is how far this is a sentence, from 0 to 1.
    """

    text: str
    title: str
    words: Mapping[str, tuple[str, ...]]
    terms: tuple[Term, ...]
    phrases: tuple[str, ...]
    kana: tuple[str, ...]
    spoken: float

    @property
    def is_latin(self) -> bool:
        """Tell whether it has no Japanese."""
        return self.text.isascii()

    @property
    def language(self) -> str:
        """Return the code of the language of the question, as far as its letters tell; without others, English."""
        if self.is_latin:
            return "en"
        return "ko" if _HANGUL.search(self.text) else "ja" if any(map(is_japanese, self.text)) else ""

    def has(self, term: RequiredTerm) -> bool:
        """Tell whether a required term is a word of the question, in any form, or some words or parts of a name."""
        return bool(term.tokens) and term.tokens <= set(self.title.split())

    def with_words(self, kana: Iterable[str]) -> Query:
        """Return the question with some runs of hiragana as words: those that stand in titles."""
        added = {word: tuple(pairs(word)[: len(word) - 1]) for word in kana}
        weights = {pair: _katakana_weight(len(word)) for word, of_it in added.items() for pair in of_it}
        changed = (replace(term, weight=weights.get(term.token, term.weight)) for term in self.terms)
        return replace(self, terms=tuple(changed), words={**self.words, **added}) if added else self


def query(question: str) -> Query:
    """Take a question apart."""
    question = question.strip()[:_LONGEST]
    question = _ASKING_IN_JAPANESE.sub("", question) or question
    written = prepared(question).replace(LONG_VOWEL, "")
    text = foldable(normalise(question))
    pieces = list(PIECE.finditer(written))
    begin, end, is_name = _asked_for(written.lower())
    if all(_is_grammar(each[0]) for each in pieces if begin <= each.start() < end):
        is_name = True  # there is nothing else
    name = foldable(normalise(written[begin:end])) if is_name else ""
    is_name = is_name or any(is_japanese(each[0]) for each in pieces)  # which has its own grammar
    code = [found.span() for found in _IN_CODE.finditer(written)]
    terms: dict[str, Term] = {}
    words: dict[str, tuple[str, ...]] = {}
    said: list[bool] = []  # of each word, whether it is grammar

    def named(found: re.Match[str]) -> bool:
        """Tell whether a word of grammar is the name of something here."""
        return (
            (is_name and begin <= found.start() < end)
            or (found[0].isupper() and len(found[0]) > 1 and not question.isupper())
            or any(first < found.start() < last for first, last in code)
            or _CALLED.match(written, found.end()) is not None
            or written.endswith(_SIGILS, 0, found.start())
        )

    grammar_words: dict[str, tuple[str, ...]] = {}
    for found in pieces:
        piece = found[0]
        if is_japanese(piece):
            for run in runs(piece):
                said.append(is_hiragana(run) or run.startswith(_WHICH))
                (grammar_words if said[-1] else words)[run] = tuple(pairs(run)[: max(len(run) - 1, 1)])
            _add(terms, _japanese(piece))
        elif of_it := of_piece(piece):
            said.append((not begin <= found.start() < end or _is_grammar(piece)) and not named(found))
            (grammar_words if said[-1] else words)[plain(piece)] = tuple(of_it)
            _add(terms, [_term(of_it[0], _LITTLE)] if said[-1] else _latin(piece, of_it))
    searched = list(terms.values())[:_MOST_TERMS]
    if not words:
        searched = [replace(term, weight=max(term.weight, _MIXED)) for term in searched]
    words = dict(islice((words or grammar_words).items(), _MOST_WORDS))
    return Query(
        text,
        tokens(prepared(question)),
        words,
        tuple(searched),
        (name,) if name else tuple(_between(text, one, other) for one, other in pairwise(words)),
        tuple(islice(dict.fromkeys(_kana_words(written)), _MOST_KANA)),
        part(sum(said), _FEW_GRAMMAR, _MANY_GRAMMAR) * part(sum(said) / max(len(said), 1), _LISTED, _SPOKEN),
    )


def _asked_for(question: str) -> tuple[int, int, bool]:
    """Return where a question says what is asked for, and whether that is surely a name, as in "What does is do?"."""
    before, behind = _ASKING.match(question), _ASKED.search(question)
    if before is None:
        return 0, len(question), False
    begin, end = before.end(), len(question) if behind is None else behind.start()
    short = question.count(" ", begin, end) < _LONGEST_NAME
    return begin, end, behind is not None and before[0].lstrip().startswith("what do") and short


def _is_grammar(piece: str) -> bool:
    return plain(piece) in GRAMMAR or not GRAMMAR.isdisjoint(of_piece(piece)[:1])


def is_japanese(word: str) -> bool:
    """Tell whether a word, or a token, is of kanji, kana or hangul."""
    return word >= FIRST_OF_JAPANESE


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
    in_name = f"{PART}{token}" if token.isascii() and token.isalnum() else ""
    phrases = [token, *filter(None, [" ".join(parts)])]
    match = " OR ".join(map(_phrase, filter(None, [*phrases, in_name])))
    return Term(f"({match})", tuple(map(_needle, phrases)), token, weight, part_of, in_name and f" {in_name} ")


def _latin(piece: str, of_it: list[str]) -> Iterator[Term]:
    """Yield the terms of a word or a name of an alphabet: as a whole, which its parts behind each other are too."""
    whole, joined = of_it[0], [each for each in of_it[1:] if not each.startswith(PART)]
    parts = joined or camel_parts(piece)
    yield _term(whole, 1.0, joined or mixed_parts(piece) or parts)
    yield from (_term(each, _PART, part_of=whole) for each in parts if each != whole)


def _japanese(run: str) -> Iterator[Term]:
    """Yield the terms of a run of Japanese: its pairs, and words of one kanji."""
    katakana = {pair: _katakana_weight(len(word)) for word in _KATAKANA_WORD.findall(run) for pair in pairs(word)}
    many = max(len(run) - 1, 1)
    every = pairs(run)
    for token in every[:many]:
        hiragana = len(_HIRAGANA.findall(token))
        weight = _KANA_PAIR if hiragana == len(token) else _MIXED if hiragana else katakana.get(token, 1.0)
        yield _term(token, weight)
    yield from (_term(token, _MIXED) for token in every[len(run) :])  # with a kana left out
    yield from (_term(word, _LONE) for word in _ALONE.findall(run))


def _katakana_weight(length: int) -> float:
    return float(max(length - 1, 1) ** -_TOGETHER)


def _kana_words(written: str) -> Iterator[str]:
    """Yield what may be a word in the hiragana of a question: the beginnings of runs that are not behind kanji."""
    for run in _KANA_RUN.findall(written):
        ends = [particle.start() for particle in _PARTICLE.finditer(run, 2)] + [len(run)]
        yield from (run[:end] for end in ends if end <= _LONGEST_KANA)


def _between(text: str, first: str, second: str) -> str:
    """Return the question from one word to the next: a phrase, if a text has it too."""
    start = text.find(first)
    end = text.find(second, start + len(first))
    return text[start : end + len(second)] if start >= 0 and end >= 0 else first + second


@dataclass(frozen=True, slots=True)
class RequiredTerm(Sought):
    """A term that the caller wants in what is found, as given (normalised); `tokens` are those of it as written.

    `match` is empty if it would not find all of it, such as signs that are no tokens. Where no row has it so, what
    holds the text as it is written has it: as a part of a word, too.
    """

    text: str
    tokens: frozenset[str]

    @property
    def is_grammar(self) -> bool:
        """Tell whether it asks for nothing."""
        said = runs(self.text)
        return bool(said) and all(each in GRAMMAR or is_hiragana(each) for each in said)


def required_term(text: str) -> RequiredTerm:
    """Make a required term of a normalised text; 取り扱い is found as 取り扱う and 取扱 too, and E104 as E-104."""
    folded = foldable(text)
    compound = _COMPOUND.fullmatch(folded)
    phrases = list(dict.fromkeys([*_phrases(folded), *(_phrases("".join(compound.groups())) if compound else ())]))
    known = "".join(PIECE.findall(folded)) == folded.replace(" ", "")
    match = " OR ".join(map(_phrase, phrases)) if known else ""
    return RequiredTerm(match, tuple(map(_needle, phrases)), text, frozenset("".join(phrases[:1]).split()))


def _phrases(text: str) -> Iterator[str]:
    """Yield the tokens that a text which has this one has behind each other: of a name the whole, or its parts."""
    pieces = PIECE.findall(text)
    of_pieces = list(map(of_piece, pieces))
    if pieces and is_japanese(pieces[-1]):  # it may go on
        of_pieces[-1] = of_pieces[-1][: max(len(pieces[-1]) - 1, 1)]
    elif len(pieces) == 1 and of_pieces[0]:
        whole, *parts = of_pieces[0]
        of_pieces = [[whole]]
        yield whole
        if parts and not parts[0].startswith(PART):
            yield " ".join(parts)
    if phrase := " ".join(chain.from_iterable(of_pieces)):
        yield phrase


def _phrase(tokens: str) -> str:
    """Return what asks the index for tokens behind each other; one character is the beginning of a pair."""
    return f'"{tokens}" *' if is_character(tokens) else f'"{tokens}"'


def _needle(tokens: str) -> str:
    return f" {tokens}" if is_character(tokens) else f" {tokens} "
