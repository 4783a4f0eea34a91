"""Titles as a reader of the page sees them: without the marks by which some systems give a heading an id or a look.

The index and the places of sections know titles as they are written; only what is shown goes through here.
"""

from __future__ import annotations

import re
from typing import Final

_SPAN: Final = re.compile(r"`[^`]*`")  # what is shown as it is written
_ATTRIBUTES: Final = re.compile(r"\{\s*+[#.:][^{}]*\}|(?<=\s)\{[\w-]++(?:=[^{}]*+)?\}\s*$|\{%[^{}%]*%\}")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")  # of a sign that Markdown would take for a mark
_COMMENT: Final = re.compile(r"(?s:<!--.*?(?:-->|\Z))|\{/\*[^{}]*\*/\}")  # of HTML and of MDX
_CLOSING: Final = re.compile(r"(?<=\s)#+$")  # which ends a heading; what stood behind it has kept it in the title
_WITH_ATTRIBUTES: Final = re.compile(r"<([A-Za-z][A-Za-z0-9-]*+)\s[^<>=]*+=[^<>]*+>")
_PAIR: Final = re.compile(r"<([A-Za-z][A-Za-z0-9-]*)>([^<>]*)</\1>")
# Of a link or an image with its address, the text; a span of code outside one is kept as it is.
_LINK: Final = re.compile(
    r"(`[^`]*`)|(?<!\\)!?\[((?:`[^`\[\]]*`|[^`\[\]])*+)\]\((?:[^()\s]|\([^()\s]*+\))*+(?:\s+\"[^\"()]*+\")?\)"
)
_MARKS: Final = ("{", "<", "](", "\\")
_BREAK: Final = re.compile(r"(?<=\S)\s*<[Bb][Rr]\s*/?>\s*")


def shown_title(title: str) -> str:
    """Return a title without ids in braces, addresses, tags, comments and escapes; as it is if nothing else is in it.

    A tag alone stays, because in `The <a> element` and `vector<int>` it is what the title is about.
    """
    if not any(mark in title for mark in _MARKS):
        return title
    linked = _unlinked(_unlinked(title))  # what is linked may be an image
    pieces: list[str] = []
    at = 0
    for span in _SPAN.finditer(linked):
        pieces += (_plain(linked[at : span.start()]), span[0])
        at = span.end()
    pieces.append(_plain(linked[at:]))
    shown = " ".join("".join(pieces).split())
    if title.rstrip().endswith(("}", "-->")) and not shown.endswith(("}", "-->")):
        shown = _CLOSING.sub("", shown).rstrip()
    return shown or title


def _unlinked(title: str) -> str:
    return _LINK.sub(lambda found: found[1] or found[2] or "", title)


def _plain(text: str) -> str:
    text = _BREAK.sub(" ", _COMMENT.sub("", _ATTRIBUTES.sub("", text)))
    for name in {found[1] for found in _WITH_ATTRIBUTES.finditer(text)}:
        text = text.replace(f"</{name}>", "")
    text = _WITH_ATTRIBUTES.sub("", text)
    return _ESCAPE.sub(r"\1", _PAIR.sub(r"\2", text))
