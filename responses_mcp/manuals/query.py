"""A query as the search sees it: its terms, each with a way to ask the index for it and to find it in a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from responses_mcp.manuals.words import asked, foldable, is_character, is_hiragana, normalise, runs

_STOP_WORD: Final = re.compile(
    "a|an|and|are|as|at|be|been|but|by|can|could|did|do|does|for|from|had|has|have|how|i|if|in|into|is|it|its|me|my|no|"
    "not|of|on|or|our|please|shall|should|so|than|that|the|their|them|then|there|these|they|this|those|to|us|was|we|"
    "were|what|when|where|which|who|whom|why|will|with|would|you|your"
)
_ENDING: Final = re.compile("(?<=...)(?:ations?|ings?|edly|ied|ies|ions?|ed|es|ly|s|e|y)$")  # after a root of three
_MOST_TERMS: Final = 40  # of a query; nobody types more, and a pasted page must not take the time of a hundred finds
_MOST_WORDS: Final = 120  # of the index, for them
_LONGEST_RUN: Final = 32  # characters of Japanese without a mark; more than one word
_KANJI: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_KANA: Final = r"[\u3041-\u3096]"
_LAST_KANA: Final = re.compile(rf"(?<={_KANJI})[いみりきし]$")
_OKURIGANA: Final = re.compile(rf"(?<={_KANJI})(?:[いみりきし](?!{_KANA})|し(?={_KANA}))")
_WHOLE: Final = re.compile(r"(?!_)\w(?:.*(?!_)\w)?")  # begins and ends with what the index takes as words


@dataclass(frozen=True, slots=True)
class Term:
    """A word of the query, folded. `match` asks the index for it; `tokens` are the words it has there.

    `root` is a part of it that every form shares, and `forms` tells its forms in a text of an alphabet; a word of
    Japanese is found as it stands, because nothing marks where it begins.
    """

    text: str
    match: str
    tokens: tuple[str, ...]
    root: str
    forms: re.Pattern[str] | None

    @property
    def is_number(self) -> bool:
        """Tell whether this is a number, or a code with a digit in it."""
        return self.text.isascii() and any(each.isdigit() for each in self.text)

    def hits(self, text: str) -> int:
        """Count where the term, in any form, stands in a folded text."""
        if self.root not in text:
            return 0
        return text.count(self.text) if self.forms is None else len(self.forms.findall(text))


def phrase(words: Sequence[str]) -> str:
    """Return what asks the index for words that follow each other.

    A last word of one character of Japanese is found as the beginning of a word, for the index has each in pairs.
    """
    text = " ".join(words).replace('"', '""').replace("\0", " ")
    return f'"{text}" *' if words and is_character(words[-1]) else f'"{text}"'


def term(text: str) -> Term:
    """Make a term of a folded text."""
    tokens = tuple(asked(text))
    root, forms = text, None
    if text.isascii():
        root = _root(text)
        ending = "[a-z]{0,6}" if text.isalpha() else ""
        part = re.escape(root)
        # The word comes first and what stands before it second: so it is looked for at the speed of str.find.
        forms = re.compile(rf"{part}(?<![a-z0-9](?s:.{{{len(root)}}})){ending}(?![a-z0-9])")
    return Term(text, phrase(tokens), tokens, root, forms)


def terms(query: str) -> tuple[Term, ...]:
    """Return the terms of a query, without the words of grammar unless it has no others."""
    words = [word for run in runs(foldable(normalise(query))) for word in _pieces(run)]
    telling = [word for word in words if not _STOP_WORD.fullmatch(word) and not is_hiragana(word)]
    found: list[Term] = []
    left = _MOST_WORDS
    for word in list(dict.fromkeys(telling or words))[:_MOST_TERMS]:
        each = term(word)
        left -= len(each.tokens)
        if found and left < 0:
            break
        found.append(each)
    return tuple(found)


def _pieces(run: str) -> list[str]:
    if run.isascii():
        return [run] if run.strip("_") else []
    return [run[at : at + _LONGEST_RUN] for at in range(0, len(run), _LONGEST_RUN)]


def _root(word: str) -> str:
    return _ENDING.sub("", word) if word.isalpha() else word


@dataclass(frozen=True, slots=True)
class RequiredTerm:
    """A term that the caller wants in what is found, as given (normalised), with its spellings in folded text.

    `match` asks the index for any of them; it is empty when the index has no word of it. `literal` is set when the
    index does not know all of the term, such as the marks of c++: a text has it only if it has that.
    """

    text: str
    spellings: tuple[Term, ...]
    match: str
    literal: str

    def hits(self, text: str) -> int:
        """Count where it stands in a folded text, as a part of a word too."""
        most = 0
        for each in self.spellings:
            most = max(most, text.count(each.text) or each.hits(text))
        return most


def required_term(text: str) -> RequiredTerm:
    """Make a required term of a normalised text; 取り扱い is found as 取り扱う and 取扱 too."""
    folded = foldable(text)
    forms = dict.fromkeys([folded, _LAST_KANA.sub("", folded), _OKURIGANA.sub("", folded)])
    spellings = tuple(term(each) for each in forms if len(each) > 1 or each == folded != "")
    match = " OR ".join(each.match for each in spellings) if any(map(str.isalnum, folded)) else ""
    return RequiredTerm(text, spellings, match, "" if _WHOLE.fullmatch(folded) else folded)
