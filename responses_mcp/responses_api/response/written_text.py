"""The text of an answer while it is written, in pieces that may be shown: without secrets, and as `parser` has it.

What comes from the API is cut anywhere, through a secret, an address or a character too. So a piece ends where none of
them can go on: behind a blank, or in scripts without blanks behind a character of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal

from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.sources import LONGEST_HEADER, kind_of
from responses_mcp.responses_api.response.web_pages import MARKER, without_markers, without_tracking
from responses_mcp.sanitization import open_sequence, sanitized

# Nothing else ends a piece: an invisible character could stand in a secret, or belong to what comes before it.
_END: Final = re.compile(
    r"[ \n\t\u3000-\u303f\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003fffd]"
)
_ADDRESS_BEGINS: Final = re.compile(r"https?:")
_LONGEST_WORD: Final = 4 * 1024  # characters; to put it together with each delta takes time
_MARK: Final = "\ue200"
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class WrittenText:
    """Takes the text as it comes and tells `on_text` what of it may be shown; "" says that it begins, maybe once more.

    What may be the last block of sources, which the server writes anew, is told when more than a paragraph follows it.
    So a line is told when it has ended, or is too long for a header. Text passes `redact`, which finds secrets of one
    word; with `lines` also those that have blanks in them. Behind a word without an end no more is told.
    """

    def __init__(self, on_text: Callable[[str], None], redact: Redact, *, lines: bool = False) -> None:
        self._on_text = on_text
        self._redact = redact
        self._lines = lines
        self._waiting: list[str] = []
        self._length = 0  # of what waits, in characters
        self._begin()

    def _begin(self) -> None:
        self._in_prose = False  # the beginning of this line has been told
        self._line: list[str] = []  # the beginning of this line, which has not
        self._line_length = 0
        self._block: list[str] = []  # lines that may be the last block of sources, and the paragraph behind it
        self._behind: Literal["nothing", "words", "paragraph"] = "nothing"  # the block

    def take(self, delta: str) -> None:
        """Take the next piece from the API; an empty one says that an answer begins."""
        if not delta:
            self._waiting.clear()
            self._length = 0
            self._begin()
            self._on_text("")
        if self._length > _LONGEST_WORD:
            return
        self._waiting.append(delta)
        self._length += len(delta)
        if not ("\n" in delta if self._lines else _END.search(delta)):
            return
        text = "".join(self._waiting)
        end = self._end(text)
        self._waiting = [text[end:]]
        self._length = len(text) - end
        text = without_tracking(without_markers(self._redact(sanitized(text[:end]))))
        self._tell(self._redact(text))  # without a mark inside, a secret is whole again

    def _tell(self, text: str) -> None:
        """Tell the lines that cannot be a part of the answer's last block of sources; keep the others."""
        told: list[str] = []
        for piece in _LINES.findall(text):
            ends = piece.endswith("\n")
            if self._in_prose:
                told.append(piece)
                self._in_prose = not ends
                continue
            self._line.append(piece)
            self._line_length += len(piece)
            if not ends and (self._block or self._line_length <= LONGEST_HEADER):
                continue
            line = "".join(self._line)
            if self._may_be_last(line.rstrip("\n")):
                self._block.append(line if ends else "")  # of a long one the end is waited for
            else:
                told += [*self._block, line]
                self._block.clear()
                self._in_prose = not ends
            if ends or self._in_prose:
                self._line, self._line_length = [], 0
        if told:
            self._on_text("".join(told))

    def _may_be_last(self, line: str) -> bool:
        """Tell whether with this line a block may still be the last one."""
        kind = kind_of(line)
        if kind == "header":
            self._behind = "nothing"
            return True
        if not self._block or kind == "code" or (kind != "blank" and self._behind == "paragraph"):
            return False
        if kind == "prose":
            self._behind = "words"
        elif kind == "blank" and self._behind == "words":
            self._behind = "paragraph"
        return True

    def _end(self, text: str) -> int:
        """Return up to where a text may be shown."""
        if self._lines:
            return text.rfind("\n") + 1
        sequence = open_sequence(text)
        if sequence < len(text):
            return self._end(text[:sequence])
        # A mark of the model may have blanks in it, and addresses: what is cut there would be shown with what is left.
        mark = text.find(_MARK, max(text.rfind("\ue201"), text.rfind("\n")) + 1)
        if mark >= 0:
            text = text[:mark]  # it goes on
        text = MARKER.sub(lambda closed: _MARK * len(closed[0]), text)
        word = max(text.rfind(blank) for blank in " \n\t") + 1
        if _ADDRESS_BEGINS.search(text, word):
            return word
        return max((found.end() for found in _END.finditer(text, word)), default=word)
