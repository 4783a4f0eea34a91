"""Asker that are longer than a client has room for: cut at a sentence, marked as cut, their sources kept."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_MARK: Final = (
    "[Cut here: the first {shown:,} of {all:,} characters are shown. Ask for a shorter answer, or for a part of it.]"
)
_LONGEST_MARK: Final = len(_MARK) + 20
_MOST_OF_SOURCES: Final = 0.5  # of the room; of more the first lines are kept
# Behind these a text may end: in Japanese at once, else where a blank follows.
_SENTENCE: Final = re.compile("[。！？][」』）】]*|[.!?…][\"'”’)\\]*_]*(?=\\s)|\n\n")
_BACK: Final = 2_000  # characters in which an end of a sentence is looked for, from the cut on
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_JOINER: Final = "\u200d"


def shortened(body: str, sources: str, most: int) -> str:
    """Return an answer that is too long with `most` characters: a beginning of its body, a mark, and its sources.

    Sources that take more than half of the room are cut, too, at a line.
    """
    sources = _whole_lines(sources, int(_MOST_OF_SOURCES * most))
    room = most - len(sources) - _LONGEST_MARK - 4  # line ends between them
    shown = _cut(body, max(room, 0)) if len(body) > room else body
    mark = _MARK.format(shown=len(shown), all=len(body))
    return "\n\n".join(filter(None, (shown, mark, sources)))[:most]


def _whole_lines(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: max(text.rfind("\n", 0, most + 1), 0)]


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a sentence, else of a word; code that is open is closed."""
    start = max(most - _BACK, most // 2)
    ends = [found.end() for found in _SENTENCE.finditer(text, start, most + 1) if found.end() <= most]
    end = ends[-1] if ends else max(text.rfind("\n", start, most), text.rfind(" ", start, most))
    if end < 0:
        end = most
        while end > start and _belongs(text, end):
            end -= 1
    shown = text[:end].rstrip()
    fence = _open_fence(shown)
    if fence and len(shown) + len(fence) + 1 > most:
        shown = shown[: most - len(fence) - 1]
    return f"{shown}\n{fence}" if fence else shown


def _belongs(text: str, at: int) -> bool:
    """Tell whether a character is a part of what the one before it begins."""
    return unicodedata.category(text[at]).startswith("M") or _JOINER in (text[at], text[at - 1])


def _open_fence(text: str) -> str:
    """Return the marks of a fence that nothing closes, if there is one."""
    opened = ""
    for fence in _FENCE.finditer(text):
        if not opened:
            opened = fence[1]
        elif fence[1].startswith(opened) and not fence[2].strip():
            opened = ""
    return opened
