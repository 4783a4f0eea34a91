"""Answers that are longer than a client has room for: cut at a sentence, marked as cut, their sources kept."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_MARK: Final = (
    "[Cut here: the first {shown:,} of {all:,} characters are shown. Ask for a shorter answer, or for a part of it.]"
)
_LONGEST_MARK: Final = len(_MARK) + 20
# Behind these a text may end: in Japanese at once, else where a blank follows.
_SENTENCE: Final = re.compile("[。！？][」』）】]*|[.!?…][\"'”’)\\]*_]*(?=\\s)|\n\n")
_BACK: Final = 2_000  # characters in which an end of a sentence is looked for, from the cut on
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_JOINER: Final = "\u200d"


def shortened(body: str, sources: str, most: int) -> str:
    """Return an answer that is too long with `most` characters: a beginning of its body, a mark, and its sources.

    Sources that take more than half of the room are cut, too, at a line.
    """
    if len(sources) > most // 2:
        sources = sources[: max(sources.rfind("\n", 0, most // 2 + 1), 0)]
    shown = _cut(body, max(most - len(sources) - _LONGEST_MARK - 4, 0))  # line ends between them
    mark = _MARK.format(shown=len(shown), all=len(body))
    return "\n\n".join(filter(None, (shown, mark, sources)))[:most]


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text, up to the end of a sentence, else of a word; code that is open is closed."""
    if len(text) <= most:
        return text
    start = max(most - _BACK, most // 2)
    ends = [found.end() for found in _SENTENCE.finditer(text, start, most + 1) if found.end() <= most]
    end = ends[-1] if ends else max(text.rfind("\n", start, most), text.rfind(" ", start, most))
    if end < 0:
        end = most
        # What belongs to the character before it is not torn off.
        while end > start and (unicodedata.category(text[end])[0] == "M" or _JOINER in text[end - 1 : end + 1]):
            end -= 1
    shown = text[:end].rstrip()
    opened = ""
    for fence in _FENCE.finditer(shown):
        if not opened:
            opened = fence[1]
        elif fence[1].startswith(opened) and not fence[2].strip():
            opened = ""
    return f"{shown[: most - len(opened) - 1]}\n{opened}" if opened else shown
