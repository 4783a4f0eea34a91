"""What pages say of themselves within the Markdown of others: titles that close nothing around them, and addresses.

Clients write `[title](address)`, put snippets into fences and comments, and let a model read it. What pairs up stays as
it is, so an ordinary title is not changed: `Array[int] (PEP 585)` closes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final
from urllib.parse import quote

_FENCE: Final = re.compile(r"`{3}`*+|~{3}~*+")
_COMMENT: Final = re.compile(r"<!--|--!?>")
_TICKS: Final = re.compile(r"`++")
_BRACKET: Final = re.compile(r"[\[\]]")
_PARENTHESIS: Final = re.compile(r"[()]")
_BEGINS: Final = re.compile("https?://", re.IGNORECASE)
_BREAKS_OUT: Final = re.compile(r"[\s<>\"\\^`{|}]")
_IN_MARKDOWN: Final = re.compile(r"[\s<>\"\\^`{|}()\[\]]")  # of an address
_IN_NAMES: Final = re.compile(r"[\[\]`~<>\\]|[^\S ]|  |\A | \Z")  # changed in a text of one line


def closing_nothing(text: str) -> str:
    """Return a text of one line without what would end a Markdown link, a fence, code or an HTML comment around it."""
    if not _IN_NAMES.search(text):
        return text
    # Marks go before what they could have kept apart is looked at; blanks, which come last, bring nothing together.
    text = _changed(text, unpaired(text, _BRACKET), "")
    text = _FENCE.sub(lambda fence: fence[0][0], text)
    runs = Counter(_TICKS.findall(text))
    text = _TICKS.sub(lambda run: "" if runs[run[0]] % 2 else run[0], text)
    if ")" in text:
        text = text.replace("](", "] (")
    return " ".join(_COMMENT.sub(" ", text).split()).rstrip("\\ ")


def address(url: str) -> str | None:
    """Return a URL such that it ends where it ends, in Markdown too; None for one that is not of http or https.

    Blanks and quotation marks are escaped, and brackets that do not pair up.
    """
    if not _BEGINS.match(url):
        return None
    if not _IN_MARKDOWN.search(url):
        return url
    url = _BREAKS_OUT.sub(lambda found: quote(found[0], safe=""), url)
    return _changed(url, unpaired(url, _PARENTHESIS) | unpaired(url, _BRACKET), "%{:02X}")


def unpaired(text: str, brackets: re.Pattern[str]) -> set[int]:
    """Return where brackets of one kind, an opening and a closing one, stand that have no other."""
    lost: set[int] = set()
    opened: list[int] = []
    for bracket in brackets.finditer(text):
        if bracket[0] in "([":
            opened.append(bracket.start())
        elif opened:
            opened.pop()
        else:
            lost.add(bracket.start())
    return lost | set(opened)


def _changed(text: str, places: set[int], form: str) -> str:
    """Return a text with characters in another form, which gets their codes."""
    return "".join(form.format(ord(each)) if at in places else each for at, each in enumerate(text)) if places else text
