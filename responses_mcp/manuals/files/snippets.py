"""Snippets: a line or two of a file around a place, cut where a reader would cut them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

LONGEST: Final = 200
"""Characters of a snippet."""

_CUT: Final = "…"
_ROOM_BEFORE: Final = 3  # a third of the room is for what stands before the match
_LOST: Final = 2  # up to a half of a side is given up for a good place to cut
_RULE: Final = re.compile(r"(?<=\n)[-|: \t]++(?=\n)")  # a line that has no words, as below the heads of a table
_BLANK: Final = re.compile(r"\s+")
_GOOD_CUTS: Final = ("。！？!?．", " ", "、，」』）)]}")  # behind which to cut, the best first; Japanese has no blanks
_JOINER: Final = "\u200d"  # of several emoji to one
_UNSEEN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_BELONGS: Final = ("Mn", "Mc", "Me", "Sk", "Lm")  # to the character before: accents, marks of kana, tones of emoji

# Fences of code, between which all is text; and in other text spans of code, which are kept, and markup.
_FENCE: Final = re.compile(r"^[ \t]*+(?:```|~~~)", re.MULTILINE)
_MARKUP: Final = re.compile(
    r"(`[^`\n]*`)|<!--[^>]{0,300}-->|</?[A-Za-z][\w.:-]*+(?:\s[^<>=\n]*+=[^<>\n]*+|\s*+/)?>"
    r"|\{\{[<%][^{}\n]{0,300}[%>]\}\}|\{%[^{}\n]{0,300}%\}|^(?:import|export)\s[^\n]*?(?:from\s)?['\"][^'\"\n]*['\"];?$",
    re.MULTILINE,
)


class Snippet(NamedTuple):
    """A text of one line; what was looked for is from `begin` to `end` in it."""

    text: str
    begin: int
    end: int

    def cut(self, most: int) -> Snippet:
        """Return it with `most` characters at most, around the match."""
        return around(self.text[: self.begin], self.text[self.begin : self.end], self.text[self.end :], most)


def without_markup(text: str) -> str:
    """Return a text of Markdown, as long as before, with blanks for tags, comments, imports and shortcodes."""
    pieces: list[str] = []
    at, is_code = 0, False
    for fence in _FENCE.finditer(text):
        part = text[at : fence.start()]
        pieces += [part if is_code else _MARKUP.sub(_blanked, part), fence[0]]
        at, is_code = fence.end(), not is_code
    pieces.append(text[at:] if is_code else _MARKUP.sub(_blanked, text[at:]))
    return "".join(pieces)


def _blanked(found: re.Match[str]) -> str:
    return found[0] if found[1] else " " * len(found[0])


def around(before: str, match: str, after: str, most: int = LONGEST) -> Snippet:
    """Return the text around a match on one line, of `most` characters at most and without controls.

    Words and characters that belong together stay whole, as far as there is room; marks say where text is left out.
    """
    before, match, after = _line(before).lstrip(), _line(match), _line(after).rstrip()
    if not before:
        match, after = match.lstrip(), after if match.strip() else after.lstrip()
    if len(match) > most:
        match, after = match[: _end_of(match, most - len(_CUT))], _CUT
        return Snippet(match + after, 0, len(match)) if most > len(_CUT) else Snippet("", 0, 0)
    room = most - len(match)
    left = before[len(before) - min(len(before), max(room // _ROOM_BEFORE, room - len(after))) :]
    if len(left) < len(before):
        left = _CUT + left[_start_in(left) :] if len(left) > len(_CUT) else ""
    right = after[: max(room - len(left), 0)]
    if len(right) < len(after):
        right = right[: _end_in(right)] + _CUT if len(right) > len(_CUT) else ""
    return Snippet(left + match + right, len(left), len(left) + len(match))


def _line(text: str) -> str:
    line = _BLANK.sub(" ", _RULE.sub("", text))
    if line.isprintable():
        return line
    return "".join(each for each in line if each == _JOINER or unicodedata.category(each) not in _UNSEEN)


def _start_in(left: str) -> int:
    """Return where to begin in a text whose beginning is cut off; a mark needs a character of room."""
    far = 1 + len(left) // _LOST
    for marks in _GOOD_CUTS:
        found = [at for at in (left.find(mark, 0, far) for mark in marks) if at >= 0]
        if found:
            at = min(found) + 1
            return at + (left[at : at + 1] == " ")
    at = 1
    while at < len(left) and _belongs(left, at):
        at += 1
    return at


def _end_in(right: str) -> int:
    """Return where to end in a text whose end is cut off."""
    near = max(len(right) - 1 - len(right) // _LOST, 0)
    for marks in _GOOD_CUTS:
        at = max(right.rfind(mark, near) for mark in marks)
        if at >= 0:
            return min(at + (marks != " "), len(right) - 1)
    return _end_of(right, len(right) - 1)


def _end_of(text: str, most: int) -> int:
    end = min(most, len(text))
    while 0 < end < len(text) and _belongs(text, end):
        end -= 1
    return end


def _belongs(text: str, at: int) -> bool:
    """Tell whether a character is a mark on the one before it, or one emoji with it."""
    return _JOINER in text[at - 1 : at + 1] or unicodedata.category(text[at]) in _BELONGS
