"""Answers that are longer than a client has room for: cut at a sentence, marked as cut, their sources kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from typing import Final

from responses_mcp.responses_api.response.sources_block import end_block, fences

_MARK: Final = (
    "[Cut here: the first {shown:,} of {all:,} characters are shown. Ask for a shorter answer, or for a part of it.]"
)
_LONGEST_MARK: Final = len(_MARK) + 20
_MOST_OF_SOURCES: Final = 0.5  # of the room; of more the first lines are kept
# Behind these a text may end: in Japanese at once, else where a blank follows.
_SENTENCE: Final = re.compile("[。！？][」』）】]*|[.!?…][\"'”’)\\]*_]*(?=\\s)|\n\n")
_BACK: Final = 2_000  # characters in which an end of a sentence is looked for, from the cut on
_JOINER: Final = "\u200d"


def shortened(text: str, most: int, names: Collection[str] = ()) -> str:
    """Return an answer of `most` characters at most; the same if it is no longer.

    Its block of sources stays at the end, as far as it takes no more than half of the room; `names` are those of
    sources that have no address.
    """
    if len(text) <= most:
        return text
    begin = end_block(text, names)
    body, sources = text[:begin].rstrip(), text[begin:].strip()
    sources = _whole_lines(sources, int(_MOST_OF_SOURCES * most))
    room = most - len(sources) - _LONGEST_MARK - 4  # line ends between them
    if len(body) > room:
        body = _cut(body, max(room, 0))
    mark = _MARK.format(shown=len(body), all=begin)
    return "\n\n".join(filter(None, (body, mark, sources)))[:most]


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
    return next((opening[1] for opening, end in fences(text) if end is None), "")
