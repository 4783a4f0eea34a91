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
    for section in document.places():
        begin = begins[section.text - 1] if section.text <= len(begins) else len(text)
        end = len(text) if section.end is None else begins[section.end - 1] - 1
        while begin < end and text[begin] == "\n":
            begin += 1
        crumbs = " > ".join(section.crumbs)[-_LONGEST_CRUMBS:]
        above = " ".join([*map(_head_tokens, section.crumbs), of_place])[-_LONGEST_CRUMBS:]
        line = section.text + text.count("\n", begins[section.text - 1], begin) if begin < end else section.text
        for part in _parts(_Part(line, begin, text[begin:end].rstrip()), check):
            counted = f"{front}\n{part.text}" if front and begin else part.text
            begins_on = section.line + (part.line - line if is_json else 0)
            counted = decoded(counted) if is_json else counted
            yield Entry(
                begins_on,
                part.line,
                part.begin,
                len(part.text),
                section.title or name,
                crumbs,
                _head_tokens(section.title or name),
                above,
                tokens(prepared(counted)),
                part.text,
            )
            front = ""


class _Part(NamedTuple):
    """A piece of the text of a file, which begins at a character, on a line."""

    line: int
    begin: int
    text: str


@lru_cache(1024)  # a title is above other sections, and many files have the same
def _head_tokens(title: str) -> str:
    return tokens(prepared(shown_title(title)))


def _parts(whole: _Part, check: CancellationCheck) -> Iterator[_Part]:
    """Yield a text in parts that are quick to rank, one at least.

    It is cut where there is white space, if there is any, and not within an escape of JSON.
    """
    line, start, text = whole.line, 0, whole.text
    while len(text) - start > _LONGEST_TEXT:
        check()
        end = start + _LONGEST_TEXT
        end = max(text.rfind("\n", start, end), text.rfind(" ", start, end)) + 1 or end
        escape = text.rfind("\\", max(end - 5, start + 1), end)
        end = escape if escape > 0 else end
        yield _Part(line, whole.begin + start, text[start:end])
        line += text.count("\n", start, end)
        start = end
    check()
    if start < len(text) or not start:
        yield _Part(line, whole.begin + start, text[start:])
