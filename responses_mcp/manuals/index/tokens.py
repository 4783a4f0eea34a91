"""Tokens: what the index counts instead of words. The same function makes them of texts and of questions.

A token of an alphabet is a stem without accents. A name is a token as a whole, without its joints, and so are its
parts: `v-on` gives `von`, `v` and `on`; `Array.from` gives `array.from`, `array` and `from`. `E-104` and `E104` are one
token, and so are `wi-fi` and `WiFi`. What capitals tell apart is marked: `getElement` gives `getelement`, `=get` and
`=element`. Japanese is cut into pairs of characters. Signs of code, such as `=>`, are tokens
too.
"""

from __future__ import annotations

import re
import unicodedata
from operator import add
from typing import Final

from responses_mcp.manuals.words import CJK, LONG_VOWEL, stem, unmarked

FORM: Final = 5
"""Names this way of making tokens: an index that was made in another way is made anew."""

PART: Final = "="
"""Stands before a token that is only a part of a name, told apart by capitals or digits."""

TOKENIZER: Final = "ascii tokenchars '!#$%&*+-./:<=>?@^_|~'"
"""What SQLite is given to cut tokens where they were joined: at blanks, and nowhere else."""

# Letters and digits, but for Japanese; to leave it out of all letters would take three times as long.
_LETTERS: Final = (
    r"0-9A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02c1\u0300-\u0374\u0376-\u037d\u0386"
    r"\u0388-\u03f5\u03f7-\u0481\u0483-\u0559\u0561-\u1fff\u2c00-\u2dff\ua000-\uabff\U00010000-\U0001efff"
)
_WORD: Final = f"[{_LETTERS}]+"
_SIGNS: Final = "[!%&*+/:<=>?@^|~.-]{2,}"
_JOINT: Final = r"(?:[-_.]{1,3}|::|'|,(?<=[0-9],)(?=[0-9]{3}(?![0-9])))"
_NAME: Final = rf"{_WORD}(?:{_JOINT}{_WORD})*(?:\+\+|#(?![\w#]))?"
PIECE: Final = re.compile(rf"[{CJK}]+|{_NAME}|{_SIGNS}")
"""What of a text becomes tokens: a run of Japanese, a word or a name of an alphabet, or signs."""

_PARTS: Final = re.compile(_WORD)
FIRST_OF_JAPANESE: Final = "\u3005"
_NO_JOINTS: Final = str.maketrans("", "", "-_',")
_DOTS: Final = re.compile(r"\.{2,}")
_APOSTROPHE: Final = re.compile(r"(?:n't|'(?:s|d|m|t|re|ve|ll))\Z")
_NOT: Final = ("can't", "won't", "cannot")
_HEXADECIMAL: Final = re.compile("0x([0-9a-f]{3,})")
_MIXED: Final = re.compile(r"([a-z]{1,8})([0-9]{1,8})([a-z]{0,4})|([0-9]{1,8})([a-z]{1,4})")
_MARKUP: Final = re.compile(r"[-*./~:|]+|=={3,}|<!-+|-+>|/[>*]+|\*+/")  # signs of Markdown and comments, not of code
_OF_CODE: Final = ("||", "::", "|>", "->")
_LONGEST_SIGNS: Final = 4
_EVEN: Final = re.compile(r"([0-9]{1,4})\.0")  # OAuth 2.0 is OAuth 2
_KANJI: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
# Of two verbs in one, as in 取り扱い and 問い合わせ, each kana may be written or left out.
BETWEEN: Final = "いきしちみりけえせめれっ"
APART: Final = re.compile(f"(?=({_KANJI})[{BETWEEN}]({_KANJI}))")
_MOST_PARTS: Final = 8  # of a name that is a token as a whole
_LONGEST_KEPT: Final = 40  # characters of a piece whose tokens are remembered
_LONGEST_RUN_KEPT: Final = 6  # characters of a run of Japanese; longer ones hardly come again
_MOST_KEPT: Final = 25_000  # chunks; twelve times as many save no time and take 40 MB more

# Each begins at a word and never goes back, so that a text without end is read once.
_CAMEL: Final = re.compile(r"(?<![A-Za-z0-9])(?:[A-Z]*+[a-z0-9]++[A-Z][A-Za-z0-9]*+|[A-Z]{2,}+[a-z]{2,}+[0-9]*+)")
_CAMEL_PART: Final = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]{2,}")


# Marks that are in no piece; between others a text can be cut in advance, because no piece goes over them.
_APART_FROM_ALL: Final = str.maketrans(dict.fromkeys([*map(chr, range(32)), *'"$()[]{};`\\'], " "))
_ENDS: Final = ",.:?!"


class _Kept(dict[str, str]):
    """The tokens of chunks of text, made when first asked for; those of long chunks are not kept."""

    def __missing__(self, chunk: str) -> str:
        if chunk[0] >= FIRST_OF_JAPANESE:
            made, most = " ".join(pairs(chunk)), _LONGEST_RUN_KEPT
        else:
            made, most = self._of_latin(chunk), _LONGEST_KEPT
        if made == chunk:
            made = chunk  # one object in place of two, which halves the memory that a text goes through
        if len(chunk) <= most:
            if len(self) >= _MOST_KEPT:
                forget()
            self[chunk] = made
        return made

    def _of_latin(self, chunk: str) -> str:
        if chunk.isalpha():
            return stem(plain(chunk)) if chunk.islower() else " ".join(_of_latin(chunk))
        if chunk[-1] in _ENDS and chunk[:-1].isalnum():
            return self[chunk[:-1]]
        pieces = PIECE.findall(chunk)
        if pieces == [chunk]:
            return " ".join(_of_latin(chunk))
        return " ".join(filter(None, map(self.__getitem__, pieces)))


_KEPT: Final = _Kept()


def tokens(text: str) -> str:
    """Return the tokens of a prepared text in their order, with single blanks between."""
    ascii_only = text.isascii()
    chunks = text.translate(_APART_FROM_ALL).split() if ascii_only else PIECE.findall(text.replace(LONG_VOWEL, ""))
    return " ".join(filter(None, map(_KEPT.__getitem__, chunks)))


def forget() -> None:
    """Give back the memory of tokens that were made, after many texts."""
    _KEPT.clear()
    stem.cache_clear()


def of_piece(piece: str) -> list[str]:
    """Return the tokens of a piece of text, of a name the whole first."""
    return _KEPT[piece].split()


def _of_latin(piece: str) -> list[str]:
    if not piece[0].isalnum():
        known = len(piece) <= _LONGEST_SIGNS and (piece in _OF_CODE or not _MARKUP.fullmatch(piece))
        return [piece] if known else []
    if piece[-1] in "+#":
        name = piece.rstrip("+#")
        return [piece.lower()] if len(name) == 1 else _of_latin(name)
    folded = plain(piece)
    if folded.isalpha():
        return [stem(folded), *(f"{PART}{part}" for part in camel_parts(piece))]
    if "'" in folded:
        folded = "not" if folded in _NOT else _APOSTROPHE.sub("", folded)
    parts: list[str] = _PARTS.findall(folded.replace(",", ""))
    if len(parts) == 1:
        token = of_word(parts[0])
        return [token, *(f"{PART}{part}" for part in solid_parts(piece) if token == parts[0])]
    if folded.endswith(".0") and (even := _EVEN.fullmatch(folded)) is not None:
        return [even[1], folded]
    of_parts = list(map(of_word, parts))
    if len(parts) > _MOST_PARTS:
        return of_parts
    whole = "".join(parts)
    if "." in folded or ":" in folded:
        whole = _DOTS.sub(".", folded.replace("::", ".")).translate(_NO_JOINTS)
    return [stem(whole) if whole.isalpha() else whole, *of_parts]


def of_word(word: str) -> str:
    """Return the token of a folded word: its stem, or of a hexadecimal number its digits."""
    if word.isalpha():
        return stem(word)
    hexadecimal = _HEXADECIMAL.fullmatch(word) if word[0] == "0" else None
    return hexadecimal[1] if hexadecimal is not None else word


def plain(word: str) -> str:
    """Return a word of an alphabet folded: in lower case, without accents."""
    return word.lower() if word.isascii() else unmarked(word.casefold())


def pairs(run: str) -> list[str]:
    """Return a run of Japanese in pairs of characters, then the last character alone, then 取扱 of 取り扱い.

    So each character begins a token, and one that is asked for alone is found by that.
    """
    found = [*map(add, run, run[1:]), run[-1]]
    if len(run) > 2:  # characters, two of them kanji
        found += map("".join, APART.findall(run))
    return found


def solid_parts(word: str) -> list[str]:
    """Return the tokens of what capitals or digits tell apart in a word, as in getElementById, OAuth2 and 10ms."""
    return list(dict.fromkeys([*camel_parts(word), *mixed_parts(word)]))


def camel_parts(word: str) -> list[str]:
    """Return the tokens of the words that capitals tell apart in a name, none of another word."""
    if not _CAMEL.fullmatch(word):
        return []
    return [stem(part.lower()) for part in _CAMEL_PART.findall(word) if len(part) > 1]


def mixed_parts(word: str) -> list[str]:
    """Return the tokens of the letters and the digits of a word that has both, none of another word."""
    mixed = _MIXED.fullmatch(plain(word)) if word.isascii() else None
    return [stem(part) for part in mixed.groups() if part] if mixed is not None else []


def is_character(token: str) -> bool:
    """Tell whether a token is one character of Japanese."""
    return len(token) == 1 and not token.isascii() and unicodedata.category(token) == "Lo"
