"""An answer on a terminal while it is written: lines broken between words, and in the end what is missing of it."""

from __future__ import annotations

import sys
from typing import Final

from responses_mcp.commands.terminal import Wrapping, say_text, show_now, width_of_lines

_HEAD: Final = 12  # characters of a line, by which it is known what it is


class WrittenAnswer:
    """Shows an answer on stdout: `take` its pieces, of which an empty one says that it begins, then `end` it."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._shown: list[str] = []  # as it was given, without line breaks of ours
        self._in_code = False
        self._begin_line()

    def _begin_line(self) -> None:
        self._head: str | None = ""  # until it is known what the line is, and nothing of it is shown
        self._as_it_is = False
        self._blanks = ""

    def take(self, piece: str) -> None:
        """Show the next piece of the text, as far as it is known how."""
        if not piece and self._shown:
            say_text("\n\n--- it broke off; once more: ---\n\n")
            self._begin()
        if not self._shown and not self._head:
            piece = piece.lstrip()
        self._show(piece)
        show_now()

    def end(self, text: str) -> None:
        """Show what is missing of the whole `text`; all of it, below a line, if it is not what was shown."""
        shown = "".join(self._shown)
        if text.startswith(shown):
            rest = text[len(shown) :]
        elif text.startswith(bare := shown.rstrip()):  # with fewer blank lines
            rest = text[len(bare) :]
            for _ in range(shown.count("\n", len(bare))):
                rest = rest.removeprefix("\n")
        else:
            rest = f"\n\n--- in its final form: ---\n\n{text}"
        if self._head is not None:
            self._head = ""  # what it held is in the rest
        if rest or not shown.endswith("\n"):
            self._show(rest if rest.endswith("\n") else f"{rest}\n")

    def _show(self, text: str) -> None:
        lines = text.split("\n")
        for number, body in enumerate(lines):
            ends = number < len(lines) - 1
            if self._head is None:
                self._write(body)
            else:
                self._head += body
                if not ends and len(self._head) <= _HEAD:
                    return
                self._write_head(self._head)
            if ends:
                say_text(f"{self._blanks}\n")
                self._shown.append("\n")
                self._begin_line()

    def _write_head(self, head: str) -> None:
        fence = head.lstrip().startswith("```")
        self._as_it_is = self._in_code or fence or head.lstrip().startswith("|")
        self._in_code ^= fence
        self._wrapping = Wrapping(head, width_of_lines(sys.stdout))
        self._head = None
        self._write(head)

    def _write(self, text: str) -> None:
        self._shown.append(text)
        bare = (self._blanks + text).rstrip(" \t")
        self._blanks = (self._blanks + text)[len(bare) :]  # a line break may take their place
        say_text(bare if self._as_it_is else self._wrapping.take(bare))
