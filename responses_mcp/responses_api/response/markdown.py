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
_ADDRESS: Final = re.compile(r"(https?://[^/?#]*+)(.*)\Z", re.IGNORECASE | re.DOTALL)
_BREAKS_OUT: Final = re.compile(r"[\s<>\"\\^`{|}]")
_PARENTHESIS: Final = re.compile(r"[()]")
_IN_MARKDOWN: Final = re.compile(r"[\s<>\"\\^`{|}()\[\]]")  # of an address
_IN_NAMES: Final = re.compile(r"[\[\]`~<>\\]|[^\S ]|  |\A | \Z")  # changed in a text of one line


def closing_nothing(text: str) -> str:
    """Return a text of one line without what would end a Markdown link, a fence, code or an HTML comment around it."""
    if not _IN_NAMES.search(text):
        return text
    # Marks go before what they could have kept apart is looked at; blanks, which come last, bring nothing together.
    lost = unpaired(text, _BRACKET)
    text = "".join(each for at, each in enumerate(text) if at not in lost) if lost else text
    text = _FENCE.sub(lambda fence: fence[0][0], text)
    runs = Counter(map(len, _TICKS.findall(text)))
    alone = {length for length, times in runs.items() if times % 2}
    text = _without_last_ticks(text, alone) if alone else text
    end = text.rfind(")") + 1  # of the last link
    text = _COMMENT.sub(" ", text[:end].replace("](", "] (") + text[end:])
    return " ".join(text.split()).rstrip("\\ ")


def address(url: str) -> str | None:
    """Return a URL such that it ends where it ends, in Markdown too; None for one that is not of http or https.

    Blanks and quotation marks are escaped, and brackets that do not pair up.
    """
    parts = _ADDRESS.match(url)
    if parts is None or not _IN_MARKDOWN.search(url):
        return None if parts is None else url
    path = _BREAKS_OUT.sub(_escaped, parts[2])
    lost = unpaired(path, _PARENTHESIS) | unpaired(path, _BRACKET)
    path = "".join(quote(each, safe="") if at in lost else each for at, each in enumerate(path)) if lost else path
    return _BREAKS_OUT.sub(_escaped, parts[1]) + path


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


def _without_last_ticks(text: str, lengths: set[int]) -> str:
    """Drop the last run of backticks of each of the lengths: nothing pairs up with it."""
    for run in reversed(list(_TICKS.finditer(text))):
        if len(run[0]) in lengths:
            lengths = lengths - {len(run[0])}
            text = text[: run.start()] + text[run.end() :]
    return text


def _escaped(found: re.Match[str]) -> str:
    return quote(found[0], safe="")
