"""From a file to the rows of the index: what a search shows, and the tokens by which it is found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.files.texts import decoded
from responses_mcp.manuals.files.titles import shown_title
from responses_mcp.manuals.formats.document import Document
from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.requests.paths import file_type
from responses_mcp.manuals.words import prepared

_LONGEST_TEXT: Final = 16_000  # characters of a row; a longer section has several
_LONGEST_CRUMBS: Final = 400  # characters; every section below has them


class Entry(NamedTuple):
    """A row of the index, in the order of its columns.

    `line` is that of the heading; in a JSON file, the one that the row begins on. `text` is as it is served, from
    character `begin` of the file on, which is on `text_line`; it has so many characters. The tokens are those of the
    title, of the headings above and the path, and of the text, with blanks between.
    """

    line: int
    text_line: int
    begin: int
    length: int
    title: str
    crumbs: str
    title_tokens: str
    above_tokens: str
    text_tokens: str
    text: str


def entries(path: str, document: Document, check: CancellationCheck) -> Iterator[Entry]:
    """Yield the rows of a file."""
    text = document.text
    if document.is_excluded:
        return
    of_place = tokens(prepared(path.rpartition(".")[0]))
    is_json = file_type(path) == "json"
    name = path.rpartition("/")[2] if is_json else ""
    begins = list(accumulate(map((1).__add__, map(len, text.split("\n"))), initial=0))[:-1]
    front = text[: begins[document.front_lines]] if 0 < document.front_lines < len(begins) else ""
    crumbs: tuple[str, ...] | None = None
    headings = above = ""
    for section in document.places():
        begin = begins[section.text - 1] if section.text <= len(begins) else len(text)
        whole = text[begin : None if section.end is None else begins[section.end - 1] - 1]
        body = whole.lstrip("\n")
        begin += len(whole) - len(body)
        line = first = section.text + (len(whole) - len(body) if body else 0)
        if section.crumbs != crumbs:
            crumbs = section.crumbs
            headings = " > ".join(crumbs)[-_LONGEST_CRUMBS:]
            above = " ".join([*map(_head_tokens, crumbs), of_place])[-_LONGEST_CRUMBS:]
        title = section.title or name
        for part in _parts(body.rstrip()):
            check()
            counted = f"{front}\n{part}" if front and begin else part
            front = ""
            yield Entry(
                section.line + (line - first if is_json else 0),
                line,
                begin,
                len(part),
                title,
                headings,
                _head_tokens(title),
                above,
                tokens(prepared(decoded(counted) if is_json else counted)),
                part,
            )
            begin += len(part)
            line += part.count("\n")


@lru_cache(1024)  # a title is above other sections, and many files have the same
def _head_tokens(title: str) -> str:
    return tokens(prepared(shown_title(title)))


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts that are quick to rank, one at least.

    It is cut where there is white space, if there is any, and not within an escape of JSON.
    """
    start = 0
    while len(text) - start > _LONGEST_TEXT:
        end = start + _LONGEST_TEXT
        end = max(text.rfind("\n", start, end), text.rfind(" ", start, end)) + 1 or end
        escape = text.rfind("\\", max(end - 5, start + 1), end)
        end = escape if escape > 0 else end
        yield text[start:end]
        start = end
    if start < len(text) or not start:
        yield text[start:]
