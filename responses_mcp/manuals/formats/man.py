"""Manual pages in the macros man and mdoc: headings with `.SH`, `.SS`, `.Sh` and `.Ss`."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import Document
from responses_mcp.manuals.formats.markup import Markup
from responses_mcp.manuals.formats.plain import Plain

_IS_MAN: Final = re.compile(r"^[.'][ \t]*(?:TH|SH|Dd|Sh)\b", re.MULTILINE)
_ESCAPE: Final = re.compile(r"\\(?:f(?:\[[^\]]{0,20}\]|\(..|.)|s[+-]?\d|\*?\((..)|\[([^\]]{0,40})\]|(.))")
_WORD: Final = re.compile(r'"([^"]*)"?|(\S+)')
_CHARACTERS: Final = {
    "bu": "•", "em": "—", "en": "–", "hy": "-", "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "aq": "'", "dq": '"',
    "co": "©", "ha": "^", "ti": "~", "rs": "\\", "mi": "-", "mu": "×", "->": "→", "<-": "←", "ga": "`",
    "-": "-", "e": "\\", " ": " ", "~": " ", "0": " ", "t": "\t", "'": "'", "`": "`", ".": ".", "\\": "\\",
}  # fmt: skip
_JOINED: Final = frozenset(("BR", "RB", "IR", "RI", "BI", "IB"))
_FONTS: Final = frozenset(("B", "I", "SM", "SB", "IP"))
# Macros of mdoc that may stand among the words of a line, and those whose words are text beside.
_CALLED: Final = frozenset({
    "Fl", "Ar", "Cm", "Op", "Pa", "Xr", "Em", "Sy", "Li", "Ql", "Dq", "Sq", "Pq", "Qq", "Ev", "Va", "Fn",
    "Ft", "Fa", "Ic", "Er", "Dv", "No", "Ns", "Ap", "Oo", "Oc", "Nm", "Pf", "Xo", "Xc", "Bq", "Aq",
})  # fmt: skip
_SHOWN: Final = _CALLED | frozenset(("Nd", "It", "Dl", "D1", "UR", "MT", "Lk"))
_LONGEST: Final = 2000  # characters of a line with macros that is looked at word by word
_MARKS: Final = re.compile(r"(?P<macro>[.'][ \t]*([A-Za-z]{1,4})[ \t]*)|(?P<other>[.'])")


class Man(Markup):
    """Manual pages. A file of another kind with such an ending is plain text."""

    _match = staticmethod(_MARKS.match)
    _name = ""  # of the program, which macros repeat

    @classmethod
    def convert(cls, text: str, check: CancellationCheck) -> Document:
        """Return the document of a text."""
        return (cls if _IS_MAN.search(text) else Plain)(text, check).read()

    def _text(self, line: str) -> None:
        self.page.lines.append(_plain(line))

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        macro, rest = found[2] or "", line[found.end() :][:_LONGEST]
        words = [quoted or bare for quoted, bare in _WORD.findall(rest)]
        text = ""
        if macro in ("SH", "Sh", "SS", "Ss") and words:
            self.page.heading(1 if macro in ("SH", "Sh") else 2, _plain(" ".join(words)))
            return
        if macro in ("TH", "Dt"):
            self.page.title = self.page.title or _plain(" ".join(words[:1])).lower()
        elif macro in _JOINED:
            text = "".join(words)
        elif macro in _FONTS:
            text = " ".join(words[:1] if macro == "IP" else words)
        elif macro in _SHOWN:
            if macro == "Nm":
                words = words or self._name.split()
                self._name = " ".join(words)
            text = _sentence(macro, words)
        elif kind == "other" and len(line) > 2 and line[1] != "\\":
            text = line
        self.page.lines.append(_plain(text))


def _sentence(macro: str, words: list[str]) -> str:
    """Return the words of a line of mdoc without the macros among them."""
    text: list[str] = []
    is_flag = macro == "Fl"
    for word in words:
        if word in _CALLED:
            is_flag = word == "Fl"
            continue
        text.append(f"-{word}" if is_flag and word[:1].isalnum() else word)
        is_flag = False
    joined = " ".join(text)
    return f"[{joined}]" if macro == "Op" else joined


def _plain(text: str) -> str:
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    return _CHARACTERS.get(found[1] or found[2] or found[3] or "", "")
