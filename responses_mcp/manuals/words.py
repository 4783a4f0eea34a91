"""Words: how texts and queries are folded, cut into what the index counts, and which words are forms of one.

`FOLDING` names this way of doing it: an index remembers it, and one that was made in another way is made anew.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain
from operator import add
from typing import Final

FOLDING: Final = 8

# Soft hyphens, zero-width characters, marks of direction, variation selectors; and halves of surrogate pairs, which no
# database can hold.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]+"
)
# Marks on one letter are sorted by NFKC in time in proportion to their square, so it is given pieces. Each ends before
# a character that joins nothing before it, unless there is none in 500.
_PIECE: Final = re.compile("(?s:.{1,500})[^\0-\x7f\u3001\u3002\u4e00-\u9fff]{0,500}")
# What NFKC would join to the word before it: marks of trade, and the numbers of notes. Units as in km² stay whole.
_NOTE: Final = "[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]"
_RAISED: Final = re.compile(rf"[\u2120\u2122]+|(?<=[A-Za-z]{{3}})(?![\u00b2\u00b3]){_NOTE}+|(?<=[A-Za-z]{{4}}){_NOTE}+")
_DASH: Final = re.compile("[\u2010-\u2015\u2043\u2212]")  # those that NFKC leaves

# Kanji and kana, without the long vowel mark: writers put it or leave it out at will (コレクタ, コレクター).
LONG_VOWEL: Final = "ー"
CJK: Final = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_KATAKANA: Final = r"[\u30a1-\u30fa\u30fd-\u30ff]"
_CJK_RUN: Final = re.compile(f"[{CJK}]+")
_SCRIPT_RUN: Final = re.compile(
    r"[\u3041-\u3096\u309d-\u309f]+"  # hiragana
    rf"|{_KATAKANA}+"
    r"|[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"  # kanji, hangul
    rf"|[^\W{CJK}]+"  # words of alphabets, and numbers
)
KATAKANA_WORD: Final = re.compile(f"{_KATAKANA}{{3,}}")
"""A word that somebody chose to write so, and that is cut as meant, unlike most of Japanese."""
_HIRAGANA: Final = re.compile(r"[\u3041-\u3096\u309d-\u309f]+")

# Each begins at a word and never goes back, so that a text without end is read once.
_JOINED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[A-Z]*+[a-z0-9]++[A-Z][A-Za-z0-9]*+|[A-Z]{2,}+[a-z]{2,}+[0-9]*+|0[xX][0-9A-Fa-f]{3,}+)"
)
# The x of 0xc0000005 belongs to no part, or its digits would be cut at the first that is a letter.
_PART: Final = re.compile(
    r"(?<=\A0[xX])[0-9A-Fa-f]{3,}|(?!(?<=\A0)[xX][0-9A-Fa-f]{3})(?:[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]{2,})"
)

# Folded ones; signs that Unicode has among them, such as ÷, are none.
_LETTERS: Final = r"a-z\u00df-\u00f6\u00f8-\u02af\u0370-\u0374\u0376-\u03f5\u03f7-\u0481\u048a-\u052f"
LETTER: Final = f"[0-9{_LETTERS}]"
"""What goes on a folded word of an alphabet whose words have endings."""
_INFLECTED: Final = re.compile(f"[{_LETTERS}]{{0,47}}[a-z]")  # what is longer is no word of a language
_VOWEL: Final = re.compile("[aeiouy]")
_BEAT: Final = re.compile("[aeiouy]+[^aeiouy]+")  # vowels and what follows them: about a syllable
_SHORT: Final = re.compile(r"(?<![aeiouy])[aeiouy][^aeiouywx]\Z")
_DOUBLED: Final = re.compile(r"(?<=..)([^aeiouylsz])\1\Z")
_ENDINGS: Final = ("", "e", "s", "es", "ed", "ing", "ings", "ion", "ions")
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
    if text.isascii():
        folded = text.lower()
    else:
        pieces = (
            unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(without_raised(_UNSEEN.sub("", text)))
        )
        folded = _DASH.sub("-", "".join(pieces)).replace("\u2019", "'").casefold()
    return " ".join(folded.split())


def without_raised(text: str) -> str:
    """Return a text as written with blanks for what is raised behind its words, as many as there were characters."""
    return _RAISED.sub(lambda raised: " " * len(raised[0]), text)


def foldable(text: str) -> str:
    """Return normalised text as it is searched: without long vowel marks."""
    return text if text.isascii() else text.replace(LONG_VOWEL, "")


def _bigrams(run: re.Match[str]) -> str:
    text = run[0]
    return f" {' '.join(map(add, text, text[1:]))} {text[-1]} "


def spaced(text: str) -> str:
    """Return searched text as the index takes it: its Japanese in two-character words, then the last character alone.

    So each character begins a word, and one that is asked for alone is found by that.
    """
    return text if text.isascii() else _CJK_RUN.sub(_bigrams, text)


def asked(text: str) -> list[str]:
    """Return the words by which the index finds searched text, also where the last of them goes on."""
    words = spaced(text).split()
    if is_character(text[-1:]) and len(words) > 1 and len(words[-2]) > 1 and words[-2].endswith(text[-1]):
        words.pop()
    return words


def is_character(word: str) -> bool:
    """Tell whether a word is one character of Japanese."""
    return len(word) == 1 and _CJK_RUN.match(word) is not None


def names(text: str) -> dict[str, list[str]]:
    """Return the words that are joined in each name of a text as it is written: get, element, by, id of getElementById.

    Those that an underscore or a dot joins are words for the index anyway.
    """
    found = dict.fromkeys(_JOINED.findall(text))
    return {name: [each.lower() for each in _PART.findall(name) if len(each) > 1] for name in found}


def parts_of_names(text: str) -> list[str]:
    """Return the words that are joined in the names of a text, each once."""
    return list(dict.fromkeys(chain.from_iterable(names(text).values())))


def runs(text: str) -> list[str]:
    """Cut searched text into words: at white space and punctuation, and where the script changes."""
    return _SCRIPT_RUN.findall(text)


def is_hiragana(word: str) -> bool:
    """Tell whether a word is of hiragana alone, which in Japanese is mostly grammar."""
    return _HIRAGANA.fullmatch(word) is not None


def stem(word: str) -> str:
    """Return what the forms of a folded word share: committed, commits and commit are one word.

    These are the inflections of Porter's stemmer and the nouns in -ion, but no further derivations: standardization is
    a form of standardize and not of standard.
    """
    if len(word) < 4 or word in _NOUNS or not _INFLECTED.fullmatch(word):
        return _NOUNS.get(word, word)
    if len(word) == 4 and word.endswith(("is", "us")):
        return word[:-1]  # KPIs and MTUs; what is left of this, plus or axis is no other word
    word = without_inflection(word)
    if word.endswith("ie") and len(word) > 4:
        word = f"{word[:-2]}y"  # as those of policy, the plurals of cookie and movie end in -ies
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


@lru_cache(_MOST_REMEMBERED)
def forms(word: str) -> frozenset[str]:
    """Return the forms of a folded word, which have its stem: what they are, no text and no index is asked."""
    if not _INFLECTED.fullmatch(word):
        return frozenset([word])
    shared = stem(word)
    bases = {shared, shared.removesuffix("e"), f"{shared}at"}
    if _SHORT.search(shared):
        bases.add(shared + shared[-1])
    if shared.endswith("y"):
        bases.add(f"{shared[:-1]}i")
    return frozenset(each for base in bases for ending in _ENDINGS if stem(each := base + ending) == shared) | {word}
