"""The text of an answer while it is written, in pieces that may be shown: without secrets, and as the answer has it.

What comes from the API is cut anywhere, through a secret, an address or a character too. So a piece ends with its line,
or, in a line that is too long for a header, behind a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from responses_mcp.responses_api.response.sources import LONGEST_HEADER, header_of, is_drawn, is_fence, is_source
from responses_mcp.responses_api.response.web_pages import without_marks
from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import Redact

_LONGEST_WAIT: Final = 4 * 1024  # characters; to put a line together with each delta takes time
# Words, up to a mark of the model or a sequence for a terminal, which wait for the end of their line.
_WORDS: Final = re.compile("[^\x00-\x08\x0a-\x1f\x7f-\x9f\ue200-\ue20f]*[ \t\u3000、。！？]")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class WrittenText:
    """Takes the text as it comes and tells `on_text` what of it may be shown; "" says that it begins, maybe once more.

    From what may be the header of the last block of sources, which the server writes anew, nothing is told until more
    than a paragraph follows it. Text passes `redact`, which finds secrets of one word, and with `lines`, where whole
    lines pass it, those that have blanks in them.
    """

    def __init__(self, on_text: Callable[[str], None], redact: Redact, *, lines: bool = False) -> None:
        self._on_text = on_text
        self._redact = redact
        self._lines = lines
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[str] = []
        self._length = 0  # of what waits, in characters
        self._is_begun = False  # the beginning of the line that waits has been told
        self._held: list[str] = []  # lines from a possible header on
        self._has_remark = False  # one of them says more than a source

    def take(self, delta: str) -> None:
        """Take the next piece from the API; an empty one says that an answer begins."""
        if not delta:
            self._begin()
            self._on_text("")
        self._waiting.append(delta)
        self._length += len(delta)
        by_word = self._length <= _LONGEST_WAIT and not self._lines and not self._held
        if not by_word and "\n" not in delta:
            return
        text = "".join(self._waiting)
        end = text.rfind("\n") + 1
        if not end and (words := _WORDS.match(text)) and (self._is_begun or _is_prose(words[0])):
            end = words.end()
        self._waiting, self._length = [text[end:]], len(text) - end
        text = without_marks(sanitized(text[:end]), self._redact)
        if told := "".join(map(self._told, _LINES.findall(text))):
            self._on_text(told)

    def _told(self, line: str) -> str:
        """Return what may be told with this line, or this part of a long one: it too, unless it may be of the block."""
        is_begun, self._is_begun = self._is_begun, not line.endswith("\n")
        header = None if is_begun else header_of(line)
        if is_begun or (header is None and not self._held):
            return line
        if header is not None:
            self._has_remark = False
        elif not is_drawn(line):
            if is_fence(line) or (self._has_remark and is_drawn(self._held[-1])):
                told, self._held = "".join([*self._held, line]), []
                return told
            self._has_remark = self._has_remark or not is_source(line)
        self._held.append(line)
        return ""


def _is_prose(beginning: str) -> bool:
    return len(beginning) > LONGEST_HEADER and header_of(beginning) is None
