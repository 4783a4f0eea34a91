"""Words: how texts and queries are folded, and cut into what the index counts.

`FOLDING` names this way of doing it: an index remembers it, and one that was made in another way is made anew.
"""

from __future__ import annotations

import re
import unicodedata
from operator import add
from typing import Final

FOLDING: Final = 2

# Soft hyphens, zero-width characters, marks of direction, variation selectors; and halves of surrogate pairs, which no
# database can hold.
_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e01ef]+"
)
# Marks on one letter are sorted by NFKC in time in proportion to their square, so it is given pieces. Each ends before
# a character that joins nothing before it, unless there is none in 500.
_PIECE: Final = re.compile("(?s:.{1,500})[^\0-\x7f\u3001\u3002\u4e00-\u9fff]{0,500}")
_DASH: Final = re.compile("[\u2010-\u2015\u2043\u2212]")  # those that NFKC leaves

# Kanji and kana, without the long vowel mark: writers put it or leave it out at will (コレクタ, コレクター).
_LONG_VOWEL: Final = "ー"
_CJK: Final = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fd-\u30ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_CJK_RUN: Final = re.compile(f"[{_CJK}]+")
_SCRIPT_RUN: Final = re.compile(
    r"[\u3041-\u3096\u309d-\u309f]+"  # hiragana
    r"|[\u30a1-\u30fa\u30fd-\u30ff]+"  # katakana
    r"|[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"  # kanji, hangul
    rf"|[^\W{_CJK}]+"  # words of alphabets, and numbers
)
_HIRAGANA: Final = re.compile(r"[\u3041-\u3096\u309d-\u309f]+")


def normalise(text: str) -> str:
    """Fold what writers spell in several ways: width, case, hyphens, white space, characters that nobody sees."""
    if text.isascii():
        folded = text.lower()
    else:
        pieces = (unicodedata.normalize("NFKC", piece) for piece in _PIECE.findall(_UNSEEN.sub("", text)))
        folded = _DASH.sub("-", "".join(pieces)).casefold()
    return " ".join(folded.split())


def foldable(text: str) -> str:
    """Return normalised text as it is searched: without long vowel marks."""
    return text if text.isascii() else text.replace(_LONG_VOWEL, "")


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


def runs(text: str) -> list[str]:
    """Cut searched text into words: at white space and punctuation, and where the script changes."""
    return _SCRIPT_RUN.findall(text)


def is_hiragana(word: str) -> bool:
    """Tell whether a word is of hiragana alone, which in Japanese is mostly grammar."""
    return _HIRAGANA.fullmatch(word) is not None
