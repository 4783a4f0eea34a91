"""Manual pages in the macros man and mdoc, line by line: headings with `.SH`, `.SS`, `.Sh` and `.Ss`."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import plain
from responses_mcp.manuals.formats.document import Document, Page, checked_lines

_IS_MAN: Final = re.compile(r"^[.'][ \t]*(?:TH|SH|Dd|Sh)\b", re.MULTILINE)
_REQUEST: Final = re.compile(r"[.'][ \t]*([A-Za-z]{1,4}|\\\")[ \t]*(.*)$")
_ESCAPE: Final = re.compile(r"\\(?:f(?:\[[^\]]{0,20}\]|\(..|.)|s[+-]?\d|\*?\((..)|\[([^\]]{0,40})\]|(.))")
_WORD: Final = re.compile(r'"([^"]*)"?|(\S+)')
_CHARACTERS: Final = {
    "bu": "•", "em": "—", "en": "–", "hy": "-", "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "aq": "'", "dq": '"',
    "co": "©", "ha": "^", "ti": "~", "rs": "\\", "mi": "-", "mu": "×", "->": "→", "<-": "←", "ga": "`",
}  # fmt: skip
_SINGLE: Final = {
    "-": "-",
    "e": "\\",
    " ": " ",
    "~": " ",
    "0": " ",
    "t": "\t",
    "'": "'",
    "`": "`",
    ".": ".",
    "\\": "\\",
}
_FONTS: Final = frozenset(("B", "I", "SM", "SB", "BR", "RB", "IR", "RI", "BI", "IB"))
_JOINED: Final = frozenset(("BR", "RB", "IR", "RI", "BI", "IB"))
_SHOWN: Final = _FONTS | {"TP", "IP", "Nm", "Nd", "Fl", "Ar", "Cm", "Op", "Pa", "Xr", "It", "Em", "Sy", "Li", "Ql"} | {
    "Dq", "Sq", "Pq", "Qq", "Ev", "Va", "Fn", "Ft", "Fa", "Dl", "D1", "Ic", "Er", "Dv", "No", "Pf", "UR", "MT", "Lk",
}  # fmt: skip
_CALLED: Final = frozenset(
    {
        *("Fl", "Ar", "Cm", "Op", "Pa", "Xr", "Em", "Sy", "Li", "Ql", "Dq", "Sq", "Pq", "Qq", "Ev", "Va", "Fn", "Ft"),
        *("Fa", "Ic", "Er", "Dv", "No", "Ns", "Ap", "Oo", "Oc", "Nm", "Pf", "Xo", "Xc", "Bq", "Aq"),
    }
)  # macros of mdoc that may stand among the words of a line
_LONGEST: Final = 2000  # characters of a line with macros that is looked at word by word


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text in as many lines as the file has; a file of another kind as plain text."""
    if _IS_MAN.search(text) is None:
        return Document(text, plain.outline(checked_lines(text, check)))
    page = Page()
    name = ""
    for line in checked_lines(text, check):
        request = _REQUEST.match(line)
        if request is None:
            page.lines.append("" if line[:1] in (".", "'") and len(line) < 3 else _plain(line))
            continue
        macro, rest = request[1], request[2]
        if macro in ("SH", "Sh", "SS", "Ss") and rest.strip():
            page.heading(1 if macro in ("SH", "Sh") else 2, _plain(" ".join(_words(rest))))
        elif macro in ("TH", "Dt"):
            page.title = page.title or _plain(" ".join(_words(rest)[:1])).lower()
            page.lines.append("")
        elif macro in _SHOWN:
            if macro == "Nm":
                name = rest.strip() or name
                rest = rest.strip() or name
            page.lines.append(_shown(macro, rest))
        else:
            page.lines.append("")
    return page.document()


def _shown(macro: str, rest: str) -> str:
    if macro in _JOINED:
        return _plain("".join(_words(rest)))
    if macro in ("TP", "IP"):
        return _plain(" ".join(_words(rest)[:1])) if macro == "IP" else ""
    if macro in _FONTS:
        return _plain(" ".join(_words(rest)))
    words: list[str] = []
    dash = macro == "Fl"
    for word in _words(rest[:_LONGEST]):
        if word in _CALLED:
            dash = word == "Fl"
            continue
        words.append(f"-{word}" if dash and word[:1].isalnum() else word)
        dash = False
    text = _plain(" ".join(words))
    return f"[{text}]" if macro == "Op" else text


def _words(text: str) -> list[str]:
    return [quoted or bare for quoted, bare in _WORD.findall(text)]


def _plain(text: str) -> str:
    return _ESCAPE.sub(_escaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    name = found[1] or found[2]
    if name:
        return _CHARACTERS.get(name, "")
    return _SINGLE.get(found[3] or "", "")
