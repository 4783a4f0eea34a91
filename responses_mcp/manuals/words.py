"""Words: how texts and questions are folded, where words end, and what the forms of one word share."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

# Soft hyphens, zero-width characters, marks of direction and of trade, variation selectors; and halves of surrogate
# pairs, which no database can hold.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2120\u2122\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]+"
)
# Marks on one letter are sorted by NFKC in time in proportion to their square, so it is given pieces. Each ends before
# a character that joins nothing before it, unless there is none in 500.
_PIECE: Final = re.compile("(?s:.{1,500})[^\0-\x7f\u3001\u3002\u4e00-\u9fff]{0,500}")
_LONGEST_WORD: Final = 200  # characters
_ACCENTS: Final = re.compile("([a-z\u0370-\u03ff\u0400-\u04ff])[\u0300-\u036f]+")
_DASH: Final = re.compile("[\u2010-\u2015\u2043\u2212]")  # those that NFKC leaves

# Kanji and kana, without the long vowel mark: writers put it or leave it out at will (コレクタ, コレクター).
LONG_VOWEL: Final = "ー"
CJK: Final = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_KATAKANA: Final = r"[\u30a1-\u30fa\u30fd-\u30ff]"
_SCRIPT_RUN: Final = re.compile(
    r"[\u3041-\u3096\u309d-\u309f]+"  # hiragana
    rf"|{_KATAKANA}+"
    r"|[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"  # kanji, hangul
    rf"|[^\W{CJK}]+"  # words of alphabets, and numbers
)
_HIRAGANA: Final = re.compile(r"[\u3041-\u3096\u309d-\u309f]+")

# Folded ones; signs that Unicode has among them, such as ÷, are none.
_LETTERS: Final = r"a-z\u00df-\u00f6\u00f8-\u02af\u0370-\u0374\u0376-\u03f5\u03f7-\u0481\u048a-\u052f"
_INFLECTED: Final = re.compile(f"[{_LETTERS}]{{0,47}}[a-z]")  # what is longer is no word of a language
_VOWEL: Final = re.compile("[aeiouy]")
_BEAT: Final = re.compile("[aeiouy]+[^aeiouy]+")  # vowels and what follows them: about a syllable
_DERIVED: Final = ("ly", "al", "ity", "ment", "ness")
_SHORT: Final = re.compile(r"(?<![aeiouy])[aeiouy][^aeiouywx]\Z")
_DOUBLED: Final = re.compile(r"(?<=..)([^aeiouylsz])\1\Z")
_MOST_REMEMBERED: Final = 4096

_LIKE_LATIN: Final = (  # their plurals look like status or analysis, or are too short for the rules
    "ad", "ai", "alibi", "bureau", "cd", "db", "emoji", "guru", "id", "ip", "kanji", "menu", "pc", "pr", "qa",
    "submenu", "taxi", "tv", "ui", "vcpu", "vm", "wiki",
)  # fmt: skip
_LIKE_PLURALS: Final = ("alias", "atlas", "bias", "bus", "canvas", "gas", "lens")
_NOUNS: Final = {
    **{f"{noun}s": noun for noun in _LIKE_LATIN},
    **{form: noun for noun in _LIKE_PLURALS for form in (noun, f"{noun}es")},
}


def normalise(text: str) -> str:
    """Fold what writers spell in several ways: width, case, hyphens, apostrophes, blanks, characters nobody sees."""
    folded = text.lower() if text.isascii() else prepared(text).casefold()
    return " ".join(folded.split())


def prepared(text: str) -> str:
    """Return a text as tokens are made of it: folded like `normalise`, but with its capitals and blanks."""
    if text.isascii():
        return text
    pieces = _PIECE.findall(_UNSEEN.sub("", text))
    return _DASH.sub("-", "".join(unicodedata.normalize("NFKC", each) for each in pieces)).replace("\u2019", "'")


def unmarked(word: str) -> str:
    """Return a word without the marks on its letters: zurich for z\u00fcrich. Kana keep theirs."""
    if len(word) > _LONGEST_WORD:  # time goes with the square of the marks on one letter
        return "".join(unmarked(word[at : at + _LONGEST_WORD]) for at in range(0, len(word), _LONGEST_WORD))
    taken_apart = unicodedata.normalize("NFD", word)
    if taken_apart == word:
        return word
    return unicodedata.normalize("NFC", _ACCENTS.sub(r"\1", taken_apart))


class _Alike(dict[int, str]):
    """What single characters become, for `str.translate`: themselves, if that is not one character."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = " " if character.isspace() and character != "\n" else prepared(character)
        if len(self) >= _MOST_REMEMBERED:
            self.clear()
        self[code] = folded if len(folded) == 1 else character
        return self[code]


_ALIKE: Final = _Alike({ord("\n"): "\n"})


def alike(text: str) -> str:
    """Return a text as `prepared` does, and as long as before, so that places in it are places in the text."""
    return text if text.isascii() else text.translate(_ALIKE)


def foldable(text: str) -> str:
    """Return normalised text as it is searched: without long vowel marks."""
    return text if text.isascii() else text.replace(LONG_VOWEL, "")


def runs(text: str) -> list[str]:
    """Cut searched text into words: at white space and punctuation, and where the script changes."""
    return _SCRIPT_RUN.findall(text)


def is_hiragana(word: str) -> bool:
    """Tell whether a word is of hiragana alone, which in Japanese is mostly grammar."""
    return _HIRAGANA.fullmatch(word) is not None


@cache  # `tokens.forget` empties it
def stem(word: str) -> str:
    """Return what the forms of a folded word share: committed, commits and commit are one word.

    These are the inflections of Porter's stemmer, the nouns in -ion, -ity, -ment and -ness, and what -al and -ly make
    of words, but no further derivations: standardization is a form of standardize and not of standard.
    """
    if len(word) < 4 or word in _NOUNS or not _INFLECTED.fullmatch(word):
        return _NOUNS.get(word, word)
    if len(word) == 4 and word.endswith(("is", "us")):
        return word[:-1]  # KPIs and MTUs; what is left of this, plus or axis is no other word
    word = without_inflection(word)
    if word.endswith("ie") and len(word) > 4:
        word = f"{word[:-2]}y"  # as those of policy, the plurals of cookie and movie end in -ies
    for ending in _DERIVED:
        if word.endswith(ending) and beats(word.removesuffix(ending)) > 1:
            word = word.removesuffix(ending)
    if len(word) > 3:
        word = without_final_e(word)
    if word.endswith(("sion", "tion")) and beats(word[:-3]) > 1:
        word = word[:-3]
    if word.endswith("at") and beats(word[:-2]) > 1:
        word = word[:-2]
    if word.endswith("ll") and beats(word) > 1:
        word = word[:-1]
    return _DOUBLED.sub(r"\1", word)


def without_inflection(word: str) -> str:
    """Return a folded word of four letters or more without -s, -ed or -ing: policies is policy, and mapped is map."""
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    if word.endswith("ied") and len(word) > 4:
        word = word[:-3] + "y"
    root = word.removesuffix("ing").removesuffix("ed")
    if root != word and not root.endswith(("e", "mb")) and _VOWEL.search(root):
        word = _DOUBLED.sub(r"\1", root)
        if word == root and is_short(root):
            word += "e"  # noting is a form of note, and not of not
    return word


def without_final_e(word: str) -> str:
    """Return a folded word without an e at its end, where another vowel is left, and no short syllable."""
    if word.endswith("e") and _VOWEL.search(word[:-1]) and not is_short(word[:-1]):
        return word[:-1]
    return word


def beats(root: str) -> int:
    """Return how often a vowel is followed by something else in a part of a word: about its syllables."""
    return len(_BEAT.findall(root))


def is_short(root: str) -> bool:
    """Tell whether a word is like not or hop, to which note and hope add a letter, and hopping another one."""
    return beats(root) == 1 and _SHORT.search(root) is not None
