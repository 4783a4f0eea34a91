"""The terms of a query, each with a way to ask the index for it and to find it in a text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from typing import Final

from responses_mcp.manuals.search.families import relatives
from responses_mcp.manuals.words import (
    CJK,
    KATAKANA_WORD,
    LETTER,
    LONG_VOWEL,
    asked,
    foldable,
    forms,
    is_character,
    is_hiragana,
    names,
    normalise,
    runs,
)

_STOP_WORD: Final = re.compile(
    "a|about|am|an|and|any|are|as|at|be|been|being|between|but|by|can|could|did|do|does|for|from|had|has|have|he|her|his|"
    "how|i|if|in|into|is|it|its|may|me|might|my|no|not|of|on|or|our|please|shall|she|should|so|some|such|than|that|the|"
    "their|them|then|there|these|they|this|those|through|to|us|was|we|were|what|when|where|which|who|whom|whose|why|will|"
    "with|would|you|your"
)
# The index takes can't, it's and I've for two words each, of which the second says nothing.
_CONTRACTED: Final = re.compile(r"\b(?:can|won)['\u2019]t\b|(?<=[a-z])(?:n['\u2019]t|['\u2019](?:[sdm]|re|ve|ll))\b")
_WHAT_DOES: Final = re.compile(r"\bwhat do(?:es)?\b")
_MEAN: Final = re.compile(r"\bmean\b(?= ?(?:$|[^\s\w]|(?:and|by|for|here|if|in|on|to|when|with)\b))")
# "How long polling works" asks for long polling.
_HOW_MUCH: Final = re.compile(
    r"(?<=\bhow )(?:(?:far|long)(?=\W*\Z|\s+(?:an?|after|are|before|can|could|did|do|does|for|has|have|i|in|is|it|may"
    r"|must|should|the|they|to|until|was|we|were|will|would|you)\b)|(?:many|much|often)(?![-\w]))"
)
_MEANING_OF: Final = re.compile(r"\bmeaning(?= of\b)")
_MOST_QUERIES: Final = 16  # that are kept: each manual is asked the same, which takes milliseconds to take apart
_MOST_SPELLED: Final = 256  # words, the same for each manual
_MOST_TERMS: Final = 40  # of a query; nobody types more, and a pasted page must not take the time of a hundred finds
_MOST_WORDS: Final = 120  # of the index, for them
_MOST_COUNTED: Final = 80  # terms
_MOST_TOKENS: Final = 32  # of a word, such as a name of many parts, by which the index is asked for it
_LONGEST_RUN: Final = 32  # characters of Japanese without a mark; more than one word
_KANJI: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_KANA: Final = r"[\u3041-\u3096]"
_LAST_KANA: Final = re.compile(rf"(?<={_KANJI})[いみりきし]$")
_OKURIGANA: Final = re.compile(rf"(?<={_KANJI})(?:[いみりきし](?!{_KANA})|し(?={_KANA}))")
# Of two verbs in one, as in 取り扱い and 問い合わせ, each kana may be written or left out.
_BETWEEN: Final = "いきしちみりけえせめれっ"
_PAIR: Final = re.compile(f"{_KANJI}{{2}}")
# Words of one kanji that say little, and mostly stand for others.
_VAGUE: Final = "何方事時物者等為様際私今"
# Where a word of kanji ends: before a particle, or what is no kana; 使う goes on.
_WORD_ENDS: Final = rf"(?=[をはがのにとでもやへ]|(?!{_KANA}|[\u3005-\u3007\u3400-\u9fff]))"
_ALONE: Final = re.compile(f"(?<![\u3005-\u3007\u3400-\u9fff]){_KANJI}{_WORD_ENDS}")
_ENDED: Final = re.compile(_WORD_ENDS)
# Not behind a number, as in 1,000円, nor behind kana of the same word, as in 引き出物.
_BEGINS: Final = re.compile(rf"(?<![0-9])(?:(?<=[をはがのにとでもやへ])|(?<!{_KANA}))")
_OF_KANJI: Final = re.compile(f"{_KANJI}+")
_APART: Final = re.compile(f"(?=({_KANJI})[{_BETWEEN}]({_KANJI}))")
_COMPOUND: Final = re.compile(f"({_KANJI})[{_BETWEEN}]?({_KANJI})(?:わせ|[{_BETWEEN}])?")
_WHOLE: Final = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")  # what the index takes as one word, or as pairs of a run
_RUN: Final = re.compile(rf"[{CJK}]+|[^\W{CJK}]+")
# A code such as e-104 or utf-8, if it has a letter and a digit: one word, though the index has its parts.
_CODE: Final = re.compile(r"(?<![0-9a-z_-])[0-9a-z]{1,16}(?:-[0-9a-z]{1,16}){1,4}(?![0-9a-z_-])")
_SHORT_CODE: Final = re.compile(r"([a-z]{1,4})-?([0-9]{1,8})(?:-?([a-z]{1,2}))?")
_JOINING: Final = re.compile("[_-]")
_JAPANESE: Final = re.compile(f"[{CJK}]")
_HIRAGANA: Final = re.compile("[\u3041-\u3096\u309d-\u309f]")
_TOGETHER: Final = 0.3  # the power of the number of its pairs by which each of them weighs less
RELATED: Final = 0.5
"""What a word counts where another of its family stands."""

_MIXED: Final = 0.3  # the weight of a pair that is half grammar
_LONE: Final = 0.6  # of a word of one kanji, which stands in others, too
_PART_OF_NAME: Final = 0.5
_CLOSED_UP: Final = 0.3  # of a pair that the query has with a kana in it
_ASCII: Final = "[0-9a-z]"  # in a pattern; to compile one with all letters takes eight times as long
_LETTER: Final = re.compile(LETTER)
_IN_LETTERS: Final = re.compile(f"{LETTER}+")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query, folded. `match` asks the index for it in any form; `tokens` are the words it has there.

    `root` is a part of it that every form shares; `pattern` finds words that begin with it, of which the `forms` are
    this word, and the `relatives` among them half of it. Without a pattern, as with Japanese, it is found as it stands,
    because nothing marks where it begins, or, if it is two kanji, as `compound` has it: with a kana between them, too.
    `weight` is what it counts for beside others that are as rare; `part_of` is the name that it is a part of.
    """

    text: str
    match: str
    tokens: tuple[str, ...]
    root: str
    forms: frozenset[str]
    pattern: re.Pattern[str] | None
    weight: float = 1.0
    part_of: str = ""
    compound: re.Pattern[str] | None = None
    relatives: frozenset[str] = frozenset()

    @property
    def is_in_letters(self) -> bool:
        """Tell whether this is a word, a number or a code of an alphabet that has spaces between words."""
        return self.text.isascii() or _IN_LETTERS.fullmatch(self.text) is not None

    @property
    def is_number(self) -> bool:
        """Tell whether this is a number, or a code with a digit in it."""
        return self.text.isascii() and any(each.isdigit() for each in self.text)

    def shown(self, query: str) -> str:
        """Return it as a query that has it is written, but for width and case."""
        return next(iter(as_written(self.text, normalise(query))), self.text)

    def hits(self, text: str) -> float:
        """Count where the term, in any form, stands in a folded text; a relative of it counts half."""
        if self.pattern is None and (self.compound is None or self.text[1] not in text):
            return text.count(self.text)
        found = self.words(text)
        if not (found and self.relatives):
            return len(found)
        return len(found) - (1 - RELATED) * sum(map(self.relatives.__contains__, found))

    def words(self, text: str) -> list[str]:
        """Return it as it stands in a normalised text, once for each place."""
        if self.compound is not None:
            return self.compound.findall(text)
        if self.pattern is None:
            return as_written(self.text, text)
        if self.root not in text:
            return []
        if text.isascii():
            return list(filter(self.forms.__contains__, self.pattern.findall(text)))
        return [text[begin:end] for begin, end in self.places(text)]

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where it begins and ends in a folded text."""
        if self.pattern is not None:
            for each in self.pattern.finditer(text):
                begin, end = each.span()
                if each[0] in self.forms and not (
                    _LETTER.match(text, end) or (begin and _LETTER.match(text, begin - 1))
                ):
                    yield begin, end
            return
        if self.compound is not None:
            yield from (each.span() for each in self.compound.finditer(text))
            return
        at = text.find(self.text)
        while at >= 0:
            yield at, at + len(self.text)
            at = text.find(self.text, at + 1)


def as_written(folded: str, text: str) -> list[str]:
    """Return a folded text where it stands in a normalised one, with the long vowel marks that it has there."""
    if LONG_VOWEL not in text:
        return [folded] * text.count(folded)
    pattern = re.compile("".join(f"{re.escape(each)}{LONG_VOWEL}*" for each in folded))
    return pattern.findall(text)


def longest_parts(word: str, text: str) -> list[str]:
    """Return the parts of a word, of two characters or more, that a text holds: from the left, as long as can be."""
    parts: list[str] = []
    at = 0
    while at < len(word) - 1:
        end = at + 2
        if word[at:end] not in text:
            at += 1
            continue
        while end < len(word) and word[at : end + 1] in text:
            end += 1
        parts.append(word[at:end])
        at = end
    return parts


def phrase(words: Sequence[str]) -> str:
    """Return what asks the index for words that follow each other.

    A last word of one character of Japanese is found as the beginning of a word, for the index has each in pairs.
    """
    text = " ".join(words).replace('"', '""').replace("\0", " ")
    return f'"{text}" *' if words and is_character(words[-1]) else f'"{text}"'


def any_of(forms_of_word: Sequence[str]) -> str:
    """Return what asks the index for a word in any of some forms."""
    each = [phrase([form]) for form in forms_of_word]
    return each[0] if len(each) == 1 else f"({' OR '.join(each)})"


def spellings(text: str) -> list[str]:
    """Return two kanji as they are and with each kana that may stand between them; other texts as they are."""
    return [text, *(f"{text[0]}{kana}{text[1]}" for kana in _BETWEEN)] if _PAIR.fullmatch(text) else [text]


def term(text: str, weight: float = 1.0, family: frozenset[str] = frozenset()) -> Term:
    """Make a term of a folded text. The words of its `family` are found where it is looked for in texts, too."""
    # The index has each part of a name as a word, and would look for a thousand of them behind each other.
    tokens = tuple("_".join(each.split("_")[:_MOST_TOKENS]) for each in asked(text))[:_MOST_TOKENS]
    every = forms(text)
    match = any_of(sorted(every)) if tokens == (text,) else phrase(tokens)
    every |= family
    if _PAIR.fullmatch(text):
        match = f"({' OR '.join(phrase(asked(each)) for each in spellings(text))})"
        compound = re.compile(f"{text[0]}[{_BETWEEN}]?{text[1]}")
        return Term(text, match, tokens, text[0], every, None, weight, compound=compound)
    if not text.isascii() and len(every) == 1:
        return Term(text, match, tokens, text, every, None, weight)
    first, last = min(every), max(every)
    root = first[: next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)]
    more = max(map(len, every)) - len(root)
    # The word comes first and what stands before it second: so it is looked for at the speed of str.find.
    pattern = rf"{re.escape(root)}(?<!{_ASCII}(?s:.{{{len(root)}}})){_ASCII}{{0,{more}}}(?!{_ASCII})"
    return Term(text, match, tokens, root, every, re.compile(pattern), weight, relatives=family)


@lru_cache(_MOST_QUERIES)
def words(query: str) -> tuple[Term, ...]:
    """Return the words of a query as a reader sees them, without those of grammar unless it has no others."""
    text = _asked_for(query)
    every = [word for run in _with_codes(text, runs) for word in _pieces(run)]
    telling = [word for word in every if not is_grammar(word)]
    found: list[Term] = []
    left = _MOST_WORDS
    for word in list(dict.fromkeys(telling or every))[:_MOST_TERMS]:
        each = term(word)
        left -= len(each.tokens)
        if found and left < 0:
            break
        found.append(each)
    return tuple(found)


@lru_cache(_MOST_QUERIES)
def terms(query: str) -> tuple[Term, ...]:
    """Return what of a query is counted: its words, parts of names, and its Japanese in pairs of characters.

    A pair with hiragana is half grammar (の設, する), and a part of a name says less than the whole, so they weigh
    less, as do 取扱 where the query has 取り扱, and the pairs of a long word of katakana, which mostly come together;
    hiragana alone counts only in a query that has nothing else.
    """
    weights = dict[str, float]()
    parts = dict[str, str]()
    for run in _with_codes(_asked_for(query), _RUN.findall):
        if not _JAPANESE.match(run):
            if run.strip("_") and not is_grammar(run):
                weights[run] = 1.0
                parts.update(dict.fromkeys(_JOINING.split(run), run))
                for other in other_spellings(run):
                    weights.setdefault(other, 1.0)
                    parts[other] = run
            continue
        together = {
            word[at : at + 2]: (len(word) - 1) ** -_TOGETHER
            for word in KATAKANA_WORD.findall(run)
            for at in range(len(word) - 1)
        }
        for token in asked(run):
            if not is_hiragana(token):
                weights.setdefault(token, _MIXED if _HIRAGANA.search(token) else together.get(token, 1.0))
        for word in _ALONE.findall(run):
            if word not in _VAGUE:
                weights.setdefault(word, _LONE)
        for first, second in _APART.findall(run):
            weights.setdefault(first + second, _CLOSED_UP)
    for name, joined in names(query).items():
        parts.update(dict.fromkeys(joined, foldable(normalise(name))))
    for part in filter(None, parts):
        weights.setdefault(part, _PART_OF_NAME)
    found = [term(text, weight, relatives(text)) for text, weight in islice(weights.items(), _MOST_COUNTED)]
    return tuple(replace(each, part_of=parts.get(each.text, "")) for each in found) or words(query)


def _asked_for(query: str) -> str:
    return _without_asking(_CONTRACTED.sub("", foldable(normalise(query))))


def _without_asking(text: str) -> str:
    """Leave out what says how it is asked, if there are other words.

    That is `mean` in "what does e-104 mean", `meaning` in "meaning of e-104", and `long` in "how long does it take".
    """
    shorter = _HOW_MUCH.sub("", _MEANING_OF.sub("", text))
    asked = _WHAT_DOES.search(shorter)
    for last in deque(_MEAN.finditer(shorter, asked.end()) if asked else (), maxlen=1):
        shorter = f"{shorter[: last.start()]} {shorter[last.end() :]}"
    return text if all(map(is_grammar, runs(shorter))) else shorter


def _with_codes(text: str, cut: Callable[[str], list[str]]) -> list[str]:
    """Cut a folded text, but not the codes in it."""
    found: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        if _has_letter_and_digit(code[0]):
            found += [*cut(text[at : code.start()]), code[0]]
            at = code.end()
    return [*found, *cut(text[at:])]


@lru_cache(_MOST_SPELLED)
def other_spellings(code: str) -> tuple[str, ...]:
    """Return e-104 for e104 and e104 for e-104, as people ask for one where the other is written; none of no code.

    Of e104a there are e-104a, e104-a and e-104-a.
    """
    found = _SHORT_CODE.fullmatch(code)
    if found is None:
        return ()
    first, *others = filter(None, found.groups())
    every = (first + "".join(rest) for rest in product(*((each, f"-{each}") for each in others)))
    return tuple(each for each in every if each != code)


def counted(asked: Sequence[Term], having: Mapping[str, int]) -> list[Term]:
    """Return the terms of a question, but for spellings of a code that nobody has: of these one, if nobody has any."""
    there = {each.text for each in asked if having[each.match]}
    found: list[Term] = []
    for each in asked:
        if having[each.match] or there.isdisjoint(other_spellings(each.text)):
            found.append(each)
            there.add(each.text)
    return found


def is_whole(word: str, query: str) -> bool:
    """Tell whether kanji of a query are sure to be a word, as before a particle; 決 of 決まり is none."""
    text = normalise(query)
    places = (match.span() for match in _OF_KANJI.finditer(text) if match[0] == word)
    return any(_BEGINS.match(text, begin) and _ENDED.match(text, end) for begin, end in places)


def _has_letter_and_digit(code: str) -> bool:
    return any(map(str.isdigit, code)) and any(map(str.isalpha, code))


def is_grammar(word: str) -> bool:
    """Tell whether a folded word says nothing of what is asked for."""
    return _STOP_WORD.fullmatch(word) is not None or is_hiragana(word)


def _pieces(run: str) -> list[str]:
    if run.isascii():
        return [run] if run.strip("_") else []
    return [run[at : at + _LONGEST_RUN] for at in range(0, len(run), _LONGEST_RUN)]


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """A term that the caller wants in what is found, as given (normalised), with its spellings in folded text.

    `match` asks the index for any of them in any form, `exact` for the first as it is written; they are empty when the
    index has no word of it. `literal` is set when the index does not know all of the term, such as the marks of c++ and
    function_a: a text has it only if it has that.
    """

    text: str
    spellings: tuple[Term, ...]
    match: str
    exact: str
    literal: str

    def hits(self, text: str) -> int:
        """Count where it stands in a folded text, as a part of a word too."""
        most = 0
        for each in self.spellings:
            if each.root in text:
                most = max(most, text.count(each.text) or len(each.words(text)))
        return most


def required_term(text: str) -> RequiredTerm:
    """Make a required term of a normalised text; 取り扱い is found as 取り扱う and 取扱 too, and E104 as E-104.

    So is 引っ越し as 引越, which stands for its other spellings.
    """
    folded = foldable(text)
    codes = other_spellings(folded)
    compound = _COMPOUND.fullmatch(folded)
    pair = "".join(compound.groups()) if compound else folded
    forms = dict.fromkeys([folded, _LAST_KANA.sub("", folded), _OKURIGANA.sub("", folded), pair, *codes])
    spellings = tuple(term(each) for each in forms if len(each) > 1 or each == folded != "")
    match = exact = ""
    if any(map(str.isalnum, folded)):
        match, exact = " OR ".join(each.match for each in spellings), phrase(spellings[0].tokens)
    return RequiredTerm(text, spellings, match, exact, "" if codes or _WHOLE.fullmatch(folded) else folded)
